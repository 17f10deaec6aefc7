"""Znodes that Kafka keeps in ZooKeeper (Kafka 2.4 to 3.9), as plain values.

The bytes come from a server that may be anything: whatever is not as Kafka writes it is a failure that names the znode,
never a value. Zxids identify writes: the one that created a znode (czxid) is what KIP-240 identifies a reassignment by.
Times are milliseconds since the epoch on the clock of the server that led the ensemble.
"""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kafkadash.kafka.api import KafkaFailure, TopicPartition, ZooKeeperConnection
from kafkadash.kafka.errors import KafkaErrorCode

CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKERS = "/brokers/ids"
TOPICS = "/brokers/topics"
REASSIGN = "/admin/reassign_partitions"
ELECT = "/admin/preferred_replica_election"
DELETE = "/admin/delete_topics"
BROKER_CONFIGS = "/config/brokers"
TOPIC_CONFIGS = "/config/topics"
CONFIG_CHANGES = "/config/changes"

_LARGEST_INT = 2**31 - 1
_LARGEST_LONG = 2**63 - 1
_MOST_REPLICAS = 1000
_LONGEST_NAME = 249  # of a topic
_LONGEST_TEXT = 10_000


class ZNodeUnusable(KafkaFailure):
    """A znode is not as Kafka writes it."""


class OtherZooKeeper(KafkaFailure):
    """The ensemble answers, and does not have this cluster below the chroot."""


class WriteUnanswered(KafkaFailure):
    """The answer to a write did not arrive, or tells too little: it may be done, or may still be."""


class WriteRefused(KafkaFailure):
    """Nothing was written."""


@dataclass(frozen=True, slots=True)
class ZNode:
    """Data of a znode, and what ZooKeeper says of its writes."""

    path: str
    data: bytes
    czxid: int
    created_ms: int
    modified_ms: int
    version: int


@dataclass(frozen=True, slots=True)
class ChangeNotice:
    """Znode that tells brokers of a change; ZooKeeper appends a number to its ``prefix``."""

    prefix: str
    data: bytes


class ZNodeReader(Protocol):
    """A session with the ensemble; every call returns or raises a KafkaFailure within the session's deadline."""

    def read(self, paths: Sequence[str]) -> Sequence[ZNode | None]:
        """Return the znodes in this order, None for one that does not exist."""
        ...

    def children(self, path: str) -> Sequence[str]:
        """Return the names below a path, sorted; none where it does not exist."""
        ...

    def extend(self, seconds: float) -> None:
        """Set the deadline anew, so many seconds from now."""
        ...


class ZNodeWriter(ZNodeReader, Protocol):
    """A session that may also write."""

    def replace(self, znode: ZNode, data: bytes, notice: ChangeNotice) -> bool:
        """Replace what was read and create the notice, both or neither; False where somebody else wrote meanwhile.

        Raises NotAuthorized, and WriteUnanswered where nobody knows whether it was done.
        """
        ...


@dataclass(frozen=True, slots=True)
class ControllerZNode:
    """Controller of the cluster. ``kraft_epoch``: above 0 while it migrates to KRaft, whose controller this is then."""

    broker_id: int
    elected_ms: int | None
    kraft_epoch: int | None

    @property
    def migrating(self) -> bool:
        return self.kraft_epoch is not None and self.kraft_epoch > 0


@dataclass(frozen=True, slots=True)
class BrokerZNode:
    """A live broker. ``endpoints`` are ``LISTENER://host:port``; ``rack`` is None where it has none."""

    id: int
    endpoints: tuple[str, ...]
    rack: str | None
    version: int


@dataclass(frozen=True, slots=True)
class TopicZNode:
    """A topic's assignment. ``topic_id`` as of ``TopicMetadata``; ``adding`` and ``removing`` have moving partitions.

    ``modified_ms`` is the last write to the znode, which may be about any of its partitions.
    """

    name: str
    topic_id: str
    replicas: Mapping[int, tuple[int, ...]]
    adding: Mapping[int, tuple[int, ...]]
    removing: Mapping[int, tuple[int, ...]]
    modified_ms: int


