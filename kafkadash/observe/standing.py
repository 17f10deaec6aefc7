"""How clusters stand: stored figures of many clusters, judged, in a number of queries that does not grow with them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, Q, Subquery

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.quorum import Quorum, QuorumNode, quorum
from kafkadash.domain.status import BrokerAway, Facts, Judgement, Refreshed, State, is_stale, judge
from kafkadash.domain.topology import PartitionShape
from kafkadash.observe.models import (
    BrokerState,
    ClusterState,
    CollectorRun,
    Kind,
    Outcome,
    QuorumSnapshot,
    ReassignmentSnapshot,
    TopicState,
)


@dataclass(frozen=True, slots=True)
class Freshness:
    """When data was taken, how often it is read, and whether it is too old to be trusted as now."""

    taken_at: datetime | None
    interval_s: float
    now: datetime

    @property
    def stale(self) -> bool:
        return self.taken_at is None or is_stale(self.taken_at, self.interval_s, self.now)

    @property
    def age_s(self) -> float | None:
        return None if self.taken_at is None else max(0.0, (self.now - self.taken_at).total_seconds())


def freshness_of(run: CollectorRun | None, now: datetime) -> Freshness:
    """How fresh the newest data of one kind is; ``run`` is None before its collector was ever due."""
    return Freshness(run.succeeded_at if run else None, run.interval_s if run else 30.0, now)


@dataclass(frozen=True, slots=True)
class QuorumSeen:
    """The newest answer of the controllers, judged; ``led_since`` is when this leader's epoch was first seen."""

    snapshot: QuorumSnapshot
    quorum: Quorum
    led_since: datetime


@dataclass(frozen=True, slots=True)
class Standing:
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


def standings(clusters: Iterable[Cluster], now: datetime) -> list[Standing]:
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
            Standing(
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


def standing(cluster: Cluster, now: datetime) -> Standing:
    return standings([cluster], now)[0]


def newest_quorums(clusters: Iterable[int], missing: Sequence[int] = ()) -> dict[int, QuorumSeen]:
    """The newest answer of the controllers per cluster id. ``missing``: see ``domain.quorum.quorum``."""
    newest = QuorumSnapshot.objects.filter(cluster=OuterRef("pk")).order_by("-taken_at").values("pk")[:1]
    first = QuorumSnapshot.objects.filter(cluster=OuterRef("cluster"), leader_epoch=OuterRef("leader_epoch"))
    ids = Cluster.objects.filter(pk__in=clusters).annotate(newest=Subquery(newest)).values("newest")
    snapshots = QuorumSnapshot.objects.filter(pk__in=ids).annotate(
        led_since=Subquery(first.order_by("taken_at").values("taken_at")[:1])
    )
    result = {}
    for snapshot in snapshots:
        nodes = [QuorumNode(**node) for node in snapshot.replicas]
        epoch_seen_s = (snapshot.taken_at - snapshot.led_since).total_seconds()
        judged = quorum(nodes, snapshot.leader_id, epoch_seen_s, missing)
        result[snapshot.cluster_id] = QuorumSeen(snapshot, judged, snapshot.led_since)
    return result


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
