"""`make setup` with a Python that will not do: one sentence with the way out, nothing half-made.

Keys and passwords outlive a stop, addresses do not; a reset removes what is the demo's and nothing else.

Each process of the demo gets the secrets it needs, and a server gets none.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafkadash.core.environment import SECRET_NAMES
from kafkadash.devtools.demo import folder as folders
from kafkadash.devtools.demo import supervisor as checks
from kafkadash.devtools.demo import supervisor as services
from kafkadash.devtools.demo.folder import DemoFolder
from kafkadash.devtools.embedded.ports import free_port
from kafkadash.devtools.embedded.process import ChildProcess, ServerError, spawn
from kafkadash.devtools.errors import DemoErrorCode
from tests.raised_codes import raises_code
from tests.smoke.demo_process import CHECKOUT
from tests.waiting import wait_until


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What `make setup` reads, in a folder of its own."""
    if shutil.which("make") is None:
        pytest.skip("there is no make here")
    for name in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(CHECKOUT / name, tmp_path / name)
    return tmp_path


def refusal(checkout: Path, python: str) -> str:
    done = subprocess.run(
        ["make", "setup", f"PYTHON={python}"], cwd=checkout, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert not (checkout / ".venv").exists()
    assert "Traceback" not in done.stderr
    return done.stderr


def test_python_older_than_3_11__is_named_with_its_version(checkout: Path) -> None:
    old = checkout / "python3.9"
    old.write_text('#!/bin/sh\ncase "$2" in *version_info*) exit 1;; *) echo 3.9.2;; esac\n', encoding="utf-8")
    old.chmod(0o755)
    said = refusal(checkout, str(old))
    for named in ("3.11", str(old), "3.9.2"):
        assert named in said


def test_no_python_of_that_name__is_said(checkout: Path) -> None:
    said = refusal(checkout, "no-such-python")
    for named in ("no-such-python", "3.11"):
        assert named in said


def test_environment__is_for_this_user_only_and_read_back_as_written(folder: Path) -> None:
    own = folders.make_folder(folder)
    values = {"DATABASE_URL": "postgres://kafkadash@/%2Ftmp/kafkadash", "SECRET_KEY": "a=b'c#d"}
    own.write_environment(values)
    assert own.read_environment() == values
    assert own.environment_file.stat().st_mode & 0o777 == 0o600


def test_stop__forgets_addresses_and_keeps_keys(folder: Path) -> None:
    own = folders.make_folder(folder)
    keys = own.keys({})
    own.write_environment({"DATABASE_URL": "postgres://gone", "REDIS_URL": "unix:///gone", **keys})
    own.forget_addresses()
    assert own.read_environment() == keys
    assert own.keys({}) == keys


def test_keys_of_the_users_own__come_first(folder: Path) -> None:
    own = folders.make_folder(folder)
    own.write_environment({"SECRET_KEY": "stored", "FIELD_KEYS": "stored"})
    keys = own.keys({"SECRET_KEY": "mine"})
    assert (keys["SECRET_KEY"], keys["FIELD_KEYS"]) == ("mine", "stored")


def test_data_of_another_version__is_refused_and_not_touched(folder: Path) -> None:
    own = folders.make_folder(folder)
    own.refuse_other_data()
    own.write_environment(own.keys({}))
    own.refuse_other_data()
    own.write_environment({"SECRET_KEY": "of before", "FIELD_KEYS": "of before"})
    before = own.environment_file.read_bytes()
    with raises_code(DemoErrorCode.DATA_OF_ANOTHER_VERSION, ServerError, folder=own.path):
        own.refuse_other_data()
    assert own.environment_file.read_bytes() == before


def test_passwords__are_made_once_and_for_this_user_only(folder: Path) -> None:
    own = folders.make_folder(folder)
    first = own.sign_ins(("alice", "bob"))
    assert own.sign_ins(("alice", "bob", "carol"))["alice"] == first["alice"]
    assert len({*first.values()}) == 2
    assert all(len(password) >= 12 for password in first.values())
    assert own.sign_ins_file.stat().st_mode & 0o777 == 0o600


def test_folders_of_an_earlier_version__are_closed_to_others(folder: Path) -> None:
    for name in ("logs", "pipeline"):
        (folder / name).mkdir(mode=0o755)
    folders.make_folder(folder)
    assert [(folder / name).stat().st_mode & 0o777 for name in ("logs", "pipeline")] == [0o700, 0o700]


def test_new_folder__is_passed_through_by_others_at_most(tmp_path: Path) -> None:
    made = folders.make_folder(tmp_path / "new")
    assert made.path.stat().st_mode & 0o066 == 0


def test_reset__leaves_files_of_others(folder: Path) -> None:
    own = folders.make_folder(folder)
    own.sign_ins(("alice",))
    own.write_environment({"SECRET_KEY": "old"})
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    own.log("web").write_text("old", encoding="utf-8")
    own.reset()
    assert {path.name for path in folder.iterdir()} == {"notes.txt"}


def test_port_of_the_last_start__is_taken_again_while_it_is_free() -> None:
    port = free_port()
    assert checks.choose_port(None, str(port)) == port


NAMES = "import os; print(*(name for name, value in os.environ.items() if value))"
GIVEN = {name: f"value of {name}" for name in SECRET_NAMES}
QUEUE = {"DATABASE_URL", "REDIS_URL"}
NEEDED = {"pipeline": set(), "beat": QUEUE, "worker-tick": set(SECRET_NAMES) - {"FIELD_KEYS"}}


def secrets_of(child: ChildProcess) -> set[str]:
    """Those that the process said it has; it has ended then."""
    wait_until(lambda: not child.alive(), "the process ended", 30)
    child.stop()
    assert child.log is not None
    return set(child.log.read_text(encoding="utf-8").split()) & set(SECRET_NAMES)


@pytest.mark.parametrize(
    "service",
    [services.web_service(1), *services.workers_and_beat(), services.pipeline_service("file:///x")],
    ids=lambda one: one.name,
)
def test_a_process__gets_only_the_secrets_it_needs(service: services.DemoService, tmp_path: Path) -> None:
    telling = services.DemoService(service.name, ("-c", NAMES), service.stage, service.secrets)
    child = services.KeptService(telling, DemoFolder(tmp_path), GIVEN, print).start()
    assert secrets_of(child) == NEEDED.get(service.name, set(SECRET_NAMES))


def test_a_server__gets_no_secret_of_its_starter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    child = spawn(tmp_path, "server", [sys.executable, "-c", NAMES], log=tmp_path / "log")
    assert secrets_of(child) == set()
