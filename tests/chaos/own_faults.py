"""Steps that failed inside of the product, by the logs of its executors; a database that was away is no such thing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

STEP_FAILED = "execution.step_failed"
_LINE = re.compile(r"^\d{4}-\d\d-\d\dT", re.MULTILINE)
# What a database, or a pool of connections to one, that is away raises (psycopg, django.db).
AWAY = re.compile(r"(^|\.)(OperationalError|InterfaceError|PoolTimeout)\b")


def own_faults(logs: Sequence[Path]) -> list[str]:
    """The last line of each such traceback: the error."""
    found = []
    for log in logs:
        for entry in _entries(log):
            if STEP_FAILED in entry.partition("\n")[0]:
                error = entry.strip().splitlines()[-1]
                if not AWAY.search(error.partition(":")[0]):
                    found.append(f"{log.stem}: a step failed: {error[:200]}")
    return found


def _entries(log: Path) -> list[str]:
    """Each with its traceback."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    starts = [match.start() for match in _LINE.finditer(text)]
    return [text[a:b] for a, b in itertools.pairwise([*starts, len(text)])]
