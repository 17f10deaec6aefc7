"""Part "demo": its supervisor is killed when everything runs, and starts once more over what it left.

The short form, of which the second start is broken off, is in `tests/demo/test_it_stops_without_traces.py`.
"""

from __future__ import annotations

import signal
from pathlib import Path

from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from kafkadash.devtools.embedded.process import reap_leftovers
from tests.demo.test_it_stops_without_traces import a_web_that_dies_is_started_again
from tests.proof.extent import Extent
from tests.smoke.browser import Browser
from tests.smoke.demo_process import STOP_SECONDS, DemoProcess


def prove(folder: Path, extent: Extent) -> bool:
    """Raises AssertionError where something does not hold."""
    for number in range(extent.rounds):
        own = folder / f"demo-{number}"
        own.mkdir(mode=0o755)
        try:
            _killed_and_started_again(own)
        finally:
            for state in (own / "playground", own):
                reap_leftovers(state)
            EmbeddedPostgres(own).remove()
    print(f"demo: {extent.rounds} supervisors killed and started again")  # noqa: T201
    return True


def _killed_and_started_again(folder: Path) -> None:
    """With its pipeline and a drain that waits. The second is asked twice to end, which is at once."""
    killed = DemoProcess(folder, "--racks", "a")
    try:
        killed.wait_until_ready()
        password = killed.password("alice")
        a_web_that_dies_is_started_again(killed, folder)
        opened = killed.opened()
        killed.signal(signal.SIGKILL)
        assert killed.wait(STOP_SECONDS) == -signal.SIGKILL
        assert len(opened.still_there()) > 5
    finally:
        killed.end()
    again = DemoProcess(folder, "--racks", "a")
    try:
        again.wait_until_ready()
        assert "postgres" in again.wait_for_line("Stopped leftovers of a killed demo", 0.0)
        assert not {name for name in opened.still_there() if name.startswith("process")}
        assert again.base == killed.base
        Browser(again.base).sign_in("alice", password)
        opened = again.opened()
        again.signal(signal.SIGTERM)
        again.signal(signal.SIGTERM)
        assert again.wait(STOP_SECONDS) == 0
        assert opened.still_there() == []
    finally:
        again.end()
