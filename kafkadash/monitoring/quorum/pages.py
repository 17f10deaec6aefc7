"""Pages of the controller quorum: fault tolerance, voters and observers, past leaders, and the history of their lag.

The database aggregates the lag history and keeps the worst value of each interval.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypedDict

from django.conf import settings
from django.db import connection
from django.db.models import Max, Min
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.charts import ChartLimit, ChartLine, ChartMark, ChartRange, ChartSpec, Ink, find_range
from kafkadash.core.formatting import listed_shortly
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.monitoring.cluster_bar import cluster_bar, read_hint
from kafkadash.monitoring.ensemble_state import EnsembleView, read_ensemble
from kafkadash.monitoring.freshness import (
    CollectionFreshness,
    FactFreshness,
    QuorumSeen,
    freshness_of,
    load_standing,
    refreshed_of_run,
)
from kafkadash.monitoring.models import (
    BrokerState,
    Capabilities,
    CollectorKind,
    CollectorRun,
    QuorumReplicaState,
    QuorumSnapshot,
)
from kafkadash.monitoring.quorum.collector import GONE
from kafkadash.monitoring.quorum.rules import (
    LAGGING_MS,
    LagBuckets,
    LagLine,
    LeaderChange,
    LeaderTerm,
    NodeStanding,
    NodeStatus,
    QuorumHealth,
    QuorumVerdict,
    coarsen_values,
    describe_lag,
    is_flapping,
    lag_lines,
    leader_changes,
    quorum_verdict,
    recent_changes,
)

GONE_SHOWN_FOR = timedelta(hours=24)
"""A node that is gone stays listed for so long; a registered broker stays until it is back."""

LEADERS_SHOWN = 8
_STATES = {
    NodeStatus.LEADER: "ok",
    NodeStatus.IN_SYNC: "ok",
    NodeStatus.LAGGING: "warning",
    NodeStatus.OFFLINE: "warning",
    NodeStatus.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node of the quorum as the page lists it. ``standing`` is None for one that is gone.

    ``since``: since when it has this status, as far as seen; None where no status was kept yet. ``broker`` is the
    broker of the same process, None for a controller of its own.
    """

    id: int
    directory_id: str
    voter: bool
    status: str
    state: str
    standing: NodeStanding | None
    since: datetime | None
    broker: BrokerState | None

    @property
    def word(self) -> str:
        return "Not listed" if self.status == GONE else self.status

    @property
    def role(self) -> str:
        """Role of the node, named as in KIP-836."""
        if self.status == NodeStatus.LEADER:
            return "Leader"
        return "Follower" if self.voter else "Observer"


@dataclass(frozen=True, slots=True)
class MarginRow:
    """A voter in the strip of the margin: needed for a majority, may fail, or does not count now."""

    row: NodeRow
    place: str
    """``needed``, ``spare`` or ``out``"""
    first: bool
    """The first of its place says what the place is."""


class ControllersContext(TypedDict):
    cluster: Cluster
    now: datetime
    sampled_at: datetime | None
    zookeeper: bool
    zookeeper_title: str
    ensemble: EnsembleView | None
    elected: BrokerState | None
    freshness: FactFreshness
    run: CollectorRun | None
    seen: QuorumSeen | None
    verdict: QuorumVerdict
    certain: bool
    led: LeaderSpan | None
    voters: list[NodeRow]
    observers: list[NodeRow]
    margin: list[MarginRow]
    voter_kind: str
    recent_changes: int


