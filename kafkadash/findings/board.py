"""Pages of the health of clusters: the status board, a cluster's overview, the menu of clusters, and single findings.

``rank_clusters`` reads what is stored about many clusters in a number of queries that does not grow with them.
Findings are stored or made from the ages of facts alone; each has a link to the affected page.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from http import HTTPStatus
from typing import Any, Self, TypedDict
from urllib.parse import urlencode

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import JSONObject
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.accounts.models import User
from kafkadash.changes.kinds import RunSummary
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.access import (
    ACKNOWLEDGE,
    MANAGE,
    VIEW,
    cluster_for,
    is_allowed,
    needs,
    roles_text,
    signed_in,
    visible_clusters,
)
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.formatting import join_items, long_duration
from kafkadash.core.messages import choose_plural
from kafkadash.core.middleware import post_only
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.core.status import NEVER, HealthState, RefreshStatus, is_stale
from kafkadash.execution.models import Execution
from kafkadash.execution.pages.summaries import summarize_run
from kafkadash.findings import services
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.facts import ClusterFacts
from kafkadash.findings.forms import SNOOZE_PRESETS, AcknowledgementForm
from kafkadash.findings.judgement import (
    UNREAD,
    JudgedPoint,
    board_headline,
    is_trusted,
    judge_reading,
    not_judged,
    rolled_up,
    write_headline,
)
from kafkadash.findings.judges import MORE, UNSEEN
from kafkadash.findings.kinds import FactSource, FindingKind, stored_kind
from kafkadash.findings.kinds import JudgedFinding as Found
from kafkadash.findings.messages import FindingTexts, write_texts
from kafkadash.findings.models import Finding
from kafkadash.findings.product import ProductRow, load_product_rows
from kafkadash.findings.runbooks import fill_commands, read_runbook
from kafkadash.findings.stored_facts import age_facts, count_refusing, partition_facts
from kafkadash.findings.stored_findings import StoredFinding, read_findings
from kafkadash.maintenance.models import QuietPeriod, QuietPurpose, QuietStage, describe_scope
from kafkadash.monitoring.brokers import brokers_context, name_gone
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.freshness import (
    SILENT,
    CollectionFreshness,
    FactFreshness,
    QuorumSeen,
    collection_context,
    freshness_of_kind,
    newest_quorums,
    read_statuses,
)
from kafkadash.monitoring.groups.pages import groups_context
from kafkadash.monitoring.models import (
    BrokerState,
    ClusterState,
    ClusterTrend,
    CollectorKind,
    GroupState,
    MoveOutcome,
    ReassignmentSnapshot,
    ZooKeeperState,
)
from kafkadash.monitoring.partitions import partitions_context
from kafkadash.monitoring.quorum.pages import quorum_context
from kafkadash.monitoring.traffic.pages import TrendLine, build_trend_line, trends_context
from kafkadash.monitoring.transactions.rules import first_hanging
from kafkadash.monitoring.transactions.stored import load_transactions


@dataclass(frozen=True, slots=True)
class NextStep:
    label: str
    url: str


@dataclass(frozen=True, slots=True)
class _NextPage:
    """``scoped``: the page takes the broker of the scope as well, ``of_group``: the group that is its scope,
    ``of_all``: the page is of no cluster. ``after``: query or fragment with ``{slug}`` and ``{broker}``; one that has
    a broker fits only a scope with a broker.
    """

    label: str
    page: str
    after: str = ""
    scoped: bool = False
    of_group: bool = False
    of_all: bool = False


_QUORUM = _NextPage("Open quorum", "monitoring:quorum")
_BROKER = _NextPage("Open broker {broker}", "monitoring:broker", scoped=True)
_BROKERS = _NextPage("Open brokers", "monitoring:brokers")
_GROUP = _NextPage("Open group", "monitoring:group", of_group=True)
_GROUPS = _NextPage("Open groups", "monitoring:groups")
_PIPELINE = _NextPage("Open pipeline", "history:pipeline", of_all=True)
_CANARY = _NextPage("Open canary", "monitoring:canary")
_TRANSACTIONS = _NextPage("Open transactions", "monitoring:transactions")
_DRIFT = _NextPage("Compare brokers", "monitoring:drift")
_COLLECTION = _NextPage("Open collection", "findings:overview", "#collection-{slug}")


_ELECT = _NextPage("Elect preferred leaders", "elections:propose", "?broker={broker}")
_UNCLEAN = _NextPage("Unclean election", "elections:unclean")
_SIMULATE = _NextPage("Simulate failures", "findings:drill")


def _plan(label: str, mode: str, more: str = "") -> _NextPage:
    """Page of the wizard, with the cluster, the mode, and ``more`` parameters of the mode."""
    after = f"?cluster={{slug}}&mode={mode}{more}"
    return _NextPage(label, "planning:new", after, of_all=True)


_BALANCE_DISKS = _plan("Balance disks", "balance", "&disks=1")


def _topics(state: str) -> _NextPage:
    return _NextPage("Open topics", "monitoring:topics", f"?state={state}")


# The first whose page is there and whose scope fits is taken.
_WAYS: Mapping[FindingKind, tuple[_NextPage, ...]] = {
    FindingKind.OFFLINE: (_topics("offline"),),
    FindingKind.QUORUM_LOST: (_QUORUM,),
    FindingKind.QUORUM_MARGIN: (_QUORUM,),
    FindingKind.UNDER_MIN_ISR: (_topics("under-min-isr"),),
    FindingKind.BROKER_DOWN: (_BROKER, _BROKERS),
    FindingKind.CANARY_FAILS: (_CANARY,),
    FindingKind.FAILED_DIRECTORY: (_BROKER,),
    FindingKind.AT_MIN_ISR: (_topics("at-min-isr"),),
    FindingKind.UNDER_REPLICATED: (_topics("under-replicated"),),
    FindingKind.CANARY_SLOW: (_CANARY,),
    FindingKind.DISK_SOON: (_BALANCE_DISKS,),
    FindingKind.DISK_FULL: (_BALANCE_DISKS,),
    FindingKind.QUORUM_FLAPPING: (_QUORUM,),
    FindingKind.CONSUMER_LAG: (_GROUP, _GROUPS),
    FindingKind.HANGING_TRANSACTION: (_TRANSACTIONS,),
    FindingKind.CONSUMER_LOSS: (_GROUP, _GROUPS),
    FindingKind.RUN_TROUBLE: (_NextPage("Open change #{broker}", "changes:request", scoped=True, of_all=True),),
    FindingKind.ORPHAN_THROTTLE: (_NextPage("Open throttles", "monitoring:throttles"),),
    FindingKind.ZOMBIE_REASSIGNMENT: (_NextPage("Open reassignments", "monitoring:reassignments"),),
    FindingKind.RACK_VIOLATION: (_plan("Repair racks", "repair-racks"),),
    FindingKind.LEADER_SKEW: (_ELECT,),
    FindingKind.MIXED_VERSIONS: (_DRIFT,),
    FindingKind.CONFIG_DRIFT: (_DRIFT,),
    FindingKind.BROKER_AWAY: (_BROKER,),
    FindingKind.SEGMENT_SET_ASIDE: (_PIPELINE,),
    FindingKind.PIPELINE_STILL: (_PIPELINE,),
    FindingKind.NEVER_READ: (_COLLECTION,),
    FindingKind.TOPICS_HIDDEN: (_COLLECTION,),
    FindingKind.ANOTHER_CLUSTER: (_COLLECTION,),
    FindingKind.REGISTERED_TWICE: (_COLLECTION,),
    FindingKind.UNREACHABLE: (_COLLECTION,),
    FindingKind.STALE: (_COLLECTION,),
    FindingKind.ZOOKEEPER: (_COLLECTION,),
    FindingKind.DISABLED: (_COLLECTION,),
}


# Further pages for the steps of the runbook: the state, effects of the next failure, replicas moved away for good.
_FURTHER: Mapping[FindingKind, tuple[_NextPage, ...]] = {
    FindingKind.OFFLINE: (_UNCLEAN,),
    FindingKind.BROKER_DOWN: (
        _SIMULATE,
        _plan("Drain broker {broker}", "drain", "&brokers={broker}"),
        _plan("Replace broker {broker}", "replace", "&brokers={broker}"),
    ),
    FindingKind.FAILED_DIRECTORY: (_plan("Drain broker {broker}", "drain", "&brokers={broker}"),),
    FindingKind.AT_MIN_ISR: (_SIMULATE,),
    FindingKind.UNDER_REPLICATED: (_SIMULATE,),
    FindingKind.DISK_SOON: (_BROKER,),
    FindingKind.DISK_FULL: (_BROKER,),
    FindingKind.ORPHAN_THROTTLE: (_NextPage("Remove orphan throttles", "throttle_removal:propose"),),
    FindingKind.ZOMBIE_REASSIGNMENT: (_NextPage("Cancel stuck reassignments", "move_cancels:propose", "?stuck=1"),),
    FindingKind.RACK_VIOLATION: (_NextPage("Open racks", "monitoring:racks"),),
    FindingKind.LEADER_SKEW: (_BROKERS,),
}


def next_step(cluster: Cluster, kind: FindingKind, scope: str) -> NextStep | None:
    """None where there is no page for it."""
    return _first_step(cluster.slug, kind, scope)


@lru_cache(maxsize=4096)
def _first_step(slug: str, kind: FindingKind, scope: str) -> NextStep | None:
    steps = (_make_step(slug, way, scope) for way in _WAYS.get(kind, ()))
    return next((step for step in steps if step is not None), None)


def further_steps(cluster: Cluster, kind: FindingKind, scope: str) -> list[NextStep]:
    steps = (_make_step(cluster.slug, way, scope) for way in _FURTHER.get(kind, ()))
    return [step for step in steps if step is not None]


def _make_step(slug: str, way: _NextPage, scope: str) -> NextStep | None:
    broker = scope.partition(":")[0]
    of_broker = way.scoped or "{broker}" in way.after
    if (of_broker and not broker.isdigit()) or (way.of_group and scope == MORE):
        return None
    item = broker if way.scoped else f"~{scope}" if way.of_group else ""
    url = _reverse_address(way.page, "" if way.of_all else slug, item)
    if not url:
        return None
    return NextStep(way.label.format(broker=broker), url + way.after.format(slug=slug, broker=broker))


@cache
def _reverse_address(page: str, slug: str, item: str) -> str:
    try:
        return reverse(page, args=[part for part in (slug, item) if part])
    except NoReverseMatch:
        return ""


STEADY_AFTER = timedelta(minutes=10)
_WIDTH, _TOP, _BOTTOM = 100.0, 3.0, 20.0


@dataclass(frozen=True, slots=True)
class FindingTrend:
    """How the number went: in words, as the path of a line in a box of 100 × 22, and where the limit lies in it."""

    words: str
    path: str
    limit_y: str


@dataclass(frozen=True)
class FindingRow:
    """Finding on a page. ``row`` is None for a finding that follows from the data's age and is not stored yet.

    ``old``: the data behind the finding is too old to show that it still holds. ``cause``: the finding that explains
    it, while that is open.
    """

    cluster: Cluster
    now: datetime
    kind: FindingKind
    said: StoredFinding | Found
    row: StoredFinding | None
    old: bool = False
    cause: StoredFinding | None = None

    @cached_property
    def texts(self) -> FindingTexts:
        """Texts, written where they are shown: a board does not show all findings."""
        return self.said.texts if isinstance(self.said, StoredFinding) else write_texts(self.said.message)

    @property
    def code(self) -> str:
        return self.texts.code

    @property
    def sentence(self) -> str:
        return self.texts.sentence

    @property
    def title(self) -> str:
        """Heading without the cluster's name."""
        return self.texts.title

    @property
    def detail(self) -> str:
        return self.texts.detail

    @property
    def own_state(self) -> HealthState:
        """State of the finding when it was last seen."""
        return self.kind.about.state

    @cached_property
    def quiet(self) -> QuietPeriod | None:
        """Window or silence that covers it now; of a closed finding, None."""
        period = self.row.quiet if self.row and self.row.closed_at is None else None
        return period if period is not None and period.is_in_force(self.now) else None

    @property
    def expected(self) -> bool:
        """Return whether a maintenance window covers it."""
        return (quiet := self.quiet) is not None and not quiet.is_silence

    @property
    def folded_below(self) -> StoredFinding | None:
        """Cause below which it is folded; None if only the cause is expected or silenced, because it is loud then."""
        cause = self.cause
        period = cause.quiet if cause is not None else None
        if period is None or self.quiet is not None or not period.is_in_force(self.now):
            return cause
        return None

    @cached_property
    def state(self) -> HealthState:
        if self.expected:
            return HealthState.MAINTENANCE
        return HealthState.UNKNOWN if self.old else self.own_state

    @property
    def word(self) -> str:
        if self.expected:
            return "Expected"
        return f"Was {self.own_state.word}" if self.old else self.kind.about.word

    @property
    def html_id(self) -> str:
        if self.row:
            return f"finding-{self.row.public_id}"
        return "-".join(filter(None, ("finding", self.cluster.slug, self.kind, self.said.scope)))

    @property
    def url(self) -> str:
        """Return the address of its own page; '' while it is not stored."""
        return f"{_findings_url(self.cluster.slug)}{self.row.public_id}/" if self.row else ""

    @property
    def runbook_url(self) -> str:
        """Address; '' for a kind that only another version has."""
        return _runbook_address(self.kind) if self.kind in FindingKind else ""

    @property
    def since(self) -> datetime | None:
        if self.said.since is not None:
            return self.said.since
        return self.row.first_seen_at if self.row else None

    @property
    def seen_at(self) -> datetime | None:
        return self.row.seen_at if self.row else None

    @cached_property
    def acknowledged(self) -> StoredFinding | None:
        """Row that has the acknowledgement, which may be that of the cause; None where there is none, or it ended."""
        rows = (self.cause, self.row) if self.cause is not None else (self.row,)
        for row in rows:
            if row is not None and row.owner is not None:
                until = row.acknowledged_until
                if until is None or until > self.now or row.closed_at is not None:
                    return row
        return None

    @property
    def owner(self) -> str:
        return (self.acknowledged.owner or "") if self.acknowledged else ""

    @property
    def run(self) -> int | None:
        """Number of the change whose run explains it."""
        return self.row.cause_run if self.row and self.row.closed_at is None else None

    @property
    def trend(self) -> FindingTrend | None:
        history = self.row.history if self.row else None
        return trend_of(history, self.row.threshold, self.now) if self.row and history else None

    @property
    def next(self) -> NextStep | None:
        return next_step(self.cluster, self.kind, self.row.scope if self.row else "")

    @property
    def further(self) -> Sequence[NextStep]:
        return further_steps(self.cluster, self.kind, self.row.scope if self.row else "")

    @property
    def point(self) -> JudgedPoint:
        several = self.said.scope in (MORE, UNSEEN)
        number = max(1, round(self.said.value or 1)) if several else 1
        return JudgedPoint(self.kind, self.state, self.title, self.owner, number)


