"""What a look at the log directories has for the pipeline: bytes of every replica, and how full every directory is."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from kafkadash.clusters.models import Cluster
from kafkadash.domain.segments import SegmentKind
from kafkadash.domain.throttles import RATES
from kafkadash.domain.whole_numbers import read_whole_number
from kafkadash.kafka.port import LogDir
from kafkadash.observe.cycles import without_search_for_cycles
from kafkadash.observe.models import BrokerWeights, ThrottledResource, ThrottleState, TopicState
from kafkadash.observe.segments.encoding import Columns
from kafkadash.observe.segments.outbox import Facts

Dirs = Mapping[int, Sequence[LogDir]]
"""Broker → its directories, of those that answered."""
_Ids = tuple[int, ...]


def disk_facts(cluster: Cluster, dirs: Dirs, taken_at: datetime) -> list[Facts]:
    """To be asked before the new figures are stored: growth is against those that are."""
    known = _Known(cluster, dirs.keys(), taken_at)
    return [
        Facts(SegmentKind.BROKER, [_brokers(dirs, known)]),
        Facts(SegmentKind.REPLICA, _replicas(cluster, dirs)),
    ]


def _replicas(cluster: Cluster, dirs: Dirs) -> Iterator[Columns]:
    """One broker after the other. Leaders and in-sync replicas are those of the last metadata."""
    shapes = _Shapes(cluster) if dirs else None
    for broker, directories in dirs.items():
        for directory in directories:
            found = directory.replicas
            roles = [shapes.role(broker, r.topic, r.partition) if shapes else (None, None) for r in found]
            yield {
                "topic": [r.topic for r in found],
                "partition": [r.partition for r in found],
                "broker": broker,
                "directory": directory.path,
                "bytes_on_disk": [r.size_bytes for r in found],
                # A copy on its way between two disks of the broker leads nothing.
                "is_leader": [False if r.future else role[0] for r, role in zip(found, roles, strict=True)],
                "in_isr": [False if r.future else role[1] for r, role in zip(found, roles, strict=True)],
                "is_future": [r.future for r in found],
                "method": "size",
            }


class _Shapes:
    """Who leads a partition and who is in sync, small: each set of replicas is held once."""

    @without_search_for_cycles()
    def __init__(self, cluster: Cluster) -> None:
        self._topics: dict[str, dict[int, tuple[int | None, _Ids]]] = {}
        sets: dict[_Ids, _Ids] = {}
        stored = TopicState.objects.filter(cluster=cluster).values_list("name", "partitions")
        for name, partitions in stored.iterator(chunk_size=500):
            rows: dict[int, tuple[int | None, _Ids]] = {}
            for number, leader, _, _, isr, _ in partitions:
                in_sync = tuple(isr)
                rows[number] = leader, sets.setdefault(in_sync, in_sync)
            self._topics[name] = rows

    def role(self, broker: int, topic: str, partition: int) -> tuple[bool | None, bool | None]:
        """Whether this replica leads, and whether it is in sync; None where the partition is not known."""
        shape = self._topics.get(topic, {}).get(partition)
        return (None, None) if shape is None else (shape[0] == broker, broker in shape[1])


class _Known:
    """What was stored of the brokers before: throttles in force, and bytes of each directory with their time."""

    def __init__(self, cluster: Cluster, brokers: Collection[int], taken_at: datetime) -> None:
        self._taken_at = taken_at
        rates = ThrottleState.objects.filter(cluster=cluster, key__in=RATES).exclude(resource=ThrottledResource.TOPIC)
        self._rates = {(name, key): value for name, key, value in rates.values_list("name", "key", "value")}
        stored = BrokerWeights.objects.filter(cluster=cluster, broker_id__in=brokers)
        self._dirs: dict[tuple[int, str], tuple[Mapping[str, Any], datetime]] = {
            (broker, each["path"]): (each, at)
            for broker, dirs, at in stored.values_list("broker_id", "dirs", "taken_at")
            for each in dirs
        }

    def rate(self, broker: int, key: str) -> int | None:
        """Bytes per second; a broker's own comes before that of all. None where none is set."""
        value = self._rates.get((str(broker), key), self._rates.get(("", key)))
        return None if value is None else read_whole_number(value)

    def growth(self, broker: int, path: str, replica_bytes: int) -> float | None:
        """Bytes per second since the last look; None where there was none, or where figures are missing in it."""
        before, at = self._dirs.get((broker, path), ({}, self._taken_at))
        seconds = (self._taken_at - at).total_seconds()
        if seconds <= 0 or before.get("error") or before.get("replica_bytes") is None:
            return None
        return float((replica_bytes - before["replica_bytes"]) / seconds)


def _brokers(dirs: Dirs, known: _Known) -> Columns:
    rows = [(broker, each) for broker, directories in sorted(dirs.items()) for each in directories]
    leader, follower = RATES[:2]
    used = [None if d.error else sum(r.size_bytes for r in d.replicas) for _, d in rows]
    return {
        "broker": [broker for broker, _ in rows],
        "directory": [d.path for _, d in rows],
        "total_bytes": [d.total_bytes for _, d in rows],
        "usable_bytes": [d.usable_bytes for _, d in rows],
        "replica_bytes": used,
        "leader_throttle": [known.rate(broker, leader) for broker, _ in rows],
        "follower_throttle": [known.rate(broker, follower) for broker, _ in rows],
        "grown_per_second": [
            None if size is None else known.growth(broker, d.path, size)
            for (broker, d), size in zip(rows, used, strict=True)
        ],
    }
