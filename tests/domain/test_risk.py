"""The risk floor: what weighs how much, and that nothing more or unknown ever lowers it."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.risk import Floor, Level, RiskFacts, floor, level_of

Number = TypeVar("Number", float, int)

NOTHING = RiskFacts(bytes_share=0.0, partitions_share=0.0)

shares = st.none() | st.floats(0, 1)
facts = st.builds(
    RiskFacts,
    bytes_share=shares,
    partitions_share=shares,
    rf_decreases=st.integers(0, 100),
    internal_topics=st.integers(0, 20),
    spread_worse=st.none() | st.integers(0, 100),
    racks_on_one_broker=st.lists(st.sampled_from("abcd"), max_size=4, unique=True).map(tuple),
    irreversible=st.lists(st.just("deletes data."), max_size=3).map(tuple),
)


def said(found: Floor) -> list[str]:
    return [f"+{reason.points} {reason.text}" for reason in found.reasons]


def test_draining_a_broker_as_the_review_page_shows_it() -> None:
    found = floor(RiskFacts(0.164, 230 / 478, internal_topics=2, racks_on_one_broker=("eu-1c",)))
    assert said(found) == [
        "+14 moves 16 % of the bytes",
        "+10 touches 48 % of the partitions",
        "+6 two internal topics",
        "+4 eu-1c left with one broker",
    ]
    assert (found.points, found.level) == (34, Level.MEDIUM)


def test_nothing_is_no_risk() -> None:
    assert floor(NOTHING) == Floor(0, ())
    assert floor(NOTHING).level is Level.LOW


def test_what_is_not_known_is_said_and_high() -> None:
    found = floor(RiskFacts(None, None, spread_worse=None))
    assert said(found) == [
        "+35 how many bytes move is not known",
        "+20 how many of the partitions it touches is not known",
        "+40 whether the rack spread gets worse is not known",
    ]
    assert found.level is Level.HIGH
    assert level_of(None) is Level.HIGH


@pytest.mark.parametrize(("partitions", "level"), [(1, Level.MEDIUM), (20, Level.HIGH)])
def test_losing_replicas_for_good_is_never_low(partitions: int, level: Level) -> None:
    found = floor(replace(NOTHING, rf_decreases=partitions))
    assert found.level is level
    assert said(floor(replace(NOTHING, rf_decreases=1))) == ["+41 1 partition ends with fewer replicas"]


def test_a_worse_rack_spread_weighs_heavily() -> None:
    assert said(floor(replace(NOTHING, spread_worse=4))) == ["+24 4 partitions are spread over racks worse"]
    assert floor(replace(NOTHING, spread_worse=5)).level is Level.MEDIUM


def test_what_no_rollback_brings_back_is_never_low() -> None:
    found = floor(replace(NOTHING, irreversible=("the topic's data is deleted",)))
    assert (said(found), found.level) == (["+30 the topic's data is deleted"], Level.MEDIUM)


@given(facts)
def test_it_is_between_0_and_100_and_every_reason_has_points(given_facts: RiskFacts) -> None:
    found = floor(given_facts)
    assert 0 <= found.points <= 100
    assert found.points == min(100, sum(reason.points for reason in found.reasons))
    assert all(reason.points > 0 and reason.text for reason in found.reasons)


@given(facts, facts)
def test_more_of_anything_never_lowers_it(one: RiskFacts, other: RiskFacts) -> None:
    """The worse of two in every respect is at least as risky as either."""
    worse = RiskFacts(
        bytes_share=_worse(one.bytes_share, other.bytes_share),
        partitions_share=_worse(one.partitions_share, other.partitions_share),
        rf_decreases=max(one.rf_decreases, other.rf_decreases),
        internal_topics=max(one.internal_topics, other.internal_topics),
        spread_worse=_worse(one.spread_worse, other.spread_worse),
        racks_on_one_broker=tuple(sorted({*one.racks_on_one_broker, *other.racks_on_one_broker})),
        irreversible=max(one.irreversible, other.irreversible, key=len),
    )
    assert floor(worse).points >= max(floor(one).points, floor(other).points)


def _worse(one: Number | None, other: Number | None) -> Number | None:
    return None if one is None or other is None else max(one, other)
