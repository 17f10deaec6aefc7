"""What is said where PostgreSQL and Valkey of one's own machine do not start.

What ``manage.py playground`` says, and whoever starts real Kafka on a machine that lacks something for it.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from django.core.management import CommandError, call_command

from kafkadash.core.messages import CodedMessage
from kafkadash.devtools.embedded import folders as unprivileged
from kafkadash.devtools.embedded import ports, postgres
from kafkadash.devtools.embedded.errors import ServerErrorCode
from kafkadash.devtools.embedded.ports import LOOPBACK, PORT_RANGE, free_port
from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from kafkadash.devtools.embedded.process import (
    LEDGER_LOCK_NAME,
    ChildProcess,
    ServerError,
    find_child,
    live_children,
    recorded,
    spawn,
    stop_all,
)
from kafkadash.devtools.embedded.valkey import EmbeddedValkey
from kafkadash.devtools.playground import cluster, jars, load
from kafkadash.devtools.playground import cluster as prepare
from kafkadash.devtools.playground import cluster as tool
from kafkadash.devtools.playground import jars as runtime
from kafkadash.devtools.playground.cluster import (
    KafkaPlayground,
    PlaygroundLayout,
    choose_ports,
    new_cluster,
    write_cluster,
)
from kafkadash.devtools.playground.errors import PlaygroundErrorCode
from kafkadash.devtools.playground.jars import JavaInstall, KafkaDistribution, KafkaRuntime
from tests.embedded.test_process import SLEEPER
from tests.playground.test_runtime import Repository
from tests.refusals.driving import Case, case, each, refusal, refused


class Machine:
    """Where somebody starts servers, in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.postgres, self.valkey = EmbeddedPostgres(folder, fsync=False), EmbeddedValkey(folder)

    def starts(self, server: EmbeddedPostgres | EmbeddedValkey) -> CodedMessage:
        return refusal(ServerError, server.start)

    def in_the_way(self, name: str) -> CodedMessage:
        (self.folder / name).touch()
        return self.starts(self.valkey)

    def below_a_file(self, kind: type[EmbeddedPostgres] | type[EmbeddedValkey]) -> CodedMessage:
        (self.folder / "file").touch()
        return self.starts(kind(self.folder / "file" / "state"))

    def unreadable(self, server: EmbeddedPostgres | EmbeddedValkey, name: str) -> CodedMessage:
        (self.folder / name).write_text("[]")
        return refusal(ServerError, server.url)

    def initdb(self, script: str, seconds: float = 60) -> CodedMessage:
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

    def as_root(self, *, useradd: str | None = None, seconds: float = 60) -> CodedMessage:
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
            return refusal(ServerError, unprivileged.unprivileged_user)

    def spawns(self, *command: str) -> ChildProcess:
        return spawn(self.folder, "server", command or SLEEPER, log=self.folder / "server.log")

    def not_recorded(self) -> CodedMessage:
        (self.folder / LEDGER_LOCK_NAME).mkdir()
        return refusal(ServerError, self.spawns)

    def waits(self, code: str, seconds: float = 60) -> CodedMessage:
        child = self.spawns(sys.executable, "-c", code)
        return refusal(ServerError, lambda: child.wait_ready(lambda: False, seconds))

    def no_port(self) -> CodedMessage:
        with mock.patch.object(ports, "port_is_free", return_value=False):
            return refusal(ServerError, free_port)


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@each(
    case(ServerErrorCode.FILES_NOT_WRITTEN, lambda m: m.below_a_file(EmbeddedPostgres), files="The database's files"),
    case(ServerErrorCode.FILES_NOT_WRITTEN, lambda m: m.in_the_way("valkey"), files="Valkey's files"),
    case(ServerErrorCode.FILES_NOT_WRITTEN, lambda m: m.below_a_file(EmbeddedValkey), files="Valkey's files"),
    case(ServerErrorCode.NEVER_STARTED, lambda m: refusal(ServerError, m.postgres.url), server="database"),
    case(ServerErrorCode.NEVER_STARTED, lambda m: refusal(ServerError, m.valkey.url), server="Valkey"),
    case(ServerErrorCode.DATABASE_RECORD_UNREADABLE, lambda m: m.unreadable(m.postgres, "postgres.json")),
    case(ServerErrorCode.VALKEY_RECORD_UNREADABLE, lambda m: m.unreadable(m.valkey, "valkey.json")),
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
    case(ServerErrorCode.NOT_RECORDED, Machine.not_recorded, name="server"),
    case(ServerErrorCode.NO_LOOPBACK_PORT, Machine.no_port, first=PORT_RANGE.start, last=PORT_RANGE.stop - 1),
)
def test_by_a_server(one: Case, tmp_path: Path) -> None:
    try:
        one.check(Machine(tmp_path))
    finally:
        stop_all(live_children(tmp_path), 5)
    assert [child.name for child in recorded(tmp_path) if child.alive()] == []