def controllers_context(
    cluster: Cluster,
    now: datetime,
    known: CollectionFreshness | None = None,
    reigns: Sequence[LeaderTerm] | None = None,
) -> ControllersContext:
    """The answer, the margin and all nodes. ``sampled_at``: when the controllers last answered.

    ``known`` and ``reigns`` (``reigns_of``), here and below: read already, for a page that shows several panels.
    """
    read = known or load_standing(cluster, now)
    brokers = {b.broker_id: b for b in BrokerState.objects.filter(cluster=cluster)}
    kept = list(QuorumReplicaState.objects.filter(cluster=cluster).order_by("node_id", "directory_id"))
    gone = [_gone_row(k, brokers) for k in kept if k.status == GONE and _still_listed(k, brokers, now)]
    registered = {b.broker_id for b in brokers.values() if b.gone_at is None}
    seen = read.quorum.lacking(sorted(registered - {row.id for row in gone})) if read.quorum else None
    seen_changes = leader_changes(reigns_of(cluster) if reigns is None else reigns)
    freshness = read.freshness_of(CollectorKind.QUORUM)
    verdict = quorum_verdict(
        seen.quorum if seen else None,
        refreshed_of_run(read.runs.get(CollectorKind.QUORUM)),
        refreshed_of_run(read.runs.get(CollectorKind.METADATA)),
        recent_changes(seen_changes, now),
        now,
    )
    since = {(k.node_id, k.directory_id): k.changed_at for k in kept if k.status != GONE}
    rows = [_row(s, since, brokers) for s in (*seen.quorum.voters, *seen.quorum.observers)] if seen else []
    listed = sorted([*rows, *gone], key=lambda row: (row.id, row.directory_id))
    ensemble = read_ensemble(cluster, now, read)
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": seen.snapshot.taken_at if seen else None,
        "zookeeper": cluster.mode == ClusterMode.ZOOKEEPER,
        "zookeeper_title": _zookeeper_title(cluster, ensemble),
        "ensemble": ensemble,
        "elected": _find_elected(ensemble, brokers),
        "freshness": freshness,
        "run": read.runs.get(CollectorKind.QUORUM),
        "seen": seen,
        "verdict": verdict,
        "certain": not freshness.stale and not verdict.lost,
        "led": _find_term_start(seen, seen_changes) if seen else None,
        "voters": [row for row in listed if row.voter],
        "observers": [row for row in listed if not row.voter],
        "margin": _margin(rows, seen.quorum) if seen else [],
        "voter_kind": _voter_kind(cluster),
        "recent_changes": recent_changes(seen_changes, now),
    }


def _find_elected(ensemble: EnsembleView | None, brokers: Mapping[int, BrokerState]) -> BrokerState | None:
    state = ensemble.state if ensemble else None
    return None if state is None or state.controller_id is None else brokers.get(state.controller_id)


def _zookeeper_title(cluster: Cluster, ensemble: EnsembleView | None) -> str:
    state = ensemble.state if ensemble and ensemble.known else None
    if state is None:
        return f"{cluster.name}: controller elected through ZooKeeper"
    if state.controller_id is None:
        return f"{cluster.name}: no controller"
    kind = "KRaft controller" if state.migrating else "broker"
    known = ", last known" if ensemble and ensemble.freshness.stale else ""
    return f"{cluster.name}: {kind} {state.controller_id} is the controller{known}"


class LeadersContext(TypedDict):
    cluster: Cluster
    now: datetime
    sampled_at: datetime | None
    freshness: FactFreshness
    reigns: list[tuple[LeaderTerm, LeaderChange | None, LeaderChange | None]]
    more: int
    changes: int
    watched_since: datetime | None
    flapping: bool
    recent_changes: int


def leaders_context(
    cluster: Cluster,
    now: datetime,
    known: CollectionFreshness | None = None,
    reigns: Sequence[LeaderTerm] | None = None,
) -> LeadersContext:
    """Return the context of the leader terms, newest first. Of old terms only the first answer is kept."""
    read = known or load_standing(cluster, now)
    reigns = reigns_of(cluster) if reigns is None else reigns
    seen = leader_changes(reigns)
    before = {change.after: change for change in seen}
    after = {change.before: change for change in seen}
    newest = sorted(reigns, key=lambda reign: reign.epoch, reverse=True)
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": max((reign.last_seen for reign in reigns), default=None),
        "freshness": read.freshness_of(CollectorKind.QUORUM),
        "reigns": [(reign, before.get(reign), after.get(reign)) for reign in newest[:LEADERS_SHOWN]],
        "more": len(newest) - LEADERS_SHOWN,
        "changes": len(seen),
        "watched_since": min((reign.first_seen for reign in reigns), default=None),
        "flapping": is_flapping(seen, now),
        "recent_changes": recent_changes(seen, now),
    }


