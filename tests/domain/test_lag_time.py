"""Time lag: read off the line of log ends over time, estimated before it, never from anybody else's clock."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.lag_time import EndPoint, How, TimeLag, compressed, time_lag


def line(*points: tuple[float, int]) -> list[EndPoint]:
    return [EndPoint(at, end) for at, end in points]


RISING = line((0, 400), (10, 500), (20, 700), (30, 1000))


@pytest.mark.parametrize(
    ("committed", "seconds"),
    [
        (1000, 0),  # nothing waits
        (700, 10),  # the next record was written right after 20 s, as far as is known
        (850, 5),  # half-way between two looks
        (600, 15),
        (400, 30),
    ],
)
def test_between_two_looks_it_is_measured(committed: int, seconds: float) -> None:
    assert time_lag(committed, RISING) == TimeLag(seconds)


def test_before_the_first_look_the_line_goes_on_through_first_and_last() -> None:
    """600 records in 30 s: 200 records before the first look are 10 s more."""
    assert time_lag(200, RISING) == TimeLag(40, How.ESTIMATED)


def test_a_stretch_without_writes_is_waited_from_its_end_on() -> None:
    """The record at 500 came after 40 s, not when the end first was 500."""
    flat = line((0, 400), (10, 500), (20, 500), (30, 500), (40, 500), (50, 600))
    assert time_lag(500, flat) == TimeLag(10)
    assert time_lag(550, flat) == TimeLag(5)
    assert time_lag(450, flat) == TimeLag(45)
    assert compressed(flat) == line((0, 400), (10, 500), (40, 500), (50, 600))


def test_nothing_written_while_it_was_watched_is_at_least_that_old() -> None:
    assert time_lag(90, line((0, 100), (10, 100), (60, 100))) == TimeLag(60, How.AT_LEAST)
    assert time_lag(100, line((0, 100), (10, 100), (60, 100))) == TimeLag(0)


@pytest.mark.parametrize(
    ("committed", "points"),
    [
        (None, RISING),  # no commit
        (1001, RISING),  # beyond the log end
        (10, []),
        (10, line((0, 20))),
        (10, line((0, 20), (0, 30))),  # one moment
        (10, line((0, 900), (10, 20))),  # made anew: only the last point is of this log
    ],
)
def test_what_cannot_be_known_is_not_said(committed: int | None, points: list[EndPoint]) -> None:
    assert time_lag(committed, points) is None


def test_points_of_a_log_that_was_made_anew_do_not_count() -> None:
    assert time_lag(50, line((0, 5000), (10, 6000), (20, 40), (30, 60), (40, 80))) == TimeLag(15)


def test_points_of_a_clock_that_was_set_back_do_not_count() -> None:
    assert time_lag(50, line((3600, 10), (3610, 30), (20, 40), (30, 60), (40, 80))) == TimeLag(15)


POINTS = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 50)), min_size=2, max_size=12).map(
    lambda steps: [
        EndPoint(float(sum(s for s, _ in steps[:n])), 100 + sum(e for _, e in steps[:n]))
        for n in range(1, len(steps) + 1)
    ]
)


@given(POINTS, st.integers(-100_000, 100_000))
def test_another_clock_makes_no_lag(points: list[EndPoint], skew: int) -> None:
    """All times are of one clock, so an hour of difference to anybody else's changes nothing."""
    for committed in (points[0].end - 5, points[0].end, points[-1].end):
        assert time_lag(committed, points) == time_lag(committed, [EndPoint(p.at + skew, p.end) for p in points])


@given(POINTS)
def test_it_grows_with_what_waits_and_is_never_negative(points: list[EndPoint]) -> None:
    last = points[-1].end
    lags = [time_lag(committed, points) for committed in range(last, last - 60, -1)]
    seconds = [lag.seconds for lag in lags if lag is not None]
    assert len(seconds) == len(lags)
    assert seconds[0] == 0
    assert all(before <= after + 1e-9 for before, after in pairwise(seconds))


@given(POINTS)
def test_leaving_out_the_middle_of_a_stretch_changes_nothing(points: list[EndPoint]) -> None:
    kept = compressed(points)
    assert kept[0] == points[0]
    assert kept[-1] == points[-1]
    for committed in range(points[0].end - 3, points[-1].end + 2):
        assert time_lag(committed, points) == time_lag(committed, kept)
