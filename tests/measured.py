"""``make measured``: writes figures of ``var/bench/*.json`` into docs/measured.md, and a few of these into README.md.

Each bench has a file; its entries take the place of all rows of that bench. Rows of a bench without a file stay.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.bars import KEPT_IN, Bar

ROOT = Path(__file__).resolve().parents[1]
PAGE, README = ROOT / "docs" / "measured.md", ROOT / "README.md"
HEAD = "| bench | figure | value | limit | measured |\n|---|---|---|---|---|\n"
README_HEAD = "| figure | value | limit |\n|---|---|---|\n"
# (bench, figure) → its words in README.md.
README_FIGURES: Mapping[tuple[str, str], str] = {
    ("pages", "board, 50 clusters, 200 findings: p95"): "Status board: 50 clusters, 200 findings, p95",
    ("pages", "commit to pixel, p95"): "From stored to painted, 500 open pages, p95",
    ("collect", "200k partitions: first metadata refresh"): "First read of 200,000 partitions",
    ("collect", "200k partitions: peak memory of the collecting process"): "Memory to read 200,000 partitions",
    ("changes", "upload to review page"): "Plan of 50,000 partitions, upload to review",
    ("execution", "makespan of 14,000 moves on 300 brokers"): "Duration of 14,000 moves, against a lower bound",
}


@dataclass(frozen=True, slots=True)
class MeasuredFigure:
    """A row of docs/measured.md, as it is written there."""

    bench: str
    name: str
    value: str
    limit: str
    measured: str

    @classmethod
    def from_bar(cls, bench: str, bar: Bar, measured: str) -> MeasuredFigure:
        missed = " (missed)" if bar.ok is False else ""
        limit = f"{bar.bar} {bar.unit}" if bar.bar else "–"
        return cls(bench, bar.name, f"{format_value(bar.value)} {bar.unit}{missed}", limit, measured)


def format_value(value: float) -> str:
    """Return at least three digits where there are so many, no zero at the end: 1,013, 81.5, 4.76, 0.348, 0.5."""
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def read_benches(folder: Path) -> dict[str, list[MeasuredFigure]]:
    """Return the figures of each bench that has a file; the day is that of the file, in UTC."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        day = f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d}"
        bars = [Bar(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
        found[path.stem] = [MeasuredFigure.from_bar(path.stem, bar, day) for bar in bars]
    return found


def read_page(text: str) -> dict[str, list[MeasuredFigure]]:
    """Return the figures of each bench that the page has now."""
    found: dict[str, list[MeasuredFigure]] = {}
    for line in between(text, "measured").removeprefix(HEAD).splitlines():
        figure = MeasuredFigure(*(cell.strip() for cell in line.strip("|").split("|")))
        found.setdefault(figure.bench, []).append(figure)
    return found


def page_table(figures: Mapping[str, Sequence[MeasuredFigure]]) -> str:
    return HEAD + "".join(f"| {' | '.join(astuple(each))} |\n" for bench in sorted(figures) for each in figures[bench])


def readme_table(figures: Mapping[str, Sequence[MeasuredFigure]]) -> str:
    """Raises KeyError for a figure that no bench has, as after a run of a part of it."""
    known = {(each.bench, each.name): each for rows in figures.values() for each in rows}
    rows = ((words, known[key]) for key, words in README_FIGURES.items())
    return README_HEAD + "".join(f"| {words} | {each.value} | {each.limit} |\n" for words, each in rows)


def between(text: str, marker: str) -> str:
    """Return the text between ``<!-- MARKER: begin -->`` and ``<!-- MARKER: end -->``. Raises ValueError without."""
    found = _between(marker).search(text)
    if found is None:
        raise ValueError(f"no text between the markers “{marker}”")
    return found[2]


def replace_between(text: str, marker: str, content: str) -> str:
    between(text, marker)
    return _between(marker).sub(lambda found: f"{found[1]}{content}{found[3]}", text)


def _between(marker: str) -> re.Pattern[str]:
    return re.compile(f"(<!-- {marker}: begin -->\n)(.*?)(<!-- {marker}: end -->)", re.DOTALL)


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    benches = read_benches(KEPT_IN)
    figures = {**read_page(page), **benches}
    try:
        readme = replace_between(README.read_text(encoding="utf-8"), "figures", readme_table(figures))
    except KeyError as missing:
        bench, name = missing.args[0]
        sys.stderr.write(f"var/bench/{bench}.json has no figure “{name}”. Run all of it: make bench-{bench}\n")
        return 1
    PAGE.write_text(replace_between(page, "measured", page_table(figures)), encoding="utf-8")
    README.write_text(readme, encoding="utf-8")
    sys.stdout.write(f"docs/measured.md: {', '.join(benches) or 'no bench has a file in var/bench'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
