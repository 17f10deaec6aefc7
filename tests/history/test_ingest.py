"""What the pipeline hands back comes into the database once, whole, and never in the place of something newer.

Verdicts are compared with the worker's; of workloads and forecasts the newest stays.

What cannot be read of a result is set aside with a sentence, once, and the rest is taken in.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F

from kafkadash.accounts.services import record
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import coded
from kafkadash.export.results import ResultKind
from kafkadash.history import ingest, partitions
from kafkadash.history import ingest as rows_of
from kafkadash.history.errors import HistoryErrorCode
from kafkadash.history.models import (
    ClusterWorkload,
    DiskForecast,
    PipelineLedger,
    PipelineState,
    Rollup,
    Series,
    VerdictCount,
    VerdictDifference,
    Workload,
)
from kafkadash.history.pipeline_page import hourly_counts
from kafkadash.monitoring.groups.names import stored_name
from kafkadash.ops import retention
from kafkadash.pipeline.errors import PipelineErrorCode
from tests.history.handed_back import NOW, Folder, Turn, lag_rollup, verdict

pytestmark = pytest.mark.django_db

LAG = ResultKind.LAG_ROLLUP


def rollup(at: datetime = NOW) -> Rollup:
    return Rollup.objects.get(bucket=at)


def stored() -> list[tuple[Any, ...]]:
    names = ("series__group", "series__topic", "grain", "bucket", "samples", "most", "p50", "p95", "p99", "mean")
    return list(Rollup.objects.order_by(*names).values_list(*names))


def test_ingest__a_result__its_rows_are_there_and_the_ledger_names_it(folder: Folder, turn: Turn) -> None:
    flushed = NOW + timedelta(seconds=7)
    folder.result(3, {LAG: [lag_rollup("memory", "g", "t", NOW, 1, 2, 30)]}, flushes=[(5, 9, flushed)])
    assert turn() == 1
    row = rollup()
    assert (row.samples, row.most, row.p50, row.p95, row.p99, row.mean) == (3, 30, 2, 30, 30, 11)
    assert (row.grain, row.series.group, row.series.topic, row.series.kind) == (60, "g", "t", "lag_rollup")
    entry = PipelineLedger.objects.get()
    assert (entry.query, entry.batch, entry.rows, entry.flushes) == ("q1", 3, {"lag_rollup": 1}, [[5, 9]])
    assert (entry.newest_at, entry.set_aside, entry.skipped) == (flushed, [], 0)


def test_ingest__a_second_turn__takes_nothing_in_again(folder: Folder, turn: Turn) -> None:
    folder.result(3, {LAG: [lag_rollup("memory", "g", "t", NOW, 1)]})
    turn()
    Rollup.objects.update(most=77)
    assert turn() == 0
    assert rollup().most == 77


def test_ingest__a_batch_that_was_written_again__changes_nothing(folder: Folder, turn: Turn) -> None:
    folder.result(3, {LAG: [lag_rollup("memory", "g", "t", NOW, 1)]})
    turn()
    folder.result(3, {LAG: [lag_rollup("memory", "g", "t", NOW, 5, 6)]})
    assert turn() == 0
    assert rollup().samples == 1


def test_ingest__a_later_batch_with_more_samples_of_the_minute__takes_its_place(folder: Folder, turn: Turn) -> None:
    folder.result(3, {LAG: [lag_rollup("memory", "g", "t", NOW, 1)]})
    turn()
    folder.result(4, {LAG: [lag_rollup("memory", "g", "t", NOW, 1, 9)]})
    turn()
    assert (rollup().samples, rollup().most, Series.objects.count()) == (2, 9, 1)


@pytest.mark.parametrize("together", [True, False])
def test_ingest__fewer_samples_come_late__the_fuller_bucket_stays(folder: Folder, turn: Turn, together: bool) -> None:
    folder.result(4, {LAG: [lag_rollup("memory", "g", "t", NOW, 1, 9)]})
    if not together:
        turn()
    folder.result(3, {LAG: [lag_rollup("memory", "g", "t", NOW, 1)]}, query="q2")
    turn()
    assert (rollup().samples, rollup().most) == (2, 9)


def test_ingest__as_many_samples__the_answer_that_was_written_later_stays(folder: Folder, turn: Turn) -> None:
    later = datetime.now(UTC)
    folder.result(1, {LAG: [lag_rollup("memory", "g", "t", NOW, 8)]}, written_at=later)
    turn()
    earlier = later - timedelta(seconds=9)
    folder.result(2, {LAG: [lag_rollup("memory", "g", "t", NOW, 7)]}, query="old", written_at=earlier)
    turn()
    assert rollup().most == 8
    after = later + timedelta(seconds=9)
    folder.result(3, {LAG: [lag_rollup("memory", "g", "t", NOW, 6)]}, query="new", written_at=after)
    turn()
    assert rollup().most == 6


@pytest.mark.parametrize("group", ["g" * 300, "ü" * 255, " a "])
def test_ingest__whatever_a_group_is_called__its_row_is_there(folder: Folder, turn: Turn, group: str) -> None:
    rows = {LAG: [lag_rollup("memory", group, "t", NOW, 1)]}
    folder.result(3, {**rows, ResultKind.LAG_VERDICT: [verdict("memory", 0, NOW, "ok", "stall", group)]})
    turn()
    assert rollup().series.group == stored_name(group)
    assert VerdictDifference.objects.get().group == stored_name(group)


def test_ingest__every_kind_of_rollup__lands_in_its_series(folder: Folder, turn: Turn) -> None:
    bucket = {"cluster": "memory", "grain": "hour", "bucket": NOW.replace(minute=0)}
    lag = {"lag_count": 2, "lag_max": 4}
    folder.result(
        1,
        {
            ResultKind.TOPIC_ROLLUP: [{**bucket, "topic": "t", **lag, "bytes_on_disk": 99}],
            ResultKind.BROKER_ROLLUP: [{**bucket, "broker": 2, "replica_bytes_count": 5, "replicas": 5}],
            ResultKind.CLUSTER_ROLLUP: [{**bucket, **lag}],
            ResultKind.QUORUM_ROLLUP: [
                {**bucket, "replica": 7, "lag_ms_count": 6, "lag_ms_p95": 12, "fetch_age_ms_max": 31}
                | {"leader_changes": 2}
            ],
            ResultKind.BYTES_IN: [
                {**bucket, "topic": "", "broker": -1, "bytes_in_count": 8, "bytes_in_max": 900, "left_out": 3},
                {**bucket, "topic": "t", "broker": -1, "bytes_in_count": 7, "bytes_in_max": 500, "left_out": 0},
                {**bucket, "topic": "", "broker": 2, "bytes_in_count": 6, "bytes_in_max": 400, "left_out": 0},
            ],
            ResultKind.RECORDS_IN: [
                {**bucket, "topic": "t", "broker": -1, "milli_records_in_count": 9, "milli_records_in_max": 2500},
                # Minutes of rates stay in the result.
                {**bucket, "grain": "minute", "topic": "u", "broker": -1, "milli_records_in_count": 1},
            ],
        },
    )
    turn()
    found = {
        (r.series.kind, r.series.topic, r.series.node): (r.grain, r.samples, r.most, r.p95, r.other, r.changes)
        for r in Rollup.objects.select_related("series")
    }
    assert found == {
        ("topic_rollup", "t", -1): (3600, 2, 4, None, 99, None),
        ("broker_rollup", "", 2): (3600, 5, None, None, 5, None),
        ("cluster_rollup", "", -1): (3600, 2, 4, None, None, None),
        ("quorum_rollup", "", 7): (3600, 6, None, 12, 31, 2),
        ("bytes_in", "", -1): (3600, 8, 900, None, 3, None),
        ("bytes_in", "t", -1): (3600, 7, 500, None, 0, None),
        ("bytes_in", "", 2): (3600, 6, 400, None, 0, None),
        ("records_in", "t", -1): (3600, 9, 2500, None, None, None),
    }


def test_ingest__rows_of_clusters_that_are_not_registered_and_of_other_times__are_counted_and_left(
    folder: Folder, turn: Turn
) -> None:
    rows = [
        lag_rollup("elsewhere", "g", "t", NOW, 1),
        lag_rollup("memory", "g", "t", NOW - timedelta(days=91), 1),
        lag_rollup("memory", "g", "t", NOW + timedelta(days=2), 1),
        lag_rollup("memory", "g", "t", NOW - timedelta(days=91), 1, grain="hour"),
        lag_rollup("memory", "g", "t", NOW, 1),
    ]
    folder.result(1, {LAG: rows})
    turn()
    entry = PipelineLedger.objects.get()
    assert (entry.skipped, entry.rows) == (3, {"lag_rollup": 2})
    assert [(row[2], row[3]) for row in stored()] == [(60, NOW), (3600, NOW - timedelta(days=91))]


def test_ingest__more_rows_than_a_short_transaction_holds__all_are_there_and_the_ledger_comes_last(
    folder: Folder, turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_of, "AT_ONCE", 10)
    monkeypatch.setattr(ingest, "AT_ONCE", 10)
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(
        ingest, "reached", lambda _point: seen.append((Rollup.objects.count(), PipelineLedger.objects.count()))
    )
    folder.result(1, {LAG: [lag_rollup("memory", f"g{n}", "t", NOW, n) for n in range(35)]})
    turn()
    assert (35, 1) in seen
    assert (30, 0) in seen
    assert all(ledger == 0 for rollups, ledger in seen if rollups < 35)


def test_ingest__the_lease_is_lost_between_two_portions__no_ledger_row_and_the_next_turn_ends_it(
    folder: Folder, turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_of, "AT_ONCE", 10)
    monkeypatch.setattr(ingest, "AT_ONCE", 10)

    def taken_over(point: str) -> None:
        if point == "portion-stored":
            PipelineState.objects.update(epoch=F("epoch") + 1)

    with monkeypatch.context() as patched:
        patched.setattr(ingest, "reached", taken_over)
        folder.result(1, {LAG: [lag_rollup("memory", f"g{n}", "t", NOW, n) for n in range(35)]})
        assert turn() is None
    assert (Rollup.objects.count(), PipelineLedger.objects.count()) == (10, 0)
    PipelineState.objects.update(lease_until=None)
    assert turn() == 1
    assert (Rollup.objects.count(), PipelineLedger.objects.count()) == (35, 1)


def test_ingest__while_somebody_else_is_at_it__does_nothing(folder: Folder, turn: Turn) -> None:
    folder.result(1, {LAG: [lag_rollup("memory", "g", "t", NOW, 1)]})
    PipelineState.objects.update(lease_until=datetime.now(UTC) + timedelta(seconds=60))
    assert turn() is None
    assert not PipelineLedger.objects.exists()


def test_ingest__half_written_files__are_not_looked_at(folder: Folder, turn: Turn) -> None:
    marker = folder.result(1, {LAG: [lag_rollup("memory", "g", "t", NOW, 1)]})
    marker.rename(marker.with_name("_q1-1.json"))
    assert turn() == 0


def test_ingest__taken_in_long_enough_ago__its_files_go_and_it_stays_known(
    folder: Folder, turn: Turn, settings: Any
) -> None:
    marker = folder.result(1, {LAG: [lag_rollup("memory", "g", "t", NOW, 1)]})
    aside = folder.result(2, {}, instead={"format": 7})
    turn()
    assert marker.exists()
    settings.KEEP_RESULTS_HOURS = -0.01
    turn()
    assert not marker.exists()
    assert not (folder.root / "results/lag_rollup/q1-1").exists()
    assert aside.exists()
    settings.KEEP_SET_ASIDE_HOURS = -0.01
    turn()
    assert not aside.exists()
    folder.result(1, {LAG: [lag_rollup("memory", "g", "t", NOW, 5)]})
    assert turn() == 0
    assert not marker.exists()
    assert rollup().most == 1


def test_ingest__what_waits_and_what_beats__is_noted(folder: Folder, turn: Turn) -> None:
    folder.manifest(NOW, 5, 1)
    folder.manifest(NOW, 5, 2)
    folder.heartbeat("stream", {"query": "q1", "batch": 4})
    folder.heartbeat("broken", {}).write_text("{")
    folder.result(1, {}, flushes=[(5, 1, NOW)])
    turn()
    state = PipelineState.objects.get()
    assert (state.segments_waiting, state.results_waiting, state.last_error) == (1, 0, None)
    assert [(beat["file"], beat["query"], beat["batch"]) for beat in state.heartbeats] == [("stream.json", "q1", 4)]
    assert state.looked_at == state.attempted_at
    assert state.oldest_waiting_at is not None


def test_ingest__a_segment_that_was_set_aside__waits_no_longer(folder: Folder, turn: Turn) -> None:
    truncated = folder.manifest(NOW, 5, 1).relative_to(folder.root / "segments").as_posix()
    turn()
    assert PipelineState.objects.get().segments_waiting == 1
    folder.result(1, {}, instead={"set_aside": [{"file": truncated, "why": "It is not whole."}]})
    PipelineState.objects.update(looked_at=None)
    turn()
    assert PipelineState.objects.get().segments_waiting == 0


def test_ingest__without_pyarrow__says_so_and_nothing_else_happens(turn: Turn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert turn() == 0
    state = PipelineState.objects.get()
    assert state.last_error == coded(HistoryErrorCode.RESULTS_NEED_PYARROW)
    assert (state.looked_at, state.segments_waiting) == (None, None)


def test_ingest__a_store_that_does_not_answer__is_said_and_tried_again(turn: Turn, settings: Any) -> None:
    settings.PIPELINE_URI = "nowhere://at/all"
    assert turn() == 0
    state = PipelineState.objects.get()
    assert state.last_error_code == HistoryErrorCode.STORE_SILENT
    assert state.last_error_params["why"].startswith("nowhere://at/all")
    assert state.lease_until is None


def test_partitions__past_their_keep__are_dropped_as_a_whole(folder: Folder, turn: Turn) -> None:
    old = NOW - timedelta(days=89)
    folder.result(1, {LAG: [lag_rollup("memory", "g", "t", at, 1) for at in (old, NOW)]})
    turn()
    assert Rollup.objects.count() == 2
    assert partitions.drop_old(NOW) == 0
    assert retention.prune(NOW + timedelta(days=3))["rollup_tables"] == 1
    assert [row.bucket for row in Rollup.objects.all()] == [NOW]


def test_ingest__verdicts__are_compared_and_only_differences_are_kept(folder: Folder, turn: Turn) -> None:
    at = NOW.replace(minute=10) - timedelta(hours=1)
    rows = [
        verdict("memory", 0, at, "ok", "ok"),
        verdict("memory", 1, at, "stall", "ok"),
        verdict("memory", 2, at + timedelta(hours=1), "ok", "ok"),
        verdict("memory", 3, at, "stall", "unknown"),
        verdict("elsewhere", 4, at, "stall", "ok"),
    ]
    folder.result(1, {ResultKind.LAG_VERDICT: rows})
    turn()
    counts = list(VerdictCount.objects.order_by("hour").values_list("judged", "differed"))
    assert counts == [(2, 1), (1, 0)]
    one = VerdictDifference.objects.get()
    assert (one.partition, one.verdict, one.worker_verdict, one.observed_at) == (1, "stall", "ok", at)
    folder.result(1, {ResultKind.LAG_VERDICT: rows})
    turn()
    assert list(VerdictCount.objects.order_by("hour").values_list("judged", "differed")) == counts


@pytest.mark.parametrize("another", [False, True])
def test_ingest__a_cluster_named_like_one_that_was_removed__has_nothing_of_it(
    folder: Folder, turn: Turn, cluster: Cluster, another: bool
) -> None:
    """Segments tell of both under one name: what began before it was registered is the other's, in part at least."""
    if another:
        record("jobs", "cluster.removed", cluster, cluster="memory")
    registered = datetime.now(UTC)
    Cluster.objects.update(created_at=registered)
    after = registered.replace(second=0, microsecond=0) + timedelta(minutes=10)
    folder.result(
        1,
        {
            ResultKind.LAG_ROLLUP: [lag_rollup("memory", "g", "t", at, 1) for at in (NOW, after)],
            ResultKind.LAG_VERDICT: [verdict("memory", 0, at, "ok", "stall") for at in (NOW, after)],
            ResultKind.DISK_FORECAST: [forecast(after, 70)],
            ResultKind.WORKLOAD: [topic_load("t", 0, None, None)],
        },
    )
    turn()
    assert Rollup.objects.count() == (1 if another else 2)
    assert VerdictDifference.objects.count() == 1, "the newest of a partition stays"
    assert [DiskForecast.objects.count(), Workload.objects.count()] == ([0, 0] if another else [1, 1])


