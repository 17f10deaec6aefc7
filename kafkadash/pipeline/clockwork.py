"""Scheduled work of the pipeline: rollups of finished hours and days, disk forecasts, the workload, and retention.

An hour is rolled up from all its observations, a day from the sketches of its hours; disk forecasts and the workload
are made of what is kept of each hour (``done.Kept``). If facts of an hour come late, the hour and its day are computed
again under another name, so that a reader reads them again: the name of the query has the last batch in it that brought
facts of the hour. ``lake/done.json`` records what was done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from kafkadash.export.results import HOURS_OF_WEEK, RESULTS, ResultKind, RollupGrain
from kafkadash.export.schema import SegmentKind as Facts
from kafkadash.pipeline import done
from kafkadash.pipeline import flushes as results
from kafkadash.pipeline.batch import HOURS_BACK, FlushSnapshots
from kafkadash.pipeline.done import FOLDER, HOURS, PIECES, KeptHours
from kafkadash.pipeline.flushes import FlushName, find_unreadable, flushed_at, list_manifests
from kafkadash.pipeline.lake import EVER, LAKE, MINUTES_OF_HOUR, FactLake, LakeSpan, is_within
from kafkadash.pipeline.work import LAGS, Frames, SampleLooks, SharedFrames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTLES = timedelta(minutes=5)
"""So long after its end an hour is waited for; what comes later makes it anew."""

RAW_KEPT = timedelta(days=7)
FORECAST_HOURS = 72
"""Through so many a disk's line is drawn: three days and nights, so that what every night deletes is no growth."""

HOURS_OF_DAY = 24
_DAY = timedelta(days=1)


def coarse_jobs() -> Mapping[ResultKind, tuple[frozenset[Facts], Callable[[Frames, RollupGrain], DataFrame]]]:
    """Rollups of any grain: the facts that each is made of, and the job; that of lags is given them gathered."""
    from kafkadash.pipeline.jobs import rollup
    from kafkadash.pipeline.jobs.quorum import quorum_rollup

    offsets, replicas, traffic = (frozenset({kind}) for kind in (Facts.GROUP_OFFSET, Facts.REPLICA, Facts.TRAFFIC))
    return {
        ResultKind.LAG_ROLLUP: (offsets, lambda of, _: rollup.lag_rollup(of[LAGS])),
        ResultKind.TOPIC_ROLLUP: (
            offsets | replicas,
            lambda of, grain: rollup.topic_rollup(of[LAGS], of[Facts.REPLICA], of[Facts.MANIFEST], grain),
        ),
        ResultKind.CLUSTER_ROLLUP: (offsets, lambda of, _: rollup.cluster_rollup(of[LAGS])),
        ResultKind.BROKER_ROLLUP: (replicas, lambda of, grain: rollup.broker_rollup(of[Facts.REPLICA], grain)),
        ResultKind.QUORUM_ROLLUP: (
            frozenset({Facts.QUORUM}),
            lambda of, grain: quorum_rollup(of[Facts.QUORUM], grain),
        ),
        ResultKind.BYTES_IN: (
            traffic,
            lambda of, grain: rollup.traffic_rollup(of[Facts.TRAFFIC], ResultKind.BYTES_IN, grain),
        ),
        ResultKind.RECORDS_IN: (
            traffic,
            lambda of, grain: rollup.traffic_rollup(of[Facts.TRAFFIC], ResultKind.RECORDS_IN, grain),
        ),
    }


class RollupStopped(Exception):
    """Request to stop; unfinished work is done again by the next start."""


