"""The tables below ``observe_rollup``: one for each day of minutes, month of hours and year of days.

Forgetting is dropping one; deleting seven million rows a day would leave as much behind to be tidied up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import connection, transaction

MINUTE, HOUR, DAY = 60, 3600, 86_400
_WAIT_MS = 2000  # for whoever reads the table now; the next turn tries again


def keeps() -> Mapping[int, timedelta]:
    """How long the rollups of each grain are kept."""
    return {
        MINUTE: timedelta(days=settings.KEEP_MINUTE_ROLLUPS_DAYS),
        HOUR: timedelta(days=settings.KEEP_HOUR_ROLLUPS_DAYS),
        DAY: timedelta(days=settings.KEEP_DAY_ROLLUPS_DAYS),
    }


def ensure(places: Iterable[tuple[int, datetime]]) -> None:
    """Makes the partitions in which rows of these grains and times lie, where they are missing."""
    wanted = {_name(grain, _begin(grain, at)): (grain, _begin(grain, at)) for grain, at in places}
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM unnest(%s::text[]) AS name WHERE to_regclass(name) IS NULL", [list(wanted)])
        missing = [name for (name,) in cursor.fetchall()]
    for name in sorted(missing):
        grain, begin = wanted[name]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {_WAIT_MS}")
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF observe_rollup_{grain}"
                f" FOR VALUES FROM ('{begin.isoformat()}') TO ('{_end(grain, begin).isoformat()}')"
            )


def drop_old(now: datetime) -> int:
    """Drops what is past its keep as a whole; returns how many tables went."""
    dropped = 0
    for grain, keep in keeps().items():
        for name, begin in _existing(grain):
            if _end(grain, begin) <= now - keep:
                with transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute(f"SET LOCAL lock_timeout = {_WAIT_MS}")
                    cursor.execute(f"DROP TABLE IF EXISTS {name}")
                dropped += 1
    return dropped


def _existing(grain: int) -> list[tuple[str, datetime]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = to_regclass(%s) ORDER BY c.relname",
            [f"observe_rollup_{grain}"],
        )
        return [(name, datetime.strptime(name[-8:], "%Y%m%d").replace(tzinfo=UTC)) for (name,) in cursor.fetchall()]


def _name(grain: int, begin: datetime) -> str:
    return f"observe_rollup_{grain}_{begin:%Y%m%d}"


def _begin(grain: int, at: datetime) -> datetime:
    day = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return day if grain == MINUTE else day.replace(day=1) if grain == HOUR else day.replace(day=1, month=1)


def _end(grain: int, begin: datetime) -> datetime:
    if grain == MINUTE:
        return begin + timedelta(days=1)
    return (begin + timedelta(days=32)).replace(day=1) if grain == HOUR else begin.replace(year=begin.year + 1)
