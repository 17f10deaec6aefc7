"""Durations, sizes and lists in words."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.core.formatting import (
    LARGEST_INT,
    LARGEST_LONG,
    format_duration,
    format_size,
    join_items,
    long_duration,
    read_whole_number,
    round_duration,
    round_size,
)
from kafkadash.core.racks import judge_spread, racks_known, short_labels

pytestmark = pytest.mark.domain


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
    assert format_duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(8, "8 s"), (779, "12 min"), (7199, "119 min"), (7200, "2 h"), (788_400, "9 days")]
)
def test_a_sentence_gets_one_unit(seconds: float, words: str) -> None:
    assert long_duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "rounded"), [(-1, 0), (8.9, 8), (779, 720), (7199, 7140), (7300, 7200), (788_400, 777_600)]
)
def test_a_rounded_duration_reads_the_same(seconds: float, rounded: int) -> None:
    assert round_duration(seconds) == rounded
    assert long_duration(rounded) == long_duration(seconds)


def test_lists_read_as_english() -> None:
    assert [join_items(list("abc")[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


@pytest.mark.parametrize("number", [0, 7, 999, 1000, 44_444, 40_000_000, 49_999_999, 999_999_999, 123_456_789_012])
def test_a_rounded_size_reads_the_same_and_is_never_made_nothing(number: int) -> None:
    rounded = round_size(number)
    assert (format_size(rounded), bool(rounded)) == (format_size(number), bool(number))
    assert "1,000" not in format_size(number)


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


@pytest.mark.parametrize(
    ("racks", "labels"),
    [
        (["eu-1a", "eu-1b"], {"eu-1a": "a", "eu-1b": "b"}),
        (["hall 1", "hall 12"], {"hall 1": "hall 1", "hall 12": "hall 12"}),
        (["Halle Süd", "Halle Nord"], {"Halle Süd": "Süd", "Halle Nord": "Nord"}),
        (["eu-west-1a", "us-east-1b"], {"eu-west-1a": "eu-west-1a", "us-east-1b": "us-east-1b"}),
        (["", "a"], {"": "", "a": "a"}),
        (["only"], {"only": "only"}),
        ([], {}),
    ],
)
def test_racks_are_told_apart_by_as_little_as_does(racks: list[str], labels: Mapping[str, str]) -> None:
    assert short_labels(racks) == labels


RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}


@pytest.mark.parametrize(
    ("replicas", "rack_of", "racks", "moves", "missing", "crowded"),
    [
        ([1, 2, 3], RACKS, 3, 0, 0, ()),
        ([1, 4, 2], RACKS, 3, 1, 1, ("a",)),
        ([1, 4], RACKS, 3, 1, 1, ("a",)),
        ([1, 2, 3, 4], RACKS, 3, 0, 0, ()),
        ([1, 4, 2, 5, 3], RACKS, 3, 0, 0, ()),
        ([0, 1], {0: "x", 1: "x", 2: "y"}, 2, 1, 1, ("x",)),
        ([0, 1, 2], {0: "x", 1: "x", 2: "y"}, 2, 0, 0, ()),
        ([1, 4, 9], RACKS, 3, 1, 1, ("a",)),
        ([9], RACKS, 3, 0, 0, ()),
        ([], RACKS, 3, 0, 0, ()),
    ],
)
def test_spread(
    replicas: list[int],
    rack_of: dict[int, str],
    racks: int,
    moves: int,
    missing: int,
    crowded: tuple[str, ...],
) -> None:
    seen = judge_spread(replicas, rack_of, racks)
    assert (seen.moves, seen.missing, seen.crowded) == (moves, missing, crowded)
    assert seen.violates == (moves > 0)


def test_racks_are_known_only_if_all_brokers_name_one_and_there_are_two() -> None:
    assert racks_known(["a", "b"])
    assert racks_known(["", "b"])
    assert not racks_known(["a", None])
    assert not racks_known(["a", "a"])
    assert not racks_known([])
