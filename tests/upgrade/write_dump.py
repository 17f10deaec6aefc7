"""Writes the dump of this version: ``python -m pytest -n0 tests/upgrade/write_dump.py``, once, when it is released."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from psycopg.conninfo import make_conninfo

from kafkadash.accounts.models import User
from tests.clusters.test_every_url import URLS, address
from tests.factories import NOW, judged, watched
from tests.history_rows import handed_back
from tests.upgrade.dump import dump_file, write_dump

VERSION = str(tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["version"])


@pytest.mark.django_db(transaction=True)
def test_dump__is_written(client_of: Callable[[User], Client]) -> None:
    cluster = watched("demo")
    handed_back(cluster, 1, NOW)
    judged(cluster)
    admin = client_of(User.objects.create_superuser("root", password="not in the dump"))
    addresses = sorted({address(url, cluster) for url in URLS})
    there = [one for one in addresses if admin.get(one).status_code == 200]
    settings = connection.settings_dict
    conninfo = make_conninfo(host=settings["HOST"], user=settings["USER"], dbname=settings["NAME"])

    write_dump(VERSION, conninfo, there)

    assert dump_file(VERSION).stat().st_size < 300_000