def rows_of(
    cluster: Cluster, stored: Iterable[StoredFinding], facts: ClusterFacts, judged_at: datetime | None, now: datetime
) -> tuple[FindingRow, ...]:
    """All that is wrong with a cluster as of ``now``, most urgent first.

    Ages are judged here and now, so that nothing old looks well when nobody judges any more; what is stored about them
    gives them their identity. ``facts`` need only hold the ages (``facts.age_facts``).
    """
    kept = list(stored)
    by_scope = {(row.kind, row.scope): row for row in kept}
    own = list(judge_reading(facts, now))
    if not own and (forgotten := not_judged(judged_at, facts, now)):
        own.append(forgotten)
    rows = [FindingRow(cluster, now, a.kind, a, by_scope.get((a.kind.value, a.scope))) for a in own]
    history = not is_trusted(facts, now)
    kinds = [(row, stored_kind(row.kind)) for row in kept]
    stored_rows = [(row, kind) for row, kind in kinds if kind.about.source is not FactSource.AGES]
    shown = {row.pk: row for row in (*(row for row, _ in stored_rows), *(each.row for each in rows if each.row))}
    for row, kind in stored_rows:
        past = history and kind.about.source not in _OF_OURSELVES
        old = past or _is_old(row, kind, facts, now)
        rows.append(FindingRow(cluster, now, kind, row, row, old=old, cause=shown.get(row.cause_id or 0)))
    return tuple(sorted(rows, key=_urgency_key))


