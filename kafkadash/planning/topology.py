"""Topology of a cluster for planning, and its interchange format (``manage.py export-topology``, child processes).

None means unknown and never 0: a rack that no broker names, a size that could not be read, a disk whose total Kafka
does not report (before 3.3, KIP-827).

``{"brokers":[{"id","rack","disk_bytes","alive"}],"topics":[{"name","partitions":[{"partition","replicas","isr",
"leader","size_bytes","bytes_in_per_s"}]}]}``; a field that may be missing is unknown then, never 0. Optional: per
broker ``fenced`` and ``dirs`` ([{path, total_bytes, used_bytes, cordoned}]), or ``cordoned`` and ``used_bytes`` where
directories are not told apart; per topic ``id``, ``internal`` and ``min_isr``; per partition ``moving``; and
``kafka_id``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkadash.core.errors import UserError
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.racks import racks_known
from kafkadash.planning.problem_codes import FileErrorCode, FilePart


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A log directory: bytes in all and in use, None where not known."""

    path: str
    total_bytes: int | None = None
    used_bytes: int | None = None
    cordoned: bool = False


@dataclass(frozen=True, slots=True)
class PlannedBroker:
    """``alive`` is registered and not away; ``fenced`` registered but not let in (KRaft); ``silent`` does not
    answer, although the controllers have it alive.
    """

    id: int
    rack: str | None = None
    alive: bool = True
    fenced: bool = False
    dirs: tuple[LogDirectory, ...] = ()
    silent: bool = False

    @property
    def disk_bytes(self) -> int | None:
        """Bytes of all directories of the broker; None where the size of one is not known."""
        totals = [directory.total_bytes for directory in self.dirs]
        return sum(t for t in totals if t is not None) if totals and None not in totals else None

    @property
    def used_bytes(self) -> int | None:
        used = [directory.used_bytes for directory in self.dirs]
        return sum(u for u in used if u is not None) if used and None not in used else None

    def rooms(self, limit: float) -> tuple[int, ...] | None:
        """Bytes that each directory which takes replicas may still be given below ``limit`` (0 to 1) of its total.

        None where one does not tell. Kafka chooses the directory, so what all of them have together is an upper bound.
        """
        rooms = []
        for directory in self.dirs:
            if not directory.cordoned:
                if directory.total_bytes is None or directory.used_bytes is None:
                    return None
                rooms.append(max(0, int(limit * directory.total_bytes) - directory.used_bytes))
        return tuple(rooms) if self.dirs else None

    def room(self, limit: float) -> int | None:
        """Return the bytes of room in all directories together; None where the room of one is not known."""
        rooms = self.rooms(limit)
        return None if rooms is None else sum(rooms)

    @property
    def cordoned(self) -> bool:
        """Fully: not one directory takes new replicas (KIP-1066)."""
        return bool(self.dirs) and all(directory.cordoned for directory in self.dirs)

    @property
    def eligible(self) -> bool:
        """May be given replicas."""
        return self.up and not self.cordoned

    @property
    def up(self) -> bool:
        return self.alive and not self.fenced and not self.silent


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """Partition for the planner; ``replicas`` in order, the first is the preferred leader. ``moving``: in a move."""

    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...] = ()
    leader: int | None = None
    size_bytes: int | None = None
    bytes_in_per_s: float | None = None
    moving: bool = False


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """``id`` is Kafka's topic id, '' before Kafka 2.8; ``min_isr`` is min.insync.replicas in force."""

    name: str
    partitions: tuple[PlannedPartition, ...]
    id: str = ""
    internal: bool = False
    min_isr: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterTopology:
    """Brokers by id and topics by name. ``kafka_id`` is Kafka's id of the cluster."""

    brokers: Mapping[int, PlannedBroker] = field(default_factory=dict)
    topics: Mapping[str, PlannedTopic] = field(default_factory=dict)
    kafka_id: str = ""

    @property
    def internal_topics(self) -> frozenset[str]:
        """Return the names of Kafka's internal topics."""
        return frozenset(name for name, topic in self.topics.items() if topic.internal)

    @property
    def racks(self) -> dict[int, str]:
        """Registered broker → rack; empty where racks are not judged: one names none, or there is one rack only."""
        named = {broker.id: broker.rack for broker in self.brokers.values() if broker.alive}
        return {id_: rack for id_, rack in named.items() if rack is not None} if racks_known(named.values()) else {}


LARGEST_ID = 2**31 - 1
MOST_BYTES = 2**57
"""Bytes of all replicas together, 144 PB: sums of bytes, also of several copies, stay within 64 bits."""


class BadTopology(UserError):
    """The content is not a topology."""


