"""Incidents: findings with one cause, and what receivers are told of them, within the transaction of a judgement.

Receivers are told of the cause, with its consequences in the same message. A consequence that stays when its cause is
over becomes a finding of its own, and is told then unless it was before. Of what a maintenance window or a silence
covers they are told nothing; what is left when that ends is told then, unless it was before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.urls import reverse

from kafkadash.clusters.models import Cluster
from kafkadash.core.status import HealthState
from kafkadash.findings.causes import (
    CLOSED_CAUSES,
    FAILED_RUN,
    HELD_BACK,
    LEADERS_SETTLE,
    CauseCandidate,
    ExplainedFinding,
    FindingCause,
    absent_brokers,
    find_cause,
    may_follow,
)
from kafkadash.findings.facts import ClusterFacts
from kafkadash.findings.judgement import FindingEvaluation
from kafkadash.findings.kinds import FindingCode, FindingKind
from kafkadash.findings.models import Finding, finding_path
from kafkadash.findings.quiet import LOUD, QuietRule, find_quiet
from kafkadash.maintenance.models import QuietPeriod, QuietStage
from kafkadash.monitoring.groups.names import key_of
from kafkadash.monitoring.models import BrokerState
from kafkadash.notifications.models import EventStep, EventSubject, NotificationEvent
from kafkadash.notifications.outbox import build_event, change_cause, record_events

ESCALATES = 10
"""Receivers are sent a critical finding again when its number is so many times the one that they know."""
MOST_TOLD = 20
"""Consequences that a message lists; of the others, their number."""
_OWN_CLOSE = (FindingKind.STALE, FindingKind.UNREACHABLE)


@dataclass(slots=True)
class JudgedRows:
    """Rows of one judgement: ``alive`` are open or about to open, ``closed`` with the times of their readings.

    ``hushed`` are covered by a maintenance window or a silence from now on, ``loud_again`` no longer. ``ceased``: of
    some facts that were old, now nothing at all is collected. ``lacking``: by the key of a row about partitions, IDs of
    the brokers whose replicas these lack.
    """

    alive: Sequence[Finding]
    opened: Sequence[Finding]
    closed: Sequence[tuple[Finding, datetime]]
    ceased: Sequence[Finding] = ()
    lapsed: Sequence[Finding] = ()
    escalated: Sequence[Finding] = ()
    attached: list[Finding] = field(default_factory=list)
    released: list[Finding] = field(default_factory=list)
    hushed: list[Finding] = field(default_factory=list)
    loud_again: list[Finding] = field(default_factory=list)
    lacking: dict[int, frozenset[str]] = field(default_factory=dict)


def only_began(row: Finding) -> bool:
    """True where nothing was read yet of a new cluster: that the first data came closes nothing that was wrong."""
    return row.kind in _OWN_CLOSE and row.since is None


def store_causes(
    cluster: Cluster, facts: ClusterFacts, evaluation: FindingEvaluation, rows: JudgedRows, now: datetime
) -> None:
    """Decide the cause of each open finding, and store those that changed. One query more while any is open."""
    if not rows.alive:
        return
    found = {(each.kind, each.scope) for each in evaluation.found}
    candidates = _list_candidates(cluster, rows, now)
    known = {each.row.pk: each.row for each in candidates}
    changed = []
    for row in rows.alive:
        kind = FindingKind(row.kind)
        rows.lacking[row.pk] = frozenset(map(str, absent_brokers(kind, facts)))
        stored = FindingCause(known.get(row.cause_id or 0), row.cause_run)
        finding = ExplainedFinding(kind, row.scope, (kind, row.scope) in found, stored)
        cause = find_cause(finding, facts, candidates, now)
        before = row.cause_id, row.cause_run
        row.cause, row.cause_run = cause.row, cause.run
        after = row.cause_id, row.cause_run
        if before != after:
            changed.append(row)
            if after == (None, None):
                rows.released.append(row)
            elif before == (None, None):
                rows.attached.append(row)
    Finding.objects.bulk_update(changed, ["cause", "cause_run"])


def store_quiet(cluster: Cluster, facts: ClusterFacts, rows: JudgedRows, now: datetime) -> bool:
    """Decide which findings are expected or silenced; return True where a window or a silence began or ended.

    One query while there is none. Causes come first, as their consequences are covered with them.
    """
    periods = list(QuietPeriod.objects.filter(cluster=cluster).exclude(stage=QuietStage.OVER))
    in_force = {period.pk: period for period in periods if period.is_in_force(now)}
    rules = _list_rules(cluster, in_force.values())
    covered: dict[int, QuietPeriod | None] = {}
    changed = []
    for row in sorted(rows.alive, key=lambda each: each.cause_id is not None):
        kind = FindingKind(row.kind)
        quiet = find_quiet(kind, row.scope, facts, rules)
        if quiet is None and row.cause is not None and kind not in LOUD:
            # A cause that has closed covers what is left of it, as long as what covered the cause goes on.
            quiet = covered[row.cause.pk] if row.cause.pk in covered else in_force.get(row.cause.quiet_id or 0)
        covered[row.pk] = quiet
        before, after = row.quiet_id, quiet.pk if quiet is not None else None
        if before == after:
            continue
        row.quiet = quiet
        changed.append(row)
        if before is None:
            rows.hushed.append(row)
        elif after is None:
            rows.loud_again.append(row)
    Finding.objects.bulk_update(changed, ["quiet"])
    moved_on = [period for period in periods if period.stage != period.stage_at(now)]
    for period in moved_on:
        period.stage = period.stage_at(now)
    QuietPeriod.objects.bulk_update(moved_on, ["stage"])
    return bool(moved_on or changed)


def _list_rules(cluster: Cluster, periods: Iterable[QuietPeriod]) -> list[QuietRule[QuietPeriod]]:
    """Return the rules of periods; one query more for windows of racks."""
    own = list(periods)
    racks = {period.rack for period in own if period.rack is not None}
    members: dict[str, set[int]] = defaultdict(set)
    if racks:
        known = BrokerState.objects.filter(cluster=cluster, rack__in=racks)
        for rack, broker in known.values_list("rack", "broker_id"):
            members[rack or ""].add(broker)
    rules = []
    for each in own:
        brokers = None if each.broker is None else frozenset({each.broker})
        if each.rack is not None:
            brokers = frozenset(members[each.rack])
        subjects = frozenset({each.subject, key_of(each.subject)} if each.subject else ())
        rules.append(QuietRule(each, each.ends_at, each.is_silence, brokers, each.kind, subjects))
    return rules


def store_escalations(rows: JudgedRows) -> None:
    """Decide which findings receivers are sent again: critical ones that have grown so much, and stale data where
    nothing at all is collected any more.

    An acknowledgement or a snooze holds back nothing: whoever chose it knew of less than there is now. Growth in a
    maintenance window or a silence counts when that ends.
    """
    told = [row for row in rows.alive if row.opened_at is not None and _is_told(row)]
    grown = [row for row in told if _has_grown(row)]
    for row in grown:
        row.told_value = row.value
    Finding.objects.bulk_update(grown, ["told_value"])
    rows.escalated = [*grown, *(row for row in told if _has_ceased(row, rows))]


def _has_ceased(row: Finding, rows: JudgedRows) -> bool:
    """Return whether receivers know that some facts are old, and not yet that nothing is collected any more."""
    if row in rows.ceased:
        return True
    if row not in rows.loud_again or row.message_code != FindingCode.NOTHING_COLLECTED:
        return False
    told = NotificationEvent.objects.filter(subject=EventSubject.FINDING, subject_id=row.public_id)
    newest = told.filter(step__in=(EventStep.OPENED, EventStep.ESCALATED)).order_by("pk").last()
    return newest is not None and newest.message_code == FindingCode.FACTS_OLD


def _has_grown(row: Finding) -> bool:
    known, value = row.told_value or 0, row.value or 0
    return row.state == HealthState.CRITICAL and known > 0 and value >= ESCALATES * known


def tell_receivers(cluster: Cluster | None, facts: ClusterFacts | None, rows: JudgedRows, now: datetime) -> None:
    """Record what receivers are told of, and free or bind the events that were held back."""
    attached = [row for row in rows.attached if row.opened_at is not None and row not in rows.opened]
    for row in attached:
        # A run explains it: that is expected, and told only if it stays.
        bound: dict[str, Any] = {"cause": _name_cause(row), "hold_until": None}
        _held_events([row]).update(**bound, **({"routed": True} if row.cause_run else {}))
    if hushed := [row for row in rows.hushed if row.opened_at is not None and row not in rows.opened]:
        _held_events(hushed).delete()
    over = [row for row, _ in rows.closed]
    if read_again := [row for row in over if row.kind == FindingKind.STALE]:
        _held_events(read_again).delete()
    if over or rows.escalated:
        _held_events([*over, *rows.escalated]).update(hold_until=None)
    record_events(_list_events(cluster, facts, rows, now))


def _list_events(
    cluster: Cluster | None, facts: ClusterFacts | None, rows: JudgedRows, now: datetime
) -> Iterator[NotificationEvent]:
    """Yield events of causes before those of their consequences."""
    fresh = {row.pk for row in rows.opened}
    left = {row.pk: row for row in (*rows.released, *rows.loud_again)}
    stay = sorted(
        (row for row in left.values() if _is_told(row) and row.opened_at is not None and row.pk not in fresh),
        key=lambda each: (each.cause_id is not None, each.rank, each.scope),
    )
    told = _told_alone(stay)
    for row in sorted(rows.opened, key=lambda each: (each.cause_id is not None, each.rank, each.scope)):
        if not _is_told(row):
            continue
        held = facts is not None and row.cause_id is None and may_follow(FindingKind(row.kind), facts)
        yield from _list_openings(cluster, row, rows, now + HELD_BACK if held else None)
    late = [row for row in stay if row.public_id not in told]
    for row in late:
        yield from _list_openings(cluster, row, rows)
    for row in (each for each in rows.escalated if each not in late):
        yield _build_event(cluster, row, EventStep.ESCALATED, row.seen_at, rows)
    for row in rows.lapsed:
        if row.cause_run is None and not only_began(row):
            yield _build_event(cluster, row, EventStep.UNACKNOWLEDGED, now, rows)
    for row, at in rows.closed:
        if not only_began(row):
            yield _build_event(cluster, row, EventStep.CLOSED, at, rows)


def _is_told(row: Finding) -> bool:
    """Return whether receivers are told that it opened: nothing says that it is expected, and it is not silenced."""
    return row.cause_run is None and row.quiet_id is None and not only_began(row)


def _build_event(
    cluster: Cluster | None,
    row: Finding,
    step: EventStep,
    at: datetime,
    rows: JudgedRows,
    hold_until: datetime | None = None,
) -> NotificationEvent:
    return build_event(
        cluster,
        EventSubject.FINDING,
        row.public_id,
        step,
        row.message,
        at,
        kind=row.kind,
        state=row.state,
        path=finding_path(cluster, row),
        runbook=reverse("findings:runbook", args=[row.kind]),
        cause=_name_cause(row),
        consequences=_pack_consequences(_list_consequences(row, rows)),
        hold_until=hold_until,
    )


def _list_openings(
    cluster: Cluster | None, row: Finding, rows: JudgedRows, hold_until: datetime | None = None
) -> Iterator[NotificationEvent]:
    yield _build_event(cluster, row, EventStep.OPENED, row.seen_at, rows, hold_until)
    if row.kind == FindingKind.RUN_TROUBLE and row.cause_id is None and not _is_failed_run(row):
        yield _build_change_event(cluster, row)


def _is_failed_run(row: Finding) -> bool:
    """Return whether it tells of a run that failed: the end of the change is an event of its own."""
    return row.kind == FindingKind.RUN_TROUBLE and row.scope.partition(":")[2] == FAILED_RUN


def _build_change_event(cluster: Cluster | None, row: Finding) -> NotificationEvent:
    """Return the event for receivers of changes; those that are sent the finding, its cause, are not sent both."""
    number = row.scope.partition(":")[0]
    return build_event(
        cluster,
        EventSubject.CHANGE,
        number,
        EventStep.STUCK,
        row.message,
        row.seen_at,
        path=reverse("changes:request", args=[number]),
        cause=row.public_id,
    )


def _list_consequences(row: Finding, rows: JudgedRows) -> Iterator[Finding]:
    """Yield findings that follow from a row. Partitions may lack replicas of a broker that is not their only cause."""
    for each in rows.alive:
        lacks = row.kind == FindingKind.BROKER_DOWN and row.scope in rows.lacking.get(each.pk, ())
        if each.cause_id == row.pk or lacks:
            yield each


def _pack_consequences(rows: Iterable[Finding]) -> dict[str, Any] | None:
    own = sorted(rows, key=lambda row: (row.rank, row.scope))
    first = [
        {"id": row.public_id, "kind": row.kind, "state": row.state, **row.message.as_json()} for row in own[:MOST_TOLD]
    ]
    return {"count": len(own), "first": first} if own else None


def _name_cause(row: Finding) -> str:
    """Return the cause as of ``NotificationEvent``. Whoever is told that a change failed is not told twice."""
    if row.cause is not None:
        return row.cause.public_id
    if _is_failed_run(row):
        return change_cause(row.scope.partition(":")[0])
    return change_cause(row.cause_run) if row.cause_run else ""


def _list_candidates(cluster: Cluster, rows: JudgedRows, now: datetime) -> list[CauseCandidate[Finding]]:
    lately = Finding.objects.filter(cluster=cluster, kind__in=CLOSED_CAUSES, closed_at__gte=now - LEADERS_SETTLE)
    own = {row.pk: (row, at) for row, at in rows.closed}
    before = [(row, row.closed_at) for row in lately.filter(opened_at__isnull=False) if row.pk not in own]
    open_ones = [(row, None) for row in rows.alive]
    return [
        CauseCandidate(FindingKind(row.kind), row.scope, row.first_seen_at, at, row)
        for row, at in (*open_ones, *before, *own.values())
    ]


def _held_events(rows: Iterable[Finding]) -> Any:
    own = [row.public_id for row in rows]
    held = NotificationEvent.objects.filter(Q(hold_until__isnull=False), routed=False, subject=EventSubject.FINDING)
    return held.filter(subject_id__in=own)


def _told_alone(rows: Collection[Finding]) -> set[str]:
    """Return the public ids of findings that receivers were told of, or are about to be, without a cause."""
    if not rows:
        return set()
    opened = NotificationEvent.objects.filter(subject=EventSubject.FINDING, step=EventStep.OPENED, cause="")
    return set(opened.filter(subject_id__in=[row.public_id for row in rows]).values_list("subject_id", flat=True))