_OF_OURSELVES = frozenset({FactSource.RUNS, FactSource.READING})
"""Sources that are not read from the cluster, and hold while it cannot be read."""


@dataclass(frozen=True, slots=True)
class FindingIncident:
    """Finding with its consequences. Without a ``row``: findings that the run of change ``run`` explains."""

    row: FindingRow | None
    consequences: tuple[FindingRow, ...] = ()
    run: int | None = None
    run_title: str = ""

    @property
    def names(self) -> str:
        """Titles of the first consequences."""
        return "; ".join(each.title for each in self.consequences[:MOST_CONSEQUENCES])

    @property
    def html_id(self) -> str:
        return f"consequences-{self.row.html_id}" if self.row else f"explained-{self.consequences[0].cluster.slug}"


def fold_findings(rows: Sequence[FindingRow], running: RunningChange | None = None) -> tuple[FindingIncident, ...]:
    """Return the findings by their causes, in the order of the most urgent finding of each; those of a run last."""
    members: dict[int, list[FindingRow]] = defaultdict(list)
    explained: dict[int, list[FindingRow]] = defaultdict(list)
    heads: dict[int, FindingRow] = {}
    order: dict[int, int] = {}
    for place, row in enumerate(rows):
        cause = row.folded_below
        if cause is None and row.run is not None:
            explained[row.run].append(row)
            continue
        head = cause or row.row
        key = head.pk if head is not None else -1 - place
        order.setdefault(key, place)
        if cause is not None:
            members[key].append(row)
        else:
            heads[key] = row
    found = [FindingIncident(heads[key], tuple(members[key])) for key in sorted(heads, key=order.__getitem__)]
    for number, own_rows in explained.items():
        title = running.change.title if running is not None and running.change.pk == number else ""
        found.append(FindingIncident(None, tuple(own_rows), number, title))
    return tuple(found)