def test_child_that_ended_early__its_log_is_shown(tmp_path: Path) -> None:
    said = Machine(tmp_path).waits("raise SystemExit('The port is taken.')")
    assert str(said).splitlines()[-1] == "The port is taken."
    (tmp_path / "server.log").write_text("")
    assert str(tmp_path / "server.log") in str(Machine(tmp_path).waits("raise SystemExit(3)"))
    assert find_child(tmp_path, "server") is None


@pytest.mark.parametrize("kept", [True, False])
def test_what_is_said_of_a_lost_record_is_so(tmp_path: Path, kept: bool) -> None:
    """A database in the state folder is found again without its record, one elsewhere is not."""
    if kept:
        (tmp_path / "postgres" / "data").mkdir(parents=True)
    home = EmbeddedPostgres(tmp_path)._new_home(None)
    assert Path(home.data).exists() is kept


NOBODY = f"{LOOPBACK}:1"
SERVES = [sys.executable, "-c", "import time; print('Kafka Server started', flush=True); time.sleep(600)"]


class Typist:
    """Somebody at the command line, with the playground of ``folder``; Java and its jars are there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def types(self, *words: str, folder: Path | None = None) -> str:
        out = io.StringIO()
        command = ("playground", "--folder", str(folder or self.folder), *words)
        with mock.patch.object(cluster, "prepare_runtime", return_value=mock.Mock(spec=KafkaRuntime)):
            return refused(CommandError, lambda: call_command(*command, stdout=out, stderr=out))

    def made(self, brokers: int = 3, controllers: int = 1) -> Typist:
        """The playground is there, stopped."""
        self.folder.mkdir(exist_ok=True)
        write_cluster(self.folder, choose_ports(new_cluster(brokers, None, controllers, 1), set()))
        return self

    def runs(self, node: int) -> Typist:
        self.made()
        spawn(self.folder, f"kafka-{node}", SLEEPER, log=self.folder / "log")
        return self

    def state(self, text: str) -> str:
        PlaygroundLayout(self.folder).state.write_text(text)
        return self.types("status")

    def config_in_the_way(self) -> str:
        (self.folder / "config").touch()
        return self.types("up")

    def below_a_file(self) -> str:
        (self.folder / "file").touch()
        return self.types("up", folder=self.folder / "file" / "playground")

    def added_in_vain(self) -> CodedMessage:
        """The process of the new broker ends at once."""
        self.runs(1)
        commands = mock.Mock(spec=KafkaRuntime, **{"server_command.return_value": ["false"]})
        with (
            mock.patch.object(cluster, "prepare_runtime", return_value=commands),
            mock.patch.object(cluster, "format_nodes"),
        ):
            return refusal(ServerError, lambda: KafkaPlayground(self.folder).add_broker("a"))

    def format(self, script: str, seconds: float = 60) -> CodedMessage:
        """Kafka's storage tool does this."""
        with mock.patch.object(runtime, "FORMAT_SECONDS", seconds):
            own = self.runtime(script)
            return refusal(ServerError, lambda: own.format_storage("id", self.folder / "kafka-1.properties", []))

    def runtime(self, script: str) -> KafkaRuntime:
        return KafkaRuntime(
            JavaInstall(program(self.folder / "java", script), 17, "17"), KafkaDistribution((), ""), self.folder / "x"
        )

    def tool(self, name: str) -> CodedMessage:
        own = self.runtime("exec sleep 60")
        with mock.patch.object(tool, "prepare_runtime", return_value=own):
            return refusal(ServerError, lambda: tool.run_tool(name, [], NOBODY, timeout=0.1))


