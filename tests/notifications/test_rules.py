"""Which routes take which findings, and when a storm becomes a digest."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest

from kafkadash.notifications.rules import (
    STORM_EVENTS,
    STORM_WITHIN,
    RouteFilter,
    RouteHours,
    RouteTraffic,
    SentChanges,
)

pytestmark = pytest.mark.domain
SATURDAY = datetime(2026, 11, 21, 2, 3, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "at", "inside"),
    [
        (RouteHours(), SATURDAY, True),
        (RouteHours(begins=time(9), ends=time(17)), SATURDAY, False),
        (RouteHours(begins=time(1), ends=time(2, 3)), SATURDAY, False),
        (RouteHours(begins=time(1), ends=time(2, 4)), SATURDAY, True),
        (RouteHours(begins=time(22), ends=time(6)), SATURDAY, True),
        (RouteHours(begins=time(22), ends=time(2)), SATURDAY, False),
        (RouteHours(begins=time(22), ends=time(6), weekdays=frozenset({4})), SATURDAY, True),
        (RouteHours(begins=time(22), ends=time(6), weekdays=frozenset({5})), SATURDAY, False),
        (RouteHours("America/New_York", frozenset({4})), SATURDAY, True),
        (RouteHours("America/New_York", frozenset({5})), SATURDAY, False),
        (RouteHours("Mars/Olympus", frozenset({1}), time(9), time(9, 1)), SATURDAY, True),
        # 02:30 does not exist in Berlin on this day: the clock goes from 02:00 to 03:00.
        (RouteHours("Europe/Berlin", begins=time(2, 30), ends=time(3)), datetime(2026, 3, 29, 1, tzinfo=UTC), False),
        (RouteHours("Europe/Berlin", begins=time(2, 30), ends=time(4)), datetime(2026, 3, 29, 1, tzinfo=UTC), True),
    ],
)
def test_hours(hours: RouteHours, at: datetime, inside: bool) -> None:
    assert hours.include(at) is inside


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        (RouteFilter(), True),
        (RouteFilter(cluster=1), True),
        (RouteFilter(cluster=2), False),
        (RouteFilter(findings=False, changes=SentChanges.ALL), False),
        (RouteFilter(severity="critical"), False),
        (RouteFilter(severity="unknown"), True),
        (RouteFilter(kinds=frozenset({"unreachable"})), True),
        (RouteFilter(kinds=frozenset({"offline"})), False),
        (RouteFilter(hours=RouteHours(begins=time(9), ends=time(17))), False),
    ],
)
def test_findings(wanted: RouteFilter, taken: bool) -> None:
    assert wanted.takes_finding(1, "unreachable", "unknown", SATURDAY) is taken


def test_what_is_not_monitored_is_sent_to_nobody() -> None:
    assert not RouteFilter().takes_finding(1, "collection-off", "maintenance", SATURDAY)


@pytest.mark.parametrize(
    ("wanted", "waiting", "others"),
    [
        (RouteFilter(), False, False),
        (RouteFilter(changes=SentChanges.WAITING), True, False),
        (RouteFilter(changes=SentChanges.ALL), True, True),
        (RouteFilter(cluster=2, changes=SentChanges.ALL), False, False),
    ],
)
def test_changes(wanted: RouteFilter, waiting: bool, others: bool) -> None:
    taken = tuple(wanted.takes_change(1, SATURDAY, waits=waits) for waits in (True, False))
    assert taken == (waiting, others)


def test_a_storm_begins_with_one_digest_now_and_goes_on_with_one_a_minute() -> None:
    assert RouteTraffic().digest_at(STORM_EVENTS, SATURDAY) is None
    assert RouteTraffic().digest_at(STORM_EVENTS + 1, SATURDAY) == SATURDAY
    newest = SATURDAY - timedelta(seconds=20)
    assert RouteTraffic(4, newest).digest_at(STORM_EVENTS - 4, SATURDAY) is None
    assert RouteTraffic(4, newest).digest_at(STORM_EVENTS - 3, SATURDAY) == newest + STORM_WITHIN
