"""Databases of released versions, from dumps that those versions wrote: migrated, complete, and shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from psycopg import connect, sql
from psycopg.conninfo import make_conninfo

from kafkadash.accounts.models import User
from tests.other_database import led_to
from tests.upgrade.dump import HERE, count_rows, page_addresses, read_dump, restore_dump

VERSIONS = sorted(path.name.removesuffix(".sql.gz") for path in HERE.glob("*.sql.gz"))
# Migrations and Django's own bookkeeping may add rows.
OF_DJANGO = ("django_migrations", "django_content_type", "auth_permission")
_numbers = count(1)


@pytest.fixture(params=VERSIONS)
def dump(request: pytest.FixtureRequest) -> str:
    return read_dump(request.param)


@pytest.fixture
def upgraded(dump: str, transactional_db: None) -> Iterator[str]:
    """The dump in a database of its own, on the schema of this version."""
    name = f"upgrade_{next(_numbers)}_{connection.settings_dict['NAME']}"
    settings = connection.settings_dict
    server = {"host": settings["HOST"], "user": settings["USER"]}
    with connect(make_conninfo(**server, dbname=settings["NAME"]), autocommit=True) as own:
        own.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        restore_dump(dump, make_conninfo(**server, dbname=name))
        with led_to(NAME=name):
            call_command("migrate", verbosity=0)
            yield dump
    finally:
        with connect(make_conninfo(**server, dbname=settings["NAME"]), autocommit=True) as own:
            own.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_releases__have_a_dump() -> None:
    assert VERSIONS[0] == "0.1.0"


def test_database_of_a_release__is_migrated_and_keeps_every_row(upgraded: str) -> None:
    call_command("migrate", check_unapplied=True, verbosity=0)

    before = {table: rows for table, rows in count_rows(upgraded).items() if table not in OF_DJANGO}
    with connection.cursor() as cursor:
        after = {}
        for table in before:
            cursor.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table)))
            after[table] = cursor.fetchone()[0]
    assert len(before) > 20
    assert after == before


def test_pages_of_a_release__still_answer(upgraded: str, client_of: Callable[[User], Client]) -> None:
    client = client_of(User.objects.get(username="root"))
    addresses = page_addresses(upgraded)

    assert len(addresses) > 30
    assert {address: client.get(address).status_code for address in addresses} == dict.fromkeys(addresses, 200)
