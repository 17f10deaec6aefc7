"""The running pipeline: the streaming query over new manifests, its heartbeat, and its end.

Spark's checkpoint keeps only the offsets of the query.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kafkadash.core.messages import choose_plural, coded
from kafkadash.pipeline import batch as source
from kafkadash.pipeline import heartbeat
from kafkadash.pipeline.batch import DoneBatch, ManifestSource, PipelineBatches, Point
from kafkadash.pipeline.clockwork import RollupScheduler
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.faults import PipelineFault
from kafkadash.pipeline.heartbeat import PROMISED_SECONDS, PipelineHeartbeat
from kafkadash.pipeline.lake import FactLake
from kafkadash.pipeline.owner import own_folder
from kafkadash.pipeline.session import first_line, open_session
from kafkadash.pipeline.store import PipelineStore
from kafkadash.pipeline.work import works

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CHECKPOINT = "checkpoints/manifests"

Take = Callable[[str, int, list[str]], None]
"""(query id, batch id, manifests by their addresses below the segments' folder)."""


def start_query(
    spark: SparkSession, store: PipelineStore, take: Take, *, every_seconds: float | None, flushes_at_once: int
) -> StreamingQuery:
    """``every_seconds``: None takes what is there and ends. Raises Spark's errors."""
    spark.dataSource.register(ManifestSource)
    options = {"uri": store.uri, "at_once": str(flushes_at_once)}
    manifests = spark.readStream.format(source.NAME).options(**options).load()

    def each(batch: DataFrame, batch_id: int) -> None:
        names = sorted(row.manifest for row in batch.collect())
        if names:  # a query that begins has a batch also where there is nothing yet
            take(query_id(store), batch_id, names)

    writer = manifests.writeStream.foreachBatch(each).option("checkpointLocation", store.address(CHECKPOINT))
    writer = writer.queryName("segments")
    if every_seconds is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{every_seconds:g} seconds").start()


def query_id(store: PipelineStore) -> str:
    """Return the query id that Spark wrote when the checkpoint began; '' before that."""
    content = store.read(f"{CHECKPOINT}/metadata")
    return str(json.loads(content)["id"]) if content else ""


WAIT_SECONDS = 2
CLOCK_SECONDS = 60.0
ENDS_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class StreamWay:
    """``every_seconds``: None takes what is there and ends."""

    every_seconds: float | None
    flushes_at_once: int
    point: Point = lambda _: None


class StopRequest:
    """SIGTERM and SIGINT: heard between batches, and at once while Spark is starting."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.at_once = True
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._arrived)

    def _arrived(self, *_: Any) -> None:
        first = not self.asked.is_set()
        self.asked.set()
        if self.at_once and first:
            raise SystemExit(0)


def run(store: PipelineStore, environment: Mapping[str, str], way: StreamWay) -> None:
    """Until somebody asks to stop; with ``every_seconds`` None until nothing is left. Raises PipelineFault."""
    stop = StopRequest()
    beats = PipelineHeartbeat(store, max(way.every_seconds or 0.0, PROMISED_SECONDS))
    with own_folder(store) as owner, contextlib.ExitStack() as at_end:
        beats.start()
        with _end_said_to(beats):
            spark = open_session(environment)
            at_end.callback(spark.stop)
            if owner is not None:
                owner.note_processes()
            stop.at_once = False
            run_query(spark, store, way, beats, stop)


@contextlib.contextmanager
def _end_said_to(beats: PipelineHeartbeat) -> Iterator[None]:
    try:
        yield
    except PipelineFault as fault:
        beats.end("failed", fault.message)
        raise
    except Exception as error:
        beats.end("failed", coded(PipelineErrorCode.BATCH_FAILED, fault=first_line(error)))
        raise
    except SystemExit:
        beats.end("stopped")
        raise
    beats.end("stopped")


def run_query(
    spark: SparkSession, store: PipelineStore, way: StreamWay, beats: PipelineHeartbeat, stop: StopRequest
) -> None:
    """The query, and between its batches what is due by the clock. Raises PipelineFault and what Spark raises."""
    jobs = works()
    batches: dict[str, PipelineBatches] = {}

    def of(query_id: str) -> PipelineBatches:
        if query_id not in batches:
            batches[query_id] = PipelineBatches(FactLake(spark, store, query_id), jobs, way.point)
        return batches[query_id]

    def take(query_id: str, batch: int, manifests: list[str]) -> None:
        beats.query = query_id
        beats.working_on = f"batch {batch}, {choose_plural('# flush|# flushes', len(manifests))}"
        done = of(query_id).do(batch, manifests)
        beats.working_on = None
        beats.caught_up = len(manifests) < way.flushes_at_once
        if done is not None:
            beats.batch_done(done)
            say(_describe_batch(done))

    clock = _BatchClock(beats, stop, lambda: of(query_id(store)).lake)
    running = start_query(spark, store, take, every_seconds=way.every_seconds, flushes_at_once=way.flushes_at_once)
    try:
        while not stop.asked.is_set() and not _await_end(running):
            beats.state = "waiting"
            clock.turn(looked=running.lastProgress is not None)
        if not stop.asked.is_set():
            clock.turn(looked=True)
    finally:
        _stop_query(running)


class _BatchClock:
    """Has done what is due by the clock, once a minute, while no batch is under way and none waits."""

    def __init__(self, beats: PipelineHeartbeat, stop: StopRequest, lake: Callable[[], FactLake]) -> None:
        self._beats, self._stop, self._lake = beats, stop, lake
        self._next = 0.0
        self._work: RollupScheduler | None = None

    def turn(self, *, looked: bool) -> None:
        """``looked``: whether the query has asked since its start what there is, and has taken that in."""
        beats = self._beats
        # Where there was nothing to take in yet, what was taken in before the start may still have hours to be done.
        caught_up = beats.caught_up or (looked and not beats.query)
        if beats.working_on is not None or not caught_up or time.monotonic() < self._next:
            return
        lake = self._lake()
        if self._work is None or self._work.lake is not lake:
            self._work = RollupScheduler(lake, say, self._stop.asked.is_set)
        self._work.turn(heartbeat.now())
        self._next = time.monotonic() + CLOCK_SECONDS


def _await_end(running: StreamingQuery) -> bool:
    """Waits a little. Raises PipelineFault where the query ended of a fault."""
    from pyspark.errors import StreamingQueryException

    try:
        return bool(running.awaitTermination(WAIT_SECONDS))
    except StreamingQueryException as error:
        sys.stderr.write(f"{error}\n")
        raise PipelineFault(PipelineErrorCode.BATCH_FAILED, fault=_find_cause(error)) from error


def _stop_query(running: StreamingQuery) -> None:
    """Between two batches if the one under way ends soon; what is broken off is done again by the next start."""
    waited = threading.Event()
    for _ in range(int(ENDS_SECONDS / 0.1)):
        if not running.isActive or not running.status["isTriggerActive"]:
            break
        waited.wait(0.1)
    running.stop()


def _find_cause(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (told[-1] if told else first_line(error)).rstrip(".")[:300]


def say(line: str) -> None:
    at: datetime = heartbeat.now()
    sys.stdout.write(f"{at:%Y-%m-%d %H:%M:%S} {line}\n")
    sys.stdout.flush()


def _describe_batch(done: DoneBatch) -> str:
    rows = ", ".join(f"{count} {kind}" for kind, count in done.rows.items()) or "no results"
    aside = f"; quarantined: {', '.join(each.file for each in done.set_aside)}" if done.set_aside else ""
    return f"batch {done.name.batch}: {done.flushes} flushes in {done.seconds:.1f} s: {rows}{aside}"
