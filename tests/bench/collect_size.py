"""How long a refresh of a large cluster takes, what it writes when nothing changed, and how much memory it needs."""

from __future__ import annotations

from tests.bench.bars import Bar, at_most
from tests.bench.big_kafka import PARTITIONS
from tests.bench.collector import Figures, collect

SIZES = (20_000, 100_000, 200_000)  # partitions
INTERVALS = {"configs": 30, "log_dirs": 60, "traffic": 60, "transactions": 300}  # seconds between two refreshes
REFRESH_S, MEMORY_MB, MOST_ROWS, GROWTH = 15, 1024, 10, 2.3


def measure() -> list[Bar]:
    small, half, full = (collect(size // PARTITIONS) for size in SIZES)
    return [
        at_most(
            "20k partitions: rows that an unchanged metadata refresh writes",
            small.unchanged_rows["metadata"],
            MOST_ROWS,
            "rows",
        ),
        exactly("20k partitions: topics rewritten after one changed", small.topics_rewritten, 1),
        at_most("200k partitions: first metadata refresh", full.first_s["metadata"], REFRESH_S, "s"),
        at_most("200k partitions: unchanged metadata refresh", full.unchanged_s["metadata"], REFRESH_S, "s"),
        at_most("200k partitions: time beside 100k", _growth(half, full), GROWTH, "times"),
        at_most("200k partitions: peak memory of the collecting process", full.peak_mb, MEMORY_MB, "MB"),
        *(
            at_most(f"200k partitions: unchanged {kind} refresh", full.unchanged_s[kind], interval / 2, "s")
            for kind, interval in INTERVALS.items()
        ),
        *(Bar(f"200k partitions: first {kind} refresh", round(full.first_s[kind], 3), "s") for kind in INTERVALS),
        Bar("200k partitions: processor time of a traffic refresh", round(full.processor_s["traffic"], 3), "s"),
        Bar("200k partitions: processor time beside 100k", round(_processor_growth(half, full), 3), "times"),
        Bar("100k partitions: unchanged metadata refresh", round(half.unchanged_s["metadata"], 3), "s"),
        Bar("20k partitions: unchanged metadata refresh", round(small.unchanged_s["metadata"], 3), "s"),
    ]


def exactly(name: str, value: int, wanted: int) -> Bar:
    return Bar(name, value, "rows", f"= {wanted}", value == wanted)


def _growth(half: Figures, full: Figures) -> float:
    return full.unchanged_s["metadata"] / half.unchanged_s["metadata"]


def _processor_growth(half: Figures, full: Figures) -> float:
    """What neighbours on the machine cannot spoil."""
    return full.processor_s["metadata"] / half.processor_s["metadata"]
