"""Child processes: started, waited for, stopped, and found again by a later process.

Private folders in the system's temporary folder: short, closed, and not left behind.

Loopback ports: kept while they are free, renewed when they are taken.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kafkadash.devtools.embedded.folders import BELONGS_NAME, SWEEP_AFTER_SECONDS, is_reachable, private_folder
from kafkadash.devtools.embedded.ports import LOOPBACK, free_port, port_is_free
from kafkadash.devtools.embedded.process import (
    LEDGER_NAME,
    ChildProcess,
    FolderInUseError,
    ServerError,
    find_child,
    live_children,
    reap_leftovers,
    recorded,
    spawn,
    stop_all,
)
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
SLEEPER = [sys.executable, "-c", "import time; print('awake', flush=True); time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True))
print('awake', flush=True)
while True:
    time.sleep(600)
""",
]


def start(state_dir: Path, name: str = "sleeper", argv: list[str] | None = None, stage: int = 0) -> ChildProcess:
    child = spawn(state_dir, name, argv or SLEEPER, log=state_dir / f"{name}.log", stage=stage)
    child.wait_ready(lambda: b"awake" in (state_dir / f"{name}.log").read_bytes(), 20)
    return child


def ended(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_it_starts_finds_and_stops_a_child(state_dir: Path) -> None:
    child = start(state_dir)
    assert child.alive()
    found = find_child(state_dir, "sleeper")
    assert found is not None
    assert found.pid == child.pid
    child.stop(5)
    assert not psutil.pid_exists(child.pid)
    assert child.exit_code() is None or child.exit_code() == -signal.SIGTERM
    assert recorded(state_dir) == []


def test_a_child_has_a_session_of_its_own_so_ctrl_c_does_not_reach_it(state_dir: Path) -> None:
    child = start(state_dir)
    assert os.getsid(child.pid) == child.pid


def test_a_child_that_ends_before_it_is_ready_is_reported_with_its_last_words(state_dir: Path) -> None:
    code = "import sys; print('the port is taken'); sys.exit(3)"
    child = spawn(state_dir, "broken", [sys.executable, "-c", code], log=state_dir / "broken.log")
    with pytest.raises(ServerError, match=r"(?s)broken ended with exit code 3 before it was ready.*the port is taken"):
        child.wait_ready(lambda: False, 20)


def test_a_child_that_does_not_get_ready_is_reported_after_the_deadline(state_dir: Path) -> None:
    child = start(state_dir)
    with pytest.raises(ServerError, match=r"(?s)sleeper was not ready within 0\.2 s.*awake"):
        child.wait_ready(lambda: False, 0.2)
    assert child.alive()


def test_a_child_that_ignores_sigterm_is_killed(state_dir: Path) -> None:
    child = start(state_dir, argv=STUBBORN)
    child.stop(0.3)
    assert not psutil.pid_exists(child.pid)
    assert recorded(state_dir) == []


def test_a_program_that_does_not_exist_is_one_sentence_and_leaves_no_entry(state_dir: Path) -> None:
    with pytest.raises(ServerError, match=r"ghost could not be started: .*No such file"):
        spawn(state_dir, "ghost", ["/nowhere/ghost"], log=state_dir / "ghost.log")
    assert recorded(state_dir) == []


def test_nothing_is_left_running_when_the_ledger_cannot_be_written(state_dir: Path) -> None:
    (state_dir / LEDGER_NAME / "in-the-way").mkdir(parents=True)
    before = {process.pid for process in psutil.Process().children()}
    with pytest.raises(ServerError, match=r"processes\.json"):
        spawn(state_dir, "sleeper", SLEEPER, log=state_dir / "sleeper.log")
    assert {process.pid for process in psutil.Process().children()} == before
    (state_dir / LEDGER_NAME / "in-the-way").rmdir()
    (state_dir / LEDGER_NAME).rmdir()


def test_children_started_by_many_threads_are_all_in_the_ledger(state_dir: Path) -> None:
    names = [f"sleeper-{i}" for i in range(12)]
    threads = [
        threading.Thread(target=spawn, args=(state_dir, name, SLEEPER), kwargs={"log": state_dir / "log"})
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(child.name for child in live_children(state_dir)) == sorted(names)


def test_stages_are_stopped_one_after_the_other(state_dir: Path) -> None:
    late = start(state_dir, "late", stage=1)
    early = start(state_dir, "early", STUBBORN, stage=0)
    stopper = threading.Thread(target=stop_all, args=([late, early], 60))
    stopper.start()
    wait_until(lambda: b"asked" in (state_dir / "early.log").read_bytes(), "the first stage is asked to end")
    assert late.alive()
    psutil.Process(early.pid).kill()
    stopper.join(20)
    assert not stopper.is_alive()
    assert ended(late.pid)


def test_the_next_start_ends_what_a_killed_supervisor_left_behind(state_dir: Path) -> None:
    killed_supervisor(state_dir, ["first", "second"])
    left = live_children(state_dir)
    assert sorted(child.name for child in left) == ["first", "second"]
    assert sorted(reap_leftovers(state_dir)) == ["first", "second"]
    assert all(ended(child.pid) for child in left)
    assert recorded(state_dir) == []
    assert reap_leftovers(state_dir) == []


def test_only_the_named_leftovers_are_ended(state_dir: Path) -> None:
    killed_supervisor(state_dir, ["first", "second"])
    assert reap_leftovers(state_dir, names={"second"}) == ["second"]
    assert [child.name for child in live_children(state_dir)] == ["first"]


def test_a_process_that_got_the_id_of_a_former_child_is_left_alone(state_dir: Path) -> None:
    killed_supervisor(state_dir, ["former"])
    stranger = subprocess.Popen(SLEEPER, stdout=subprocess.DEVNULL)
    try:
        ledger = state_dir / LEDGER_NAME
        [former] = live_children(state_dir)
        ledger.write_text(ledger.read_text().replace(f'"pid": {former.pid}', f'"pid": {stranger.pid}'))
        # The stranger is younger than the entry says; age the entry further, beyond what clocks may differ.
        text = ledger.read_text().replace(str(former.entry.create_time), str(former.entry.create_time - 60))
        ledger.write_text(text)
        assert reap_leftovers(state_dir) == []
        assert stranger.poll() is None
        assert recorded(state_dir) == []
        former.kill()
    finally:
        stranger.kill()
        stranger.wait()


def test_a_live_supervisor_keeps_its_children(state_dir: Path) -> None:
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR + "sys.stdin.read()", str(state_dir), "held"], cwd=ROOT, stdin=subprocess.PIPE
    )
    try:
        wait_until(lambda: live_children(state_dir), "the other supervisor has a child")
        with pytest.raises(FolderInUseError, match=f"held belongs to process {supervisor.pid}"):
            reap_leftovers(state_dir)
        assert [child.name for child in live_children(state_dir)] == ["held"]
    finally:
        supervisor.kill()
        supervisor.communicate()
    assert reap_leftovers(state_dir) == ["held"]


