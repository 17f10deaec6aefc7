"""Hours and days that are over: rolled up once, and again when something of them comes late.

Which rows belong to which minutes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, cast

import pytest

from kafkadash.export.results import ResultKind
from kafkadash.export.schema import SegmentKind
from kafkadash.pipeline.backfill import LEFT_OUT, do_chunks, do_coarser, list_chunks, whole_minutes
from kafkadash.pipeline.batch import PipelineBatches
from kafkadash.pipeline.clockwork import RollupScheduler
from kafkadash.pipeline.flushes import FlushName, list_manifests
from kafkadash.pipeline.lake import LAKE, FactLake, LakeSpan, is_within
from kafkadash.pipeline.store import open_store
from tests.pipeline.making import EPOCH, Maker
from tests.pipeline.streaming import take_in_all
from tests.pipeline.tables import markers, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")
DAY = datetime(2026, 3, 2, tzinfo=UTC)
WORKLOAD = "workload until 2026-03-02 10:00"


def beginnings(said: Sequence[str]) -> list[str]:
    """What was done, without how many rows it came to."""
    return [line.rpartition(": ")[0] for line in said]


def flush_of_broker(maker: Maker) -> None:
    """What is rolled up into nothing: for hours of which no more is needed than that they are there."""
    identity = {"schema": 1, "cluster": "east", "epoch": EPOCH, "seq": maker.seq + 1, "observed_at": maker.at}
    sizes = {"total_bytes": 10, "usable_bytes": 5, "replica_bytes": 5}
    maker.seq += 1
    maker.write({SegmentKind.BROKER: [{**identity, "broker": 1, "directory": "/data", **sizes}]})


def test_hours_and_days_that_are_over(spark: SparkSession, tmp_path: Path) -> None:
    maker = Maker(tmp_path / "segments", groups=2, partitions=2)
    maker.flushes(10)  # six of them before ten o'clock
    store = open_store(tmp_path.as_uri())
    lake = FactLake(spark, store, "1a2b3c4d-e5f6")
    batches = PipelineBatches(lake, ())
    batches.do(0, list_manifests(store))
    said: list[str] = []
    clockwork = RollupScheduler(lake, said.append)

    def clusters() -> dict[tuple[str, datetime], int]:
        found = tables(tmp_path, lambda q: q != lake.query)[ResultKind.CLUSTER_ROLLUP].values()
        return {(f"{row['cluster']} {row['grain']}", row["bucket"]): row["lag_count"] for row in found}

    clockwork.turn(DAY.replace(hour=10, minute=4))
    assert said == [], "it has not settled"
    clockwork.turn(DAY.replace(hour=10, minute=6))
    nine, ten = DAY.replace(hour=9), DAY.replace(hour=10)
    before = clusters()
    assert set(before) == {("east hour", nine), ("west hour", nine)}
    assert beginnings(said) == ["hour 2026-03-02 09:00", "forecast until 2026-03-02 10:00", WORKLOAD]
    clockwork.turn(DAY.replace(hour=10, minute=7))
    RollupScheduler(lake, said.append).turn(DAY.replace(hour=10, minute=8))
    assert len(said) == 3, "done once, also for one who was started since"

    row = dict.fromkeys(("committed", "log_start", "log_end", "lag"), 5)
    late = {
        "schema": 1, "cluster": "east", "epoch": EPOCH, "seq": maker.seq + 1,
        "observed_at": nine + timedelta(minutes=59),
        "group": "late", "topic": "topic-0", "partition": 0, "group_state": "Empty", "members": 0, "allowed_lag": 0,
        "previous_committed": None, "previous_lag": None, "previous_at": None, "verdict": "ok", **row,
    }  # fmt: skip
    maker.seq += 1
    written = maker.write({SegmentKind.GROUP_OFFSET: [late]})
    batches.do(1, [written.relative_to(tmp_path / "segments").as_posix()])
    clockwork.turn(DAY.replace(hour=11, minute=6))
    assert clusters()["east hour", nine] == before["east hour", nine] + 1
    names = [(marker["query"], marker["batch"]) for marker in markers(tmp_path)]
    assert len(set(names)) == len(names) == 2 + 3 + 2 + 2, "what is done anew has another name"

    next_day = DAY + timedelta(days=1, minutes=6)
    clockwork.turn(next_day)
    assert beginnings(said[3:]) == [
        "hour 2026-03-02 09:00",
        "hour 2026-03-02 10:00",
        "forecast until 2026-03-02 11:00",
        "workload until 2026-03-02 11:00",
        "day 2026-03-02",
    ]
    hours = clusters()
    assert hours["east day", DAY] == hours["east hour", nine] + hours["east hour", ten]
    assert hours["west day", DAY] == hours["west hour", nine] + hours["west hour", ten]

    results = {path: path.stat().st_mtime_ns for path in (tmp_path / "results").rglob("*")}
    (tmp_path / LAKE / "done.json").unlink()
    RollupScheduler(lake, said.append).turn(next_day)
    assert len(said) == 8, "a marker without a note: somebody may be reading it"
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "results").rglob("*")} == results

    (tmp_path / LAKE / "another" / "2026-03-02").mkdir(parents=True)
    for asked_at in ("20260303T090000", "20260331T090000"):
        (tmp_path / LAKE / f"backfill-20260301T0000-20260302T0000-{asked_at}").mkdir()
    clockwork.turn(DAY + timedelta(days=30))
    (tmp_path / LAKE / "backfill-20260301T0000-20260302T0000-20260331T090000").rmdir()
    assert {path.name for path in (tmp_path / LAKE).iterdir()} == {"done.json", "hours", lake.query}
    assert not list((tmp_path / LAKE / lake.query).iterdir()), "what it names is gone by then"


def damage(file: Path) -> None:
    """Inside: where it ends it is whole."""
    body = bytearray(file.read_bytes())
    end = body.rindex(b"ARROW:schema") if b"ARROW:schema" in body else len(body) - 1000
    body[4 : end // 2] = bytes(end // 2 - 4)
    file.write_bytes(body)


def test_an_hour_of_which_a_file_is_damaged__is_made_of_the_rest_and_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    maker = Maker(tmp_path / "segments", groups=1, partitions=1)
    maker.flushes(6)
    maker.at = DAY.replace(hour=10, minute=1)
    flush_of_broker(maker)
    store = open_store(tmp_path.as_uri())
    lake = FactLake(spark, store, "1a2b3c4d-e5f6")
    PipelineBatches(lake, ()).do(0, list_manifests(store))
    damaged = sorted((tmp_path / "segments" / SegmentKind.BROKER).rglob("*.parquet"))[1]
    damage(damaged)
    name = damaged.relative_to(tmp_path / "segments").as_posix()
    said: list[str] = []
    RollupScheduler(lake, said.append).turn(DAY.replace(hour=10, minute=6))
    assert beginnings(said) == ["hour 2026-03-02 09:00", "forecast until 2026-03-02 10:00", WORKLOAD]
    told = [[each["file"] for each in marker["set_aside"]] for marker in markers(tmp_path, lambda q: q[:6] == "hourly")]
    assert sorted(told) == [[], [], [name]]
    again: list[str] = []
    RollupScheduler(FactLake(spark, store, lake.query), again.append).turn(DAY.replace(hour=11, minute=6))
    assert beginnings(again)[0] == "hour 2026-03-02 10:00"


def test_an_hour_whose_segments_are_no_longer_kept__is_left_as_it_is_and_nothing_stops(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The pipeline was away for longer than segments are kept: of its last hour nobody can make the whole any more."""
    maker = Maker(tmp_path / "segments", groups=1, partitions=1)
    old = maker.flushes(10)
    store = open_store(tmp_path.as_uri())
    lake = FactLake(spark, store, "1a2b3c4d-e5f6")
    batches = PipelineBatches(lake, ())
    batches.do(0, list_manifests(store))
    for path in (tmp_path / "segments").rglob("*.parquet"):
        path.unlink()
    maker.at += timedelta(hours=3)
    new = maker.flushes(2)
    batches.do(1, [path.relative_to(tmp_path / "segments").as_posix() for path in new])
    said: list[str] = []
    for _ in range(2):
        RollupScheduler(FactLake(spark, store, lake.query), said.append).turn(DAY.replace(hour=14, minute=6))
    gone = [f"hour 2026-03-02 {hour}:00: unchanged, some of its segments are deleted" for hour in ("09", "10")]
    assert said[:2] == gone
    assert beginnings(said[2:]) == ["hour 2026-03-02 13:00", "forecast until 2026-03-02 14:00", WORKLOAD[:-5] + "14:00"]
    assert len(old) == 10
    hours = [row for row in tables(tmp_path)[ResultKind.CLUSTER_ROLLUP].values() if row["grain"] == "hour"]
    assert {row["bucket"] for row in hours} == {DAY.replace(hour=13)}


