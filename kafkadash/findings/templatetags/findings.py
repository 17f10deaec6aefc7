"""Open findings of an object, for templates of apps below this one, whose code does not import findings."""

from __future__ import annotations

from datetime import datetime
from functools import cache

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from kafkadash.clusters.models import Cluster
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding
from kafkadash.maintenance.models import QuietPeriod
from kafkadash.monitoring.templatetags.figures import clock, moment
from kafkadash.monitoring.templatetags.marks import icon, shape

register = template.Library()

_OF_GROUPS = (FindingKind.CONSUMER_LAG, FindingKind.CONSUMER_LOSS)


@register.simple_tag
def owner_mark(held: Finding, now: datetime) -> SafeString:
    """Shape and word of an acknowledgement that is in force; ``held`` is the finding that has it."""
    mark, shape, word, at = "yes", "check", "Acknowledged", moment(held.acknowledged_at, now)
    if held.acknowledged_until is not None:
        mark, at = "until", clock(held.acknowledged_until, now)
        word = "Snoozed until" if held.snoozed else "Acknowledged until"
    if held.snoozed:
        mark, shape = "snoozed", "bell-off"
    return format_html(
        '<span class="owner-mark" data-owned="{}">{}<span>{} {}</span></span>', mark, icon(shape), word, at
    )


@register.simple_tag
def quiet_mark(period: QuietPeriod, now: datetime) -> SafeString:
    """Shape, word and end of the window or silence that covers a finding; of a silence, also who and why."""
    if period.is_silence:
        mark, word, more = icon("bell-off"), "Silenced", f", {period.author_name}: {period.reason}"
    else:
        mark, word = shape("maintenance"), "Expected"
        more = f", maintenance of {period.about or 'the cluster'}"
    text = '<span class="quiet-mark">{}<span>{} until {}{}</span></span>'
    return format_html(text, mark, word, clock(period.ends_at, now), more)


@register.simple_tag
@cache
def runbook_link(kind: FindingKind) -> SafeString | str:
    """Link to the runbook; '' for a kind that only another version has."""
    if kind not in list(FindingKind):
        return ""
    url = reverse("findings:runbook", args=[kind.value])
    return format_html('<a href="{}" aria-label="Runbook: {}">Runbook</a>', url, kind.about.name)


@register.simple_tag
def finding_of_group(cluster: Cluster, key: str) -> Finding | None:
    """The most urgent open finding about a consumer group (``GroupState.key``). One query."""
    open_ones = Finding.objects.filter(
        cluster=cluster, kind__in=_OF_GROUPS, scope=key, opened_at__isnull=False, closed_at=None
    ).select_related("acknowledged_by")
    return min(open_ones, key=lambda finding: FindingKind(finding.kind).rank, default=None)
