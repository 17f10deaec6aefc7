"""How much lag a group may have before anybody is told: rules for groups by name or by a pattern of names.

In a pattern ``*`` stands for any characters and ``?`` for one; everything else stands for itself, case counts. A rule
with exactly the name of the group goes first, whatever characters it has. Of several patterns the one with most
characters of its own decides, then the one with fewer ``*``, then the longer one, then the first in the alphabet, so
that the answer never depends on the order in which rules were made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class AllowedLag:
    """``records`` that may wait in each partition of a group of this name or pattern."""

    pattern: str
    records: int


class AllowedLags:
    """All rules of one cluster. Asking for a group takes one pass over its name for all patterns together."""

    def __init__(self, rules: Iterable[AllowedLag]) -> None:
        self._by_name = {rule.pattern: rule for rule in rules}
        wild = sorted((r for r in self._by_name.values() if _WILD.search(r.pattern)), key=_most_specific_first)
        self._wild = wild
        # Python tries alternatives from left to right, so the first that fits is the one that goes first.
        self._fits = re.compile("|".join(f"({_expression(rule.pattern)})" for rule in wild), re.DOTALL)

    def rule_of(self, group: str) -> AllowedLag | None:
        """The rule that decides; None where none fits, and so no lag is allowed."""
        if exact := self._by_name.get(group):
            return exact
        found = self._fits.fullmatch(group) if self._wild else None
        return self._wild[found.lastindex - 1] if found and found.lastindex else None

    def of(self, group: str) -> int:
        """In records, for each of its partitions."""
        rule = self.rule_of(group)
        return rule.records if rule else 0


def allowed_lags(records_by_pattern: Mapping[str, int]) -> AllowedLags:
    """The same rules are made ready once only: a collector asks for them at each look."""
    return _made(tuple(sorted(records_by_pattern.items())))


@lru_cache(maxsize=64)
def _made(rules: tuple[tuple[str, int], ...]) -> AllowedLags:
    return AllowedLags(AllowedLag(*rule) for rule in rules)


_WILD = re.compile(r"[*?]")


def _most_specific_first(rule: AllowedLag) -> tuple[int, int, int, str]:
    own = len(_WILD.sub("", rule.pattern))
    return -own, rule.pattern.count("*"), -len(rule.pattern), rule.pattern


def _expression(pattern: str) -> str:
    """Of a whole name. What stands between two ``*`` is taken where it comes first and never looked for again (an
    atomic group), which finds a match if there is one and takes no time that grows with powers of the length.
    """
    first, *others = (
        "".join("." if character == "?" else re.escape(character) for character in part)
        for part in re.sub(r"\*+", "*", pattern).split("*")
    )
    if not others:
        return first
    middle = "".join(f"(?>.*?{part})" for part in others[:-1])
    return f"{first}{middle}.*{others[-1]}"
