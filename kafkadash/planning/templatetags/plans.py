"""Figures, chips and bars of a plan as the stylesheet expects them."""

from __future__ import annotations

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from kafkadash.core.formatting import format_size as size_text
from kafkadash.core.formatting import long_duration, run_time
from kafkadash.monitoring.templatetags.figures import UNKNOWN, percent_figure
from kafkadash.planning.options import format_megabytes
from kafkadash.planning.report import ReportBar, ReportCell

register = template.Library()


@register.filter
def throttle(bytes_per_second: int) -> str:
    """Exactly, as it was typed: 60 MB/s, 2.5 MB/s."""
    return f"{format_megabytes(bytes_per_second)} MB/s"


@register.filter
def big_size(number: int | None) -> SafeString:
    """Bytes with their unit in small: 665.5 GB."""
    if number is None:
        return UNKNOWN
    figure, unit = size_text(number).split(" ", 1)
    return format_html('{} <span class="unit">{}</span>', figure, unit)


@register.filter
def row_size(number: int | None) -> SafeString:
    """Return the size that a row copies; "none" where no replica is new."""
    if number == 0:
        return format_html('<span class="muted">{}</span>', "none")
    return big_size(number)


@register.filter
def big_duration(seconds: float | None) -> SafeString:
    """A length of time with its units in small: 2 h 48 min."""
    if seconds is None:
        return UNKNOWN
    parts = run_time(seconds).split(" ")
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return format_html_join(" ", '{}<span class="unit">&nbsp;{}</span>', pairs)


@register.filter
def takes(seconds: float | None) -> str | SafeString:
    """How long something takes: 2 h 48 min, <1 s."""
    return UNKNOWN if seconds is None else run_time(seconds)


@register.filter
def about(seconds: float | None) -> str | SafeString:
    """A length of time in its larger unit: 8 min."""
    return UNKNOWN if seconds is None else run_time(seconds) if seconds < 1 else long_duration(seconds)


@register.filter
def share(percent: float | None) -> str | SafeString:
    """Percent of a share: whole from ten on, one decimal below."""
    if percent is None:
        return UNKNOWN
    return f"{percent:.0f} %" if percent >= 10 else f"{percent_figure(percent)} %"


@register.filter
def signed(number: int) -> str:
    """+6, −230."""
    return f"{'+' if number > 0 else '−'}{abs(number):,}"


@register.simple_tag
def broker_bar(bar: ReportBar, what: str, *, wide: bool = False) -> SafeString:
    """The upper bar is now, the lower one after; the accent marks what changes by what can be seen.

    With what was found after a run: before, planned and found, from above.
    """
    attributes = format_html(
        "{}{}{}",
        mark_safe(" data-wide") if wide else "",
        mark_safe(" data-found") if bar.with_found else "",
        format_html(' data-changed="{}"', bar.changed) if bar.changed else "",
    )
    named = f" {bar.unit}" if bar.unit else ""
    unit = named if bar.known else ""
    words = f"{what}: {bar.before_text} now, {bar.after_text} after{unit}"
    figures = format_html("{} → <b>{}</b>{}", bar.before_text, bar.after_text, unit) if bar.known else UNKNOWN
    if bar.with_found:
        found = UNKNOWN if bar.found is None else format_html("<b>{}</b>{}", bar.found_text, named)
        words = f"{what}: {bar.before_text} before, {bar.after_text} planned{unit}, {bar.found_text} found"
        words += named if bar.found is not None else ""
        figures = format_html("{}<br>found {}", figures, found)
    return format_html(
        '<div class="broker-bar"{}>{}<span class="bar-figures">{}</span></div>',
        attributes,
        _bars(bar, words, used=bar.percents if wide else ""),
        figures,
    )


@register.simple_tag
def cell_meter(cell: ReportCell, limit: float | None) -> SafeString | str:
    """The disk of a broker in the rack map; no bar where it is not known."""
    if cell.percent is None:
        return ""
    return format_html(
        '<svg class="meter meter-small" role="img" aria-label="broker {} disk {} percent"{}>'
        '<rect class="meter-track" width="100%" height="100%"/>'
        '<rect class="meter-base" width="{}%" height="100%"/>'
        '<rect class="meter-fill" x="{}%" width="{}%" height="100%"/>{}</svg>',
        cell.id,
        percent_figure(cell.percent),
        mark_safe(' data-tone="accent"') if cell.change == "gains" else "",
        f"{min(100.0, cell.other_percent):.1f}",
        f"{min(100.0, cell.other_percent):.1f}",
        f"{max(0.0, min(100.0, cell.percent) - cell.other_percent):.1f}",
        format_html('<line class="meter-limit" x1="{0}%" x2="{0}%" y1="-2" y2="100%"/>', f"{limit:g}") if limit else "",
    )


def _bars(bar: ReportBar, words: str, *, used: str = "") -> SafeString:
    """``used``: how full the scale is before and after, for those who do not see it."""
    if not bar.drawn:
        return format_html('<svg role="img" aria-label="{}"></svg>', words)
    base = bar.base_width
    return format_html(
        '<svg role="img" aria-label="{}"><rect class="bar-track" width="100%" height="100%"/>{}'
        '<rect class="bar-before" x="{}" width="{}" height="6" y="1"/>'
        '<rect class="bar-after" x="{}" width="{}" height="6" y="9"/>{}{}</svg>',
        f"{words}; disk usage {used}" if used else words,
        format_html('<rect class="bar-base" width="{}" height="100%"/>', base) if bar.base else "",
        base,
        bar.before_width,
        base,
        bar.after_width,
        format_html('<rect class="bar-found" x="{}" width="{}" height="6" y="17"/>', base, bar.found_width)
        if bar.found is not None
        else "",
        format_html('<line class="bar-limit" x1="{0}" x2="{0}" y1="-3" y2="{1}"/>', bar.limit_at, _limit_end(bar))
        if bar.limit_at
        else "",
    )


def _limit_end(bar: ReportBar) -> int:
    """Pixels from the top of the bars."""
    return 27 if bar.with_found else 19
