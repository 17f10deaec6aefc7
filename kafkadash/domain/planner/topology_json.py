"""The interchange format of a topology (``manage.py export-topology``), and of what a child process plans from.

``{"brokers":[{"id","rack","disk_bytes","alive"}],"topics":[{"name","partitions":[{"partition","replicas","isr",
"leader","size_bytes","bytes_in_per_s"}]}]}``; what may be missing is not known, and never 0. Optional: per broker
``fenced`` and ``dirs`` ([{path, total_bytes, used_bytes, cordoned}]), or ``cordoned`` and ``used_bytes`` where
directories are not told apart; per topic ``id``, ``internal`` and ``min_isr``; per partition ``moving``; and
``kafka_id``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from kafkadash.domain.planner.topology import Broker, Directory, Partition, Topic, Topology
from kafkadash.domain.refusals import files as said
from kafkadash.domain.wording import size

LARGEST_ID = 2**31 - 1
MOST_BYTES = 2**57
"""Of all replicas together, 144 PB: sums of bytes, also of several copies, stay within 64 bits."""


class BadTopology(Exception):
    """This is no topology; ``str()`` is a sentence that says where and why."""


def write_topology(topology: Topology) -> bytes:
    """One topic a line; brokers by id, topics by name."""
    brokers = [_compact(_broker_out(broker)) for _, broker in sorted(topology.brokers.items())]
    topics = [_compact(_topic_out(topic)) for _, topic in sorted(topology.topics.items())]
    head = f'{{"kafka_id":{json.dumps(topology.kafka_id)},' if topology.kafka_id else "{"
    return (head + '"brokers":[\n' + ",\n".join(brokers) + '\n],"topics":[\n' + ",\n".join(topics) + "\n]}\n").encode()


def read_topology(content: bytes | str) -> Topology:
    """Raises BadTopology."""
    try:
        parsed = json.loads(content)
    except UnicodeDecodeError as error:
        raise BadTopology(said.TOPOLOGY_NOT_UTF_8()) from error
    except (ValueError, RecursionError) as error:
        raise BadTopology(said.TOPOLOGY_NOT_JSON(error=error)) from error
    outer = _object(parsed, "The topology")
    brokers: dict[int, Broker] = {}
    for index, given in enumerate(_list(outer, "brokers", "The topology")):
        broker = _broker_in(given, f"Entry {index + 1} of “brokers”")
        if broker.id in brokers:
            raise BadTopology(said.TOPOLOGY_TWICE(one=f"Broker {broker.id}"))
        brokers[broker.id] = broker
    topics: dict[str, Topic] = {}
    for index, given in enumerate(_list(outer, "topics", "The topology")):
        topic = _topic_in(given, f"Entry {index + 1} of “topics”")
        if topic.name in topics:
            raise BadTopology(said.TOPOLOGY_TWICE(one=f"Topic {topic.name}"))
        topics[topic.name] = topic
    total = sum((p.size_bytes or 0) * len(p.replicas) for topic in topics.values() for p in topic.partitions)
    if total > MOST_BYTES:
        raise BadTopology(said.TOPOLOGY_TOO_LARGE(total=size(total), most=size(MOST_BYTES)))
    return Topology(brokers, topics, _text(outer, "kafka_id", "The topology"))


def _broker_out(broker: Broker) -> dict[str, Any]:
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
        out["dirs"] = [_known(_directory_out(directory)) for directory in broker.dirs]
    return out


def _directory_out(directory: Directory) -> dict[str, Any]:
    return {
        "path": directory.path,
        "total_bytes": directory.total_bytes,
        "used_bytes": directory.used_bytes,
        "cordoned": directory.cordoned or None,
    }


def _topic_out(topic: Topic) -> dict[str, Any]:
    return _known(
        {
            "name": topic.name,
            "id": topic.id or None,
            "internal": topic.internal or None,
            "min_isr": topic.min_isr,
            "partitions": [
                _known(
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


def _broker_in(given: object, where: str) -> Broker:
    fields = _object(given, where)
    id_ = _whole(fields, "id", where)
    if id_ is None:
        raise BadTopology(said.FIELD_MISSING(where=where, field="“id”"))
    where = f"Broker {id_}"
    dirs = tuple(_directory_in(one, where) for one in _list(fields, "dirs", where, needed=False))
    disk, used = (
        _whole(fields, "disk_bytes", where, most=MOST_BYTES),
        _whole(fields, "used_bytes", where, most=MOST_BYTES),
    )
    cordoned = _flag(fields, "cordoned", where)
    if not dirs and (disk is not None or used is not None or cordoned):
        dirs = (Directory("", disk, used, cordoned),)
    rack = fields.get("rack")
    if rack is not None and not isinstance(rack, str):
        raise _shape(where, "rack", "a text or null")
    alive = _flag(fields, "alive", where, absent=True)
    return Broker(id_, rack, alive, _flag(fields, "fenced", where), dirs, _flag(fields, "silent", where))


def _directory_in(given: object, where: str) -> Directory:
    fields = _object(given, f"{where}: an entry of “dirs”")
    return Directory(
        _text(fields, "path", where),
        _whole(fields, "total_bytes", where, most=MOST_BYTES),
        _whole(fields, "used_bytes", where, most=MOST_BYTES),
        _flag(fields, "cordoned", where),
    )


def _topic_in(given: object, where: str) -> Topic:
    fields = _object(given, where)
    name = _text(fields, "name", where)
    if not name:
        raise BadTopology(said.FIELD_MISSING(where=where, field="“name”"))
    where = f"Topic {name[:249]}"
    partitions = [_partition_in(one, where) for one in _list(fields, "partitions", where)]
    partitions.sort(key=lambda p: p.partition)
    for one, next_ in itertools.pairwise(partitions):
        if one.partition == next_.partition:
            raise BadTopology(said.TOPOLOGY_PARTITION_TWICE(where=where, partition=one.partition))
    return Topic(
        name,
        tuple(partitions),
        _text(fields, "id", where),
        _flag(fields, "internal", where),
        _whole(fields, "min_isr", where),
    )


def _partition_in(given: object, where: str) -> Partition:
    fields = _object(given, f"{where}: an entry of “partitions”")
    number = _whole(fields, "partition", where)
    if number is None:
        raise BadTopology(said.FIELD_MISSING(where=f"An entry of {where}", field="“partition”"))
    where = f"{where}, partition {number}"
    replicas = _ids(fields, "replicas", where)
    if not replicas or len(set(replicas)) != len(replicas):
        raise _shape(where, "replicas", "a list of at least one broker, and none twice")
    rate = fields.get("bytes_in_per_s")
    if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1e18):
        raise _shape(where, "bytes_in_per_s", "a number from 0 on")
    return Partition(
        number,
        replicas,
        _ids(fields, "isr", where),
        _whole(fields, "leader", where),
        _whole(fields, "size_bytes", where, most=MOST_BYTES),
        rate,
        _flag(fields, "moving", where),
    )


def _ids(fields: Mapping[str, Any], name: str, where: str) -> tuple[int, ...]:
    given = fields.get(name, [])
    if not isinstance(given, list) or not all(type(id_) is int and 0 <= id_ <= LARGEST_ID for id_ in given):
        raise _shape(where, name, "a list of broker ids")
    return tuple(given)


def _whole(fields: Mapping[str, Any], name: str, where: str, most: int = LARGEST_ID) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise _shape(where, name, "a whole number from 0 on")
    if value > most:
        raise _shape(where, name, f"{most:,} at most")
    return value


def _flag(fields: Mapping[str, Any], name: str, where: str, *, absent: bool = False) -> bool:
    value = fields.get(name, absent)
    if not isinstance(value, bool):
        raise _shape(where, name, "true or false")
    return value


def _text(fields: Mapping[str, Any], name: str, where: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise _shape(where, name, "a text")
    return value


def _list(fields: Mapping[str, Any], name: str, where: str, *, needed: bool = True) -> list[Any]:
    value = fields.get(name) if needed else fields.get(name, [])
    if not isinstance(value, list):
        raise BadTopology(said.FIELD_MISSING(where=where, field=f"list “{name}”"))
    return value


def _object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadTopology(said.TOPOLOGY_SHAPE(field=where, wanted="an object"))
    return value


def _shape(where: str, name: str, wanted: str) -> BadTopology:
    return BadTopology(said.TOPOLOGY_SHAPE(field=f"{where}: “{name}”", wanted=wanted))


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
