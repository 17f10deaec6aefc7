"""Sums of a workload result by hour of the week: of each topic, and of each cluster.

The result has a list of up to 168 medians for each of up to some hundred thousand partitions. They are added up file by
file and a few partitions at a time: as many groups in Arrow take more than a gigabyte, and longer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kafkadash.export.results import HOURS_OF_WEEK

HOUR_COLUMNS = ("cluster", "topic", "hours_of_week", "in_p50")
_THURSDAY = 3 * 24  # 1970 began on one
_AT_ONCE = 1000
"""Partitions whose lists are Python's numbers at the same time."""


class MismatchedHours(ValueError):
    """Lists of a row that do not belong together, or an hour outside the week."""


@dataclass(slots=True)
class HourSums:
    """Bytes per second by hour of the week, 0 being Monday 00:00 UTC: sums of the medians of partitions.

    ``known``: partitions in each sum; ``observed``: partitions that were there, whether their rate is known or not.
    """

    rates: list[int] = field(default_factory=lambda: [0] * HOURS_OF_WEEK)
    known: list[int] = field(default_factory=lambda: [0] * HOURS_OF_WEEK)
    observed: list[int] = field(default_factory=lambda: [0] * HOURS_OF_WEEK)

    def add(self, other: HourSums) -> None:
        for mine, its in ((self.rates, other.rates), (self.known, other.known), (self.observed, other.observed)):
            mine[:] = map(sum, zip(mine, its, strict=True))

    def note_observed(self, begins: Sequence[datetime], end: datetime) -> None:
        """``begins``: when each partition was first observed; ``end``: when any was last, in the same week."""
        last, first = _hour_of(end), sorted(map(_hour_of, begins))
        for hour in range(last - HOURS_OF_WEEK + 1, last + 1):
            self.observed[(hour + _THURSDAY) % HOURS_OF_WEEK] = bisect_right(first, hour)

    def pack(self) -> Mapping[str, Sequence[int | None]]:
        """Return what is stored: ``in``: rates, None where no partition is known; ``without``: partitions that each
        sum leaves out, [] where none leaves out any.
        """
        without = [max(0, seen - known) for seen, known in zip(self.observed, self.known, strict=True)]
        rates = [rate if known else None for rate, known in zip(self.rates, self.known, strict=True)]
        partial = any(number for number, rate in zip(without, rates, strict=True) if rate is not None)
        return {"in": rates, "without": without if partial else []}


def _hour_of(at: datetime) -> int:
    """Since the epoch."""
    return int(at.timestamp()) // 3600


def sum_by_hour(tables: Iterable[Any]) -> dict[tuple[str, str], HourSums]:
    """Return cluster and topic → sums, of PyArrow tables with ``HOUR_COLUMNS``. Raises MismatchedHours."""
    found: dict[tuple[str, str], HourSums] = {}
    for table in tables:
        for start in range(0, table.num_rows, _AT_ONCE):
            columns = (table.column(name).slice(start, _AT_ONCE).to_pylist() for name in HOUR_COLUMNS)
            for cluster, topic, hours, rates in zip(*columns, strict=True):
                _add_partition(found.setdefault((cluster, topic), HourSums()), hours, rates)
    return found


def _add_partition(sums: HourSums, hours: Sequence[int | None], rates: Sequence[int | None]) -> None:
    if len(hours) != len(rates):
        raise MismatchedHours
    for hour, rate in zip(hours, rates, strict=True):
        if hour is None or not 0 <= hour < HOURS_OF_WEEK:
            raise MismatchedHours
        if rate is not None:
            sums.rates[hour] += rate
            sums.known[hour] += 1
