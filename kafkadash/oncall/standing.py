"""How clusters stand: stored figures of many clusters, judged, in a number of queries that does not grow with them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.findings import BrokerAway, Facts, Judgement, judge
from kafkadash.domain.status import Refreshed, State
from kafkadash.domain.topology import PartitionShape
from kafkadash.observe.models import (
    BrokerState,
    ClusterState,
    CollectorRun,
    Kind,
    Outcome,
    ReassignmentSnapshot,
    TopicState,
)
from kafkadash.observe.standing import Freshness, QuorumSeen, freshness_of, newest_quorums


@dataclass(frozen=True, slots=True)
class ClusterStanding:
    """A cluster with its stored figures and what follows from them.

    ``figures`` is an unsaved, empty row before the first refresh. ``moving`` is None while nobody has looked.
    """

    cluster: Cluster
    now: datetime
    judgement: Judgement
    figures: ClusterState
    runs: Mapping[str, CollectorRun]
    quorum: QuorumSeen | None
    moving: int | None

    @property
    def state(self) -> State:
        return self.judgement.state

    @property
    def title(self) -> str:
        return self.judgement.title(self.cluster.name)

    @property
    def unexplained(self) -> int | None:
        """Under-replicated partitions that no move explains."""
        return None if self.figures.under_replicated is None else _unexplained(self.figures)

    @property
    def quorum_stale(self) -> bool:
        return self.freshness_of(Kind.QUORUM).stale

    @property
    def freshness(self) -> Freshness:
        return self.freshness_of(Kind.METADATA)

    def freshness_of(self, kind: str) -> Freshness:
        return freshness_of(self.runs.get(kind), self.now)


def standings(clusters: Iterable[Cluster], now: datetime) -> list[ClusterStanding]:
    """Judges the clusters; worst first, those that are alike by name. Six queries at most for any number of them."""
    own = {cluster.pk: cluster for cluster in clusters}
    figures = {state.cluster_id: state for state in ClusterState.objects.filter(cluster__in=own)}
    runs: dict[int, dict[str, CollectorRun]] = defaultdict(dict)
    for run in CollectorRun.objects.filter(cluster__in=own):
        runs[run.cluster_id][run.kind] = run
    away = _away(own)
    moves = _running_moves(own)
    _explain(figures.values(), moves)
    quorums = newest_quorums(own)
    result = []
    for pk, cluster in own.items():
        seen = quorums.get(pk) if cluster.mode == Mode.KRAFT else None
        known = figures.get(pk) or ClusterState(cluster=cluster)
        facts = _facts(cluster, known, runs[pk], away[pk], seen)
        looked = Kind.REASSIGNMENTS in runs[pk] and runs[pk][Kind.REASSIGNMENTS].succeeded_at
        result.append(
            ClusterStanding(
                cluster=cluster,
                now=now,
                judgement=judge(facts, now),
                figures=known,
                runs=runs[pk],
                quorum=seen,
                moving=len(moves[pk]) if looked else None,
            )
        )
    return sorted(result, key=lambda s: (s.state.severity, s.cluster.name))


def standing(cluster: Cluster, now: datetime) -> ClusterStanding:
    return standings([cluster], now)[0]


def _running_moves(clusters: Iterable[int]) -> dict[int, dict[tuple[str, int], frozenset[int]]]:
    """Cluster id → (topic, partition) → the brokers that are being added to it."""
    moves: dict[int, dict[tuple[str, int], frozenset[int]]] = defaultdict(dict)
    rows = ReassignmentSnapshot.objects.filter(cluster__in=clusters, outcome=Outcome.RUNNING)
    for pk, topic, partition, adding in rows.values_list("cluster_id", "topic", "partition", "adding"):
        moves[pk][topic, partition] = frozenset(adding)
    return moves


def _explain(figures: Iterable[ClusterState], moves: Mapping[int, Mapping[tuple[str, int], frozenset[int]]]) -> None:
    """Lets moves that were first seen after the last look at the metadata explain what that look found.

    Metadata is read less often than reassignments: without this a move would be a warning until metadata is read again.
    The rows are changed in memory only.
    """
    doubtful = {f.cluster_id: f for f in figures if moves.get(f.cluster_id) and _unexplained(f)}
    if not doubtful:
        return
    explained: Counter[int] = Counter()
    names = {topic for pk in doubtful for topic, _ in moves[pk]}
    for topic in TopicState.objects.filter(cluster__in=doubtful, name__in=names, under_replicated__gt=0):
        for number, leader, _, replicas, isr, _ in topic.partitions:
            adding = moves[topic.cluster_id].get((topic.name, number), frozenset())
            explained[topic.cluster_id] += PartitionShape(leader, replicas, isr, adding).explained_by_move
    for pk, state in doubtful.items():
        state.under_replicated_moving = max(state.under_replicated_moving or 0, explained[pk])


def _unexplained(figures: ClusterState) -> int:
    return (figures.under_replicated or 0) - (figures.under_replicated_moving or 0)


def _away(clusters: Iterable[int]) -> dict[int, list[BrokerAway]]:
    away: dict[int, list[BrokerAway]] = defaultdict(list)
    rows = BrokerState.objects.filter(cluster__in=clusters).filter(Q(fenced=True) | Q(gone_at__isnull=False))
    for pk, broker, replicas, gone_at, changed_at in rows.order_by("broker_id").values_list(
        "cluster_id", "broker_id", "replicas", "gone_at", "changed_at"
    ):
        away[pk].append(BrokerAway(broker, gone_at is None, replicas, gone_at or changed_at))
    return away


def _facts(
    cluster: Cluster,
    figures: ClusterState,
    runs: Mapping[str, CollectorRun],
    away: Sequence[BrokerAway],
    seen: QuorumSeen | None,
) -> Facts:
    return Facts(
        enabled=cluster.enabled,
        kraft=cluster.mode == Mode.KRAFT,
        addresses=len([a for a in cluster.bootstrap_servers.split(",") if a.strip()]),
        metadata=_refreshed(runs.get(Kind.METADATA)),
        reassignments=_refreshed(runs.get(Kind.REASSIGNMENTS)),
        quorum=_refreshed(runs.get(Kind.QUORUM)),
        partitions=figures.partitions,
        offline_partitions=figures.offline_partitions,
        under_replicated=figures.under_replicated,
        under_replicated_moving=figures.under_replicated_moving,
        brokers_gone=figures.brokers_gone,
        away=tuple(away),
        voters=len(seen.quorum.voters) if seen else None,
        voters_in_sync=seen.quorum.in_sync if seen else None,
        voters_failing=seen.quorum.failing if seen else None,
    )


def _refreshed(run: CollectorRun | None) -> Refreshed:
    if run is None:
        return Refreshed()
    return Refreshed(run.succeeded_at, run.interval_s, run.failures, run.last_failure, run.last_error)
