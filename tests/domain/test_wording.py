"""Durations and counts in words."""

from __future__ import annotations

import pytest

from kafkadash.domain.wording import count, duration, listed, long_duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 s"),
        (59.99, "59 s"),
        (60, "1 min"),
        (252, "4 min 12 s"),
        (3599, "59 min 59 s"),
        (5520, "1 h 32 min"),
        (86_399, "23 h 59 min"),
        (788_400, "9 d 3 h"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(8, "8 s"), (779, "12 min"), (7199, "119 min"), (7200, "2 h"), (788_400, "9 days")]
)
def test_a_sentence_gets_one_unit(seconds: float, words: str) -> None:
    assert long_duration(seconds) == words


def test_counts_and_lists_read_as_english() -> None:
    assert count(1, "partition") == "1 partition"
    assert count(2310, "partition") == "2,310 partitions"
    assert count(2, "address", "addresses") == "2 addresses"
    assert [listed(list("abc")[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