@dataclass(frozen=True, slots=True)
class LeaderSpan:
    """How long the leader has led: ``at_least`` where the begin of its reign was not seen."""

    since: datetime
    at_least: bool


def _find_term_start(seen: QuorumSeen, seen_changes: list[LeaderChange]) -> LeaderSpan:
    begin = next((c.at for c in reversed(seen_changes) if c.after.epoch == seen.snapshot.leader_epoch), None)
    return LeaderSpan(begin or seen.led_since, at_least=begin is None)


def reigns_of(cluster: Cluster) -> list[LeaderTerm]:
    """Every leader's epoch that is kept, in order. One query."""
    rows = (
        QuorumSnapshot.objects.filter(cluster=cluster)
        .values("leader_id", "leader_epoch")
        .annotate(first=Min("taken_at"), last=Max("taken_at"))
        .order_by("leader_epoch")
    )
    return [LeaderTerm(row["leader_id"], row["leader_epoch"], row["first"], row["last"]) for row in rows]


def _row(
    standing: NodeStanding, since: Mapping[tuple[int, str], datetime], brokers: Mapping[int, BrokerState]
) -> NodeRow:
    node = standing.node
    return NodeRow(
        id=node.id,
        directory_id=node.directory_id,
        voter=node.voter,
        status=standing.status.value,
        state=_STATES[standing.status],
        standing=standing,
        since=since.get((node.id, node.directory_id)),
        broker=brokers.get(node.id),
    )


def _gone_row(kept: QuorumReplicaState, brokers: Mapping[int, BrokerState]) -> NodeRow:
    return NodeRow(
        id=kept.node_id,
        directory_id=kept.directory_id,
        voter=kept.voter,
        status=GONE,
        state="warning",
        standing=None,
        since=kept.changed_at,
        broker=brokers.get(kept.node_id),
    )


def _still_listed(kept: QuorumReplicaState, brokers: Mapping[int, BrokerState], now: datetime) -> bool:
    broker = brokers.get(kept.node_id)
    return now - kept.changed_at <= GONE_SHOWN_FOR or (broker is not None and broker.gone_at is None)


def _margin(rows: list[NodeRow], quorum: QuorumHealth) -> list[MarginRow]:
    """Voters in the order of their ids: any majority of the healthy ones is needed, so the first are called so."""
    healthy, places, result = 0, set(), []
    for row in rows:
        if not row.voter:
            continue
        place = "out"
        if row.status in (NodeStatus.LEADER, NodeStatus.IN_SYNC):
            healthy += 1
            place = "needed" if healthy <= quorum.majority else "spare"
        result.append(MarginRow(row, place, first=place not in places))
        places.add(place)
    return result


def _voter_kind(cluster: Cluster) -> str:
    """Return "dynamic" (KIP-853: feature kraft.version 1 or above), "static", or "" where it is not known.

    Directory ids do not tell: a leader learns those of static voters from their fetches.
    """
    features = Capabilities.objects.filter(cluster=cluster).values_list("features", flat=True).first()
    levels = {name: feature["finalized"] for name, feature in (features or {}).items()}
    if not any(levels.values()):
        return ""  # no broker has told levels: a controller quorum always has one of metadata.version
    # Brokers do not report a level of 0 (KRaftMetadataCache.features); before 3.9 there was no other.
    return "dynamic" if levels.get("kraft.version") else "static"


