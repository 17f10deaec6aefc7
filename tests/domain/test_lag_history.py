"""Lag over time: lines that keep the worst, gaps that stay gaps, and the sentence above the chart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.lag_history import MOST_LINES, LagBuckets, coarser, lag_lines, seconds, summary

BUCKETS = 20


def history(
    lag: dict[int, dict[int, int]], voters: set[int], heard: set[int] | None = None, watched_from: int = 0
) -> LagBuckets:
    every = set(range(BUCKETS))
    return LagBuckets(
        0, 60, BUCKETS, frozenset(voters), lag, frozenset(every if heard is None else heard), watched_from
    )


def said(seen: LagBuckets) -> str:
    return summary(seen, lag_lines(seen), {bucket: f"00:{bucket:02}" for bucket in range(BUCKETS + 1)})


LAGS = st.dictionaries(
    st.integers(1, 40),
    st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(0, 60_000), max_size=BUCKETS),
    max_size=40,
)


@given(LAGS, st.sets(st.integers(1, 5)))
def test_no_spike_is_lost_whatever_shares_a_line(lag: dict[int, dict[int, int]], voters: set[int]) -> None:
    seen = history(lag, voters)
    lines = lag_lines(seen)
    assert len(lines) <= max(MOST_LINES, len(voters) + 1)
    for bucket in range(BUCKETS):
        worst = max((own[bucket] for own in lag.values() if bucket in own), default=None)
        drawn = max((v for line in lines if (v := line.values[bucket]) is not None), default=None)
        assert drawn == worst
        for size in (1, 3, 7):
            table = [coarser(line.values, size)[bucket // size] for line in lines]
            assert worst is None or max(v for v in table if v is not None) >= worst


@given(LAGS)
def test_what_is_not_known_is_a_gap(lag: dict[int, dict[int, int]]) -> None:
    few = dict(list(lag.items())[: MOST_LINES - 1])
    for line in lag_lines(history(few, set())):
        own = few[int(line.label.removeprefix("broker "))]
        assert [bucket for bucket, value in enumerate(line.values) if value is None] == [
            bucket for bucket in range(BUCKETS) if bucket not in own
        ]


def steady(ms: int) -> dict[int, int]:
    return dict.fromkeys(range(BUCKETS), ms)


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (history({1: steady(210), 2: steady(340)}, {1, 2}), "Below 0.4 s throughout."),
        (
            history({1: steady(210), 5: steady(300) | {7: 2100, 8: 2400, 9: 2000}}, {1}),
            "Below 0.3 s throughout, but for broker 5: up to 2.4 s, 00:07 to 00:10.",
        ),
        (
            history({5: steady(3000), 6: steady(9000)}, set()),
            "Broker 6: up to 9.0 s, 00:00 to 00:20; broker 5 lagged too.",
        ),
        (
            history({1: steady(210)}, {1}, heard=set(range(5, 18)), watched_from=5),
            "Below 0.3 s throughout. In 2 of 15 intervals the controllers did not answer.",
        ),
        (history({}, set(), heard=set()), "No answer of the controllers is known of this time."),
        (history({1: {}}, {1}), "No lag is known in this time: the leader told no times of others."),
    ],
)
def test_the_sentence(seen: LagBuckets, sentence: str) -> None:
    assert said(seen) == sentence


@pytest.mark.parametrize(
    ("ms", "words"), [(0, "0.0 s"), (640, "0.6 s"), (12_400, "12 s"), (119_999, "119 s"), (120_000, "2 min")]
)
def test_a_lag_in_words(ms: int, words: str) -> None:
    assert seconds(ms) == words
