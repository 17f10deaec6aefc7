"""Which topics a plan is asked for, by their names alone."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kafkadash.domain.planner.request import PlanRequest


class BadPattern(Exception):
    """``pattern`` is no regular expression; ``str()`` says why, as a part of a sentence."""

    def __init__(self, pattern: str, fault: str) -> None:
        super().__init__(fault)
        self.pattern = pattern


def chosen(request: PlanRequest, names: Iterable[str]) -> list[str]:
    """Those of ``names`` that are asked for, sorted: named or matched, and not excluded. Raises BadPattern."""
    pattern = compiled(request.pattern) if request.pattern else None
    excluded = compiled(request.excluded) if request.excluded else None
    listed = frozenset(request.topics)
    return sorted(
        name
        for name in names
        if (not (listed or pattern) or name in listed or (pattern and pattern.fullmatch(name)))
        and not (excluded and excluded.fullmatch(name))
    )


def chooses(request: PlanRequest) -> bool:
    """Whether some topics may be left out."""
    return bool(request.topics or request.pattern or request.excluded)


def compiled(pattern: str) -> re.Pattern[str]:
    """Raises BadPattern."""
    try:
        return re.compile(pattern)
    except re.error as error:
        place = "" if error.pos is None else f" at character {error.pos + 1}"
        raise BadPattern(pattern, f"{error.msg}{place}") from error
    except (OverflowError, RecursionError) as error:
        raise BadPattern(pattern, "it is too large or too deep") from error