def test_ingest__a_query_that_begins_anew__counts_no_verdict_a_second_time(folder: Folder, turn: Turn) -> None:
    """Its checkpoint was lost: what the first had judged in three batches, the second judges in two, and goes on."""
    at = NOW.replace(minute=10) - timedelta(hours=2)

    def judged(batch: int, query: str, minutes: range, hours: int = 0) -> None:
        rows = [
            verdict(
                "memory", minute, at + timedelta(hours=hours, minutes=minute), "stall" if minute % 2 else "ok", "ok"
            )
            for minute in minutes
        ]
        folder.result(batch, {ResultKind.LAG_VERDICT: rows}, query=query)
        turn()

    for batch in range(3):
        judged(batch, "q1", range(batch * 4, batch * 4 + 4))
    before = list(hourly_counts().values_list("hour", "judged", "differed"))
    assert before == [(at.replace(minute=0), 12, 6)]
    judged(0, "q2", range(6))
    assert list(hourly_counts().values_list("hour", "judged", "differed")) == before, "half of it is no more than all"
    judged(1, "q2", range(6, 12))
    assert list(hourly_counts().values_list("hour", "judged", "differed")) == before, "all of it is as much"
    judged(2, "q2", range(12, 15))
    judged(3, "q2", range(4), hours=1)
    counts = list(hourly_counts().values_list("hour", "judged", "differed"))
    assert counts == [(at.replace(minute=0), 15, 7), (at.replace(minute=0) + timedelta(hours=1), 4, 2)]


