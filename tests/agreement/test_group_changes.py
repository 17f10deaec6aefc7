"""Offsets that the product resets and deletes on real Kafka, and what ``kafka-consumer-groups`` says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.group_changes import group_deletion, offset_deletion
from kafkadash.group_changes.reset import KIND, find_faults, plan_reset, read_reset
from kafkadash.kafka.connect import admin_for
from kafkadash.monitoring.models import CollectorKind, GroupState
from kafkadash.short_runs.rollback import propose_rollback
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.short_runs import DEADLINE_S, queue, step_until
from tests.agreement.test_cluster_facts import run_command
from tests.agreement.test_consumer_groups import rows
from tests.agreement.tools import Tools
from tests.committed import commit_offsets
from tests.kafka_releases import NEWER_PROTOCOL
from tests.waiting import wait_until

BEGIN = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)  # within the retention of topics
AT = BEGIN + timedelta(seconds=7.5)
RECORDS = {0: 20, 1: 5, 2: 0}
COMMITTED = {0: 10, 1: 3}
READ = (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS, CollectorKind.GROUPS)
Join = Callable[[str, str, str], Consumer]


@pytest.fixture
def topic(playground: KafkaPlayground, make_topic: TopicMaker) -> str:
    """Three partitions with a record each second, or none."""
    name = make_topic([[1, 2], [2, 1], [1, 2]])
    producer = Producer({"bootstrap.servers": playground.bootstrap})
    for partition, number in RECORDS.items():
        for n in range(number):
            at_ms = int(BEGIN.timestamp() + n) * 1000
            producer.produce(name, value=b"x", partition=partition, timestamp=at_ms)
    assert producer.flush(DEADLINE_S) == 0
    return name


@pytest.fixture
def join(playground: KafkaPlayground) -> Iterator[Join]:
    """Return a member of the group that has its partitions and has committed ``COMMITTED``."""
    members: list[Consumer] = []

    def joined(group: str, topic: str, protocol: str) -> Consumer:
        config = {"bootstrap.servers": playground.bootstrap, "group.id": group, "group.protocol": protocol}
        consumer = Consumer({**config, "enable.auto.commit": False})
        members.append(consumer)
        consumer.subscribe([topic])

        def is_assigned() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        wait_until(is_assigned, f"{group} has partitions", DEADLINE_S)
        offsets = [TopicPartition(topic, partition, offset) for partition, offset in COMMITTED.items()]
        commit_offsets(consumer, offsets)
        return consumer

    yield joined
    for member in members:
        member.close()


def printed(tools: Tools, group: str, *options: str, column: str) -> dict[int, str]:
    """Partition → what the tool prints in this column."""
    told = tools.run("consumer-groups", "--group", group, *options)
    return {int(row["PARTITION"]): row[column] for row in rows(told) if "PARTITION" in row}


def committed(tools: Tools, group: str) -> dict[int, int]:
    told = printed(tools, group, "--describe", column="CURRENT-OFFSET")
    return {partition: int(offset) for partition, offset in told.items() if offset != "-"}


def wanted(group: str, to: str, topic: str = "", **more: Any) -> dict[str, Any]:
    return {"group": group, "to": to, "topic": topic, "partitions": [], **more}


def run_whole(
    refresh: Refresher, cluster: Cluster, kind: str, content: Mapping[str, Any], operator: User
) -> ChangeRequest:
    """Read the cluster, because a plan is refused on old data, and run the change to its end."""
    for read in READ:
        refresh(read)
    change = queue(cluster, kind, content, operator)
    run = step_until(change, RequestState.DONE)
    assert run is not None
    assert run.outcome == "clean", list(run.rows.values_list("subject", "state", "reason_code"))
    return change


def test_groups__are_reset_and_deleted_as_kafkas_tool_would(
    cluster: Cluster, refresh: Refresher, tools: Tools, operator: User, topic: str, join: Join
) -> None:
    classic, newer = f"{topic}-classic", f"{topic}-newer"
    members = [join(classic, topic, "classic"), join(newer, topic, NEWER_PROTOCOL)]
    for kind in READ:
        refresh(kind)
    for group in (classic, newer):
        items = plan_reset(cluster, wanted(group, "latest")).items
        assert {fault.code for fault in find_faults(cluster, items).values()} == {"group-active"}
    for member in members:
        member.close()
    wait_until(lambda: are_empty(refresh, classic, newer), "both groups are empty", DEADLINE_S)

    own = run_command("groups", "describe", classic, cluster=cluster)[1:]
    theirs = tools.run("consumer-groups", "--describe", "--group", classic).splitlines()
    assert sorted(map(str.split, own)) == sorted(line.split() for line in theirs if line.split()[1:])

    rules: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        (wanted(classic, "earliest", topic), ("--to-earliest",)),
        (wanted(classic, "latest", topic), ("--to-latest",)),
        (wanted(classic, "shift", by=-2), ("--shift-by", "-2")),
        (
            wanted(classic, "time", topic, at_ms=int(AT.timestamp() * 1000)),
            ("--to-datetime", f"{AT:%Y-%m-%dT%H:%M:%S.500}"),
        ),
    ]
    for content, options in rules:
        scope = ("--topic", topic) if content["topic"] else ("--all-topics",)
        dry = printed(tools, classic, "--reset-offsets", "--dry-run", *scope, *options, column="NEW-OFFSET")
        items = plan_reset(cluster, content).items
        readings = read_reset(cluster, admin_for(cluster.connection()), items, 20.0)
        targets = {item.content["partition"]: str(readings[item.subject].found["target"]) for item in items}
        assert targets == dry, options

    for group in (classic, newer):
        change = run_whole(refresh, cluster, KIND, rules[3][0] | {"group": group}, operator)
        assert committed(tools, group) == {0: 8, 1: 5, 2: 0}
        back = propose_rollback(change, operator)
        run_whole(refresh, cluster, KIND, back.input, operator)
        assert committed(tools, group) == COMMITTED

    run_whole(refresh, cluster, offset_deletion.KIND, {"group": newer, "topic": topic}, operator)
    assert committed(tools, newer) == {}
    run_whole(refresh, cluster, group_deletion.KIND, {"groups": [classic, newer]}, operator)
    assert not {classic, newer} & set(tools.run("consumer-groups", "--list").split())


def are_empty(refresh: Refresher, *groups: str) -> bool:
    refresh(CollectorKind.GROUPS)
    return set(GroupState.objects.filter(name__in=groups).values_list("state", flat=True)) == {"Empty"}


def test_group__member_joins_before_the_start__turns_stale(
    cluster: Cluster, refresh: Refresher, tools: Tools, operator: User, topic: str, join: Join
) -> None:
    group = f"{topic}-joins"
    join(group, topic, "classic").close()
    for kind in READ:
        refresh(kind)
    wait_until(lambda: are_empty(refresh, group), "the group is empty", DEADLINE_S)
    change = queue(cluster, KIND, wanted(group, "latest"), operator)
    join(group, topic, "classic")
    assert step_until(change, RequestState.STALE) is None
    assert committed(tools, group) == COMMITTED
