"""Figures of a run as the stylesheet expects them, in little markup: they are pushed every other second."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from kafkadash.core.formatting import format_size
from kafkadash.monitoring.templatetags.figures import UNKNOWN, percent_attribute, rate
from kafkadash.planning.options import format_megabytes

register = template.Library()


@register.filter
def big_rate(bytes_per_second: float | None) -> SafeString:
    """Bytes per second with the unit in small: 58.6 MB/s."""
    if bytes_per_second is None:
        return UNKNOWN
    figure, unit = str(rate(bytes_per_second)).split(" ", 1)
    return format_html('{} <span class="unit">{}</span>', figure, unit)


@register.filter
def rate_figure(bytes_per_second: int) -> str:
    """MB/s without the unit, exactly: 60, 2.5."""
    return format_megabytes(bytes_per_second)


@register.filter
def size_or_unknown(number: int | None) -> SafeString | str:
    """Bytes with their unit: 4.5 GB."""
    return format_html("<i>{}</i>", "unknown") if number is None else format_size(number)


@register.simple_tag
def bar(percent: float) -> SafeString:
    """A bar beside its figure, which says the same."""
    return format_html('<svg class="flat"><rect width="{}%"/></svg>', percent_attribute(percent))