@dataclass(frozen=True, slots=True)
class ReassignmentBatch:
    """Reassignments that a tool wrote to ``/admin/reassign_partitions``, as far as they have not ended.

    Only ``czxid`` and ``created_ms`` stay the same as long as the znode exists: the controller rewrites it when one of
    its partitions ends. An entry that was added later waits until the controller changes. While ``version`` is 0, all
    entries are those of the creation.
    """

    czxid: int
    created_ms: int
    version: int
    targets: Mapping[TopicPartition, tuple[int, ...]]

    @property
    def id(self) -> str:
        """The czxid as ZooKeeper's tools print it."""
        return f"{self.czxid & 0xFFFF_FFFF_FFFF_FFFF:#x}"


@dataclass(frozen=True, slots=True)
class ZooKeeperFacts:
    """Pending work in ZooKeeper, and the controller; None and empty where the znode does not exist."""

    controller: ControllerZNode | None
    controller_epoch: int | None
    batch: ReassignmentBatch | None
    elections: tuple[TopicPartition, ...]
    deletions: tuple[str, ...]


def check_cluster(session: ZNodeReader, connection: ZooKeeperConnection) -> str:
    """Return the cluster's id as ZooKeeper has it.

    Raises OtherZooKeeper where no Kafka cluster is below the chroot, or another one than it has to be.
    """
    [znode] = session.read([CLUSTER_ID])
    if znode is None:
        raise OtherZooKeeper(KafkaErrorCode.ZOOKEEPER_WITHOUT_KAFKA, path=f"{connection.chroot}{CLUSTER_ID}")
    found, expected = _text(_record(znode), "id", znode.path), connection.kafka_id
    if expected and found != expected:
        raise OtherZooKeeper(KafkaErrorCode.ZOOKEEPER_OF_OTHER_CLUSTER, answered=found, expected=expected)
    return found


def read_facts(session: ZNodeReader) -> ZooKeeperFacts:
    controller, epoch, batch, elections = session.read([CONTROLLER, CONTROLLER_EPOCH, REASSIGN, ELECT])
    return ZooKeeperFacts(
        parse_controller(controller) if controller else None,
        parse_epoch(epoch) if epoch else None,
        parse_batch(batch) if batch else None,
        parse_elections(elections) if elections else (),
        tuple(session.children(DELETE)),
    )


def read_batch(session: ZNodeReader) -> ReassignmentBatch | None:
    [znode] = session.read([REASSIGN])
    return parse_batch(znode) if znode else None


def read_brokers(session: ZNodeReader) -> Sequence[BrokerZNode]:
    """Return the live brokers by id."""
    found = session.read([f"{BROKERS}/{name}" for name in session.children(BROKERS)])
    return sorted((parse_broker(znode) for znode in found if znode), key=lambda broker: broker.id)


def read_topics(session: ZNodeReader, names: Collection[str] | None = None) -> Mapping[str, TopicZNode]:
    """Return all topics, or those of the named that exist."""
    wanted = session.children(TOPICS) if names is None else sorted(names)
    found = session.read([f"{TOPICS}/{name}" for name in wanted])
    return {topic.name: topic for topic in map(parse_topic, filter(None, found))}


