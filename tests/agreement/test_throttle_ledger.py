"""Throttles of a run on real Kafka: set beside what others set, and taken away so that Kafka's own tool prints what it
printed before.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.execution.engine.step import StepThrottles
from kafkadash.execution.engine.throttle_ledger import LedgerState
from kafkadash.kafka.api import WholeClient
from kafkadash.kafka.connect import admin_for, own_admin
from tests.agreement.conftest import TopicMaker
from tests.agreement.runs import broker_hung, broker_killed
from tests.agreement.tools import Tools
from tests.execution.ledger_run import FOLLOWER_LIST, LEADER_LIST, LedgerRun, pairs_of
from tests.kafka_releases import has_quorum
from tests.waiting import wait_until

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
OURS = 20_000_000
Printed = dict[str, dict[str, dict[str, tuple[str, str]]]]


class RealRun(LedgerRun):
    """On the real cluster and its clock."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.client = admin_for(cluster.connection())

    def steps(self) -> None:
        """One, and as many as it takes to see what it did."""
        for _ in range(60):
            self.now = datetime.now(UTC)
            self.step()
            if all(entry.state is LedgerState.SET for entry in self.rows.values()):
                return
        raise AssertionError(self.rows)

    def until(self, happened: Callable[[], bool], what: str) -> None:
        def tried() -> bool:
            self.now = datetime.now(UTC)
            self.step()
            return happened()

        # A throttle that vanished is set again once a minute at most, so an end may take longer than that.
        wait_until(tried, what, 100)

    def clears(self) -> None:
        self.want = StepThrottles()
        self.until(lambda: not self.rows, "nothing is left to be looked after")


@pytest.fixture
def run(cluster: Cluster) -> RealRun:
    return RealRun(cluster)


@pytest.fixture
def theirs(tools: Tools) -> Iterator[Callable[..., None]]:
    """Sets configs of others; underscores in the names stand for dots. Taken back when the test ends."""
    done: dict[str | int | None, set[str]] = {}

    def change(owner: str | int | None, **configs: str) -> None:
        done.setdefault(owner, set()).update(name.replace("_", ".") for name in configs)
        tools.set_config(owner, **configs)

    yield change
    for owner, names in done.items():
        left = set(tools.dynamic_configs("topics" if isinstance(owner, str) else "brokers").get(str(owner or ""), {}))
        if names & left:
            tools.delete_config(owner, *sorted(names & left))


def printed(tools: Tools) -> Printed:
    """All that is set on topics and brokers, as Kafka's own tool says."""
    return {kind: {n: own for n, own in tools.dynamic_configs(kind).items() if own} for kind in ("topics", "brokers")}


def prints_again(tools: Tools, before: Printed) -> None:
    """Kafka's tool prints what it printed before; says what differs if it does not within seconds."""

    def differences() -> list[tuple[str, object, object]]:
        now = printed(tools)
        owners = [(kind, owner) for kind in now for owner in now[kind].keys() | before[kind].keys()]
        both = [(owner, before[kind].get(owner), now[kind].get(owner)) for kind, owner in owners]
        return [(owner, was, is_) for owner, was, is_ in both if was != is_]

    with contextlib.suppress(AssertionError):
        wait_until(lambda: not differences(), "it is printed", 10)
    assert differences() == []


def wants(run: RealRun, topic: str, rate: int = OURS) -> None:
    run.wants({topic: pairs_of([(0, 1), (0, 2), (0, 3)])}, (1, 2, 3), rate)


def value(tools: Tools, owner: str | int, key: str) -> str | None:
    return tools.configs(owner).get(key, (None, ""))[0]


def all_apply(tools: Tools, rate: int) -> None:
    """Each broker applies the rate in both directions, which beside ZooKeeper is later than Kafka accepts it."""
    rates = [(broker, key) for broker in (1, 2, 3) for key in (LEADER_RATE, FOLLOWER_RATE)]
    wait_until(lambda: {value(tools, broker, key) for broker, key in rates} == {str(rate)}, "brokers apply it", 10)


def test_nothing_was_set(run: RealRun, make_topic: TopicMaker, tools: Tools) -> None:
    topic = make_topic([[1, 2]])
    before = printed(tools)
    wants(run, topic)
    run.steps()
    wait_until(lambda: value(tools, topic, LEADER_LIST) == "0:1,0:2,0:3", "the list is set", 10)
    all_apply(tools, OURS)
    wants(run, topic, 2 * OURS)
    run.steps()
    wait_until(lambda: value(tools, 3, FOLLOWER_RATE) == str(2 * OURS), "the rate is raised", 10)
    run.clears()
    prints_again(tools, before)


