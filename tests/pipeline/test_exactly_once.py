"""What comes of segments is the same however they come: in batches, at once, broken off, from the start again.

The pipeline asked to end while Spark is still starting: nothing of it stays, and its last word is "stopped".
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from django.conf import settings

from kafkadash.export.results import ResultKind
from kafkadash.export.schema import SCHEMA_VERSION, SegmentKind
from kafkadash.pipeline import application as query
from kafkadash.pipeline.backfill import do_chunks, list_chunks, of_history, whole_minutes
from kafkadash.pipeline.batch import PipelineBatches
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.flushes import list_manifests
from kafkadash.pipeline.heartbeat import read_status
from kafkadash.pipeline.lake import FactLake
from kafkadash.pipeline.store import PipelineStore, open_store
from kafkadash.pipeline.work import PipelineWork, works
from tests.pipeline.counting import COUNTING
from tests.pipeline.making import BEGAN, Maker, write_file
from tests.pipeline.streaming import take_in_all
from tests.pipeline.tables import differing, markers, tables
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")
POINTS = ("lake written", "cluster_rollup written", "results written", "marker written")


class BrokenOff(Exception):
    """Stands for the end of the driver."""


class Pipeline:
    """A folder of the pipeline, and what is done with it."""

    def __init__(
        self, spark: SparkSession, folder: Path, works: Sequence[PipelineWork] = COUNTING, every: float = 17
    ) -> None:
        self.spark, self.folder, self.works = spark, folder, works
        self.maker = Maker(folder / "segments", groups=2, partitions=2, every=every)
        self.store: PipelineStore = open_store(folder.as_uri())

    def stream(self, at_once: int = 30, point: Callable[[str], None] = lambda _: None) -> str:
        """Take in what is there; the query's id. Raises what Spark makes of BrokenOff."""

        def take(query_id: str, batch: int, names: list[str]) -> None:
            self.batches(query_id, point).do(batch, names)

        take_in_all(self.spark, self.store, take, at_once=at_once)
        return query.query_id(self.store)

    def batches(self, query_id: str, point: Callable[[str], None] = lambda _: None) -> PipelineBatches:
        return PipelineBatches(FactLake(self.spark, self.store, query_id), self.works, point)

    def at_once(self) -> None:
        self.batches("batch").do(0, list_manifests(self.store))


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline(spark, tmp_path)


@pytest.mark.parametrize("where", POINTS)
def test_what_was_broken_off_is_done_again(pipeline: Pipeline, where: str) -> None:
    pipeline.maker.flushes(5)
    seen = []

    def break_off(point: str) -> None:
        seen.append(point)
        if point == where and seen.count(where) == 2:
            raise BrokenOff(where)

    with pytest.raises(Exception, match="BrokenOff"):
        pipeline.stream(3, break_off)
    begun = query.query_id(pipeline.store)
    assert pipeline.stream(3) == begun
    pipeline.at_once()
    assert [marker["batch"] for marker in markers(pipeline.folder, lambda q: q == begun)] == [0, 1]
    assert tables(pipeline.folder, lambda q: q == begun) == tables(pipeline.folder, lambda q: q == "batch")


