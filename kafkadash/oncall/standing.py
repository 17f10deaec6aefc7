"""How clusters stand: what is stored about many of them, in a number of queries that does not grow with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, OuterRef, Subquery

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.headline import headline, rolled_up
from kafkadash.domain.status import State
from kafkadash.observe.models import BrokerState, ClusterState, CollectorRun, Kind, Outcome, ReassignmentSnapshot
from kafkadash.observe.standing import (
    SILENT,
    Freshness,
    QuorumSeen,
    Standing,
    freshness_of,
    metadata_freshness,
    newest_quorums,
)
from kafkadash.oncall.facts import age_facts
from kafkadash.oncall.finding_rows import FindingRow, rows_of
from kafkadash.oncall.models import Finding


@dataclass(frozen=True, slots=True)
class ClusterStanding:
    """A cluster with its stored figures and its findings, most urgent first.

    ``figures`` is an unsaved, empty row before the first refresh. ``moving`` is None while nobody has looked.
    ``silent``: brokers that do not answer.
    """

    cluster: Cluster
    now: datetime
    findings: tuple[FindingRow, ...]
    state: State
    figures: ClusterState
    runs: Mapping[str, CollectorRun]
    quorum: QuorumSeen | None
    moving: int | None
    silent: int
    last_closed_at: datetime | None

    @property
    def title(self) -> str:
        return headline(self.cluster.name, self.state, [row.point for row in self.findings])

    @property
    def brokers(self) -> int | None:
        """Those that are registered, and those that are not and are assigned replicas all the same."""
        return None if self.figures.brokers is None else self.figures.brokers + (self.figures.brokers_gone or 0)

    @property
    def brokers_up(self) -> int | None:
        figures = self.figures
        return None if figures.brokers is None else figures.brokers - (figures.brokers_fenced or 0) - self.silent

    @property
    def quorum_stale(self) -> bool:
        return self.freshness_of(Kind.QUORUM).stale

    @property
    def freshness(self) -> Freshness:
        return self.freshness_of(Kind.METADATA)

    def freshness_of(self, kind: str) -> Freshness:
        if kind == Kind.METADATA:
            return metadata_freshness(self.runs, self.now)
        return freshness_of(self.runs.get(kind), self.now)

    @property
    def urgency(self) -> tuple[int, int, datetime, str]:
        """Order of the board: state, then what is worst, then what has been so for longest."""
        worst = self.findings[0] if self.findings else None
        opened = worst.row.first_seen_at if worst and worst.row else self.now
        return self.state.severity, worst.kind.rank if worst else 0, opened, self.cluster.name


_NOT_SHOWN = ("sasl_password", "ca_pem", "certificate_pem", "key_pem")


def standings(clusters: Iterable[Cluster], now: datetime, known: Standing | None = None) -> list[ClusterStanding]:
    """The clusters, worst first. Six queries for any number of them. ``known``: what was read already of one."""
    own = {cluster.pk: cluster for cluster in clusters}
    held = Cluster.objects.filter(pk__in=own).select_related("state", "judgement").defer(*_NOT_SHOWN)
    away = BrokerState.objects.filter(SILENT, cluster=OuterRef("pk")).order_by().values("cluster")
    figures, judged, silent = {}, {}, {}
    for row in held.annotate(silent=Subquery(away.annotate(number=Count("pk")).values("number"))):
        silent[row.pk] = row.silent or 0
        figures[row.pk] = getattr(row, "state", None)
        judged[row.pk] = getattr(row, "judgement", None)
    runs = _runs_of(own, known)
    found = _open_findings(own)
    moves = dict(
        ReassignmentSnapshot.objects.filter(cluster__in=own, outcome=Outcome.RUNNING)
        .values_list("cluster_id")
        .annotate(number=Count("pk"))
    )
    quorums = _quorums_of([pk for pk, cluster in own.items() if cluster.mode == Mode.KRAFT], known)
    result = []
    for pk, cluster in own.items():
        judgement = judged.get(pk)
        listing = runs[pk].get(Kind.REASSIGNMENTS)
        rows = rows_of(
            cluster, found[pk], age_facts(cluster, runs[pk]), judgement.judged_at if judgement else None, now
        )
        result.append(
            ClusterStanding(
                cluster=cluster,
                now=now,
                findings=rows,
                state=_rolled_up(cluster, rows),
                figures=figures.get(pk) or ClusterState(cluster=cluster),
                runs=runs[pk],
                quorum=quorums.get(pk),
                moving=moves.get(pk, 0) if listing and listing.succeeded_at else None,
                silent=silent.get(pk, 0),
                last_closed_at=judgement.last_closed_at if judgement else None,
            )
        )
    return sorted(result, key=lambda standing: standing.urgency)


def standing(cluster: Cluster, now: datetime, known: Standing | None = None) -> ClusterStanding:
    return standings([cluster], now, known)[0]


def _runs_of(clusters: Iterable[int], known: Standing | None) -> Mapping[int, Mapping[str, CollectorRun]]:
    runs: dict[int, dict[str, CollectorRun]] = defaultdict(dict)
    if known is not None:
        runs[known.cluster.pk] = dict(known.runs)
    for run in CollectorRun.objects.filter(cluster__in=[pk for pk in clusters if pk not in runs]):
        runs[run.cluster_id][run.kind] = run
    return runs


def _quorums_of(clusters: Collection[int], known: Standing | None) -> dict[int, QuorumSeen]:
    if known is None or known.cluster.pk not in clusters:
        return newest_quorums(clusters)
    others = newest_quorums([pk for pk in clusters if pk != known.cluster.pk])
    return {**others, known.cluster.pk: known.quorum} if known.quorum else others


def _rolled_up(cluster: Cluster, rows: Iterable[FindingRow]) -> State:
    """The worst of the findings, of which those that are history count as not known."""
    return rolled_up([row.state for row in rows]) if cluster.enabled else State.MAINTENANCE


def _open_findings(clusters: Iterable[int]) -> dict[int, list[Finding]]:
    found: dict[int, list[Finding]] = defaultdict(list)
    rows = Finding.objects.filter(cluster__in=clusters, closed_at=None, opened_at__isnull=False)
    for row in rows.select_related("acknowledged_by"):
        found[row.cluster_id].append(row)
    return found