def trend_of(history: Sequence[Sequence[float]], threshold: float | None, now: datetime) -> FindingTrend:
    """``history`` as ``models.Finding`` keeps it, not empty."""
    values = [value for _, value in history]
    changed_at = datetime.fromtimestamp(history[-1][0], UTC)
    direction = 0
    if len(values) > 1 and now - changed_at < STEADY_AFTER:
        direction = 1 if values[-1] > values[-2] else -1
    words = _describe_trend(direction, values[0], values[-1])
    low, high = min([*values, threshold or 0.0]), max([*values, threshold or 0.0])
    begin, end = history[0][0], max(now.timestamp(), history[-1][0] + 1)

    def x(at: float) -> float:
        return _WIDTH * (at - begin) / (end - begin)

    def y(value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * ((value - low) / (high - low) if high > low else 0.5)

    path = [f"M0 {y(values[0]):.1f}"]
    path += [f"H{x(at):.1f}V{y(value):.1f}" for at, value in history[1:]]
    return FindingTrend(words, f"{''.join(path)}H{_WIDTH:g}", f"{y(threshold):.1f}" if threshold is not None else "")


def _describe_trend(direction: int, first: float, last: float) -> str:
    """Return text such as "up from 12,370" or "steady, up from 5"; ``direction`` is that of the newest change."""
    newest = {0: "steady", 1: "rising", -1: "falling"}[direction]
    if first == last:
        return newest
    overall = 1 if last > first else -1
    since_first = f"{'up' if overall > 0 else 'down'} from {first:,g}"
    return since_first if direction == overall else f"{newest}, {since_first}"


def count_by_kind(rows: Iterable[FindingRow]) -> Mapping[FindingKind, int]:
    """How many of each kind, most urgent kind first."""
    found: dict[FindingKind, int] = {}
    for row in sorted(rows, key=lambda row: row.kind.rank):
        found[row.kind] = found.get(row.kind, 0) + 1
    return found


def more_words(number: int) -> str:
    return choose_plural("# more finding|# more findings", number)


@cache
def _findings_url(slug: str) -> str:
    """Return the URL of a cluster's findings, cached because a board has hundreds of URLs and reversing is slow."""
    return reverse("findings:finding", args=[slug, "f"]).removesuffix("f/")


@cache
def _overview_url(slug: str) -> str:
    return reverse("findings:overview", args=[slug])


@cache
def _runbook_address(kind: FindingKind) -> str:
    return reverse("findings:runbook", args=[kind.value])


def _is_old(row: StoredFinding, kind: FindingKind, facts: ClusterFacts, now: datetime) -> bool:
    """Return whether the finding's data is stale. QUORUM_LOST never is: every attempt to read shows it again."""
    if kind is FindingKind.QUORUM_LOST:
        return False
    return is_stale(row.seen_at, facts.refreshed(kind.about.source).interval_s, now)


def _urgency_key(row: FindingRow) -> tuple[int, bool, int, int, datetime, float, str]:
    """Return the sort key. Of findings of one kind that opened together, the largest number comes first."""
    opened = row.row.first_seen_at if row.row else row.now
    scope = row.row.scope if row.row else ""
    number = -(row.row.value or 0.0) if row.row else 0.0
    return row.state.severity, row.old, row.own_state.severity, row.kind.rank, opened, number, scope


@dataclass(frozen=True, slots=True)
class RunningChange:
    """The change whose run goes on in a cluster, in short."""

    change: ChangeRequest
    run: RunSummary
    now: datetime

    @property
    def percent_words(self) -> str:
        """How far, such as "51.3 %"; nothing old is told."""
        if self.run.percent is None or self.run.old:
            return "progress unknown"
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
class CurrentWindow:
    """Maintenance window that is in force; ``about`` is "broker 3" or "rack a", and '' for the whole cluster."""

    about: str
    ends_at: datetime
    reason: str
    author: str


@dataclass(frozen=True, slots=True)
class ClusterStanding:
    """A cluster with its stored figures and its findings, most urgent first.

    ``figures`` is an unsaved, empty row before the first refresh. ``moving`` is None while nobody has looked.
    ``silent``: brokers that do not answer. ``running``: the change that is run there. ``ensemble``: what ZooKeeper
    told, None where it was never asked. ``windows``: maintenance that is in force, the one that ends last first.
    """

    cluster: Cluster
    now: datetime
    findings: tuple[FindingRow, ...]
    state: HealthState
    figures: ClusterState
    trend: ClusterTrend | None
    statuses: Mapping[str, RefreshStatus]
    quorum: QuorumSeen | None
    ensemble: ZooKeeperState | None
    moving: int | None
    silent: int
    running: RunningChange | None
    last_closed_at: datetime | None
    windows: tuple[CurrentWindow, ...] = ()

    @property
    def url(self) -> str:
        return _overview_url(self.cluster.slug)

    @property
    def quiet(self) -> bool:
        """Return whether there is nothing to see: all is well, or nobody watches."""
        return self.state is HealthState.OK or not self.cluster.enabled

    @property
    def word(self) -> str:
        return "in maintenance" if self.state is HealthState.MAINTENANCE and self.cluster.enabled else self.state.word

    @property
    def title(self) -> str:
        """Headline, of the cause where the most urgent finding has one."""
        heads = [incident.row for incident in self.incidents if incident.row is not None]
        rows = heads if any(row.state is self.state for row in heads) else self.findings
        return write_headline(self.cluster.name, self.state, [row.point for row in rows])

    @property
    def incidents(self) -> tuple[FindingIncident, ...]:
        return fold_findings(self.findings, self.running)

    @property
    def brokers(self) -> int | None:
        """Number of brokers: registered ones, and unregistered ones that are still assigned replicas."""
        return None if self.figures.brokers is None else self.figures.brokers + (self.figures.brokers_gone or 0)

    @property
    def brokers_up(self) -> int | None:
        figures = self.figures
        return None if figures.brokers is None else figures.brokers - (figures.brokers_fenced or 0) - self.silent

    @property
    def gone_word(self) -> str:
        return name_gone(fencing_told=self.figures.brokers_fenced is not None)

    @property
    def quorum_stale(self) -> bool:
        return self.freshness_of(CollectorKind.QUORUM).stale

    @property
    def ensemble_stale(self) -> bool:
        """Return whether ZooKeeper was not read lately, which is done with the reassignments."""
        interval = self.freshness_of(CollectorKind.REASSIGNMENTS).interval_s
        return FactFreshness(self.ensemble.taken_at if self.ensemble else None, interval, self.now).stale

    @property
    def freshness(self) -> FactFreshness:
        return self.freshness_of(CollectorKind.METADATA)

    def freshness_of(self, kind: str) -> FactFreshness:
        return freshness_of_kind(kind, self.statuses, self.now)

    @property
    def records_in(self) -> TrendLine | None:
        return build_trend_line(self.trend, self.freshness_of(CollectorKind.TRAFFIC), self.now)

    @property
    def urgency(self) -> tuple[int, int, datetime, str]:
        """Order of the board: state, then what is worst, then what has been so for longest."""
        worst = self.findings[0] if self.findings else None
        opened = worst.row.first_seen_at if worst and worst.row else self.now
        return self.state.severity, worst.kind.rank if worst else 0, opened, self.cluster.name


_JOINED: tuple[str, ...] = ("state", "judgement", "trend", "zookeeper_state")
_PENDING = ("zookeeper_state__queued", "zookeeper_state__elections", "zookeeper_state__deletions")
_CREDENTIALS = ("sasl_password", "ca_pem", "certificate_pem", "key_pem", "zookeeper_password")


def rank_clusters(clusters: QuerySet[Cluster], now: datetime) -> list[ClusterStanding]:
    """The clusters, worst first. Four queries for any number of them, and one where a run goes on."""
    rows = list(_join_stored(clusters.defer(*_CREDENTIALS), now))
    return _read_standings({row.pk: row for row in rows}, rows, now)


def summarize_cluster(cluster: Cluster, now: datetime, known: CollectionFreshness | None = None) -> ClusterStanding:
    """The cluster, in at most five queries. ``known``: what was read already of it."""
    others = [field.name for field in Cluster._meta.concrete_fields if not field.primary_key]
    rows = _join_stored(Cluster.objects.filter(pk=cluster.pk).defer(*others), now)
    return _read_standings({cluster.pk: cluster}, rows, now, known)[0]


def _join_stored(clusters: QuerySet[Cluster], now: datetime) -> QuerySet[Any]:
    """Return the clusters with their current figures, judgement, trend, ZooKeeper state, counts and windows."""
    away = BrokerState.objects.filter(SILENT, cluster=OuterRef("pk")).order_by().values("cluster")
    active = Execution.objects.filter(cluster=OuterRef("pk"), active=True)
    moved = ReassignmentSnapshot.objects.filter(cluster=OuterRef("pk"), outcome=MoveOutcome.RUNNING).order_by()
    maintained = QuietPeriod.objects.filter(
        cluster=OuterRef("pk"), purpose=QuietPurpose.MAINTENANCE, begins_at__lte=now, ends_at__gt=now
    ).exclude(stage=QuietStage.OVER)
    columns = {name: F(name) for name in ("broker", "rack", "ends_at", "reason", "author_name")}
    joined = clusters.annotate(
        maintained=ArraySubquery(maintained.order_by("-ends_at").values(json=JSONObject(**columns))),
        silent=Subquery(away.annotate(number=Count("pk")).values("number")),
        moving=Subquery(moved.values("cluster").annotate(number=Count("pk")).values("number")),
        active_run=Subquery(active.values("pk")),
    )
    return joined.select_related(*_JOINED).defer(*_PENDING)


def _read_standings(
    own: Mapping[int, Cluster], rows: Iterable[Any], now: datetime, known: CollectionFreshness | None = None
) -> list[ClusterStanding]:
    """Return the standings, worst first. ``own``: clusters by id, ``rows``: what ``_join_stored`` returns of them."""
    figures, judged, trends, silent, moves, active, windows = {}, {}, {}, {}, {}, {}, {}
    ensembles: dict[int, ZooKeeperState | None] = {}
    for row in rows:
        active[row.pk] = row.active_run
        silent[row.pk] = row.silent or 0
        windows[row.pk] = tuple(map(_read_window, row.maintained))
        moves[row.pk] = row.moving or 0
        figures[row.pk] = getattr(row, "state", None)
        judged[row.pk] = getattr(row, "judgement", None)
        trends[row.pk] = getattr(row, "trend", None)
        ensembles[row.pk] = getattr(row, "zookeeper_state", None) if own[row.pk].zookeeper else None
    statuses = read_statuses(pk for pk in own if known is None or pk != known.cluster.pk)
    if known is not None:
        statuses[known.cluster.pk] = dict(known.statuses)
    found = _open_findings(own)
    running = _read_running([run for run in active.values() if run is not None], now)
    quorums = _quorums_of([pk for pk, cluster in own.items() if cluster.mode == ClusterMode.KRAFT], known)
    result = []
    for pk, cluster in own.items():
        judgement = judged.get(pk)
        listing = statuses[pk].get(CollectorKind.REASSIGNMENTS, NEVER)
        facts = age_facts(cluster, statuses[pk], ensembles.get(pk) or ZooKeeperState())
        rows = rows_of(cluster, found[pk], facts, judgement.judged_at if judgement else None, now)
        result.append(
            ClusterStanding(
                cluster=cluster,
                now=now,
                findings=rows,
                state=_rolled_up(cluster, rows),
                figures=figures.get(pk) or ClusterState(cluster=cluster),
                trend=trends.get(pk),
                statuses=statuses[pk],
                quorum=quorums.get(pk),
                ensemble=ensembles.get(pk),
                moving=moves.get(pk, 0) if listing.taken_at else None,
                silent=silent.get(pk, 0),
                running=running.get(pk),
                last_closed_at=judgement.last_closed_at if judgement else None,
                windows=windows.get(pk, ()),
            )
        )
    return sorted(result, key=lambda standing: standing.urgency)


def _read_running(runs: Collection[int], now: datetime) -> dict[int, RunningChange]:
    """Return the changes of these runs by cluster id. One query; none without runs."""
    if not runs:
        return {}
    rows = (
        Execution.objects.filter(pk__in=runs, active=True)
        .select_related("request")
        .defer("samples", "report", "foreign")
    )
    return {run.cluster_id: RunningChange(run.request, summarize_run(run, run.request, now), now) for run in rows}


def _read_window(document: Mapping[str, Any]) -> CurrentWindow:
    about = describe_scope(document["broker"], document["rack"])
    ends_at = datetime.fromisoformat(document["ends_at"])
    return CurrentWindow(about, ends_at, document["reason"], document["author_name"])


def _quorums_of(clusters: Collection[int], known: CollectionFreshness | None) -> dict[int, QuorumSeen]:
    if known is None or known.cluster.pk not in clusters:
        return newest_quorums(clusters)
    others = newest_quorums([pk for pk in clusters if pk != known.cluster.pk])
    return {**others, known.cluster.pk: known.quorum} if known.quorum else others


def _rolled_up(cluster: Cluster, rows: Iterable[FindingRow]) -> HealthState:
    """The worst of the findings, of which those that are history count as not known."""
    return rolled_up([row.state for row in rows]) if cluster.enabled else HealthState.MAINTENANCE


def _open_findings(clusters: Iterable[int]) -> dict[int | None, list[StoredFinding]]:
    found: dict[int | None, list[StoredFinding]] = defaultdict(list)
    rows = Finding.objects.filter(cluster__in=clusters, closed_at=None, opened_at__isnull=False)
    for row in read_findings(rows):
        found[row.cluster_id].append(row)
    return found


MOST_LISTED = 100
"""Consequences on the page of a finding."""
MOST_CONSEQUENCES = 3
"""Consequences that the folded line names."""
MOST_FINDINGS = 4
FIRST_FINDINGS = 3
"""Findings of one cluster on the board, without consequences: the first few where it has more than ``MOST_FINDINGS``.
Its own page shows all."""


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """Filter of the status board. ``owner`` is a user name; '' for all owners."""

    state: HealthState | None = None
    kind: FindingKind | None = None
    owner: str = ""

    @classmethod
    def of(cls, query: QueryDict, user_name: str) -> Self:
        """From an address; what makes no sense is left out."""
        state, kind = query.get("state", ""), query.get("kind", "")
        return cls(
            HealthState(state) if state in list(HealthState) else None,
            FindingKind(kind) if kind in list(FindingKind) else None,
            user_name if query.get("mine") else "",
        )

    @property
    def narrows(self) -> bool:
        """Shows some findings of a cluster and not others."""
        return self.kind is not None or bool(self.owner)

    def __bool__(self) -> bool:
        return self.state is not None or self.narrows

    def findings(self, own: ClusterStanding) -> tuple[FindingRow, ...]:
        return tuple(
            row for row in own.findings if self.kind in (None, row.kind) and (not self.owner or row.owner == self.owner)
        )

    def takes(self, own: ClusterStanding) -> bool:
        return self.state in (None, own.state) and (not self.narrows or bool(self.findings(own)))

    def address(self, **other: Any) -> str:
        """The query of this choice with something else in it; "?" for none."""
        wanted = replace(self, **other)
        return "?" + urlencode(
            {
                **({"state": wanted.state.value} if wanted.state else {}),
                **({"kind": wanted.kind.value} if wanted.kind else {}),
                **({"mine": "1"} if wanted.owner else {}),
            }
        )


@dataclass(frozen=True, slots=True)
class BoardTally:
    """A filter with how much it shows; ``address`` takes it, or takes it away where it is chosen."""

    name: str
    number: int
    address: str
    chosen: bool
    state: HealthState | None = None


@dataclass(frozen=True, slots=True)
class StatusBoard:
    """The clusters of one person at ``now``. The choice filters what is shown, never the title and the tally."""

    all: Sequence[ClusterStanding]
    now: datetime
    choice: ClusterChoice = field(default_factory=ClusterChoice)
    user_name: str = ""
    product: Sequence[ProductRow] = ()
    """Findings about kafkadash itself; they are the title where no cluster has any."""

    @property
    def title(self) -> str:
        if self.product and self.state in (HealthState.OK, HealthState.MAINTENANCE):
            return write_headline("kafkadash", self.product[0].state, [row.point for row in self.product])
        unwatched = sum(not s.cluster.enabled for s in self.all)
        return board_headline([s.state for s in self.all], self.all[0].title if self.all else "", unwatched)

    @property
    def state(self) -> HealthState:
        return self.all[0].state if self.all else HealthState.UNKNOWN

    @property
    def shown(self) -> list[ClusterStanding]:
        return [s for s in self.all if self.choice.takes(s)]

    @property
    def loud(self) -> list[ClusterStanding]:
        return [s for s in self.shown if not s.quiet]

    @property
    def quiet(self) -> list[ClusterStanding]:
        return [s for s in self.shown if s.quiet]

    @property
    def quiet_words(self) -> str:
        states = Counter(s.state for s in self.quiet)
        known = [state for state in (HealthState.OK, HealthState.MAINTENANCE) if states[state]]
        return join_items([f"{choose_plural('# cluster|# clusters', states[state])} {state.word}" for state in known])

    @property
    def tally(self) -> list[BoardTally]:
        states = Counter(s.state for s in self.all)
        words = {s.state: s.word for s in reversed(self.all)}
        own = self.choice.state
        return [
            BoardTally(words.get(s, s.word), states[s], self.choice.address(state=None if s is own else s), s is own, s)
            for s in HealthState
            if states[s] or s is own
        ]

    @property
    def kinds(self) -> list[BoardTally]:
        """Tallies of the findings by kind, the most urgent first, and of the user's own findings."""
        own = self.choice.kind
        rows = [row for s in self.all for row in s.findings]
        numbers = {**count_by_kind(rows), **({own: 0} if own and not any(r.kind is own for r in rows) else {})}
        mine = sum(row.owner == self.user_name for row in rows)
        found = [
            BoardTally(k.about.name, n, self.choice.address(kind=None if k is own else k), k is own)
            for k, n in numbers.items()
        ]
        if mine or self.choice.owner:
            address = self.choice.address(owner="" if self.choice.owner else self.user_name)
            found.append(BoardTally("Mine", mine, address, bool(self.choice.owner)))
        return found

    @property
    def all_well(self) -> bool:
        return bool(self.all) and not self.product and all(s.state is HealthState.OK for s in self.all)

    @property
    def quiet_since(self) -> datetime | None:
        """When the last finding of all closed; None while one is open or none ever was."""
        closed = [s.last_closed_at for s in self.all if s.last_closed_at]
        return max(closed) if closed and self.all_well else None

    @property
    def oldest(self) -> ClusterStanding | None:
        """The cluster with the oldest data."""
        return max((s for s in self.all if s.freshness.taken_at), key=lambda s: s.freshness.age_s or 0, default=None)


class StatusContext(TypedDict):
    cluster: Cluster
    now: datetime
    sampled_at: datetime | None
    standing: ClusterStanding
    quiet: bool
    html_id: str
    incidents: Sequence[FindingIncident]
    more: str


def status_context(
    cluster: Cluster, now: datetime, known: ClusterStanding | None = None, choice: ClusterChoice | None = None
) -> StatusContext:
    """A cluster's part of the board: a block with its findings, or one line when there is nothing to do.

    A block that shows only some of the findings has another id than the one that is pushed: a push has the page
    fetched again then.
    """
    seen = known or summarize_cluster(cluster, now)
    narrowed = choice is not None and choice.narrows
    incidents = seen.incidents
    if choice is not None and choice.narrows:
        incidents = tuple(FindingIncident(row) for row in choice.findings(seen))
    shown = incidents if len(incidents) <= MOST_FINDINGS else incidents[:FIRST_FINDINGS]
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": seen.freshness.taken_at,
        "standing": seen,
        "quiet": seen.quiet and not narrowed,
        "html_id": f"{'chosen' if narrowed else 'status'}-{cluster.slug}",
        "incidents": shown,
        "more": more_words(len(incidents) - len(shown)) if len(shown) < len(incidents) else "",
    }


