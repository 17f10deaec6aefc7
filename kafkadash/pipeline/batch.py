"""One batch: files into the lake, results of what it touched, and the marker last.

A batch is what some manifests name. Done again from its beginning it writes the same, because it reads the lake only up
to itself; and once its marker is there it is not done again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.domain.segments import SegmentKind
from kafkadash.pipeline import results
from kafkadash.pipeline.flushes import Intake, SetAside, take_in, unreadable, without
from kafkadash.pipeline.lake import Lake, Span, stretches, within
from kafkadash.pipeline.results import Name
from kafkadash.pipeline.snapshots import Snapshots
from kafkadash.pipeline.work import Frames, Looks, Scope, Shared, Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Kinds of results are written side by side: each is too small to keep two cores busy.
AT_ONCE = 3
Point = Callable[[str], None]
"""Told where a batch has come to; tests end the process there."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a batch did; ``newest``: event time of what was observed last, ``committed_at`` of its newest flush."""

    name: Name
    flushes: int
    rows: Mapping[str, int]
    set_aside: Sequence[SetAside]
    newest: datetime | None
    committed_at: datetime | None
    seconds: float


@dataclass
class Batches:
    """Does the batches of one query. ``within``: answers are for these minutes only."""

    lake: Lake
    works: Sequence[Work]
    point: Point = field(default=lambda _: None)
    within: Span | None = None

    def __post_init__(self) -> None:
        self.snapshots = Snapshots(self.lake)

    def do(self, batch: int, manifests: Iterable[str]) -> Done | None:
        """None where it was done before. Raises what Spark and the store raise; nothing of it counts then."""
        began = time.monotonic()
        name = Name(self.lake.query, batch)
        store = self.lake.store
        if results.is_done(store, name):
            return None
        intake = take_in(store, manifests)
        try:
            made = self._results(name, intake)
        except Exception:
            bad = [*unreadable(store, sorted(intake.names)), *self._earlier_unreadable(batch, intake)]
            if not bad:
                raise
            intake = without(intake, bad)
            made = self._results(name, intake)
        self.point("results written")
        rows = results.write_marker(store, name, made, intake.flushes, intake.set_aside)
        self.point("marker written")
        committed = max((flush.committed_at for flush in intake.flushes), default=None)
        return Done(
            name, len(intake.flushes), rows, intake.set_aside, intake.newest, committed, time.monotonic() - began
        )

    def _earlier_unreadable(self, batch: int, intake: Intake) -> list[SetAside]:
        """Of the files that batches before this one brought, and that its windows reach: they are read no more."""
        touched = list(stretches(intake.minutes))
        reach = self.snapshots.before(touched, batch)
        files = {file for kind in SegmentKind for file in self.lake.files(kind, [*touched, *reach[kind]], batch)}
        bad = unreadable(self.lake.store, sorted(files - intake.names))
        self.lake.set_aside(bad)
        return bad

    def _results(self, name: Name, intake: Intake) -> list[ResultKind]:
        self.lake.write(name.batch, intake)
        self.point("lake written")
        minutes = intake.minutes
        if self.within is not None:
            minutes &= set(range(self.within.first, self.within.last + 1))
        touched = list(stretches(minutes))
        works = [work for work in self.works if touched and not work.needs.isdisjoint(intake.files)]
        reach: dict[Scope, Mapping[SegmentKind, list[Span]]] = {Scope.MINUTES: dict.fromkeys(SegmentKind, touched)}
        if any(work.scope is Scope.RECENT for work in works):
            reach[Scope.RECENT] = self.snapshots.before(touched, name.batch)
        with ExitStack() as until_written:
            shared = {each: self._shared(each, touched, name.batch, until_written) for each in _shared_by(works)}
            frames = {
                scope: {**self._frames(spans, name.batch, scope, works), **shared} for scope, spans in reach.items()
            }
            _side_by_side([partial(self._write_result, name, work, frames[work.scope], touched) for work in works])
        return [work.kind for work in works]

    def _frames(
        self, spans: Mapping[SegmentKind, list[Span]], until: int, scope: Scope, works: Sequence[Work]
    ) -> dict[SegmentKind | Shared | Looks, DataFrame]:
        mine = [work for work in works if work.scope is scope]
        read = {kind for work in mine for kind in work.reads}
        looks = {each for work in mine for each in work.looks}
        return {
            **{kind: self.lake.rows(kind, spans[kind], until) for kind in read},
            **{each: self.lake.looks(each.kind, spans[each.kind], until) for each in looks},
        }

    def _shared(self, shared: Shared, touched: list[Span], until: int, kept: ExitStack) -> DataFrame:
        """Reckoned when it is first asked for, and held until ``kept`` ends."""
        frame = shared.job({kind: self.lake.rows(kind, touched, until) for kind in shared.reads}).persist()
        kept.callback(frame.unpersist)
        return frame

    def _write_result(self, name: Name, work: Work, frames: Frames, touched: Sequence[Span]) -> None:
        rows = work.job(frames)
        if work.scope is Scope.RECENT:
            # Of what was seen last before that, only a part of its window may be here; it has its answer already.
            rows = rows.where(within(touched, work.at))
        results.write_rows(self.lake.store, name, work.kind, rows)
        self.point(f"{work.kind} written")


def _shared_by(works: Sequence[Work]) -> set[Shared]:
    return {shared for work in works for shared in work.shared}


def _side_by_side(deeds: Sequence[Callable[[], None]]) -> None:
    """Raises the first error, when all have ended."""
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        running = [pool.submit(deed) for deed in deeds]
    for each in running:
        each.result()
