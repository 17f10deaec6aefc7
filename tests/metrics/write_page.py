"""Writes the table of docs/metrics.md anew: ``python -m tests.metrics.write_page``."""

from __future__ import annotations

from pathlib import Path

from kafkadash.metrics.series import list_series
from tests.measured import between, replace_between

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
MARKER = "series"
HEAD = "| series | labels | unit | source | meaning | absent |\n|---|---|---|---|---|---|\n"


def write_table() -> str:
    rows = []
    for series in list_series():
        labels = ", ".join(f"`{label}`" for label in series.labels) or "–"
        unit = "1" if series.is_info else series.unit.replace("_per_second", "/s") or "count"
        cells = (f"`{series.name}`", labels, unit, series.source, series.meaning, series.absent or "never")
        rows.append(f"| {' | '.join(cells)} |\n")
    return HEAD + "".join(rows)


def read_table() -> str:
    return between(PAGE.read_text(encoding="utf-8"), MARKER)


if __name__ == "__main__":
    PAGE.write_text(replace_between(PAGE.read_text(encoding="utf-8"), MARKER, write_table()), encoding="utf-8")
