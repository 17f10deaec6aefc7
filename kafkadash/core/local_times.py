"""Local times that people type, as moments in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from zoneinfo import ZoneInfo


class LocalTimeFault(StrEnum):
    """Reasons why a text is no moment. ``SKIPPED``: clocks are set forward over it on that day."""

    UNREADABLE = "unreadable"
    SKIPPED = "skipped"


def read_local_time(typed: str, time_zone: str, *, later: bool = False) -> datetime | LocalTimeFault:
    """Return the moment in UTC. Of a time that occurs twice, when clocks are set back, the first one or the ``later``.

    ``time_zone`` is a known one, and ``typed`` an ISO 8601 time without an offset.
    """
    zone = ZoneInfo(time_zone)
    try:
        local = datetime.fromisoformat(typed.strip())
        if local.tzinfo is not None:
            return LocalTimeFault.UNREADABLE
        moment = local.replace(tzinfo=zone, fold=int(later)).astimezone(UTC)
        exists = moment.astimezone(zone).replace(tzinfo=None, fold=0) == local
    except (ValueError, OverflowError):
        return LocalTimeFault.UNREADABLE
    return moment if exists else LocalTimeFault.SKIPPED
