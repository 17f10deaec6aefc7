"""How the reading of clusters stands: how old each kind of facts is, and what the controllers last answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from django.db.models import OuterRef, Q, Subquery

from kafkadash.clusters.models import Cluster
from kafkadash.domain.facts import controllers_are_unheard
from kafkadash.domain.quorum import Quorum, QuorumNode, quorum
from kafkadash.domain.status import NEVER, Refreshed, is_stale
from kafkadash.domain.wording import count, listed
from kafkadash.observe.models import BrokerState, ClusterState, CollectorRun, Kind, QuorumSnapshot

ALIVE = Q(gone_at=None) & (Q(fenced=False) | Q(fenced=None))
"""Brokers that the controllers have alive."""
SILENT = ALIVE & Q(silent_since__isnull=False)
"""Those of them that do not answer us."""
UP = ALIVE & Q(silent_since=None)


@dataclass(frozen=True, slots=True)
class Freshness:
    """When data was taken, how often it is read, and whether it is too old to be trusted as now.

    ``frozen``: brokers repeat what the controllers said at ``taken_at``, because these have no majority. Data from the
    future, as after the database's clock was set back, is not trusted either.
    """

    taken_at: datetime | None
    interval_s: float
    now: datetime
    frozen: bool = False

    @property
    def stale(self) -> bool:
        if self.frozen or self.taken_at is None:
            return True
        ahead = is_stale(self.now, self.interval_s, self.taken_at)
        return ahead or is_stale(self.taken_at, self.interval_s, self.now)

    @property
    def age_s(self) -> float | None:
        return None if self.taken_at is None else max(0.0, (self.now - self.taken_at).total_seconds())


def freshness_of(run: CollectorRun | None, now: datetime) -> Freshness:
    """How fresh the newest data of one kind is; ``run`` is None before its collector was ever due."""
    return Freshness(run.succeeded_at if run else None, run.interval_s if run else 30.0, now)


def metadata_freshness(runs: Mapping[str, CollectorRun], now: datetime) -> Freshness:
    """How fresh topics and brokers are, as brokers tell them.

    Without a majority of the controllers brokers go on answering Metadata (KRaft's MetadataCache keeps its last image),
    so what they tell is as old as the last answer of the controllers, also of brokers that died since.
    """
    fresh = freshness_of(runs.get(Kind.METADATA), now)
    quorum = runs.get(Kind.QUORUM)
    if fresh.stale or not controllers_are_unheard(refreshed(quorum)):
        return fresh
    said_at = [at for at in (fresh.taken_at, quorum.succeeded_at if quorum else None) if at is not None]
    return replace(fresh, taken_at=min(said_at, default=None), frozen=True)


def freshness_of_kind(kind: str, runs: Mapping[str, CollectorRun], now: datetime) -> Freshness:
    """Facts that come from the controllers are not of now while these do not answer, however lately they were read."""
    if kind == Kind.METADATA:
        return metadata_freshness(runs, now)
    fresh = freshness_of(runs.get(kind), now)
    if kind == Kind.REASSIGNMENTS and not fresh.stale and controllers_are_unheard(refreshed(runs.get(Kind.QUORUM))):
        return replace(fresh, frozen=True)
    return fresh


@dataclass(frozen=True, slots=True)
class ReadingDoubts:
    """What a reading of topics and brokers cannot tell, however fresh it is: with any of it nothing is well.

    ``hidden_topics``: at least so many are not shown to our principal. ``silent``: brokers that the controllers have
    alive and that do not answer us.
    """

    hidden_topics: int = 0
    silent: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.hidden_topics or self.silent)

    @property
    def words(self) -> str:
        """Continues a sentence, such as "broker 2 does not answer"; "" without any."""
        parts = []
        if self.silent:
            parts.append(f"{named_brokers(self.silent)} {'does' if len(self.silent) == 1 else 'do'} not answer")
        if self.hidden_topics:
            parts.append(f"at least {count(self.hidden_topics, 'topic is', 'topics are')} hidden")
        return listed(parts)


def doubts_about(cluster: Cluster) -> ReadingDoubts:
    """Two queries."""
    hidden = ClusterState.objects.filter(cluster=cluster).values_list("hidden_topics", flat=True).first()
    return ReadingDoubts(hidden or 0, silent_brokers(cluster))


def silent_brokers(cluster: Cluster) -> frozenset[int]:
    """One query."""
    return frozenset(BrokerState.objects.filter(SILENT, cluster=cluster).values_list("broker_id", flat=True))


def named_brokers(ids: Iterable[int]) -> str:
    """Such as "broker 2"; only how many where there are more than three."""
    shown = sorted(ids)
    if len(shown) > 3:
        return f"{len(shown):,} brokers"
    return f"broker{'' if len(shown) == 1 else 's'} {listed([str(broker) for broker in shown])}"


def refreshed(run: CollectorRun | None) -> Refreshed:
    """How one kind of facts stands, as the domain judges it; ``run`` is None before its collector was ever due."""
    if run is None:
        return NEVER
    return Refreshed(run.succeeded_at, run.interval_s, run.failures, run.last_failure, run.last_error)


@dataclass(frozen=True, slots=True)
class QuorumSeen:
    """The newest answer of the controllers, judged; ``led_since`` is when this leader's epoch was first seen."""

    snapshot: QuorumSnapshot
    quorum: Quorum
    led_since: datetime

    def lacking(self, missing: Sequence[int]) -> QuorumSeen:
        """Judged as one that lacks these nodes too: see ``domain.quorum.quorum``."""
        return replace(self, quorum=_judged(self.snapshot, self.led_since, missing))


@dataclass(frozen=True)
class Standing:
    """A cluster with the collectors of its kinds of facts; nothing is judged here.

    A page reads it once, for its bar, and hands it to its panels as ``known``. A panel that is rendered alone reads
    its own. The ages are read before the facts, so that what is stored meanwhile is taken for older than it is, never
    for newer.
    """

    cluster: Cluster
    now: datetime
    runs: Mapping[str, CollectorRun]

    def freshness_of(self, kind: str) -> Freshness:
        return freshness_of_kind(kind, self.runs, self.now)

    @cached_property
    def quorum(self) -> QuorumSeen | None:
        """The newest answer of the controllers. One query, when it is first asked for."""
        return newest_quorums([self.cluster.pk]).get(self.cluster.pk)


def standing(cluster: Cluster, now: datetime) -> Standing:
    """One query."""
    return Standing(cluster, now, {run.kind: run for run in CollectorRun.objects.filter(cluster=cluster)})


def newest_quorums(clusters: Iterable[int]) -> dict[int, QuorumSeen]:
    """The newest answer of the controllers per cluster id. One query."""
    newest = QuorumSnapshot.objects.filter(cluster=OuterRef("pk")).order_by("-taken_at").values("pk")[:1]
    first = QuorumSnapshot.objects.filter(cluster=OuterRef("cluster"), leader_epoch=OuterRef("leader_epoch"))
    ids = Cluster.objects.filter(pk__in=clusters).annotate(newest=Subquery(newest)).values("newest")
    snapshots = QuorumSnapshot.objects.filter(pk__in=ids).annotate(
        led_since=Subquery(first.order_by("taken_at").values("taken_at")[:1])
    )
    return {s.cluster_id: QuorumSeen(s, _judged(s, s.led_since), s.led_since) for s in snapshots}


def _judged(snapshot: QuorumSnapshot, led_since: datetime, missing: Sequence[int] = ()) -> Quorum:
    nodes = [QuorumNode(**node) for node in snapshot.replicas]
    return quorum(nodes, snapshot.leader_id, (snapshot.taken_at - led_since).total_seconds(), missing)