class QuorumContext(TypedDict):
    cluster: Cluster
    now: datetime
    sampled_at: datetime | None
    seen: QuorumSeen | None
    run: CollectorRun | None
    freshness: FactFreshness
    zookeeper: bool


def quorum_context(cluster: Cluster, now: datetime, known: CollectionFreshness | None = None) -> QuorumContext:
    """The newest answer of the controllers, with registered brokers that it misses."""
    registered = BrokerState.objects.filter(cluster=cluster, gone_at=None).values_list("broker_id", flat=True)
    read = known or load_standing(cluster, now)
    seen = read.quorum.lacking(list(registered)) if read.quorum else None
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": seen.snapshot.taken_at if seen else None,
        "seen": seen,
        "run": read.runs.get(CollectorKind.QUORUM),
        "freshness": read.freshness_of(CollectorKind.QUORUM),
        "zookeeper": cluster.mode == ClusterMode.ZOOKEEPER,
    }


_TABLE_ROWS = 24
_LEAST_TOP_MS = 2_500  # the line from which on a node lags is always in the picture
_MOST_TOP_MS = 20_000  # above, the axis is in seconds
_QUICKEST_REFETCH_S, _SLOWEST_REFETCH_S = 10, 60

# A node's lag is the leader's last-caught-up time minus its own, both in the same answer and on the leader's clock.
# A leader has none of its own. jsonb_to_recordset reads the packed column, format 1.
_WORST_PER_BUCKET = """
    SELECT bucket, id, bool_or(voter), max(leader_ms - own_ms)
    FROM (
        SELECT floor(extract(epoch FROM s.taken_at) / %(step)s)::bigint AS bucket, n.id, n.voter, s.leader_id,
               n.last_caught_up_ms AS own_ms,
               max(n.last_caught_up_ms) FILTER (WHERE n.id = s.leader_id) OVER (PARTITION BY s.id) AS leader_ms
        FROM monitoring_quorumsnapshot s,
             jsonb_to_recordset(s.replicas) AS n(id integer, voter boolean, last_caught_up_ms bigint)
        WHERE s.cluster_id = %(cluster)s AND s.taken_at >= %(start)s AND s.taken_at < %(end)s
    ) nodes
    WHERE id <> leader_id
    GROUP BY bucket, id
"""

# A quorum of one has no row above: its leader is the only node.
_HEARD = """
    SELECT DISTINCT floor(extract(epoch FROM taken_at) / %(step)s)::bigint
    FROM monitoring_quorumsnapshot
    WHERE cluster_id = %(cluster)s AND taken_at >= %(start)s AND taken_at < %(end)s
"""


RANGES = (
    ChartRange("15m", "15 min", 900, 15),
    ChartRange("1h", "1 h", 3600, 30),
    ChartRange("6h", "6 h", 6 * 3600, 120),
    ChartRange("24h", "24 h", 24 * 3600, 360),
)
DEFAULT_RANGE = 1


VOTER_INKS: Sequence[Ink] = (1, 2, 3, 4, 5, 6)
OBSERVER_INK: Ink = "context"
OTHER_INK: Ink = "other"
MOST_NAMED = 6


class QuorumLagContext(TypedDict):
    cluster: Cluster
    now: datetime
    sampled_at: datetime | None
    zookeeper: bool
    freshness: FactFreshness
    chosen: ChartRange
    ranges: tuple[ChartRange, ...]
    refetch_s: int
    interval_s: int
    table_interval_s: int
    summary: str
    lines: list[LagLine]
    known: bool
    legend: list[tuple[Ink, str]]
    changes: list[LeaderChange]
    chart: str
    rows: list[TableRow]


