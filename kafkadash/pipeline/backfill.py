"""History of a time once more, from the segments that are kept, by the jobs of the stream.

An hour's flushes are one batch, in a lake of its own that goes when all is done. Values are absolute, so that what
comes of it takes the place of what was there; of minutes that are not whole in the time asked for, nothing is said.
Judgements of now are left out: they are no history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from kafkadash.domain.refusals import pipeline as said
from kafkadash.pipeline import flushes
from kafkadash.pipeline.batch import Batches
from kafkadash.pipeline.faults import PipelineFault
from kafkadash.pipeline.lake import Lake, Span
from kafkadash.pipeline.session import open_session
from kafkadash.pipeline.store import Store
from kafkadash.pipeline.work import Scope, Work
from kafkadash.pipeline.works import works

# A flush holds what was observed before it: seconds before as a rule, longer where the store did not take it.
LATE = timedelta(hours=6)
_EDGE = timedelta(minutes=2)


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
        raise PipelineFault(said.NOTHING_TO_BACKFILL(address=store.uri))
    first, last = _hour(begin - _EDGE), _hour(end + LATE)
    chosen = [manifest for manifest in kept if first <= flushed_in(manifest) <= last]
    if not chosen:
        raise PipelineFault(
            said.NOTHING_RETAINED(begin=_told(begin), end=_told(end), oldest=f"{flushed_in(kept[0])}:00")
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
        return do_chunks(Batches(lake, of_history(), within=whole_minutes(begin, end)), work, say)
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


def of_history() -> Sequence[Work]:
    return [work for work in works() if work.scope is Scope.MINUTES]


def flushed_in(manifest: str) -> str:
    """Its hour, of its address ``manifest/<date>/<hour>/<name>``."""
    _, date, hour, _ = manifest.split("/")
    return f"{date} {hour}"


def whole_minutes(begin: datetime, end: datetime) -> Span:
    """Whole minutes only."""
    first, last = begin.timestamp(), end.timestamp()
    return Span(int(-(-first // 60)), int(last // 60) - 1)


def _hour(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H}"


def _told(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"
