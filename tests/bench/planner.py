"""Every mode of planning at three sizes of cluster: least bytes, proof, evenness, time, memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.bars import Bar, at_most
from tests.bench.planner_case import CASES, Measured

SIZES = {"10k": 10_000, "100k": 100_000, "1M": 1_000_000}  # partitions
MOST_S = {"10k": 0.5, "100k": 5.0, "1M": 90.0}
MOST_MB = {"10k": None, "100k": 500, "1M": 2500}


def measure() -> list[Bar]:
    bars = []
    for size, partitions in SIZES.items():
        for case in CASES:
            found = _measured(case, partitions)
            bars += [_named(f"{size}, {case}", bar) for bar in _bars(size, found)]
    return bars


def _measured(case: str, partitions: int) -> Measured:
    with TemporaryDirectory() as folder:
        out = Path(folder) / "measured"
        command = [sys.executable, "-m", "tests.bench.planner_case", case, str(partitions), str(out)]
        subprocess.run(command, check=True)
        return Measured(**json.loads(out.read_text()))


def _bars(size: str, found: Measured) -> list[Bar]:
    limit = MOST_MB[size]
    bars = [
        _least(found),
        at_most("time", found.took_s, MOST_S[size], "s"),
        Bar("time of the processor", round(found.processor_s, 3), "s"),
        Bar("peak memory", round(found.peak_mb), "MB") if limit is None else _memory(found, limit),
        _none("rules broken", len(found.broken), "rules"),
        _none("rack violations", found.rack_violations, "rows"),
        _none("bytes moved when planned again", found.again, "bytes"),
    ]
    if found.evens:
        bars.append(at_most("replicas, most − fewest in a rack", found.uneven, 1, "replicas"))
    if found.leaders_uneven is not None:
        bars.append(at_most("leaders, most − fewest", found.leaders_uneven, 1, "leaders"))
        bars.append(Bar("time of the leaders' flow", round(found.leaders_s, 3), "s"))
    return bars


def _least(found: Measured) -> Bar:
    """Not rounded: one byte too many is a miss."""
    ratio = 1.0 if found.moved == found.bound else found.moved / max(1, found.bound)
    return Bar("bytes moved / bound", ratio, "of bound", "= 1", found.moved == found.bound and not found.broken)


def _memory(found: Measured, limit: float) -> Bar:
    return at_most("peak memory", found.peak_mb, limit, "MB")


def _none(name: str, value: int, unit: str) -> Bar:
    return Bar(name, value, unit, "= 0", value == 0)


def _named(about: str, bar: Bar) -> Bar:
    return Bar(f"{about}: {bar.name}", bar.value, bar.unit, bar.bar, bar.ok)