def lag_context(
    cluster: Cluster,
    now: datetime,
    chosen: ChartRange,
    known: CollectionFreshness | None = None,
    reigns: Sequence[LeaderTerm] | None = None,
) -> QuorumLagContext:
    """The chart, its line in words and its table. ``sampled_at``: the newest answer in it."""
    run = (known or load_standing(cluster, now)).runs.get(CollectorKind.QUORUM)
    reigns = reigns_of(cluster) if reigns is None else reigns
    seen = _read_lag(cluster, now, chosen, _choose_step(cluster, run, chosen), reigns)
    lines = lag_lines(seen)
    clock = {bucket: _format_clock(seen.at(bucket)) for bucket in range(seen.buckets + 1)}
    inside = [c for c in leader_changes(reigns) if seen.at(0) <= c.at.timestamp() < seen.at(seen.buckets)]
    table_step = max(1, math.ceil(seen.buckets / _TABLE_ROWS))
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": max((reign.last_seen for reign in reigns), default=None),
        "zookeeper": cluster.mode == ClusterMode.ZOOKEEPER,
        "freshness": freshness_of(run, now),
        "chosen": chosen,
        "ranges": RANGES,
        "refetch_s": min(max(seen.step_s, _QUICKEST_REFETCH_S), _SLOWEST_REFETCH_S),
        "interval_s": seen.step_s,
        "table_interval_s": seen.step_s * table_step,
        "summary": describe_lag(seen, lines, clock),
        "lines": lines,
        "known": any(line.worst is not None for line in lines),
        "legend": _legend(lines),
        "changes": inside,
        "chart": _build_spec(seen, lines, inside).data,
        "rows": _table(seen, lines, inside, table_step),
    }


def _choose_step(cluster: Cluster, run: CollectorRun | None, chosen: ChartRange) -> int:
    """An interval of the chart is longer than that of the collector, or every other one would be a gap."""
    paces: list[float] = [
        cluster.cadence.get(CollectorKind.QUORUM.value, settings.COLLECT_INTERVALS[CollectorKind.QUORUM.value])
    ]
    if run is not None:
        paces.append(run.interval_s)
    return max(chosen.step_s, math.ceil(1.5 * max(paces)))


def _read_lag(
    cluster: Cluster, now: datetime, chosen: ChartRange, step: int, reigns: Sequence[LeaderTerm]
) -> LagBuckets:
    last = math.floor(now.timestamp() / step)
    first = last + 1 - math.ceil(chosen.length_s / step)
    start, end = (datetime.fromtimestamp(bucket * step, UTC) for bucket in (first, last + 1))
    heard, lag, voters = set(), defaultdict[int, dict[int, int]](dict), set()
    with connection.cursor() as cursor:
        cursor.execute(_WORST_PER_BUCKET, {"cluster": cluster.pk, "step": step, "start": start, "end": end})
        for bucket, node, voter, worst in cursor.fetchall():
            heard.add(bucket - first)
            own = lag[node]
            if voter:
                voters.add(node)
            if worst is not None:
                own[bucket - first] = max(0, worst)
        cursor.execute(_HEARD, {"cluster": cluster.pk, "step": step, "start": start, "end": end})
        heard |= {bucket - first for (bucket,) in cursor.fetchall()}
    watched = min((reign.first_seen for reign in reigns), default=end)
    # The interval that has only begun is left out until there is something in it.
    buckets = last + 1 - first if last - first in heard else last - first
    watched_from = min(buckets, max(0, math.floor(watched.timestamp() / step) - first))
    return LagBuckets(first * step, step, buckets, frozenset(voters), lag, frozenset(heard), watched_from)


