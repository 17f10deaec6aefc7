"""The real supervisor with one broker: whatever ends it, nothing of it stays.

That the start after a kill comes to its end, at the same address and with the same passwords, and stops at once when it
is asked twice: ``make proof ARGS=demo``.
"""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from kafkadash.devtools.demo import folder as folders
from kafkadash.devtools.embedded.process import recorded
from tests.demo.conftest import Start
from tests.smoke.browser import Browser
from tests.smoke.demo_process import STOP_SECONDS, DemoProcess
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("demo")

STEP_SECONDS = 120.0
RESTART_SECONDS = 60.0


def test_killed_supervisor__is_cleaned_up_after_by_the_next_start_which_ctrl_c_ends(start: Start, folder: Path) -> None:
    killed = start()
    killed.wait_until_ready()
    a_web_that_dies_is_started_again(killed, folder)
    only_the_owner_may_look(folder)
    opened = killed.opened()
    killed.signal(signal.SIGKILL)
    assert killed.wait(STOP_SECONDS) == -signal.SIGKILL
    assert len(opened.still_there()) > 5

    again = start()
    again.wait_for_line("PostgreSQL and Valkey", STEP_SECONDS)
    assert "postgres" in again.wait_for_line("Stopped leftovers of a killed demo", 0.0)
    assert not {name for name in opened.still_there() if name.startswith("process")}
    assert killed.base.endswith(f":{folders.make_folder(folder).read_environment()['KAFKADASH_PORT']}"), "as it was"
    opened = again.opened()
    again.signal(signal.SIGINT)
    assert again.wait(STOP_SECONDS) == 130
    assert opened.still_there() == []
    assert [child.name for child in [*recorded(folder), *recorded(folder / "playground")]] == []
    assert "DATABASE_URL" not in (folder / "environment").read_text(encoding="utf-8")


def a_web_that_dies_is_started_again(demo: DemoProcess, folder: Path) -> None:
    web = next(child for child in recorded(folder) if child.name == "web")
    psutil.Process(web.pid).kill()
    assert "(signal 9); restart in 1 s" in demo.wait_for_line("web ended", RESTART_SECONDS)
    wait_until(lambda: _serves(demo), "web serves again", RESTART_SECONDS)


def only_the_owner_may_look(folder: Path) -> None:
    inside = [path for path in folder.rglob("*") if not path.is_relative_to(folder / "postgres")]
    assert {path.name for path in inside} >= {"web.log", "playground"}
    assert [path for path in inside if path.stat().st_mode & 0o077] == []


def _serves(demo: DemoProcess) -> bool:
    try:
        return "Sign in" in Browser(demo.base).get("/login/")
    except OSError:
        return False