def test_a_change_of_the_leader_counts_in_the_hour_in_which_it_was_seen(spark: SparkSession, tmp_path: Path) -> None:
    maker = Maker(tmp_path / "segments")
    known = {"directory_id": "d", "high_watermark": 1, "log_end": 1}
    ten = DAY.replace(hour=10)
    # Nobody answered for more than an hour before the last.
    for at, epoch, leader in ((-50, 1, 101), (-10, 1, 101), (40, 2, 102), (3600 + 4000, 3, 101)):
        maker.at = ten + timedelta(seconds=at)
        maker.seq += 1
        now = {"last_fetch_ts": maker.at, "last_caught_up_ts": maker.at, "observed_at": maker.at, "seq": maker.seq}
        rows = [
            {"schema": 1, "cluster": "east", "epoch": EPOCH, "replica": replica, "leader": leader, "role": "follower"}
            | {"leader_epoch": epoch, **known, **now}
            for replica in (101, 102)
        ]
        maker.write({SegmentKind.QUORUM: rows})
    store = open_store(tmp_path.as_uri())
    lake = FactLake(spark, store, "1a2b3c4d-e5f6")
    PipelineBatches(lake, ()).do(0, list_manifests(store))
    RollupScheduler(lake, lambda _: None).turn(DAY + timedelta(days=1, minutes=6))
    found = tables(tmp_path, lambda query: query != lake.query)[ResultKind.QUORUM_ROLLUP].values()
    changes = {
        (row["grain"], row["bucket"].hour): (row["leader_changes"], row["epoch_changes"])
        for row in found
        if row["replica"] == 101
    }
    assert changes == {("hour", 9): (0, 0), ("hour", 10): (1, 1), ("hour", 12): (1, 1), ("day", 0): (2, 2)}


