"""Shapes, icons, bars and ages as the stylesheet expects them. Sizes are SVG attributes: the CSP refuses styles."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

from django import template
from django.conf import settings
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst

from kafkadash.core.formatting import long_duration
from kafkadash.core.status import QUICKEST_JUDGED_S
from kafkadash.monitoring.freshness import FactFreshness
from kafkadash.monitoring.quorum.rules import NodeStatus
from kafkadash.monitoring.templatetags.figures import UNKNOWN, age, iso, percent, percent_attribute
from kafkadash.monitoring.traffic.pages import TrendLine

register = template.Library()

_NODE_STATES = {
    NodeStatus.LEADER: "ok",
    NodeStatus.IN_SYNC: "ok",
    NodeStatus.LAGGING: "warning",
    NodeStatus.OFFLINE: "warning",
    NodeStatus.UNKNOWN: "unknown",
}


@register.simple_tag
@cache
def icon_sprite() -> SafeString:
    """All symbols, to be inlined once per page; ``icon`` and ``shape`` refer to them."""
    return mark_safe((settings.BASE_DIR / "static" / "icons.svg").read_text())  # noqa: S308  our own file


@register.simple_tag
@cache
def shape(state: str) -> SafeString:
    """The shape of a state; the word beside it says the same."""
    return format_html('<svg class="shape" aria-hidden="true"><use href="#shape-{}"/></svg>', state)


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    return format_html('<svg class="icon" aria-hidden="true"><use href="#i-{}"/></svg>', name)


@register.simple_tag
@lru_cache(maxsize=1024)
def status_pill(state: str, word: str, *, loud: bool = False) -> SafeString:
    """The shape and the word of a state. ``loud`` fills it where the state is critical."""
    extra = mark_safe(" data-loud") if loud and state == "critical" else ""
    return format_html(
        '<span class="status-pill" data-state="{}"{}>{}{}</span>', state, extra, shape(state), capfirst(word)
    )


@register.simple_tag
def sparkline(path: str, words: str, box: str = "0 0 100 22", limit_y: str = "") -> SafeString:
    """A line without axes, described by ``words``.

    ``path`` is SVG path data in ``box``; ``limit_y`` is where a dashed line is, '' for none.
    """
    limit = format_html('<line x1="0" x2="100" y1="{0}" y2="{0}"/>', limit_y) if limit_y else ""
    return format_html(
        '<svg class="sparkline" viewBox="{}" preserveAspectRatio="none" role="img" aria-label="{}">{}<path d="{}"/>'
        "</svg>",
        box,
        words,
        limit,
        path,
    )


@register.simple_tag
def rate_trend(trend: TrendLine | None) -> SafeString:
    """The line of a cluster's rate with its newest value; a rate that is not known is said to be unknown."""
    if trend is None:
        return UNKNOWN
    value = trend.value or "unknown"
    if trend.path:
        line = sparkline(trend.path, trend.words, trend.box)
        return format_html('{} <b aria-hidden="true">{}</b>', line, value)
    return format_html('<span class="visually-hidden">{}</span><span aria-hidden="true">{}</span>', trend.words, value)


@register.simple_tag
def meter(value: float, tone: str = "", state: str = "", limit: int = 0) -> SafeString:
    """A bar filled to ``value`` percent, with a tick at ``limit`` percent."""
    return format_html(
        '<svg class="meter" role="img" aria-label="{}"{}{}><rect class="meter-track" width="100%" height="100%"/>'
        '<rect class="meter-fill" width="{}%" height="100%"/>{}</svg>',
        str(percent(value)).replace("%", "percent"),
        format_html(' data-tone="{}"', tone) if tone else "",
        format_html(' data-state="{}"', state) if state else "",
        percent_attribute(value),
        format_html('<line class="meter-limit" x1="{0}%" x2="{0}%" y1="-2" y2="100%"/>', limit) if limit else "",
    )


@register.simple_tag
def node_mark(status: NodeStatus, stale: bool) -> SafeString:
    """The status of a voter or observer; nothing old is green."""
    state = _NODE_STATES[status]
    if stale:
        state = "unknown"
    return format_html('<span class="status-mark" data-state="{}">{}{}</span>', state, shape(state), status.value)


@register.simple_tag
def freshness(of: FactFreshness) -> SafeString:
    """The age of data in words. The browser goes on counting from ``datetime`` and marks it stale when it is."""
    return _stamp(of, before="data ", after=" old")


@register.simple_tag
def line_age(of: FactFreshness) -> SafeString:
    """The age alone, for a column that says what it is; for those who hear the page it is said in full."""
    return _stamp(
        of,
        before=mark_safe('<span class="visually-hidden">data </span>'),
        after=mark_safe('<span class="visually-hidden"> old</span>'),
        variant=" freshness-plain",
    )


@register.simple_tag
def since(then: datetime, now: datetime) -> str:
    """How long ago, in the one unit that matters."""
    return long_duration((now - then).total_seconds())


@register.simple_tag
def part(template_name: str, values: Mapping[str, Any]) -> SafeString:
    """A partial rendered from its own values only, exactly as a push renders it."""
    return mark_safe(render_to_string(template_name, dict(values)))  # noqa: S308  rendered by Django


def _stamp(of: FactFreshness, before: str, after: str, variant: str = "") -> SafeString:
    stale = mark_safe(' data-fresh="stale"') if of.stale else ""
    if of.taken_at is None:
        return format_html('<span class="freshness{}"{}><span>no data yet</span></span>', variant, stale)
    if of.frozen:
        return format_html(
            '<span class="freshness{}"{} data-frozen><span>as of {} UTC, controllers unreachable</span></span>',
            variant,
            stale,
            f"{of.taken_at.astimezone(UTC):%H:%M:%S}",
        )
    return format_html(
        '<span class="freshness{}" data-interval="{}"{}><span>{}<time datetime="{}">{}</time>{}</span></span>',
        variant,
        f"{max(of.interval_s, QUICKEST_JUDGED_S):g}",
        stale,
        before,
        iso(of.taken_at),
        age(of.age_s),
        after,
    )
