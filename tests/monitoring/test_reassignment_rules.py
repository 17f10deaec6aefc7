"""Percent, rate and time left of a copy.

Which reassignment is which, and how one ended.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.monitoring.reassignments.collector import (
    MoveContinuity,
    MoveEnd,
    MoveSighting,
    PartitionNow,
    ended_as,
    judge_continuity,
    replaced_as,
)
from kafkadash.monitoring.reassignments.progress import RateMeter, bytes_per_second, copied_percent, seconds_left

pytestmark = pytest.mark.domain


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
    assert unpack_dataclass(RateMeter, pack_dataclass(meter)) == meter


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


def sight(
    replicas: tuple[int, ...] = (4, 2, 3, 1),
    adding: tuple[int, ...] = (4,),
    removing: tuple[int, ...] = (1,),
    epoch: int | None = 7,
    ends: dict[int, int] | None = None,
) -> MoveSighting:
    return MoveSighting(replicas, frozenset(adding), frozenset(removing), epoch, ends or {})


def now(*replicas: int, topic_id: str = "id-1", isr: tuple[int, ...] = ()) -> PartitionNow:
    return PartitionNow(topic_id, replicas, frozenset(isr or replicas))


def test_continuity__same_sets_and_epoch__is_the_same() -> None:
    assert judge_continuity(sight(ends={4: 900}), sight(ends={4: 100})) is MoveContinuity.SAME


def test_continuity__leader_elected_while_copying__is_the_same() -> None:
    assert judge_continuity(sight(epoch=7, ends={4: 100}), sight(epoch=8, ends={4: 100})) is MoveContinuity.SAME


def test_continuity__new_epoch_and_the_copy_started_over__is_another_one() -> None:
    assert judge_continuity(sight(epoch=7, ends={4: 900}), sight(epoch=9, ends={4: 0})) is MoveContinuity.RESTARTED


def test_continuity__new_epoch_and_the_broker_did_not_answer__is_no_evidence_for_another_one() -> None:
    assert judge_continuity(sight(epoch=7, ends={4: 900}), sight(epoch=9)) is MoveContinuity.SAME


def test_continuity__retargeted__supersedes_the_old_one() -> None:
    assert judge_continuity(sight(), sight(replicas=(5, 2, 3, 1), adding=(5,))) is MoveContinuity.SUPERSEDED


def test_replaced__the_new_one_starts_from_the_old_target__the_old_one_was_completed() -> None:
    """[1, 2, 3] → [4, 2, 3] was through when somebody moved on to [4, 5, 3]."""
    assert replaced_as(sight(), sight(replicas=(4, 5, 3, 2), adding=(5,), removing=(2,))) is MoveEnd.COMPLETED


def test_replaced__the_new_one_starts_from_where_the_old_one_did__the_old_one_was_superseded() -> None:
    """[1, 2, 3] → [4, 2, 3] was under way when somebody asked for [4, 5, 3], or for [5, 2, 3]."""
    assert replaced_as(sight(), sight(replicas=(4, 5, 3, 1, 2), adding=(4, 5), removing=(1, 2))) is MoveEnd.SUPERSEDED
    assert replaced_as(sight(), sight(replicas=(5, 2, 3, 1), adding=(5,))) is MoveEnd.SUPERSEDED


def end(last: MoveSighting, partition: PartitionNow | None, *, settled: bool = False) -> MoveEnd | None:
    return ended_as(last, "id-1", partition, settled=settled)


def test_end__target_reached__is_completed_in_whatever_order() -> None:
    assert end(sight(), now(4, 2, 3)) is MoveEnd.COMPLETED
    assert end(sight(), now(2, 4, 3)) is MoveEnd.COMPLETED


def test_end__original_set_again__is_cancelled_though_kafka_does_not_restore_the_order() -> None:
    original_was_3_1_2 = sight(replicas=(2, 5, 3, 1), adding=(5,), removing=(1,))
    assert end(original_was_3_1_2, now(2, 3, 1)) is MoveEnd.CANCELLED


def test_end__left_the_listing_while_metadata_still_shows_both_sets__is_not_decided_yet() -> None:
    assert end(sight(), now(4, 2, 3, 1)) is None


def test_end__both_sets_stay__somebody_made_them_the_target() -> None:
    assert end(sight(), now(4, 2, 3, 1), settled=True) is MoveEnd.SUPERSEDED


def test_end__another_set__was_changed_by_somebody_else() -> None:
    assert end(sight(), now(2, 3, 5)) is MoveEnd.SUPERSEDED


@pytest.mark.parametrize("partition", [None, now(1, 2, 3, topic_id="id-2")])
def test_end__topic_gone_or_recreated__says_so(partition: PartitionNow | None) -> None:
    assert end(sight(), partition) is MoveEnd.TOPIC_DELETED


def test_end__replication_factor_raised_then_cancelled__is_cancelled() -> None:
    grown = sight(replicas=(1, 2, 3), adding=(3,), removing=())
    assert end(grown, now(1, 2)) is MoveEnd.CANCELLED


def test_end__replication_factor_raised__a_broker_that_lags_would_tell_the_same_as_success() -> None:
    grown = sight(replicas=(1, 2, 3), adding=(3,), removing=())
    assert end(grown, now(1, 2, 3)) is None
    assert end(grown, now(1, 2, 3), settled=True) is MoveEnd.COMPLETED


def test_end__replication_factor_lowered__a_broker_that_lags_would_tell_the_same_as_a_cancel() -> None:
    shrunk = sight(replicas=(1, 2, 3), adding=(), removing=(3,))
    assert end(shrunk, now(1, 2, 3)) is None
    assert end(shrunk, now(1, 2, 3), settled=True) is MoveEnd.CANCELLED
    assert end(shrunk, now(1, 2)) is MoveEnd.COMPLETED
