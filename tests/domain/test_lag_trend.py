"""Rates over a window of looks, and when nothing will be left."""

from __future__ import annotations

import pytest

from kafkadash.domain.lag_look import Look, beyond, lag_of, lost
from kafkadash.domain.lag_trend import Drain, Trend, trend


def looks(committed: list[int | None], ends: list[int | None], step: float = 10.0) -> list[Look]:
    return [Look(1000 + step * n, c, e) for n, (c, e) in enumerate(zip(committed, ends, strict=True))]


def test_rates_are_per_second_and_the_net_drains() -> None:
    seen = trend(looks([0, 1000, 2000], [9000, 9500, 10_000]), 8000)
    assert seen == Trend(100.0, 50.0, Drain.DRAINS, 160.0)
    assert seen.net == 50


@pytest.mark.parametrize(
    ("committed", "ends", "lag", "drain"),
    [
        ([500, 500], [600, 700], 200, Drain.NEVER),
        ([500, 500], [600, 600], 100, Drain.NEVER),  # net is zero
        ([0, 100], [5000, 5100], 5000, Drain.NEVER),
        ([0, 100], [50, 150], 50, Drain.KEEPS_UP),  # half of what is read between two looks
        ([0, 100], [100, 201], 101, Drain.NEVER),
        ([0, 100], [10, 100], 0, Drain.EMPTY),
        ([500], [600], 100, Drain.UNKNOWN),
        ([None, None], [600, 700], None, Drain.UNKNOWN),
        ([500, 510], [None, 700], 190, Drain.UNKNOWN),
        ([], [], None, Drain.UNKNOWN),
    ],
)
def test_what_becomes_of_it(committed: list[int | None], ends: list[int | None], lag: int | None, drain: Drain) -> None:
    seen = trend(looks(committed, ends), lag)
    assert seen.drain == drain
    assert seen.drain_s is None


def test_a_missing_look_is_no_zero() -> None:
    assert trend(looks([0, None, 200], [500, 600, None]), 300)[:2] == (10.0, 10.0)


def test_an_offset_that_was_set_back_begins_its_rate_anew() -> None:
    assert trend(looks([5000, 6000, 100, 200], [7000, 7000, 7000, 7000]), 6800).read == 10.0
    assert trend(looks([5000, 6000, 100], [7000, 7000, 7000]), 6900).read is None


def test_looks_at_one_moment_have_no_rate() -> None:
    assert trend(looks([1, 5], [9, 9], step=0.0), 4) == Trend(None, None, Drain.UNKNOWN)


@pytest.mark.parametrize(
    ("committed", "end", "lag", "over"),
    [(5, 9, 4, 0), (9, 9, 0, 0), (12, 9, None, 3), (None, 9, None, 0), (5, None, None, 0), (0, 0, 0, 0)],
)
def test_lag_is_known_or_not_and_never_negative(
    committed: int | None, end: int | None, lag: int | None, over: int
) -> None:
    assert lag_of(committed, end) == lag
    assert beyond(committed, end) == over


def test_what_was_deleted_before_it_was_committed_is_lost() -> None:
    assert [lost(100, 250), lost(250, 250), lost(300, 250), lost(None, 250), lost(100, None)] == [150, 0, 0, None, None]
