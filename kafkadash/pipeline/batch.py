"""A batch: files into the lake, results of what the batch touched, and the marker last.

A batch is the content of some manifests. A repeated batch writes the same results, because it reads the lake only up to
itself; once its marker exists, it is not repeated.

``ManifestSource`` is a Spark source that looks for new manifests only where they can be. Manifests are in folders by
hour, and an address is greater than every earlier one (the writer's times never go back, ``export.flusher``). So only
the last address is kept, and a look lists the last hour. Spark's own file source lists every manifest at each look, and
keeps all names. ``FlushSnapshots`` reads from manifests when each cluster was observed: how far back a window reaches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from kafkadash.export.results import ResultKind
from kafkadash.export.schema import SegmentKind
from kafkadash.pipeline import flushes as results
from kafkadash.pipeline.flushes import (
    FOLDER,
    FlushIntake,
    FlushName,
    ReadFlush,
    SegmentSetAside,
    exclude_files,
    find_unreadable,
    minute_of,
    read_manifest,
    take_in,
)
from kafkadash.pipeline.lake import MINUTES_OF_HOUR, FactLake, LakeSpan, is_within, merge_minutes
from kafkadash.pipeline.store import PipelineStore, open_store
from kafkadash.pipeline.work import Frames, PipelineWork, SampleLooks, SharedFrames, WorkScope

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECENT = 12
"""Refreshes before the first minute touched."""
RECENT_OF_GROUPS = 20
"""Refreshes that hold ten samples of a group whose coordinator is silent every second time."""

HOURS_BACK = 6
"""A cluster that was looked at more seldom than that has no window."""

_KEPT_MANIFESTS = 20_000

Times = Mapping[tuple[str, SegmentKind], tuple[int, ...]]
"""(cluster, kind) → minutes since the epoch."""


class FlushSnapshots:
    """Remembers what it has read: a manifest never changes."""

    def __init__(self, lake: FactLake) -> None:
        self._lake = lake
        self._read: dict[str, Times] = {}

    def before(
        self, touched: Sequence[LakeSpan], until: int, kinds: Collection[SegmentKind] = frozenset(SegmentKind)
    ) -> Mapping[SegmentKind, list[LakeSpan]]:
        """Return, per kind, spans with the touched ones and the recent refreshes before each, cluster by cluster."""
        found: dict[SegmentKind, list[LakeSpan]] = {kind: [] for kind in SegmentKind}
        for span in touched:
            for (cluster, kind), first in self._first_minutes(span, until, kinds).items():
                found[kind].append(LakeSpan(first, span.last, cluster))
                # What manifests say of these refreshes belongs to them.
                found[SegmentKind.MANIFEST].append(LakeSpan(first, span.last, cluster))
        return found

    def _first_minutes(
        self, span: LakeSpan, until: int, kinds: Collection[SegmentKind]
    ) -> Mapping[tuple[str, SegmentKind], int]:
        """Return the first minute to read for every cluster and kind that was observed in the span."""
        seen = (item for times in self._times(span.hours(), until) for item in times.items())
        inside = {key for key, at in seen if key[1] in kinds and _any_in(at, span)}
        before: dict[tuple[str, SegmentKind], list[int]] = {key: [] for key in inside}
        hour = span.first // MINUTES_OF_HOUR
        for back in range(HOURS_BACK + 1):
            if all(len(minutes) >= _count_recent(kind) for (_, kind), minutes in before.items()):
                break
            for times in self._times(range(hour - back, hour - back + 1), until):
                for key in inside & times.keys():
                    before[key] += [minute for minute in times[key] if minute < span.first]
        return {
            (cluster, kind): _sort_minutes(kind, minutes)[: _count_recent(kind)][-1] if minutes else span.first
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
        for each in flush.refreshes if isinstance(flush, ReadFlush) else ():
            found.setdefault((each.cluster, each.kind), []).append(minute_of(each.observed_at))
        return {key: tuple(minutes) for key, minutes in found.items()}


def _count_recent(kind: SegmentKind) -> int:
    return RECENT_OF_GROUPS if kind is SegmentKind.GROUP_OFFSET else RECENT


def _sort_minutes(kind: SegmentKind, minutes: Sequence[int]) -> list[int]:
    """Newest first. Replicas are looked at in two ways, the quicker of which says nothing of sizes: their minutes count
    once each, or a move's looks every five seconds would leave no size in sight.
    """
    return sorted(set(minutes) if kind is SegmentKind.REPLICA else minutes, reverse=True)


def _any_in(minutes: Sequence[int], span: LakeSpan) -> bool:
    return any(span.first <= minute <= span.last for minute in minutes)


# Kinds of results are written side by side: each is too small to keep two cores busy.
AT_ONCE = 3
Point = Callable[[str], None]
"""Told where a batch has come to; tests end the process there."""


@dataclass(frozen=True, slots=True)
class DoneBatch:
    """Result of a batch. ``newest``: latest event time observed, ``committed_at``: commit time of its newest flush."""

    name: FlushName
    flushes: int
    rows: Mapping[str, int]
    set_aside: Sequence[SegmentSetAside]
    newest: datetime | None
    committed_at: datetime | None
    seconds: float


@dataclass
class PipelineBatches:
    """Does the batches of one query. ``within``: answers are for these minutes only."""

    lake: FactLake
    works: Sequence[PipelineWork]
    point: Point = field(default=lambda _: None)
    within: LakeSpan | None = None

    def __post_init__(self) -> None:
        self.snapshots = FlushSnapshots(self.lake)

    def do(self, batch: int, manifests: Iterable[str]) -> DoneBatch | None:
        """None where it was done before. Raises what Spark and the store raise; nothing of it counts then."""
        began = time.monotonic()
        name = FlushName(self.lake.query, batch)
        store = self.lake.store
        if results.is_done(store, name):
            return None
        intake = take_in(store, manifests)
        try:
            made = self._results(name, intake)
        except Exception:
            bad = [*find_unreadable(store, sorted(intake.names)), *self._earlier_unreadable(batch, intake)]
            if not bad:
                raise
            intake = exclude_files(intake, bad)
            made = self._results(name, intake)
        self.point("results written")
        rows = results.write_marker(store, name, made, intake.flushes, intake.set_aside)
        self.point("marker written")
        committed = max((flush.committed_at for flush in intake.flushes), default=None)
        return DoneBatch(
            name, len(intake.flushes), rows, intake.set_aside, intake.newest, committed, time.monotonic() - began
        )

    def _earlier_unreadable(self, batch: int, intake: FlushIntake) -> list[SegmentSetAside]:
        """Set aside unreadable files of earlier batches that this batch's windows reach, and return them."""
        touched = list(merge_minutes(intake.minutes))
        reach = self.snapshots.before(touched, batch)
        files = {file for kind in SegmentKind for file in self.lake.files(kind, [*touched, *reach[kind]], batch)}
        bad = find_unreadable(self.lake.store, sorted(files - intake.names))
        self.lake.set_aside(bad)
        return bad

    def _results(self, name: FlushName, intake: FlushIntake) -> list[ResultKind]:
        self.lake.write(name.batch, intake)
        self.point("lake written")
        minutes = intake.minutes
        if self.within is not None:
            minutes &= set(range(self.within.first, self.within.last + 1))
        touched = list(merge_minutes(minutes))
        works = [work for work in self.works if touched and not work.needs.isdisjoint(intake.files)]
        reach: dict[WorkScope, Mapping[SegmentKind, list[LakeSpan]]] = {
            WorkScope.MINUTES: dict.fromkeys(SegmentKind, touched)
        }
        if any(work.scope is WorkScope.RECENT for work in works):
            reach[WorkScope.RECENT] = self.snapshots.before(touched, name.batch)
        with ExitStack() as until_written:
            shared = {each: self._shared(each, touched, name.batch, until_written) for each in _shared_by(works)}
            frames = {
                scope: {**self._frames(spans, name.batch, scope, works), **shared} for scope, spans in reach.items()
            }
            _side_by_side([partial(self._write_result, name, work, frames[work.scope], touched) for work in works])
        return [work.kind for work in works]

    def _frames(
        self, spans: Mapping[SegmentKind, list[LakeSpan]], until: int, scope: WorkScope, works: Sequence[PipelineWork]
    ) -> dict[SegmentKind | SharedFrames | SampleLooks, DataFrame]:
        mine = [work for work in works if work.scope is scope]
        read = {kind for work in mine for kind in work.reads}
        looks = {each for work in mine for each in work.looks}
        return {
            **{kind: self.lake.rows(kind, spans[kind], until) for kind in read},
            **{each: self.lake.looks(each.kind, spans[each.kind], until) for each in looks},
        }

    def _shared(self, shared: SharedFrames, touched: list[LakeSpan], until: int, kept: ExitStack) -> DataFrame:
        """Reckoned when it is first asked for, and held until ``kept`` ends."""
        frame = shared.job({kind: self.lake.rows(kind, touched, until) for kind in shared.reads}).persist()
        kept.callback(frame.unpersist)
        return frame

    def _write_result(self, name: FlushName, work: PipelineWork, frames: Frames, touched: Sequence[LakeSpan]) -> None:
        rows = work.job(frames)
        if work.scope is WorkScope.RECENT:
            # Of what was seen last before that, only a part of its window may be here; it has its answer already.
            rows = rows.where(is_within(touched, work.at))
        results.write_rows(self.lake.store, name, work.kind, rows)
        self.point(f"{work.kind} written")


