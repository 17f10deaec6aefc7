"""What a step needs of the cluster beyond the rows it moves, from what the collectors stored: their age is respected.

The rows themselves are read live. Of the rest of the cluster, partitions that lack replicas in sync, and the disks,
are as the collectors saw them last; where that is too long ago, nothing more is submitted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, JSONField, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import JSONObject

from kafkadash.clusters.models import Cluster
from kafkadash.domain.planner.topology import Directory
from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.run_reasons import OtherTopicsNeverRead, OtherTopicsReadLongAgo
from kafkadash.domain.status import is_stale
from kafkadash.observe.models import BrokerWeights, CollectorRun, Kind, Outcome, ReassignmentSnapshot, TopicState

OTHERS_CLEAR = timedelta(minutes=1)
"""So long after the end of their moves others may take to remove the throttle that these needed."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """A partition that has fewer replicas in sync than replicas, as last seen."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    isr: frozenset[int]
    offline: frozenset[int]
    min_isr: int


@dataclass(frozen=True, slots=True)
class Disks:
    """The directories of a broker; ``age_s``: seconds since they were read, where that is too long ago, else None."""

    dirs: tuple[Directory, ...]
    age_s: float | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """``min_isr``: topic → (Kafka's id, min.insync.replicas in force or None). ``withheld``: see ``Observation``.

    ``others_moved``: brokers that moves of others use, or used until less than ``OTHERS_CLEAR`` ago.
    """

    at: datetime
    min_isr: Mapping[str, tuple[str, int | None]] = field(default_factory=dict)
    lacking: Sequence[Lacking] = ()
    disks: Mapping[int, Disks] = field(default_factory=dict)
    withheld: tuple[CodedReason, ...] = ()
    others_moved: frozenset[int] = frozenset()


def known(cluster: Cluster, topics: Collection[str], now: datetime) -> Known:
    """Two queries."""
    lacks = Q(under_replicated__gt=0, min_isr__isnull=False)
    rows = TopicState.objects.filter(Q(name__in=list(topics)) | lacks, cluster=cluster).values_list(
        "name",
        "topic_id",
        "min_isr",
        Case(When(lacks, then="partitions"), default=Value(None, JSONField()), output_field=JSONField()),
    )
    min_isr: dict[str, tuple[str, int | None]] = {}
    lacking: list[Lacking] = []
    for name, topic_id, least, partitions in rows:
        min_isr[name] = (topic_id, least)
        lacking += _lacking(name, least, partitions or ())
    weights = BrokerWeights.objects.filter(cluster=OuterRef("cluster")).values(
        of=JSONObject(broker="broker_id", dirs="dirs", at="taken_at")
    )
    runs = CollectorRun.objects.filter(cluster=cluster, kind__in=(Kind.METADATA, Kind.LOG_DIRS))
    columns = ("kind", "interval_s", "succeeded_at", ArraySubquery(weights), ArraySubquery(_moved_by_others(now)))
    read = {run[0]: run for run in runs.values_list(*columns)}
    _, interval, _, disks, _ = read.get(Kind.LOG_DIRS, ("", 0.0, None, (), ()))
    _, metadata_interval, metadata_at, _, others = read.get(Kind.METADATA, ("", 0.0, None, (), ()))
    return Known(
        now,
        min_isr,
        lacking,
        {w["broker"]: _disks(w["dirs"], datetime.fromisoformat(w["at"]), interval, now) for w in disks},
        _withheld(metadata_at, metadata_interval, now),
        frozenset(broker for replicas in others for broker in replicas),
    )


def _moved_by_others(now: datetime) -> QuerySet[ReassignmentSnapshot, Any]:
    """Replicas, those being added and removed among them, of moves of others that go on or ended lately."""
    of_others = ReassignmentSnapshot.objects.filter(cluster=OuterRef("cluster"), claimed_by="")
    lately = of_others.filter(Q(outcome=Outcome.RUNNING) | Q(ended_at__gt=now - OTHERS_CLEAR))
    return lately.values("replicas").distinct()


def _lacking(topic: str, min_isr: int | None, partitions: Sequence[Sequence[Any]]) -> list[Lacking]:
    if min_isr is None:
        return []
    return [
        Lacking(topic, number, tuple(replicas), frozenset(isr), frozenset(offline), min_isr)
        for number, _, _, replicas, isr, offline in partitions
        if len(isr) < len(replicas) and len(isr) <= min_isr
    ]


def _disks(stored: Sequence[Mapping[str, Any]], taken_at: datetime, interval_s: float, now: datetime) -> Disks:
    age = (now - taken_at).total_seconds() if is_stale(taken_at, interval_s, now) else None
    return Disks(tuple(_directory(each) for each in stored), age)


def _directory(stored: Mapping[str, Any]) -> Directory:
    """One that is offline takes no replicas, like a cordoned one."""
    total, usable = stored["total_bytes"], stored["usable_bytes"]
    used = None if total is None or usable is None else max(0, total - usable)
    return Directory(stored["path"], total, used, bool(stored["cordoned"]) or bool(stored["error"]))


def _withheld(read_at: datetime | None, interval_s: float, now: datetime) -> tuple[CodedReason, ...]:
    if read_at is None:
        return (OtherTopicsNeverRead(),)
    if is_stale(read_at, interval_s, now):
        return (OtherTopicsReadLongAgo((now - read_at).total_seconds()),)
    return ()
