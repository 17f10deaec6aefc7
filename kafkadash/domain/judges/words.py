"""Words and figures that findings of several subjects share."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.wording import count

NAMED = 3
"""So many names are said; of the others, how many there are."""


def of_partitions(
    kind: FindingKind, number: int, sentence: str, answer: str, at: datetime, detail: str, unit: str = "partition"
) -> Finding:
    return Finding(
        kind,
        sentence,
        answer,
        at,
        detail=detail,
        value=number,
        unit=f"{unit}s",
        threshold=0,
        measured=count(number, unit),
        limit="limit 0",
    )


def some(names: Sequence[str]) -> str:
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest:,} more" if rest > 0 else "")


def it(number: int) -> str:
    return "it" if number == 1 else "them"


def are(number: int) -> str:
    return "is" if number == 1 else "are"
