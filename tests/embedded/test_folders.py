"""Private folders in the system's temporary folder: short, closed, and not left behind."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkadash.embedded.folders import BELONGS_NAME, SWEEP_AFTER_SECONDS, private_folder, reachable


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
        assert reachable(inner, nobody) is public_above
        inner.chmod(0o711)
        assert reachable(inner, nobody) is public_above, "to enter it is enough: what is inside is handed over"
        inner.chmod(0o744)
        assert not reachable(inner, nobody)
        inner.chmod(0o755)
        inner.parent.chmod(0o700)
        assert not reachable(inner, nobody)
