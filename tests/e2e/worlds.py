"""Three clusters to look at: one that is well, one with a broker stopped and much that follows from it, one never seen.

What their pages must say is read from Kafka with Kafka's own tools.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kafkadash.devtools.embedded.ports import free_port
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from tests.agreement.tools import DescribedTopic, QuorumStatus, Tools
from tests.e2e.product import Product

LIMPING_RACKS = ("eu 1a", "eu 1a", "ü-1c")
STOPPED = 3
THROTTLE = 12_000_000
# What it holds → why: replicas of each partition, min.insync.replicas.
LIMPING_TOPICS = {
    "orders.at-min": ([[1, 2, STOPPED], [2, 1, STOPPED]], 2),
    "orders.under-min": ([[1, STOPPED], [2, 1]], 2),
    "orders.offline": ([[STOPPED]], 1),
    "orders.one-rack": ([[1, 2], [2, 1]], 1),
    "orders.moving": ([[1], [2]], 1),
    f"{'long.name-' * 24}249.chars": ([[1, 2]], 1),
}
MOVING = "orders.moving"  # not from or to broker 2, whose throttle nobody needs


@dataclass(frozen=True, slots=True)
class World:
    """A registered cluster; a topic, a broker and a group of it to look at, '' where there is none. ``told`` is None
    where nobody can be asked.
    """

    slug: str
    topic: str = ""
    broker: int = 0
    group: str = ""
    told: Told | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """Figures of one cluster at one moment, from Kafka's own tools."""

    cluster_id: str
    topics: Mapping[str, DescribedTopic]
    quorum: QuorumStatus
    brokers: Mapping[int, tuple[str, int, str, bool | None]]
    moving: tuple[str, ...] = ()
    throttle_bytes: int | None = None
    replicas: Counter[int] = field(default_factory=Counter)
    leaders: Counter[int] = field(default_factory=Counter)

    @property
    def partitions(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())


def told_by(tools: Tools, throttle_bytes: int | None = None) -> Told:
    topics = tools.topics()
    partitions = [p for topic in topics.values() for p in topic.partitions.values()]
    return Told(
        cluster_id=tools.cluster_id(),
        topics=topics,
        quorum=tools.quorum_status(),
        brokers=tools.brokers(),
        moving=tuple(f"{move.topic}-{move.partition}" for move in tools.moves()),
        throttle_bytes=throttle_bytes,
        replicas=Counter(broker for p in partitions for broker in p.replicas),
        leaders=Counter(p.leader for p in partitions if p.leader is not None),
    )


@contextmanager
def limping(product: Product, folder: Path) -> Iterator[World]:
    """Three brokers in racks whose names need care; one is stopped, a move waits for it, a throttle was left behind."""
    playground = KafkaPlayground(folder)
    try:
        playground.up(brokers=len(LIMPING_RACKS), racks=LIMPING_RACKS, controllers=1, dirs=2)
        for name, (placement, min_isr) in LIMPING_TOPICS.items():
            # A megabyte or two slip past a throttle before it holds; the move must not end with them.
            fill = 12_000_000 if name == MOVING else 1_000_000
            load_topics(playground.bootstrap, [LoadTopic(name, placement=placement, fill_bytes=fill)])
            _set(playground, ResourceType.TOPIC, name, "min.insync.replicas", str(min_isr))
        _set(playground, ResourceType.BROKER, "2", "leader.replication.throttled.rate", str(THROTTLE))
        plan = folder / "plan.json"
        move = {"topic": MOVING, "partition": 0, "replicas": [1, STOPPED]}
        plan.write_text(json.dumps({"version": 1, "partitions": [move]}), encoding="utf-8")
        options = ("--reassignment-json-file", str(plan), "--execute", "--throttle", "10000")
        Tools(playground).run("reassign", *options)
        playground.stop_broker(STOPPED)
        product.manage("cluster", "register", "Limping", "--bootstrap", playground.bootstrap)
        yield World("limping", MOVING, STOPPED, told=told_by(Tools(playground), THROTTLE))
    finally:
        playground.down()


def never_reached(product: Product) -> World:
    product.manage("cluster", "register", "Never", "--bootstrap", f"127.0.0.1:{free_port()}")
    return World("never")


def _set(playground: KafkaPlayground, kind: ResourceType, name: str, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    admin = AdminClient({"bootstrap.servers": playground.bootstrap})
    for future in admin.incremental_alter_configs([ConfigResource(kind, name, incremental_configs=[entry])]).values():
        future.result(timeout=30)
