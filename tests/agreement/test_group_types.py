"""Share groups (KIP-932) and streams groups (KIP-1071) of real Kafka, against ``kafka-share-groups`` and
``kafka-streams-groups``. The streams group is of a real Streams application; once it has no members its offsets are
reset, and it is deleted. An open transaction holds a group that reads with read_committed.
"""

from __future__ import annotations

import signal
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Consumer, Message, Producer, ShareConsumer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kio.static.primitive import i8, i32, i32Timedelta

from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground, prepare_runtime
from kafkadash.devtools.playground.jars import KafkaDistribution, fetch
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from kafkadash.kafka.api import ClusterConnection, TopicPartition
from kafkadash.kafka.mutations import WireClient
from kafkadash.monitoring.groups.shares import read_partitions, read_share_members
from kafkadash.monitoring.groups.window import members_of, read_group
from kafkadash.monitoring.models import CollectorKind, GroupState, UnjudgedGroup
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.committed import commit_offsets
from tests.contract import raw
from tests.kafka_releases import STREAMS_EXAMPLES
from tests.metrics.scraped import scrape_page
from tests.waiting import wait_until

DEADLINE = 20.0
TURNS_S = 60
FIND_COORDINATOR, STREAMS_HEARTBEAT = 10, 88
LEAVES = -1  # member epoch
WORD_COUNT = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
IN_MEMORY = "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers"
INPUT, OUTPUT = "streams-plaintext-input", "streams-wordcount-output"
LINES = (b"a broker is a server", b"a controller is one too", b"a topic has partitions")


@pytest.fixture
def admin(playground: KafkaPlayground) -> Iterator[WireClient]:
    admin = WireClient(ClusterConnection("agreement", 1, tuple(playground.bootstrap.split(","))))
    yield admin
    admin.close()


def rows(text: str) -> list[dict[str, str]]:
    """Of all tables that the tool printed, by the words of their first lines."""
    found = []
    for blank, table in groupby(text.splitlines(), key=lambda line: not line.strip()):
        if blank:
            continue
        head, *lines = table
        columns = head.replace("COORDINATOR (ID)", "COORDINATOR ID").split()
        found += [dict(zip(columns, line.split(), strict=False)) for line in lines]
    return found


def number(text: str) -> int | None:
    return None if text == "-" else int(text)


def assert_scraped(group: str, type_: str, state: Mapping[str, str], lag: int) -> None:
    metrics, own = scrape_page(), {"cluster": "real", "group": group}
    assert metrics.get("group_lag_records", **own) == lag
    assert metrics.get("group_members", **own) == int(state["#MEMBERS"])
    assert [(each["type"], each["state"]) for each in metrics.find("group_state", **own)] == [(type_, state["STATE"])]


