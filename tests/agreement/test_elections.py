"""Elections of the product on real Kafka, and what Kafka's own tools say of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.elections.kind import KIND, plan_elections
from kafkadash.kafka.api import TopicPartition
from kafkadash.kafka.connect import admin_for
from kafkadash.monitoring.models import CollectorKind
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.runs import READ
from tests.agreement.short_runs import DEADLINE_S, queue, step_until
from tests.agreement.tools import Tools
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
    wait_until(lambda: topic not in tools.topics(), "the topic is deleted", DEADLINE_S)
    assert step_until(change, RequestState.STALE) is None
