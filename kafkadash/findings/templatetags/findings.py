"""Rows of findings, and open findings of an object for templates of apps below, whose code does not import findings."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache

from django import template
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.status import HealthState
from kafkadash.findings.board import ClusterStanding, FindingIncident, FindingRow, FindingTrend
from kafkadash.findings.kinds import FindingKind, stored_kind
from kafkadash.findings.models import Finding
from kafkadash.findings.stored_findings import StoredFinding
from kafkadash.maintenance.models import QuietPeriod
from kafkadash.monitoring.templatetags.figures import clock, moment, version
from kafkadash.monitoring.templatetags.marks import icon, shape, since, sparkline

register = template.Library()

_OF_GROUPS = (FindingKind.CONSUMER_LAG, FindingKind.CONSUMER_LOSS)


@register.simple_tag
def list_incidents(incidents: Iterable[FindingIncident], now: datetime, back: str) -> SafeString:
    """Return the rows of findings, each with its consequences. ``back``: page that acknowledging leads back to."""
    parts = []
    for place, incident in enumerate(incidents):
        if incident.row is not None:
            parts.append(_show_finding(incident.row, now, back, is_first=place == 0))
        if incident.consequences:
            folded = {"incident": incident, "finding": incident.row, "consequences": incident.consequences}
            parts.append(render_to_string("findings/_folded.html", folded))
    return mark_safe("".join(parts))  # noqa: S308  each is markup


def _show_finding(finding: FindingRow, now: datetime, back: str, *, is_first: bool) -> str:
    held, quiet, following = finding.acknowledged, finding.quiet, finding.next
    before, between, after = _render_article(
        RowTexts(
            html_id=finding.html_id,
            kind=finding.kind.value,
            state=finding.state.value,
            word=finding.word,
            is_first=is_first,
            url=finding.url,
            sentence=finding.sentence,
            detail=finding.detail,
            code=finding.code,
            last_seen=moment(finding.seen_at, now) if finding.old and finding.seen_at else "",
            measured=finding.said.measured,
            limit=finding.said.limit,
            quiet=quiet_mark(quiet, now) if quiet else "",
            owner=finding.owner,
            owner_mark=owner_mark(held, now) if held else "",
            note=held.acknowledge_note if held else "",
            back=back,
            next_url=following.url if following else "",
            next_label=following.label if following else "",
        )
    )
    return f"{before}{_draw_trend(finding.trend)}{between}{_tell_age(finding.since, now)}{after}"


@lru_cache(maxsize=2_000)
def _draw_trend(trend: FindingTrend | None) -> SafeString | str:
    if trend is None:
        return ""
    line = sparkline(trend.path, trend.words, limit_y=trend.limit_y)
    return format_html('{}<span aria-hidden="true">{}</span>', line, trend.words)


def _tell_age(then: datetime | None, now: datetime) -> SafeString | str:
    return format_html("<b>{}</b><span>{}</span>", since(then, now), moment(then, now)) if then else ""


@dataclass(frozen=True)
class RowTexts:
    """All that a row of a finding shows but age and trend, as it is shown. Those given as ``SafeString`` are markup."""

    html_id: str
    kind: str
    state: str
    word: str
    is_first: bool
    url: str
    sentence: str
    detail: str
    code: str
    last_seen: str
    measured: str
    limit: str
    quiet: str
    owner: str
    owner_mark: str
    note: str
    back: str
    next_url: str
    next_label: str


_PLACE = mark_safe(f"place-{secrets.token_hex(16)}")  # noqa: S308  as no name can foresee
"""Stands for what changes every second in the markup that is kept."""


@lru_cache(maxsize=2_000)
def _render_article(texts: RowTexts) -> tuple[str, str, str]:
    """Return the markup before the trend, between it and the age, and behind the age.

    Cached, because boards and pushes show the same rows again and again.
    """
    context = {"texts": texts, "runbook": runbook_link(stored_kind(texts.kind)), "place": _PLACE}
    before, between, after = render_to_string("findings/_finding_row.html", context).split(_PLACE)
    return before, between, after


@register.simple_tag
def cluster_facts(standing: ClusterStanding) -> SafeString:
    """Return version, brokers, racks and quorum margin, as far as they are known, for the head of a cluster."""
    return _render_facts("findings/_cluster_facts.html", _choose_facts(standing))


@register.simple_tag
def cluster_line_facts(standing: ClusterStanding) -> SafeString:
    """Return version, brokers, partitions and quorum margin as columns of the line of a quiet cluster."""
    return _render_facts("findings/_line_facts.html", _choose_facts(standing))


@dataclass(frozen=True)
class ClusterHead:
    """Figures in the head or line of a cluster; None where they are not known. ``survives``: failures of voters."""

    version: str
    is_zookeeper: bool
    brokers_up: int | None
    brokers: int | None
    is_last_known: bool
    racks: int | None
    partitions: int | None
    survives: int | None


def _choose_facts(standing: ClusterStanding) -> ClusterHead:
    figures = standing.figures
    return ClusterHead(
        version=version(figures.kafka_version or ""),
        is_zookeeper=standing.cluster.mode == ClusterMode.ZOOKEEPER,
        brokers_up=standing.brokers_up,
        brokers=standing.brokers,
        is_last_known=standing.state is HealthState.UNKNOWN,
        racks=figures.racks,
        partitions=figures.partitions,
        survives=standing.quorum.quorum.survives if standing.quorum and not standing.quorum_stale else None,
    )


@lru_cache(maxsize=2_000)
def _render_facts(template_name: str, head: ClusterHead) -> SafeString:
    return mark_safe(render_to_string(template_name, {"head": head}))  # noqa: S308  rendered by Django


@register.simple_tag
def owner_mark(held: Finding | StoredFinding, now: datetime) -> SafeString:
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
