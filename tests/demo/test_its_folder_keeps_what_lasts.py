"""Keys and passwords outlive a stop, addresses do not; a reset removes what is the demo's and nothing else."""

from __future__ import annotations

from pathlib import Path

from kafkadash.embedded.ports import free_port
from kafkadash.ops.demo import checks
from kafkadash.ops.demo import folder as folders


def test_environment__is_for_this_user_only_and_read_back_as_written(folder: Path) -> None:
    own = folders.make(folder)
    values = {"DATABASE_URL": "postgres://kafkadash@/%2Ftmp/kafkadash", "SECRET_KEY": "a=b'c#d"}
    own.write_environment(values)
    assert own.read_environment() == values
    assert own.environment_file.stat().st_mode & 0o777 == 0o600


def test_stop__forgets_addresses_and_keeps_keys(folder: Path) -> None:
    own = folders.make(folder)
    keys = own.keys({})
    own.write_environment({"DATABASE_URL": "postgres://gone", "REDIS_URL": "unix:///gone", **keys})
    own.forget_addresses()
    assert own.read_environment() == keys
    assert own.keys({}) == keys


def test_keys_of_the_users_own__come_first(folder: Path) -> None:
    own = folders.make(folder)
    own.write_environment({"SECRET_KEY": "stored", "FIELD_KEYS": "stored"})
    assert own.keys({"SECRET_KEY": "mine"}) == {"SECRET_KEY": "mine", "FIELD_KEYS": "stored"}


def test_passwords__are_made_once_and_for_this_user_only(folder: Path) -> None:
    own = folders.make(folder)
    first = own.sign_ins(("alice", "bob"))
    assert own.sign_ins(("alice", "bob", "carol"))["alice"] == first["alice"]
    assert len({*first.values()}) == 2
    assert all(len(password) >= 12 for password in first.values())
    assert own.sign_ins_file.stat().st_mode & 0o777 == 0o600


def test_folders_of_an_earlier_version__are_closed_to_others(folder: Path) -> None:
    for name in ("logs", "pipeline"):
        (folder / name).mkdir(mode=0o755)
    folders.make(folder)
    assert [(folder / name).stat().st_mode & 0o777 for name in ("logs", "pipeline")] == [0o700, 0o700]


def test_new_folder__is_passed_through_by_others_at_most(tmp_path: Path) -> None:
    made = folders.make(tmp_path / "new")
    assert made.path.stat().st_mode & 0o066 == 0


def test_reset__leaves_files_of_others(folder: Path) -> None:
    own = folders.make(folder)
    own.sign_ins(("alice",))
    own.write_environment({"SECRET_KEY": "old"})
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    own.log("web").write_text("old", encoding="utf-8")
    own.reset()
    assert {path.name for path in folder.iterdir()} == {"notes.txt"}


def test_port_of_the_last_start__is_taken_again_while_it_is_free() -> None:
    port = free_port()
    assert checks.choose_port(None, str(port)) == port