@each(
    case(PlaygroundErrorCode.NO_PLAYGROUND, lambda t: t.types("status")),
    case(PlaygroundErrorCode.PLAYGROUND_UNREADABLE, lambda t: t.state("{")),
    case(
        PlaygroundErrorCode.PLAYGROUND_UNREADABLE,
        lambda t: t.state('{"format": 0}'),
        fault="written by another version",
    ),
    case(PlaygroundErrorCode.PLAYGROUND_TOO_SMALL, lambda t: t.types("up", "--brokers", "0")),
    case(
        PlaygroundErrorCode.RACKS_DO_NOT_FIT,
        lambda t: t.types("up", "--brokers", "3", "--racks", "a,b"),
        brokers=3,
        racks=2,
        given="a,b",
    ),
    case(ServerErrorCode.FILES_NOT_WRITTEN, Typist.config_in_the_way, files="The playground's files"),
    case(ServerErrorCode.FILES_NOT_WRITTEN, Typist.below_a_file, files="The playground's files"),
    case(PlaygroundErrorCode.ADDED_BUT_NOT_STARTED, Typist.added_in_vain, broker=4),
    case(
        PlaygroundErrorCode.STORAGE_NOT_FORMATTED,
        lambda t: t.format("echo 'Bad node.id.' >&2; exit 1"),
        said="Bad node.id",
    ),
    case(ServerErrorCode.PROGRAM_TOO_SLOW, lambda t: t.format("exec sleep 60", 0.1), program="Kafka's storage tool"),
    case(ServerErrorCode.PROGRAM_TOO_SLOW, lambda t: t.tool("topics"), program="Kafka's topics tool", seconds=0.1),
)
def test_by_its_command(one: Case, tmp_path: Path) -> None:
    try:
        one.check(Typist(tmp_path))
    finally:
        stop_all(live_children(tmp_path), 5)


class Shop:
    """A machine without Kafka's jars, and a repository that has three for it."""

    def __init__(self, folder: Path, repository: Repository) -> None:
        self.folder, self.repository = folder, repository

    def fetch(self, cache: str = "cache") -> CodedMessage:
        own = self.repository
        return refusal(ServerError, lambda: jars.fetch(own.lock, self.folder / cache, repository=own.url))

    def cache_below_a_file(self) -> CodedMessage:
        (self.folder / "file").touch()
        return self.fetch("file/cache")

    def prepares(self) -> str:
        """Java runs, but writes no archive when it ends."""
        told: list[str] = []
        cache = self.folder / "cache"
        cache.mkdir()

        def start(_: KafkaRuntime, state: Path, *__: object) -> ChildProcess:
            return spawn(state, "class archive", SERVES, log=state / "node.log")

        own = JavaInstall(self.folder / "java", 17, "17.0.1")
        with (
            mock.patch.multiple(prepare, find_java=lambda: own, _start_node=start),
            mock.patch.object(jars, "fetch", return_value=KafkaDistribution((), "digest")),
        ):
            prepare._prepare_runtime(cache, told.append)
        return " ".join(told)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    monkeypatch.setenv("NO_PROXY", LOOPBACK)
    found = Repository(tmp_path)
    yield found
    found.close()


@each(
    case(PlaygroundErrorCode.CACHE_NOT_USABLE, Shop.cache_below_a_file),
    case(PlaygroundErrorCode.NO_CLASS_ARCHIVE, Shop.prepares, version=17),
    case(PlaygroundErrorCode.ARCHIVE_NOT_WRITTEN, Shop.prepares),
)
def test_where_something_is_missing(one: Case, tmp_path: Path, repository: Repository) -> None:
    one.check(Shop(tmp_path, repository))


class Leaderless:
    """An admin client of a cluster that makes topics without leaders."""

    def create_topics(self, topics: list[Any], **_: object) -> dict[str, Future[None]]:
        futures: dict[str, Future[None]] = {topic.topic: Future() for topic in topics}
        for future in futures.values():
            future.set_result(None)
        return futures

    def list_topics(self, **_: object) -> SimpleNamespace:
        return SimpleNamespace(topics={})


def makes_topics() -> object:
    with mock.patch.object(load, "AdminClient", return_value=Leaderless()):
        return load.create_topics(NOBODY, [load.LoadTopic("load-1")])


def fills() -> object:
    return load._fill_topics(NOBODY, [load.LoadTopic("load-1", partitions=1, fill_bytes=100)])


def writes() -> object:
    return load.produce_steadily(NOBODY, ["load-1"], 1000, threading.Event())


@each(
    case(
        PlaygroundErrorCode.NOT_ALL_JOINED,
        lambda: refusal(ServerError, lambda: load.wait_for_brokers(NOBODY, [2, 1], 0)),
        brokers=[1, 2],
        seconds=0,
    ),
    case(PlaygroundErrorCode.NO_LEADERS, lambda: refusal(ServerError, makes_topics), topics="load-1"),
    case(
        PlaygroundErrorCode.DATA_NOT_TAKEN,
        lambda: refusal(ServerError, fills),
        fault="1 record was not accepted within 0.2 s",
    ),
    case(PlaygroundErrorCode.PLAYGROUND_SILENT, lambda: refusal(ServerError, writes)),
)
def test_by_what_writes_to_it(one: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "ADMIN_SECONDS", 0.2)
    monkeypatch.setattr(load, "FLUSH_SECONDS", 0.2)
    one.check()