def topic_load(topic: str, partition: int, typical: float | None, peak: float | None, days: int = 7) -> dict[str, Any]:
    return {
        "cluster": "memory",
        "topic": topic,
        "partition": partition,
        "size_bytes": 1000 + partition,
        "growth_per_day": 5.0,
        "in_typical": typical,
        "in_peak": peak,
        "peak_hour": None if peak is None else 33,
        "hours_of_week": [],
        "in_p50": [],
        "samples": 10,
        "from_at": NOW - timedelta(days=days),
        "to_at": NOW,
    }


def test_ingest__workload__is_packed_by_topic_column_by_column(folder: Folder, turn: Turn) -> None:
    rows = [
        topic_load("t", 1, 20.0, 50.0),
        topic_load("t", 0, None, None, days=3),
        topic_load("u", 0, 1.0, 2.0),
        topic_load("t", 10, 0.0, 0.0),
    ]
    folder.result(1, {ResultKind.WORKLOAD: [*rows, topic_load("v", 0, 1.0, 1.0) | {"cluster": "elsewhere"}]})
    turn()
    found = Workload.objects.get(topic="t")
    assert found.partitions == {
        "partition": [0, 1, 10],
        "in": [None, 20.0, 0.0],
        "peak": [None, 50.0, 0.0],
        "hour": [None, 33, 33],
        "grows": [5.0, 5.0, 5.0],
        "size": [1000, 1001, 1010],
        "samples": [10, 10, 10],
    }
    assert (found.format, found.from_at, found.to_at) == (Workload.FORMAT, NOW - timedelta(days=7), NOW)
    assert list(Workload.objects.order_by("topic").values_list("topic", flat=True)) == ["t", "u"]
    assert PipelineLedger.objects.get().skipped == 1