class OverviewContext(TypedDict):
    cluster: Cluster
    now: datetime
    sampled_at: datetime | None
    standing: ClusterStanding
    incidents: Sequence[FindingIncident]
    explained: int | None
    unexplained: int | None
    refused: int | None


def overview_context(cluster: Cluster, now: datetime, known: ClusterStanding | None = None) -> OverviewContext:
    """Findings and figures of a cluster. ``known`` saves reading them again."""
    seen = known or summarize_cluster(cluster, now)
    under = seen.figures.under_replicated
    explained = seen.figures.under_replicated_moving or 0
    if under and seen.moving:
        running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING)
        moves = {(t, p): frozenset(adding) for t, p, adding in running.values_list("topic", "partition", "adding")}
        explained = partition_facts(cluster, seen.figures, moves).under_replicated_moving
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": seen.freshness.taken_at,
        "standing": seen,
        "incidents": seen.incidents,
        "explained": None if under is None else explained,
        "unexplained": None if under is None else max(0, under - explained),
        "refused": count_refusing(cluster, seen.figures),
    }


def finding_context(cluster: Cluster, row: Finding, now: datetime) -> FindingRow:
    """Return one finding with its current facts: as on the board while it is open, as last seen when closed.

    Raises MissingObject if it was removed meanwhile.
    """
    if row.closed_at is None:
        for shown in summarize_cluster(cluster, now).findings:
            if shown.row is not None and shown.row.pk == row.pk:
                return shown
    stored = {found.pk: found for found in read_findings(Finding.objects.filter(pk__in=[row.pk, row.cause_id or 0]))}
    own, cause = stored.get(row.pk), stored.get(row.cause_id or 0)
    if own is None:
        raise MissingObject(OnCallErrorCode.FINDING_FORGOTTEN, number=row.public_id)
    is_explained = own.closed_at is None and cause is not None and cause.closed_at is None
    return FindingRow(cluster, now, stored_kind(own.kind), own, own, cause=cause if is_explained else None)


