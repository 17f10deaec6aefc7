"""Percent, rate and time left of a copy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.progress import RateMeter, bytes_per_second, copied_percent, seconds_left


@pytest.mark.parametrize(
    ("log_start", "leader_end", "replica_end", "expected"),
    [
        (0, 12000, 10947, 91.225),
        (0, 12000, 0, 0.0),
        (0, 12000, 12000, 100.0),
        (4000, 12000, 4000, 0.0),
        (4000, 12000, 8000, 50.0),
    ],
)
def test_percent__counts_records_between_log_start_and_leader_end(
    log_start: int, leader_end: int, replica_end: int, expected: float
) -> None:
    assert copied_percent(log_start, leader_end, replica_end) == pytest.approx(expected)


def test_percent__replica_read_after_leader_while_producing__is_not_above_100() -> None:
    assert copied_percent(0, 12000, 12050) == 100.0


def test_percent__replica_has_not_reached_the_log_start__is_not_below_0() -> None:
    assert copied_percent(4000, 12000, 0) == 0.0


def test_percent__empty_log__is_complete_once_the_replica_is_at_the_same_place() -> None:
    assert copied_percent(700, 700, 700) == 100.0
    assert copied_percent(700, 700, 0) == 0.0


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12))
def test_percent__any_offsets__stays_between_0_and_100(start: int, end: int, own: int) -> None:
    assert 0.0 <= copied_percent(start, end, own) <= 100.0


def test_percent__producers_outrun_a_stalled_copy__falls() -> None:
    assert copied_percent(0, 2000, 1000) < copied_percent(0, 1000, 1000)


def meter_after(rate: float, seconds: int, step: int = 2) -> RateMeter:
    meter = RateMeter.start(0.0, 0)
    for t in range(step, seconds + 1, step):
        meter = meter.add(float(t), round(rate * t))
    return meter


def test_rate__before_three_samples_and_15_seconds__is_not_known() -> None:
    assert RateMeter.start(0.0, 5).per_second() is None
    assert RateMeter.start(0.0, 0).add(20.0, 100).per_second() is None
    assert meter_after(1000, 14).per_second() is None
    assert meter_after(1000, 16).per_second() is not None


@given(st.floats(1.0, 1e6), st.integers(16, 600))
def test_rate__steady_growth__is_that_growth_however_young_the_meter(rate: float, seconds: int) -> None:
    measured = meter_after(rate, seconds).per_second()
    assert measured is not None
    assert math.isclose(measured, rate, rel_tol=0.05, abs_tol=0.6)


def test_rate__copy_that_stops__falls_by_half_each_minute() -> None:
    meter = meter_after(1000, 600)
    before = meter.per_second()
    stalled = meter
    for t in range(602, 661, 2):
        stalled = stalled.add(float(t), meter.value)
    after = stalled.per_second()
    assert before is not None
    assert after is not None
    assert after == pytest.approx(before / 2, rel=0.02)


def test_rate__log_end_falls_back__starts_a_new_measurement() -> None:
    again = meter_after(1000, 60).add(62.0, 10)
    assert again.per_second() is None
    assert again.samples == 1


def test_rate__same_moment_twice__changes_nothing() -> None:
    meter = meter_after(1000, 30)
    assert meter.add(30.0, meter.value + 500) == meter


def test_rate__survives_being_stored() -> None:
    meter = meter_after(1234, 44)
    assert RateMeter.from_list(meter.as_list()) == meter


def test_bytes_per_second__is_unknown_when_a_part_is() -> None:
    assert bytes_per_second(10.0, 1000, 100) == pytest.approx(100.0)
    assert bytes_per_second(None, 1000, 100) is None
    assert bytes_per_second(10.0, None, 100) is None
    assert bytes_per_second(10.0, 1000, 0) is None


def test_seconds_left__is_what_remains_over_the_rate_and_not_elapsed_time_scaled_up() -> None:
    assert seconds_left(400_000_000, 75.0, 5_000_000.0) == pytest.approx(20.0)
    assert seconds_left(400_000_000, 100.0, 0.0) == 0.0
    assert seconds_left(400_000_000, 50.0, 0.0) == math.inf
    assert seconds_left(None, 50.0, 1.0) is None
    assert seconds_left(1, None, 1.0) is None
    assert seconds_left(1, 50.0, None) is None