def hourly(topic: str, partition: int, rates: dict[int, int | None], days: int = 7) -> dict[str, Any]:
    """``rates``: hour of the week → bytes per second."""
    lists = {"hours_of_week": list(rates), "in_p50": list(rates.values())}
    return topic_load(topic, partition, 1.0, 1.0, days) | lists


def stored_hours(topic: str) -> dict[str, Any]:
    by_hour = Workload.objects.get(topic=topic).by_hour
    assert by_hour is not None
    return dict(by_hour)


def known_hours(by_hour: dict[str, Any]) -> dict[int, int]:
    return {hour: rate for hour, rate in enumerate(by_hour["in"]) if rate is not None}


def hour_of_week(at: datetime) -> int:
    return at.weekday() * 24 + at.hour


def test_ingest__workload__has_sums_by_hour_of_the_week_per_topic_and_cluster(folder: Folder, turn: Turn) -> None:
    rows = [
        hourly("t", 0, {0: 0, 33: 100, 34: None, 167: 5}),
        hourly("t", 1, {0: 0, 33: 7, 34: 8, 167: 6}),
        hourly("u", 0, {33: 1000, 34: 10}),
        hourly("v", 0, {34: None}),
    ]
    folder.result(1, {ResultKind.WORKLOAD: [*rows, hourly("t", 2, {33: 9}) | {"cluster": "elsewhere"}]})
    turn()
    of_topics = {topic: stored_hours(topic) for topic in ("t", "u", "v")}
    assert known_hours(of_topics["t"]) == {0: 0, 33: 107, 34: 8, 167: 11}
    assert [of_topics["t"]["without"][hour] for hour in (0, 33, 34, 167)] == [0, 0, 1, 0]
    assert of_topics["u"]["without"] == []
    assert (known_hours(of_topics["v"]), of_topics["v"]["without"]) == ({}, [])
    whole = ClusterWorkload.objects.get()
    assert known_hours(whole.by_hour) == {0: 0, 33: 1107, 34: 18, 167: 11}
    assert [whole.by_hour["without"][hour] for hour in (0, 33, 34, 167)] == [2, 1, 2, 2]
    assert (whole.from_at, whole.to_at) == (NOW - timedelta(days=7), NOW)


