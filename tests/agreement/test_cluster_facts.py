"""The cluster and its brokers as stored, against ``kafka-cluster``.

Topics as stored, against ``kafka-topics --describe``.

Configs and throttles as stored, against ``kafka-configs``: value and source, of topics, brokers and the default.

Sizes of replicas as stored, against ``kafka-log-dirs``.

The controller quorum as stored, against ``kafka-metadata-quorum``.

The figures in the pages' HTML, against Kafka's own tools and raw reads of the replicas' log ends.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from django.core.management import call_command
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.monitoring.drift import list_features
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    Capabilities,
    ClusterState,
    CollectorKind,
    ConfigDrift,
    ConfigSource,
    LogEndWindow,
    QuorumSnapshot,
    ThrottleState,
    TopicState,
    TopicTraffic,
    ZooKeeperState,
)
from kafkadash.monitoring.partitions import two_digits
from kafkadash.monitoring.traffic.rules import shard_of
from tests.agreement.conftest import Mover, Refresher, TopicMaker
from tests.agreement.runs import HELD_MIB, SLOW
from tests.agreement.tools import DEFAULT, EARLIEST, LATEST, DescribedPartition, DescribedTopic, Tools
from tests.kafka_releases import has_quorum
from tests.metrics.scraped import scrape_page
from tests.waiting import wait_until

RELEASE_LEVELS = {"3.9-IV0": 21, "4.0-IV3": 25, "4.3-IV0": 30, "4.4-IV0": 31, "4.4-IV1": 32, "4.4-IV2": 33}
"""Levels of metadata.version by release (class org.apache.kafka.server.common.MetadataVersion)."""


def test_cluster__id_and_brokers__equal_what_kafka_cluster_prints(
    cluster: Cluster, refresh: Refresher, tools: Tools
) -> None:
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.VERSIONS)
    cluster.refresh_from_db()
    assert cluster.kafka_id == tools.cluster_id()
    assert cluster.mode == (ClusterMode.KRAFT if has_quorum() else ClusterMode.ZOOKEEPER)
    assert stored_brokers(cluster) == tools.brokers()


@pytest.mark.quorum
def test_features__levels_in_force_and_supported__equal_what_kafka_features_prints(
    cluster: Cluster, refresh: Refresher, tools: Tools
) -> None:
    refresh(CollectorKind.VERSIONS)
    stored = Capabilities.objects.get(cluster=cluster).features
    told = tools.features()
    named = {str(level): release for release, level in RELEASE_LEVELS.items()}  # those that are newer than the tool
    low, high, level = (named.get(each, each) for each in told["metadata.version"])
    told["metadata.version"] = (low, high, level)
    assert stored.keys() == told.keys()
    assert RELEASE_LEVELS[told["metadata.version"][2]] == stored["metadata.version"]["finalized"]
    shown = {row.name: (row.supported, row.finalized, row.raised) for row in list_features(stored)}
    assert shown == {
        name: (f"{low} to {high}", level, high if high != level else None) for name, (low, high, level) in told.items()
    }
    del told["metadata.version"]  # the tool names releases
    assert {name: tuple(map(int, levels)) for name, levels in told.items()} == {
        name: (*stored[name]["supported"], stored[name]["finalized"] or 0)  # Kafka tells no level of 0
        for name in told
    }


def stored_brokers(cluster: Cluster) -> dict[int, tuple[str, int, str | None, bool | None]]:
    """Id → host, port, rack, fenced; of brokers that the cluster lists."""
    listed = BrokerState.objects.filter(cluster=cluster, gone_at=None)
    return {b.broker_id: (b.host, b.port, b.rack, b.fenced) for b in listed}


def run_command(*words: str, cluster: Cluster) -> list[str]:
    """Return the lines that a command of kafkadash prints after the age of its data."""
    out = io.StringIO()
    call_command(*words, "--cluster", cluster.slug, stdout=out)
    return out.getvalue().splitlines()[1:]


def is_described_alike(cluster: Cluster, refresh: Refresher, tools: Tools, topic: str) -> bool:
    """Compare our command with Kafka's tool, of which 4.0 and newer end rows with eligible replicas (KIP-966)."""
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.CONFIGS)
    own = run_command("topics", "describe", topic, cluster=cluster)
    told = [line for line in tools.run("topics", "--describe", "--topic", topic).splitlines() if line.strip()]
    rows = [line.split("\tElr:")[0] for line in told[1:]]
    return own[1:] == rows and sort_configs(own[0]) == sort_configs(told[0])


def sort_configs(line: str) -> tuple[str, list[str]]:
    """Return the line before its configs, and these in order: Kafka's tool prints them in the broker's."""
    topic, _, configs = line.partition("Configs: ")
    return topic, sorted(configs.split(","))


