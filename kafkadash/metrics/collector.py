"""Collector of stored rows for the client library of Prometheus; nothing is asked of Kafka, and nothing is counted in
this process.

The number of queries does not depend on clusters, groups or findings. Ages are read before the facts, as pages do it,
so that what is stored meanwhile is taken for older than it is.
"""

from __future__ import annotations

import math
import platform
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db.models import Count, F, Max, Q
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from kafkadash import VERSION
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.state_machine import STEPPED
from kafkadash.clusters.models import Cluster
from kafkadash.core.status import QUICKEST_JUDGED_S, RefreshStatus, is_stale
from kafkadash.execution.engine.state import ENDED as ENDED_MOVES
from kafkadash.execution.models import Execution
from kafkadash.execution.pages.counts import figures_of, freshness_of_figures
from kafkadash.execution.progress.figures import RunNow
from kafkadash.findings.board import ClusterStanding, FindingRow, rank_clusters
from kafkadash.findings.facts import ClusterFacts, PartitionFacts
from kafkadash.findings.judgement import is_current, is_trusted
from kafkadash.findings.kinds import FactSource, FindingKind
from kafkadash.findings.models import Judgement
from kafkadash.findings.product import load_product_rows
from kafkadash.findings.stored_facts import age_facts, age_pipeline
from kafkadash.history.standing import PipelineStatus, pipeline_standing
from kafkadash.kafka.throttles import DISK_RATE, FOLLOWER_RATE, LEADER_RATE, RATES, rate_of
from kafkadash.metrics.series import MetricSeries, list_series
from kafkadash.monitoring.freshness import FactFreshness
from kafkadash.monitoring.groups.names import stored_name
from kafkadash.monitoring.models import (
    CollectorKind,
    CollectorRun,
    GroupState,
    ThrottledResource,
    ThrottleState,
    UnjudgedGroup,
    ZooKeeperState,
)
from kafkadash.monitoring.quorum.rules import NodeStatus
from kafkadash.ops.models import Heartbeat
from kafkadash.short_runs.models import ShortRun
from kafkadash.short_runs.state import ENDED as ENDED_ITEMS
from kafkadash.watchdog.rounds import load_rounds
from kafkadash.watchdog.rules import AUDIT

MOST_GROUPS = 20_000
"""Groups of one scrape, the worst first: each has five series, and names of groups are made by clients."""
GROUP_STATES = frozenset(
    {
        "Stable",
        "Empty",
        "PreparingRebalance",
        "CompletingRebalance",
        "Assigning",
        "Reconciling",
        "NotReady",
        "Dead",
        "Unknown",
    }
)
"""Kafka's GroupState. Another word of a broker is "other", so that the values of the label stay few."""
GROUP_TYPES = frozenset({"classic", "consumer", "share", "streams"})
OTHER = "other"
NO_VERDICT = "none"
"""Verdict of a group that has committed nothing, and of a share group."""
ALL_BROKERS = "default"
"""Value of the label broker for the cluster default."""
DIRECTIONS = {LEADER_RATE: "outbound", FOLLOWER_RATE: "inbound", DISK_RATE: "directories"}
_OF_CLUSTERS = [kind for kind in FindingKind if kind.about.source is not FactSource.PRODUCT]
_RUN_COLUMNS = ("samples", "report", "foreign", "held", "absences")


