"""Freshness of the facts of a cluster: the age of each kind, and failed or incomplete refreshes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import TypedDict

from django.conf import settings
from django.db.models import OuterRef, Q, Subquery, TextField
from django.db.models.functions import Cast

from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.failures import FailureKind, controllers_are_unheard
from kafkadash.core.formatting import join_items
from kafkadash.core.messages import CodedMessage, choose_plural, message_parts, stored_message
from kafkadash.core.status import NEVER, RefreshStatus, is_stale
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import (
    ON_REQUEST,
    BrokerState,
    ClusterState,
    Collection,
    CollectorKind,
    CollectorRun,
    QuorumSnapshot,
)
from kafkadash.monitoring.quorum.rules import QuorumHealth, QuorumNode, judge_quorum

ALIVE = Q(gone_at=None) & (Q(fenced=False) | Q(fenced=None))
"""Brokers that the controllers have alive."""
SILENT = ALIVE & Q(silent_since__isnull=False)
"""Brokers that the controllers have alive and that do not answer kafkadash."""
UP = ALIVE & Q(silent_since=None)


@dataclass(frozen=True, slots=True)
class FactFreshness:
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


def freshness_of(run: CollectorRun | None, now: datetime) -> FactFreshness:
    """How fresh the newest data of one kind is; ``run`` is None before its collector was ever due."""
    return _judge_age(refreshed_of_run(run), now)


def metadata_freshness(runs: Mapping[str, CollectorRun], now: datetime) -> FactFreshness:
    """How fresh topics and brokers are, as brokers tell them."""
    return freshness_of_kind(CollectorKind.METADATA, statuses_of_runs(runs), now)


def freshness_of_kind(kind: str, statuses: Mapping[str, RefreshStatus], now: datetime) -> FactFreshness:
    """Facts that come from the controllers are not of now while these do not answer, however lately they were read.

    Without a majority of the controllers brokers go on answering Metadata (KRaft's MetadataCache keeps its last image),
    so topics and brokers are as old as the last answer of the controllers, also those that died since.
    """
    fresh = _judge_age(statuses.get(kind, NEVER), now)
    if kind not in _FROM_CONTROLLERS or fresh.stale:
        return fresh
    quorum = statuses.get(CollectorKind.QUORUM, NEVER)
    if not controllers_are_unheard(quorum):
        return fresh
    if kind == CollectorKind.REASSIGNMENTS:
        return replace(fresh, frozen=True)
    told_at = [at for at in (fresh.taken_at, quorum.taken_at) if at is not None]
    return replace(fresh, taken_at=min(told_at, default=None), frozen=True)


_FROM_CONTROLLERS = frozenset({CollectorKind.METADATA, CollectorKind.REASSIGNMENTS})


def _judge_age(status: RefreshStatus, now: datetime) -> FactFreshness:
    return FactFreshness(status.taken_at, status.interval_s, now)


@dataclass(frozen=True, slots=True)
class ReadingDoubts:
    """Gaps in the data of topics and brokers, which do not depend on its age; with any gap, no state may be OK.

    ``hidden_topics``: minimum number of topics that our principal is not authorized to see. ``silent``: brokers that
    are alive for the controllers and do not answer us.
    """

    hidden_topics: int = 0
    silent: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.hidden_topics or self.silent)

    @property
    def words(self) -> str:
        """Continues a sentence, such as "broker 2 is unreachable"; "" without any."""
        parts = []
        if self.silent:
            parts.append(f"{named_brokers(self.silent)} {choose_plural('is|are', len(self.silent))} unreachable")
        if self.hidden_topics:
            parts.append(f"at least {choose_plural('# topic is|# topics are', self.hidden_topics)} hidden")
        return join_items(parts)


def doubts_about(cluster: Cluster) -> ReadingDoubts:
    """Two queries."""
    hidden = ClusterState.objects.filter(cluster=cluster).values_list("hidden_topics", flat=True).first()
    return ReadingDoubts(hidden or 0, silent_brokers(cluster))


def silent_brokers(cluster: Cluster) -> frozenset[int]:
    """Return the brokers that are alive for the controllers but do not answer us. Runs one query."""
    return frozenset(BrokerState.objects.filter(SILENT, cluster=cluster).values_list("broker_id", flat=True))


def named_brokers(ids: Iterable[int]) -> str:
    """Such as "broker 2"; only how many where there are more than three."""
    shown = sorted(ids)
    if len(shown) > 3:
        return f"{len(shown):,} brokers"
    return f"{choose_plural('broker|brokers', len(shown))} {join_items([str(broker) for broker in shown])}"


def refreshed_of_run(run: CollectorRun | None) -> RefreshStatus:
    """How one kind of facts stands, as the domain judges it; ``run`` is None before its collector was ever due."""
    if run is None:
        return NEVER
    return RefreshStatus(run.succeeded_at, run.interval_s, run.failures, run.last_failure, run.last_error)


def statuses_of_runs(runs: Mapping[str, CollectorRun]) -> dict[str, RefreshStatus]:
    return {kind: refreshed_of_run(run) for kind, run in runs.items()}


def read_statuses(clusters: Iterable[int]) -> dict[int, dict[str, RefreshStatus]]:
    """Return how each kind of facts stands, by cluster id and kind. One query, of which no model instances are made."""
    columns = ("succeeded_at", "interval_s", "failures", "last_failure", "last_error_code")
    found: dict[int, dict[str, RefreshStatus]] = {cluster_id: {} for cluster_id in clusters}
    rows = CollectorRun.objects.filter(cluster__in=found)
    params = Cast("last_error_params", TextField())  # few have an error to be parsed
    for cluster_id, kind, taken_at, interval_s, failures, failure, code, told in rows.values_list(
        "cluster_id", "kind", *columns, params
    ):
        error = stored_message(code, json.loads(told)) if code else None
        found[cluster_id][kind] = RefreshStatus(taken_at, interval_s, failures, failure, error)
    return found


@dataclass(frozen=True, slots=True)
class QuorumSeen:
    """The newest answer of the controllers, judged; ``led_since`` is when this leader's epoch was first seen."""

    snapshot: QuorumSnapshot
    quorum: QuorumHealth
    led_since: datetime

    def lacking(self, missing: Sequence[int]) -> QuorumSeen:
        """Judged as one that lacks these nodes too: see ``monitoring.quorum.rules.judge_quorum``."""
        seen_s = (self.snapshot.taken_at - self.led_since).total_seconds()
        nodes = json.dumps(self.snapshot.replicas)
        return replace(self, quorum=_judge_nodes(nodes, self.snapshot.leader_id, seen_s, tuple(missing)))


@dataclass(frozen=True)
class CollectionFreshness:
    """A cluster with the collectors of its kinds of facts; nothing is judged here.

    A page reads it once, for its bar, and hands it to its panels as ``known``. A panel that is rendered alone reads
    its own. The ages are read before the facts, so that what is stored meanwhile is taken for older than it is, never
    for newer.
    """

    cluster: Cluster
    now: datetime
    runs: Mapping[str, CollectorRun]

    @cached_property
    def statuses(self) -> Mapping[str, RefreshStatus]:
        return statuses_of_runs(self.runs)

    def freshness_of(self, kind: str) -> FactFreshness:
        return freshness_of_kind(kind, self.statuses, self.now)

    @cached_property
    def quorum(self) -> QuorumSeen | None:
        """The newest answer of the controllers. One query, when it is first asked for."""
        return newest_quorums([self.cluster.pk]).get(self.cluster.pk)


def load_standing(cluster: Cluster, now: datetime) -> CollectionFreshness:
    """Return the freshness of the cluster's collections. Runs one query."""
    return CollectionFreshness(cluster, now, {run.kind: run for run in CollectorRun.objects.filter(cluster=cluster)})


def newest_quorums(clusters: Iterable[int]) -> dict[int, QuorumSeen]:
    """The newest answer of the controllers per cluster id. One query."""
    newest = QuorumSnapshot.objects.filter(cluster=OuterRef("pk")).order_by("-taken_at").values("pk")[:1]
    first = QuorumSnapshot.objects.filter(cluster=OuterRef("cluster"), leader_epoch=OuterRef("leader_epoch"))
    ids = Cluster.objects.filter(pk__in=clusters).annotate(newest=Subquery(newest)).values("newest")
    snapshots = QuorumSnapshot.objects.filter(pk__in=ids).annotate(
        led_since=Subquery(first.order_by("taken_at").values("taken_at")[:1]),
        nodes=Cast("replicas", TextField()),
    )
    found = {}
    for snapshot in snapshots:
        seen_s = (snapshot.taken_at - snapshot.led_since).total_seconds()
        health = _judge_nodes(snapshot.nodes, snapshot.leader_id, seen_s, ())
        found[snapshot.cluster_id] = QuorumSeen(snapshot, health, snapshot.led_since)
    return found


@lru_cache(maxsize=1024)
def _judge_nodes(nodes: str, leader_id: int, epoch_seen_s: float, missing: tuple[int, ...]) -> QuorumHealth:
    """``nodes``: JSON of ``QuorumSnapshot.replicas``. Cached, because boards and pages show an answer many times."""
    return judge_quorum([QuorumNode(**node) for node in json.loads(nodes)], leader_id, epoch_seen_s, missing)


@dataclass(frozen=True, slots=True)
class NotRead:
    """Kinds of facts that one cause keeps from being read.

    ``causes`` are messages of the refresh itself, ``more`` is how many it has besides.
    """

    kinds: Sequence[str]
    words: str
    causes: Sequence[CodedMessage]
    meaning: str
    more: int = 0

    @property
    def key(self) -> str:
        return "-".join(self.kinds)


def not_read(cluster: Cluster, runs: Mapping[str, CollectorRun], kinds: Sequence[CollectorKind]) -> list[NotRead]:
    """Return entries about those of ``kinds`` not fully read: failed refreshes first, then incomplete ones."""
    failed = [runs[kind] for kind in kinds if kind in runs and runs[kind].failures]
    by_cause: dict[tuple[bool, str, str], list[CollectorRun]] = {}
    for run in failed:
        denied = run.last_failure == FailureKind.NOT_AUTHORIZED
        cause = (denied, run.last_error_code, json.dumps(run.last_error_params, sort_keys=True))
        by_cause.setdefault(cause, []).append(run)
    found = [_describe_failed(same, denied=denied) for (denied, _, _), same in by_cause.items()]
    good = [kind for kind in kinds if kind in runs and not runs[kind].failures]
    by_errors: dict[str, list[Collection]] = {}
    for one in _newest_collections(cluster, good):
        if one.ok and one.errors:
            by_errors.setdefault(json.dumps(one.errors, sort_keys=True), []).append(one)
    return found + [_describe_incomplete(same) for same in by_errors.values()]


def _newest_collections(cluster: Cluster, kinds: Sequence[CollectorKind]) -> Iterable[Collection]:
    of_kind = Collection.objects.filter(cluster=cluster, kind=OuterRef("kind")).order_by("-started_at")
    runs = CollectorRun.objects.filter(cluster=cluster, kind__in=kinds)
    newest = runs.annotate(newest=Subquery(of_kind.values("pk")[:1])).values("newest")
    return Collection.objects.filter(pk__in=newest).order_by("kind")


def _describe_failed(runs: Sequence[CollectorRun], *, denied: bool) -> NotRead:
    what = join_items([CollectorKind(run.kind).label for run in runs])
    if any(run.succeeded_at for run in runs):
        code = CollectionErrorCode.READ_DENIED if denied else CollectionErrorCode.REFRESH_FAILED
    else:
        code = CollectionErrorCode.NEVER_ALLOWED if denied else CollectionErrorCode.NEVER_REFRESHED
    words, meaning = message_parts(code, kinds=what)
    return NotRead([run.kind for run in runs], words, [runs[0].last_error] if runs[0].last_error else [], meaning)


def _describe_incomplete(newest: Sequence[Collection]) -> NotRead:
    """``newest``: collections with equal messages. Where these are about fenced brokers only, one line says it all."""
    causes = newest[0].messages
    named = [cause.params.get("broker") for cause in causes if cause.code == CollectionErrorCode.BROKER_FENCED]
    fenced = {broker for broker in named if isinstance(broker, int)}
    more = len(causes) - 1
    if len(fenced) == len(causes):
        offline = fenced.union(*(one.not_answered for one in newest))
        missing = f"{named_brokers(offline)} {choose_plural('is|are', len(offline))} offline"
        causes, more = [], 0
    else:
        missing = join_items([CollectorKind(one.kind).label for one in newest])
    words, meaning = message_parts(CollectionErrorCode.READ_IN_PART, missing=missing)
    return NotRead([one.kind for one in newest], words, causes[:1], meaning, more)


_GRAINS = {
    CollectorKind.ANSWERS: "brokers",
    CollectorKind.METADATA: "partitions",
    CollectorKind.REASSIGNMENTS: "in flight",
    CollectorKind.QUORUM: "nodes",
    CollectorKind.LOG_DIRS: "replicas",
    CollectorKind.CONFIGS: "topics and brokers",
    CollectorKind.VERSIONS: "brokers",
    CollectorKind.GROUPS: "groups",
    CollectorKind.TRAFFIC: "partitions",
    CollectorKind.CATCH_UP: "replicas",
    CollectorKind.CANARY: "partitions",
    CollectorKind.TRANSACTIONS: "partitions",
}


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """How one kind of facts is collected. ``newest`` is its last refresh, good or not; None before the first."""

    kind: CollectorKind
    freshness: FactFreshness
    run: CollectorRun | None
    newest: Collection | None

    @property
    def gave_up(self) -> bool:
        """Return whether collection stopped because the credentials were refused ``REFUSED_TRIES`` times."""
        run = self.run
        return run is not None and bool(run.failures) and run.refusals >= settings.REFUSED_TRIES

    @property
    def grain(self) -> str:
        """Unit of the facts that a refresh of this kind counts."""
        return _GRAINS[self.kind]


class CollectionContext(TypedDict):
    cluster: Cluster
    now: datetime
    sampled_at: datetime | None
    rows: list[CollectionRow]


def collection_context(cluster: Cluster, now: datetime, known: CollectionFreshness | None = None) -> CollectionContext:
    """How each kind of facts is read, and how its last refresh went."""
    of_kind = Collection.objects.filter(cluster=cluster, kind=OuterRef("kind")).order_by("-started_at")
    newest = CollectorRun.objects.filter(cluster=cluster).annotate(newest=Subquery(of_kind.values("pk")[:1]))
    runs = (known or load_standing(cluster, now)).runs
    last = {c.kind: c for c in Collection.objects.filter(pk__in=newest.values("newest"))}
    without = {CollectorKind.QUORUM} if cluster.mode == ClusterMode.ZOOKEEPER else set()
    kinds = [k for k in CollectorKind if k not in without and (k in runs or k not in ON_REQUEST)]
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": max((run.attempted_at for run in runs.values() if run.attempted_at), default=None),
        "rows": [CollectionRow(k, freshness_of(runs.get(k), now), runs.get(k), last.get(k)) for k in kinds],
    }
