from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.whole_numbers import LARGEST_INT, LARGEST_LONG, read_whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), (" 12 ", 12), ("0" * 5000 + "7", 7), (str(LARGEST_LONG), LARGEST_LONG), ("00", 0)],
)
def test_numbers_are_read(text: str, number: int) -> None:
    assert read_whole_number(text) == number


@pytest.mark.parametrize(
    "text", ["", " ", "-1", "+1", "1.0", "1e3", "²", "٣", "1_000", str(LARGEST_LONG + 1), "9" * 5000]
)
def test_anything_else_is_none(text: str) -> None:
    assert read_whole_number(text) is None


def test_the_largest_number_can_be_smaller() -> None:
    assert read_whole_number(str(LARGEST_INT), LARGEST_INT) == LARGEST_INT
    assert read_whole_number(str(LARGEST_INT + 1), LARGEST_INT) is None


@given(st.text())
def test_no_text_raises(text: str) -> None:
    number = read_whole_number(text)
    assert number is None or 0 <= number <= LARGEST_LONG