def test_topics__leaders_replicas_and_isr__equal_describe(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools
) -> None:
    own = {make_topic([[1, 2, 3], [3, 1, 2]]), make_topic([[2, 3]])}
    printed = tools.topics()
    assert own <= printed.keys()

    def seen() -> dict[str, DescribedTopic]:
        refresh(CollectorKind.METADATA)
        return stored_topics(cluster)

    # Any broker may answer, and one that is late does not know a new topic yet.
    wait_until(lambda: seen() == printed, "the stored topics to be those that the tool describes")

    wait_until(lambda: is_described_alike(cluster, refresh, tools, min(own)), "the command to print the tool's lines")

    figures = ClusterState.objects.get(cluster=cluster)
    rows = [partition for topic in printed.values() for partition in topic.partitions.values()]
    assert (figures.topics, figures.partitions) == (len(printed), len(rows))
    assert figures.under_replicated == len(tools.partitions_that_are("under-replicated"))
    assert figures.offline_partitions == len(tools.partitions_that_are("unavailable"))

    brokers = BrokerState.objects.filter(cluster=cluster)
    assert {b.broker_id: b.replicas for b in brokers} == {b: sum(b in r.replicas for r in rows) for b in (1, 2, 3)}
    assert {b.broker_id: b.leaders for b in brokers} == {b: sum(b == r.leader for r in rows) for b in (1, 2, 3)}


def stored_topics(cluster: Cluster) -> dict[str, DescribedTopic]:
    return {
        topic.name: DescribedTopic(
            topic.topic_id,
            {
                partition: DescribedPartition(leader, tuple(replicas), tuple(isr))
                for partition, leader, _, replicas, isr, _ in topic.partitions
            },
        )
        for topic in TopicState.objects.filter(cluster=cluster)
    }


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
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.CONFIGS)
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
    [(key, (_, values))] = ConfigDrift.objects.get(cluster=cluster).keys.items()
    differing = {(value, broker) for value, _, own in values for broker in own}
    assert (key, differing) == ("num.io.threads", {(tools.configs(broker)[key][0], broker) for broker in (1, 2, 3)})


def test_throttles__set_by_kafkas_tool__appear_with_value_and_source_and_vanish(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, set_config: Callable[..., None]
) -> None:
    topic = make_topic([[1, 2]])
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.CONFIGS)
    assert stored(cluster) == described(tools) == {}

    set_config(topic, leader_replication_throttled_replicas="0:1,0:2", follower_replication_throttled_replicas="*")
    set_config(1, leader_replication_throttled_rate="1000001")
    set_config(None, follower_replication_throttled_rate="2000002")
    refresh(CollectorKind.CONFIGS)
    assert stored(cluster) == described(tools)
    assert stored(cluster) == {
        ("topic", topic, LEADER_LIST): ("0:1,0:2", "topic"),
        ("topic", topic, FOLLOWER_LIST): ("*", "topic"),
        ("broker", "1", LEADER_RATE): ("1000001", "broker"),
        ("cluster", "", FOLLOWER_RATE): ("2000002", "cluster_default"),
    }

    tools.delete_config(topic, FOLLOWER_LIST)
    tools.set_config(1, leader_replication_throttled_rate="3000003")
    refresh(CollectorKind.CONFIGS)
    assert stored(cluster) == described(tools)
    assert ("topic", topic, FOLLOWER_LIST) not in stored(cluster)
    assert stored(cluster)["broker", "1", LEADER_RATE] == ("3000003", "broker")


def test_throttles__of_a_move_by_kafkas_tool__are_needed_while_it_runs_and_orphans_after_it(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, mover: Mover, tools: Tools
) -> None:
    topic = make_topic([[1, 2]], mib=HELD_MIB)
    refresh(CollectorKind.METADATA)
    mover.start(topic, [3, 2], throttle=SLOW)
    for _ in range(3):
        refresh(CollectorKind.CONFIGS)
    assert stored(cluster) == described(tools)
    assert len(stored(cluster)) >= 8
    assert not ThrottleState.objects.filter(cluster=cluster, orphan=True).exists()

    mover.let_go(topic)
    wait_until(lambda: tools.replicas(topic) == (3, 2), "the move is over", 30)
    refresh(CollectorKind.CONFIGS)
    refresh(CollectorKind.CONFIGS)
    rows = ThrottleState.objects.filter(cluster=cluster)
    assert rows.filter(orphan=True).count() == rows.count() == len(described(tools))

    mover.cancel(topic)
    wait_until(lambda: described(tools) == {}, "Kafka's tool has taken its throttles away", 20)
    refresh(CollectorKind.CONFIGS)
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