def test_our_own_children_are_no_leftovers(state_dir: Path) -> None:
    child = start(state_dir)
    assert reap_leftovers(state_dir) == []
    assert child.alive()


def test_a_child_can_be_stopped_by_another_process_than_its_parent(state_dir: Path) -> None:
    child = start(state_dir)
    code = (
        "import sys; from pathlib import Path; from kafkadash.devtools.embedded.process import find_child;"
        "find_child(Path(sys.argv[1]), 'sleeper').stop(5)"
    )
    subprocess.run([sys.executable, "-c", code, str(state_dir)], cwd=ROOT, check=True, timeout=60)
    assert not child.alive()
    assert recorded(state_dir) == []


SUPERVISOR = f"""
import os, signal, sys
from pathlib import Path
from kafkadash.devtools.embedded.process import spawn
state = Path(sys.argv[1])
for name in sys.argv[2:]:
    spawn(state, name, {SLEEPER!r}, log=state / name)
"""


def killed_supervisor(state_dir: Path, names: list[str]) -> None:
    code = SUPERVISOR + "os.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", code, str(state_dir), *names], cwd=ROOT, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL


@pytest.fixture
def temp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of the test's own; pytest's are too long for sockets."""
    with tempfile.TemporaryDirectory(prefix="kd-") as name:
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield Path(name)


def age(folder: Path) -> None:
    note = folder / BELONGS_NAME
    then = note.stat().st_mtime - SWEEP_AFTER_SECONDS - 60
    os.utime(note, (then, then))


def test_nobody_else_may_enter(temp: Path) -> None:
    folder = private_folder(temp / "state")
    assert folder.parent == temp
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_a_deleted_state_folder_left_behind_is_removed_later(temp: Path) -> None:
    folder = private_folder(temp / "state")
    private_folder(temp / "other")
    assert folder.exists(), "it may be about to be named"
    age(folder)
    private_folder(temp / "other")
    assert not folder.exists()


def test_a_folder_that_its_state_folder_names_stays(temp: Path) -> None:
    state = temp / "state"
    state.mkdir()
    folder = private_folder(state)
    (state / "valkey.json").write_text(json.dumps({"sockets": str(folder)}))
    age(folder)
    private_folder(temp / "other")
    assert folder.exists()


def test_a_folder_whose_state_is_on_an_absent_disk_stays(temp: Path) -> None:
    folder = private_folder(temp / "absent disk" / "state")
    age(folder)
    private_folder(temp / "other")
    assert folder.exists()


def test_a_folder_that_a_process_works_in_stays(temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = private_folder(temp / "state")
    age(folder)
    monkeypatch.chdir(folder)
    private_folder(temp / "other")
    assert folder.exists()


def test_another_user_reaches_only_what_every_folder_above_lets_through() -> None:
    nobody = (65534, 65534)
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        inner = base / "outer" / "inner"
        inner.mkdir(parents=True)
        for folder in [base, inner.parent, inner]:
            folder.chmod(0o755)
        public_above = all(folder.stat().st_mode & stat.S_IXOTH for folder in base.resolve().parents)
        assert is_reachable(inner, nobody) is public_above
        inner.chmod(0o711)
        assert is_reachable(inner, nobody) is public_above, "to enter it is enough: what is inside is handed over"
        inner.chmod(0o744)
        assert not is_reachable(inner, nobody)
        inner.chmod(0o755)
        inner.parent.chmod(0o700)
        assert not is_reachable(inner, nobody)


def test_a_stored_port_that_is_still_free_is_kept() -> None:
    port = free_port()
    assert port_is_free(port)
    assert free_port(port) == port


def test_a_stored_port_that_somebody_listens_on_is_renewed() -> None:
    with socket.create_server((LOOPBACK, free_port())) as server:
        port = server.getsockname()[1]
        assert not port_is_free(port)
        renewed = free_port(port)
    assert renewed != port


def test_a_port_already_given_to_another_server_is_not_given_again() -> None:
    port = free_port()
    assert free_port(port, taken={port}) != port


def test_a_port_is_free_again_while_its_old_connections_fade_out() -> None:
    with socket.create_server((LOOPBACK, free_port())) as server:
        port = server.getsockname()[1]
        client = socket.create_connection((LOOPBACK, port))
        accepted, _ = server.accept()
        accepted.close()  # the side that closes first is the one that lingers
        client.close()
    assert port_is_free(port)
