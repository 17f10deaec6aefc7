"""How far brokers are from the mean."""

from __future__ import annotations

from collections.abc import Iterable

FEWEST_PARTITIONS = 50
"""With fewer partitions in a cluster the percentages say nothing."""

WARNS_FROM, ATTENTION_FROM = 10.0, 20.0


def mean_of(values: Iterable[int]) -> float | None:
    """The mean, or None for no values."""
    known = list(values)
    return sum(known) / len(known) if known else None


def skew_percent(value: int, mean: float | None, partitions: int | None) -> float | None:
    """(value − mean) / mean in percent; None where it would say nothing: no mean, or too few partitions."""
    if not mean or partitions is None or partitions < FEWEST_PARTITIONS:
        return None
    return 100.0 * (value - mean) / mean
