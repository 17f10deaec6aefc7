"""What is said where PostgreSQL and Valkey of one's own machine do not start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from kafkadash.embedded import ports, postgres, unprivileged, valkey
from kafkadash.embedded.errors import ServerErrorCode
from kafkadash.embedded.ports import PORT_RANGE, free_port
from kafkadash.embedded.postgres import Postgres
from kafkadash.embedded.process import (
    LEDGER_LOCK_NAME,
    LEDGER_NAME,
    Child,
    ServerError,
    children,
    find,
    reap_leftovers,
    recorded,
    spawn,
    stop_all,
)
from kafkadash.embedded.valkey import Valkey
from tests.embedded.test_process import ROOT, SLEEPER, SUPERVISOR
from tests.refusals.driving import Case, case, each, refused
from tests.waiting import wait_until


class Machine:
    """Where somebody starts servers, in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.postgres, self.valkey = Postgres(folder, fsync=False), Valkey(folder)

    def starts(self, server: Postgres | Valkey) -> str:
        return refused(ServerError, server.start)

    def in_the_way(self, name: str) -> str:
        (self.folder / name).touch()
        return self.starts(self.valkey)

    def below_a_file(self, kind: type[Postgres] | type[Valkey]) -> str:
        (self.folder / "file").touch()
        return self.starts(kind(self.folder / "file" / "state"))

    def unreadable(self, server: Postgres | Valkey, name: str) -> str:
        (self.folder / name).write_text("[]")
        return refused(ServerError, server.url)

    def without_wheel(self, server: Postgres | Valkey) -> str:
        with mock.patch.multiple(postgres, WHEEL="no_such_wheel"), mock.patch.multiple(valkey, WHEEL="no_such_wheel"):
            return self.starts(server)

    def initdb(self, script: str, seconds: float = 60) -> str:
        """PostgreSQL with another initdb."""
        install = self.folder / "packages" / postgres.WHEEL / postgres.INSTALL
        for name in ("bin", "lib", "share"):
            (install / name).mkdir(parents=True)
        program(install / "bin" / "initdb", script)
        program(install / "bin" / "postgres", "exit 1")
        try:
            with mock.patch.multiple(postgres, install_folder=lambda: install, INITDB_SECONDS=seconds):
                return self.starts(self.postgres)
        finally:
            self.postgres.remove()

    def as_root(self, *, useradd: str | None = None, seconds: float = 60) -> str:
        """Where the user is not there, and this is what makes one."""
        found = None
        if useradd is not None:
            found = str(program(self.folder / "useradd", useradd))
        with (
            mock.patch.object(os, "geteuid", return_value=0),
            mock.patch.object(unprivileged, "_lookup", return_value=None),
            mock.patch.object(unprivileged, "USERADD_SECONDS", seconds),
            mock.patch.object(shutil, "which", return_value=found),
        ):
            return refused(ServerError, unprivileged.unprivileged_user)

    def spawns(self, *command: str) -> Child:
        return spawn(self.folder, "server", command or SLEEPER, log=self.folder / "server.log")

    def not_recorded(self) -> str:
        (self.folder / LEDGER_LOCK_NAME).mkdir()
        return refused(ServerError, self.spawns)

    def waits(self, code: str, seconds: float = 60) -> str:
        child = self.spawns(sys.executable, "-c", code)
        return refused(ServerError, lambda: child.wait_ready(lambda: False, seconds))

    def in_use(self) -> str:
        other = subprocess.Popen(
            [sys.executable, "-c", SUPERVISOR + "sys.stdin.read()", str(self.folder), "valkey"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
        )
        try:
            wait_until(lambda: children(self.folder), "the other one has started a server")
            return self.starts(self.valkey)
        finally:
            other.kill()
            other.communicate()
            reap_leftovers(self.folder)

    def ledger(self, text: str) -> str:
        (self.folder / LEDGER_NAME).write_text(text)
        try:
            return self.starts(self.valkey)
        finally:
            (self.folder / LEDGER_NAME).unlink()

    def no_port(self) -> str:
        with mock.patch.object(ports, "port_is_free", return_value=False):
            return refused(ServerError, free_port)


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


EXAMPLE = "postgres://user:password@localhost:5432/kafkadash"


@each(
    case(ServerErrorCode.FILES_NOT_WRITTEN, lambda m: m.below_a_file(Postgres), files="The database's files"),
    case(ServerErrorCode.FILES_NOT_WRITTEN, lambda m: m.in_the_way("valkey"), files="Valkey's files"),
    case(ServerErrorCode.FILES_NOT_WRITTEN, lambda m: m.below_a_file(Valkey), files="Valkey's files"),
    case(ServerErrorCode.NEVER_STARTED, lambda m: refused(ServerError, m.postgres.url), server="database"),
    case(ServerErrorCode.NEVER_STARTED, lambda m: refused(ServerError, m.valkey.url), server="Valkey"),
    case(ServerErrorCode.DATABASE_RECORD_UNREADABLE, lambda m: m.unreadable(m.postgres, "postgres.json")),
    case(ServerErrorCode.VALKEY_RECORD_UNREADABLE, lambda m: m.unreadable(m.valkey, "valkey.json")),
    case(
        ServerErrorCode.NO_EMBEDDED_SERVER,
        lambda m: m.without_wheel(m.postgres),
        setting="DATABASE_URL",
        example=EXAMPLE,
    ),
    case(
        ServerErrorCode.NO_EMBEDDED_SERVER,
        lambda m: m.without_wheel(m.valkey),
        server="Valkey",
        own="a Redis or Valkey",
    ),
    case(ServerErrorCode.INITDB_FAILED, lambda m: m.initdb("echo 'No space left.' >&2; exit 1"), said="No space left"),
    case(ServerErrorCode.PROGRAM_TOO_SLOW, lambda m: m.initdb("exec sleep 60", 0.1), program="PostgreSQL's initdb"),
    case(ServerErrorCode.NO_USER_FOR_POSTGRESQL, Machine.as_root, user="kafkadash", said="there is no useradd command"),
    case(
        ServerErrorCode.NO_USER_FOR_POSTGRESQL,
        lambda m: m.as_root(useradd="echo 'cannot lock /etc/passwd' >&2; exit 10"),
        said="cannot lock /etc/passwd",
    ),
    case(
        ServerErrorCode.NO_USER_FOR_POSTGRESQL,
        lambda m: m.as_root(useradd="exec sleep 60", seconds=0.1),
        said="useradd did not end within 0.1 s",
    ),
    case(
        ServerErrorCode.NOT_STARTED, lambda m: refused(ServerError, lambda: m.spawns("/nowhere/ghost")), name="server"
    ),
    case(ServerErrorCode.NOT_RECORDED, Machine.not_recorded, name="server"),
    case(ServerErrorCode.ENDED_EARLY, lambda m: m.waits("raise SystemExit('no port')"), how=" with exit code 1"),
    case(ServerErrorCode.ENDED_EARLY, lambda m: m.waits("raise SystemExit(3)"), how=" with exit code 3"),
    case(ServerErrorCode.NOT_READY, lambda m: m.waits("import time; time.sleep(600)", 0.1), name="server", seconds=0.1),
    case(ServerErrorCode.FOLDER_IN_USE, Machine.in_use, name="valkey"),
    case(ServerErrorCode.PROCESSES_UNREADABLE, lambda m: m.ledger("not json")),
    case(ServerErrorCode.PROCESSES_UNREADABLE, lambda m: m.ledger('{"format": 0}'), fault="another version wrote it"),
    case(ServerErrorCode.NO_LOOPBACK_PORT, Machine.no_port, first=PORT_RANGE.start, last=PORT_RANGE.stop - 1),
)
def test_by_a_server(one: Case, tmp_path: Path) -> None:
    try:
        one.check(Machine(tmp_path))
    finally:
        stop_all(children(tmp_path), 5)
    assert [child.name for child in recorded(tmp_path) if child.alive()] == []


def test_what_it_wrote_last_is_shown_or_that_it_wrote_nothing(tmp_path: Path) -> None:
    said = Machine(tmp_path).waits("raise SystemExit('The port is taken.')")
    assert said.endswith(f"Last lines of {tmp_path / 'server.log'}:\nThe port is taken.")
    (tmp_path / "server.log").write_text("")
    assert Machine(tmp_path).waits("raise SystemExit(3)").endswith(f"{tmp_path / 'server.log'} is empty.")
    assert find(tmp_path, "server") is None


@pytest.mark.parametrize("kept", [True, False])
def test_what_is_said_of_a_lost_record_is_so(tmp_path: Path, kept: bool) -> None:
    """A database in the state folder is found again without its record, one elsewhere is not."""
    if kept:
        (tmp_path / "postgres" / "data").mkdir(parents=True)
    home = Postgres(tmp_path)._new_home(None)
    assert Path(home.data).exists() is kept
