"""Configs and throttles as stored, against ``kafka-configs``: value and source, of topics, brokers and the default."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import BrokerState, ConfigSource, Kind, ThrottleState, TopicState
from tests.agreement.conftest import Mover, Refresher, TopicMaker
from tests.agreement.tools import DEFAULT, Tools
from tests.waiting import wait_until

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_LIST, FOLLOWER_LIST = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
OUR_WORDS = {
    "DYNAMIC_TOPIC_CONFIG": ConfigSource.TOPIC,
    "DYNAMIC_BROKER_CONFIG": ConfigSource.BROKER,
    "DYNAMIC_DEFAULT_BROKER_CONFIG": ConfigSource.CLUSTER_DEFAULT,
    "STATIC_BROKER_CONFIG": ConfigSource.STATIC,
}
Owner = str | int | None
Throttles = dict[tuple[str, str, str], tuple[str, str]]


@pytest.fixture
def set_config(tools: Tools) -> Iterator[Callable[..., None]]:
    """Taken back when the test ends. Underscores in the names stand for dots."""
    done: dict[Owner, set[str]] = {}

    def change(owner: Owner, **configs: str) -> None:
        done.setdefault(owner, set()).update(name.replace("_", ".") for name in configs)
        tools.set_config(owner, **configs)

    yield change
    for owner, names in done.items():
        tools.delete_config(owner, *sorted(names))


def test_configs__of_topics_and_brokers__equal_describe(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, set_config: Callable[..., None]
) -> None:
    plain, own = make_topic([[1, 2, 3]]), make_topic([[2, 3]])
    set_config(own, min_insync_replicas="2", cleanup_policy="compact,delete")
    set_config(2, num_io_threads="3")
    refresh(Kind.METADATA)
    refresh(Kind.CONFIGS)
    topics = {row.name: row for row in TopicState.objects.filter(cluster=cluster)}
    for name in (plain, own):
        printed = tools.configs(name)
        assert topics[name].config == not_default(printed)
        assert str(topics[name].min_isr) == printed["min.insync.replicas"][0]
    assert (topics[own].config or {})["cleanup.policy"] == ["compact,delete", "topic"]
    brokers = {row.broker_id: row.config or {} for row in BrokerState.objects.filter(cluster=cluster)}
    assert brokers == {broker: not_default(tools.configs(broker)) for broker in (1, 2, 3)}
    assert brokers[1]["broker.rack"] == ["a", "static"]
    assert brokers[2]["num.io.threads"] == ["3", "broker"]


def test_throttles__set_by_kafkas_tool__appear_with_value_and_source_and_vanish(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, set_config: Callable[..., None]
) -> None:
    topic = make_topic([[1, 2]])
    refresh(Kind.METADATA)
    refresh(Kind.CONFIGS)
    assert stored(cluster) == described(tools) == {}

    set_config(topic, leader_replication_throttled_replicas="0:1,0:2", follower_replication_throttled_replicas="*")
    set_config(1, leader_replication_throttled_rate="1000001")
    set_config(None, follower_replication_throttled_rate="2000002")
    refresh(Kind.CONFIGS)
    assert stored(cluster) == described(tools)
    assert stored(cluster) == {
        ("topic", topic, LEADER_LIST): ("0:1,0:2", "topic"),
        ("topic", topic, FOLLOWER_LIST): ("*", "topic"),
        ("broker", "1", LEADER_RATE): ("1000001", "broker"),
        ("cluster", "", FOLLOWER_RATE): ("2000002", "cluster_default"),
    }

    tools.delete_config(topic, FOLLOWER_LIST)
    tools.set_config(1, leader_replication_throttled_rate="3000003")
    refresh(Kind.CONFIGS)
    assert stored(cluster) == described(tools)
    assert ("topic", topic, FOLLOWER_LIST) not in stored(cluster)
    assert stored(cluster)["broker", "1", LEADER_RATE] == ("3000003", "broker")


def test_throttles__of_a_move_by_kafkas_tool__are_needed_while_it_runs_and_orphans_after_it(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    topic = make_topic([[1, 2]], mib=4)
    refresh(Kind.METADATA)
    mover.start(topic, [3, 2], throttle=200_000)
    for _ in range(3):
        refresh(Kind.CONFIGS)
    assert stored(cluster) == described(tools)
    assert len(stored(cluster)) >= 8
    assert not ThrottleState.objects.filter(cluster=cluster, orphan=True).exists()

    mover.let_go(topic)
    wait_until(lambda: tools.replicas(topic) == (3, 2), "the move is over", 30)
    refresh(Kind.CONFIGS)
    refresh(Kind.CONFIGS)
    rows = ThrottleState.objects.filter(cluster=cluster)
    assert rows.filter(orphan=True).count() == rows.count() == len(described(tools))

    mover.cancel(topic)
    wait_until(lambda: described(tools) == {}, "Kafka's tool has taken its throttles away", 20)
    refresh(Kind.CONFIGS)
    assert stored(cluster) == {}


def not_default(printed: dict[str, tuple[str | None, str]]) -> dict[str, list[str | None]]:
    return {name: [value, OUR_WORDS[source]] for name, (value, source) in printed.items() if source != DEFAULT}


def stored(cluster: Cluster) -> Throttles:
    rows = ThrottleState.objects.filter(cluster=cluster)
    return {(row.resource, row.name, row.key): (row.value, row.source) for row in rows}


def described(tools: Tools) -> Throttles:
    """What Kafka's tool says is set: on topics, on brokers and for all of them."""
    found: Throttles = {}
    for topic, configs in tools.dynamic_configs("topics").items():
        found.update({("topic", topic, key): _in_our_words(value) for key, value in configs.items()})
    for broker, configs in tools.dynamic_configs("brokers").items():
        for key, value in configs.items():
            kind = "broker" if broker else "cluster"
            if value[1] != "DYNAMIC_DEFAULT_BROKER_CONFIG" or kind == "cluster":
                found[kind, broker, key] = _in_our_words(value)
    return {key: value for key, value in found.items() if ".replication.throttled." in key[2]}


def _in_our_words(told: tuple[str, str]) -> tuple[str, str]:
    return told[0], OUR_WORDS[told[1]]
