"""What can be seen of the pipeline from outside: its heartbeats, and segments that wait for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q

from kafkadash.domain.segments import SegmentKind
from kafkadash.observe.history.store import Entry, Store
from kafkadash.observe.models import PipelineLedger

_BELOW = "segments/"
_SEGMENTS = f"{_BELOW}{SegmentKind.MANIFEST}"
_LOOK_BACK = timedelta(hours=24)
_MOST_HEARTBEATS = 20


@dataclass(frozen=True, slots=True)
class Seen:
    """``segments``: flushes that are in no result that was taken in; ``oldest_at``: when the oldest was written."""

    heartbeats: list[dict[str, Any]]
    results: int
    segments: int
    oldest_at: datetime | None


def look(store: Store, now: datetime, results: int) -> Seen:
    """Raises StoreFailed."""
    waiting = list(_waiting(store, now))
    oldest = min((entry.at for entry in waiting if entry.at is not None), default=None)
    return Seen(list(_heartbeats(store)), results, len(waiting), oldest)


def _heartbeats(store: Store) -> Iterator[dict[str, Any]]:
    files = [entry for entry in store.files("heartbeat") if entry.name.endswith(".json")]
    for entry in files[-_MOST_HEARTBEATS:]:
        try:
            told = json.loads(store.read(entry.path) or b"")
        except ValueError:
            continue  # half of it was written; the next look sees it whole
        if isinstance(told, dict):
            yield {"file": entry.name, "seen_at": entry.at.isoformat() if entry.at else None, **told}


def _waiting(store: Store, now: datetime) -> Iterator[Entry]:
    """Manifests since the hour of the newest segment that was taken in, one day back at most."""
    newest = PipelineLedger.objects.exclude(newest_at=None).order_by("-newest_at").values_list("newest_at", flat=True)
    since = max(newest.first() or now - _LOOK_BACK, now - _LOOK_BACK).replace(minute=0, second=0, microsecond=0)
    known: set[tuple[int, int]] = set()
    aside: set[str] = set()
    lately = since - timedelta(hours=1)
    # A result of manifests that were all set aside names no segment, and so no time of one.
    recent = Q(newest_at__gte=lately) | Q(newest_at=None, written_at__gte=lately)
    for flushes, files in PipelineLedger.objects.filter(recent).values_list("flushes", "set_aside"):
        known |= {(epoch, seq) for epoch, seq in flushes}
        aside |= {each["file"] for each in files}
    hour = since.astimezone(UTC)
    while hour <= now + timedelta(hours=1):
        for entry in store.files(f"{_SEGMENTS}/{hour:%Y-%m-%d}/{hour:%H}"):
            epoch, _, seq = entry.name.removesuffix(".parquet").partition("-")
            if not (epoch.isdecimal() and seq.isdecimal()) or (int(epoch), int(seq)) in known:
                continue
            if entry.path.removeprefix(_BELOW) not in aside:
                yield entry
        hour += timedelta(hours=1)
