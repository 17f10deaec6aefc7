"""What the pipeline reckoned that partitions take in, from stored rows; and what of it is there for a cluster."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any

from django.db.models import Count, Max, Min, Q, QuerySet

from kafkadash.clusters.models import Cluster
from kafkadash.domain.planner.workload import FRESH, Taken, TopicWorkload, Workloads
from kafkadash.observe.models import Workload

KEPT = 4
"""Plans whose rates a process keeps, for they are checked again and again."""


@dataclass(frozen=True, slots=True)
class Model:
    """What there is for a cluster: ``topics`` with a fresh model, from when to when; ``old_at`` is the time of the
    newest where all of them are too old, None where there never was one.
    """

    topics: int
    from_at: datetime | None
    to_at: datetime | None
    old_at: datetime | None


def load_workloads(cluster: Cluster, topics: Collection[str] | None, now: datetime) -> Workloads:
    """Fresh ones, of all topics or of these; two queries at most."""
    rows = _fresh(cluster, now)
    if topics is None:
        return _unpacked(rows)
    rows = rows.filter(topic__in=list(topics))
    made = rows.aggregate(count=Count("pk"), version=Max("version"))
    if not made["count"]:
        return {}
    return _kept.get(cluster, topics, (made["count"], made["version"]), rows)


def model_of(cluster: Cluster, now: datetime) -> Model:
    """One query."""
    fresh = Q(format=Workload.FORMAT, to_at__gte=now - FRESH)
    found = Workload.objects.filter(cluster=cluster).aggregate(
        topics=Count("pk", filter=fresh),
        begin=Min("from_at", filter=fresh),
        end=Max("to_at", filter=fresh),
        newest=Max("to_at"),
    )
    return Model(found["topics"], found["begin"], found["end"], None if found["topics"] else found["newest"])


def _fresh(cluster: Cluster, now: datetime) -> QuerySet[Workload]:
    return Workload.objects.filter(cluster=cluster, format=Workload.FORMAT, to_at__gte=now - FRESH)


def _unpacked(rows: QuerySet[Workload]) -> Workloads:
    return {
        topic: TopicWorkload(from_at, to_at, _partitions(packed))
        for topic, from_at, to_at, packed in rows.values_list("topic", "from_at", "to_at", "partitions")
    }


def _partitions(packed: Mapping[str, list[Any]]) -> dict[int, Taken]:
    figures = zip(packed["partition"], packed["in"], packed["peak"], packed["grows"], strict=True)
    return {partition: Taken(typical, peak, grows) for partition, typical, peak, grows in figures}


class _Kept:
    """Of the topics of plans, until the pipeline hands back another model of one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of: OrderedDict[tuple[int, frozenset[str]], tuple[tuple[int, int], Workloads]] = OrderedDict()

    def get(
        self, cluster: Cluster, topics: Collection[str], version: tuple[int, int], rows: QuerySet[Workload]
    ) -> Workloads:
        key = cluster.pk, frozenset(topics)
        with self._lock:
            kept, workloads = self._of.get(key, (None, {}))
        if kept != version:
            workloads = _unpacked(rows)
        with self._lock:
            self._of[key] = version, workloads
            self._of.move_to_end(key)
            while len(self._of) > KEPT:
                self._of.popitem(last=False)
        return workloads


_kept = _Kept()