@pytest.mark.long
def test_of_all_that_is_reckoned__broken_off_and_from_the_start_again_and_by_a_backfill(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Over more minutes than any window reaches back, in batches of other lengths each time.

    Minutes have one flush at first, and four at the end, where one is cut by the end of a batch.
    """
    made = Pipeline(spark, tmp_path, works(), every=61)
    made.maker.flushes(12)
    seen = []

    def break_off(point: str) -> None:
        seen.append(point)
        if seen.count("catch_up written") == 2:
            raise BrokenOff

    with pytest.raises(Exception, match="BrokenOff"):
        made.stream(6, break_off)
    first = made.stream(6)
    shutil.rmtree(tmp_path / query.CHECKPOINT)
    made.maker.flush()
    made.maker.every = timedelta(seconds=17)
    made.maker.flushes(3)
    end_of_batch = made.maker.at
    made.maker.flush()
    assert end_of_batch.minute == made.maker.at.minute, "a minute goes on in the next batch"
    made.maker.flushes(3)
    second = made.stream(16)
    made.at_once()
    whole = tables(tmp_path, lambda q: q == "batch")
    assert set(whole) == {work.kind for work in works()}
    assert all(whole.values())
    assert differing(tables(tmp_path, lambda q: q == second), whole) == {}
    assert differing(tables(tmp_path, lambda q: q in (first, second)), whole) == {}, "one after the other is no other"

    begin, end = BEGAN.replace(minute=59, second=0), BEGAN.replace(hour=10, minute=12, second=0)
    again = PipelineBatches(FactLake(spark, made.store, "backfill"), of_history(), within=whole_minutes(begin, end))
    do_chunks(again, list_chunks(made.store, begin, end), lambda _: None)
    told = tables(tmp_path, lambda q: q == "backfill")
    assert set(told) == {work.kind for work in of_history()}, "judgements are of now"
    for kind, rows in told.items():
        within = {key: row for key, row in whole[kind].items() if begin <= row["bucket"] < end}
        assert rows == within, kind
    assert len(told[ResultKind.CLUSTER_ROLLUP]) == 26, "two clusters, thirteen whole minutes"


def test_a_lost_checkpoint_gives_the_same_tables_again(pipeline: Pipeline) -> None:
    pipeline.maker.flushes(3)
    first = pipeline.stream(2)
    shutil.rmtree(pipeline.folder / query.CHECKPOINT)
    pipeline.maker.flushes(2)
    second = pipeline.stream(3)
    assert second != first
    pipeline.at_once()
    whole = tables(pipeline.folder, lambda q: q == "batch")
    assert tables(pipeline.folder, lambda q: q == second) == whole
    assert tables(pipeline.folder, lambda q: q != "batch") == whole, "one after the other is no other"


def test_a_batch_that_has_its_marker_is_not_written_again(pipeline: Pipeline) -> None:
    pipeline.maker.flushes(1)
    pipeline.at_once()
    before = {path: path.stat().st_mtime_ns for path in (pipeline.folder / "results").rglob("*")}
    assert pipeline.batches("batch").do(0, list_manifests(pipeline.store)) is None
    assert {path: path.stat().st_mtime_ns for path in (pipeline.folder / "results").rglob("*")} == before


def test_files_that_cannot_be_read_are_set_aside_and_the_rest_goes_on(pipeline: Pipeline) -> None:
    segments = pipeline.folder / "segments"
    made = pipeline.maker.flushes(6)
    files = sorted((segments / SegmentKind.GROUP_OFFSET).rglob("*.parquet"))
    files[0].write_bytes(files[0].read_bytes()[:300])
    body = bytearray(files[1].read_bytes())
    body[200:1200] = bytes(1000)  # with a footer that says nothing of it
    files[1].write_bytes(body)
    write_file(files[2], SegmentKind.GROUP_OFFSET, [], SCHEMA_VERSION + 1)
    files[3].unlink()
    made[4].write_bytes(made[4].read_bytes()[:100])
    pipeline.stream()
    (marker,) = markers(pipeline.folder)
    aside = {each["file"]: each["why"] for each in marker["set_aside"]}
    assert set(aside) == {path.relative_to(segments).as_posix() for path in (*files[:4], made[4])}
    assert aside[files[2].relative_to(segments).as_posix()]["code"] == PipelineErrorCode.FILE_FROM_FUTURE
    assert len(marker["flushes"]) == 5
    counted = sum(row["lag_count"] for row in tables(pipeline.folder)[ResultKind.CLUSTER_ROLLUP].values())
    assert counted == 8, "of one flush all rows, of the others none"


def test_a_damaged_file_is_set_aside_by_whoever_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    made = Pipeline(spark, tmp_path, [work for work in works() if work.kind is ResultKind.LAG_VERDICT])
    made.maker.flushes(4)
    damaged = sorted((tmp_path / "segments" / SegmentKind.GROUP_OFFSET).rglob("*.parquet"))[1]
    body = bytearray(damaged.read_bytes())
    body[100:3000] = bytes(2900)  # the times of its rows stay readable
    damaged.write_bytes(body)
    made.stream()
    (marker,) = markers(tmp_path)
    assert [each["file"] for each in marker["set_aside"]] == [damaged.relative_to(tmp_path / "segments").as_posix()]
    assert len(tables(tmp_path)[ResultKind.LAG_VERDICT]) == 8


def test_a_file_that_is_damaged_after_its_batch__stops_no_batch_that_needs_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = Pipeline(spark, tmp_path, [work for work in works() if work.kind is ResultKind.LAG_VERDICT])
    made.maker.flushes(4)
    made.stream()
    damaged, gone = sorted((tmp_path / "segments" / SegmentKind.GROUP_OFFSET).rglob("*.parquet"))[1:3]
    body = bytearray(damaged.read_bytes())
    body[100:3000] = bytes(2900)
    damaged.write_bytes(body)
    gone.unlink()
    made.maker.flushes(9)
    made.stream()
    first, second = markers(tmp_path)
    names = [path.relative_to(tmp_path / "segments").as_posix() for path in (damaged, gone)]
    assert (first["set_aside"], [each["file"] for each in second["set_aside"]]) == ([], names)
    assert {row["verdict"] for row in tables(tmp_path)[ResultKind.LAG_VERDICT].values()} != {"unknown"}
    made.maker.flushes(1)
    made.stream()
    assert markers(tmp_path)[2]["set_aside"] == [], "said once"


def test_a_file_that_is_being_written_is_not_there_yet(pipeline: Pipeline) -> None:
    manifest = pipeline.maker.flush()
    hidden = manifest.with_name(f"_{manifest.name}")
    manifest.rename(hidden)
    pipeline.stream()
    assert markers(pipeline.folder) == []
    hidden.rename(manifest)
    pipeline.stream()
    assert len(markers(pipeline.folder)) == 1


SECONDS = 60
SPARK = "org.apache.spark.deploy.SparkSubmit"


def _java_of(process: psutil.Popen) -> list[psutil.Process]:
    """Once it is Java's own process, no longer the script that becomes it."""
    assert process.poll() is None, process.stderr.read()
    found = []
    for child in process.children():
        with contextlib.suppress(psutil.Error):  # another one that has just ended
            if "java" in child.name() and SPARK in child.cmdline():
                found.append(child)
    return found


def test_asked_to_end_while_it_starts__leaves_no_java_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kafkadash.pipeline", "run", "--uri", tmp_path.as_uri()]
    java: list[psutil.Process] = []

    def started() -> bool:
        java.extend(_java_of(process))
        return bool(java)

    with psutil.Popen(command, cwd=settings.BASE_DIR, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(started, "Java was started", SECONDS)
            process.terminate()
            process.terminate()
            assert process.wait(SECONDS) == 0, process.stderr.read()
            assert not java[0].is_running()
        finally:
            for each in (*java, process):
                if each.is_running():
                    each.kill()
    assert ("state", "stopped") in read_status(open_store(tmp_path.as_uri()), datetime.now(UTC)).lines
