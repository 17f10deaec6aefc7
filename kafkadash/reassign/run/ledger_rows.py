"""Ledger entries as rows, and rows as entries (``domain.ledger``)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db.models import Q

from kafkadash.domain.executor_throttles import Pair
from kafkadash.domain.ledger import Entry, EntryState, Place
from kafkadash.reassign.models import ThrottleEntry

_WRITTEN = (
    "value",
    "asked",
    "late",
    "pairs",
    "already",
    "previous",
    "previous_source",
    "state",
    "words",
    "changed_at",
    "lost_at",
    "again_at",
)

OPEN = ~Q(state=EntryState.CLEARED.value) | Q(lost_at__isnull=False)
"""What a step has to know: entries that are open, and those of which a lost call may still arrive."""


def load(execution_id: int) -> dict[Place, Entry]:
    """One statement."""
    rows = ThrottleEntry.objects.filter(OPEN, execution=execution_id)
    return {entry.place: entry for entry in map(entry_of, rows)}


def store(execution_id: int, entries: Collection[Entry], now: datetime) -> None:
    """Inserts or overwrites; one statement, none without entries. An entry that was cleared long ago begins anew."""
    if entries:
        ThrottleEntry.objects.bulk_create(
            [_row(execution_id, entry, now) for entry in entries],
            update_conflicts=True,
            unique_fields=["execution", "resource", "name", "key"],
            update_fields=_WRITTEN,
        )


def entry_of(row: ThrottleEntry) -> Entry:
    return Entry(
        place=Place(row.resource, row.name, row.key),
        state=EntryState(row.state),
        value=row.value,
        asked=row.asked,
        late=row.late,
        pairs={_pair(text): EntryState(state) for text, state in row.pairs.items()},
        already=frozenset(map(_pair, row.already)),
        previous=row.previous,
        previous_source=row.previous_source,
        words=row.words,
        changed_at=row.changed_at,
        lost_at=row.lost_at,
        again_at=row.again_at,
    )


def _row(execution_id: int, entry: Entry, now: datetime) -> ThrottleEntry:
    written: dict[str, Any] = {name: getattr(entry, name) for name in _WRITTEN}
    written |= {
        "pairs": {_text(pair): state.value for pair, state in sorted(entry.pairs.items())},
        "already": [_text(pair) for pair in sorted(entry.already)],
        "state": entry.state.value,
        "changed_at": entry.changed_at or now,
    }
    place = entry.place
    return ThrottleEntry(execution_id=execution_id, resource=place.resource, name=place.name, key=place.key, **written)


def _pair(text: str) -> Pair:
    partition, _, broker = text.partition(":")
    return int(partition), int(broker)


def _text(pair: Pair) -> str:
    return f"{pair[0]}:{pair[1]}"
