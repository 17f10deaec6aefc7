"""Figures and marks of consumer groups."""

from __future__ import annotations

from collections.abc import Sequence

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from kafkadash.core.formatting import format_duration, listed_shortly
from kafkadash.monitoring.groups.rules import WINDOW
from kafkadash.monitoring.templatetags.figures import UNKNOWN

register = template.Library()

_STEP, _WIDTH, _HEIGHT = 9, 6, 18
_LOWEST, _HIGHEST = 3.0, 15.6


@register.filter
def group_name(name: str) -> str | SafeString:
    """The name as it is; Kafka takes an empty one as well."""
    return name or format_html('<span class="muted">{}</span>', "(empty name)")


@register.filter
def seconds(value: float | None) -> str | SafeString:
    """A time lag: 0.8 s, 10 min 40 s."""
    if value is None:
        return UNKNOWN
    return f"{value:.1f} s" if 0 < value < 10 else format_duration(value)


@register.filter
def per_second(value: float | None) -> str | SafeString:
    """Records per second: 3,008 or 0.4; what is there but small is not shown as nothing."""
    if value is None:
        return UNKNOWN
    if value == 0 or abs(value) >= 10:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 0.1 else "<0.1"


@register.simple_tag
def topics_read(topics: Sequence[str]) -> str | SafeString:
    """The first topics of a group and how many more."""
    return listed_shortly(topics, 2) if topics else format_html('<span class="muted">{}</span>', "nothing")


@register.simple_tag
def sample_marks(commits: Sequence[int | None], state: str) -> SafeString:
    """The last ten samples of a partition as bars, oldest first: rising where the offset moves, equal where it stands
    still (coloured where that is wrong), hollow where there is none.
    """
    window = [*([None] * (WINDOW - len(commits))), *commits]
    known = [commit for commit in window if commit is not None]
    low, high = min(known, default=0), max(known, default=0)
    still = low == high
    wrong = still and len(known) == WINDOW and state != "ok"
    bars = [_bar(number, commit, low, high, flat=wrong) for number, commit in enumerate(window)]
    if not known:
        words = "no samples"
    else:
        how = "equal" if still else "advancing" if known == sorted(known) else "moved back and forth"
        words = f"{len(known)} of {WINDOW} samples{'' if len(known) == 1 else f', {how}'}"
    return format_html(
        '<svg class="samples" role="img" viewBox="0 0 87 18" aria-label="{}">{}</svg>',
        words,
        format_html_join("", "{}", ((bar,) for bar in bars)),
    )


def _bar(number: int, commit: int | None, low: int, high: int, *, flat: bool) -> SafeString:
    x = number * _STEP
    if commit is None:
        return format_html('<rect class="none" x="{}" y="14.5" width="5" height="3"/>', x + 0.5)
    share = 0.6 if low == high else (commit - low) / (high - low)
    height = 12.0 if low == high else _LOWEST + share * (_HIGHEST - _LOWEST)
    return format_html(
        '<rect{} x="{}" y="{}" width="{}" height="{}"/>',
        SafeString(' class="still"') if flat else "",
        x,
        f"{_HEIGHT - height:.1f}",
        _WIDTH,
        f"{height:.1f}",
    )