def _open_cause(row: Finding) -> Finding | None:
    return row.cause if row.cause is not None and row.cause.closed_at is None and row.closed_at is None else None


@require_safe
@signed_in
@revalidated
def board(request: HttpRequest) -> HttpResponse:
    """All clusters this person may view, worst first; ``?state=``, ``?kind=`` and ``?mine=1`` show some of it."""
    now = timezone.now()
    name = request.user.get_username()
    choice = ClusterChoice.of(request.GET, name)
    seen = StatusBoard(rank_clusters(visible_clusters(request.user), now), now, choice, name, load_product_rows(now))
    loud = seen.shown if choice.narrows else seen.loud
    context = {
        "section": "status",
        "now": now,
        "board": seen,
        "title": seen.title,
        "kinds": seen.kinds,
        "nothing_registered": not seen.all and not Cluster.objects.exists(),
        "registers": not seen.all and is_allowed(request.user, MANAGE, None),
        # Also those that are not shown: one of them may get into the state that was asked for.
        "live_keys": ["board", *(f"status:{s.cluster.slug}" for s in seen.all)],
        "loud": [status_context(s.cluster, now, s, choice) for s in loud],
        "quiet": [] if choice.narrows else [status_context(s.cluster, now, s) for s in seen.quiet],
    }
    return render(request, "findings/board.html", context)


