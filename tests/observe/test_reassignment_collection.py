"""Reassignments as the collector stores them: identity, progress, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.observe.collection import Refresh
from kafkadash.observe.models import CollectorRun, Outcome, ReassignmentSnapshot
from tests.observe.conftest import Clock
from tests.observe.memory_cluster import MemoryCluster

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], Refresh]


def only_row() -> ReassignmentSnapshot:
    return ReassignmentSnapshot.objects.get()


def test_collection__replica_being_added__stores_percent_from_its_own_log_end(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3, end=12_000)
    kafka.move("orders", 0, 4, 2, 3)
    log.start, log.ends[4] = 2_000, 4_500
    refresh("log_dirs")
    refresh("reassignments")
    row = only_row()
    assert row.percent == pytest.approx(25.0)
    assert row.sampled_at == datetime.fromtimestamp(clock.now, UTC)
    assert (row.adding, row.removing, row.target, row.original) == ([4], [1], [4, 2, 3], [2, 3, 1])
    assert row.size_bytes == 1_000_000
    assert row.replicas_progress[0]["lag_records"] == 7_500
    assert row.outcome == Outcome.RUNNING


def test_collection__several_replicas_added__percent_is_that_of_the_slowest(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    log = kafka.add("orders", 0, 1, 2, end=1_000)
    kafka.move("orders", 0, 3, 4)
    log.ends |= {3: 900, 4: 100}
    refresh("reassignments")
    assert only_row().percent == pytest.approx(10.0)


def test_collection__destination_does_not_answer__percent_is_unknown_and_not_zero(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    log.ends[4] = 500
    refresh("reassignments")
    kafka.silent = {4}
    refresh("reassignments")
    row = only_row()
    assert (row.percent, row.sampled_at, row.rate_bytes) == (None, None, None)
    assert row.replicas_progress[0]["error"] == "did not answer within 8 s"


def test_collection__seen_again__keeps_its_id_and_its_start(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    refresh("reassignments")
    nobody_moved_at = datetime.fromtimestamp(clock.now, UTC)
    clock.pass_by(10)
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    first = only_row()
    clock.pass_by(2)
    refresh("reassignments")
    again = only_row()
    assert again.public_id == first.public_id
    assert (again.started_after, again.started_before) == (nobody_moved_at, first.started_before)
    assert not again.continuity_gap


def test_collection__nobody_looked_before__start_has_no_lower_end(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    assert only_row().started_after is None


def test_collection__target_reached__is_completed(kafka: MemoryCluster, refresh: Refresher, clock: Clock) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    kafka.complete("orders", 0)
    clock.pass_by(2)
    refresh("reassignments")
    row = only_row()
    assert (row.outcome, row.percent) == (Outcome.COMPLETED, 100.0)
    assert row.ended_at == datetime.fromtimestamp(clock.now, UTC)


def test_collection__cancelled__is_not_completed_and_keeps_its_percent(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    log.ends[4] = 400
    refresh("reassignments")
    kafka.cancel("orders", 0)
    refresh("reassignments")
    row = only_row()
    assert row.outcome == Outcome.CANCELLED
    assert row.percent == pytest.approx(40.0)


def test_collection__retargeted__ends_as_superseded_and_a_new_one_begins(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    kafka.move("orders", 0, 5, 2, 3)
    refresh("reassignments")
    old, new = ReassignmentSnapshot.objects.order_by("pk")
    assert (old.outcome, new.outcome) == (Outcome.SUPERSEDED, Outcome.RUNNING)
    assert old.public_id != new.public_id
    assert new.adding == [5]


def test_collection__cancelled_and_submitted_again_between_two_looks__old_outcome_is_unknown(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    log.ends[4] = 700
    refresh("reassignments")
    kafka.cancel("orders", 0)
    kafka.move("orders", 0, 4, 2, 3)
    log.ends[4] = 0
    refresh("reassignments")
    old, new = ReassignmentSnapshot.objects.order_by("pk")
    assert (old.outcome, new.outcome) == (Outcome.UNKNOWN, Outcome.RUNNING)


def test_collection__topic_deleted_while_it_moves__says_so(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    kafka.delete("orders")
    refresh("reassignments")
    assert only_row().outcome == Outcome.TOPIC_DELETED


def test_collection__topic_recreated_under_the_same_name_and_moving__is_another_reassignment(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    kafka.topic_ids["orders"] = "00000000-0000-0000-0000-0000000000ff"
    refresh("reassignments")
    old, new = ReassignmentSnapshot.objects.order_by("pk")
    assert (old.outcome, new.outcome) == (Outcome.TOPIC_DELETED, Outcome.RUNNING)


def test_collection__left_the_listing_but_the_answering_broker_lags__stays_running(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    log.adding = log.removing = ()
    refresh("reassignments")
    assert only_row().outcome == Outcome.RUNNING
    kafka.complete("orders", 0)
    log.replicas = (4, 2, 3)
    refresh("reassignments")
    assert only_row().outcome == Outcome.COMPLETED


def test_collection__nobody_looked_for_long__says_continuity_was_not_observed(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    clock.pass_by(60)
    refresh("reassignments")
    assert only_row().continuity_gap


def test_collection__while_something_moves__looks_more_often(
    kafka: MemoryCluster, refresh: Refresher, cluster: Cluster
) -> None:
    refresh("reassignments")
    run = CollectorRun.objects.get(cluster=cluster, kind="reassignments")
    assert run.interval_s == 10
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    run.refresh_from_db()
    assert run.interval_s == 2


def test_collection__steady_copy__measures_its_rate_in_bytes(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3, end=10_000)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("log_dirs")
    for _ in range(12):
        refresh("reassignments")
        clock.pass_by(2)
        log.ends[4] += 100
    # 50 records a second; 10,000 records are 1,000,000 bytes.
    assert only_row().rate_bytes == pytest.approx(5_000, rel=0.01)
