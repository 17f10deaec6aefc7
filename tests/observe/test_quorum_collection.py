"""Controllers and observers as the collector stores them: answers, and the status of each node when it changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkadash.kafka.port import QuorumReplica
from kafkadash.observe.collection import Refresh
from kafkadash.observe.models import QuorumReplicaState, QuorumSnapshot
from tests.observe.conftest import Clock
from tests.observe.memory_cluster import MemoryCluster

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], Refresh]
HOUR_MS = 3_600_000


def heard(node: int, clock: Clock, behind_ms: int = 0, offset_ms: int = 0) -> QuorumReplica:
    """A node whose stamps are ``behind_ms`` old on the leader's clock, which is ``offset_ms`` ahead of ours."""
    then = round(clock.now * 1000) + offset_ms - behind_ms
    return QuorumReplica(node, f"d{node}", 500, then, then)


def unheard(node: int) -> QuorumReplica:
    return QuorumReplica(node, f"d{node}", None, None, None)


def statuses() -> dict[int, str]:
    return dict(QuorumReplicaState.objects.values_list("node_id", "status"))


def test_quorum__each_answer__is_a_snapshot_with_voters_and_observers(kafka: MemoryCluster, refresh: Refresher) -> None:
    refresh("quorum")
    refresh("quorum")
    snapshot = QuorumSnapshot.objects.latest("pk")
    assert QuorumSnapshot.objects.count() == 2
    assert snapshot.leader_id == 1
    assert [(r["id"], r["voter"]) for r in snapshot.replicas][:2] == [(1, True), (2, False)]


def test_status__nothing_changed__is_not_written_again(kafka: MemoryCluster, refresh: Refresher, clock: Clock) -> None:
    refresh("quorum")
    before = list(QuorumReplicaState.objects.order_by("pk").values())
    assert statuses() == {1: "Leader", 2: "In sync", 3: "In sync", 4: "In sync", 5: "In sync"}
    clock.pass_by(10)
    refresh("quorum")
    assert list(QuorumReplicaState.objects.order_by("pk").values()) == before


def test_status__changes__is_written_with_the_time(kafka: MemoryCluster, refresh: Refresher, clock: Clock) -> None:
    kafka.voters = [heard(1, clock), heard(2, clock), heard(3, clock)]
    kafka.observers = []
    refresh("quorum")
    clock.pass_by(10)
    kafka.voters = [heard(1, clock), heard(2, clock, behind_ms=2500), heard(3, clock)]
    refresh("quorum")
    assert statuses() == {1: "Leader", 2: "Lagging", 3: "In sync"}
    lagging, other = QuorumReplicaState.objects.get(node_id=2), QuorumReplicaState.objects.get(node_id=3)
    assert (lagging.changed_at - other.changed_at).total_seconds() == pytest.approx(10)
    assert lagging.first_seen_at == other.first_seen_at


def test_status__node_is_no_longer_listed__is_gone_and_not_healthy(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    refresh("quorum")
    kafka.observers = [heard(2, clock)]
    refresh("quorum")
    assert statuses() == {1: "Leader", 2: "In sync", 3: "Gone", 4: "Gone", 5: "Gone"}
    kafka.observers = [heard(2, clock), heard(3, clock)]
    refresh("quorum")
    assert statuses()[3] == "In sync"


def test_status__after_a_change_of_the_leader__is_unknown_until_the_node_was_heard_or_15_seconds_passed(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.voters, kafka.observers = [heard(1, clock), heard(2, clock), heard(3, clock)], []
    refresh("quorum")
    clock.pass_by(10)
    kafka.leader, kafka.leader_epoch = 2, 4
    kafka.voters = [unheard(1), heard(2, clock), heard(3, clock)]
    refresh("quorum")
    assert statuses() == {1: "Unknown", 2: "Leader", 3: "In sync"}
    clock.pass_by(16)
    kafka.voters = [unheard(1), heard(2, clock), heard(3, clock)]
    refresh("quorum")
    assert statuses() == {1: "Offline", 2: "Leader", 3: "In sync"}
    history = QuorumSnapshot.objects.order_by("pk").values_list("leader_id", "leader_epoch")
    assert list(history) == [(1, 3), (2, 4), (2, 4)]


def test_status__static_voters__are_the_same_before_and_after_their_directory_ids_are_known(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    """A new leader learns the directory ids of static voters only when they fetch from it."""
    kafka.voters, kafka.observers = [heard(1, clock), heard(2, clock), heard(3, clock)], []
    refresh("quorum")
    clock.pass_by(10)
    kafka.leader, kafka.leader_epoch = 2, 4
    kafka.voters = [QuorumReplica(1, "", None, None, None), heard(2, clock), heard(3, clock)]
    refresh("quorum")
    assert statuses() == {1: "Unknown", 2: "Leader", 3: "In sync"}
    clock.pass_by(10)
    kafka.voters = [heard(1, clock), heard(2, clock), heard(3, clock)]
    refresh("quorum")
    rows = QuorumReplicaState.objects.order_by("node_id").values_list("node_id", "directory_id", "status")
    assert list(rows) == [(1, "d1", "In sync"), (2, "d2", "Leader"), (3, "d3", "In sync")]


def test_status__a_voter_with_a_new_directory__is_another_one(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.voters, kafka.observers = [heard(1, clock), heard(2, clock)], []
    refresh("quorum")
    clock.pass_by(10)
    kafka.voters = [heard(1, clock), QuorumReplica(2, "fresh", None, None, None)]
    refresh("quorum")
    rows = QuorumReplicaState.objects.filter(node_id=2).values_list("directory_id", "status")
    assert dict(rows)["d2"] == "Gone"
    assert set(dict(rows)) == {"d2", "fresh"}


@pytest.mark.parametrize("offset_ms", [-HOUR_MS, HOUR_MS])
def test_status__clocks_an_hour_apart__is_judged_on_the_leaders_alone(
    offset_ms: int, kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.voters = [
        heard(1, clock, offset_ms=offset_ms),
        heard(2, clock, behind_ms=300, offset_ms=offset_ms),
        heard(3, clock, behind_ms=301_000, offset_ms=offset_ms),
    ]
    kafka.observers = []
    refresh("quorum")
    assert statuses() == {1: "Leader", 2: "In sync", 3: "Offline"}
    assert QuorumSnapshot.objects.get().taken_at.timestamp() == pytest.approx(clock.now)
