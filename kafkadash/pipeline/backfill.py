"""Backfill: computes the history of a time range again from the kept segments, by the jobs of the stream.

The flushes of an hour are one batch, in a lake of its own that is removed at the end. Values are absolute, so the
results replace the existing ones; minutes that are not completely in the range are left out. Hours in the range are
rolled up again from it, and days from these and from what the stream has kept of their other hours. Jobs that judge the
present (scope RECENT) are left out, because their results are not history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from kafkadash.core.messages import choose_plural
from kafkadash.export.results import ResultKind
from kafkadash.pipeline import clockwork, flushes
from kafkadash.pipeline.batch import PipelineBatches
from kafkadash.pipeline.done import FOLDER, HOURS, DoneHours
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.faults import PipelineFault
from kafkadash.pipeline.flushes import FlushName
from kafkadash.pipeline.lake import EVER, FactLake, LakeSpan
from kafkadash.pipeline.session import open_session
from kafkadash.pipeline.store import PipelineStore
from kafkadash.pipeline.work import PipelineWork, WorkScope, works

# A flush holds what was observed before it: seconds before as a rule, longer where the store did not take it.
LATE = timedelta(hours=6)
_EDGE = timedelta(minutes=2)
LEFT_OUT = frozenset({ResultKind.QUORUM_ROLLUP})
"""Kinds that are not merged again: a change is counted from the refresh before it, perhaps hours before the range."""


@dataclass(frozen=True, slots=True)
class BackfillChunk:
    hour: str
    manifests: Sequence[str]


def list_chunks(store: PipelineStore, begin: datetime, end: datetime) -> list[BackfillChunk]:
    """Flushes that may hold what was observed from ``begin`` until before ``end``, by the hour in which they were made.

    Raises PipelineFault where there are none.
    """
    kept = flushes.list_manifests(store)
    if not kept:
        raise PipelineFault(PipelineErrorCode.NOTHING_TO_BACKFILL, address=store.uri)
    first, last = _hour(begin - _EDGE), _hour(end + LATE)
    chosen = [manifest for manifest in kept if first <= flushed_in(manifest) <= last]
    if not chosen:
        raise PipelineFault(
            PipelineErrorCode.NOTHING_RETAINED,
            begin=_format_minute(begin),
            end=_format_minute(end),
            oldest=f"{flushed_in(kept[0])}:00",
        )
    return [BackfillChunk(hour, list(of_hour)) for hour, of_hour in groupby(chosen, flushed_in)]


def backfill(
    store: PipelineStore, environment: Mapping[str, str], begin: datetime, end: datetime, say: Callable[[str], None]
) -> int:
    """Rows that were written. Raises PipelineFault, and what Spark and the store raise."""
    work = list_chunks(store, begin, end)
    asked_at = datetime.now(UTC)
    query = f"backfill-{begin:%Y%m%dT%H%M}-{end:%Y%m%dT%H%M}-{asked_at:%Y%m%dT%H%M%S}"
    say(f"{sum(len(chunk.manifests) for chunk in work)} flushes in {len(work)} hours, as {query}")
    spark = open_session(environment, "kafkadash backfill")
    lake = FactLake(spark, store, query)
    try:
        rows = do_chunks(PipelineBatches(lake, of_history(), within=whole_minutes(begin, end)), work, say)
        return rows + do_coarser(lake, begin, end, asked_at, say)
    finally:
        store.remove(lake.folder)
        spark.stop()


def do_chunks(batches: PipelineBatches, work: Sequence[BackfillChunk], say: Callable[[str], None]) -> int:
    rows = 0
    for number, chunk in enumerate(work, 1):
        at = datetime.strptime(chunk.hour, "%Y-%m-%d %H").replace(tzinfo=UTC)
        done = batches.do(int(at.timestamp()), chunk.manifests)
        if done is not None:
            rows += sum(done.rows.values())
            aside = f", {len(done.set_aside)} files quarantined" if done.set_aside else ""
            took = f"{sum(done.rows.values())} rows in {done.seconds:.1f} s"
            say(f"{number} of {len(work)}: {chunk.hour}:00, {took}{aside}")
    return rows


def do_coarser(lake: FactLake, begin: datetime, end: datetime, now: datetime, say: Callable[[str], None]) -> int:
    """Hours and days once more that are over and of which all segments are kept. Raises as ``backfill`` does."""
    flushed = {clockwork.hour_of(flushes.flushed_at(manifest)) for manifest in flushes.list_manifests(lake.store)}
    # Of the oldest hour a part may be gone already.
    whole = [hour for hour in _hours_within(begin, min(end, now - clockwork.SETTLES)) if hour > min(flushed)]
    again = clockwork.RollupScheduler(lake, say, folders=(f"{lake.folder}/{FOLDER}", HOURS), leaving=LEFT_OUT)
    made = [hour for hour in whole if any(lake.parts([hour], EVER))]
    rows = 0
    for hour in made:
        rows += sum(again.roll_up(FlushName(f"{lake.query}-hours", hour * 3600), hour).values())
    say(f"{choose_plural('# hour|# hours', len(made))} rolled up again")
    known = {*made, *DoneHours(lake.store).hours("hour")}
    for first in sorted({clockwork.first_of_day(hour) for hour in made}):
        of_day = range(first, first + clockwork.HOURS_OF_DAY)
        day = f"{clockwork.begin(first):%Y-%m-%d}"
        missing = [hour for hour in of_day if hour in flushed and hour not in known]
        if clockwork.begin(of_day.stop) + clockwork.SETTLES > now:
            say(f"day {day} is not over: left to the stream")
        elif first <= min(flushed):
            say(f"day {day} unchanged: some of its segments are deleted")
        elif missing:
            say(f"day {day} unchanged: hour {clockwork.begin(missing[0]):%H}:00 is not rolled up yet")
        else:
            rows += sum(again.merge_day(FlushName(f"{lake.query}-days", first * 3600), first).values())
            say(f"day {day} merged again")
    return rows


def _hours_within(begin: datetime, end: datetime) -> range:
    """Cut the range to whole hours."""
    return range(-(-int(begin.timestamp()) // 3600), int(end.timestamp()) // 3600)


def of_history() -> Sequence[PipelineWork]:
    return [work for work in works() if work.scope is WorkScope.MINUTES]


def flushed_in(manifest: str) -> str:
    return _hour(flushes.flushed_at(manifest))


def whole_minutes(begin: datetime, end: datetime) -> LakeSpan:
    """Cut the range to whole minutes."""
    first, last = begin.timestamp(), end.timestamp()
    return LakeSpan(int(-(-first // 60)), int(last // 60) - 1)


def _hour(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H}"


def _format_minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"