@pytest.mark.needs_release("4.1")
def test_share_group__start_offsets_lag_and_members__equal_kafka_share_groups(
    cluster: Cluster, refresh: Refresher, playground: KafkaPlayground, tools: Tools, make_topic: TopicMaker
) -> None:
    """One record is released and all others that were read are accepted: the start offset does not pass it."""
    topic = make_topic([[1, 2], [2, 3]], mib=1)
    group = f"{topic}-share"
    configs = {
        "bootstrap.servers": playground.bootstrap,
        "group.id": group,
        "client.id": "picker",
        "share.acknowledgement.mode": "explicit",
    }
    read_from_the_start(playground, group)
    with ShareConsumer(configs) as consumer:
        consumer.subscribe([topic])
        read = poll_some(consumer)
        accepted = [(message.partition(), message.offset() or 0) for message in read if message.offset() != 2]
        for message in read:
            released = message.offset() == 2
            consumer.acknowledge(message, AcknowledgeType.RELEASE if released else AcknowledgeType.ACCEPT)
        consumer.commit_sync(timeout=30)
        refresh(CollectorKind.GROUPS)
        offsets = rows(tools.run("share-groups", "--describe", "--group", group, "--offsets"))
        members = rows(tools.run("share-groups", "--describe", "--group", group, "--members"))
        [state] = rows(tools.run("share-groups", "--describe", "--group", group, "--state"))
        listed = {row["GROUP"]: row for row in rows(tools.run("groups", "--list"))}

    row = UnjudgedGroup.objects.get(cluster=cluster, name=group)
    assert (listed[group]["TYPE"], row.kind) == ("Share", "share")
    assert (row.state, row.members) == (state["STATE"], int(state["#MEMBERS"]))
    assert f"({row.coordinator})" == state["ID"]
    assert {(each.topic, each.partition, each.start, each.lag) for each in read_partitions(row)} == {
        (each["TOPIC"], int(each["PARTITION"]), number(each["START-OFFSET"]), number(each["LAG"])) for each in offsets
    }
    assert any(each.lag for each in read_partitions(row)), "what was released waits"
    for each in read_partitions(row):
        past = sum(partition == each.partition and offset >= (each.start or 0) for partition, offset in accepted)
        assert each.most_completed == (None if each.lag is None else past), "nothing is written meanwhile"
    assert_scraped(group, "share", state, sum(number(each["LAG"]) or 0 for each in offsets))
    assert {
        (m.member_id, m.client_id, f"/{m.host}", sum(map(len, m.assigned.values()))) for m in read_share_members(row)
    } == {(m["CONSUMER-ID"], m["CLIENT-ID"], m["HOST"], int(m["#PARTITIONS"])) for m in members}
    refresh(CollectorKind.GROUPS)
    row.refresh_from_db()
    assert (row.state, row.members) == ("Empty", 0)


def read_from_the_start(playground: KafkaPlayground, group: str) -> None:
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": playground.bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(DEADLINE)


def poll_some(consumer: ShareConsumer) -> list[Message]:
    batch: list[Message] = []

    def polled() -> bool:
        batch.extend(message for message in consumer.poll(timeout=1) if message.error() is None)
        return bool(batch)

    wait_until(polled, "the share consumer has records", TURNS_S)
    return batch


@dataclass
class StreamsMember:
    """A member of a streams group by raw heartbeats, with one subtopology that reads these topics."""

    playground: KafkaPlayground
    group: str
    topics: tuple[str, ...]
    member: str
    epoch: int = 0
    tasks: Any = ()

    def join(self) -> None:
        wait_until(self._beat, f"{self.group} has its tasks", TURNS_S)

    def leave(self) -> None:
        self.epoch = LEAVES
        self._beat()

    def _beat(self) -> bool:
        """Return whether the member owns tasks, which it confirms, or has left."""
        types = raw.request_types(STREAMS_HEARTBEAT, 0)
        subtopology = types.Subtopology(
            subtopology_id="0",
            source_topics=self.topics,
            source_topic_regex=(),
            state_changelog_topics=(),
            repartition_sink_topics=(),
            repartition_source_topics=(),
            copartition_groups=(),
        )
        answer = raw.ask(
            self._coordinator(),
            STREAMS_HEARTBEAT,
            0,
            group_id=self.group,
            member_id=self.member,
            member_epoch=i32(self.epoch),
            endpoint_information_epoch=i32(-1),
            instance_id=None,
            rack_id=None,
            rebalance_timeout=i32Timedelta.parse(timedelta(minutes=5)),
            topology=types.Topology(epoch=i32(0), subtopologies=(subtopology,)) if self.epoch == 0 else None,
            active_tasks=tuple(
                types.TaskIds(subtopology_id=task.subtopology_id, partitions=task.partitions) for task in self.tasks
            ),
            standby_tasks=(),
            warmup_tasks=(),
            process_id="process-1",
            user_endpoint=None,
            client_tags=(),
            task_offsets=None,
            task_end_offsets=None,
            shutdown_application=False,
        )
        if answer.error_code != 0 or self.epoch == LEAVES:
            return bool(answer.error_code == 0)
        self.epoch = answer.member_epoch
        owned = bool(self.tasks)
        self.tasks = answer.active_tasks or self.tasks
        return owned

    def _coordinator(self) -> str:
        found: list[str] = []

        def told() -> bool:
            address = self.playground.bootstrap.split(",")[0]
            [row] = raw.ask(address, FIND_COORDINATOR, 4, key_type=i8(0), coordinator_keys=(self.group,)).coordinators
            found.append(f"{row.host}:{row.port}")
            return bool(row.error_code == 0)

        wait_until(told, f"{self.group} has a coordinator", TURNS_S)
        return found[-1]