def _shared_by(works: Sequence[PipelineWork]) -> set[SharedFrames]:
    return {shared for work in works for shared in work.shared}


def _side_by_side(deeds: Sequence[Callable[[], None]]) -> None:
    """Raises the first error, when all have ended."""
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        running = [pool.submit(task) for task in deeds]
    for each in running:
        each.result()


NAME = "kafkadash_manifests"
_LAST = "last"

Offset = dict[str, str]
"""{"last": address of the last manifest below the segments' folder, '' before the first}."""


def list_manifests_after(store: PipelineStore, last: str) -> Iterator[str]:
    """Addresses of manifests below the segments' folder that come after this one, in order. Raises OSError."""
    kind = str(SegmentKind.MANIFEST)
    _, day, hour, name = last.split("/") if last else ("", "", "", "")
    for date in _names(store, kind, day):
        for each in _names(store, f"{kind}/{date}", hour if date == day else ""):
            same = (date, each) == (day, hour)
            for file in _names(store, f"{kind}/{date}/{each}", name if same else ""):
                if file.endswith(".parquet") and not (same and file == name):
                    yield f"{kind}/{date}/{each}/{file}"


def _names(store: PipelineStore, folder: str, least: str) -> Iterator[str]:
    return (name for name in store.names(f"{FOLDER}/{folder}") if name >= least and name[0] not in "_.")


class ManifestSource(DataSource):
    """Options: ``uri`` of the pipeline's folder; ``at_once``, how many manifests make a batch at most."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "manifest STRING"

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: N802
        return _ManifestReader(open_store(self.options["uri"]), int(self.options["at_once"]))


class _ManifestReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, store: PipelineStore, at_once: int) -> None:
        self._store, self._at_once = store, at_once
        self._until: str | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        return {_LAST: ""}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        *_, self._until = ["", *list_manifests_after(self._store, "")]

    def read(self, start: Offset) -> tuple[Iterator[tuple[str]], Offset]:
        found = list(islice(self._upto(start[_LAST], self._until), self._at_once))
        return iter([(name,) for name in found]), {_LAST: found[-1] if found else start[_LAST]}

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Iterator[tuple[str]]:  # noqa: N802
        return ((name,) for name in self._upto(start[_LAST], end[_LAST]))

    def _upto(self, last: str, until: str | None) -> Iterator[str]:
        for name in list_manifests_after(self._store, last):
            if until is not None and name > until:
                return
            yield name
