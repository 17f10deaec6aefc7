"""Topics with real data, and producers that keep writing.

Values are random bytes, which cannot be compressed: a megabyte produced is a megabyte moved. Every topic gets explicit
retention limits, so that a producer left running fills no disk.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, TopicMetadata
from confluent_kafka.cimpl import NewTopic

from kafkadash.core.messages import CodedMessage, choose_plural, coded
from kafkadash.devtools.embedded.process import ServerError
from kafkadash.devtools.playground.errors import PlaygroundErrorCode

MIB = 1024 * 1024
VALUE_BYTES = 16 * 1024
RETENTION_MS = 24 * 3600 * 1000
# KIP-1030 allows no smaller segments than 1 MiB; the playground's brokers roll at 16 MiB unless told otherwise.
SEGMENT_MIN, SEGMENT_MAX = MIB, 16 * MIB
TICK_SECONDS = 0.1
ADMIN_SECONDS = 30.0
FLUSH_SECONDS = 120.0
STEADY_FLUSH_SECONDS = 5.0

Placement = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class LoadTopic:
    """A topic to make. `placement` lists the replicas (broker ids, leader first) of each partition; with it,
    `partitions` and `rf` are not used. `fill_bytes` is how much will be produced into the whole topic, once,
    before replication; retention keeps that and two segments more for each partition. `retention_ms` is Kafka's
    retention.ms, -1 for as long as the size allows.
    """

    name: str
    partitions: int = 6
    rf: int = 3
    fill_bytes: int = 0
    placement: Placement | None = None
    retention_ms: int = RETENTION_MS

    @property
    def partition_count(self) -> int:
        return len(self.placement) if self.placement is not None else self.partitions

    def config(self) -> dict[str, str]:
        share = self.fill_bytes // self.partition_count
        segment = max(SEGMENT_MIN, min(SEGMENT_MAX, share // 4))
        return {
            "segment.bytes": str(segment),
            "retention.bytes": str(share + 2 * segment),
            "retention.ms": str(self.retention_ms),
            "compression.type": "producer",
        }


@dataclass(frozen=True, slots=True)
class LoadReport:
    """`created` are the topics that did not exist before; `bytes` were produced (before replication) in `seconds`."""

    topics: tuple[str, ...]
    created: tuple[str, ...]
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SteadyReport:
    """Bytes of values that brokers acknowledged, and bytes given up after librdkafka's own delivery timeout (5 min)."""

    delivered: int
    dropped: int


def load_topics(
    bootstrap: str,
    topics: int | Sequence[LoadTopic] = 1,
    partitions: int = 6,
    rf: int = 3,
    mb: float = 0,
    *,
    prefix: str = "load",
    only_new: bool = False,
    say: Callable[[str], None] | None = None,
) -> LoadReport:
    """Make topics and fill them; return when all replicas have the data.

    `topics` is a number (named `<prefix>-1` and so on, sharing `mb` MiB evenly) or the topics themselves with their
    own `fill_bytes`. Topics that exist are kept as they are; with `only_new` they get no more data either.
    Raises ServerError when a topic is refused or a record is not accepted.
    """
    began = time.monotonic()
    if isinstance(topics, int):
        share = int(mb * MIB / topics)
        topics = [LoadTopic(f"{prefix}-{i}", partitions, rf, share) for i in range(1, topics + 1)]
    created = create_topics(bootstrap, topics)
    fill = [topic for topic in topics if topic.fill_bytes and (topic.name in created or not only_new)]
    written = _fill_topics(bootstrap, fill)
    report = LoadReport(tuple(topic.name for topic in topics), tuple(created), written, time.monotonic() - began)
    if say is not None:
        say(
            f"Load: {len(topics)} topics ({len(created)} new), "
            f"{report.bytes / MIB:.0f} MiB produced in {report.seconds:.1f} s"
        )
    return report


def create_topics(bootstrap: str, topics: Iterable[LoadTopic]) -> list[str]:
    """Create what does not exist, wait until every partition has a leader, return the names that are new."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    futures = admin.create_topics([_new_topic(topic) for topic in topics], request_timeout=ADMIN_SECONDS)
    created = []
    for name, future in futures.items():
        try:
            future.result()
            created.append(name)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise ServerError(PlaygroundErrorCode.TOPIC_REFUSED, topic=name, fault=_fault_text(error)) from error
    _wait_until(
        lambda: _all_led(admin, created),
        ADMIN_SECONDS,
        coded(PlaygroundErrorCode.NO_LEADERS, topics=", ".join(created)),
    )
    return created


def produce_steadily(
    bootstrap: str,
    topics: Sequence[str],
    rate: float,
    stop: threading.Event,
) -> SteadyReport:
    """Produce `rate` bytes/s in all, evenly over all partitions of the topics, until `stop` is set.

    Brokers that go away are waited for: meanwhile up to 16 MiB are queued and nothing more is produced; what was not
    missed by more than a second is caught up.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    targets = itertools.cycle(_list_partitions(admin, topics))
    producer = Producer({**_producer_config(bootstrap), "queue.buffering.max.kbytes": 16 * 1024})
    size = int(max(64, min(VALUE_BYTES, rate * TICK_SECONDS)))
    delivered = dropped = 0

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        nonlocal delivered, dropped
        if error is None:
            delivered += size
        else:
            dropped += size

    credit = 0.0
    last = time.monotonic()
    while not stop.wait(TICK_SECONDS):
        now = time.monotonic()
        credit = min(credit + (now - last) * rate, max(rate, size))
        last = now
        while credit >= size and _offer_record(producer, next(targets), os.urandom(size), on_delivery):
            credit -= size
        producer.poll(0)
    producer.flush(STEADY_FLUSH_SECONDS)
    return SteadyReport(delivered, dropped)


