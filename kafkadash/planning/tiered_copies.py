"""Moves of tiered topics in a plan: what is copied of them, and what stays in remote storage (KIP-405, KIP-1023)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import listed_shortly
from kafkadash.monitoring.freshness import FactFreshness, freshness_of
from kafkadash.monitoring.models import BrokerState, CollectorKind, CollectorRun, TierState
from kafkadash.monitoring.tiers.rules import PartitionTiers, copies_untiered_only
from kafkadash.monitoring.tiers.stored import find_tiered_ids, unpack_tiers
from kafkadash.planning.models import PlanReport, PlanTopic
from kafkadash.planning.plan_store import MovedRow, rows_of


@dataclass(frozen=True, slots=True)
class TieredCopies:
    """Copies of tiered topics. Bytes are None where they are not known of one partition.

    ``copied_bytes``: on disks, as the plan counts them. ``left_bytes``: an estimate of what is in remote storage and
    not copied; what is on the leader's disk as well is copied unless ``shortened_all``. ``shortened``: receiving
    brokers that copy only what is not there yet, ``shortened_all``: every one does. ``pending_bytes``: an estimate of
    what is copied then. ``freshness``: of the oldest offsets. ``unread``: copied topics that may be tiered, as their
    configs were not read, largest first; they are in no other figure.
    """

    partitions: int
    copied_bytes: int | None
    left_bytes: int | None
    shortened: tuple[int, ...]
    shortened_all: bool
    pending_bytes: int | None
    freshness: FactFreshness
    unread: tuple[str, ...] = ()

    @property
    def unread_words(self) -> str:
        return listed_shortly(self.unread)


def load_tiered_copies(cluster: Cluster, report: PlanReport, now: datetime) -> TieredCopies | None:
    """Return None where no topic is copied that is or may be tiered. One query, or up to six."""
    found = find_tiered_ids(cluster, PlanTopic.objects.filter(report=report).values("topic_id"))
    unread = _name_copied(report, found.unread) if found.unread else ()
    topics = PlanTopic.objects.filter(report=report, topic_id__in=found.tiered) if found.tiered else ()
    moved = {topic.topic_id: [row for row in rows_of(topic) if _new_brokers(row)] for topic in topics}
    if not unread and not any(moved.values()):
        return None
    tiers = {row.topic_id: row for row in TierState.objects.filter(cluster=cluster, format=1, topic_id__in=moved)}
    known = {topic_id: unpack_tiers(row.partitions) for topic_id, row in tiers.items()}
    rows = [(row, known.get(topic_id, {}).get(row.partition)) for topic_id, own in moved.items() for row in own]
    receiving = {broker for row, _ in rows for broker in _new_brokers(row)}
    configs = BrokerState.objects.filter(cluster=cluster, broker_id__in=receiving).values_list("broker_id", "config")
    shortened = sorted(broker for broker, config in configs if copies_untiered_only(config))
    read = freshness_of(CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.LOG_DIRS).first(), now)
    shortened_all = bool(receiving) and len(shortened) == len(receiving)
    return TieredCopies(
        partitions=len(rows),
        copied_bytes=_sum_known(row.copied_bytes for row, _ in rows),
        left_bytes=_sum_known(_count_left(tier, shortened=shortened_all) for _, tier in rows),
        shortened=tuple(shortened),
        shortened_all=shortened_all,
        pending_bytes=_sum_known(_count_pending(row, tier) for row, tier in rows),
        freshness=replace(read, taken_at=min((row.taken_at for row in tiers.values()), default=None)),
        unread=unread,
    )


def _name_copied(report: PlanReport, topic_ids: Collection[str]) -> tuple[str, ...]:
    """Name those of the topics that get new replicas, largest first."""
    rows = PlanTopic.objects.filter(report=report, topic_id__in=topic_ids).values_list("topic", "summary__arriving")
    return tuple(topic for topic, arriving in rows if arriving)


def _new_brokers(row: MovedRow) -> set[int]:
    return set(row.target) - set(row.current)


def _count_left(tier: PartitionTiers | None, *, shortened: bool) -> int | None:
    if tier is None:
        return None
    return tier.remote_bytes if shortened else tier.remote_only_bytes


def _count_pending(row: MovedRow, tier: PartitionTiers | None) -> int | None:
    each = tier.pending_bytes if tier else None
    return None if each is None else each * len(_new_brokers(row))


def _sum_known(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