def test_ingest__workload_in_several_files__is_added_up_over_all_of_them(folder: Folder, turn: Turn) -> None:
    folder.result(1, {ResultKind.WORKLOAD: [hourly("t", n, {33: 10}) for n in range(3)]})
    file = folder.parquet(ResultKind.WORKLOAD, [hourly("t", 2, {33: 10})], "q1", 1)
    file.rename(file.with_name("part-1.parquet"))
    folder.parquet(ResultKind.WORKLOAD, [hourly("t", n, {33: 1, 5: 4}) for n in range(2)], "q1", 1)
    turn()
    assert known_hours(stored_hours("t")) == {5: 8, 33: 12}


def test_ingest__partition_that_was_created_later__is_missing_in_no_hour_before_it(folder: Folder, turn: Turn) -> None:
    now, before = hour_of_week(NOW), hour_of_week(NOW - timedelta(hours=1))
    folder.result(1, {ResultKind.WORKLOAD: [hourly("t", 0, {before: 3, now: 4}), hourly("t", 1, {now: None}, days=0)]})
    turn()
    by_hour = stored_hours("t")
    assert known_hours(by_hour) == {before: 3, now: 4}
    assert (by_hour["without"][before], by_hour["without"][now]) == (0, 1)


def test_ingest__workload_of_two_clusters_of_one_name__has_no_sums(
    folder: Folder, turn: Turn, cluster: Cluster
) -> None:
    record("jobs", "cluster.removed", cluster, cluster="memory")
    registered = datetime.now(UTC)
    Cluster.objects.update(created_at=registered)
    own = dict.fromkeys(("from_at", "to_at"), registered + timedelta(minutes=10))
    rows = [hourly("t", 0, {33: 1}), hourly("t", 1, {33: 1}) | own, hourly("u", 0, {33: 1}) | own]
    folder.result(1, {ResultKind.WORKLOAD: rows})
    turn()
    assert {topic: by_hour is None for topic, by_hour in Workload.objects.values_list("topic", "by_hour")} == {
        "t": True,
        "u": False,
    }
    assert not ClusterWorkload.objects.exists()