def test_log_dirs__sizes_of_each_replica__equal_describe(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools
) -> None:
    topic = make_topic([[1, 2], [2, 3]], mib=3)
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.LOG_DIRS)
    printed = tools.sizes(topic)
    flat = {broker: {p: s for sizes in dirs.values() for p, s in sizes.items()} for broker, dirs in printed.items()}
    weights = {row.broker_id: row for row in BrokerWeights.objects.filter(cluster=cluster)}
    stored = {broker: sizes_of(row, topic) for broker, row in weights.items()}
    assert stored == flat
    assert {broker: set(sizes) for broker, sizes in flat.items()} == {1: {0}, 2: {0, 1}, 3: {1}}
    assert min(size for sizes in flat.values() for size in sizes.values()) > 1_000_000
    paths = {broker: {directory["path"] for directory in row.dirs} for broker, row in weights.items()}
    assert paths == {broker: set(dirs) for broker, dirs in printed.items()}

    everything = sum(size for sizes in flat.values() for size in sizes.values())
    assert TopicState.objects.get(cluster=cluster, name=topic).size_bytes == two_digits(everything)


def sizes_of(row: BrokerWeights, topic: str) -> dict[int, int]:
    sizes = json.loads(zlib.decompress(row.data))
    return {int(partition): size for partition, size in sizes.get(topic, {}).items()}


@pytest.mark.needs_release("4.3")
def test_log_dirs__a_directory_is_cordoned__only_that_one_says_so(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools
) -> None:
    make_topic([[1, 2]])
    [first, second] = sorted(tools.cordoned(1))
    tools.set_config(1, cordoned_log_dirs=first)
    try:
        wait_until(lambda: tools.cordoned(1)[first], "the directory is cordoned", 20)
        refresh(CollectorKind.LOG_DIRS)
        assert directories(cluster, 1, "cordoned") == tools.cordoned(1) == {first: True, second: False}
        assert directories(cluster, 2, "cordoned") == tools.cordoned(2)
    finally:
        tools.delete_config(1, "cordoned.log.dirs")


def replica_bytes(cluster: Cluster, brokers: list[int]) -> dict[int, dict[str, object]]:
    return {broker: directories(cluster, broker, "replica_bytes") for broker in brokers}


def printed_bytes(tools: Tools, brokers: list[int]) -> dict[int, dict[str, object]]:
    return {
        broker: {path: sum(sizes.values()) for path, sizes in dirs.items()}
        for broker, dirs in tools.all_sizes(brokers).items()
    }


def directories(cluster: Cluster, broker: int, field: str) -> dict[str, object]:
    """Path → one of its figures."""
    return {d["path"]: d[field] for d in BrokerWeights.objects.get(cluster=cluster, broker_id=broker).dirs}


@pytest.mark.quorum
def test_quorum__leader_epoch_members_and_log_ends__equal_describe(
    cluster: Cluster, refresh: Refresher, tools: Tools
) -> None:
    status = tools.quorum_status()
    before = tools.quorum_log_ends()
    refresh(CollectorKind.QUORUM)
    after = tools.quorum_log_ends()
    stored = QuorumSnapshot.objects.get(cluster=cluster)
    assert before.keys() == after.keys(), "the controllers elected meanwhile"
    assert (stored.leader_id, stored.leader_epoch) == (status.leader_id, status.leader_epoch)
    assert members(stored, voters=True) == status.voters
    assert members(stored, voters=False) == status.observers
    assert len(status.voters) == len(status.observers) == 3
    assert stored.high_watermark is not None
    assert status.high_watermark <= stored.high_watermark <= after[status.leader_id, "Leader"]

    metrics = scrape_page()
    scraped = [metrics.get(f"quorum_{name}", cluster=cluster.slug) for name in ("leader_id", "leader_epoch", "voters")]
    assert scraped == [status.leader_id, status.leader_epoch, len(status.voters)]

    ends = {(row["id"], row["voter"]): row["log_end_offset"] for row in stored.replicas}
    assert len(ends) == len(before)
    for (node, role), least in before.items():
        assert least <= ends[node, role != "Observer"] <= after[node, role], f"node {node}"

    printed = [line.split() for line in run_command("quorum", "--replication", cluster=cluster)]
    theirs = [line.split() for line in tools.run("quorum", "describe", "--replication").splitlines() if line.strip()]
    assert printed[0] == theirs[0]
    # Log ends and times go on between the two; nodes, directories and roles do not.
    assert sorted((row[0], row[1], row[-1]) for row in printed) == sorted((row[0], row[1], row[-1]) for row in theirs)


def members(stored: QuorumSnapshot, *, voters: bool) -> frozenset[tuple[int, str]]:
    return frozenset((row["id"], row["directory_id"]) for row in stored.replicas if row["voter"] is voters)


