"""Ledger entries as rows, and rows as entries (``domain.ledger``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Q

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
    "missing_at",
)

OPEN = ~Q(state=EntryState.CLEARED.value) | Q(lost_at__isnull=False)
"""What a step has to know: entries that are open, and those of which a lost call may still arrive."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """``own`` of the run; ``others``: what other runs of the cluster have open at a place, the newest; ``under_way``:
    places of those of them that is under way.
    """

    own: dict[Place, Entry]
    others: dict[Place, Entry]
    under_way: frozenset[Place]


def load(execution_id: int, cluster_id: int) -> Loaded:
    """One statement."""
    still_open = ~Q(state=EntryState.CLEARED.value)
    rows = ThrottleEntry.objects.filter(
        OPEN & Q(execution=execution_id) | still_open & Q(execution__cluster=cluster_id)
    ).annotate(under_way=F("execution__active"))
    own: dict[Place, Entry] = {}
    others: dict[Place, Entry] = {}
    under_way = set()
    for row in rows.order_by("pk"):
        entry = entry_of(row)
        if row.execution_id == execution_id:
            own[entry.place] = entry
            continue
        others[entry.place] = entry
        if row.under_way:
            under_way.add(entry.place)
    return Loaded(own, others, frozenset(under_way))


def put_back(cluster_id: int, values: Mapping[Place, str], since: datetime) -> frozenset[Place]:
    """Places at which a run of the cluster found this value and put it back after ``since``. One statement, or none."""
    if not values:
        return frozenset()
    cleared = ThrottleEntry.objects.filter(
        execution__cluster=cluster_id,
        state=EntryState.CLEARED.value,
        name__in={place.name for place in values},
        changed_at__gt=since,
    )
    found = set(cleared.values_list("resource", "name", "key", "previous"))
    return frozenset(p for p, value in values.items() if (p.resource, p.name, p.key, value) in found)


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
        missing_at=row.missing_at,
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
