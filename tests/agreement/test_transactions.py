"""Hanging transactions of real Kafka (KIP-664) against ``kafka-transactions``: found, told apart from one that is only
open for long, and aborted with the command that the page shows. The lag for read_committed is what a consumer with that
isolation level reads until it stops.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from django.test import Client
from django.utils import timezone
from kafka.record.default_records import DefaultRecordBatchBuilder
from kio.static.primitive import i16, i32, i32Timedelta

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding
from kafkadash.findings.services import judge
from kafkadash.monitoring.models import CollectorKind, TransactionSnapshot
from kafkadash.monitoring.transactions.rules import StuckTransaction, TransactionVerdict
from kafkadash.monitoring.transactions.stored import read_transactions
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.test_group_types import rows
from tests.agreement.tools import Tools
from tests.committed import commit_offsets
from tests.contract import raw
from tests.kafka_configs import alter
from tests.waiting import wait_until

DEADLINE = 20.0
PRODUCE, NOBODYS_PRODUCER, AGE_MS = 0, 9_000_000_000, 3_600_000
UNVERIFIED = "transaction.partition.verification.enable"
PARTITION_EOF = KafkaError._PARTITION_EOF
RECORDS_BEFORE, RECORDS_AFTER, COMMITTED = 5, 3, 2
"""Records around the one of the hanging transaction in partition 0, and what a group has committed there."""


@pytest.fixture
def unverified(playground: KafkaPlayground) -> Iterator[str]:
    """Broker 1, by its address, takes records of transactions without asking their coordinator, as before Kafka 3.6."""
    alter(playground, 1, **{UNVERIFIED: "false"})
    yield playground.bootstrap.split(",")[0]
    alter(playground, 1, **{UNVERIFIED: None})


def write_late(address: str, topic: str, partition: int, name: str, producer: int, epoch: int) -> None:
    """Write a record of a transaction that the producer's coordinator never heard of, an hour old."""
    batch = DefaultRecordBatchBuilder(2, 0, True, producer, epoch, 0, 16_384)
    batch.append(0, int(time.time() * 1000) - AGE_MS, None, b"late", ())
    types = raw.request_types(PRODUCE, 9)
    data = types.TopicProduceData(
        name=topic, partition_data=(types.PartitionProduceData(index=i32(partition), records=bytes(batch.build())),)
    )
    answer = raw.ask(
        address,
        PRODUCE,
        9,
        transactional_id=name,
        acks=i16(-1),
        timeout=i32Timedelta.parse(timedelta(seconds=DEADLINE)),
        topic_data=(data,),
    )
    assert answer.responses[0].partition_responses[0].error_code == 0, answer


