"""What the pipeline's rollups say of a series over an hour, a day, a week or a year: one value per bucket, or a gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from django.db.models import Max

from kafkadash.observe.history.partitions import DAY, HOUR, MINUTE
from kafkadash.observe.models import Rollup

Name = TypeVar("Name", str, int)


@dataclass(frozen=True, slots=True)
class Range:
    """``grain``: seconds of a bucket that is drawn; ``chosen_by``: of those by which the worst series is found."""

    name: str
    words: str
    length: timedelta
    grain: int
    chosen_by: int
    bucket: str

    def span(self, now: datetime) -> tuple[datetime, datetime]:
        """Whole buckets; the one that has only begun is the last."""
        end = datetime.fromtimestamp((now.timestamp() // self.grain + 1) * self.grain, UTC)
        return end - self.length, end


RANGES = (
    Range("hour", "hour", timedelta(hours=1), MINUTE, MINUTE, "minute"),
    Range("day", "day", timedelta(days=1), MINUTE, HOUR, "minute"),
    Range("week", "week", timedelta(days=7), HOUR, HOUR, "hour"),
    Range("year", "year", timedelta(days=365), DAY, DAY, "day"),
)
DEFAULT_RANGE = RANGES[1]


def range_named(name: str | None) -> Range:
    """The range of that name, or the default for a name that is none."""
    return next((r for r in RANGES if r.name == name), DEFAULT_RANGE)


@dataclass(frozen=True, slots=True)
class Lines:
    """``values``: column → one per bucket, None where there is none; the first bucket begins at ``begin``."""

    begin: datetime
    grain: int
    values: Mapping[str, Sequence[float | None]]

    def at(self, bucket: int) -> datetime:
        return self.begin + timedelta(seconds=bucket * self.grain)

    @property
    def buckets(self) -> int:
        return len(next(iter(self.values.values())))

    @property
    def newest(self) -> int | None:
        """The last bucket of which something is known."""
        return max((n for values in self.values.values() for n, v in enumerate(values) if v is not None), default=None)

    @property
    def newest_at(self) -> datetime | None:
        return None if self.newest is None else self.at(self.newest)

    @property
    def known(self) -> int:
        """Buckets of which something is known."""
        return sum(any(value is not None for value in bucket) for bucket in zip(*self.values.values(), strict=True))


def read_lines(series: int | None, columns: Sequence[str], chosen: Range, now: datetime) -> Lines:
    """One query; none where there is no series."""
    begin, end = chosen.span(now)
    buckets = round(chosen.length.total_seconds() / chosen.grain)
    values: dict[str, list[float | None]] = {name: [None] * buckets for name in columns}
    rows = Rollup.objects.filter(series=series, grain=chosen.grain, bucket__gte=begin, bucket__lt=end)
    for bucket, *figures in rows.values_list("bucket", *columns) if series is not None else ():
        place = round((bucket - begin).total_seconds() / chosen.grain)
        for name, value in zip(columns, figures, strict=True):
            values[name][place] = value
    if all(line[-1] is None for line in values.values()):
        for line in values.values():
            line.pop()  # the bucket that has only begun is left out until there is something in it
    return Lines(begin, chosen.grain, values)


def worst_of(series: Mapping[Name, int], chosen: Range, now: datetime) -> Name | None:
    """The one with the largest value of the time, or the first where nothing is known of any; one query."""
    begin, end = chosen.span(now)
    found = (
        Rollup.objects.filter(
            series__in=series.values(), grain=chosen.chosen_by, bucket__gte=begin, bucket__lt=end, most__isnull=False
        )
        .values_list("series_id")
        .annotate(largest=Max("most"))
        .order_by("-largest", "series_id")
        .first()
    )
    names = {pk: name for name, pk in series.items()}
    return names[found[0]] if found else min(series, default=None)
