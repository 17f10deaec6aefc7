"""Elections of the product on real Kafka, and what Kafka's own tools say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from unittest import mock

import pytest
from confluent_kafka import Producer

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster, Role
from kafkadash.devtools.embedded.ports import LOOPBACK
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.elections.kind import KIND, plan_elections
from kafkadash.elections.unclean import KIND as UNCLEAN
from kafkadash.elections.unclean import count_lost, plan_unclean
from kafkadash.kafka.api import TopicPartition
from kafkadash.kafka.connect import admin_for
from kafkadash.monitoring.eligible_replicas import load_candidates
from kafkadash.monitoring.models import CollectorKind, TopicState
from kafkadash.short_runs.plans import plan_draft
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.runs import READ
from tests.agreement.short_runs import DEADLINE_S, queue, step_until
from tests.agreement.tools import LATEST, Tools
from tests.frozen_nodes import alive_by, freeze_nodes, thaw_nodes
from tests.waiting import wait_until


@pytest.fixture
def misled(cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools) -> Callable[[], str]:
    """Make and read a topic whose replicas were reordered: broker 1 leads both, 2 and 3 are preferred."""

    def make() -> str:
        topic = make_topic([[1, 2, 3], [1, 3, 2]])
        targets = {TopicPartition(topic, 0): (2, 1, 3), TopicPartition(topic, 1): (3, 1, 2)}
        changed = admin_for(cluster.connection()).alter_reassignments(targets, deadline=10, keep_factor=True)
        assert changed.done == set(targets)
        wait_until(lambda: replicas(tools, topic) == {0: (2, 1, 3), 1: (3, 1, 2)}, "brokers tell the order", DEADLINE_S)
        assert leaders(tools, topic) == {0: 1, 1: 1}
        for kind in READ:
            refresh(kind)
        return topic

    return make


def leaders(tools: Tools, topic: str) -> Mapping[int, int | None]:
    return {number: p.leader for number, p in tools.topics("--topic", topic)[topic].partitions.items()}


def replicas(tools: Tools, topic: str) -> Mapping[int, tuple[int, ...]]:
    return {number: tuple(p.replicas) for number, p in tools.topics("--topic", topic)[topic].partitions.items()}


def test_election__leads_as_kafkas_tools_say(
    cluster: Cluster, refresh: Refresher, tools: Tools, operator: User, misled: Callable[[], str]
) -> None:
    topic = misled()
    run = step_until(queue(cluster, KIND, {"topic": topic}, operator), RequestState.DONE)
    assert run is not None
    assert (run.outcome, run.counts) == ("clean", {"done": 2})
    assert dict(run.rows.values_list("subject", "before")) == {f"{topic}-{n}": {"leader": 1} for n in (0, 1)}
    assert leaders(tools, topic) == {0: 2, 1: 3}
    refresh(CollectorKind.METADATA)
    assert plan_elections(cluster, {"topic": topic}).items == []


def test_election__kafkas_tool_was_quicker__sends_nothing(
    cluster: Cluster, tools: Tools, operator: User, misled: Callable[[], str]
) -> None:
    topic = misled()
    change = queue(cluster, KIND, {"topic": topic}, operator)
    tools.run("leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "0")
    wait_until(lambda: leaders(tools, topic) == {0: 2, 1: 1}, "the tool's election is seen", DEADLINE_S)
    run = step_until(change, RequestState.DONE)
    assert run is not None
    assert dict(run.rows.values_list("subject", "state")) == {f"{topic}-0": "unchanged", f"{topic}-1": "done"}
    assert leaders(tools, topic) == {0: 2, 1: 3}


def test_election__of_a_topic_that_was_deleted__turns_stale(
    cluster: Cluster, tools: Tools, operator: User, misled: Callable[[], str]
) -> None:
    topic = misled()
    change = queue(cluster, KIND, {"topic": topic}, operator)
    tools.run("topics", "--delete", "--topic", topic)
    wait_until(lambda: topic not in tools.topic_names(), "the topic is deleted", DEADLINE_S)
    assert step_until(change, RequestState.STALE) is None


@pytest.mark.long
def test_unclean_election__leads_and_loses_as_foretold_and_as_kafkas_tool_does(
    cluster: Cluster,
    refresh: Refresher,
    make_topic: TopicMaker,
    playground: KafkaPlayground,
    tools: Tools,
    operator: User,
    make_user: Callable[..., User],
) -> None:
    ours, theirs = make_topic([[3, 1]]), make_topic([[3, 1]])
    write(playground, (ours, theirs), 3)
    wait_until(lambda: tools.offset(1, ours, LATEST) == tools.offset(1, theirs, LATEST) == 3, "both are copied", 20)
    refresh(CollectorKind.METADATA)
    with leader_lost_behind_a_late_follower(playground, lambda: write_alone(refresh, playground, (ours, theirs))):
        wait_until(lambda: leaders(tools, ours) == leaders(tools, theirs) == {0: None}, "nobody leads", 30)
        for kind in (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS):
            refresh(kind)
        topic_id = TopicState.objects.get(cluster=cluster, name=ours).topic_id
        stored = load_candidates(cluster, [topic_id])[topic_id, 0]
        kept = ((3,), (3,)) if tools.keeps_eligible() else ((), ())
        told = tools.eligible(ours).get(0, ((), ()))
        assert told == (stored.eligible or (), stored.last_known or ()) == kept
        assert {broker: end for broker, (end, _) in stored.ends.items()} == {1: 3}
        [item] = plan_unclean(cluster, {"topic": ours}).items
        assert (item.content["choice"], count_lost(item.content["leader_end"], 3)) == (1, 5)
        draft = plan_draft(
            services.create_draft(cluster, UNCLEAN, operator, title="Lead", input={"topic": ours}, options={})
        )
        change = services.submit(draft, operator, why="The disks are lost.", version=draft.version)
        for name in ("ann", "ben"):
            change = services.approve(change, make_user(name, Role.APPROVER), change.digest)
        run = step_until(services.start(change, operator, "Now."), RequestState.DONE)
        assert run is not None
        assert (run.outcome, run.counts) == ("clean", {"done": 1})
        tools.run("leader-election", "--election-type", "unclean", "--topic", theirs, "--partition", "0")
        wait_until(lambda: leaders(tools, theirs) == {0: 1}, "the tool's election is seen", DEADLINE_S)
        assert tools.topics("--topic", ours)[ours].partitions == tools.topics("--topic", theirs)[theirs].partitions
        assert tools.eligible(ours) == tools.eligible(theirs)
        assert tools.offset(1, ours, LATEST) == tools.offset(1, theirs, LATEST) == 3
    wait_until(tools.in_sync, "every replica is in sync again", 60)
    assert tools.offset(3, ours, LATEST) == 3, "what only broker 3 had is lost"


@contextmanager
def leader_lost_behind_a_late_follower(playground: KafkaPlayground, meanwhile: Callable[[], None]) -> Iterator[None]:
    """Broker 1 stands still while ``meanwhile`` is done; then it goes on and broker 3 stands still instead."""
    addresses = {node.node_id: f"{LOOPBACK}:{node.broker_port}" for node in playground.cluster.brokers}

    def is_seen(*alive: int) -> None:
        wait_until(lambda: alive_by(addresses[2]) == sorted(alive), f"brokers {alive} are alive", 60)

    with mock.patch.object(KafkaPlayground, "bootstrap", addresses[2]):
        try:
            freeze_nodes(playground, 1)
            is_seen(2, 3)
            meanwhile()
            freeze_nodes(playground, 3)
            is_seen(2)
            thaw_nodes(playground, 1)
            is_seen(1, 2)
            yield
        finally:
            thaw_nodes(playground, 1, 3)
            is_seen(1, 2, 3)


def write(playground: KafkaPlayground, topics: Sequence[str], records: int) -> None:
    producer = Producer({"bootstrap.servers": playground.bootstrap, "acks": "all"})
    for topic in topics:
        for number in range(records):
            producer.produce(topic, b"x", partition=0, key=str(number).encode())
    assert producer.flush(30) == 0


def write_alone(refresh: Refresher, playground: KafkaPlayground, topics: Sequence[str]) -> None:
    """Broker 3 alone gets five records of each, and tells its ends."""
    write(playground, topics, 5)
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.TRAFFIC)