_PARTS = ("overview", "groups", "partitions", "brokers", "quorum", "collection")


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    now, known = bar["now"], bar["standing"]
    judged = summarize_cluster(cluster, now, known)
    context = {
        **bar,
        "title": judged.title,
        "tab": "overview",
        "live_keys": [f"{panel}:{slug}" for panel in _PARTS],
        "overview": overview_context(cluster, now, judged),
        "trends": trends_context(cluster, now, known.runs.get(CollectorKind.TRAFFIC)),
        "groups": groups_context(cluster, now, known),
        "partitions": partitions_context(cluster, now, known),
        "collection": collection_context(cluster, now, known),
        "quorum": quorum_context(cluster, now, known),
        "brokers": brokers_context(cluster, now, known),
    }
    return render(request, "findings/overview.html", context)


@require_safe
@signed_in
def switcher(request: HttpRequest) -> HttpResponse:
    """The menu of clusters with their states now; fetched when it is opened, because a page may stand open for days."""
    seen = rank_clusters(visible_clusters(request.user), timezone.now())
    return render(request, "findings/_switcher.html", {"standings": seen, "current": request.GET.get("current", "")})


@require_safe
@needs(VIEW)
@revalidated
def finding(request: HttpRequest, slug: str, finding_id: str) -> HttpResponse:
    """The permalink of a finding; it goes on saying what was wrong, and from when to when, after it closed."""
    cluster = cluster_for(request, slug, VIEW)
    row = _get_finding(slug, finding_id)
    now = timezone.now()
    held = _open_cause(row) or row
    until = held.acknowledged_until
    initial = {"note": held.acknowledge_note, "until": f"{until:%Y-%m-%dT%H:%M}" if until and until > now else ""}
    return _render_finding(request, cluster, row, AcknowledgementForm(now=now, initial=initial))


