"""History of a time once more, from the segments that are kept, by the jobs of the stream.

An hour's flushes are one batch, in a lake of its own that goes when all is done. Values are absolute, so that what
comes of it takes the place of what was there; of minutes that are not whole in the time asked for, nothing is said.
Hours that lie in that time are rolled up again from it, and days from these and from what the stream has kept of their
other hours. Judgements of now are left out: they are no history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.domain.wording import count
from kafkadash.pipeline import clockwork, flushes
from kafkadash.pipeline.batch import Batches
from kafkadash.pipeline.done import Done
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.faults import PipelineFault
from kafkadash.pipeline.lake import EVER, Lake, Span
from kafkadash.pipeline.pieces import FOLDER, HOURS
from kafkadash.pipeline.results import Name
from kafkadash.pipeline.session import open_session
from kafkadash.pipeline.store import Store
from kafkadash.pipeline.work import Scope, Work
from kafkadash.pipeline.works import works

# A flush holds what was observed before it: seconds before as a rule, longer where the store did not take it.
LATE = timedelta(hours=6)
_EDGE = timedelta(minutes=2)
LEFT_OUT = frozenset({ResultKind.QUORUM_ROLLUP})
"""Of hours as of minutes: a change is counted from the refresh before it, which may be hours before what is read."""


@dataclass(frozen=True, slots=True)
class Chunk:
    hour: str
    manifests: Sequence[str]


def chunks(store: Store, begin: datetime, end: datetime) -> list[Chunk]:
    """Flushes that may hold what was observed from ``begin`` until before ``end``, by the hour in which they were made.

    Raises PipelineFault where there are none.
    """
    kept = flushes.manifests(store)
    if not kept:
        raise PipelineFault(PipelineErrorCode.NOTHING_TO_BACKFILL, address=store.uri)
    first, last = _hour(begin - _EDGE), _hour(end + LATE)
    chosen = [manifest for manifest in kept if first <= flushed_in(manifest) <= last]
    if not chosen:
        raise PipelineFault(
            PipelineErrorCode.NOTHING_RETAINED, begin=_told(begin), end=_told(end), oldest=f"{flushed_in(kept[0])}:00"
        )
    return [Chunk(hour, list(of_hour)) for hour, of_hour in groupby(chosen, flushed_in)]


def backfill(
    store: Store, environment: Mapping[str, str], begin: datetime, end: datetime, say: Callable[[str], None]
) -> int:
    """Rows that were written. Raises PipelineFault, and what Spark and the store raise."""
    work = chunks(store, begin, end)
    asked_at = datetime.now(UTC)
    query = f"backfill-{begin:%Y%m%dT%H%M}-{end:%Y%m%dT%H%M}-{asked_at:%Y%m%dT%H%M%S}"
    say(f"{sum(len(chunk.manifests) for chunk in work)} flushes in {len(work)} hours, as {query}")
    spark = open_session(environment, "kafkadash backfill")
    lake = Lake(spark, store, query)
    try:
        rows = do_chunks(Batches(lake, of_history(), within=whole_minutes(begin, end)), work, say)
        return rows + do_coarser(lake, begin, end, asked_at, say)
    finally:
        store.remove(lake.folder)
        spark.stop()


def do_chunks(batches: Batches, work: Sequence[Chunk], say: Callable[[str], None]) -> int:
    rows = 0
    for number, chunk in enumerate(work, 1):
        at = datetime.strptime(chunk.hour, "%Y-%m-%d %H").replace(tzinfo=UTC)
        done = batches.do(int(at.timestamp()), chunk.manifests)
        if done is not None:
            rows += sum(done.rows.values())
            aside = f", {len(done.set_aside)} files set aside" if done.set_aside else ""
            took = f"{sum(done.rows.values())} rows in {done.seconds:.1f} s"
            say(f"{number} of {len(work)}: {chunk.hour}:00, {took}{aside}")
    return rows


def do_coarser(lake: Lake, begin: datetime, end: datetime, now: datetime, say: Callable[[str], None]) -> int:
    """Hours and days once more that are over and of which all segments are kept. Raises as ``backfill`` does."""
    flushed = {clockwork.hour_of(flushes.flushed_at(manifest)) for manifest in flushes.manifests(lake.store)}
    # Of the oldest hour a part may be gone already.
    whole = [hour for hour in _hours_within(begin, min(end, now - clockwork.SETTLES)) if hour > min(flushed)]
    again = clockwork.Clockwork(lake, say, folders=(f"{lake.folder}/{FOLDER}", HOURS), leaving=LEFT_OUT)
    made = [hour for hour in whole if any(lake.parts([hour], EVER))]
    rows = 0
    for hour in made:
        rows += sum(again.roll_up(Name(f"{lake.query}-hours", hour * 3600), hour).values())
    say(f"{count(len(made), 'hour')} rolled up again")
    known = {*made, *Done(lake.store).hours("hour")}
    for first in sorted({clockwork.first_of_day(hour) for hour in made}):
        of_day = range(first, first + clockwork.HOURS_OF_DAY)
        day = f"{clockwork.begin(first):%Y-%m-%d}"
        missing = [hour for hour in of_day if hour in flushed and hour not in known]
        if clockwork.begin(of_day.stop) + clockwork.SETTLES > now:
            say(f"day {day} is not over: the stream makes it")
        elif first <= min(flushed):
            say(f"day {day} left as it is: segments of it are gone")
        elif missing:
            say(f"day {day} left as it is: hour {clockwork.begin(missing[0]):%H}:00 is not rolled up yet")
        else:
            rows += sum(again.merge_day(Name(f"{lake.query}-days", first * 3600), first).values())
            say(f"day {day} merged again")
    return rows


def _hours_within(begin: datetime, end: datetime) -> range:
    """Whole hours only."""
    return range(-(-int(begin.timestamp()) // 3600), int(end.timestamp()) // 3600)


def of_history() -> Sequence[Work]:
    return [work for work in works() if work.scope is Scope.MINUTES]


def flushed_in(manifest: str) -> str:
    return _hour(flushes.flushed_at(manifest))


def whole_minutes(begin: datetime, end: datetime) -> Span:
    """Whole minutes only."""
    first, last = begin.timestamp(), end.timestamp()
    return Span(int(-(-first // 60)), int(last // 60) - 1)


def _hour(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H}"


def _told(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"