@dataclass
class RollupScheduler:
    """Scheduler of one query's rollups. ``stopping`` is checked between pieces of work, and ``say`` is told of each.

    ``folders``: where hours are kept; the first is this scheduler's own, the others are read for hours missing in it.
    ``leaving``: rollups that are not made.
    """

    lake: FactLake
    say: Callable[[str], None]
    stopping: Callable[[], bool] = lambda: False
    folders: Sequence[str] = (HOURS,)
    leaving: frozenset[ResultKind] = frozenset()
    _noted: done.DoneHours | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.kept = KeptHours(self.lake.store, self.folders)
        self._snapshots = FlushSnapshots(self.lake)

    def turn(self, now: datetime) -> None:
        """Everything that is due. Raises what Spark and the store raise; what was done by then is not done again."""
        try:
            for hour in self._hours_due(now):
                self._hour(hour)
            for day in sorted(self._days_due(now)):
                self._day(day)
            self._forecast()
            self._workload()
            self._forget(now)
        except RollupStopped:
            return

    def _go_on(self) -> None:
        """Raises Stopped."""
        if self.stopping():
            raise RollupStopped

    @property
    def _done(self) -> done.DoneHours:
        if self._noted is None:
            self._noted = done.DoneHours(self.lake.store)
        return self._noted

    # --- hours ---

    def _hours_due(self, now: datetime) -> Iterator[int]:
        known = self._hours_known()
        for number, (hour, last) in enumerate(sorted(known.items())):
            if begin(hour + 1) + SETTLES > now:
                continue
            noted = self._done.get("hour", hour)
            # The first that is kept may have lost a part already; what was made of the whole of it is not replaced.
            cut = number == 0 and noted is not None and noted[0] != self.lake.query
            if noted != [self.lake.query, str(last)] and not cut:
                yield hour

    def _hours_known(self) -> dict[int, int]:
        """Hour → the last batch that brought something of it."""
        found = {}
        for date in self.lake.store.names(self.lake.folder):
            for hour in self.lake.store.names(f"{self.lake.folder}/{date}"):
                at = datetime.fromisoformat(f"{date}T{hour}:00:00+00:00")
                if (last := self.lake.last_batch(hour_of(at))) is not None:
                    found[hour_of(at)] = last
        return found

    def _hour(self, hour: int) -> None:
        last = self.lake.last_batch(hour)
        if last is None:
            return
        name = FlushName(f"hourly-{self._short}-{last}", hour * 3600)
        if not results.is_done(self.lake.store, name):
            try:
                self._make_hour(name, hour)
            except RollupStopped:
                raise
            except Exception:
                if not self._set_aside_of(hour):
                    raise
                self._make_hour(name, hour)
        self.lake.merge(hour, last)
        self._done.note("hour", hour, [self.lake.query, str(last)])

    def _make_hour(self, name: FlushName, hour: int) -> None:
        if self._is_cut(hour):
            self.say(f"hour {begin(hour):%Y-%m-%d %H}:00: unchanged, some of its segments are deleted")
            return
        self._keep_pieces(hour)
        rows = self.roll_up(name, hour)
        self.say(f"hour {begin(hour):%Y-%m-%d %H}:00: {sum(rows.values())} rows")

    def _set_aside_of(self, hour: int) -> bool:
        """Set aside unreadable files of the hour and of those read with it; return whether there were any."""
        hours = range(hour - HOURS_BACK, hour + 1)
        bad = find_unreadable(self.lake.store, sorted({part.file for part in self.lake.parts(hours, EVER)}))
        self.lake.set_aside(bad)
        return bool(bad)

    def _is_cut(self, hour: int) -> bool:
        """Return whether segments of the hour were deleted. A rollup of the rest would look complete."""
        if not any(each.gone for each in self.lake.aside(hour)):
            return False
        kept = list_manifests(self.lake.store)
        return not kept or hour <= hour_of(flushed_at(kept[0]))

    def _keep_pieces(self, hour: int) -> None:
        have = self._facts_of(hour)
        for piece in PIECES.values():
            if piece.reads in have:
                self._go_on()
                facts = self.lake.rows(piece.reads, [_minutes_of(hour, piece.before)], EVER)
                made = piece.job(facts).where(is_within([_minutes_of(hour)], piece.at))
                folder = self.kept.folder(piece.name, hour)
                made.coalesce(1).write.mode("overwrite").parquet(self.lake.store.address(folder))

    def roll_up(self, name: FlushName, hour: int) -> Mapping[str, int]:
        """From all that the lake has of it. Returns the rows of each kind."""
        from kafkadash.pipeline.jobs import rollup

        have = self._facts_of(hour)
        jobs = {
            kind: job
            for kind, (made_of, job) in coarse_jobs().items()
            if kind not in self.leaving and not made_of.isdisjoint(have)
        }
        read = (Facts.GROUP_OFFSET, Facts.REPLICA, Facts.TRAFFIC, Facts.MANIFEST)
        frames: dict[Facts | SharedFrames | SampleLooks, DataFrame] = {
            each: self.lake.rows(each, [_minutes_of(hour)], EVER) for each in read
        }
        if ResultKind.QUORUM_ROLLUP in jobs:
            # A change is counted from the refresh before it, which may be of an hour before, as it is for minutes.
            before = self._snapshots.before([_minutes_of(hour)], EVER, frozenset({Facts.QUORUM}))
            frames[Facts.QUORUM] = self.lake.rows(Facts.QUORUM, before[Facts.QUORUM], EVER)
        lags = frames[LAGS] = rollup.gather_lags(frames[Facts.GROUP_OFFSET], RollupGrain.HOUR).persist()
        try:
            for kind, job in jobs.items():
                self._go_on()
                rows = job(frames, RollupGrain.HOUR).where(is_within([_minutes_of(hour)], "bucket"))
                results.write_rows(self.lake.store, name, kind, rows)
                self._keep(name, kind, hour)
        finally:
            lags.unpersist()
        return results.write_marker(self.lake.store, name, jobs, (), self.lake.aside(hour))

    def _facts_of(self, hour: int) -> set[Facts]:
        return {part.kind for part in self.lake.parts([hour], EVER)}

    def _keep(self, name: FlushName, kind: ResultKind, hour: int) -> None:
        """For its day."""
        store, folder = self.lake.store, self.kept.folder(kind, hour)
        store.remove(folder)
        for number, file in enumerate(sorted(store.sizes(f"{results.RESULTS_FOLDER}/{kind}/{name}"))):
            if file.endswith(".parquet"):
                store.write(f"{folder}/{number}.parquet", store.read(file) or b"")

    @property
    def _short(self) -> str:
        """Short form of the query id, for names."""
        return self.lake.query[:8]

    # --- days ---

    def _days_due(self, now: datetime) -> set[int]:
        """First hours of days of which an hour was done since."""
        firsts = {first_of_day(hour) for hour in self._done.hours("hour")}
        due = {first for first in firsts if now - RAW_KEPT <= begin(first) <= now - SETTLES - _DAY}
        return {first for first in due if self._done.get("day", first) != self._of_day(first)}

    def _of_day(self, first: int) -> list[str]:
        return self._done.versions(range(first, first + HOURS_OF_DAY))

    def _day(self, first: int) -> None:
        version = self._of_day(first)
        newest = max(int(each.rpartition("/")[2]) for each in version)
        name = FlushName(f"daily-{self._short}-{newest}-{len(version)}", first * 3600)
        if not results.is_done(self.lake.store, name):
            rows = self.merge_day(name, first)
            self.say(f"day {begin(first):%Y-%m-%d}: {sum(rows.values())} rows")
        self._done.note("day", first, version)

    def merge_day(self, name: FlushName, first: int) -> Mapping[str, int]:
        """From what is kept of its hours. Returns the rows of each kind."""
        from kafkadash.pipeline.jobs import rollup

        kinds = []
        for kind in sorted(coarse_jobs().keys() - self.leaving):
            self._go_on()
            of_day = range(first, first + HOURS_OF_DAY)
            hours = self.kept.read(self.lake.spark, kind, RESULTS[kind].columns, of_day)
            if hours is not None:
                results.write_rows(self.lake.store, name, kind, rollup.coarsen_rollup(hours, kind, RollupGrain.DAY))
                kinds.append(kind)
        return results.write_marker(self.lake.store, name, kinds, (), ())

    # --- what reaches over days ---

    def _forecast(self) -> None:
        """Compute the forecast of disks whenever an hour is complete."""
        from kafkadash.pipeline.jobs.forecast import disk_forecast

        newest = self._done.newest("hour")
        if newest is not None:
            self._of_pieces("forecast", "disk_looks", newest, FORECAST_HOURS, ResultKind.DISK_FORECAST, disk_forecast)

    def _workload(self) -> None:
        """Once a day; on the first day, of which little is known, every hour."""
        from kafkadash.pipeline.jobs.workload import compute_workload

        newest, before = self._done.newest("hour"), self._done.newest("workload")
        if newest is None:
            return
        young = len([hour for hour in self._done.hours("hour") if newest - hour < HOURS_OF_WEEK]) <= HOURS_OF_DAY
        if before is None or before > newest or newest - before >= HOURS_OF_DAY or young:
            self._of_pieces("workload", "workload_hours", newest, HOURS_OF_WEEK, ResultKind.WORKLOAD, compute_workload)

    def _of_pieces(
        self, what: str, piece: str, newest: int, count: int, kind: ResultKind, job: Callable[[DataFrame], DataFrame]
    ) -> None:
        hours = range(newest - count + 1, newest + 1)
        digest = hashlib.sha256(" ".join(self._done.versions(hours)).encode()).hexdigest()[:8]
        if self._done.get(what, newest) == [digest]:
            return
        self._go_on()
        name = FlushName(f"hourly-{self._short}-{what}-{digest}", newest * 3600)
        if not results.is_done(self.lake.store, name):
            kept = self.kept.read(self.lake.spark, piece, PIECES[piece].columns, hours)
            if kept is not None:
                results.write_rows(self.lake.store, name, kind, job(kept))
                rows = results.write_marker(self.lake.store, name, [kind], (), ())
                self.say(f"{what} until {begin(newest + 1):%Y-%m-%d %H}:00: {sum(rows.values())} rows")
        self._done.note(what, newest, [digest])

    # --- forgetting ---

    def _forget(self, now: datetime) -> None:
        """Names of files that are gone, hours whose day is long over, lakes of queries that lost their checkpoint."""
        oldest = f"{now - RAW_KEPT - timedelta(days=1):%Y-%m-%d}"
        store = self.lake.store
        for folder in [self.lake.folder, *(f"{HOURS}/{kind}" for kind in store.names(HOURS))]:
            for date in store.names(folder):
                if date < oldest:
                    store.remove(f"{folder}/{date}")
        for name in store.names(LAKE):
            if name in (self.lake.query, FOLDER, done.FILE) or name.startswith("_"):
                continue
            if not name.startswith("backfill-") or _left_behind(name, now):
                store.remove(f"{LAKE}/{name}")


def _left_behind(backfill: str, now: datetime) -> bool:
    """A lake whose backfill was asked for so long ago that it must have been killed; its name ends with that time."""
    try:
        asked_at = datetime.strptime(backfill.rpartition("-")[2], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return False
    return asked_at < now - RAW_KEPT


def _minutes_of(hour: int, before: int = 0) -> LakeSpan:
    return LakeSpan(hour * MINUTES_OF_HOUR - before, (hour + 1) * MINUTES_OF_HOUR - 1)


def begin(hour: int) -> datetime:
    """Return the start of an hour, which is given in hours since the epoch."""
    return datetime.fromtimestamp(hour * 3600, UTC)


def hour_of(at: datetime) -> int:
    """Since the epoch."""
    return int(at.timestamp()) // 3600


def first_of_day(hour: int) -> int:
    return hour - hour % HOURS_OF_DAY
