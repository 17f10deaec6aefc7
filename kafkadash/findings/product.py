"""Findings about kafkadash itself: their facts, their part of the status board, and their page.

Tasks are judged by each page at the time it is looked at: when beat and all workers are silent, nobody stores findings.
Everybody who is signed in sees these findings. They belong to no cluster, and nobody has to acknowledge them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import JSONObject
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import MANAGE, is_allowed, signed_in
from kafkadash.core.messages import CodedMessage, stored_message
from kafkadash.core.revalidation import revalidated
from kafkadash.core.status import HealthState
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.facts import ProductFacts, ReceiverFact
from kafkadash.findings.judgement import JudgedPoint
from kafkadash.findings.judges import overdue_tasks
from kafkadash.findings.kinds import FactSource, FindingKind, JudgedFinding, stored_kind
from kafkadash.findings.messages import finding_detail, finding_title
from kafkadash.findings.models import Finding
from kafkadash.findings.runbooks import read_runbook
from kafkadash.notifications.models import NotificationMessage, NotificationTarget
from kafkadash.watchdog.models import ScheduledTask
from kafkadash.watchdog.rounds import load_rounds
from kafkadash.watchdog.rules import AUDIT, AUDITED, TaskRound

_OLD_AFTER = timedelta(seconds=AUDITED[AUDIT].limit_s)


def load_product_facts() -> ProductFacts:
    """Return the rounds of tasks, and the receivers whose tries fail. Two queries.

    The audit itself is judged by pages only: who audits, has just begun a round of it.
    """
    rounds = tuple(each for each in load_rounds() if each.name != AUDIT)
    tried = (
        NotificationMessage.objects.filter(target=OuterRef("pk")).exclude(error_code="").order_by("-tried_at", "-pk")
    )
    failing = NotificationTarget.objects.filter(enabled=True, failing_since__isnull=False).order_by("pk")
    rows = failing.annotate(
        code=Subquery(tried.values("error_code")[:1]), params=Subquery(tried.values("error_params")[:1])
    ).values_list("pk", "name", "failing_since", "code", "params")
    receivers = tuple(
        ReceiverFact(pk, name, since, stored_message(code, params) if code else None)
        for pk, name, since, code, params in rows
        if since is not None
    )
    return ProductFacts(rounds, receivers)


@dataclass(frozen=True, slots=True)
class ProductRow:
    """Finding about kafkadash itself on a page. ``row`` is None for one that is not stored.

    ``old``: nobody judged it lately, so that it is unknown whether it still holds.
    """

    kind: FindingKind
    said: Finding | JudgedFinding
    row: Finding | None
    now: datetime
    old: bool = False

    @property
    def message(self) -> CodedMessage:
        return self.said.message

    @property
    def title(self) -> str:
        return finding_title(self.message)

    @property
    def sentence(self) -> str:
        return self.message.cause

    @property
    def detail(self) -> str:
        return finding_detail(self.message)

    @property
    def code(self) -> str:
        return self.message.shown_code

    @property
    def state(self) -> HealthState:
        return HealthState.UNKNOWN if self.old else self.kind.about.state

    @property
    def word(self) -> str:
        return f"Was {self.kind.about.state.word}" if self.old else self.kind.about.word

    @property
    def url(self) -> str:
        return reverse("findings:product_finding", args=[self.row.public_id]) if self.row else ""

    @property
    def runbook_url(self) -> str:
        return reverse("findings:runbook", args=[self.kind.value]) if self.kind in FindingKind else ""

    @property
    def receiver_url(self) -> str:
        """Return the page of the receiver; '' for another kind. Administrators alone may open it."""
        if self.kind is FindingKind.RECEIVER_FAILS and self.row is not None:
            return reverse("notifications:receiver", args=[int(self.row.scope)])
        return ""

    @property
    def point(self) -> JudgedPoint:
        return JudgedPoint(self.kind, self.state, self.title)


def load_product_rows(now: datetime) -> list[ProductRow]:
    """Return what is wrong with kafkadash itself as of ``now``, most urgent first. One query."""
    rounds, stored = _load_audited()
    by_key = {(row.kind, row.scope): row for row in stored}
    audited_at = next((each.since for each in rounds if each.name == AUDIT), None)
    found = [
        ProductRow(each.kind, each, by_key.get((each.kind.value, each.scope)), now)
        for each in list_overdue(rounds, now)
    ]
    old = audited_at is None or now - audited_at > _OLD_AFTER
    for row in stored:
        kind = stored_kind(row.kind)
        if kind is not FindingKind.OWN_TASK:
            found.append(ProductRow(kind, row, row, now, old=old))
    return sorted(found, key=lambda each: (each.state.severity, each.kind.rank, each.said.scope))


def _load_audited() -> tuple[list[TaskRound], list[Finding]]:
    """Return the rounds of tasks, and the open findings: the board has to do with one query for both."""
    kinds = [kind.value for kind in FindingKind if kind.about.source is FactSource.PRODUCT]
    stored = Finding.objects.filter(cluster=None, kind__in=kinds, closed_at=None, opened_at__isnull=False)
    columns = {name: F(name) for name in (*_TIMES, *_COLUMNS)}
    tasks = ScheduledTask.objects.filter(name__in=AUDITED).order_by("name")
    found = ArraySubquery(stored.values(json=JSONObject(**columns)))
    rows = list(tasks.annotate(found=found).values_list("name", "expected_at", "finished_at", "found"))
    rounds = [TaskRound(name, expected_at, finished_at) for name, expected_at, finished_at, _ in rows]
    return rounds, [_read_finding(document) for document in rows[0][3]] if rows else []


_TIMES = ("since", "first_seen_at", "opened_at", "seen_at")
_COLUMNS = ("id", "public_id", "kind", "scope", "state", "message_code", "message_params", "measured", "limit")


def _read_finding(document: Mapping[str, Any]) -> Finding:
    times = {name: datetime.fromisoformat(document[name]) if document[name] else None for name in _TIMES}
    return Finding(**{name: document[name] for name in _COLUMNS}, **times)


def list_overdue(rounds: list[TaskRound], now: datetime) -> list[JudgedFinding]:
    """Return the overdue tasks. Where nobody audits, that says it all: beat and all workers are silent."""
    found = list(overdue_tasks(ProductFacts(tuple(rounds)), now))
    return [each for each in found if each.scope == AUDIT] or found


@require_safe
@signed_in
@revalidated
def product_finding(request: HttpRequest, finding_id: str) -> HttpResponse:
    """Permalink of a finding about kafkadash itself, also after it closed."""
    row = Finding.objects.filter(cluster=None, public_id=finding_id, opened_at__isnull=False).first()
    if row is None:
        raise MissingObject(OnCallErrorCode.FINDING_FORGOTTEN, number=finding_id)
    now = timezone.now()
    kind = stored_kind(row.kind)
    shown = ProductRow(kind, row, row, now)
    if row.closed_at is None:
        shown = next((each for each in load_product_rows(now) if each.row and each.row.pk == row.pk), shown)
    context = {
        "section": "status",
        "now": now,
        "live_keys": ["board"] if row.closed_at is None else [],
        "finding": shown,
        "runbook": read_runbook(kind) if shown.runbook_url else None,
        "may_manage": bool(shown.receiver_url) and is_allowed(request.user, MANAGE, None),
    }
    return render(request, "findings/product_finding.html", context)