def test_whoever_stops_in_between_goes_on_where_he_was(spark: SparkSession, tmp_path: Path) -> None:
    maker = Maker(tmp_path / "segments", groups=1, partitions=1)
    maker.at = DAY.replace(hour=9, minute=58)
    flush_of_broker(maker)
    maker.at = DAY.replace(hour=10)
    maker.flushes(4)
    store = open_store(tmp_path.as_uri())
    lake = FactLake(spark, store, "1a2b3c4d-e5f6")
    PipelineBatches(lake, ()).do(0, list_manifests(store))
    asked = 0

    def stopping() -> bool:
        nonlocal asked
        asked += 1
        return asked == 5  # in the second hour: a piece of the first, and of the second two and a rollup were made

    said: list[str] = []
    at = DAY.replace(hour=11, minute=6)
    RollupScheduler(lake, said.append, stopping).turn(at)
    assert beginnings(said) == ["hour 2026-03-02 09:00"]
    assert [marker["batch"] % DAY.timestamp() for marker in markers(tmp_path, lambda q: q != lake.query)] == [9 * 3600]
    RollupScheduler(lake, said.append).turn(at)
    assert beginnings(said[1:]) == [
        "hour 2026-03-02 10:00",
        "forecast until 2026-03-02 11:00",
        "workload until 2026-03-02 11:00",
    ]


class Never:
    """Nobody asks to stop."""

    at_once = False

    def __init__(self) -> None:
        self.asked = Event()