@pytest.mark.parametrize("lists", [{"in_p50": [1, 2]}, {"hours_of_week": [168]}, {"hours_of_week": [-1]}])
def test_ingest__workload_whose_hours_do_not_match__is_set_aside(
    folder: Folder, turn: Turn, lists: dict[str, list[int]]
) -> None:
    row = hourly("t", 0, {33: 1}) | lists
    folder.result(1, {ResultKind.WORKLOAD: [row], LAG: [lag_rollup("memory", "g", "t", NOW, 1)]})
    turn()
    ((_, why),) = PipelineLedger.objects.get().files_set_aside
    assert why.code == HistoryErrorCode.COLUMNS_WRONG
    assert not Workload.objects.exists()
    assert Rollup.objects.count() == 1, "the rest is taken in"


def forecast(at: datetime, used: int) -> dict[str, Any]:
    return {
        "cluster": "memory",
        "broker": 1,
        "directory": "/data",
        "observed_at": at,
        "used_bytes": used,
        "total_bytes": 100,
        "grows_per_day": 4.5,
        "days_to_80": 2.0,
        "samples": 12,
        "from_at": NOW - timedelta(days=1),
    }


def test_ingest__an_older_forecast_comes_late__the_newer_one_stays(folder: Folder, turn: Turn) -> None:
    folder.result(1, {ResultKind.DISK_FORECAST: [forecast(NOW, 70)]}, query="hourly")
    turn()
    folder.result(2, {ResultKind.DISK_FORECAST: [forecast(NOW - timedelta(hours=1), 60)]}, query="backfill-1")
    turn()
    found = DiskForecast.objects.get()
    assert (found.used_bytes, found.days_to_80, found.days_to_90) == (70, 2.0, None)