def write_topology(topology: ClusterTopology) -> bytes:
    """Return the topology as JSON: one topic a line; brokers by id, topics by name."""
    brokers = [_dump_compact(_broker_out(broker)) for _, broker in sorted(topology.brokers.items())]
    topics = [_dump_compact(_topic_out(topic)) for _, topic in sorted(topology.topics.items())]
    head = f'{{"kafka_id":{json.dumps(topology.kafka_id)},' if topology.kafka_id else "{"
    return (head + '"brokers":[\n' + ",\n".join(brokers) + '\n],"topics":[\n' + ",\n".join(topics) + "\n]}\n").encode()


def read_topology(content: bytes | str) -> ClusterTopology:
    """Raises BadTopology."""
    try:
        parsed = json.loads(content)
    except UnicodeDecodeError as error:
        raise BadTopology(FileErrorCode.TOPOLOGY_NOT_UTF_8) from error
    except (ValueError, RecursionError) as error:
        raise BadTopology(FileErrorCode.TOPOLOGY_NOT_JSON, error=str(error)) from error
    whole = coded(FilePart.TOPOLOGY)
    outer = _read_object(parsed, whole)
    brokers: dict[int, PlannedBroker] = {}
    for index, given in enumerate(_read_list(outer, "brokers", whole)):
        broker = _broker_in(given, coded(FilePart.ENTRY_NUMBER, number=index + 1, list="brokers"))
        if broker.id in brokers:
            raise BadTopology(FileErrorCode.TOPOLOGY_TWICE, one=coded(FilePart.BROKER, broker=broker.id))
        brokers[broker.id] = broker
    topics: dict[str, PlannedTopic] = {}
    for index, given in enumerate(_read_list(outer, "topics", whole)):
        topic = _topic_in(given, coded(FilePart.ENTRY_NUMBER, number=index + 1, list="topics"))
        if topic.name in topics:
            raise BadTopology(FileErrorCode.TOPOLOGY_TWICE, one=coded(FilePart.TOPIC, topic=topic.name))
        topics[topic.name] = topic
    total = sum((p.size_bytes or 0) * len(p.replicas) for topic in topics.values() for p in topic.partitions)
    if total > MOST_BYTES:
        raise BadTopology(FileErrorCode.TOPOLOGY_TOO_LARGE, total=total, most=MOST_BYTES)
    return ClusterTopology(brokers, topics, _read_text(outer, "kafka_id", whole))


def _broker_out(broker: PlannedBroker) -> dict[str, Any]:
    out: dict[str, Any] = {"id": broker.id, "rack": broker.rack}
    if broker.disk_bytes is not None:
        out["disk_bytes"] = broker.disk_bytes
    out["alive"] = broker.alive
    if broker.fenced:
        out["fenced"] = True
    if broker.silent:
        out["silent"] = True
    if [directory.path for directory in broker.dirs] == [""]:
        only = broker.dirs[0]
        out |= {"used_bytes": only.used_bytes} if only.used_bytes is not None else {}
        out |= {"cordoned": True} if only.cordoned else {}
    elif broker.dirs:
        out["dirs"] = [_drop_none(_directory_out(directory)) for directory in broker.dirs]
    return out


def _directory_out(directory: LogDirectory) -> dict[str, Any]:
    return {
        "path": directory.path,
        "total_bytes": directory.total_bytes,
        "used_bytes": directory.used_bytes,
        "cordoned": directory.cordoned or None,
    }


def _topic_out(topic: PlannedTopic) -> dict[str, Any]:
    return _drop_none(
        {
            "name": topic.name,
            "id": topic.id or None,
            "internal": topic.internal or None,
            "min_isr": topic.min_isr,
            "partitions": [
                _drop_none(
                    {
                        "partition": p.partition,
                        "replicas": list(p.replicas),
                        "isr": list(p.isr),
                        "leader": p.leader,
                        "size_bytes": p.size_bytes,
                        "bytes_in_per_s": p.bytes_in_per_s,
                        "moving": p.moving or None,
                    }
                )
                for p in topic.partitions
            ],
        }
    )


def _broker_in(given: object, where: CodedMessage) -> PlannedBroker:
    fields = _read_object(given, where)
    id_ = _read_whole(fields, "id", where)
    if id_ is None:
        raise BadTopology(FileErrorCode.FIELD_MISSING, where=where, field="“id”")
    where = coded(FilePart.BROKER, broker=id_)
    dirs = tuple(_directory_in(one, where) for one in _read_list(fields, "dirs", where, needed=False))
    disk, used = (
        _read_whole(fields, "disk_bytes", where, most=MOST_BYTES),
        _read_whole(fields, "used_bytes", where, most=MOST_BYTES),
    )
    cordoned = _read_flag(fields, "cordoned", where)
    if not dirs and (disk is not None or used is not None or cordoned):
        dirs = (LogDirectory("", disk, used, cordoned),)
    rack = fields.get("rack")
    if rack is not None and not isinstance(rack, str):
        raise _shape_error(where, "rack", FilePart.TEXT_OR_NULL)
    alive = _read_flag(fields, "alive", where, absent=True)
    return PlannedBroker(
        id_, rack, alive, _read_flag(fields, "fenced", where), dirs, _read_flag(fields, "silent", where)
    )


