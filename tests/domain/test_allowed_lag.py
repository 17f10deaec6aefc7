"""Which rule decides how much lag a group may have, and that asking takes no time that patterns could be made for."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.allowed_lag import AllowedLag, AllowedLags, allowed_lags


def decides(group: str, *patterns: str) -> str | None:
    """The pattern that decides, in whatever order the rules come."""
    found = {
        rule.pattern if (rule := AllowedLags([AllowedLag(p, 1) for p in order]).rule_of(group)) else None
        for order in (patterns, patterns[::-1], sorted(patterns))
    }
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize(
    ("group", "patterns", "winner"),
    [
        ("nightly-billing", ("nightly-*", "nightly-billing", "*"), "nightly-billing"),
        ("nightly-billing", ("nightly-*", "*billing*", "*"), "nightly-*"),
        ("nightly-billing", ("*-billing", "nightly*"), "*-billing"),
        ("ab", ("a*", "a?", "??"), "a?"),  # as many own characters: the one with fewer *
        ("ab", ("a*", "*b"), "*b"),
        ("abc", ("a*", "a**"), "a*"),
        ("a*b", ("a*b", "a*bb", "a**b"), "a*b"),  # exactly its name, though it looks like a pattern
        ("axb", ("a*b", "*"), "a*b"),
        ("Nightly", ("nightly", "night*"), None),
        ("a.b", ("a.b*",), "a.b*"),
        ("axb", ("a.b*",), None),
        ("a[1]", ("a[1]*",), "a[1]*"),
        ("a\nb", ("a?b",), "a?b"),
        ("", ("*",), "*"),
        ("", ("?",), None),
        ("", (), None),
        ("x", (), None),
    ],
)
def test_the_most_special_rule_decides(group: str, patterns: tuple[str, ...], winner: str | None) -> None:
    assert decides(group, *patterns) == winner


def test_what_no_rule_fits_is_allowed_nothing() -> None:
    rules = allowed_lags({"nightly-*": 10_000, "nightly-audit": 0})
    assert [rules.of(group) for group in ("nightly-a", "nightly-audit", "daily-a")] == [10_000, 0, 0]
    assert allowed_lags({"nightly-*": 10_000, "nightly-audit": 0}) is rules


_LETTERS = st.text("ab.[*?", max_size=8)


@given(st.text("ab.[", max_size=10), st.lists(_LETTERS, max_size=5, unique=True))
def test_it_fits_what_a_shell_would_fit(group: str, patterns: list[str]) -> None:
    """With the brackets of a shell taken as they stand."""
    fits = {p for p in patterns if p == group or fnmatchcase(group, p.replace("[", "[[]"))}
    winner = decides(group, *patterns)
    assert (winner in fits) if fits else winner is None
    if group in patterns:
        assert winner == group


def test_no_pattern_is_slow() -> None:
    """5,000 groups and 100 rules that nearly fit, each with many places to try; a backtracking match never ends."""
    hostile = {"*a" * n + "*b": n for n in range(28, 128)}
    names = [f"{'a' * 200}-{n}" for n in range(5000)]
    rules = allowed_lags(hostile)
    begun = time.process_time()
    assert not any(rules.of(name) for name in names[:500])
    assert time.process_time() - begun < 5
    usual = allowed_lags({f"team-{n}-*": n for n in range(100)})
    begun = time.process_time()
    assert sum(usual.of(f"team-{n % 100}-reader-{n}") for n in range(5000)) == 50 * sum(range(100))
    assert time.process_time() - begun < 2