def test_started_again_with_nothing_new__hours_that_are_over_are_done(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafkadash.pipeline import application, heartbeat
    from kafkadash.pipeline.heartbeat import PipelineHeartbeat

    monkeypatch.setattr(heartbeat, "now", lambda: DAY.replace(hour=12))

    store = open_store(tmp_path.as_uri())
    maker = Maker(tmp_path / "segments", groups=1, partitions=1)
    maker.at = DAY.replace(hour=10, minute=20)
    maker.flushes(3)

    def take(query_id: str, batch: int, names: list[str]) -> None:
        PipelineBatches(FactLake(spark, store, query_id), ()).do(batch, names)

    take_in_all(spark, store, take, at_once=30)
    before = {marker["query"] for marker in markers(tmp_path)}
    stop = Never()
    beats = PipelineHeartbeat(store, 1)
    application.run_query(spark, store, application.StreamWay(None, 30), beats, cast("application.StopRequest", stop))
    made = {marker["query"] for marker in markers(tmp_path)} - before
    assert beats.query == "", "no batch came"
    assert {name.partition("-")[0] for name in made} == {"hourly"}
    assert len(made) == 3


def figures(said: list[str]) -> list[str]:
    return [figure for line in said for figure in re.findall(r"\d+ hours?\b|\d{4}-\d\d-\d\d|\d\d:\d\d", line)]


def again_of(folder: Path, query: str) -> list[Any]:
    return [marker for marker in markers(folder) if marker["query"] == query]


def test_a_backfill_makes_hours_and_days_again_as_a_stream_would_have(spark: SparkSession, tmp_path: Path) -> None:
    maker = Maker(tmp_path / "segments", groups=1, partitions=1, every=6 * 3600)
    maker.at = DAY - timedelta(hours=1, minutes=10)
    flush_of_broker(maker)  # the evening before, so that the day is not the oldest
    maker.flushes(3)  # every six hours
    store = open_store(tmp_path.as_uri())
    now = DAY + timedelta(days=1, hours=6)
    (late,) = (tmp_path / "segments" / "group_offset" / "2026-03-02" / "04").iterdir()
    late.rename(tmp_path / late.name)
    lake = FactLake(spark, store, "1a2b3c4d-e5f6")
    assert PipelineBatches(lake, ()).do(0, list_manifests(store)), "one file is set aside"
    RollupScheduler(lake, lambda _: None).turn(now)
    (tmp_path / late.name).rename(late)

    begin, end = DAY.replace(hour=4), DAY.replace(hour=11)
    said: list[str] = []
    again = FactLake(spark, store, "backfill-1")
    do_chunks(
        PipelineBatches(again, (), within=whole_minutes(begin, end)), list_chunks(store, begin, end), lambda _: None
    )
    do_coarser(again, begin, DAY.replace(hour=5), DAY.replace(hour=13), said.append)
    assert figures(said) == ["1 hour", "2026-03-02"]
    assert again_of(tmp_path, "backfill-1-days") == [], "the day is not over"
    do_coarser(again, begin, end, now, said.append)
    assert figures(said[2:]) == ["2 hours", "2026-03-02"]
    assert len(again_of(tmp_path, "backfill-1-days")) > 0

    whole = FactLake(spark, store, "whole-1")
    PipelineBatches(whole, ()).do(0, list_manifests(store))
    clockwork = RollupScheduler(whole, lambda _: None, folders=(f"{whole.folder}/hours",), leaving=LEFT_OUT)
    hours = [int(DAY.timestamp()) // 3600 + hour for hour in (4, 10, 16)]
    for hour in hours[2:]:
        clockwork.roll_up(FlushName("elsewhere", hour * 3600), hour)
    for hour in hours[:2]:
        clockwork.roll_up(FlushName("whole-hours", hour * 3600), hour)
    clockwork.merge_day(FlushName("whole-days", int(DAY.timestamp())), int(DAY.timestamp()) // 3600)
    expected = tables(tmp_path, lambda q: q.startswith("whole-"))
    assert tables(tmp_path, lambda q: q.startswith("backfill-")) == expected
    assert {row["grain"] for row in expected[ResultKind.LAG_ROLLUP].values()} == {"hour", "day"}
    before = tables(tmp_path, lambda q: q.startswith(("hourly-", "daily-")))
    assert set(expected[ResultKind.LAG_ROLLUP]) - set(before[ResultKind.LAG_ROLLUP]), "what was missing is there"


def test_a_backfill_leaves_days_as_they_are_of_which_it_has_not_everything(spark: SparkSession, tmp_path: Path) -> None:
    maker = Maker(tmp_path / "segments", groups=1, partitions=1, every=6 * 3600)
    maker.at = DAY - timedelta(hours=7, minutes=10)
    maker.flushes(6)
    store = open_store(tmp_path.as_uri())
    said: list[str] = []

    def backfilled(begin: datetime, end: datetime) -> list[str]:
        said.clear()
        lake = FactLake(spark, store, f"backfill-{begin:%d%H}")
        do_chunks(PipelineBatches(lake, ()), list_chunks(store, begin, end), lambda _: None)
        do_coarser(lake, begin, end, DAY + timedelta(days=1, hours=6), said.append)
        return said

    assert figures(backfilled(DAY - timedelta(hours=2), DAY)) == ["0 hours"], "a part of it may be gone"
    assert figures(backfilled(DAY.replace(hour=4), DAY.replace(hour=5))) == ["1 hour", "2026-03-02", "10:00"]
    assert not [marker for marker in markers(tmp_path) if marker["query"].endswith("-days")]


CLUSTERS = ("east", "west", "never-looked-at")


SPANS: list[list[LakeSpan]] = [
    [],
    [LakeSpan(10, 10)],
    [LakeSpan(10, 12), LakeSpan(20, 20)],
    [LakeSpan(0, 200), LakeSpan(300, 301)],
    [LakeSpan(10, 12, "east")],
    [LakeSpan(10, 12, "east"), LakeSpan(9, 11, "west"), LakeSpan(20, 25, "east")],
    [LakeSpan(15, 15), LakeSpan(10, 12, "east"), LakeSpan(20, 25, "east")],
]


def test_a_minute_begins_with_its_first_microsecond_and_ends_before_the_next(spark: SparkSession) -> None:
    """All lists of spans are asked at once, a column each."""
    rows = [
        (cluster, datetime.fromtimestamp(minute * 60 + second, UTC))
        for cluster in CLUSTERS
        for minute in range(310)
        for second in (0, 59.999999)
    ]
    frame = spark.createDataFrame(rows, "cluster string, observed_at timestamp")
    asked = frame.select("*", *(is_within(spans).alias(f"in_{n}") for n, spans in enumerate(SPANS))).collect()
    assert len(asked) == len(rows)
    for row in asked:
        minute = row.observed_at.timestamp() // 60
        for n, spans in enumerate(SPANS):
            inside = any(s.first <= minute <= s.last and s.cluster in (None, row.cluster) for s in spans)
            assert row[f"in_{n}"] is inside, (row, spans)
