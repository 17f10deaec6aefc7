"""What brokers tell of a cluster, read again and again by a thread with requests of its own past the adapter."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from tests.contract import raw

LIST_OFFSETS, METADATA, API_VERSIONS, DESCRIBE_LOG_DIRS, LIST_REASSIGNMENTS = 2, 3, 18, 35, 46
REPLICA_ITSELF, LATEST, EARLIEST = -2, -1, -2
CORDONED_DIRECTORIES = 5  # first version of DescribeLogDirs that Kafka 4.3 offers and no older one
EVERY_S = 0.3
T = TypeVar("T")

MoveRow = tuple[str, int, tuple[int, ...], tuple[int, ...]]
"""Topic, partition, replicas that are added, replicas that are removed."""


@dataclass(frozen=True, slots=True)
class RawReading:
    """One round. What no broker told is None, or missing.

    ``troubled``: partitions with a replica out of sync, as each broker counts them. ``quorum``: leader and epoch.
    ``releases``: of each broker that answers. ``level``: metadata.version in force, as each broker knows it.
    ``percents``: of each replica that is added to partition 0 of a topic.
    """

    began: datetime
    ended: datetime
    moves: frozenset[MoveRow] | None
    troubled: Mapping[int, int]
    lagging: int | None
    quorum: tuple[int, int] | None
    releases: Mapping[int, str]
    level: Mapping[int, int]
    percents: Mapping[tuple[str, int], float]


@dataclass
class RawReads:
    """``brokers``: id to host:port. Addresses stay the same over restarts."""

    brokers: Mapping[int, str]
    readings: list[RawReading] = field(default_factory=list)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        end = threading.Event()
        thread = threading.Thread(target=self._read_until, args=[end], name="raw reads", daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    @property
    def newest(self) -> RawReading | None:
        return self.readings[-1] if self.readings else None

    def around(self, since: datetime, until: datetime, early: timedelta) -> Sequence[RawReading] | None:
        """Return readings from the last before ``since − early`` to the first after ``until``; None if not yet."""
        readings = list(self.readings)
        before = [number for number, each in enumerate(readings) if each.ended < since - early]
        after = [number for number, each in enumerate(readings) if each.began > until]
        return readings[before[-1] : after[0] + 1] if before and after else None

    def _read_until(self, end: threading.Event) -> None:
        while not end.wait(EVERY_S):
            self.readings.append(self._read())

    def _read(self) -> RawReading:
        began = datetime.now(UTC)
        moves = self._from_any(_read_moves)
        metadata = {broker: told for broker, told in self._from_each(_read_metadata) if told is not None}
        versions = {broker: told for broker, told in self._from_each(_read_versions) if told is not None}
        return RawReading(
            began=began,
            moves=moves,
            troubled={broker: _count_troubled(rows) for broker, rows in metadata.items()},
            lagging=min((_count_lagging(rows, moves or ()) for rows in metadata.values()), default=None),
            quorum=self._from_any(_read_quorum),
            releases={broker: release for broker, (release, _) in versions.items()},
            level={broker: level for broker, (_, level) in versions.items() if level is not None},
            percents=self._read_percents(moves or (), metadata),
            ended=datetime.now(UTC),
        )

    def _from_any(self, read: Callable[[str], T | None]) -> T | None:
        return next((told for _, told in self._from_each(read) if told is not None), None)

    def _from_each(self, read: Callable[[str], T | None]) -> Iterator[tuple[int, T | None]]:
        for broker, address in self.brokers.items():
            yield broker, self._ask(read, address)

    def _ask(self, read: Callable[[str], T], address: str) -> T | None:
        try:
            return read(address)
        except (OSError, IndexError):
            return None

    def _read_percents(
        self, moves: frozenset[MoveRow] | Sequence[MoveRow], metadata: Mapping[int, Sequence[tuple[str, Any]]]
    ) -> dict[tuple[str, int], float]:
        leaders = {(topic, row.partition_index): row.leader_id for rows in metadata.values() for topic, row in rows}
        found = {}
        for topic, partition, adding, _ in moves:
            leader = self.brokers.get(leaders.get((topic, partition), -1))
            if leader is None:
                continue
            start, end = (self._read_offset(leader, topic, partition, at) for at in (EARLIEST, LATEST))
            for broker in adding:
                own = self._read_offset(self.brokers[broker], topic, partition, LATEST)
                if start is not None and end is not None and own is not None and end > start:
                    found[topic, broker] = 100.0 * (own - start) / (end - start)
        return found

    def _read_offset(self, address: str, topic: str, partition: int, timestamp: int) -> int | None:
        types = raw.request_types(LIST_OFFSETS, 7)
        asked = types.ListOffsetsTopic(
            name=topic,
            partitions=(
                types.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=timestamp),
            ),
        )

        def read(address: str) -> int | None:
            answer = raw.ask(address, LIST_OFFSETS, 7, replica_id=REPLICA_ITSELF, isolation_level=0, topics=(asked,))
            row = answer.topics[0].partitions[0]
            return None if row.error_code else int(row.offset)

        return self._ask(read, address)


def _read_moves(address: str) -> frozenset[MoveRow] | None:
    answer = raw.ask(address, LIST_REASSIGNMENTS, 0, timeout=_milliseconds(5000), topics=None)
    if answer.error_code:
        return None
    return frozenset(
        (topic.name, int(row.partition_index), tuple(row.adding_replicas), tuple(row.removing_replicas))
        for topic in answer.topics
        for row in topic.partitions
    )


def _milliseconds(number: int) -> Any:
    from kio.static.primitive import i32Timedelta

    return i32Timedelta.parse(timedelta(milliseconds=number))


def _read_metadata(address: str) -> list[tuple[str, Any]]:
    answer = raw.ask(
        address,
        METADATA,
        8,
        topics=None,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    return [(topic.name, row) for topic in answer.topics for row in topic.partitions]


def _read_quorum(address: str) -> tuple[int, int] | None:
    types = raw.request_types(raw.DESCRIBE_QUORUM, 0)
    asked = types.TopicData(topic_name="__cluster_metadata", partitions=(types.PartitionData(partition_index=0),))
    answer = raw.ask(address, raw.DESCRIBE_QUORUM, 0, topics=(asked,))
    if answer.error_code:
        return None
    row = answer.topics[0].partitions[0]
    return (int(row.leader_id), int(row.leader_epoch)) if row.error_code == 0 and row.leader_id >= 0 else None


def _read_versions(address: str) -> tuple[str, int | None]:
    answer = raw.ask(address, API_VERSIONS, 3, client_software_name="test", client_software_version="1")
    highest = {int(row.api_key): int(row.max_version) for row in answer.api_keys}
    levels = {str(row.name): int(row.max_version_level) for row in answer.finalized_features}
    release = "4.3" if highest.get(DESCRIBE_LOG_DIRS, 0) >= CORDONED_DIRECTORIES else "3.9"
    return release, levels.get("metadata.version")


def _count_troubled(rows: Sequence[tuple[str, Any]]) -> int:
    return sum(len(row.isr_nodes) < len(row.replica_nodes) for _, row in rows)


def _count_lagging(rows: Sequence[tuple[str, Any]], moves: frozenset[MoveRow] | Sequence[MoveRow]) -> int:
    """Count partitions with a replica out of sync that no move adds."""
    adding = {(topic, partition): set(added) for topic, partition, added, _ in moves}
    return sum(
        bool(set(row.replica_nodes) - set(row.isr_nodes) - adding.get((topic, row.partition_index), set()))
        for topic, row in rows
    )
