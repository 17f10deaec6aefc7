"""The script's own reading of Kafka: raw requests with kafka-python's message classes, none of the product's code.

ListOffsets with replica_id -2 makes a broker answer for its own copy (class
org.apache.kafka.common.requests.ListOffsetsRequest, DEBUGGING_REPLICA_ID); timestamp -1 asks for the log end offset,
-2 for the log start offset.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from bisect import bisect_left
from dataclasses import dataclass

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="(read|open)_text is deprecated", category=DeprecationWarning)
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.selector import NetworkSelector
    from kafka.protocol.consumer import ListOffsetsRequest

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

DEBUGGING_REPLICA = -2
END, START = -1, -2
REQUEST_MS = 5000
READ_SECONDS = 0.1
VALUE_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Reading:
    """`at` in seconds since the epoch, the middle between asking and the answer; offsets are records."""

    at: float
    log_start: int
    leader_end: int
    replica_end: int

    @property
    def percent(self) -> float:
        total = self.leader_end - self.log_start
        return 100.0 * (self.replica_end - self.log_start) / total if total > 0 else 0.0


def make_topic(bootstrap: str, topic: str, placement: list[list[int]], size: int) -> int:
    """Make the topic with these replicas and fill it evenly; return the bytes that Kafka took."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(
        topic,
        num_partitions=len(placement),
        replica_assignment=placement,
        config={"retention.ms": "-1", "retention.bytes": "-1"},
    )
    admin.create_topics([new])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "compression.type": "none", "linger.ms": 5})
    refused: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(error.str())

    records = size // VALUE_BYTES
    for number in range(records):
        while True:
            try:
                producer.produce(
                    topic,
                    os.urandom(VALUE_BYTES),
                    partition=number % len(placement),
                    on_delivery=delivered,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    unsent = producer.flush(120)
    if refused or unsent:
        raise RuntimeError(f"Kafka did not take the records: {unsent} unsent, {refused[:1]}")
    return records * VALUE_BYTES


class TruthReader(threading.Thread):
    """Reads the offsets of one destination's copies again and again, until `stop`; keeps everything."""

    def __init__(self, bootstrap: str, topic: str, leaders: dict[int, int], destination: int) -> None:
        super().__init__(name="truth", daemon=True)
        self.readings: dict[int, list[Reading]] = {partition: [] for partition in leaders}
        self.failures: list[str] = []
        self._topic = topic
        self._leaders = leaders
        self._destination = destination
        self._stop_asked = threading.Event()
        net = NetworkSelector()
        self._manager = KafkaConnectionManager(
            net, bootstrap_servers=bootstrap.split(","), max_in_flight_requests_per_connection=100
        )
        net.start()
        self._net = net
        self._manager.bootstrap(timeout_ms=10_000)

    def run(self) -> None:
        while not self._stop_asked.wait(READ_SECONDS):
            for partition in self._leaders:
                try:
                    self._read(partition)
                except Exception as error:  # noqa: BLE001  counted, and judged at the end
                    self.failures.append(f"{type(error).__name__}: {error}")

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(30)
        self._manager.close()
        self._net.stop()

    def around(self, partition: int, moment: float) -> tuple[float, float, float] | None:
        """Percent on the line between the readings around that time, and these two; None out of their reach."""
        readings = self.readings[partition]
        after = bisect_left([reading.at for reading in readings], moment)
        if after == 0 or after == len(readings):
            return None
        one, other = readings[after - 1], readings[after]
        line = one.percent + (other.percent - one.percent) * (moment - one.at) / (other.at - one.at)
        return line, min(one.percent, other.percent), max(one.percent, other.percent)

    def _read(self, partition: int) -> None:
        leader = self._leaders[partition]
        began = time.time()
        log_start, leader_end, replica_end = self._manager.run(
            self._ask, partition, [(leader, START), (leader, END), (self._destination, END)]
        )
        if replica_end is None:  # the destination has not made its copy's folder yet
            return
        assert log_start is not None
        assert leader_end is not None
        self.readings[partition].append(Reading((began + time.time()) / 2, log_start, leader_end, replica_end))

    async def _ask(self, partition: int, questions: list[tuple[int, int]]) -> list[int | None]:
        """All questions at once, so that their answers are of about the same time."""
        pending = [
            self._manager.send(
                _list_offsets(self._topic, partition, timestamp), node_id=node, request_timeout_ms=REQUEST_MS
            )
            for node, timestamp in questions
        ]
        answers = []
        for future in pending:
            response = await future
            item = response.topics[0].partitions[0]
            answers.append(item.offset if item.error_code == 0 else None)
        return answers


def _list_offsets(topic: str, partition: int, timestamp: int) -> ListOffsetsRequest:
    of_topic = ListOffsetsRequest.ListOffsetsTopic
    of_partition = of_topic.ListOffsetsPartition
    item = of_partition(partition_index=partition, current_leader_epoch=-1, timestamp=timestamp)
    return ListOffsetsRequest(
        replica_id=DEBUGGING_REPLICA,
        isolation_level=0,
        timeout_ms=REQUEST_MS,
        topics=[of_topic(name=topic, partitions=[item])],
    )
