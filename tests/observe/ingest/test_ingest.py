"""What the pipeline hands back comes into the database once, whole, and never in the place of something newer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import F

from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.observe import retention
from kafkadash.observe.history import ingest, partitions, rows_of
from kafkadash.observe.history.names import stored_name
from kafkadash.observe.models import (
    PipelineLedger,
    PipelineState,
    Rollup,
    Series,
    VerdictDifference,
)
from tests.observe.handed_back import Folder, lag_rollup, verdict
from tests.observe.ingest.taking import NOW, Turn

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
    assert (state.segments_waiting, state.results_waiting, state.last_error) == (1, 0, "")
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
    assert state.last_error.startswith("PyArrow is not installed on the worker")
    assert (state.looked_at, state.segments_waiting) == (None, None)


def test_ingest__a_store_that_does_not_answer__is_said_and_tried_again(turn: Turn, settings: Any) -> None:
    settings.PIPELINE_URI = "nowhere://at/all"
    assert turn() == 0
    state = PipelineState.objects.get()
    assert "The pipeline's folder cannot be read: nowhere://at/all" in state.last_error
    assert state.lease_until is None


def test_partitions__past_their_keep__are_dropped_as_a_whole(folder: Folder, turn: Turn) -> None:
    old = NOW - timedelta(days=89)
    folder.result(1, {LAG: [lag_rollup("memory", "g", "t", at, 1) for at in (old, NOW)]})
    turn()
    assert Rollup.objects.count() == 2
    assert partitions.drop_old(NOW) == 0
    assert retention.prune(NOW + timedelta(days=3))["rollup_tables"] == 1
    assert [row.bucket for row in Rollup.objects.all()] == [NOW]
