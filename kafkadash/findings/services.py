"""Opening, closing and acknowledging findings."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.http import HttpRequest
from django.urls import reverse

from kafkadash.accounts import services as audit
from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.core.errors import UserError
from kafkadash.core.events import changed
from kafkadash.core.messages import message_columns
from kafkadash.core.status import HealthState, is_stale
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.facts import ProductFacts
from kafkadash.findings.judgement import (
    FindingEvaluation,
    KnownFindings,
    evaluate,
    evaluate_product,
    is_trusted,
    judge_reading,
    reconcile,
)
from kafkadash.findings.kinds import FactSource, FindingKind
from kafkadash.findings.kinds import JudgedFinding as Found
from kafkadash.findings.models import Finding, Judgement
from kafkadash.findings.stored_facts import age_facts, facts_of
from kafkadash.monitoring.freshness import read_statuses
from kafkadash.notifications.models import EventStep, EventSubject, NotificationEvent
from kafkadash.notifications.outbox import build_event, record_events

log = structlog.get_logger(__name__)

_LOCK = 0x6F6E_6361
"""First half of the advisory lock of a cluster's judgement ("onca"); the second is the cluster's id."""

_MOST_POINTS = 40
_FIGURES = ("value", "unit", "threshold", "measured", "limit", "since")
_SAID = ("state", "rank", "message_code", "message_params", *_FIGURES)
_OF_AGES = [kind.value for kind in FindingKind if kind.about.source is FactSource.AGES]


class FindingRefused(UserError):
    """Refusal of a request that does not apply any more; the text says why."""


def judge(cluster_id: int, now: datetime) -> bool:
    """Judges what is stored about a cluster, and opens, updates and closes its findings. True if one came or went.

    One short transaction under a lock of its own. The facts are read inside it, so that of two judgements at once the
    later one sees the later facts, and nothing is opened twice.
    """
    return _judge(cluster_id, now)


def judge_product(facts: ProductFacts, now: datetime) -> bool:
    """Judge kafkadash itself in the same way, and return True if a finding came or went."""
    return _judge(None, now, facts)


def _judge(cluster_id: int | None, now: datetime, product: ProductFacts | None = None) -> bool:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCK, (cluster_id or 0) % 2**31])
        cluster = Cluster.objects.filter(pk=cluster_id).first() if cluster_id is not None else None
        evaluation = _evaluate(cluster, product, now)
        if evaluation is None:
            return False
        known = [
            KnownFindings(FindingKind(row.kind), row.scope, row.opened_at is not None, row.looks, row.seen_at, row)
            for row in Finding.objects.filter(cluster=cluster, closed_at=None, kind__in=list(FindingKind))
        ]
        steps = reconcile(known, evaluation, now)
        began = Finding.objects.bulk_create(_new_finding(cluster, finding, opens) for finding, opens in steps.begin)
        opened = [row for row in began if row.opened_at is not None]
        escalated: list[Finding] = []
        rewritten: list[Finding] = []
        only_seen: dict[datetime, list[int]] = defaultdict(list)
        for seen in steps.seen:
            was = HealthState(seen.known.row.state)
            if _update_finding(seen.known.row, seen.finding, seen.looks, opens=seen.opens):
                rewritten.append(seen.known.row)
                if seen.opens:
                    opened.append(seen.known.row)
                elif seen.known.opened and HealthState(seen.known.row.state).severity < was.severity:
                    escalated.append(seen.known.row)
            elif seen.finding.taken_at != seen.known.seen_at:
                only_seen[seen.finding.taken_at].append(seen.known.row.pk)
        Finding.objects.bulk_update(rewritten, [*_SAID, "history", "looks", "opened_at", "seen_at"])
        for taken_at, rows in only_seen.items():
            Finding.objects.filter(pk__in=rows).update(seen_at=taken_at)
        for gone, at in steps.close:
            Finding.objects.filter(pk=gone.row.pk).update(closed_at=at)
        if steps.drop:
            Finding.objects.filter(pk__in=[gone.row.pk for gone in steps.drop]).delete()
        closed = [(gone.row, at) for gone, at in steps.close]
        record_events(_list_events(cluster, opened, escalated, closed))
        stamp: dict[str, Any] = {"judged_at": now}
        if ended := [at for gone, at in steps.close if not _only_began(gone.row)]:
            stamp["last_closed_at"] = max(ended)
        if cluster is not None:
            Judgement.objects.update_or_create(cluster=cluster, defaults=stamp)
    return bool(opened or steps.close)


def _evaluate(cluster: Cluster | None, product: ProductFacts | None, now: datetime) -> FindingEvaluation | None:
    """Return None for a cluster that was removed."""
    if product is not None:
        return evaluate_product(product, now)
    return evaluate(facts_of(cluster, now), now) if cluster is not None else None


def _only_began(row: Finding) -> bool:
    """True where nothing was read yet of a new cluster: that the first data came closes nothing that was wrong."""
    return row.kind in (FindingKind.STALE, FindingKind.UNREACHABLE) and row.since is None


def _list_events(
    cluster: Cluster | None,
    opened: Iterable[Finding],
    escalated: Iterable[Finding],
    closed: Iterable[tuple[Finding, datetime]],
) -> Iterator[NotificationEvent]:
    """Yield what receivers are told of. That nothing was read yet of a new cluster is no news."""
    for row in opened:
        if not _only_began(row):
            yield _build_event(cluster, row, EventStep.OPENED, row.seen_at)
    for row in escalated:
        yield _build_event(cluster, row, EventStep.ESCALATED, row.seen_at)
    for row, at in closed:
        yield _build_event(cluster, row, EventStep.CLOSED, at)


def _build_event(cluster: Cluster | None, row: Finding, step: EventStep, at: datetime) -> NotificationEvent:
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
    )


def finding_path(cluster: Cluster | None, row: Finding) -> str:
    """Return the page of a finding."""
    if cluster is None:
        return reverse("findings:product_finding", args=[row.public_id])
    return reverse("findings:finding", args=[cluster.slug, row.public_id])


def judge_ages(now: datetime) -> list[str]:
    """Judges the clusters about which time alone says something new; returns the slugs of those where one came or went.

    When collection is dead nothing arrives that would have a cluster judged. Three queries when there is nothing new.
    """
    open_now: dict[int | None, set[str]] = defaultdict(set)
    for cluster_id, kind in Finding.objects.filter(closed_at=None, kind__in=_OF_AGES).values_list("cluster_id", "kind"):
        open_now[cluster_id].add(kind)
    due = []
    clusters = list(Cluster.objects.select_related("judgement"))
    statuses = read_statuses(cluster.pk for cluster in clusters)
    for cluster in clusters:
        facts = age_facts(cluster, statuses[cluster.pk])
        known = {finding.kind.value for finding in judge_reading(facts, now)}
        judgement = getattr(cluster, "judgement", None)
        forgotten = is_trusted(facts, now) and (
            judgement is None or is_stale(judgement.judged_at, facts.metadata.interval_s, now)
        )
        if known != open_now[cluster.pk] or forgotten:
            due.append(cluster)
    return [cluster.slug for cluster in due if _judged_by_itself(cluster, now)]


def _judged_by_itself(cluster: Cluster, now: datetime) -> bool:
    """Call ``judge``, and return False if it fails, so that one cluster does not stop the others."""
    try:
        return judge(cluster.pk, now)
    except Exception:
        log.exception("findings.judgement_failed", cluster=cluster.slug)
        return False


def acknowledge(finding: Finding, user: User, request: HttpRequest, now: datetime) -> None:
    """Make the user the owner of the finding, also if another user was. Raises Refused for a closed finding."""
    with transaction.atomic():
        row = _lock_finding(finding)
        before = row.acknowledged_by
        if before == user:
            return
        row.acknowledged_by, row.acknowledged_at = user, now
        row.save(update_fields=["acknowledged_by", "acknowledged_at"])
        _record_owner(row, user, "finding.acknowledged", request, before, user)


def release(finding: Finding, user: User, request: HttpRequest) -> None:
    """Remove the owner of the finding. Raises FindingRefused for a closed finding."""
    with transaction.atomic():
        row = _lock_finding(finding)
        before = row.acknowledged_by
        if before is None:
            return
        row.acknowledged_by = row.acknowledged_at = None
        row.save(update_fields=["acknowledged_by", "acknowledged_at"])
        _record_owner(row, user, "finding.released", request, before, None)


def prune(now: datetime) -> int:
    """Forgets findings that closed long ago; returns how many."""
    before = now - timedelta(hours=settings.KEEP_CLOSED_FINDINGS_HOURS)
    deleted, _ = Finding.objects.filter(closed_at__lt=before).delete()
    return deleted


def _lock_finding(finding: Finding) -> Finding:
    row = (
        Finding.objects.select_for_update(of=("self",), no_key=True)
        .select_related("acknowledged_by", "cluster")
        .get(pk=finding.pk)
    )
    if row.closed_at is not None:
        raise FindingRefused(OnCallErrorCode.FINDING_CLOSED)
    return row


def _record_owner(
    row: Finding, user: User, action: str, request: HttpRequest, before: User | None, after: User | None
) -> None:
    assert row.cluster is not None, "nobody owns findings about kafkadash itself"
    audit.record(
        user,
        action,
        ("finding", row.public_id),
        cluster=row.cluster.slug,
        before={"owner": before.get_username() if before else None},
        after={"owner": after.get_username() if after else None},
        request=request,
    )
    keys = frozenset({f"status:{row.cluster.slug}", f"overview:{row.cluster.slug}"})
    transaction.on_commit(partial(changed.send, sender=Finding, keys=keys))


def _new_finding(cluster: Cluster | None, finding: Found, opens: bool) -> Finding:
    return Finding(
        cluster=cluster,
        public_id=f"f-{secrets.token_hex(6)}",
        kind=finding.kind.value,
        scope=finding.scope,
        first_seen_at=finding.taken_at,
        seen_at=finding.taken_at,
        opened_at=finding.taken_at if opens else None,
        history=_value_point(finding),
        **_finding_columns(finding),
    )


def _update_finding(row: Finding, finding: Found, looks: int, *, opens: bool) -> bool:
    """Takes over what the finding says now; False if only the time of the look is new."""
    words = _finding_columns(finding)
    differs = opens or any(getattr(row, name) != value for name, value in words.items())
    if row.opened_at is None and looks != row.looks:
        row.looks = looks
        differs = True
    if not differs:
        return False
    if row.value != finding.value:
        points = row.history + _value_point(finding)
        row.history = points[:1] + points[max(1, len(points) - _MOST_POINTS + 1) :]
    for name, value in words.items():
        setattr(row, name, value)
    row.seen_at = finding.taken_at
    if opens:
        row.opened_at = finding.taken_at
    return True


def _finding_columns(finding: Found) -> Mapping[str, Any]:
    return {
        "state": finding.state.value,
        "rank": finding.kind.rank,
        **message_columns(finding.message, "message"),
        **{name: getattr(finding, name) for name in _FIGURES},
    }


def _value_point(finding: Found) -> list[list[float]]:
    return [] if finding.value is None else [[round(finding.taken_at.timestamp(), 3), finding.value]]
