"""Throttles as people type them."""

from __future__ import annotations

import pytest

from kafkadash.reassign.rates import BadRate, both, bytes_per_second, megabytes


@pytest.mark.parametrize(
    ("typed", "rate"),
    [("60", 60_000_000), (" 2.5 ", 2_500_000), ("0.01", 10_000), ("60 MB/s", 60_000_000), ("0.0000015", 2)],
)
def test_a_number_of_megabytes_is_bytes_per_second(typed: str, rate: int) -> None:
    assert bytes_per_second(typed) == rate


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "Give a number of MB/s, for example 60."),
        ("0", "With a throttle of 0 nothing would ever arrive. Give a number of MB/s above 0, for example 60."),
        ("0.0000001", "With a throttle of 0 nothing would ever arrive. Give a number of MB/s above 0, for example 60."),
        ("-5", "A throttle is above 0: give a number of MB/s, for example 60."),
        ("−5", "A throttle is above 0: give a number of MB/s, for example 60."),
        ("fast", "“fast” is not a number. Give MB/s with a point for decimals, for example 60 or 2.5."),
        ("1,000", "“1,000” is not a number. Give MB/s with a point for decimals, for example 60 or 2.5."),
        ("1e3", "“1e3” is not a number. Give MB/s with a point for decimals, for example 60 or 2.5."),
        ("nan", "“nan” is not a number. Give MB/s with a point for decimals, for example 60 or 2.5."),
        ("٦٠x", "“٦٠x” is not a number. Give MB/s with a point for decimals, for example 60 or 2.5."),
        ("60000000", "That is more than 100,000 MB/s, which no broker reaches. Give MB/s, not bytes per second."),
    ],
)
def test_what_is_no_throttle_is_refused_with_what_would_be_one(typed: str, sentence: str) -> None:
    with pytest.raises(BadRate) as refused:
        bytes_per_second(typed)
    assert str(refused.value) == sentence


def test_a_rate_is_shown_exactly_and_without_zeros_behind_it() -> None:
    assert [megabytes(rate) for rate in (60_000_000, 2_500_000, 10_000, 1)] == ["60", "2.5", "0.01", "0.000001"]
    assert both(10_000) == "0.01 MB/s (10,000 bytes/s)"
