"""The stack that other tests stand on: what is killed comes back at the same address, and nothing outlives it."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.embedded_plugin import RUN_FOLDER
from tests.stack.stack import Shape, Stack
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("stack")  # started once for all of them


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """Database, Valkey, the worker that ticks and beat; at the end none of it is left."""
    folder = Path(os.environ[RUN_FOLDER]) / f"stack-{secrets.token_hex(4)}"
    stack = Stack(folder, Shape(webs=0, collects=0, jobs=0, executes=0))
    try:
        with stack:
            yield stack
            left = stack.processes()
        assert left
        assert not [pid for pid in left.values() if psutil.pid_exists(pid)]
    finally:
        stack.remove()


def _ticked(stack: Stack) -> datetime | None:
    """When the last heartbeat was written, None before the first."""
    with psycopg.connect(stack.postgres.conninfo(), connect_timeout=2) as connection:
        row = connection.execute("SELECT at FROM ops_heartbeat WHERE name = 'tick'").fetchone()
    return row[0] if row else None


def _wait_for_a_tick(stack: Stack) -> None:
    before = _ticked(stack)
    wait_until(lambda: _ticked(stack) != before, "the tick is heard", 40)


def test_what_is_killed_comes_back_where_it_was(stack: Stack) -> None:
    _wait_for_a_tick(stack)
    addresses = stack.addresses()
    for together in (("beat", "worker-tick"), ("valkey", "postgres")):
        killed = {name: stack.kill(name) for name in together}
        assert None not in killed.values()
        for name in together:
            wait_until(lambda n=name: stack.serves(n), f"{name} is back", 30)  # type: ignore[misc]
            assert stack.pid(name) not in {None, killed[name]}
        _wait_for_a_tick(stack)
    assert stack.addresses() == addresses


def test_what_is_frozen_or_kept_away_goes_on_when_it_is_told(stack: Stack) -> None:
    frozen = psutil.Process(stack.freeze("worker-tick", 600))
    wait_until(lambda: frozen.status() == psutil.STATUS_STOPPED, "it is stopped", 10)
    stack.thaw("worker-tick")
    wait_until(lambda: frozen.status() != psutil.STATUS_STOPPED, "it goes on", 10)

    stack.environment["beat"] = {"TOLD": "so"}
    with stack.away("beat"):
        assert "beat" not in stack.processes()
    wait_until(lambda: stack.serves("beat"), "beat is back", 30)
    assert psutil.Process(stack.pid("beat")).environ()["TOLD"] == "so"

    starts = stack.starts("worker-tick")
    stack.kill("worker-tick", signal.SIGTERM)
    wait_until(lambda: stack.starts("worker-tick") > starts and stack.serves("worker-tick"), "it ended and is back", 40)
