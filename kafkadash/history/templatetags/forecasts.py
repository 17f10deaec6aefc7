"""Disk forecasts of a broker, for templates of apps below this one, whose code does not import the history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import template

from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import format_size
from kafkadash.history.models import DiskForecast

register = template.Library()


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """Forecast of one log directory; each time is a text with its range, such as "12 days (9.0 to 20)"."""

    directory: str
    used: str
    growth: str
    to_80: str
    to_90: str
    observed_at: datetime


@register.simple_tag
def disk_forecasts(cluster: Cluster, broker: int) -> list[ForecastRow]:
    """Return the pipeline's newest forecasts of a broker's directories. One query."""
    rows = DiskForecast.objects.filter(cluster=cluster, broker=broker).order_by("directory")
    return [
        ForecastRow(
            row.directory,
            f"{format_size(row.used_bytes)} of {format_size(row.total_bytes)}",
            f"{'−' if row.grows_per_day < 0 else ''}{format_size(abs(row.grows_per_day))} per day",
            _describe_time(row.days_to_80, row.days_to_80_low, row.days_to_80_high),
            _describe_time(row.days_to_90, row.days_to_90_low, row.days_to_90_high),
            row.observed_at,
        )
        for row in rows
    ]


def _describe_time(days: float | None, low: float | None, high: float | None) -> str:
    if days is None:
        return "not at this growth"
    if days <= 0:
        return "reached"
    if low is None:
        return f"{_round_days(days)} days"
    upper = "or more" if high is None else f"to {_round_days(high)}"
    return f"{_round_days(days)} days ({_round_days(low)} {upper})"


def _round_days(days: float) -> str:
    return f"{days:.1f}" if days < 10 else f"{days:,.0f}"
