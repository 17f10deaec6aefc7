"""Opening, closing and acknowledging findings."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q
from django.http import HttpRequest

from kafkadash.accounts import services as audit
from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.core.errors import UserError
from kafkadash.core.events import changed
from kafkadash.core.messages import message_columns
from kafkadash.core.status import is_stale
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.facts import ProductFacts
from kafkadash.findings.incidents import (
    JudgedRows,
    only_began,
    store_causes,
    store_escalations,
    store_quiet,
    tell_receivers,
)
from kafkadash.findings.judgement import (
    JudgementSteps,
    KnownFindings,
    evaluate,
    evaluate_product,
    hides_unread,
    is_trusted,
    judge_reading,
    reconcile,
)
from kafkadash.findings.kinds import FactSource, FindingCode, FindingKind
from kafkadash.findings.kinds import JudgedFinding as Found
from kafkadash.findings.models import Finding, Judgement
from kafkadash.findings.stored_facts import age_facts, age_pipeline, facts_of
from kafkadash.history.standing import pipeline_standing
from kafkadash.maintenance.models import find_moved_on
from kafkadash.monitoring.freshness import read_statuses

log = structlog.get_logger(__name__)

_LOCK = 0x6F6E_6361
"""First half of the advisory lock of a cluster's judgement ("onca"); the second is the cluster's id."""

_MOST_POINTS = 40
_FIGURES = ("value", "unit", "threshold", "measured", "limit", "since")
_SAID = ("state", "rank", "message_code", "message_params", *_FIGURES)
_CEASED = (FindingCode.FACTS_OLD, FindingCode.NOTHING_COLLECTED)
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
        facts = facts_of(cluster, now) if cluster is not None else None
        if product is not None:
            evaluation = evaluate_product(product, now)
        elif facts is not None:
            evaluation = evaluate(facts, now)
        else:
            return False  # the cluster was removed
        known = [
            KnownFindings(FindingKind(row.kind), row.scope, row.opened_at is not None, row.looks, row.seen_at, row)
            for row in Finding.objects.select_related("cause").filter(
                cluster=cluster, closed_at=None, kind__in=list(FindingKind)
            )
        ]
        steps = reconcile(known, evaluation, now)
        before = {each.row.pk: each.row.message_code for each in known}
        began, opened = _store_steps(cluster, steps)
        ended_rows = {over.row.pk for over in (*(over for over, _ in steps.close), *steps.drop)}
        alive = [*began, *(each.row for each in known if each.row.pk not in ended_rows)]
        closed = [(over.row, at) for over, at in steps.close]
        ceased = [row for row in alive if (before.get(row.pk), row.message_code) == _CEASED]
        judged, moved_on = JudgedRows(alive, opened, closed, ceased), False
        if cluster is not None and facts is not None:
            store_causes(cluster, facts, evaluation, judged, now)
            moved_on = store_quiet(cluster, facts, judged, now)
            judged.lapsed = _end_acknowledgements(cluster, alive, now)
        store_escalations(judged)
        tell_receivers(cluster, facts, judged, now)
        unknown = sorted(kind.value for kind in evaluation.unknown_kinds)
        stamp: dict[str, Any] = {"judged_at": now, "unknown_kinds": unknown}
        if ended := [at for row, at in closed if not only_began(row)]:
            stamp["last_closed_at"] = max(ended)
        if cluster is not None:
            Judgement.objects.update_or_create(cluster=cluster, defaults=stamp)
    return bool(opened or steps.close or judged.lapsed or judged.attached or judged.released or moved_on)


def _store_steps(
    cluster: Cluster | None, steps: JudgementSteps[Finding]
) -> tuple[Sequence[Finding], Sequence[Finding]]:
    """Store what becomes of findings; return those that began and those that opened."""
    began = Finding.objects.bulk_create(_new_finding(cluster, finding, opens) for finding, opens in steps.begin)
    opened = [row for row in began if row.opened_at is not None]
    rewritten: list[Finding] = []
    only_seen: dict[datetime, list[int]] = defaultdict(list)
    for seen in steps.seen:
        row = seen.known.row
        was_unread = only_began(row)
        if _update_finding(row, seen.finding, seen.looks, opens=seen.opens):
            rewritten.append(row)
            if seen.opens or (was_unread and not only_began(row)):
                opened.append(row)
        elif seen.finding.taken_at != seen.known.seen_at:
            only_seen[seen.finding.taken_at].append(row.pk)
    Finding.objects.bulk_update(rewritten, [*_SAID, "history", "looks", "opened_at", "seen_at", "told_value"])
    for taken_at, rows in only_seen.items():
        Finding.objects.filter(pk__in=rows).update(seen_at=taken_at)
    for gone, at in steps.close:
        Finding.objects.filter(pk=gone.row.pk).update(closed_at=at)
    if steps.drop:
        Finding.objects.filter(pk__in=[gone.row.pk for gone in steps.drop]).delete()
    return began, opened


def _end_acknowledgements(cluster: Cluster, rows: Iterable[Finding], now: datetime) -> list[Finding]:
    """End the acknowledgements whose time is over, and return their findings, which nobody owns from then on.

    Of a finding that is expected or silenced it ends with that, because nobody would be told. One that was extended
    since the rows were read goes on.
    """
    lapsed = []
    for row in rows:
        until = row.acknowledged_until
        if until is None or until > now or row.quiet_id is not None:
            continue
        if not Finding.objects.filter(pk=row.pk, acknowledged_until=until).update(**_NO_OWNER):
            continue
        before = _describe_owner(row)
        _take_back(row)
        lapsed.append(row)
        what = ("finding", row.public_id)
        audit.record(
            "findings",
            "finding.lapsed",
            what,
            cluster=cluster.slug,
            before=before,
            after={"owner": None},
        )
    return lapsed


def judge_ages(now: datetime) -> list[str]:
    """Judges the clusters about which time alone says something new; returns the slugs of those where one came or went.

    When collection is dead nothing arrives that would have a cluster judged; acknowledgements, maintenance windows and
    silences end by themselves. Six queries when there is nothing new.
    """
    open_now: dict[int | None, set[str]] = defaultdict(set)
    lapsing: set[int | None] = set(find_moved_on(now).values_list("cluster_id", flat=True))
    lapsed = Q(acknowledged_until__lte=now, quiet=None, kind__in=list(FindingKind))
    rows = Finding.objects.filter(Q(kind__in=_OF_AGES) | lapsed, closed_at=None).annotate(lapsed=lapsed)
    for cluster_id, kind, code, is_lapsed in rows.values_list("cluster_id", "kind", "message_code", "lapsed"):
        if kind in _OF_AGES:
            open_now[cluster_id].add(code)
        if is_lapsed:
            lapsing.add(cluster_id)
    due = []
    clusters = list(Cluster.objects.select_related("judgement"))
    statuses = read_statuses(cluster.pk for cluster in clusters)
    pipeline = age_pipeline(pipeline_standing(now))
    for cluster in clusters:
        facts = replace(age_facts(cluster, statuses[cluster.pk]), pipeline=pipeline)
        known = {finding.message.code for finding in judge_reading(facts, now)}
        if hides_unread(facts, now):
            open_now[cluster.pk] -= {FindingCode.FACTS_UNREAD_YET}
        judgement = getattr(cluster, "judgement", None)
        forgotten = is_trusted(facts, now) and (
            judgement is None or is_stale(judgement.judged_at, facts.metadata.interval_s, now)
        )
        if known != open_now[cluster.pk] or forgotten or cluster.pk in lapsing:
            due.append(cluster)
    return [cluster.slug for cluster in due if _judged_by_itself(cluster, now)]


def _judged_by_itself(cluster: Cluster, now: datetime) -> bool:
    """Call ``judge``, and return False if it fails, so that one cluster does not stop the others."""
    try:
        return judge(cluster.pk, now)
    except Exception:
        log.exception("findings.judgement_failed", cluster=cluster.slug)
        return False


@dataclass(frozen=True, slots=True)
class AcknowledgementTerms:
    """Note and end of an acknowledgement; ``snoozed``: nobody works on the finding until then.

    Receivers are told again at the end. That the finding escalates or closes they are told at once, also if snoozed.
    """

    note: str = ""
    until: datetime | None = None
    snoozed: bool = False


NO_TERMS = AcknowledgementTerms()


def acknowledge(
    finding: Finding, user: User, request: HttpRequest, now: datetime, terms: AcknowledgementTerms = NO_TERMS
) -> Finding:
    """Make the user the owner of the finding and of its consequences, also if another user was.

    Return the finding that has the acknowledgement: the cause, where it has one that is open. Raises FindingRefused for
    a closed finding.
    """
    with transaction.atomic():
        row = _lock_incident(finding)
        before = _describe_owner(row)
        columns = (user, terms.until, terms.note, terms.snoozed)
        if columns == (row.acknowledged_by, row.acknowledged_until, row.acknowledge_note, row.snoozed):
            return row
        row.acknowledged_by, row.acknowledged_until, row.acknowledge_note, row.snoozed = columns
        row.acknowledged_at = now
        row.save(update_fields=_OF_OWNER)
        action = "finding.snoozed" if terms.snoozed else "finding.acknowledged"
        _record_owner(row, user, action, request, before)
    return row


def release(finding: Finding, user: User, request: HttpRequest) -> None:
    """Remove the owner of the finding, or of its cause. Raises FindingRefused for a closed finding."""
    with transaction.atomic():
        row = _lock_incident(finding)
        if row.acknowledged_by is None:
            return
        before = _describe_owner(row)
        _take_back(row)
        row.save(update_fields=_OF_OWNER)
        _record_owner(row, user, "finding.released", request, before)


def prune(now: datetime) -> int:
    """Forgets findings that closed long ago; returns how many."""
    before = now - timedelta(hours=settings.KEEP_CLOSED_FINDINGS_HOURS)
    deleted, _ = Finding.objects.filter(closed_at__lt=before).delete()
    return deleted


def _lock_incident(finding: Finding) -> Finding:
    """Lock the row of the cause where that is open, else of the finding. Only one: a judgement locks many."""
    cause = Finding.objects.filter(consequences=finding.pk, closed_at=None).values_list("pk", flat=True).first()
    own = finding.pk if cause is None else cause
    row = _lock_row(own)
    if row.closed_at is not None and own != finding.pk:
        row = _lock_row(finding.pk)
    if row.closed_at is not None:
        raise FindingRefused(OnCallErrorCode.FINDING_CLOSED)
    return row


def _lock_row(pk: int) -> Finding:
    rows = Finding.objects.select_for_update(of=("self",), no_key=True).select_related("acknowledged_by", "cluster")
    return rows.get(pk=pk)


_NO_OWNER: Mapping[str, Any] = {
    "acknowledged_by": None,
    "acknowledged_at": None,
    "acknowledged_until": None,
    "acknowledge_note": "",
    "snoozed": False,
}
_OF_OWNER = list(_NO_OWNER)


def _take_back(row: Finding) -> None:
    for name, value in _NO_OWNER.items():
        setattr(row, name, value)


def _describe_owner(row: Finding) -> dict[str, Any]:
    """Return the owner with the terms that were chosen, as the audit log has them."""
    owner = row.acknowledged_by
    found: dict[str, Any] = {"owner": owner.get_username() if owner else None}
    if row.acknowledge_note:
        found["note"] = row.acknowledge_note
    if row.acknowledged_until:
        found["until"] = row.acknowledged_until.isoformat()
    return found


def _record_owner(row: Finding, user: User, action: str, request: HttpRequest, before: Mapping[str, Any]) -> None:
    assert row.cluster is not None, "nobody owns findings about kafkadash itself"
    audit.record(
        user,
        action,
        ("finding", row.public_id),
        cluster=row.cluster.slug,
        before=before,
        after=_describe_owner(row),
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
        told_value=finding.value if opens else None,
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
        row.opened_at, row.told_value = finding.taken_at, finding.value
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