def write_plain(bootstrap: str, topic: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(records):
        producer.produce(topic, b"plain", partition=0)
    assert producer.flush(DEADLINE) == 0


def commit_and_count(bootstrap: str, group: str, topic: str, isolation: str) -> int:
    """Commit offset ``COMMITTED`` of partition 0 and return how many records a consumer reads from there on."""
    own = {"group.id": group, "isolation.level": isolation, "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **own})
    begin, read = TopicPartition(topic, 0, COMMITTED), 0
    try:
        commit_offsets(consumer, [begin])
        consumer.assign([begin])

        def is_at_end() -> bool:
            nonlocal read
            message = consumer.poll(1.0)
            error = message.error() if message else None
            assert error is None or error.code() == PARTITION_EOF, error
            read += message is not None and error is None
            return error is not None

        wait_until(is_at_end, "there is nothing more to read", DEADLINE)
    finally:
        consumer.close()
    return read


def test_hanging_transactions__are_those_of_find_hanging__until_they_are_aborted(
    cluster: Cluster,
    refresh: Refresher,
    playground: KafkaPlayground,
    tools: Tools,
    make_topic: TopicMaker,
    unverified: str,
    viewer: User,
    client_of: Callable[[User], Client],
) -> None:
    """Partition 0: no coordinator knows the producer. 1: its coordinator has no transaction there. 2: it has."""
    topic = make_topic([[1], [1], [1]])
    idle = Producer({"bootstrap.servers": playground.bootstrap, "transactional.id": f"{topic}-idle"})
    idle.init_transactions(DEADLINE)
    busy = Producer({"bootstrap.servers": playground.bootstrap, "transactional.id": f"{topic}-busy"})
    busy.init_transactions(DEADLINE)
    busy.begin_transaction()
    busy.produce(topic, b"open", partition=2, timestamp=int(time.time() * 1000) - AGE_MS)
    busy.flush(DEADLINE)
    [told] = rows(tools.run("transactions", "describe", "--transactional-id", f"{topic}-idle"))
    write_plain(playground.bootstrap, topic, RECORDS_BEFORE)
    write_late(unverified, topic, 0, f"{topic}-nobodys", NOBODYS_PRODUCER, 0)
    write_plain(playground.bootstrap, topic, RECORDS_AFTER)
    write_late(unverified, topic, 1, f"{topic}-idle", int(told["ProducerId"]), int(told["ProducerEpoch"]))

    def read() -> dict[int, StuckTransaction]:
        refresh(CollectorKind.TRANSACTIONS)
        judge(cluster.pk, timezone.now())
        snapshot = TransactionSnapshot.objects.get(cluster=cluster)
        return {each.partition: each for each in read_transactions(snapshot) if each.topic == topic}

    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.CONFIGS)
    assert read() == {}, "nothing is known to stand still yet"
    found = read()

    hanging = rows(tools.run("transactions", "find-hanging", "--topic", topic))
    assert {as_told(found[n]) for n in (0, 1)} == {tuple(map(row.get, _COLUMNS)) for row in hanging}
    opened = rows(tools.run("transactions", "describe-producers", "--topic", topic, "--partition", "2"))
    assert str(found[2].start) in {row["CurrentTransactionStartOffset"] for row in opened}
    assert {n: (each.verdict, each.transactional_id, each.state) for n, each in found.items()} == {
        0: (TransactionVerdict.HANGING, "", ""),
        1: (TransactionVerdict.HANGING, f"{topic}-idle", "Empty"),
        2: (TransactionVerdict.OPEN, f"{topic}-busy", "Ongoing"),
    }
    assert TransactionSnapshot.objects.get(cluster=cluster).limit_s == 900
    finding = Finding.objects.get(cluster=cluster, kind=FindingKind.HANGING_TRANSACTION, closed_at=None)
    assert finding.message.params["names"] == (f"{topic}-0", f"{topic}-1")

    client, group = client_of(viewer), f"{topic}-readers"
    levels = ("read_uncommitted", "read_committed")
    readable = {level: commit_and_count(playground.bootstrap, group, topic, level) for level in levels}
    refresh(CollectorKind.GROUPS)
    shown = client.get(f"/clusters/real/groups/{group}/").context
    assert [line.lag.lag for line in shown["rows"]] == [readable["read_uncommitted"]]
    assert [line.committed_lag for line in shown["rows"]] == [readable["read_committed"]]
    assert readable["read_committed"] == RECORDS_BEFORE - COMMITTED < readable["read_uncommitted"]

    page = client.get("/clusters/real/transactions/")
    commands = [line.command for line in page.context["lines"] if line.transaction.topic == topic and line.command]
    assert len(commands) == 2
    for command in commands:
        _, _, server, *words = shlex.split(command)
        assert server == playground.bootstrap
        tools.run("transactions", *words)
    assert set(read()) == {2}
    finding.refresh_from_db()
    assert finding.closed_at is not None
    shown = client.get(f"/clusters/real/groups/{group}/").context
    assert [line.committed_lag for line in shown["rows"]] == [None], "nothing holds it back any more"
    assert commit_and_count(playground.bootstrap, group, topic, "read_committed") > readable["read_committed"]
    busy.abort_transaction(DEADLINE)


_COLUMNS = ("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp")


def as_told(each: StuckTransaction) -> tuple[str, ...]:
    """Return the columns of ``find-hanging`` but the duration."""
    last_ms = round((each.last_at or 0) * 1000)
    numbers = (each.partition, each.producer_id, each.producer_epoch, each.coordinator_epoch, each.start, last_ms)
    return (each.topic, *map(str, numbers))
