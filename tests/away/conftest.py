"""A PostgreSQL of these tests alone, to be stopped, killed and started, with what the product's tables are made of.

Django's connection of this process, with that of every thread in it, is led to it for the time of a test.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from kafkadash.devtools.embedded.postgres import DATABASE, NAME, EmbeddedPostgres, install_folder
from kafkadash.devtools.embedded.process import find_child
from tests.embedded_plugin import RUN_FOLDER
from tests.execution.conftest import world
from tests.live.conftest import chrome, port, server, watch
from tests.other_database import led_to

__all__ = ["chrome", "port", "server", "watch", "world"]

WAIT_S = 0.03
"""How long a page waits for a connection, in seconds: many pages are asked for in vain."""
TEMPLATE = "away"
_names = count(1)


@dataclass
class Away:
    """The server, and how it goes away."""

    postgres: EmbeddedPostgres

    def stop(self) -> None:
        self.postgres.stop()

    def stop_for_many_pages(self) -> None:
        """Nobody waits long for a connection until it is started."""
        connection.close()
        self.stop()
        _pool().timeout = WAIT_S

    def start(self) -> None:
        self.postgres.start()
        if _pool().timeout == WAIT_S:
            _pool().timeout = connection.settings_dict["OPTIONS"]["pool"]["timeout"]

    def kill(self) -> None:
        """As a power cut of the server alone: the next start recovers from its log.

        With the processes that it has for its connections: they outlive it for a moment, and would answer in it.
        """
        child = find_child(self.postgres.state_dir, NAME)
        assert child is not None
        processes = psutil.Process(child.pid).children(recursive=True)
        os.kill(child.pid, signal.SIGKILL)
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=30)
        self.postgres.stop()  # waits until it has ended

    def cut_all(self) -> int:
        """Ends all connections but goes on answering; how many there were."""
        with psycopg.connect(self.postgres.conninfo("postgres"), autocommit=True) as own:
            ended = own.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'"
                " AND pid <> pg_backend_pid()"
            )
            return len(ended.fetchall())


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups, also where only this folder is asked for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker runs them all: one server."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group("away"))


@pytest.fixture(scope="session")
def other_postgres(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[EmbeddedPostgres]:
    """Below the run's folder, so that whoever ends the run ends it."""
    folder = Path(tempfile.mkdtemp(prefix="away-", dir=os.environ[RUN_FOLDER]))
    folder.chmod(0o755)
    postgres = EmbeddedPostgres(folder)
    postgres.start()
    with django_db_blocker.unblock():
        _copy_tables(postgres, TEMPLATE)
    yield postgres
    postgres.remove()


@pytest.fixture
def away(other_postgres: EmbeddedPostgres, transactional_db: None) -> Iterator[Away]:
    """A database as the tests' own is, on the other server."""
    other_postgres.start()
    name = f"away_{next(_names)}"
    with psycopg.connect(other_postgres.conninfo(DATABASE), autocommit=True) as own:
        own.execute(f'CREATE DATABASE "{name}" TEMPLATE "{TEMPLATE}"')
    there = psycopg.conninfo.conninfo_to_dict(other_postgres.conninfo(name))
    with led_to(HOST=there["host"], NAME=name):
        yield Away(other_postgres)


def _pool() -> Any:
    own: Any = connection
    return own.pool


def _copy_tables(postgres: EmbeddedPostgres, name: str) -> None:
    """Tables, triggers and what migrations put in."""
    programs = install_folder() / "bin"
    own = connection.get_connection_params()
    source = psycopg.conninfo.make_conninfo(host=own["host"], user=own["user"], dbname=own["dbname"])
    dump = subprocess.run([programs / "pg_dump", "--no-owner", source], capture_output=True, check=True).stdout
    with psycopg.connect(postgres.conninfo(DATABASE), autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
    restore: list[str | Path] = [
        programs / "psql",
        "--quiet",
        "--set",
        "ON_ERROR_STOP=1",
        "--dbname",
        postgres.conninfo(name),
    ]
    subprocess.run(restore, input=dump, capture_output=True, check=True)
