"""Moments that the database returns: as Django reads them, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import DataError, connection
from django.db.backends.postgresql.psycopg_any import BaseTzLoader

from kafkadash.core.database.base import UtcLoader

pytestmark = [pytest.mark.app, pytest.mark.django_db]

MOMENTS = (
    "2026-11-28 08:41:49+00",
    "2026-11-28 08:41:49.2+00",
    "2026-11-28 08:41:49.25774+00",
    "2026-11-28 23:59:59.999999-11:30",
    "1883-11-18 12:03:58-04:56:02",
    "0001-01-01 00:00:00+00",
    "9999-12-31 23:59:59.999999+00",
)


@pytest.mark.parametrize("moment", MOMENTS)
def test_moment__is_read_as_django_reads_it(moment: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz, %s::timestamptz::text", [moment, moment])
        read, text = cursor.fetchone()
        assert cursor.connection.adapters.get_loader(1184, 0) is UtcLoader
        expected = type("DjangoLoader", (BaseTzLoader,), {"timezone": UTC})(1184, cursor.connection).load(text.encode())
    assert (read, read.tzinfo) == (expected, UTC)


@pytest.mark.parametrize("moment", ["infinity", "0044-03-15 00:00:00+00 BC", "10000-01-01 00:00:00+00"])
def test_moment__that_no_datetime_can_hold__is_an_error(moment: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [moment])
        with pytest.raises(DataError):
            cursor.fetchone()


def test_moment__of_a_connection_in_another_timezone__is_the_same_moment() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL timezone TO 'Asia/Kathmandu'")
        cursor.execute("SELECT '2026-11-28 08:41:49.25+00'::timestamptz")
        assert cursor.fetchone() == (datetime(2026, 11, 28, 8, 41, 49, 250000, tzinfo=UTC),)
