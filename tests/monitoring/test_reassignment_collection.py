"""Reassignments as the collector stores them: identity, progress, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.kafka.api import ConfigResource
from kafkadash.monitoring.collection import RefreshOutcome
from kafkadash.monitoring.models import CollectorRun, MoveOutcome, ReassignmentSnapshot, StartedFrom
from kafkadash.monitoring.ownership import AcceptedMove, MoveClaim, OwnershipClaim, register_moves
from tests.monitoring.conftest import Clock
from tests.monitoring.memory_kafka import SILENT, MemoryCluster

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], RefreshOutcome]


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
    assert row.outcome == MoveOutcome.RUNNING


@pytest.mark.parametrize(
    ("own_start", "own_end", "percent", "size"),
    [
        (0, 0, 0.0, 1_000_000),  # nothing came yet
        (2_000, 4_500, 25.0, 1_000_000),
        (7_000, 8_000, 20.0, 500_000),  # it copies only what is not in remote storage (KIP-1023)
    ],
    ids=["not begun", "from the local start", "after what is tiered"],
)
def test_collection__tiered_topic__counts_what_is_copied(
    kafka: MemoryCluster, refresh: Refresher, own_start: int, own_end: int, percent: float, size: int
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3, end=12_000)
    kafka.configs[ConfigResource.topic("orders")] = {"remote.storage.enable": "true"}
    log.local |= {1: 2_000, 2: 2_000, 3: 2_000, 4: own_start}
    for kind in ("metadata", "configs", "log_dirs"):
        refresh(kind)
    kafka.move("orders", 0, 4, 2, 3)
    log.ends[4] = own_end

    refresh("reassignments")

    row = only_row()
    assert row.percent == pytest.approx(percent)
    assert (row.leader_log_start, row.size_bytes) == (2_000, size)


def test_collection__configs_were_not_read__asks_where_the_copy_starts(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3, end=12_000)
    log.local |= {1: 2_000, 4: 7_000}
    refresh("metadata")
    kafka.move("orders", 0, 4, 2, 3)
    log.ends[4] = 8_000

    refresh("reassignments")

    assert only_row().percent == pytest.approx(20.0)


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
    assert row.replicas_progress[0]["error"] == SILENT.text


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
    assert (row.outcome, row.percent) == (MoveOutcome.COMPLETED, 100.0)
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
    assert row.outcome == MoveOutcome.CANCELLED
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
    assert (old.outcome, new.outcome) == (MoveOutcome.SUPERSEDED, MoveOutcome.RUNNING)
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
    assert (old.outcome, new.outcome) == (MoveOutcome.UNKNOWN, MoveOutcome.RUNNING)


def test_collection__topic_deleted_while_it_moves__says_so(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    kafka.delete("orders")
    refresh("reassignments")
    assert only_row().outcome == MoveOutcome.TOPIC_DELETED


def test_collection__topic_recreated_under_the_same_name_and_moving__is_another_reassignment(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    kafka.topic_ids["orders"] = "00000000-0000-0000-0000-0000000000ff"
    refresh("reassignments")
    old, new = ReassignmentSnapshot.objects.order_by("pk")
    assert (old.outcome, new.outcome) == (MoveOutcome.TOPIC_DELETED, MoveOutcome.RUNNING)


def test_collection__left_the_listing_but_the_answering_broker_lags__stays_running(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    log.adding = log.removing = ()
    refresh("reassignments")
    assert only_row().outcome == MoveOutcome.RUNNING
    kafka.complete("orders", 0)
    log.replicas = (4, 2, 3)
    refresh("reassignments")
    assert only_row().outcome == MoveOutcome.COMPLETED


def test_collection__nobody_looked_for_long__says_continuity_was_not_observed(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    clock.pass_by(60)
    refresh("reassignments")
    assert only_row().continuity_gap


def test_collection__nobody_looked_for_long_and_the_leader_epoch_is_new__may_have_begun_meanwhile(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3)
    refresh("reassignments")
    looked_at = datetime.fromtimestamp(clock.now, UTC)
    clock.pass_by(10)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    first = only_row()
    clock.pass_by(60)
    log.epoch += 1
    refresh("reassignments")
    row = only_row()
    assert (row.public_id, row.started_after) == (first.public_id, looked_at)
    assert row.started_before == datetime.fromtimestamp(clock.now, UTC)
    assert row.continuity_gap


def test_collection__begun_while_nobody_looked__says_so(kafka: MemoryCluster, refresh: Refresher, clock: Clock) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    refresh("reassignments")
    clock.pass_by(600)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    assert only_row().continuity_gap


def test_collection__begun_while_the_figures_were_read__started_after_the_listing(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    """The first listing did not have it, and the offsets of another move took five seconds."""
    kafka.add("orders", 0, 1, 2, 3)
    kafka.add("orders", 1, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    listed_at = datetime.fromtimestamp(clock.now, UTC)
    kafka.before_answer = lambda call: clock.pass_by(5) if call == "replica_offsets" else None
    refresh("reassignments")
    kafka.before_answer = lambda _: None
    kafka.move("orders", 1, 4, 2, 3)
    refresh("reassignments")
    assert ReassignmentSnapshot.objects.get(partition=1).started_after == listed_at


def test_collection__broker_was_silent_before_the_copy_started_over__is_still_told_apart(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    log.ends[4] = 700
    refresh("reassignments")
    kafka.silent = {4}
    refresh("reassignments")
    assert only_row().replicas_progress[0]["log_end"] is None
    kafka.silent = set()
    log.ends[4], log.epoch = 0, log.epoch + 2
    refresh("reassignments")
    old, new = ReassignmentSnapshot.objects.order_by("pk")
    assert (old.outcome, new.outcome) == (MoveOutcome.UNKNOWN, MoveOutcome.RUNNING)


def test_collection__through_and_moved_on_between_two_looks__was_completed(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    kafka.complete("orders", 0)
    kafka.move("orders", 0, 4, 5, 3)
    refresh("reassignments")
    old, new = ReassignmentSnapshot.objects.order_by("pk")
    assert (old.outcome, old.percent, new.outcome) == (MoveOutcome.COMPLETED, 100.0, MoveOutcome.RUNNING)


def test_collection__replication_factor_raised__is_completed_when_two_looks_say_so(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    """A broker that has not heard of a cancel would tell the same replicas."""
    kafka.add("orders", 0, 1, 2)
    kafka.move("orders", 0, 1, 2, 3)
    refresh("reassignments")
    kafka.complete("orders", 0)
    clock.pass_by(2)
    refresh("reassignments")
    assert only_row().outcome == MoveOutcome.RUNNING
    clock.pass_by(2)
    refresh("reassignments")
    assert only_row().outcome == MoveOutcome.COMPLETED


def test_collection__metadata_was_read_before_the_start__the_old_order_is_known(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 3, 1, 2)
    refresh("metadata")
    kafka.move("orders", 0, 2, 5, 3)
    refresh("reassignments")
    row = only_row()
    assert (row.replicas, row.original) == ([2, 5, 3, 1], [3, 1, 2])


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


@pytest.mark.parametrize("tiered", [False, True], ids=["not tiered", "tiered"])
def test_collection__copy_stands_still_while_retention_deletes__rate_is_zero(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock, *, tiered: bool
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3, end=12_000)
    kafka.configs[ConfigResource.topic("orders")] = {"remote.storage.enable": str(tiered).lower()}
    for kind in ("metadata", "configs", "log_dirs"):
        refresh(kind)
    kafka.move("orders", 0, 4, 2, 3)
    log.ends[4] = 0
    for at in range(12):
        log.local = {1: 2_000 + 100 * at, 4: 0}
        refresh("reassignments")
        clock.pass_by(2)
    assert (only_row().percent, only_row().rate_bytes) == (0.0, 0.0)


def test_collection__copy_begins_after_what_is_tiered__rate_is_that_of_records_it_got(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3, end=12_000)
    kafka.configs[ConfigResource.topic("orders")] = {"remote.storage.enable": "true"}
    log.local |= {1: 2_000, 4: 0}
    for kind in ("metadata", "configs", "log_dirs"):
        refresh(kind)
    kafka.move("orders", 0, 4, 2, 3)
    log.ends[4] = 0
    for got in range(12):
        if got:
            log.local[4], log.ends[4] = 7_000, 7_000 + 100 * got
        refresh("reassignments")
        clock.pass_by(2)
    # 50 records a second; the 10,000 records on the leader's disk are 1,000,000 bytes.
    assert only_row().rate_bytes == pytest.approx(5_000, rel=0.01)


def accept_move(kafka: MemoryCluster, cluster: Cluster, clock: Clock, *target: int) -> str:
    """Register a reassignment as a run does whose request Kafka has accepted; return its id."""
    at = datetime.fromtimestamp(clock.now, UTC)
    original = kafka.topics["orders"][0].replicas
    claim = MoveClaim(OwnershipClaim("#7", "/changes/7/"), target, at, at)
    register_moves(cluster.pk, [AcceptedMove("orders", kafka.topic_ids["orders"], 0, original, claim)], at)
    return only_row().public_id


def test_registered__found_listed__keeps_its_id(
    kafka: MemoryCluster, cluster: Cluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    refresh("reassignments")
    clock.pass_by(2)
    given = accept_move(kafka, cluster, clock, 4, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    clock.pass_by(2)
    refresh("reassignments")
    row = only_row()
    assert (row.public_id, row.adding, row.removing, row.percent) == (given, [4], [1], 0.0)


def test_registered__ended_before_a_refresh__is_completed_under_its_id(
    kafka: MemoryCluster, cluster: Cluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    given = accept_move(kafka, cluster, clock, 4, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    kafka.complete("orders", 0)
    clock.pass_by(2)
    refresh("reassignments")
    row = only_row()
    assert (row.public_id, row.outcome, row.claimed_by) == (given, MoveOutcome.COMPLETED, "#7")
    assert row.started_from == StartedFrom.SUBMITTED


def test_registered__broker_has_not_heard_of_it__stays_running_for_a_minute(
    kafka: MemoryCluster, cluster: Cluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    accept_move(kafka, cluster, clock, 4, 2, 3)
    for _ in range(5):
        clock.pass_by(11)
        refresh("reassignments")
        assert only_row().outcome == MoveOutcome.RUNNING
    clock.pass_by(11)
    refresh("reassignments")
    assert only_row().outcome == MoveOutcome.CANCELLED


def test_registered__after_the_listing_was_read__is_left_to_the_next_refresh(
    kafka: MemoryCluster, cluster: Cluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    accept_move(kafka, cluster, clock, 4, 2, 3)
    kafka.delete("orders")
    refresh("reassignments")
    assert only_row().outcome == MoveOutcome.RUNNING
    clock.pass_by(2)
    refresh("reassignments")
    assert only_row().outcome == MoveOutcome.TOPIC_DELETED