def _render_finding(
    request: HttpRequest,
    cluster: Cluster,
    row: Finding,
    form: AcknowledgementForm,
    *,
    refused: bool = False,
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    shown: FindingRow = finding_context(cluster, row, timezone.now())
    incident = FindingIncident(shown, _read_consequences(row, shown))
    context = {
        **cluster_bar(cluster, CollectorKind.METADATA),
        "tab": "",
        "live_keys": [f"status:{cluster.slug}"] if row.closed_at is None else [],
        "finding": shown,
        "incident": incident,
        "past_cause": row.cause,
        "form": form,
        "subject": _silence_subject(shown),
        "presets": SNOOZE_PRESETS,
        "runbook": read_runbook(shown.kind) if shown.runbook_url else None,
        "steps": fill_commands(read_runbook(shown.kind).html, _command_values(shown)) if shown.runbook_url else "",
        "may_acknowledge": is_allowed(request.user, ACKNOWLEDGE, cluster),
        "roles": roles_text(ACKNOWLEDGE),
        "refused": refused,
    }
    return render(request, "findings/finding.html", context, status=status)


def _silence_subject(shown: FindingRow) -> str:
    """Return the subject that the form of a silence is filled with; '' for a kind of which there is one finding."""
    scope = shown.row.scope if shown.row else ""
    return "" if scope in (MORE, UNSEEN, UNREAD) else scope


def _read_consequences(row: Finding, shown: FindingRow) -> tuple[FindingRow, ...]:
    """Return the findings that this one explains or explained, open ones first."""
    rows = row.consequences.filter(opened_at__isnull=False).order_by(F("closed_at").desc(nulls_first=True), "rank")
    found = read_findings(rows[:MOST_LISTED])
    return tuple(FindingRow(shown.cluster, shown.now, stored_kind(own.kind), own, own) for own in found)


@post_only("findings:finding")
@needs(ACKNOWLEDGE)
def acknowledge(request: HttpRequest, slug: str, finding_id: str) -> HttpResponse:
    """Make the user the owner of the finding, also if another user was."""
    return _change_owner(request, slug, finding_id, take=True)


@post_only("findings:finding")
@needs(ACKNOWLEDGE)
def release(request: HttpRequest, slug: str, finding_id: str) -> HttpResponse:
    """Release the finding, so that it has no owner."""
    return _change_owner(request, slug, finding_id, take=False)


def _command_values(shown: FindingRow) -> Mapping[str, str]:
    """Return what the commands of a runbook call HOST:9092, ID, GROUP, TOPIC, PARTITION and OFFSET, as far as known.

    A transaction is named only while it hangs as of now: the offset may be that of a live one by now.
    """
    values = {"HOST:9092": shown.cluster.bootstrap_servers}
    broker = shown.said.message.params.get("broker")
    if isinstance(broker, int):
        values["ID"] = str(broker)
    if shown.kind in _ABOUT_GROUPS and shown.row:
        # The message has a long name only in part.
        group = GroupState.objects.filter(cluster=shown.cluster, key=shown.row.scope).first()
        if group is not None:
            values["GROUP"] = group.name
    is_open = shown.row is not None and shown.row.closed_at is None
    if shown.kind is FindingKind.HANGING_TRANSACTION and is_open and not shown.old:
        first = first_hanging(load_transactions(shown.cluster))
        if first is not None:
            values |= {"TOPIC": first.topic, "PARTITION": str(first.partition), "OFFSET": str(first.start)}
    return values


_ABOUT_GROUPS = frozenset({FindingKind.CONSUMER_LAG, FindingKind.CONSUMER_LOSS})


_BACK: Mapping[str, Callable[[str], str]] = {
    "board": lambda _: reverse("findings:board"),
    "overview": lambda slug: reverse("findings:overview", args=[slug]),
}
"""Pages beside its own where a finding can be acknowledged; the person stays there."""


def _change_owner(request: HttpRequest, slug: str, finding_id: str, *, take: bool) -> HttpResponse:
    cluster = cluster_for(request, slug, ACKNOWLEDGE)
    row = _get_finding(slug, finding_id)
    user = request.user
    assert isinstance(user, User), "needs() lets nobody else in"
    now = timezone.now()
    form = AcknowledgementForm(request.POST if take else {}, now=now)
    if not form.is_valid():
        return _render_finding(request, cluster, row, form, status=HTTPStatus.BAD_REQUEST)
    try:
        if take:
            row = services.acknowledge(row, user, request, now, form.terms())
        else:
            services.release(row, user, request)
    except services.FindingRefused:
        row = _get_finding(slug, finding_id)
        return _render_finding(request, cluster, row, form, refused=True, status=HTTPStatus.CONFLICT)
    back = _BACK.get(request.POST.get("back", ""))
    if back:
        return redirect(f"{back(slug)}#finding-{row.public_id}")
    return redirect("findings:finding", slug, row.public_id)


def _get_finding(slug: str, finding_id: str) -> Finding:
    rows = Finding.objects.select_related("acknowledged_by", "cause__acknowledged_by", "quiet")
    rows = rows.filter(opened_at__isnull=False)
    row = rows.filter(cluster__slug=slug, public_id=finding_id).first()
    if row is None:
        raise MissingObject(OnCallErrorCode.FINDING_FORGOTTEN, number=finding_id)
    return row
