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
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
SLOW_SECONDS = 0.3
POINTS_ALLOWED = 2.0
VALUE_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class TruePercent:
    """Percent at a moment, on the line between the readings just before and after; ``low`` and ``high`` are these two.

    ``apart_s``: seconds from the one reading to the other.
    """

    line: float
    low: float
    high: float
    apart_s: float

    def points_off(self, shown: float) -> float:
        """Distance from the line; where the line says nothing of the moment, from the two readings.

        Kafka throttles by letting nothing pass and then much at once: where more came between the readings than a
        figure may be off, or where a reading between them was too slow to count, only the readings are known.
        """
        if self.high - self.low <= POINTS_ALLOWED and self.apart_s <= 2 * SLOW_SECONDS:
            return abs(shown - self.line)
        return self.points_outside(shown)

    def points_outside(self, shown: float) -> float:
        return max(0.0, self.low - shown, shown - self.high)

    def __str__(self) -> str:
        return f"true {self.line:.2f} %, {self.low:.2f} to {self.high:.2f} % within {self.apart_s:.2f} s"


def true_percent(before: tuple[float, float], after: tuple[float, float], moment: float) -> TruePercent:
    """``before`` and ``after``: time and percent of a reading."""
    apart = after[0] - before[0]
    line = before[1] + (after[1] - before[1]) * (moment - before[0]) / apart
    return TruePercent(line, min(before[1], after[1]), max(before[1], after[1]), apart)


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


Name = tuple[str, int]
Question = tuple[int, int]
"""Broker and timestamp."""


@dataclass(frozen=True, slots=True)
class Copy:
    """New replica at ``destination``, judged by ``kept``, a replica in sync that stays. ``size`` in bytes."""

    topic: str
    partition: int
    destination: int
    kept: int
    size: int

    @property
    def name(self) -> Name:
        return self.topic, self.partition


@dataclass(slots=True)
class Readings:
    """Percents of copies at one broker, all read at the same times (seconds since the epoch)."""

    times: list[float] = field(default_factory=list)
    percents: dict[Name, list[float]] = field(default_factory=dict)

    def add(self, at: float, percents: Mapping[Name, float]) -> None:
        self.times.append(at)
        for name, percent in percents.items():
            self.percents.setdefault(name, []).append(percent)

    def around(self, name: Name, moment: float) -> TruePercent | None:
        """Percent at that time; None out of the readings' reach."""
        after = bisect_left(self.times, moment)
        if after == 0 or after == len(self.times):
            return None
        percents = self.percents[name]
        before = self.times[after - 1], percents[after - 1]
        return true_percent(before, (self.times[after], percents[after]), moment)


class PlanTruth(threading.Thread):
    """Reads all copies again and again, until `stop`; keeps everything. What is not there yet is at 0 %.

    Each broker with new copies is asked by itself, so that the time of its answer is known; an answer that took so
    long that nobody can tell when it was true is left out.
    """

    def __init__(self, bootstrap: str, copies: Sequence[Copy]) -> None:
        super().__init__(name="truth", daemon=True)
        self.failures: list[str] = []
        self.slow = 0
        self._copies = {copy.name: copy for copy in copies}
        self._readings = {copy.destination: Readings() for copy in copies}
        self._stop_asked = threading.Event()
        self._net = NetworkSelector()
        self._manager = KafkaConnectionManager(
            self._net, bootstrap_servers=bootstrap.split(","), max_in_flight_requests_per_connection=100
        )
        self._net.start()
        self._manager.bootstrap(timeout_ms=10_000)

    @property
    def reads(self) -> int:
        return sum(len(readings.times) for readings in self._readings.values())

    def run(self) -> None:
        while not self._stop_asked.wait(READ_SECONDS):
            try:
                self._read()
            except Exception as error:  # noqa: BLE001  counted, and judged at the end
                self.failures.append(f"{type(error).__name__}: {error}")

    def stop(self) -> None:
        self._stop_asked.set()
        if self.is_alive():
            self.join(30)
        self._manager.close()
        self._net.stop()

    def around(self, copy: Copy, moment: float) -> TruePercent | None:
        """Percent of one copy at that time."""
        return self._readings[copy.destination].around(copy.name, moment)

    def whole(self, moment: float) -> TruePercent | None:
        """Percent of all bytes of the plan at that time."""
        found = [(copy.size, self.around(copy, moment)) for copy in self._copies.values()]
        total = sum(size for size, _ in found)
        line = low = high = apart = 0.0
        for size, true in found:
            if true is None:
                return None
            share = size / total
            line, low, high = line + share * true.line, low + share * true.low, high + share * true.high
            apart = max(apart, true.apart_s)
        return TruePercent(line, low, high, apart)

    def _read(self) -> None:
        """First what the copies are measured by: it hardly changes."""
        kept: dict[Question, list[Name]] = defaultdict(list)
        for name, copy in self._copies.items():
            kept[copy.kept, START].append(name)
            kept[copy.kept, END].append(name)
        sources = self._manager.run(self._ask, dict(kept))
        for broker, readings in self._readings.items():
            names = [name for name, copy in self._copies.items() if copy.destination == broker]
            began = time.time()
            answers = self._manager.run(self._ask, {(broker, END): names})
            took = time.time() - began
            if took > SLOW_SECONDS:
                self.slow += 1
                continue
            found = {**sources, **answers}
            readings.add(began + took / 2, {name: _percent(self._copies[name], found) for name in names})

    async def _ask(self, asked: Mapping[Question, Sequence[Name]]) -> dict[tuple[int, int, str, int], int]:
        """All at once; without those that are refused."""
        pending = [
            (
                broker,
                timestamp,
                self._manager.send(_offsets(names, timestamp), node_id=broker, request_timeout_ms=REQUEST_MS),
            )
            for (broker, timestamp), names in asked.items()
        ]
        found = {}
        for broker, timestamp, future in pending:
            for topic in (await future).topics:
                for item in topic.partitions:
                    if item.error_code == 0:
                        found[broker, timestamp, topic.name, item.partition_index] = int(item.offset)
        return found


def _percent(copy: Copy, answers: Mapping[tuple[int, int, str, int], int]) -> float:
    start, end = (answers[copy.kept, timestamp, *copy.name] for timestamp in (START, END))
    there = answers.get((copy.destination, END, *copy.name), start)
    return min(100.0, 100 * max(0, there - start) / (end - start)) if end > start else 100.0


def _offsets(names: Sequence[Name], timestamp: int) -> ListOffsetsRequest:
    of_topic = ListOffsetsRequest.ListOffsetsTopic
    of_partition = of_topic.ListOffsetsPartition
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in names:
        by_topic[topic].append(partition)
    return ListOffsetsRequest(
        replica_id=DEBUGGING_REPLICA,
        isolation_level=0,
        timeout_ms=REQUEST_MS,
        topics=[
            of_topic(
                name=topic,
                partitions=[
                    of_partition(partition_index=partition, current_leader_epoch=-1, timestamp=timestamp)
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic.items()
        ],
    )
