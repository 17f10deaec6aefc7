"""What a run's pushed panels said, judged by the script's own raw reads. All raise NotSo where it does not hold.

In the panel ``run:N`` the element with the run's figures has the attributes ``data-percent``, ``data-sampled-at`` and
``data-eta`` (seconds left, empty where nobody can tell); in ``moves:N`` each row in flight has the first two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.smoke.browser import Row, rows_of
from tests.smoke.kafka_truth import POINTS_ALLOWED, Copy, PlanTruth
from tests.smoke.steps import demand
from tests.smoke.watching import Sample, each_once

# What is smaller can arrive whole between two raw reads: there is no line to be judged by.
JUDGED_BYTES = 20_000_000
ROW_SAMPLES_NEEDED = 15

Frames = Iterable[Mapping[str, Any]]


def figures_of(frames: Frames) -> list[Row]:
    """The run's figures, frame by frame."""
    return [row for frame in frames for row in rows_of(str(frame["content"])) if "data-eta" in row.data]


def samples_of(figures: Sequence[Row]) -> list[Sample]:
    return each_once(
        [(row.sampled_at, row.percent) for row in figures if row.sampled_at is not None and row.percent is not None]
    )


def row_samples_of(frames: Frames, copies: Sequence[Copy]) -> list[tuple[Copy, Sample]]:
    """Of all rows in flight, each once."""
    known = {f"{copy.topic}-{copy.partition}": copy for copy in copies}
    found: dict[tuple[str, float], tuple[Copy, Sample]] = {}
    for frame in frames:
        for row in rows_of(str(frame["content"])):
            name = row.text.partition(" ")[0]
            if name in known and row.percent is not None and row.sampled_at is not None:
                found[name, row.sampled_at] = known[name], (row.sampled_at, row.percent)
    return list(found.values())


def eta_error(figures: Sequence[Row], samples: Sequence[Sample]) -> str:
    """The first sample from half-way on that knows: what it said would be left, and what was."""
    ended = next(at for at, percent in samples if percent >= 100)
    knowing = [
        row for row in figures if (row.percent or 0) >= 50 and math.isfinite(float(row.data["data-eta"] or "inf"))
    ]
    demand(knowing, "no sample from half-way on says how long it takes")
    at, percent, said = knowing[0].sampled_at, knowing[0].percent, float(knowing[0].data["data-eta"])
    assert at is not None
    took = ended - at
    demand(took > 0, "nobody said how long it takes before it was over")
    return f"said {said:.0f} s, took {took:.0f} s: {100 * abs(said - took) / took:.0f} % off, at {percent:.0f} %"


def gap_of_the_whole(samples: Sequence[Sample], truth: PlanTruth) -> str:
    """Shown percent of the run against that of all its bytes."""
    found = [(percent, truth.whole(at)) for at, percent in samples]
    gaps = [(true.points_off(percent), percent, str(true)) for percent, true in found if true is not None]
    failed = f", {truth.slow} too slow to count" if truth.slow else ""
    failed += f", {len(truth.failures)} failed ({truth.failures[0]})" if truth.failures else ""
    demand(len(gaps) >= len(samples) - 2, f"only {len(gaps)} of {len(samples)} samples were in reach{failed}")
    gap, percent, told = max(gaps)
    said = f"largest gap {gap:.2f} points (shown {percent:.2f} %, {told}) of {len(gaps)} samples"
    demand(gap <= POINTS_ALLOWED, said + failed)
    return f"{said}, {truth.reads} raw reads{failed}"


def gap_of_rows(row_samples: Sequence[tuple[Copy, Sample]], truth: PlanTruth) -> str:
    """Of each row; small ones only against the two raw reads around."""
    gaps, on_the_line = [], 0
    for copy, (at, percent) in row_samples:
        true = truth.around(copy, at)
        if true is not None:
            small = copy.size < JUDGED_BYTES
            on_the_line += not small and true.high - true.low <= POINTS_ALLOWED
            off = true.points_outside(percent) if small else true.points_off(percent)
            gaps.append((off, f"{copy.topic}-{copy.partition}", percent, str(true)))
    demand(on_the_line >= ROW_SAMPLES_NEEDED, f"only {on_the_line} samples on a line, {ROW_SAMPLES_NEEDED} needed")
    demand(len(gaps) >= len(row_samples) - 2, f"only {len(gaps)} of {len(row_samples)} samples were in reach")
    gap, name, percent, told = max(gaps)
    said = f"largest gap {gap:.2f} points ({name}: shown {percent:.2f} %, {told}) of {len(gaps)} samples, "
    said += f"{on_the_line} on a line"
    demand(gap <= POINTS_ALLOWED, said)
    return said