def test_pages__throttled_move__say_what_kafkas_tools_print(
    cluster: Cluster,
    refresh: Refresher,
    make_topic: TopicMaker,
    mover: Mover,
    tools: Tools,
    viewer: User,
    client_of: Callable[[User], Client],
) -> None:
    topic = make_topic([[2, 3]], mib=HELD_MIB)
    mover.start(topic, [2, 1], throttle=SLOW)
    start, end = tools.offset(2, topic, EARLIEST), tools.offset(2, topic, LATEST)
    wait_until(lambda: tools.has_copy(1, topic), "broker 1 has begun its copy", 30)
    before = percent(tools, topic, start, end)
    for kind in (
        CollectorKind.REASSIGNMENTS,
        CollectorKind.METADATA,
        CollectorKind.QUORUM,
        CollectorKind.VERSIONS,
        CollectorKind.LOG_DIRS,
    ):
        refresh(kind)
    after = percent(tools, topic, start, end)
    browser = client_of(viewer)

    overview = browser.get(f"/clusters/{cluster.slug}/").content.decode()
    listed, topics = tools.moves(), tools.topics()
    assert figure(overview, "Active controller") == str(tools.controller())
    if not has_quorum():
        assert ZooKeeperState.objects.get(cluster=cluster).controller_id == tools.controller()
    assert figure(overview, "Brokers") == str(len(tools.playground.cluster.brokers))
    assert figure(overview, "Topics") == f"{len(topics):,}"
    assert figure(overview, "Partitions") == f"{sum(len(t.partitions) for t in topics.values()):,}"
    assert figure(overview, "In flight") == f"{len(listed):,}"
    assert tools.cluster_id() in overview

    page = browser.get(f"/clusters/{cluster.slug}/reassignments/").content.decode()
    rows = re.findall(
        r'<tr id="(r-[^"]+)" data-outcome="running" data-percent="([\d.]+)"[^>]*>(.*?)</tr>', page, re.DOTALL
    )
    said = {re.sub(r"\s*<.*", "", cells.split('partition">')[1], flags=re.DOTALL): float(at) for _, at, cells in rows}
    assert said.keys() == {f"{move.topic}-{move.partition}" for move in listed}
    # The page cuts after two decimals, so that nothing unfinished reads 100.
    assert before - 0.01 <= said[f"{topic}-0"] <= after


def percent(tools: Tools, topic: str, start: int, end: int) -> float:
    """How much of the leader's records broker 1, which is added, holds."""
    return 100.0 * (tools.offset(1, topic, LATEST) - start) / (end - start)


def figure(page: str, label: str) -> str:
    """What stands below a label in the row of figures."""
    found = re.search(rf"<dt>(?:<a [^>]*>)?{label}(?:</a>)?</dt><dd>([^<]*)</dd>", page)
    assert found, f"the page has no figure {label}"
    return found[1]


def test_traffic__between_two_refreshes__is_what_log_ends_and_sizes_say(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, playground: KafkaPlayground
) -> None:
    topic = make_topic([[1, 2]], mib=1)
    for kind in (CollectorKind.METADATA, CollectorKind.LOG_DIRS, CollectorKind.CONFIGS, CollectorKind.TRAFFIC):
        refresh(kind)
    size = sum(held.get(0, 0) for held in tools.sizes(topic)[1].values())
    before, began = tools.offset(1, topic, LATEST), _log_end_at(cluster, topic)
    kept = before - tools.offset(1, topic, EARLIEST)
    producer = Producer({"bootstrap.servers": playground.bootstrap, "acks": "all"})
    for number in range(1234):
        producer.produce(topic, value=b"x" * 100, partition=0, key=str(number).encode())
    assert producer.flush(30) == 0
    written = tools.offset(1, topic, LATEST) - before
    refresh(CollectorKind.TRAFFIC)
    records, octets, *left_out = TopicTraffic.objects.get(
        cluster=cluster, shard=shard_of(topic), topics__has_key=topic
    ).topics[topic]
    seconds = _log_end_at(cluster, topic) - began
    assert (written, left_out) == (1234, [0, 0])
    # A float of a time of today holds a quarter of a microsecond, which counts where the two looks are close.
    assert records * seconds == pytest.approx(1234, abs=0.01 * seconds, rel=1e-4)
    # Estimated with what the log keeps at the time of the refresh, which has the new records as well.
    assert octets == pytest.approx(records * size / (kept + written), rel=0.001)


def _log_end_at(cluster: Cluster, topic: str) -> float:
    window = LogEndWindow.objects.get(cluster=cluster, shard=shard_of(topic))
    return float(json.loads(zlib.decompress(bytes(window.data)))[topic][1]["0"][1])
