"""Template filters for figures: with a unit, decimal (MB = 10^6 bytes), rounded so that nothing looks done too early.

Every filter shows None as "unknown": a missing figure is never shown as zero.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from kafkadash.core import formatting as wording
from kafkadash.core.formatting import format_duration

register = template.Library()

UNKNOWN = format_html('<span class="muted">{}</span>', "unknown")
_SAME_DAY = timedelta(hours=20)


@register.filter
def figure(number: int | None) -> str | SafeString:
    """A count with separators: 4,310."""
    return UNKNOWN if number is None else f"{number:,}"


@register.filter
def size(number: float | None) -> str | SafeString:
    """Bytes in decimal units with one decimal: 4.5 GB."""
    return UNKNOWN if number is None else wording.format_size(number)


@register.filter
def rate(bytes_per_second: float | None) -> str | SafeString:
    """Bytes per second as MB/s with one decimal, or kB/s below 0.1 MB/s, so that slow is not shown as nothing."""
    if bytes_per_second is None:
        return UNKNOWN
    if 0 < bytes_per_second < 100_000:
        return f"{bytes_per_second / 1000:,.1f} kB/s"
    return f"{bytes_per_second / 1_000_000:,.1f} MB/s"


@register.filter
def percent(value: float | None) -> str | SafeString:
    """Percent with one decimal, rounded down: 99.96 is 99.9 until it is done. Kept within 0 and 100."""
    return UNKNOWN if value is None else f"{percent_figure(value)} %"


@register.filter
def percent_attribute(value: float | None) -> str:
    """The same with two decimals, for ``data-percent`` and for widths; '' where not known."""
    return "" if value is None else f"{_round_down(value, 100):.2f}"


@register.filter
def percent_of_one(part: float | None) -> str:
    """A part of 1 as whole percent, for attributes; 0 where nobody can tell."""
    return f"{_round_down(100 * (part or 0.0), 1):.0f}"


@register.filter
def signed_percent(value: float) -> str:
    """A distance in percent with its sign: +12.0 %, −0.4 %."""
    rounded = round(value, 1) + 0.0
    return f"{'−' if rounded < 0 else '+' if rounded > 0 else ''}{abs(rounded):,.1f} %"


@register.filter
def age(seconds: float | None) -> str | SafeString:
    """Seconds as an age: 6 s, 4 min 12 s, 1 h 32 min."""
    return UNKNOWN if seconds is None else format_duration(seconds)


@register.filter
def milliseconds(value: int | None) -> str | SafeString:
    """Milliseconds as a short time: 42 ms, 0.3 s, 1 min 2 s."""
    if value is None:
        return UNKNOWN
    if value < 100:
        return f"{value} ms"
    return f"{value / 1000:.1f} s" if value < 10_000 else format_duration(value / 1000)


@register.filter
def kafka_time(stamp: int | None) -> str | SafeString:
    """A timestamp of Kafka, in milliseconds, to the millisecond: 12:03:11.123 (UTC); '' where there is none."""
    if stamp is None:
        return ""
    try:
        then = datetime.fromtimestamp(stamp / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return str(stamp)
    return format_html('<time datetime="{}">{}</time>', iso(then), f"{then:%H:%M:%S}.{stamp % 1000:03d}")


@register.filter
def moment(then: datetime | None, now: datetime) -> str | SafeString:
    """A time as ``<time>``: 23:02:10 (UTC), with the day in front when that is not within the last hours."""
    if then is None:
        return UNKNOWN
    return _render_time(then, "%H:%M:%S" if abs(now - then) < _SAME_DAY else "%-d %b %H:%M:%S")


@register.filter
def version(release: str) -> str:
    """A release as far as API versions tell it: "4.3 or newer" is 4.3+."""
    return release.replace(" or newer", "+")


@register.filter
def clock(then: datetime | None, now: datetime) -> SafeString:
    """A time that is an estimate, or one among many: 23:02, with the day in front where that is far."""
    if then is None:
        return UNKNOWN
    return format_html('<time datetime="{}">{}</time>', iso(then), clock_text(then, now))


@register.filter
def clock_text(then: datetime | None, now: datetime) -> str:
    """The same without markup."""
    if then is None:
        return "unknown"
    return then.astimezone(UTC).strftime("%H:%M" if abs(then - now) < _SAME_DAY else "%-d %b %H:%M")


@register.filter
def iso(then: datetime | None) -> str:
    """ISO 8601 in UTC with milliseconds, for attributes; '' where not known."""
    if then is None:
        return ""
    return then.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@register.filter
def ids(brokers: list[int] | None) -> str:
    """Broker ids in their order: 3, 1, 5."""
    return ", ".join(str(broker) for broker in brokers or ()) or "none"


def percent_figure(value: float) -> str:
    return f"{_round_down(value, 10):.1f}"


def _round_down(value: float, steps: int) -> float:
    """Rounded down to 1/steps; the hair added keeps 57.3 from becoming 57.2 through its binary form."""
    return min(100.0, max(0.0, math.floor(value * steps + 1e-6) / steps))


@lru_cache(maxsize=8192)  # a page is fetched again and again, and most of its times stay
def _render_time(then: datetime, form: str) -> SafeString:
    return format_html('<time datetime="{}">{}</time>', iso(then), then.astimezone(UTC).strftime(form))
