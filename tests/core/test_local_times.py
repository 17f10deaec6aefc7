"""Local times that people type, also of days on which clocks are set."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kafkadash.core.local_times import LocalTimeFault, read_local_time

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("typed", "zone", "expected"),
    [
        ("2026-11-21T04:00", "UTC", datetime(2026, 11, 21, 4, tzinfo=UTC)),
        (" 2026-11-21T04:00 ", BERLIN, datetime(2026, 11, 21, 3, tzinfo=UTC)),
        ("2026-11-21T04:00+02:00", BERLIN, LocalTimeFault.UNREADABLE),
        ("noon", BERLIN, LocalTimeFault.UNREADABLE),
        ("0001-01-01T00:00", BERLIN, LocalTimeFault.UNREADABLE),
        ("2027-03-28T02:30", BERLIN, LocalTimeFault.SKIPPED),
        ("2027-03-28T03:30", BERLIN, datetime(2027, 3, 28, 1, 30, tzinfo=UTC)),
    ],
)
def test_local_time__that_is_typed__is_a_moment_or_refused(
    typed: str, zone: str, expected: datetime | LocalTimeFault
) -> None:
    assert read_local_time(typed, zone) == expected


@pytest.mark.parametrize(("later", "hour"), [(False, 0), (True, 1)])
def test_local_time__that_occurs_twice__is_the_one_that_is_meant(later: bool, hour: int) -> None:
    assert read_local_time("2026-10-25T02:30", BERLIN, later=later) == datetime(2026, 10, 25, hour, 30, tzinfo=UTC)