def test_retention__the_ledger__is_kept_as_long_as_the_files(folder: Folder, turn: Turn, settings: Any) -> None:
    folder.result(1, {ResultKind.DISK_FORECAST: [forecast(NOW, 70)]})
    turn()
    later = NOW + timedelta(days=31)
    pruned = retention.prune(later)
    assert (pruned["ledger"], pruned["forecasts"]) == (0, 1)
    settings.KEEP_RESULTS_HOURS = -1
    turn()
    assert retention.prune(later)["ledger"] == 1


def spoil(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])


def _cut(folder: Folder) -> None:
    spoil(folder.root / "results/lag_rollup/q1-1/part-0.parquet", 200)


def _cut_inside(folder: Folder) -> None:
    file = folder.root / "results/lag_rollup/q1-1/part-0.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:4] + bytes(100) + whole[104:])


def _gone(folder: Folder) -> None:
    (folder.root / "results/lag_rollup/q1-1/part-0.parquet").unlink()


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (_cut, HistoryErrorCode.RESULT_DAMAGED),
        (_cut_inside, HistoryErrorCode.RESULT_DAMAGED),
        (_gone, HistoryErrorCode.FILES_MISSING),
    ],
)
def test_ingest__a_file_of_a_result_is_harmed__it_is_set_aside_with_a_code_and_the_rest_goes_on(
    folder: Folder, turn: Turn, harm: Callable[[Folder], None], code: str
) -> None:
    other = {"cluster": "memory", "grain": "minute", "bucket": NOW, "lag_count": 1, "lag_max": 3}
    folder.result(1, {LAG: [lag_rollup("memory", "g", "t", NOW, 1)], ResultKind.CLUSTER_ROLLUP: [other]})
    folder.result(2, {LAG: [lag_rollup("memory", "next", "t", NOW, 1)]})
    harm(folder)
    assert turn() == 2
    first, second = PipelineLedger.objects.order_by("batch")
    assert first.set_aside[0]["why"]["code"] == code
    assert "lag_rollup/q1-1" in first.set_aside[0]["file"]
    assert (first.rows, second.rows, second.set_aside) == ({"cluster_rollup": 1}, {"lag_rollup": 1}, [])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"format": 2}, HistoryErrorCode.MARKER_FROM_FUTURE),
        ({"kinds": {"moon_phase": {"rows": 3}}}, HistoryErrorCode.RESULT_KIND_UNKNOWN),
        ({"batch": 9}, HistoryErrorCode.NO_MARKER),
        ({"written_at": "yesterday"}, HistoryErrorCode.NO_MARKER),
        ({"kinds": []}, HistoryErrorCode.NO_MARKER),
        ({"set_aside": [{"file": "x", "why": {"code": "y", "params": 3}}]}, HistoryErrorCode.NO_MARKER),
    ],
)
def test_ingest__a_marker_that_cannot_be_used__is_set_aside_and_never_tried_again(
    folder: Folder, turn: Turn, change: dict[str, Any], code: str
) -> None:
    folder.result(1, {}, instead=change)
    assert turn() == 1
    entry = PipelineLedger.objects.get()
    assert entry.set_aside[0]["why"]["code"] == code
    assert turn() == 0


