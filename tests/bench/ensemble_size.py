"""How long ZooKeeper takes to read when all of a large cluster is being reassigned, and how much memory it needs.

The znodes are in memory, so that this is the time of reading them, without that of a network.
"""

from __future__ import annotations

import resource
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from unittest import mock

from tests.bench.bars import Bar, at_most
from tests.bench.big_kafka import PARTITIONS, topic_name
from tests.bench.server import empty_database

if TYPE_CHECKING:
    from kafkadash.kafka.api import OngoingReassignment
    from tests.memory_zookeeper import MemoryZooKeeper

TOPICS = 200_000 // PARTITIONS
IN_BATCH = 400
"""Topics of the legacy znode: as many as are less than ZooKeeper's 1 MB."""
COLLECTION_S, MEMORY_MB = 30, 1024
WRITTEN_MS = 1_700_000_000_000


def measure() -> list[Bar]:
    with empty_database():
        took = _collect()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        at_most("ZooKeeper collection of 200,000 partitions", took, COLLECTION_S, "s"),
        at_most("ZooKeeper collection of 200,000 partitions: peak memory", peak_mb, MEMORY_MB, "MB"),
    ]


def _collect() -> float:
    """Seconds from the listing to the origin and start of each reassignment, and what is stored of ZooKeeper."""
    from kafkadash.clusters.models import Cluster, ClusterMode
    from kafkadash.kafka.api import ListedReassignments
    from kafkadash.monitoring.collectors import CollectContext
    from kafkadash.monitoring.models import StartedThrough, ZooKeeperState
    from kafkadash.monitoring.reassignments import ensemble
    from tests.memory_zookeeper import MemoryZooKeeper

    cluster = Cluster.objects.create(
        name="Big", slug="big", mode=ClusterMode.ZOOKEEPER, zookeeper="z:2181", kafka_id="kafka-1"
    )
    zookeeper = MemoryZooKeeper()
    zookeeper.identify("kafka-1")
    rows = _write(zookeeper)
    admin = mock.Mock()
    admin.list_reassignments.return_value = ListedReassignments(rows, time.time())
    asking = CollectContext(cluster, admin, mock.Mock(), 30.0, lambda: None, None, 5.0)
    with mock.patch.object(ensemble, "open_zookeeper", zookeeper.open):
        began, taken_at = time.perf_counter(), datetime.now(UTC)
        beside = ensemble.list_beside_znodes(asking)
        assert beside.reading is not None, beside.failure
        origins = [beside.reading.origin_of(row).through for row in rows]
        starts = [beside.reading.start_of(row, None, taken_at) for row in rows]
        beside.store(cluster, taken_at)
        took = time.perf_counter() - began
    assert origins.count(StartedThrough.ZNODE) == IN_BATCH * PARTITIONS
    assert None not in starts
    assert ZooKeeperState.objects.get().batch_count == IN_BATCH * PARTITIONS
    return took


def _write(zookeeper: MemoryZooKeeper) -> list[OngoingReassignment]:
    """Each partition moves one replica; those of the first topics were started through the legacy znode."""
    from kafkadash.kafka import znodes
    from kafkadash.kafka.api import OngoingReassignment

    rows, batch = [], []
    for number in range(TOPICS):
        name = topic_name(number)
        moving = {str(partition): [1 + partition % 9, 11, 12, 13] for partition in range(PARTITIONS)}
        content = {
            "version": 3,
            "topic_id": "91Y6Hen9SY6vxJzcA26Ajg",
            "partitions": moving,
            "adding_replicas": {partition: replicas[:1] for partition, replicas in moving.items()},
            "removing_replicas": {partition: [13] for partition in moving},
        }
        zookeeper.write(f"{znodes.TOPICS}/{name}", content, WRITTEN_MS)
        for partition, replicas in moving.items():
            rows.append(OngoingReassignment(name, int(partition), tuple(replicas), (replicas[0],), (13,)))
            if number < IN_BATCH:
                batch.append({"topic": name, "partition": int(partition), "replicas": replicas[:3]})
    znode = zookeeper.write(znodes.REASSIGN, {"version": 1, "partitions": batch}, WRITTEN_MS)
    assert len(znode.data) < 1_000_000, len(znode.data)
    return rows
