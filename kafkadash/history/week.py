"""Rates by hour of the week, of a topic or of a cluster: a grid of seven days by 24 hours, and its summary.

The pipeline has the median of each hour per partition; the ingest stores sums (``workload_hours``). A sum that leaves
out partitions is a lower bound, and is shown as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import size_unit
from kafkadash.core.messages import choose_plural
from kafkadash.export.results import HOURS_OF_WEEK
from kafkadash.history.models import ClusterWorkload, Workload
from kafkadash.monitoring.traffic.pages import format_byte_rate

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HOURS_OF_DAY = 24
_LEVELS = 5
_NOTHING = "No rates by hour of the week."


@dataclass(frozen=True, slots=True)
class WeekCell:
    """Rate of one hour of the week as text; '' where it is unknown. ``level``: 0 without bytes, 5 near the most."""

    text: str
    level: int


@dataclass(frozen=True, slots=True)
class WeekRow:
    """A day of the week with its hours, from 0 to 23 UTC."""

    day: str
    cells: Sequence[WeekCell]


@dataclass(frozen=True, slots=True)
class WeekPanel:
    """Panel as ``history/_week_panel.html`` shows it. ``unit``: of all cells; ``period``: of the facts behind them, in
    UTC. Without rows no hour is known.
    """

    summary: str
    unit: str = ""
    hours: Sequence[str] = ()
    rows: Sequence[WeekRow] = ()
    period: str = ""


def read_topic_week(cluster: Cluster, topic: str) -> WeekPanel:
    """Return the rates of a topic by hour of the week; one query."""
    return _read_week(Workload.objects.filter(cluster=cluster, topic=topic))


def read_cluster_week(cluster: Cluster) -> WeekPanel:
    """Return the rates of all topics of a cluster by hour of the week; one query."""
    return _read_week(ClusterWorkload.objects.filter(cluster=cluster))


def _read_week(stored: QuerySet[Any]) -> WeekPanel:
    found = stored.values_list("by_hour", "from_at", "to_at").first()
    if found is None or found[0] is None:
        return WeekPanel(_NOTHING)
    by_hour, *period = found
    return build_week_panel(by_hour["in"], by_hour["without"], *period)


def build_week_panel(
    rates: Sequence[int | None], without: Sequence[int], from_at: datetime, to_at: datetime
) -> WeekPanel:
    """``rates``: bytes per second of each hour, None where unknown; ``without``: partitions that each leaves out, []
    where none leaves out any.
    """
    known = [(rate, hour) for hour, rate in enumerate(rates) if rate is not None]
    if not known:
        return WeekPanel(_NOTHING)
    left_out = without or [0] * HOURS_OF_WEEK
    most = max(rate for rate, _ in known)
    divisor, unit = size_unit(most)

    def build_cell(hour: int) -> WeekCell:
        rate = rates[hour]
        if rate is None:
            return WeekCell("", 0)
        level = math.ceil(_LEVELS * rate / most) if most else 0
        return WeekCell(_format_cell(rate, divisor, bound=left_out[hour] > 0), level)

    rows = [
        WeekRow(day, [build_cell(place * HOURS_OF_DAY + hour) for hour in range(HOURS_OF_DAY)])
        for place, day in enumerate(DAYS)
    ]
    hours = [f"{hour:02}" for hour in range(HOURS_OF_DAY)]
    period = f"{from_at:%-d %b} to {to_at:%-d %b %H:%M}"
    return WeekPanel(_describe_week(known, left_out), f"{unit}/s", hours, rows, period)


def _format_cell(rate: int, divisor: int, *, bound: bool) -> str:
    """``bound``: the rate is a lower bound."""
    text = f"{rate / divisor:,.1f}" if divisor > 1 else f"{rate:,}"
    if bound:
        return f"≥ {text}"
    return "<0.1" if rate and divisor > 1 and rate / divisor < 0.05 else text


def _describe_week(known: Sequence[tuple[int, int]], left_out: Sequence[int]) -> str:
    """``known``: (rate, hour), in the order of the week; of equal rates the first hour is named."""
    busiest, at = max(known, key=lambda pair: pair[0])
    bound = "at least " if left_out[at] else ""
    text = f"Busiest: {_name_hour(at)}, {bound}{format_byte_rate(busiest)}"
    whole = [pair for pair in known if not left_out[pair[1]]]
    quietest, quiet_at = min(whole, key=lambda pair: pair[0], default=(busiest, at))
    text += f"; quietest: {_name_hour(quiet_at)}, {format_byte_rate(quietest)}." if quiet_at != at else "."
    if len(known) < HOURS_OF_WEEK:
        text += f" Unknown: {choose_plural('# hour|# hours', HOURS_OF_WEEK - len(known))}."
    if len(whole) < len(known):
        most = max(left_out[hour] for _, hour in known)
        partitions = choose_plural("# partition|# partitions", most)
        text += f" Values with ≥ leave out up to {partitions}, whose rate is unknown."
    return text


def _name_hour(hour: int) -> str:
    """Return day and hour of an hour of the week, 0 being Monday 00:00 UTC: "Tuesday 14:00"."""
    return f"{DAYS[hour // HOURS_OF_DAY]} {hour % HOURS_OF_DAY:02}:00"