def wait_for_brokers(bootstrap: str, broker_ids: Collection[int], deadline: float) -> None:
    """Return when the cluster's metadata lists all these brokers; ServerError after `deadline` seconds."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def all_listed() -> bool:
        try:
            return set(broker_ids) <= set(admin.list_topics(timeout=2.0).brokers)
        except KafkaException:
            return False

    _wait_until(
        all_listed,
        deadline,
        coded(PlaygroundErrorCode.NOT_ALL_JOINED, brokers=sorted(broker_ids), seconds=deadline),
    )


def _fill_topics(bootstrap: str, topics: Sequence[LoadTopic]) -> int:
    producer = Producer(_producer_config(bootstrap))
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    written = 0
    for topic in topics:
        left = topic.fill_bytes
        for partition in itertools.cycle(range(topic.partition_count)):
            if left <= 0 or failed:
                break
            value = os.urandom(min(VALUE_BYTES, left))
            while not _offer_record(producer, (topic.name, partition), value, delivered):
                producer.poll(TICK_SECONDS)
            left -= len(value)
            written += len(value)
        producer.poll(0)
    unsent = producer.flush(FLUSH_SECONDS)
    if failed or unsent:
        late = f"{choose_plural('# record was|# records were', unsent)} not accepted within {FLUSH_SECONDS:g} s"
        why = failed[0].str() if failed else late
        raise ServerError(PlaygroundErrorCode.DATA_NOT_TAKEN, fault=why.removesuffix("."))
    return written


def _offer_record(
    producer: Producer,
    target: tuple[str, int],
    value: bytes,
    on_delivery: Callable[[KafkaError | None, Message], None],
) -> bool:
    """Hand one record over; False when the queue is full."""
    topic, partition = target
    try:
        producer.produce(topic, value, partition=partition, on_delivery=on_delivery)
    except BufferError:
        return False
    return True


def _producer_config(bootstrap: str) -> dict[str, str | int]:
    return {
        "bootstrap.servers": bootstrap,
        "acks": "all",
        "compression.type": "none",
        "linger.ms": 5,
        "batch.size": MIB,
        "queue.buffering.max.kbytes": 64 * 1024,
        "log_level": 0,
    }


def _new_topic(topic: LoadTopic) -> NewTopic:
    if topic.placement is not None:
        rows = [list(replicas) for replicas in topic.placement]
        return NewTopic(topic.name, num_partitions=len(rows), replica_assignment=rows, config=topic.config())
    return NewTopic(topic.name, num_partitions=topic.partitions, replication_factor=topic.rf, config=topic.config())


def _all_led(admin: AdminClient, names: Sequence[str]) -> bool:
    listed = _list_topics(admin)
    return all(
        name in listed
        and listed[name].partitions
        and all(partition.leader >= 0 for partition in listed[name].partitions.values())
        for name in names
    )


def _list_partitions(admin: AdminClient, topics: Sequence[str]) -> list[tuple[str, int]]:
    listed = _list_topics(admin)
    missing = [name for name in topics if name not in listed]
    if missing or not topics:
        raise ServerError(PlaygroundErrorCode.NO_TOPIC_TO_WRITE, topics=", ".join(missing) or "(none named)")
    # Interleaved, so that a slow rate reaches every topic soon.
    return sorted(((name, i) for name in topics for i in listed[name].partitions), key=lambda pair: (pair[1], pair[0]))


def _list_topics(admin: AdminClient) -> dict[str, TopicMetadata]:
    """Topics by name. Raises ServerError when no broker answers."""
    try:
        return admin.list_topics(timeout=ADMIN_SECONDS).topics
    except KafkaException as error:
        raise ServerError(PlaygroundErrorCode.PLAYGROUND_SILENT, fault=_fault_text(error)) from error


def _fault_text(error: KafkaException) -> str:
    fault: str = error.args[0].str()
    return fault.removesuffix(".")


def _wait_until(condition: Callable[[], bool], deadline: float, otherwise: CodedMessage) -> None:
    end = time.monotonic() + deadline
    while not condition():
        if time.monotonic() > end:
            raise ServerError(otherwise)
        time.sleep(0.05)
