"""Controllers that hang, die and come back: what is stored, what the page says. After each test all run again."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest
from django.test import Client
from pytest_django import Settings

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.core.failures import NO_CONTROLLER_FAILURES, QUORUM_FAILURES
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.monitoring import collection
from kafkadash.monitoring.freshness import QuorumSeen, newest_quorums
from kafkadash.monitoring.models import CollectorKind, CollectorRun, QuorumReplicaState, QuorumSnapshot
from kafkadash.monitoring.quorum.rules import NodeStatus
from tests.agreement.conftest import Mover, TopicMaker
from tests.agreement.runs import SLOW
from tests.agreement.test_reassignments_and_verify import stored_moves
from tests.agreement.tools import Tools
from tests.frozen_nodes import fenced_broker, freeze_nodes, frozen_nodes, thaw_nodes
from tests.pages.conftest import Page
from tests.waiting import wait_until

pytestmark = pytest.mark.quorum
BROKERS = (1, 2, 3)
CHANGE_S = 20.0
"""A new leader is there in a few seconds; on a busy machine in more. Minutes would be wrong."""


@pytest.fixture(autouse=True)
def mended(playground: KafkaPlayground, tools: Tools) -> Iterator[None]:
    """Everything runs again, and is in sync, before the next test."""
    yield
    for node in playground.status():
        if node.pid is not None:
            thaw_nodes(playground, node.node_id)
        else:
            restart = playground.start_broker if node.broker_port else playground.start_controller
            restart(node.node_id)
    wait_until(lambda: not any(map(tools.fenced, BROKERS)) and tools.in_sync(), "every replica is in sync again", 60)


@pytest.fixture
def open_page(cluster: Cluster, viewer: User, client_of: Callable[[User], Client]) -> Callable[[], Page]:
    client = client_of(viewer)
    return lambda: Page(client.get(f"/clusters/{cluster.slug}/quorum/").content.decode())


@pytest.fixture
def look(cluster: Cluster, settings: Settings) -> Callable[[CollectorKind], str]:
    """Collects one kind now and returns what went wrong, or ''. A silent cluster is not waited for long."""
    settings.KAFKA_DEADLINE = 3.0

    def collect(kind: CollectorKind) -> str:
        run = CollectorRun.objects.get(cluster=cluster, kind=kind)
        result = collection.refresh(run.pk, only_if_due=False)
        assert result is not None
        return str(result.error or "")

    return collect


def seen(cluster: Cluster) -> QuorumSeen:
    return newest_quorums([cluster.pk])[cluster.pk]


def statuses(cluster: Cluster) -> dict[int, str]:
    judged = seen(cluster).quorum
    return {s.node.id: s.status.value for s in (*judged.voters, *judged.observers)}


def all_in_sync(cluster: Cluster, look: Callable[[CollectorKind], str], nodes: int = 6) -> bool:
    if look(CollectorKind.QUORUM):
        return False
    said = statuses(cluster)
    return len(said) == nodes and set(said.values()) == {"Leader", "In sync"}


@pytest.mark.long
def test_a_follower_that_hangs__its_lag_and_stamps__equal_describe_replication_and_it_heals(
    playground: KafkaPlayground,
    cluster: Cluster,
    look: Callable[[CollectorKind], str],
    tools: Tools,
    open_page: Callable[[], Page],
) -> None:
    look(CollectorKind.METADATA)
    wait_until(lambda: all_in_sync(cluster, look), "all are in sync", 60)
    assert seen(cluster).quorum.survives == 1
    leader = seen(cluster).snapshot.leader_id
    victim = next(node.node_id for node in playground.cluster.controllers if node.node_id != leader)
    with frozen_nodes(playground, victim):
        wait_until(
            lambda: not look(CollectorKind.QUORUM) and statuses(cluster)[victim] == NodeStatus.LAGGING,
            "the one that hangs lags",
            30,
        )
        assert seen(cluster).quorum.survives == 0
        assert f"{victim} follower Lagging" in open_page().words("nodes-real")

        before = tools.quorum_replication()
        assert look(CollectorKind.QUORUM) == ""
        after = tools.quorum_replication()
        stored = {row["id"]: row for row in QuorumSnapshot.objects.filter(cluster=cluster).latest("taken_at").replicas}
        assert before.keys() == after.keys() == stored.keys()
        for node, row in stored.items():
            assert before[node].log_end <= row["log_end_offset"] <= after[node].log_end
            assert row["voter"] is (before[node].role != "Observer")
            assert row["directory_id"] == before[node].directory_id
        # Of one that does not fetch any more the stamps stand still: there the figures are the very same.
        assert stored[victim]["log_end_offset"] == before[victim].log_end
        assert stored[victim]["last_fetch_ms"] == before[victim].last_fetch_ms
        assert stored[victim]["last_caught_up_ms"] == before[victim].last_caught_up_ms
        judged = {s.node.id: s for s in seen(cluster).quorum.voters}[victim]
        assert judged.lag_records is not None
        assert before[victim].lag <= judged.lag_records <= after[victim].lag
        assert judged.lag_ms is not None
        least = before[leader].last_caught_up_ms - before[victim].last_caught_up_ms
        most = after[leader].last_caught_up_ms - after[victim].last_caught_up_ms
        assert least <= judged.lag_ms <= most

    wait_until(lambda: all_in_sync(cluster, look), "it is in sync again", 60)
    assert seen(cluster).quorum.survives == 1
    kept = QuorumReplicaState.objects.get(cluster=cluster, node_id=victim)
    assert kept.status == NodeStatus.IN_SYNC
    assert kept.changed_at > kept.first_seen_at


def test_the_active_controller_killed__a_leader_change_within_seconds_and_never_minutes_of_lag(
    playground: KafkaPlayground,
    cluster: Cluster,
    look: Callable[[CollectorKind], str],
    tools: Tools,
    open_page: Callable[[], Page],
    make_topic: TopicMaker,
    mover: Mover,
) -> None:
    look(CollectorKind.METADATA)
    wait_until(lambda: all_in_sync(cluster, look), "all are in sync", 60)
    first = seen(cluster).snapshot
    # A new leader starts with an empty list of observers: the broker that is away then is not in it.
    away = 2
    mover.start(make_topic([[1, 3]], mib=4), [away, 3], throttle=SLOW)
    with fenced_broker(playground, away):
        playground.kill_controller(first.leader_id)
        killed_at = time.monotonic()
        worst_ms: list[int] = []

        def another_leads() -> bool:
            if look(CollectorKind.QUORUM):
                return False
            judged = seen(cluster)
            alive = [s for s in (*judged.quorum.voters, *judged.quorum.observers) if s.node.id != first.leader_id]
            worst_ms.extend(s.lag_ms for s in alive if s.lag_ms is not None and s.node.id != away)
            return judged.snapshot.leader_id != first.leader_id

        wait_until(another_leads, "another controller leads", CHANGE_S)
        assert time.monotonic() - killed_at < CHANGE_S
        wait_until(
            lambda: (
                another_leads()
                and NodeStatus.UNKNOWN not in {statuses(cluster)[n] for n in voters_alive(playground)}
                and observers(seen(cluster).snapshot) == set(BROKERS) - {away}
            ),
            "the voters and brokers that live are heard of",
            30,
        )
        # The followers stand still for as long as nobody leads, and are behind by no more than that.
        assert max(worst_ms) < CHANGE_S * 1000

        now = seen(cluster).snapshot
        status = tools.quorum_status()
        assert (now.leader_id, now.leader_epoch) == (status.leader_id, status.leader_epoch)
        assert now.leader_epoch > first.leader_epoch
        assert observers(now) == {id_ for id_, _ in status.observers}
        shown = open_page()
        assert f"Controller {now.leader_id} has led since" in shown.text
        assert re.search(
            rf"{now.leader_id} leads, epoch {now.leader_epoch} after {first.leader_id}", shown.words("leaders-real")
        )
        assert "or earlier" not in shown.words("controllers-real")
        assert f"{first.leader_id} → {now.leader_id}, epoch {now.leader_epoch}" in shown.words("lag-real")

        look(CollectorKind.METADATA)
        assert away not in {id_ for id_, _ in status.observers}
        assert QuorumReplicaState.objects.get(cluster=cluster, node_id=away).status == "Gone"
        assert f"{away} observer Not listed b" in open_page().words("nodes-real")

        assert look(CollectorKind.REASSIGNMENTS) == ""
        moves = stored_moves(cluster)
        assert [move.adding for move in moves] == [(away,)]
        assert moves == tools.moves()


@pytest.mark.long
def test_the_majority_hangs__a_state_of_its_own_while_brokers_answer__and_it_heals(
    playground: KafkaPlayground,
    cluster: Cluster,
    look: Callable[[CollectorKind], str],
    tools: Tools,
    open_page: Callable[[], Page],
) -> None:
    look(CollectorKind.METADATA)
    wait_until(lambda: all_in_sync(cluster, look), "all are in sync", 60)
    known = seen(cluster).snapshot
    majority = [node.node_id for node in playground.cluster.controllers][:2]
    freeze_nodes(playground, *majority)
    # The one that is left may still believe for a while that it leads.
    wait_until(
        lambda: look(CollectorKind.QUORUM) and look(CollectorKind.QUORUM), "the controllers do not answer any more", 60
    )

    assert look(CollectorKind.METADATA) == ""
    shown = open_page()
    failed = CollectorRun.objects.get(cluster=cluster, kind=CollectorKind.QUORUM)
    assert failed.last_failure in NO_CONTROLLER_FAILURES
    assert failed.failures >= QUORUM_FAILURES
    assert 'data-state="critical"' in shown.start_tag("controllers-real")
    last = QuorumSnapshot.objects.filter(cluster=cluster).latest("taken_at")
    assert f"epoch {last.leader_epoch}" in shown.text
    assert last.leader_epoch >= known.leader_epoch
    assert 'data-state="ok"' not in shown.part("nodes-real")

    thaw_nodes(playground, *majority)
    wait_until(lambda: all_in_sync(cluster, look), "the quorum is healthy again", 60)
    status = tools.quorum_status()
    again = seen(cluster).snapshot
    assert (again.leader_id, again.leader_epoch) == (status.leader_id, status.leader_epoch)
    assert seen(cluster).quorum.survives == 1


def observers(snapshot: QuorumSnapshot) -> set[int]:
    return {row["id"] for row in snapshot.replicas if not row["voter"]}


def voters_alive(playground: KafkaPlayground) -> list[int]:
    return [n.node_id for n in playground.status() if n.controller_port and not n.broker_port and n.pid is not None]
