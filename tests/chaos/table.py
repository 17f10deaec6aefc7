"""What became of each fault, as a table; and the page of the documentation that keeps one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- chaos: begin -->", "<!-- chaos: end -->"


@dataclass(slots=True)
class Record:
    """One fault that struck. ``within``: between the first intent and the last cleared throttle of its run.

    ``end`` is how its run ended ("done, clean"), ``problems`` what the referee has against that run.
    """

    run: int
    leg: str
    fault: str
    what: str
    at: datetime
    within: bool = False
    end: str = ""
    problems: int = 0


def lines(records: Sequence[Record], order: Sequence[str]) -> list[str]:
    """Markdown: fault × how the runs ended in which it struck."""
    rows = [
        "| fault | struck | within | ended clean | with exceptions | with obligations | cancelled or failed | wrong |"
    ]
    rows.append("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in order:
        own = [record for record in records if record.fault == name]
        if own:
            rows.append(_row(name, own))
    rows.append(_row("**all**", records))
    return rows


def within(records: Sequence[Record]) -> int:
    return sum(record.within for record in records)


def _row(name: str, own: Sequence[Record]) -> str:
    right = [record for record in own if not record.problems]
    ends = [
        sum(record.end == end for record in right) for end in ("done, clean", "done, exceptions", "done, obligations")
    ]
    others = len(right) - sum(ends)
    cells = [len(own), within(own), *ends, others, len(own) - len(right)]
    return f"| {name} | {' | '.join(str(cell) for cell in cells)} |"


def write(text: Sequence[str], docs: Path = DOCS) -> None:
    """Puts the lines between the marks of the page."""
    page = docs.read_text(encoding="utf-8")
    head, found, rest = page.partition(BEGIN)
    _, closed, tail = rest.partition(END)
    assert found, f"{docs} has no place for the table"
    assert closed, f"{docs} does not say where the table ends"
    docs.write_text(f"{head}{BEGIN}\n" + "\n".join(text) + f"\n{END}{tail}", encoding="utf-8")
