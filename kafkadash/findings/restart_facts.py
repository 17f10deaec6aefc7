"""Stored rows as the facts of a restart."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db.models import F, Q

from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.findings.restart import EndingMove, RestartBroker, RestartFacts
from kafkadash.findings.simulation_page import placed_partitions
from kafkadash.monitoring.brokers import broker_word
from kafkadash.monitoring.catch_up.pages import CatchUpShown, load_catch_up
from kafkadash.monitoring.freshness import CollectionFreshness, FactFreshness
from kafkadash.monitoring.models import (
    BrokerState,
    ClusterState,
    CollectorKind,
    MoveOutcome,
    ReassignmentSnapshot,
)

_NEEDED = (CollectorKind.METADATA, CollectorKind.ANSWERS, CollectorKind.CONFIGS, CollectorKind.REASSIGNMENTS)
_AFTER_RESTART = frozenset({CollectorKind.METADATA, CollectorKind.ANSWERS, CollectorKind.QUORUM})
"""Kinds that change when a broker stops."""


def load_restart_facts(standing: CollectionFreshness, since: datetime | None = None) -> RestartFacts:
    """Load the facts of a restart in at most seven queries.

    ``since``: what brokers and controllers told before this time counts as unknown, because a restart may have come
    after it.
    """
    cluster = standing.cluster
    kraft = cluster.mode != ClusterMode.ZOOKEEPER
    kinds = (*_NEEDED, CollectorKind.QUORUM) if kraft else _NEEDED
    read = {kind: standing.freshness_of(kind) for kind in kinds}
    stale = {kind for kind, freshness in read.items() if freshness.stale}
    early = {kind for kind in (_AFTER_RESTART & read.keys()) - stale if _is_before(read[kind], since)}
    metadata_at = read[CollectorKind.METADATA].taken_at
    quorum = standing.quorum if kraft and CollectorKind.QUORUM not in stale else None
    catch_up = load_catch_up(cluster, None, standing.runs, standing.now)
    hidden = ClusterState.objects.filter(cluster=cluster).values_list("hidden_topics", flat=True).first()
    return RestartFacts(
        partitions=placed_partitions(cluster, metadata_at),
        brokers=load_restart_brokers(cluster),
        moves=_load_moves(cluster, metadata_at),
        kraft=kraft,
        quorum=quorum.quorum if quorum else None,
        controller=quorum.snapshot.leader_id if quorum else None,
        hidden_topics=hidden,
        metadata_stale=CollectorKind.METADATA in stale,
        stale=_name_kinds(stale, kinds),
        early=_name_kinds(early, kinds),
        quorum_stale=CollectorKind.QUORUM in stale,
        catching_up={broker: shown.seconds_left for broker, shown in catch_up.items()},
        behind_since=_count_behind_since(catch_up, metadata_at),
    )


def load_restart_brokers(cluster: Cluster) -> dict[int, RestartBroker]:
    """Return the brokers that are registered or have replicas, by id. One query."""
    rows = BrokerState.objects.filter(cluster=cluster).exclude(gone_at__isnull=False, replicas=0).defer("config")
    return {row.broker_id: RestartBroker(row.broker_id, row.rack, broker_word(row)) for row in rows}


def _is_before(freshness: FactFreshness, since: datetime | None) -> bool:
    return since is not None and freshness.taken_at is not None and freshness.taken_at < since


def _name_kinds(found: Collection[CollectorKind], kinds: Collection[CollectorKind]) -> list[str]:
    return [str(kind.label) for kind in kinds if kind in found]


def _load_moves(cluster: Cluster, metadata_at: datetime | None) -> dict[tuple[str, int], EndingMove]:
    """Return the reassignments that run, or that ended after the metadata was read, by topic and partition."""
    state = Q(outcome=MoveOutcome.RUNNING)
    if metadata_at is not None:
        over = (MoveOutcome.COMPLETED, MoveOutcome.CANCELLED)
        state |= Q(outcome__in=over, ended_at__gte=metadata_at)
    rows = ReassignmentSnapshot.objects.filter(state, cluster=cluster).order_by(F("ended_at").asc(nulls_last=True))
    columns = rows.values_list("topic", "partition", "adding", "target", "original", "outcome")
    return {
        (topic, partition): EndingMove(
            frozenset(adding),
            original if outcome == MoveOutcome.CANCELLED else target,
            running=outcome == MoveOutcome.RUNNING,
            cancelled=outcome == MoveOutcome.CANCELLED,
        )
        for topic, partition, adding, target, original, outcome in columns
    }


def _count_behind_since(catch_up: Mapping[int, CatchUpShown], metadata_at: datetime | None) -> dict[int, int]:
    return {
        broker: shown.row.replicas
        for broker, shown in catch_up.items()
        if metadata_at is not None and shown.row.taken_at > metadata_at
    }