def _directory_in(given: object, where: CodedMessage) -> LogDirectory:
    fields = _read_object(given, coded(FilePart.ENTRY_OF_LIST, where=where, list="dirs"))
    return LogDirectory(
        _read_text(fields, "path", where),
        _read_whole(fields, "total_bytes", where, most=MOST_BYTES),
        _read_whole(fields, "used_bytes", where, most=MOST_BYTES),
        _read_flag(fields, "cordoned", where),
    )


def _topic_in(given: object, where: CodedMessage) -> PlannedTopic:
    fields = _read_object(given, where)
    name = _read_text(fields, "name", where)
    if not name:
        raise BadTopology(FileErrorCode.FIELD_MISSING, where=where, field="“name”")
    where = coded(FilePart.TOPIC, topic=name[:249])
    partitions = [_partition_in(one, where) for one in _read_list(fields, "partitions", where)]
    partitions.sort(key=lambda p: p.partition)
    for one, next_ in itertools.pairwise(partitions):
        if one.partition == next_.partition:
            raise BadTopology(FileErrorCode.TOPOLOGY_PARTITION_TWICE, where=where, partition=one.partition)
    return PlannedTopic(
        name,
        tuple(partitions),
        _read_text(fields, "id", where),
        _read_flag(fields, "internal", where),
        _read_whole(fields, "min_isr", where),
    )


def _partition_in(given: object, where: CodedMessage) -> PlannedPartition:
    fields = _read_object(given, coded(FilePart.ENTRY_OF_LIST, where=where, list="partitions"))
    number = _read_whole(fields, "partition", where)
    if number is None:
        raise BadTopology(
            FileErrorCode.FIELD_MISSING,
            where=coded(FilePart.ENTRY_OF_LIST, where=where, list="partitions"),
            field="“partition”",
        )
    where = coded(FilePart.PARTITION, where=where, partition=number)
    replicas = _read_ids(fields, "replicas", where)
    if not replicas or len(set(replicas)) != len(replicas):
        raise _shape_error(where, "replicas", FilePart.LIST_OF_REPLICAS)
    rate = fields.get("bytes_in_per_s")
    if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1e18):
        raise _shape_error(where, "bytes_in_per_s", FilePart.POSITIVE_NUMBER)
    return PlannedPartition(
        number,
        replicas,
        _read_ids(fields, "isr", where),
        _read_whole(fields, "leader", where),
        _read_whole(fields, "size_bytes", where, most=MOST_BYTES),
        rate,
        _read_flag(fields, "moving", where),
    )


def _read_ids(fields: Mapping[str, Any], name: str, where: CodedMessage) -> tuple[int, ...]:
    given = fields.get(name, [])
    if not isinstance(given, list) or not all(type(id_) is int and 0 <= id_ <= LARGEST_ID for id_ in given):
        raise _shape_error(where, name, FilePart.LIST_OF_BROKERS)
    return tuple(given)


def _read_whole(fields: Mapping[str, Any], name: str, where: CodedMessage, most: int = LARGEST_ID) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise _shape_error(where, name, FilePart.WHOLE_NUMBER)
    if value > most:
        raise _shape_error(where, name, FilePart.AT_MOST, most=most)
    return value


def _read_flag(fields: Mapping[str, Any], name: str, where: CodedMessage, *, absent: bool = False) -> bool:
    value = fields.get(name, absent)
    if not isinstance(value, bool):
        raise _shape_error(where, name, FilePart.TRUE_OR_FALSE)
    return value


def _read_text(fields: Mapping[str, Any], name: str, where: CodedMessage) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise _shape_error(where, name, FilePart.TEXT)
    return value


def _read_list(fields: Mapping[str, Any], name: str, where: CodedMessage, *, needed: bool = True) -> list[Any]:
    value = fields.get(name) if needed else fields.get(name, [])
    if not isinstance(value, list):
        raise BadTopology(FileErrorCode.FIELD_MISSING, where=where, field=coded(FilePart.NAMED_LIST, name=name))
    return value


def _read_object(value: object, where: CodedMessage) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadTopology(FileErrorCode.TOPOLOGY_SHAPE, field=where, wanted=coded(FilePart.OBJECT))
    return value


def _shape_error(where: CodedMessage, name: str, wanted: FilePart, **params: object) -> BadTopology:
    field = coded(FilePart.FIELD_OF, where=where, name=name)
    return BadTopology(FileErrorCode.TOPOLOGY_SHAPE, field=field, wanted=coded(wanted, **params))


def _drop_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _dump_compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