@pytest.mark.parametrize("set_before", ["7:1,0:2,8:3", "*"])
def test_others_had_set_something(
    run: RealRun, make_topic: TopicMaker, tools: Tools, theirs: Callable[..., None], set_before: str
) -> None:
    topic = make_topic([[1, 2]])
    theirs(topic, leader_replication_throttled_replicas=set_before)
    theirs(1, leader_replication_throttled_rate="3000003")
    theirs(2, leader_replication_throttled_rate=str(OURS))
    theirs(None, follower_replication_throttled_rate="4000004")
    before = printed(tools)
    text = tools.run("configs", "--describe", "--entity-type", "topics", "--entity-name", topic)
    wants(run, topic)
    run.steps()
    both = "*" if set_before == "*" else "7:1,0:2,8:3,0:1,0:3"
    wait_until(lambda: value(tools, topic, LEADER_LIST) == both, "ours beside theirs", 10)
    all_apply(tools, OURS)
    run.clears()
    prints_again(tools, before)
    assert tools.run("configs", "--describe", "--entity-type", "topics", "--entity-name", topic) == text


def test_an_empty_list_that_was_set_stays_set(
    run: RealRun, make_topic: TopicMaker, tools: Tools, theirs: Callable[..., None]
) -> None:
    topic = make_topic([[1, 2]])
    theirs(topic, leader_replication_throttled_replicas="0:1")
    tools.run(
        "configs", "--alter", "--entity-type", "topics", "--entity-name", topic,
        "--add-config", f"{LEADER_LIST}=[]",
    )  # fmt: skip
    wait_until(lambda: value(tools, topic, LEADER_LIST) == "", "the list is set, and empty", 10)
    before = printed(tools)
    wants(run, topic)
    run.steps()
    run.clears()
    prints_again(tools, before)


def test_another_rate_set_meanwhile_is_shown_and_left(
    run: RealRun, make_topic: TopicMaker, tools: Tools, theirs: Callable[..., None]
) -> None:
    topic = make_topic([[1, 2]])
    wants(run, topic)
    run.steps()
    theirs(2, leader_replication_throttled_rate="5000005")
    run.until(lambda: bool(run.execution.foreign), "the other rate is noticed")
    [foreign] = run.execution.foreign
    assert (foreign["name"], foreign["key"]) == ("2", LEADER_RATE)
    assert (foreign["value"], foreign["ours"]) == ("5000005", str(OURS))
    wants(run, topic, 2 * OURS)
    run.until(lambda: value(tools, 1, LEADER_RATE) == str(2 * OURS), "the others are adjusted")
    assert value(tools, 2, LEADER_RATE) == "5000005"
    run.clears()
    wait_until(lambda: value(tools, 1, LEADER_RATE) is None, "ours is gone", 10)
    assert value(tools, 2, LEADER_RATE) == "5000005"
    wait_until(lambda: value(tools, 2, FOLLOWER_RATE) is None, "ours is cleared", 10)


@pytest.mark.parametrize("option", ["--verify", "--cancel"])
def test_kafkas_own_tool_clears_ours_in_the_middle(
    run: RealRun, make_topic: TopicMaker, tools: Tools, tmp_path: Path, option: str
) -> None:
    topic = make_topic([[1, 2]])
    before = printed(tools)
    wants(run, topic)
    run.steps()
    wait_until(lambda: value(tools, 1, LEADER_RATE) == str(OURS), "ours is set", 10)
    plan = tmp_path / "plan.json"
    row = {"topic": topic, "partition": 0, "replicas": [1, 2]}
    plan.write_text(json.dumps({"version": 1, "partitions": [row]}), encoding="utf-8")
    tools.run("reassign", "--reassignment-json-file", str(plan), option)
    wait_until(lambda: value(tools, 1, LEADER_RATE) is None, "Kafka's tool has cleared it", 10)
    run.until(lambda: "throttle_vanished" in run.found, "it is noticed")
    run.until(lambda: value(tools, 1, LEADER_RATE) == str(OURS), "it is set again")
    wait_until(lambda: value(tools, topic, FOLLOWER_LIST) == "0:1,0:2,0:3", "and so are the lists", 10)
    run.clears()
    prints_again(tools, before)


def test_a_broker_away_is_owed_and_cleared_when_it_is_back(
    run: RealRun, cluster: Cluster, make_topic: TopicMaker, tools: Tools, playground: KafkaPlayground
) -> None:
    topic = make_topic([[1, 2]])
    before = printed(tools)
    wants(run, topic)
    run.steps()
    # With ZooKeeper it is owed nothing: its rate goes from its znode, which it reads when it starts.
    away = broker_hung if has_quorum() else broker_killed
    owed = {("3", LedgerState.OBLIGED)} if has_quorum() else set()
    with away(playground, tools, 3), client_of_the_others(cluster, playground) as run.client:
        run.store.away = {3}
        run.want = StepThrottles()
        run.until(
            lambda: {(entry.place.name, entry.state) for entry in run.rows.values()} == owed, "only broker 3 is owed"
        )
        assert all(entry.reason for entry in run.rows.values())
    wait_until(tools.in_sync, "every replica is in sync again", 60)
    run.client = admin_for(cluster.connection())
    run.store.away = set()
    run.clears()
    prints_again(tools, before)


def client_of_the_others(cluster: Cluster, playground: KafkaPlayground) -> AbstractContextManager[WholeClient]:
    """Knows the brokers that Kafka's tools are told of while one hangs: that one gets no change that it makes later."""
    others = tuple(playground.bootstrap.split(","))
    return own_admin(replace(cluster.connection(), bootstrap_servers=others))
