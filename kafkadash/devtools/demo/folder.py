"""The demo's one folder: what lies where, one demo at a time, and how to begin anew."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.fernet import Fernet

from kafkadash.devtools.embedded.files import write_atomically
from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from kafkadash.devtools.embedded.process import LEDGER_LOCK_NAME, LEDGER_NAME, ServerError, reap_leftovers
from kafkadash.devtools.errors import DemoErrorCode
from kafkadash.devtools.playground.cluster import KafkaPlayground

LOCK_NAME = "demo.lock"
# Everything else that a demo puts into its folder, apart from what `Postgres` and `Playground` remove themselves.
OWN_FOLDERS = ("logs", "valkey", "postgres", "static", "pipeline")
# An earlier version left them open to everybody.
OWNER_ONLY_FOLDERS = ("logs", "pipeline")
OWN_FILES = ("environment", "sign-ins.json", "valkey.json", LEDGER_NAME, LEDGER_LOCK_NAME)
OWN_PATTERNS = ("celerybeat-schedule*",)

# What stays valid when the demo has stopped: without the keys, its database could not be read any more.
DATA_NAME, DATA_VERSION = "KAFKADASH_DEMO_DATA", "0.1.0-3"
"""The version whose migrations made the database here; those of another cannot bring it up."""
LASTING_NAMES = ("SECRET_KEY", "FIELD_KEYS", "KAFKADASH_PORT", DATA_NAME)
HEADER = "# Written by the demo and read by other commands of this checkout. Your own environment takes precedence.\n"
PASSWORD_BYTES = 9


@dataclass(frozen=True, slots=True)
class DemoFolder:
    path: Path

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def playground(self) -> Path:
        return self.path / "playground"

    @property
    def environment_file(self) -> Path:
        return self.path / "environment"

    @property
    def sign_ins_file(self) -> Path:
        return self.path / "sign-ins.json"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Be the only demo of this folder; the system ends this when the process ends, however it ends.

        Raises ServerError when another one holds it.
        """
        with (self.path / LOCK_NAME).open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ServerError(DemoErrorCode.ANOTHER_DEMO, folder=self.path) from None
            yield

    def refuse_other_data(self) -> None:
        """Raises ServerError where a demo of another version left its data here; nothing is touched."""
        have = self.read_environment()
        if have and have.get(DATA_NAME) != DATA_VERSION:
            raise ServerError(DemoErrorCode.DATA_OF_ANOTHER_VERSION, folder=self.path)

    def reap(self) -> list[str]:
        """End what a killed demo left running; the names of what was ended."""
        return [*reap_leftovers(self.path), *reap_leftovers(self.playground)]

    def reset(self) -> None:
        """Remove what a demo made here, and nothing else."""
        EmbeddedPostgres(self.path).remove()
        KafkaPlayground(self.playground).reset()
        shutil.rmtree(self.playground, ignore_errors=True)
        for name in OWN_FOLDERS:
            shutil.rmtree(self.path / name, ignore_errors=True)
        for path in [*(self.path / name for name in OWN_FILES), *self._matching()]:
            path.unlink(missing_ok=True)

    def keep_previous_logs(self) -> None:
        """Each start has logs of its own; those of the start before stay as NAME.log.1."""
        for path in self.logs.glob("*.log"):
            path.replace(path.with_suffix(".log.1"))

    def read_environment(self) -> dict[str, str]:
        """Return the variables that `write_environment` wrote; empty if there is no file."""
        try:
            lines = self.environment_file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        return {name: value.removeprefix("'").removesuffix("'") for name, value in pairs}

    def write_environment(self, values: Mapping[str, str]) -> None:
        """For this user only: it holds keys."""
        lines = "".join(f"{name}='{value}'\n" for name, value in values.items())
        write_atomically(self.environment_file, HEADER + lines)

    def forget_addresses(self) -> None:
        """Leave in the environment file only what the next start uses again."""
        have = self.read_environment()
        if have:
            self.write_environment({name: have[name] for name in LASTING_NAMES if name in have})

    def sign_ins(self, names: tuple[str, ...]) -> dict[str, str]:
        """Name → password, made once, kept for the next start; the file is for this user only."""
        try:
            stored = json.loads(self.sign_ins_file.read_text(encoding="utf-8"))
            have = {str(name): str(password) for name, password in stored.items()}
        except FileNotFoundError:
            have = {}
        except (ValueError, AttributeError) as error:
            raise ServerError(DemoErrorCode.SIGN_INS_UNREADABLE, file=self.sign_ins_file) from error
        chosen = {name: have.get(name) or secrets.token_urlsafe(PASSWORD_BYTES) for name in names}
        if chosen != have:
            write_atomically(self.sign_ins_file, json.dumps(chosen, indent=1) + "\n")
        return chosen

    def keys(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return SECRET_KEY and FIELD_KEYS (given ones, else the last start's, else new) and the data's version."""
        have = self.read_environment()
        return {
            "SECRET_KEY": given.get("SECRET_KEY") or have.get("SECRET_KEY") or secrets.token_urlsafe(50),
            "FIELD_KEYS": given.get("FIELD_KEYS") or have.get("FIELD_KEYS") or Fernet.generate_key().decode(),
            DATA_NAME: DATA_VERSION,
        }

    def _matching(self) -> list[Path]:
        return [path for pattern in OWN_PATTERNS for path in self.path.glob(pattern)]


def make_folder(path: Path) -> DemoFolder:
    """The folder, made if need be. Raises ServerError when it cannot be made or written to."""
    folder = DemoFolder(path.absolute())
    try:
        _make_passable(folder.path)
        probe = folder.path / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
        folder.logs.mkdir(exist_ok=True)
        for name in OWNER_ONLY_FOLDERS:
            if (folder.path / name).is_dir():
                (folder.path / name).chmod(0o700)
    except OSError as error:
        raise ServerError(DemoErrorCode.FOLDER_NOT_WRITABLE, folder=folder.path, reason=error.strerror) from error
    return folder


def _make_passable(path: Path) -> None:
    """Make the folder, for its owner only. Started by root, PostgreSQL runs as another user, who passes through it."""
    if path.is_dir():
        return
    path.mkdir(parents=True)
    path.chmod(0o711 if os.geteuid() == 0 else 0o700)