def read_configs(session: ZNodeReader, folder: str, names: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
    """Return the dynamic configs of brokers or topics; one that never had any is left out."""
    found = session.read([f"{folder}/{name}" for name in names])
    return {_last_name(znode.path): parse_config(znode) for znode in found if znode}


def read_absent_configs(session: ZNodeReader, brokers: Collection[int]) -> Mapping[int, Mapping[str, str]]:
    """Return the dynamic configs of those brokers that are not registered; such a broker reads them when it starts.

    None during a migration to KRaft, whose controller is in charge of them.
    """
    wanted = sorted(set(brokers))
    registered = session.read([CONTROLLER, *(f"{BROKERS}/{broker}" for broker in wanted)])
    if registered[0] is None or parse_controller(registered[0]).migrating:
        return {}
    absent = [broker for broker, znode in zip(wanted, registered[1:], strict=True) if znode is None]
    found = session.read([f"{BROKER_CONFIGS}/{broker}" for broker in absent])
    return {broker: parse_config(znode) if znode else {} for broker, znode in zip(absent, found, strict=True)}


def remove_broker_configs(session: ZNodeWriter, broker: int, keys: Collection[str], controller: int | None) -> None:
    """Remove configs of a broker that is not registered, which reads them when it starts.

    A process that only lost its ZooKeeper session does not start again: it reads them on a notice like the one that
    Kafka's AdminZkClient writes. Brokers delete a notice after 15 minutes. A live broker is changed through Kafka.
    ``controller``: the one that Kafka names; where ZooKeeper names another one, as during a migration to KRaft, nothing
    is written. Raises WriteRefused, WriteUnanswered, and other KafkaFailures before anything was written.
    """
    registered, path = f"{BROKERS}/{broker}", f"{BROKER_CONFIGS}/{broker}"
    elected, alive, configs = session.read([CONTROLLER, registered, path])
    named = parse_controller(elected) if elected else None
    if named is None or named.migrating or named.broker_id != controller:
        raise WriteRefused(KafkaErrorCode.ZOOKEEPER_NOT_IN_CHARGE)
    if alive is not None:
        raise WriteRefused(KafkaErrorCode.BROKER_STARTED, broker=broker)
    left = dict(parse_config(configs)) if configs else {}
    if configs is None or not left.keys() & set(keys):
        return
    record = {**_record(configs), "config": {key: value for key, value in left.items() if key not in keys}}
    notice = ChangeNotice(f"{CONFIG_CHANGES}/config_change_", _pack({"version": 2, "entity_path": f"brokers/{broker}"}))
    if not session.replace(configs, _pack(record), notice):
        raise WriteRefused(KafkaErrorCode.ZNODE_CHANGED, path=path)
    # A broker that registers later reads what was written; one that did meanwhile may have read it before. A controller
    # that took over meanwhile may have read all configs before, as that of KRaft does in a migration.
    try:
        alive, since = session.read([registered, CONTROLLER])
    except KafkaFailure as failure:
        raise WriteUnanswered(failure.message) from None
    if alive is not None:
        raise WriteUnanswered(KafkaErrorCode.BROKER_STARTED, broker=broker)
    if since is None or elected is None or since.czxid != elected.czxid:
        raise WriteUnanswered(KafkaErrorCode.ZOOKEEPER_NOT_IN_CHARGE)


def parse_controller(znode: ZNode) -> ControllerZNode:
    record = _record(znode)
    elected = record.get("timestamp")
    kraft = record.get("kraftControllerEpoch")  # since version 2 of the znode
    return ControllerZNode(
        _whole(record, "brokerid", znode.path),
        None if elected is None else _long(elected, "timestamp", znode.path),
        None if kraft in (None, -1) else _whole(record, "kraftControllerEpoch", znode.path),
    )


def parse_epoch(znode: ZNode) -> int:
    return _number(znode.data.decode("ascii", "replace"), _LARGEST_INT, "epoch", znode.path)


def parse_broker(znode: ZNode) -> BrokerZNode:
    """Read versions 1 to 5, and newer ones, which only added keys so far."""
    record = _record(znode)
    version = _whole(record, "version", znode.path)
    if "endpoints" in record:
        endpoints = tuple(_short(each, "endpoints", znode.path) for each in _list(record, "endpoints", znode.path))
    else:
        host, port = _text(record, "host", znode.path), _whole(record, "port", znode.path)
        endpoints = (f"PLAINTEXT://{host}:{port}",)
    rack = record.get("rack")
    return BrokerZNode(
        _number(_last_name(znode.path), _LARGEST_INT, "id", znode.path),
        endpoints,
        None if rack is None else _short(rack, "rack", znode.path),
        version,
    )


def parse_topic(znode: ZNode) -> TopicZNode:
    """Read versions 1 to 3: adding and removing replicas came with 2, topic ids with 3."""
    record = _record(znode)
    return TopicZNode(
        _last_name(znode.path),
        _topic_id(record, znode.path),
        _assignment(record, "partitions", znode.path),
        _assignment(record, "adding_replicas", znode.path, optional=True),
        _assignment(record, "removing_replicas", znode.path, optional=True),
        znode.modified_ms,
    )


def parse_batch(znode: ZNode) -> ReassignmentBatch:
    targets = {
        _partition(row, znode.path): _replicas(row.get("replicas"), "replicas", znode.path)
        for row in _rows(_record(znode), znode.path)
    }
    return ReassignmentBatch(znode.czxid, znode.created_ms, znode.version, targets)


def parse_elections(znode: ZNode) -> tuple[TopicPartition, ...]:
    return tuple(sorted({_partition(row, znode.path) for row in _rows(_record(znode), znode.path)}))


def parse_config(znode: ZNode) -> Mapping[str, str]:
    config = _record(znode).get("config")
    if not isinstance(config, dict):
        raise _unusable("config", znode.path)
    return {key: _short(value, "config", znode.path) for key, value in config.items()}


def _pack(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def _record(znode: ZNode) -> dict[str, Any]:
    try:
        record = json.loads(znode.data)
    except (ValueError, RecursionError):  # no UTF-8, no JSON, or a number of thousands of digits
        record = None
    if not isinstance(record, dict):
        raise ZNodeUnusable(KafkaErrorCode.ZNODE_MALFORMED, path=znode.path, part="JSON")
    return record


def _rows(record: Mapping[str, Any], path: str) -> list[dict[str, Any]]:
    rows = _list(record, "partitions", path)
    if not all(isinstance(row, dict) for row in rows):
        raise _unusable("partitions", path)
    return rows


def _partition(row: Mapping[str, Any], path: str) -> TopicPartition:
    name = _text(row, "topic", path)
    if len(name) > _LONGEST_NAME:
        raise _unusable("topic", path)
    return TopicPartition(name, _whole(row, "partition", path))


def _assignment(
    record: Mapping[str, Any], key: str, path: str, *, optional: bool = False
) -> Mapping[int, tuple[int, ...]]:
    rows = record.get(key, {} if optional else None)
    if not isinstance(rows, dict):
        raise _unusable(key, path)
    return {_number(number, _LARGEST_INT, key, path): _replicas(found, key, path) for number, found in rows.items()}


def _replicas(found: Any, key: str, path: str) -> tuple[int, ...]:
    if not isinstance(found, list) or len(found) > _MOST_REPLICAS:
        raise _unusable(key, path)
    return tuple(_checked(broker, _LARGEST_INT, key, path) for broker in found)


def _topic_id(record: Mapping[str, Any], path: str) -> str:
    """Return it as a UUID text; Kafka writes it in base64."""
    if "topic_id" not in record:
        return ""
    text = _text(record, "topic_id", path)
    try:
        return str(uuid.UUID(bytes=base64.b64decode(f"{text}==", altchars=b"-_", validate=True)))
    except (ValueError, binascii.Error):
        raise _unusable("topic_id", path) from None


def _list(record: Mapping[str, Any], key: str, path: str) -> list[Any]:
    found = record.get(key)
    if not isinstance(found, list):
        raise _unusable(key, path)
    return found


def _text(record: Mapping[str, Any], key: str, path: str) -> str:
    found = _short(record.get(key), key, path)
    if not found:
        raise _unusable(key, path)
    return found


def _short(found: Any, key: str, path: str) -> str:
    if not isinstance(found, str) or len(found) > _LONGEST_TEXT or not is_text(found):
        raise _unusable(key, path)
    return found


def is_text(found: str) -> bool:
    """Return whether it can be stored: JSON may hold NUL and halves of characters."""
    try:
        return b"\0" not in found.encode()
    except UnicodeEncodeError:
        return False


def _whole(record: Mapping[str, Any], key: str, path: str) -> int:
    return _checked(record.get(key), _LARGEST_INT, key, path)


def _long(found: Any, key: str, path: str) -> int:
    """Kafka writes times as text."""
    return (
        _number(found, _LARGEST_LONG, key, path)
        if isinstance(found, str)
        else _checked(found, _LARGEST_LONG, key, path)
    )


def _number(text: str, most: int, key: str, path: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise _unusable(key, path)
    return _checked(int(text), most, key, path)


def _checked(found: Any, most: int, key: str, path: str) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= most:
        raise _unusable(key, path)
    return found


def _last_name(path: str) -> str:
    return path.rpartition("/")[2]


def _unusable(part: str, path: str) -> ZNodeUnusable:
    return ZNodeUnusable(KafkaErrorCode.ZNODE_MALFORMED, path=path, part=part)
