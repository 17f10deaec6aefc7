"""Consumer groups with good and bad behaviour, on a topic with steady traffic, for the demo and tests.

    with Consumers(bootstrap) as consumers:             # the groups of GROUPS, or those that are given
        consumers.behave("dispatch", Behaviour.STALLED)  # in force when it returns
        consumers.rewind("dispatch", 50)

One thread feeds the topic and drives all consumers: a few hundred small records per second, a few percent of a core.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from queue import Empty, SimpleQueue
from typing import Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kafkadash.devtools.playground.load import LoadTopic, create_topics

FED, QUIET = "deliveries", "price-list"
RATE = 40.0  # records a second, over all partitions
RECORD = b"x" * 100
QUIET_RECORDS = 300
TICK_SECONDS = 0.1
COMMIT_SECONDS = 1.0
AGAIN_SECONDS = 5.0  # until a group that lost its cluster is tried again
CALL_SECONDS = 10.0  # for what a consumer asks the brokers
BEHAVE_SECONDS = 60.0
SETTLED_SECONDS = 1.5  # with all partitions assigned, until the first commit
MOST_AT_ONCE = 500  # records of one member in one turn


class GroupBehaviour(StrEnum):
    HEALTHY = "healthy"  # reads what comes, commits every second
    LAGGING = "lagging"  # reads half of what comes
    STALLED = "stalled"  # reads, and never commits; its members are alive
    STOPPED = "stopped"  # has read everything once, committed, and left
    REWINDING = "rewinding"  # goes back now and then, commits that, and is slow to return


@dataclass(frozen=True, slots=True)
class ConsumerReading:
    """A group and what it does at first. ``protocol``: classic, or consumer (KIP-848)."""

    group: str
    behaviour: GroupBehaviour
    topic: str = FED
    members: int = 1
    protocol: str = "classic"


GROUPS = (
    ConsumerReading("dispatch", GroupBehaviour.HEALTHY, members=2, protocol="consumer"),
    ConsumerReading("delivery-statistics", GroupBehaviour.LAGGING),
    ConsumerReading("invoice-writer", GroupBehaviour.STALLED, members=2),
    ConsumerReading("mail-sender", GroupBehaviour.STOPPED),
    ConsumerReading("price-import", GroupBehaviour.STOPPED, topic=QUIET),
    ConsumerReading("search-index", GroupBehaviour.REWINDING),
)


class PlaygroundConsumers:
    """``rewind_every``: seconds between two rewinds of a group that does so by itself; it goes back by as much as is
    written in a third of that.
    """

    def __init__(
        self,
        bootstrap: str,
        groups: Sequence[ConsumerReading] = GROUPS,
        *,
        rate: float = RATE,
        partitions: int = 6,
        rf: int = 3,
        rewind_every: float = 180.0,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._bootstrap = bootstrap
        self._groups = {each.group: _RunningGroup(bootstrap, each, rate, rewind_every) for each in groups}
        self._rate = rate
        self._topics = [LoadTopic(FED, partitions, rf), LoadTopic(QUIET, 1, rf)]
        self._say = say
        self._orders: SimpleQueue[tuple[Callable[[], None], Future[None]]] = SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="playground-consumers", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Makes the topics that are not there yet. Raises ServerError."""
        if QUIET in create_topics(self._bootstrap, self._topics):
            _write_records(self._bootstrap, QUIET, QUIET_RECORDS)
        self._thread.start()

    def stop(self, deadline: float = 30.0) -> None:
        """Members leave their groups; what was committed stays."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(deadline)

    def behave(self, group: str, behaviour: GroupBehaviour) -> None:
        """Returns when it is in force; members that join do so within seconds (ten, in groups of KIP-848).

        Raises KeyError for a group that is not of these.
        """
        chosen = self._groups[group]
        self._order(lambda: chosen.behave(behaviour))

    def rewind(self, group: str, records: int) -> None:
        """Every partition goes back by so many records, and that is committed when it returns."""
        chosen = self._groups[group]
        self._order(lambda: chosen.rewind(records))

    def behaviour(self, group: str) -> GroupBehaviour:
        return self._groups[group].behaviour

    def _order(self, work: Callable[[], None]) -> None:
        done: Future[None] = Future()
        self._orders.put((work, done))
        done.result(BEHAVE_SECONDS)

    # ---- the thread

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 50, "log_level": 0})
        credit = 0.0
        last = time.monotonic()
        while not self._stop.wait(TICK_SECONDS):
            now = time.monotonic()
            credit = min(credit + (now - last) * self._rate, 5 * self._rate)
            last = now
            while credit >= 1:
                with suppress(BufferError):  # no broker takes them: they are not missed
                    producer.produce(FED, RECORD)
                credit -= 1
            producer.poll(0)
            self._obey()
            for group in self._groups.values():
                self._turn(group)
        for group in self._groups.values():
            group.leave()
        producer.flush(CALL_SECONDS)

    def _obey(self) -> None:
        with suppress(Empty):
            while True:
                work, done = self._orders.get_nowait()
                try:
                    work()
                except Exception as error:  # noqa: BLE001  (raised again where it was ordered)
                    done.set_exception(error)
                else:
                    done.set_result(None)

    def _turn(self, group: _RunningGroup) -> None:
        try:
            group.turn(time.monotonic())
        except KafkaException as error:
            self._say(f"Group {group.reading.group} stopped ({error}). Retry in {AGAIN_SECONDS:g} s.")
            group.leave()
            group.rests_until = time.monotonic() + AGAIN_SECONDS


class _RunningGroup:
    """The members of one group. All methods on the driving thread."""

    def __init__(self, bootstrap: str, reading: ConsumerReading, rate: float, rewind_every: float) -> None:
        self.reading = reading
        self.behaviour = reading.behaviour
        self.rests_until = 0.0
        self._bootstrap = bootstrap
        self._rate = rate
        self._rewind_every = rewind_every
        self._members: list[Consumer] = []
        self._begun = False  # has committed for the first time
        self._credit = 0.0
        self._turned_at = time.monotonic()
        self._at: dict[tuple[str, int], int] = {}  # the next record of each partition
        self._assigned_at: float | None = None
        self._committed_at = 0.0
        self._rewound_at = 0.0

    def behave(self, behaviour: GroupBehaviour) -> None:
        if behaviour is GroupBehaviour.STOPPED:
            self.leave()
        self.behaviour = behaviour
        self._credit = 0.0

    def leave(self) -> None:
        """Without a last commit."""
        members, self._members = self._members, []
        self._at.clear()
        self._assigned_at = None
        for member in members:
            member.close()

    def turn(self, now: float) -> None:
        elapsed, self._turned_at = now - self._turned_at, now
        if now < self.rests_until or (self.behaviour is GroupBehaviour.STOPPED and self._begun):
            return
        if not self._members:
            self._members = [self._member(number + 1) for number in range(self.reading.members)]
        read = self._read(self._share(now, elapsed))
        if not all(member.assignment() for member in self._members):
            self._assigned_at = None
        elif self._assigned_at is None:
            self._assigned_at = now
        elif not self._begun:
            if now - self._assigned_at >= SETTLED_SECONDS and read < MOST_AT_ONCE / 10:
                self._begin(now)
        elif now - self._committed_at >= COMMIT_SECONDS and self.behaviour is not GroupBehaviour.STALLED:
            self._commit(now)
            if self.behaviour is GroupBehaviour.REWINDING and now - self._rewound_at >= self._rewind_every:
                self.rewind(max(1, int(self._rate * self._rewind_every / 3 / len(self._at))))

    def rewind(self, records: int) -> None:
        now = self._rewound_at = time.monotonic()
        for member in self._members:
            for place in self._places(member):
                low, _ = member.get_watermark_offsets(place, timeout=CALL_SECONDS)
                place.offset = self._at[place.topic, place.partition] = max(low, place.offset - records)
                member.seek(place)
        self._commit(now)

    def _begin(self, now: float) -> None:
        """The first commit: of every partition, also where nothing was read."""
        for member in self._members:
            for place in member.committed(member.assignment(), timeout=CALL_SECONDS):
                low, _ = member.get_watermark_offsets(place, timeout=CALL_SECONDS)
                self._at.setdefault((place.topic, place.partition), max(low, place.offset))
        self._commit(now)
        self._begun = True
        self._rewound_at = now
        if self.behaviour is GroupBehaviour.STOPPED:
            self.leave()

    def _commit(self, now: float) -> None:
        self._committed_at = now
        for member in self._members:
            if places := self._places(member):
                member.commit(offsets=places, asynchronous=False)

    def _places(self, member: Consumer) -> list[TopicPartition]:
        """Return a member's positions. librdkafka's own position ignores a seek until the next record arrives."""
        return [
            TopicPartition(place.topic, place.partition, self._at[place.topic, place.partition])
            for place in member.assignment()
            if (place.topic, place.partition) in self._at
        ]

    def _share(self, now: float, elapsed: float) -> int:
        """How many records to read now."""
        slow = self.behaviour is GroupBehaviour.LAGGING or (
            self.behaviour is GroupBehaviour.REWINDING and now - self._rewound_at < self._rewind_every / 2
        )
        if not slow or not self._begun:
            return MOST_AT_ONCE
        self._credit = min(self._credit + elapsed * self._rate / 2, self._rate)
        share = int(self._credit)
        self._credit -= share
        return share

    def _read(self, most: int) -> int:
        read = 0
        for member in self._members if most else ():
            for message in member.consume(max(1, most // len(self._members)), timeout=0.0):
                topic, partition, offset = message.topic(), message.partition(), message.offset()
                if message.error() is None and topic is not None and partition is not None and offset is not None:
                    self._at[topic, partition] = offset + 1
                    read += 1
        return read

    def _member(self, number: int) -> Consumer:
        config: dict[str, str | int | bool] = {
            "bootstrap.servers": self._bootstrap,
            "group.id": self.reading.group,
            "client.id": f"{self.reading.group}-{number}",
            "group.protocol": self.reading.protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "queued.max.messages.kbytes": 512,
            "log_level": 0,
        }
        member = Consumer(config)
        member.subscribe([self.reading.topic])
        return member


def _write_records(bootstrap: str, topic: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for _ in range(records):
        producer.produce(topic, RECORD)
    producer.flush(CALL_SECONDS)