def read_offsets(row: Mapping[str, str]) -> tuple[tuple[str, int], tuple[int | None, int | None, int | None]]:
    """Return topic and partition, and committed offset, log end and lag, of a row of ``kafka-streams-groups``.

    Without a committed offset the tool counts from the start of the log, and kafkadash does not tell a lag.
    """
    committed = number(row["CURRENT-OFFSET"])
    lag = None if committed is None else number(row["OFFSET-LAG"])
    return (row["TOPIC"], int(row["PARTITION"])), (committed, number(row["LOG-END-OFFSET"]), lag)


@contextmanager
def counting_words(playground: KafkaPlayground, group: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Kafka's example of a Streams application: it repartitions lines by word, and keeps its counts in memory."""
    load_topics(playground.bootstrap, [LoadTopic(topic, placement=[[1, 2], [2, 3]]) for topic in (INPUT, OUTPUT)])
    configs = {
        "application.id": group,
        "bootstrap.servers": playground.bootstrap,
        "group.protocol": "streams",
        "state.dir": folder / "state",
        "dsl.store.suppliers.class": IN_MEMORY,
        "commit.interval.ms": 100,
    }
    properties = folder / "words.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in configs.items()), encoding="utf-8")
    runtime = prepare_runtime(lambda _: None)
    jars = KafkaDistribution((*runtime.jars.paths, *fetch(STREAMS_EXAMPLES).paths), runtime.jars.digest)
    command = replace(runtime, jars=jars).tool_command(WORD_COUNT, [str(properties)])
    with subprocess.Popen(command) as application:
        try:
            yield application
        finally:
            application.send_signal(signal.SIGCONT)
            application.terminate()
            try:
                application.wait(TURNS_S)
            finally:
                application.kill()


@pytest.mark.needs_release("4.1")
def test_streams_group__state_members_offsets_and_lag__equal_kafka_streams_groups(
    cluster: Cluster,
    refresh: Refresher,
    playground: KafkaPlayground,
    admin: WireClient,
    tools: Tools,
    tmp_path: Path,
) -> None:
    """Then its member leaves, its offsets are reset and deleted as those of a consumer group, and so is the group."""
    group = "word-counts"
    producer = Producer({"bootstrap.servers": playground.bootstrap})

    def write_lines() -> None:
        for partition in (0, 1):
            for line in LINES:
                producer.produce(INPUT, line, partition=partition)
        producer.flush(DEADLINE)

    def read_through() -> bool:
        found = admin.committed([group], deadline=DEADLINE).offsets.get(group, {})
        return found.get(INPUT) == dict.fromkeys((0, 1), len(LINES)) and len(found) > 1

    with counting_words(playground, group, tmp_path) as application:
        write_lines()
        wait_until(read_through, "the application has read all lines, and counts words", TURNS_S)
        application.send_signal(signal.SIGSTOP)  # it stays a member for the time of a session
        write_lines()
        refresh(CollectorKind.GROUPS)
        offsets = rows(tools.run("streams-groups", "--describe", "--group", group, "--offsets", "--verbose"))
        members = rows(tools.run("streams-groups", "--describe", "--group", group, "--members"))
        [state] = rows(tools.run("streams-groups", "--describe", "--group", group, "--state"))

    row = GroupState.objects.select_related("window").get(cluster=cluster, name=group)
    partitions, _ = read_group(row, members_of(row))
    assert (row.type, row.state, row.members) == ("Streams", state["STATE"], int(state["#MEMBERS"]))
    assert f"({row.coordinator})" == state["ID"]
    told = dict(map(read_offsets, offsets))
    assert {(each.topic, each.partition): (each.committed, each.end, each.lag) for each in partitions} == told
    assert [told[INPUT, partition][-1] for partition in (0, 1)] == [len(LINES), len(LINES)]
    [repartitioned] = {topic for topic, _ in told} - {INPUT}
    assert_scraped(group, "streams", state, sum(lag or 0 for _, _, lag in told.values()))
    assert [(m.member_id, m.client_id, m.assigned) for m in members_of(row)] == [
        (each["MEMBER"], each["CLIENT-ID"], {INPUT: [0, 1], repartitioned: [0, 1]}) for each in members
    ]

    wait_until(
        lambda: admin.describe_groups([group], deadline=DEADLINE)[group].state == "Empty",
        "its member has left",
        TURNS_S,
    )
    first = TopicPartition(INPUT, 0)
    kept = admin.committed([group], deadline=DEADLINE).offsets[group]
    assert admin.commit_offsets(group, {first: 1}, deadline=DEADLINE).done == {first}
    assert admin.committed([group], deadline=DEADLINE).offsets[group] == {**kept, INPUT: {0: 1, 1: kept[INPUT][1]}}
    assert admin.delete_offsets(group, [first], deadline=DEADLINE).done == {first}
    assert admin.committed([group], deadline=DEADLINE).offsets[group] == {**kept, INPUT: {1: kept[INPUT][1]}}
    assert admin.delete_groups([group], deadline=DEADLINE).done == {group}
    assert admin.describe_groups([group], deadline=DEADLINE) == {}


@pytest.mark.needs_release("4.1")
def test_streams_group__of_topics_that_differ__reads_partitions_that_exist(
    playground: KafkaPlayground, admin: WireClient, make_topic: TopicMaker
) -> None:
    """Merged streams: ``kafka-streams-groups --offsets`` of 4.3.1 waits for partitions that are not there."""
    large, small = make_topic([[1, 2], [2, 3]]), make_topic([[1, 2]])
    member = StreamsMember(playground, f"{large}-merged", (large, small), str(uuid.uuid4()))
    member.join()

    [told] = admin.groups(deadline=DEADLINE).groups[member.group].members or ()

    assert dict(told.assigned) == {large: (0, 1), small: (0,)}
    member.leave()


def test_open_transaction__that_holds_a_group__is_noted_with_the_producer_of_kafka_transactions(
    cluster: Cluster, refresh: Refresher, playground: KafkaPlayground, tools: Tools, make_topic: TopicMaker
) -> None:
    topic = make_topic([[1, 2]])
    group = f"{topic}-held"
    producer = Producer({"bootstrap.servers": playground.bootstrap, "transactional.id": group})
    producer.init_transactions(DEADLINE)
    producer.begin_transaction()
    producer.produce(topic, b"done")
    producer.commit_transaction(DEADLINE)
    configs = {
        "bootstrap.servers": playground.bootstrap,
        "group.id": group,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(configs)
    consumer.subscribe([topic])
    wait_until(lambda: consumer.poll(1) is not None, "the first record is read", TURNS_S)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(DEADLINE)
    commit_offsets(consumer, [KafkaPartition(topic, 0, 2)])  # behind the marker, as Java commits it

    def judged() -> GroupState:
        refresh(CollectorKind.GROUPS)
        return GroupState.objects.get(cluster=cluster, name=group)

    wait_until(lambda: judged().worst == "stall", "the group stalls", TURNS_S)
    [row] = rows(tools.run("transactions", "describe-producers", "--topic", topic, "--partition", "0"))
    assert judged().held == [[topic, 0, int(row["CurrentTransactionStartOffset"]), [int(row["ProducerId"])], group]]
    producer.abort_transaction(DEADLINE)
    assert judged().held == []
    consumer.close()