def _build_spec(seen: LagBuckets, lines: list[LagLine], inside: list[LeaderChange]) -> ChartSpec:
    worst = max((line.worst for line in lines if line.worst is not None), default=0)
    in_seconds = max(_LEAST_TOP_MS, round(worst * 1.12)) > _MOST_TOP_MS

    def scaled(ms: int | None) -> float | None:
        return ms if ms is None or not in_seconds else ms / 1000

    drawn = [
        ChartLine(line.label, ink, [scaled(ms) for ms in line.values], 1 if ink == OBSERVER_INK else 1.5)
        for line, ink in sorted(_choose_inks(lines), key=lambda each: (each[0].lagged, each[0].voter))
    ]
    marks = [
        ChartMark(each.at.timestamp(), f"{each.before.leader_id} → {each.after.leader_id}, epoch {each.after.epoch}")
        for each in inside
    ]
    limit = ChartLimit(scaled(LAGGING_MS) or 0.0, f"lagging from {LAGGING_MS:,} ms")
    return ChartSpec(
        [seen.at(bucket) for bucket in range(seen.buckets)],
        seen.at(0),
        seen.at(seen.buckets),
        drawn,
        "s" if in_seconds else "ms",
        scaled(_LEAST_TOP_MS) or 0.0,
        marks=marks,
        limits=[limit],
    )


def _legend(lines: list[LagLine]) -> list[tuple[Ink, str]]:
    """Return each colour with the nodes that have it; observers and lagging nodes share one each."""
    named: dict[Ink, list[str]] = {}
    for line, ink in _choose_inks(lines):
        named.setdefault(ink, []).append(line.label)
    notes: Mapping[Ink, str] = {OBSERVER_INK: " (observers)", "warning": " (lagged)"}
    return [(ink, f"{listed_shortly(labels, MOST_NAMED)}{notes.get(ink, '')}") for ink, labels in named.items()]


def _choose_inks(lines: list[LagLine]) -> list[tuple[LagLine, Ink]]:
    """Voters have colours of their own as far as there are any; observers share one; who lagged is a warning."""
    colours = iter(VOTER_INKS)
    return [
        (line, "warning" if line.lagged else next(colours, OTHER_INK) if line.voter else OBSERVER_INK) for line in lines
    ]


@dataclass(frozen=True, slots=True)
class TableRow:
    """The worst of an interval for every line, in the order of the lines; ``changes`` of the leader in it."""

    at: datetime
    values: list[int | None]
    changes: list[LeaderChange]


def _table(seen: LagBuckets, lines: list[LagLine], inside: list[LeaderChange], size: int) -> list[TableRow]:
    columns = [coarsen_values(line.values, size) for line in lines]
    rows = []
    for index, bucket in enumerate(range(0, seen.buckets, size)):
        begin = datetime.fromtimestamp(seen.at(bucket), UTC)
        end = begin + timedelta(seconds=seen.step_s * size)
        own = [change for change in inside if begin <= change.at < end]
        rows.append(TableRow(begin, [column[index] for column in columns], own))
    return rows[::-1]


def _format_clock(epoch_s: int) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%H:%M")


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def quorum(request: HttpRequest, slug: str) -> HttpResponse:
    """``?range=15m``, ``1h``, ``6h`` or ``24h`` chooses how far back the lag goes."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.QUORUM)
    now, known, reigns = bar["now"], bar["standing"], reigns_of(cluster)
    context = {
        **bar,
        "tab": "quorum",
        "live_keys": [read_hint(CollectorKind.REASSIGNMENTS, slug)],
        "controllers": controllers_context(cluster, now, known, reigns),
    }
    if cluster.mode != ClusterMode.ZOOKEEPER:
        chosen = find_range(RANGES, request.GET.get("range"), DEFAULT_RANGE)
        context |= {
            "live_keys": [f"controllers:{slug}", f"leaders:{slug}"],
            "leaders": leaders_context(cluster, now, known, reigns),
            "lag": lag_context(cluster, now, chosen, known, reigns),
        }
    return render(request, "monitoring/quorum.html", context)


@require_safe
@needs(VIEW)
@revalidated
def quorum_lag(request: HttpRequest, slug: str) -> HttpResponse:
    """The chart with its table, as the page has it."""
    cluster = cluster_for(request, slug, VIEW)
    chosen = find_range(RANGES, request.GET.get("range"), DEFAULT_RANGE)
    return render(request, "monitoring/_quorum_lag.html", lag_context(cluster, timezone.now(), chosen))