class StoredMetrics(Collector):
    """All series as of ``now``. Use it for one scrape."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._families = {series.name: _build_family(series) for series in list_series()}
        self._gauges = {name: own for name, own in self._families.items() if isinstance(own, GaugeMetricFamily)}

    def collect(self) -> Iterator[Metric]:
        """Yield the families in the order of the catalogue, those without a sample left out."""
        clusters = Cluster.objects.select_related("same_as")
        standings = sorted(rank_clusters(clusters, self.now), key=lambda standing: standing.cluster.slug)
        pipeline = pipeline_standing(self.now)
        own = {standing.cluster.pk: standing for standing in standings}
        self._add_process()
        self._add_pipeline(pipeline)
        self._add_findings(standings, pipeline)
        self._add_product()
        read = {pk: standing for pk, standing in own.items() if is_collected(standing.cluster)}
        for standing in standings:
            self._add_cluster(standing)
        for standing in read.values():
            self._add_figures(standing)
            self._add_quorum(standing)
        self._add_groups(read)
        self._add_throttles(read)
        self._add_changes(own)
        yield from (family for family in self._families.values() if family.samples)

    def _add(self, name: str, labels: Sequence[str], value: float | datetime | None) -> None:
        """Nothing is added for None."""
        if value is not None:
            number = value.timestamp() if isinstance(value, datetime) else float(value)
            self._gauges[name].add_metric(labels, number)

    def _add_info(self, name: str, labels: Mapping[str, str]) -> None:
        family = self._families[name]
        assert isinstance(family, InfoMetricFamily)
        family.add_metric([], dict(labels))

    def _add_process(self) -> None:
        self._add_info("kafkadash_build_info", {"version": VERSION, "python": platform.python_version()})
        for name, at in Heartbeat.objects.order_by("name").values_list("name", "at"):
            self._add("kafkadash_heartbeat_timestamp_seconds", [name], at)
        runs = CollectorRun.objects.filter(cluster__enabled=True, cluster__removed_at=None)
        self._add("kafkadash_collection_attempt_timestamp_seconds", [], runs.aggregate(at=Max("attempted_at"))["at"])

    def _add_pipeline(self, status: PipelineStatus) -> None:
        row, beat = status.row, status.beat
        self._add("kafkadash_pipeline_check_timestamp_seconds", [], row.looked_at if row else None)
        self._add("kafkadash_pipeline_heartbeat_timestamp_seconds", [], beat.beat_at if beat else None)
        self._add("kafkadash_pipeline_batch_timestamp_seconds", [], beat.batch_at if beat else None)
        self._add("kafkadash_pipeline_history_timestamp_seconds", [], status.reaches)
        if row is not None and not status.looked.stale:
            self._add("kafkadash_pipeline_waiting_segments", [], row.segments_waiting)
            self._add("kafkadash_pipeline_waiting_results", [], row.results_waiting)

    def _add_findings(self, standings: Sequence[ClusterStanding], pipeline: PipelineStatus) -> None:
        judged = {judgement.cluster_id: judgement for judgement in Judgement.objects.all()}
        for standing in standings:
            slug, judgement = standing.cluster.slug, judged.get(standing.cluster.pk)
            judged_at = judgement.judged_at if judgement else None
            self._add("kafkadash_cluster_judgement_timestamp_seconds", [slug], judged_at)
            found: dict[tuple[str, str], list[FindingRow]] = defaultdict(list)
            for row in standing.findings:
                found[row.kind.value, row.state.value].append(row)
            named = {row.kind.value for row in standing.findings if not row.expected}
            facts = _age_facts(standing, pipeline)
            for kind in _OF_CLUSTERS:
                if kind.value not in named and _is_judged(kind, facts, judgement, self.now):
                    self._add("kafkadash_findings_open", [slug, kind.value, kind.about.state.value], 0)
            for (kind_name, severity), rows in sorted(found.items()):
                labels = [slug, kind_name, severity]
                seen = [row.row.first_seen_at for row in rows if row.row is not None]
                self._add("kafkadash_findings_open", labels, len(rows))
                self._add("kafkadash_findings_acknowledged", labels, sum(bool(row.owner) for row in rows))
                self._add("kafkadash_findings_first_seen_timestamp_seconds", labels, min(seen, default=None))

    def _add_product(self) -> None:
        """Tasks are always judged, and receivers while somebody audits."""
        rows = load_product_rows(self.now)
        found = Counter((row.kind.value, row.state.value) for row in rows)
        audited = False
        for each in load_rounds():
            self._add("kafkadash_task_round_timestamp_seconds", [each.name], each.finished_at)
            audited |= each.name == AUDIT and not each.is_overdue(self.now)
        for kind in FindingKind:
            if kind.about.source is FactSource.PRODUCT and audited:
                found.setdefault((kind.value, kind.about.state.value), 0)
        for (kind_name, severity), number in sorted(found.items()):
            self._add("kafkadash_findings_open", ["", kind_name, severity], number)

    def _add_cluster(self, standing: ClusterStanding) -> None:
        cluster = standing.cluster
        info = {"cluster": cluster.slug, "name": cluster.name, "kafka_id": cluster.kafka_id, "mode": cluster.mode}
        self._add_info("kafkadash_cluster_info", info)
        self._add("kafkadash_cluster_collection_enabled", [cluster.slug], cluster.enabled)
        self._add("kafkadash_cluster_state", [cluster.slug, standing.state.value], 1)
        if not cluster.enabled:
            return
        for kind, status in sorted(standing.statuses.items()):
            labels = [cluster.slug, kind]
            self._add("kafkadash_collector_success_timestamp_seconds", labels, status.taken_at)
            self._add("kafkadash_collector_failures", labels, status.failures)
            self._add("kafkadash_collector_interval_seconds", labels, status.interval_s)

    def _add_figures(self, standing: ClusterStanding) -> None:
        figures, slug = standing.figures, [standing.cluster.slug]
        if not standing.freshness_of(CollectorKind.REASSIGNMENTS).stale:
            self._add("kafkadash_partitions_reassigning", slug, standing.moving)
        if standing.freshness.stale:
            return
        self._add("kafkadash_brokers_registered", slug, figures.brokers)
        self._add("kafkadash_brokers_fenced", slug, figures.brokers_fenced)
        self._add("kafkadash_brokers_unregistered", slug, figures.brokers_gone)
        self._add("kafkadash_topics", slug, figures.topics)
        self._add("kafkadash_partitions", slug, figures.partitions)
        self._add("kafkadash_partitions_offline", slug, figures.offline_partitions)
        self._add("kafkadash_partitions_under_replicated", slug, figures.under_replicated)
        self._add("kafkadash_partitions_under_min_isr", slug, figures.under_min_isr)
        self._add("kafkadash_partitions_at_min_isr", slug, figures.at_min_isr)
        if not standing.freshness_of(CollectorKind.ANSWERS).stale:
            self._add("kafkadash_brokers_unresponsive", slug, standing.silent)

    def _add_quorum(self, standing: ClusterStanding) -> None:
        if standing.quorum is None or standing.quorum_stale:
            return
        slug, quorum = [standing.cluster.slug], standing.quorum.quorum
        self._add("kafkadash_quorum_leader_id", slug, standing.quorum.snapshot.leader_id)
        self._add("kafkadash_quorum_leader_epoch", slug, standing.quorum.snapshot.leader_epoch)
        self._add("kafkadash_quorum_voters", slug, len(quorum.voters))
        self._add("kafkadash_quorum_voters_in_sync", slug, quorum.in_sync)
        if all(voter.status is not NodeStatus.UNKNOWN for voter in quorum.voters):
            self._add("kafkadash_quorum_margin", slug, quorum.survives)

    def _add_groups(self, standings: Mapping[int, ClusterStanding]) -> None:
        fresh = {
            pk: freshness
            for pk, standing in standings.items()
            if not (freshness := standing.freshness_of(CollectorKind.GROUPS)).stale
        }
        judged = GroupState.objects.filter(cluster__in=fresh, gone_at=None)
        shares = UnjudgedGroup.objects.filter(cluster__in=fresh, is_share=True)
        totals: Counter[int] = Counter()
        for rows in (judged, shares):
            totals.update(dict(rows.order_by().values_list("cluster_id").annotate(number=Count("pk"))))
        labels = _GroupLabels()
        sink = _GroupFamilies(self._gauges)
        worst_first = judged.order_by("rank", F("lag").desc(nulls_last=True), "pk")
        for pk, key, name, kind, state, members, worst, lag, unknown, waits, taken_at in worst_first.values_list(
            "cluster_id", "key", "name", "type", "state", "members", "worst", "lag", "lag_unknown", "time_lag_s",
            "taken_at",
        )[:MOST_GROUPS]:  # fmt: skip
            if not is_old(taken_at, fresh[pk]) and (label := labels.take(pk, key, name)):
                slug = standings[pk].cluster.slug
                sink.add(slug, label, kind or "unknown", state, worst or NO_VERDICT, members, lag, unknown, waits)
        room = max(0, MOST_GROUPS - labels.taken)
        for pk, key, name, state, members, lag, unknown, read_at in shares.order_by(
            F("lag").desc(nulls_last=True), "pk"
        ).values_list("cluster_id", "key", "name", "state", "members", "lag", "lag_unknown", "read_at")[:room]:
            if not is_old(read_at, fresh[pk]) and (label := labels.take(pk, key, name)):
                slug = standings[pk].cluster.slug
                sink.add(slug, label, "share", state, NO_VERDICT, members, lag, unknown, None)
        for pk in fresh:
            slug = standings[pk].cluster.slug
            self._add("kafkadash_groups", [slug], totals[pk])
            self._add("kafkadash_groups_left_out", [slug], totals[pk] - labels.by_cluster[pk])

    def _add_throttles(self, standings: Mapping[int, ClusterStanding]) -> None:
        fresh = {
            pk: freshness
            for pk, standing in standings.items()
            if not (freshness := standing.freshness_of(CollectorKind.CONFIGS)).stale
        }
        rows = ThrottleState.objects.filter(cluster__in=fresh, removed_at=None)
        numbers: Counter[tuple[int, str]] = Counter()
        orphans: Counter[int] = Counter()
        counted = rows.order_by().values_list("cluster_id", "resource")
        for pk, resource, number, orphan in counted.annotate(
            number=Count("pk"), orphan_number=Count("pk", filter=Q(orphan=True))
        ):
            numbers[pk, resource] = number
            orphans[pk] += orphan
        for pk in fresh:
            slug = standings[pk].cluster.slug
            for resource in ThrottledResource:
                self._add("kafkadash_throttles", [slug, resource.value], numbers[pk, resource.value])
            self._add("kafkadash_throttles_orphan", [slug], orphans[pk])
        rates = rows.filter(key__in=RATES).exclude(resource=ThrottledResource.TOPIC).order_by("cluster", "name", "key")
        for pk, name, key, value, read_at in rates.values_list("cluster_id", "name", "key", "value", "read_at"):
            if not is_old(read_at, fresh[pk]):
                labels = [standings[pk].cluster.slug, name or ALL_BROKERS, DIRECTIONS[key]]
                self._add("kafkadash_throttle_rate_bytes_per_second", labels, rate_of(value))

    def _add_changes(self, standings: Mapping[int, ClusterStanding]) -> None:
        requests = ChangeRequest.objects.listed().filter(cluster__in=standings).order_by()
        numbers = {
            (pk, state): number
            for pk, state, number in requests.values_list("cluster_id", "state").annotate(number=Count("pk"))
        }
        for pk, standing in standings.items():
            for state in RequestState:
                self._add(
                    "kafkadash_change_requests", [standing.cluster.slug, state.value], numbers.get((pk, state.value), 0)
                )
        stepped = Q(request__state__in=STEPPED, cluster__in=standings)
        moves = Execution.objects.filter(stepped).select_related("request").defer(*_RUN_COLUMNS).order_by("request_id")
        for run in moves:
            labels = [standings[run.cluster_id].cluster.slug, str(run.request_id)]
            self._add_run(labels, run, run.rows)
            self._add("kafkadash_run_throttle_bytes_per_second", labels, run.throttle)
            figures = figures_of(run)
            if figures is not None:
                ended = sum(number for state, number in figures.counts.items() if state in ENDED_MOVES)
                self._add("kafkadash_run_items_ended", labels, ended)
                if not freshness_of_figures(run, self.now).stale:
                    self._add_progress(labels, figures)
        for short in ShortRun.objects.filter(stepped).select_related("request").order_by("request_id"):
            labels = [standings[short.cluster_id].cluster.slug, str(short.request_id)]
            self._add_run(labels, short, short.items)
            if short.counts:
                ended = sum(number for state, number in short.counts.items() if state in ENDED_ITEMS)
                self._add("kafkadash_run_items_ended", labels, ended)

    def _add_run(self, labels: Sequence[str], run: Execution | ShortRun, items: int) -> None:
        self._add("kafkadash_run_state", [*labels, run.request.kind, run.request.state], 1)
        self._add("kafkadash_run_start_timestamp_seconds", labels, run.started_at)
        self._add("kafkadash_run_blocked_timestamp_seconds", labels, run.blocked_at if run.blocked_code else None)
        self._add("kafkadash_run_read_timestamp_seconds", labels, run.looked_at)
        self._add("kafkadash_run_items", labels, items or None)

    def _add_progress(self, labels: Sequence[str], figures: RunNow) -> None:
        """Bytes and ratio are unknown while the size of a partition is."""
        if figures.total_bytes is not None:
            self._add("kafkadash_run_size_bytes", labels, figures.total_bytes)
            self._add("kafkadash_run_copied_bytes", labels, figures.moved_bytes)
        ratio = None if figures.percent is None else figures.percent / 100
        self._add("kafkadash_run_progress_ratio", labels, ratio)
        self._add("kafkadash_run_rate_bytes_per_second", labels, figures.rate)
        remaining = figures.eta_s
        self._add(
            "kafkadash_run_remaining_seconds",
            labels,
            remaining if remaining is not None and math.isfinite(remaining) else None,
        )
        self._add("kafkadash_run_stuck_moves", labels, figures.stuck)


def is_old(taken_at: datetime | None, freshness: FactFreshness) -> bool:
    """Return whether the data of one row is stale; ``freshness`` is that of its kind."""
    return FactFreshness(taken_at, freshness.interval_s, freshness.now).stale


def is_collected(cluster: Cluster) -> bool:
    """Return whether what is stored is of this cluster and still read."""
    return cluster.enabled and not cluster.other_kafka_id and cluster.same_as_id is None


def _age_facts(standing: ClusterStanding, pipeline: PipelineStatus) -> ClusterFacts:
    """Return the ages of what a judgement takes, as ``is_current`` needs them. No query."""
    own = RefreshStatus(standing.now, QUICKEST_JUDGED_S)
    return replace(
        age_facts(standing.cluster, standing.statuses, standing.ensemble or ZooKeeperState()),
        runs=own,
        reading=own,
        pipeline=age_pipeline(pipeline),
        under_replicated=PartitionFacts(standing.figures.under_replicated),
    )


def _is_judged(kind: FindingKind, facts: ClusterFacts, judgement: Judgement | None, now: datetime) -> bool:
    """Return whether the absence of a finding of this kind says that there is none."""
    if not is_trusted(facts, now):
        return False
    if kind.about.source is FactSource.AGES:
        return True
    if judgement is None or is_stale(judgement.judged_at, facts.metadata.interval_s, now):
        return False
    if judgement.unknown_kinds is None or kind.value in judgement.unknown_kinds:
        return False
    return not facts.refreshed(kind.about.source).stale(now) and is_current(kind, facts, now)


def _build_family(series: MetricSeries) -> GaugeMetricFamily | InfoMetricFamily:
    if series.is_info and series.name.endswith("_info"):
        return InfoMetricFamily(series.name.removesuffix("_info"), series.help)
    return GaugeMetricFamily(series.name, series.help, labels=series.labels, unit=series.unit)


@dataclass(slots=True)
class _GroupLabels:
    """Labels of groups, each used once in a cluster: two equal series would fail the whole scrape."""

    used: set[tuple[int, str]] = field(default_factory=set)
    by_cluster: Counter[int] = field(default_factory=Counter)

    @property
    def taken(self) -> int:
        return len(self.used)

    def take(self, cluster_id: int, key: str, name: str) -> str:
        """Return the name, or ``~`` and its digest if it is empty, long or taken; '' if that is taken too."""
        digest = f"~{key}"
        for label in (stored_name(name) or digest, digest):
            if (cluster_id, label) not in self.used:
                self.used.add((cluster_id, label))
                self.by_cluster[cluster_id] += 1
                return label
        return ""


class _GroupFamilies:
    """Families of single groups; there are thousands of samples, so each value is looked at once."""

    def __init__(self, families: Mapping[str, GaugeMetricFamily]) -> None:
        self._lag, self._waits, self._unknown, self._members, self._state = (
            families[f"kafkadash_group_{name}"].add_metric
            for name in ("lag_records", "lag_seconds", "unknown_lag_partitions", "members", "state")
        )

    def add(
        self,
        slug: str,
        group: str,
        kind: str,
        state: str,
        verdict: str,
        members: int | None,
        lag: int | None,
        unknown: int,
        waits_s: float | None,
    ) -> None:
        labels = (slug, group)
        if lag is not None:
            self._lag(labels, lag)
        if waits_s is not None:
            self._waits(labels, waits_s)
        if members is not None:
            self._members(labels, members)
        self._unknown(labels, unknown)
        kind = kind.lower()
        told = (
            kind if kind in GROUP_TYPES or kind == "unknown" else OTHER,
            state if state in GROUP_STATES else OTHER,
            verdict,
        )
        self._state((*labels, *told), 1)
