"""A measured figure beside the bar it has to hold, the table that is printed, the file that is kept."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

KEPT_IN = Path(__file__).resolve().parents[2] / "var" / "bench"


@dataclass(frozen=True, slots=True)
class Bar:
    """``value`` in ``unit``; ``bar`` says what is asked for. Where nothing is, it is information and ``ok`` is None."""

    name: str
    value: float
    unit: str
    bar: str = ""
    ok: bool | None = None


def at_most(name: str, value: float, limit: float, unit: str) -> Bar:
    return Bar(name, round(value, 3), unit, f"≤ {limit:g}", value <= limit)


def percentile(values: Iterable[float], percent: float) -> float:
    """The smallest value that ``percent`` % of them do not exceed. Raises ValueError for none."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def conclude(group: str, bars: Sequence[Bar]) -> int:
    """Prints the table, writes ``var/bench/GROUP.json``; the exit code: 1 when a bar is missed or there is none."""
    KEPT_IN.mkdir(parents=True, exist_ok=True)
    (KEPT_IN / f"{group}.json").write_text(
        json.dumps([asdict(bar) for bar in bars], indent=2, ensure_ascii=False) + "\n"
    )
    width = max((len(bar.name) for bar in bars), default=0)
    for bar in bars:
        word = {True: "ok", False: "MISSED", None: ""}[bar.ok]
        print(f"  {bar.name:<{width}}  {bar.value:>12,.3f} {bar.unit:<10} {bar.bar:<10} {word}".rstrip())  # noqa: T201
    return 0 if bars and all(bar.ok is not False for bar in bars) else 1