def test_ingest__a_marker_that_is_not_even_text__is_set_aside(folder: Folder, turn: Turn) -> None:
    folder.result(1, {}).write_bytes(b"\xff\xfe{")
    odd = folder.root / "results/markers/what is this.json"
    odd.write_text("[]")
    assert turn() == 2
    assert set(PipelineLedger.objects.values_list("query", "batch")) == {("q1", 1), ("what is this", -1)}


def test_ingest__a_column_is_missing_or_of_another_type__says_which(folder: Folder, turn: Turn) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    folder.result(1, {LAG: [lag_rollup("memory", "g", "t", NOW, 1)]})
    file = folder.root / "results/lag_rollup/q1-1/part-0.parquet"
    parquet.write_table(parquet.read_table(file).drop_columns(["lag_p99"]), file)
    folder.result(2, {LAG: [lag_rollup("memory", "g", "t", NOW, 1)]})
    file = folder.root / "results/lag_rollup/q1-2/part-0.parquet"
    table = parquet.read_table(file)
    parquet.write_table(table.set_column(table.column_names.index("lag_max"), "lag_max", pa.array(["much"])), file)
    turn()
    first, second = PipelineLedger.objects.order_by("batch")
    assert "missing lag_p99" in first.set_aside[0]["why"]["params"]["why"]
    assert "lag_max" in second.set_aside[0]["why"]["params"]["why"]
    assert not Rollup.objects.exists()


def test_ingest__what_the_pipeline_itself_set_aside__is_in_the_ledger(folder: Folder, turn: Turn) -> None:
    aside = {"file": "group_offset/x.parquet", "why": coded(PipelineErrorCode.FILE_GONE).as_json()}
    folder.result(1, {}, instead={"set_aside": [aside]})
    turn()
    assert PipelineLedger.objects.get().set_aside == [aside]
