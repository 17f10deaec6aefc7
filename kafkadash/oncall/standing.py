"""How clusters stand: what is stored about many of them, in a number of queries that does not grow with them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, FilteredRelation, OuterRef, Q, Subquery

from kafkadash.changes.kinds import Run
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.headline import headline, rolled_up
from kafkadash.domain.status import State
from kafkadash.domain.wording import long_duration
from kafkadash.domain.workflow_states import State as ChangeState
from kafkadash.observe.models import BrokerState, ClusterState, CollectorRun, Kind, Outcome, ReassignmentSnapshot
from kafkadash.observe.standing import (
    SILENT,
    Freshness,
    QuorumSeen,
    Standing,
    freshness_of_kind,
    newest_quorums,
)
from kafkadash.oncall.facts import age_facts
from kafkadash.oncall.finding_rows import FindingRow, rows_of
from kafkadash.oncall.models import Finding
from kafkadash.reassign.run.summaries import short


@dataclass(frozen=True, slots=True)
class RunningChange:
    """The change whose run goes on in a cluster, in short."""

    change: ChangeRequest
    run: Run
    now: datetime

    @property
    def percent_words(self) -> str:
        """How far, such as "51.3 %"; nothing old is told."""
        if self.run.percent is None or self.run.old:
            return "progress not known"
        return f"{math.floor(self.run.percent * 10) / 10:.1f} %"

    @property
    def end_words(self) -> str:
        """Until when, such as "about 3 min left"; "" where that is not known."""
        if self.change.state != ChangeState.EXECUTING:
            return str(self.change.get_state_display()).lower()
        if self.run.no_progress:
            return "no progress"
        if self.run.ends_at is None or self.run.old:
            return ""
        return f"about {long_duration(max(1.0, (self.run.ends_at - self.now).total_seconds()))} left"


@dataclass(frozen=True, slots=True)
class ClusterStanding:
    """A cluster with its stored figures and its findings, most urgent first.

    ``figures`` is an unsaved, empty row before the first refresh. ``moving`` is None while nobody has looked.
    ``silent``: brokers that do not answer. ``running``: the change that is run there.
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
    running: RunningChange | None
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
        return freshness_of_kind(kind, self.runs, self.now)

    @property
    def urgency(self) -> tuple[int, int, datetime, str]:
        """Order of the board: state, then what is worst, then what has been so for longest."""
        worst = self.findings[0] if self.findings else None
        opened = worst.row.first_seen_at if worst and worst.row else self.now
        return self.state.severity, worst.kind.rank if worst else 0, opened, self.cluster.name


_JOINED: tuple[str, ...] = ("state", "judgement", "active_run__request")
_NOT_OF_RUNS = tuple(f"active_run__{name}" for name in ("samples", "report", "foreign"))
_NOT_SHOWN = ("sasl_password", "ca_pem", "certificate_pem", "key_pem")


def standings(clusters: Iterable[Cluster], now: datetime, known: Standing | None = None) -> list[ClusterStanding]:
    """The clusters, worst first. Six queries for any number of them.

    ``known``: what was read already of one.
    """
    own = {cluster.pk: cluster for cluster in clusters}
    held = Cluster.objects.filter(pk__in=own)
    away = BrokerState.objects.filter(SILENT, cluster=OuterRef("pk")).order_by().values("cluster")
    active = FilteredRelation("executions", condition=Q(executions__active=True))
    seen = held.annotate(silent=Subquery(away.annotate(number=Count("pk")).values("number")), active_run=active)
    figures, judged, silent, running = {}, {}, {}, {}
    for row in seen.select_related(*_JOINED).defer(*_NOT_SHOWN, *_NOT_OF_RUNS):
        run = getattr(row, "active_run", None)
        running[row.pk] = RunningChange(run.request, short(run, run.request, now), now) if run else None
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
                running=running.get(pk),
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
