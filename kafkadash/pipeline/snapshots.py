"""When each cluster was looked at, as the manifests say: how far back a window of samples reaches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from kafkadash.domain.segments import SegmentKind
from kafkadash.pipeline.flushes import Flush, minute_of, read_manifest
from kafkadash.pipeline.lake import MINUTES_OF_HOUR, Lake, Span

RECENT = 12
"""Refreshes before the first minute touched."""
RECENT_OF_GROUPS = 20
"""Of a group whose coordinator is silent every second time, a worker's ten samples are of nineteen refreshes."""

HOURS_BACK = 6
"""A cluster that was looked at more seldom than that has no window."""

_KEPT_MANIFESTS = 20_000

Times = Mapping[tuple[str, SegmentKind], tuple[int, ...]]
"""(cluster, kind) → minutes since the epoch."""


class Snapshots:
    """Remembers what it has read: a manifest never changes."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._read: dict[str, Times] = {}

    def before(
        self, touched: Sequence[Span], until: int, kinds: Collection[SegmentKind] = frozenset(SegmentKind)
    ) -> Mapping[SegmentKind, list[Span]]:
        """Of these kinds, spans that hold the touched ones and recent refreshes before each, cluster by cluster."""
        found: dict[SegmentKind, list[Span]] = {kind: [] for kind in SegmentKind}
        for span in touched:
            for (cluster, kind), first in self._first_minutes(span, until, kinds).items():
                found[kind].append(Span(first, span.last, cluster))
                # What manifests say of these refreshes belongs to them.
                found[SegmentKind.MANIFEST].append(Span(first, span.last, cluster))
        return found

    def _first_minutes(
        self, span: Span, until: int, kinds: Collection[SegmentKind]
    ) -> Mapping[tuple[str, SegmentKind], int]:
        """Of every cluster and kind that was looked at in the span."""
        seen = (item for times in self._times(span.hours(), until) for item in times.items())
        inside = {key for key, at in seen if key[1] in kinds and _any_in(at, span)}
        before: dict[tuple[str, SegmentKind], list[int]] = {key: [] for key in inside}
        hour = span.first // MINUTES_OF_HOUR
        for back in range(HOURS_BACK + 1):
            if all(len(minutes) >= _recent(kind) for (_, kind), minutes in before.items()):
                break
            for times in self._times(range(hour - back, hour - back + 1), until):
                for key in inside & times.keys():
                    before[key] += [minute for minute in times[key] if minute < span.first]
        return {
            (cluster, kind): _back(kind, minutes)[: _recent(kind)][-1] if minutes else span.first
            for (cluster, kind), minutes in before.items()
        }

    def _times(self, hours: range, until: int) -> Iterator[Times]:
        for file in {part.file for part in self._lake.parts(hours, until) if part.kind is SegmentKind.MANIFEST}:
            if file not in self._read:
                if len(self._read) >= _KEPT_MANIFESTS:
                    self._read.clear()
                self._read[file] = self._read_manifest(file)
            yield self._read[file]

    def _read_manifest(self, file: str) -> Times:
        flush = read_manifest(self._lake.store, file)
        found: dict[tuple[str, SegmentKind], list[int]] = {}
        for each in flush.refreshes if isinstance(flush, Flush) else ():
            found.setdefault((each.cluster, each.kind), []).append(minute_of(each.observed_at))
        return {key: tuple(minutes) for key, minutes in found.items()}


def _recent(kind: SegmentKind) -> int:
    return RECENT_OF_GROUPS if kind is SegmentKind.GROUP_OFFSET else RECENT


def _back(kind: SegmentKind, minutes: Sequence[int]) -> list[int]:
    """Newest first. Replicas are looked at in two ways, the quicker of which says nothing of sizes: their minutes count
    once each, or a move's looks every five seconds would leave no size in sight.
    """
    return sorted(set(minutes) if kind is SegmentKind.REPLICA else minutes, reverse=True)


def _any_in(minutes: Sequence[int], span: Span) -> bool:
    return any(span.first <= minute <= span.last for minute in minutes)
