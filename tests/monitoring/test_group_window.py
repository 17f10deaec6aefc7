"""The packed samples of a group: what goes in comes out, whatever is missing or however large."""

from __future__ import annotations

import random
import zlib
from array import array

import pytest

from kafkadash.monitoring.groups.names import key_of, key_of_slug, slug_of
from kafkadash.monitoring.groups.rules import WINDOW
from kafkadash.monitoring.groups.window import (
    NOT_KNOWN,
    GroupSample,
    GroupSamples,
    append_sample,
    build_sample,
    pack_window,
    unpack_window,
)

GREATEST = 2**63 - 1


def a_look(committed: dict[str, dict[int, int]], end: int = 1000, start: int = 5) -> GroupSample:
    spans = {topic: dict.fromkeys(partitions, (start, end, 0.0)) for topic, partitions in committed.items()}
    return build_sample(committed, {}, spans)


def looked(*looks: GroupSample) -> GroupSamples:
    window = None
    for number, one in enumerate(looks):
        window = append_sample(window, one, 1000.9 + 30 * number)
    assert window is not None
    return window


def test_what_is_packed__comes_out_again() -> None:
    chance = random.Random(7)
    window = looked(
        *(
            a_look({"a": {n: chance.randrange(10**12) for n in range(40)}, "ü b": {7: n}}, 10**12 + n)
            for n in range(WINDOW)
        )
    )
    assert unpack_window(pack_window(window)).same(window)


@pytest.mark.parametrize("samples", [1, 3, WINDOW, WINDOW + 5])
def test_a_window__holds_at_most_ten_samples_and_drops_the_oldest(samples: int) -> None:
    window = looked(*(a_look({"a": {0: n}}) for n in range(samples)))
    assert [column[0] for column in window.committed] == list(range(samples))[-WINDOW:]
    assert unpack_window(pack_window(window)).same(window)


def test_numbers_whose_differences_overflow__are_packed_as_they_are() -> None:
    window = looked(a_look({"a": {0: GREATEST}}), build_sample({}, {"a": [0]}, {}))
    assert window.committed == (array("q", [GREATEST]), array("q", [NOT_KNOWN]))
    assert unpack_window(pack_window(window)).same(window)


def test_a_group_without_partitions__has_an_empty_window() -> None:
    window = looked(build_sample({}, {}, {}), build_sample({}, {}, {}))
    assert unpack_window(pack_window(window)).same(window)
    assert list(window.by_partition()) == []


def test_a_partition_that_joins__has_no_older_samples_and_one_that_leaves_is_dropped() -> None:
    window = looked(a_look({"a": {0: 1, 1: 11}}), a_look({"a": {1: 12, 2: 22}}))
    assert window.keys == (("a", 1), ("a", 2))
    assert [list(column) for column in window.committed] == [[11, NOT_KNOWN], [12, 22]]


def test_a_window__knows_when_each_commit_moved_and_since_when_it_looks() -> None:
    at = [a_look({"a": {0: 5}}), a_look({"a": {0: 6}}), a_look({"a": {0: 6, 1: 3}}), a_look({"a": {0: 6, 1: 3}})]
    window = looked(*at)
    assert list(window.moved) == [1030, NOT_KNOWN]
    assert list(window.since) == [1000, 1060]


def test_a_partition_that_is_assigned_and_not_committed__is_looked_at_as_well() -> None:
    seen = build_sample({"a": {0: 5}}, {"a": [0, 1], "b": [3]}, {"a": {0: (0, 9, 0.0), 1: (2, 8, 0.0)}})
    assert seen.keys == (("a", 0), ("a", 1), ("b", 3))
    assert list(seen.committed) == [5, NOT_KNOWN, NOT_KNOWN]
    assert list(seen.ends) == [9, 8, NOT_KNOWN]
    assert list(seen.starts) == [0, 2, NOT_KNOWN]


def test_the_same_look_ten_times__is_the_same_window_from_then_on() -> None:
    window = looked(*[a_look({"a": {0: 1}})] * WINDOW)
    assert append_sample(window, a_look({"a": {0: 1}}), 9000).same(window)
    assert not append_sample(window, a_look({"a": {0: 2}}), 9000).same(window)
    assert not append_sample(window, a_look({"a": {0: 1}}, start=6), 9000).same(window)


def test_a_format_from_the_future__is_refused() -> None:
    packed = zlib.compress(b'{"format":2,"samples":0,"topics":[]}\n')
    with pytest.raises(ValueError, match="windows of format 2"):
        unpack_window(packed)


@pytest.mark.parametrize("name", ["invoice-writer", "a b", "grüße", "x.y", "Überweisung?#&%", "%2F"])
def test_a_name_that_an_address_keeps__is_its_own_address(name: str) -> None:
    assert slug_of(name) == name
    assert key_of_slug(slug_of(name)) == key_of(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "~" + "0" * 32, "~x", "tab\there", " a", "n" * 600])
def test_a_name_that_an_address_would_change__has_its_key_there(name: str) -> None:
    assert slug_of(name) == f"~{key_of(name)}"
    assert key_of_slug(slug_of(name)) == key_of(name)
