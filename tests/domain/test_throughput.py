"""The history of a run's rates: bounded however long it takes, and still true."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from kafkadash.domain.run_memory import Lane
from kafkadash.domain.run_progress import BrokerNow, Direction, RunNow
from kafkadash.domain.throughput import MOST_LANES, MOST_POINTS, History, sampled
from tests.domain.executor_cluster import START

MB = 1_000_000
INTO_6: Lane = (6, Direction.IN)


def now(seconds: float, throttle: int = 60 * MB, binding: Lane | None = INTO_6, brokers: int = 3) -> RunNow:
    lanes = tuple(BrokerNow(b, Direction.IN, (b + 1) * MB, 0) for b in range(6, 6 + brokers))
    return RunNow(
        START + timedelta(seconds=seconds), None, None, None, binding=binding, brokers=lanes, throttle=throttle
    )


def history(seconds: int, every: int = 2, throttle_at: int | None = None) -> History:
    found = History()
    for at in range(0, seconds, every):
        throttle = 40 * MB if throttle_at is not None and at >= throttle_at else 60 * MB
        found = sampled(found, now(at, throttle), {INTO_6: at * 1.0}, at * 2.0)
    return found


def test_history__four_minutes__has_a_point_each_quarter_of_a_minute() -> None:
    found = history(240)

    assert len(found.points) == pytest.approx(240 / 15, abs=2)
    assert found.line(INTO_6)[-1] == pytest.approx(found.points[-1].at - START.timestamp())


def test_history__ten_hours__is_bounded_and_covers_all_of_it() -> None:
    found = history(36_000, every=10)

    assert len(found.points) <= MOST_POINTS
    assert found.points[0].at - START.timestamp() < 600
    assert found.points[-1].at - START.timestamp() > 35_500
    assert len(json.dumps(found.as_json())) < 30_000
    values = found.line(INTO_6)
    assert values == tuple(sorted(values, key=lambda value: value or 0))


def test_history__throttle_is_changed__marks_it_once() -> None:
    found = history(600, throttle_at=301)

    assert [(mark.before, mark.after) for mark in found.marks] == [(60 * MB, 40 * MB)]
    assert found.marks[0].at - START.timestamp() == pytest.approx(302)
    assert {point.throttle for point in found.points} == {60 * MB, 40 * MB}


def test_history__changed_back_between_two_points__marks_both() -> None:
    found = sampled(
        sampled(sampled(history(32), now(34, 40 * MB), {}, 0.0), now(36, 40 * MB), {}, 0.0), now(38), {}, 0.0
    )

    assert [mark.after for mark in found.marks] == [40 * MB, 60 * MB]


def test_history__hundreds_of_brokers__keeps_the_largest_and_what_binds_later() -> None:
    found = sampled(History(), now(0, brokers=300), {}, None)
    found = sampled(found, now(20, binding=(6, Direction.OUT), brokers=300), {}, None)

    assert len(found.lanes) <= MOST_LANES
    assert (305, Direction.IN) in found.lanes
    assert (6, Direction.OUT) in found.lanes
    assert found.line((6, Direction.OUT))[0] is None


def test_history__stored_and_read__is_the_same() -> None:
    found = history(600, throttle_at=300)

    assert History.from_json(json.loads(json.dumps(found.as_json()))) == found
    assert History.from_json({"format": 99}) is None
