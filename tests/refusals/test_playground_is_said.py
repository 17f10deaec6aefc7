"""What ``manage.py playground`` says, and whoever starts real Kafka on a machine that lacks something for it."""

from __future__ import annotations

import errno
import io
import shutil
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import KafkaError, KafkaException
from django.core.management import CommandError, call_command

from kafkadash.embedded.errors import ServerErrorCode
from kafkadash.embedded.ports import LOOPBACK
from kafkadash.embedded.process import Child, ServerError, children, spawn, stop_all
from kafkadash.playground import cluster, jars, java, load, prepare, runtime, tool
from kafkadash.playground.cluster import Playground
from kafkadash.playground.errors import PlaygroundErrorCode
from kafkadash.playground.jars import Distribution
from kafkadash.playground.java import MINIMUM_MAJOR, Java
from kafkadash.playground.runtime import Runtime
from kafkadash.playground.state import Layout, choose_ports, new_cluster, write_cluster
from kafkadash.playground.tool import TOOLS
from tests.embedded.test_process import SLEEPER
from tests.playground.test_jars import Repository
from tests.refusals.driving import Case, case, each, refused
from tests.refusals.test_servers_are_said import program

NOBODY = f"{LOOPBACK}:1"
SERVES = [sys.executable, "-c", "import time; print('Kafka Server started', flush=True); time.sleep(600)"]


class Typist:
    """Somebody at the command line, with the playground of ``folder``; Java and its jars are there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def types(self, *words: str, folder: Path | None = None) -> str:
        out = io.StringIO()
        command = ("playground", "--folder", str(folder or self.folder), *words)
        with mock.patch.object(cluster, "prepare_runtime", return_value=mock.Mock(spec=Runtime)):
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
        Layout(self.folder).state.write_text(text)
        return self.types("status")

    def config_in_the_way(self) -> str:
        (self.folder / "config").touch()
        return self.types("up")

    def below_a_file(self) -> str:
        (self.folder / "file").touch()
        return self.types("up", folder=self.folder / "file" / "playground")

    def ports_taken(self) -> str:
        self.made(1, 3)
        with ExitStack() as taken:
            for node in Playground(self.folder).cluster.controllers[:2]:
                assert node.controller_port is not None
                taken.enter_context(socket.create_server((LOOPBACK, node.controller_port)))
            return self.types("up")

    def added_in_vain(self) -> str:
        """The process of the new broker ends at once."""
        self.runs(1)
        commands = mock.Mock(spec=Runtime, **{"server_command.return_value": ["false"]})
        with (
            mock.patch.object(cluster, "prepare_runtime", return_value=commands),
            mock.patch.object(cluster, "format_nodes"),
        ):
            return refused(ServerError, lambda: Playground(self.folder).add_broker("a"))

    def format(self, script: str, seconds: float = 60) -> str:
        """Kafka's storage tool does this."""
        with mock.patch.object(runtime, "FORMAT_SECONDS", seconds):
            own = self.runtime(script)
            return refused(ServerError, lambda: own.format_storage("id", self.folder / "kafka-1.properties", []))

    def runtime(self, script: str) -> Runtime:
        return Runtime(Java(program(self.folder / "java", script), 17, "17"), Distribution((), ""), self.folder / "x")

    def tool(self, name: str) -> str:
        own = self.runtime("exec sleep 60")
        with mock.patch.object(tool, "prepare_runtime", return_value=own):
            return refused(ServerError, lambda: tool.run_tool(name, [], NOBODY, timeout=0.1))


@each(
    case(PlaygroundErrorCode.NO_PLAYGROUND, lambda t: t.types("status")),
    case(PlaygroundErrorCode.PLAYGROUND_UNREADABLE, lambda t: t.state("{")),
    case(
        PlaygroundErrorCode.PLAYGROUND_UNREADABLE, lambda t: t.state('{"format": 0}'), fault="another version wrote it"
    ),
    case(PlaygroundErrorCode.PLAYGROUND_HAS_COMMA, lambda t: t.types("up", folder=t.folder / "one, two")),
    case(
        PlaygroundErrorCode.PLAYGROUND_IS_OTHER,
        lambda t: t.made().types("up", "--brokers", "5"),
        what="brokers",
        have=3,
        want=5,
    ),
    case(
        PlaygroundErrorCode.PLAYGROUND_IS_OTHER,
        lambda t: t.made().types("up", "--racks", "a,b,c"),
        what="racks",
        have="a,a,b",
        want="a,b,c",
    ),
    case(PlaygroundErrorCode.PLAYGROUND_TOO_SMALL, lambda t: t.types("up", "--brokers", "0")),
    case(
        PlaygroundErrorCode.RACKS_DO_NOT_FIT,
        lambda t: t.types("up", "--brokers", "3", "--racks", "a,b"),
        brokers=3,
        racks=2,
        given="a,b",
    ),
    case(PlaygroundErrorCode.CONTROLLERS_CANNOT_MOVE, Typist.ports_taken, moved=2, all=3),
    case(ServerErrorCode.FILES_NOT_WRITTEN, Typist.config_in_the_way, files="The playground's files"),
    case(ServerErrorCode.FILES_NOT_WRITTEN, Typist.below_a_file, files="The playground's files"),
    case(
        PlaygroundErrorCode.NOBODY_TO_JOIN, lambda t: t.made(1, 3).types("add-broker", "--rack", "b"), running=0, all=3
    ),
    case(PlaygroundErrorCode.ADDED_BUT_NOT_STARTED, Typist.added_in_vain, broker=4),
    case(
        PlaygroundErrorCode.STORAGE_NOT_FORMATTED,
        lambda t: t.format("echo 'Bad node.id.' >&2; exit 1"),
        said="Bad node.id",
    ),
    case(ServerErrorCode.PROGRAM_TOO_SLOW, lambda t: t.format("exec sleep 60", 0.1), program="Kafka's storage tool"),
    case(ServerErrorCode.PROGRAM_TOO_SLOW, lambda t: t.tool("topics"), program="Kafka's topics tool", seconds=0.1),
    case(PlaygroundErrorCode.TOOL_UNKNOWN, lambda t: t.tool("format"), name="format", known=", ".join(TOOLS)),
    case(
        PlaygroundErrorCode.NODE_UNKNOWN,
        lambda t: t.made().types("stop-broker", "9"),
        role="broker",
        node=9,
        known="1, 2, 3",
    ),
    case(
        PlaygroundErrorCode.NODE_UNKNOWN, lambda t: t.made().types("kill-controller", "2"), role="controller", known="1"
    ),
    case(PlaygroundErrorCode.NODE_RUNS, lambda t: t.runs(2).types("start-broker", "2"), node=2),
    case(PlaygroundErrorCode.NODE_DOES_NOT_RUN, lambda t: t.runs(2).types("stop-broker", "3"), node=3),
)
def test_by_its_command(one: Case, tmp_path: Path) -> None:
    try:
        one.check(Typist(tmp_path))
    finally:
        stop_all(children(tmp_path), 5)


class Shop:
    """A machine without Kafka's jars, and a repository that has three for it."""

    def __init__(self, folder: Path, repository: Repository) -> None:
        self.folder, self.repository = folder, repository

    def fetch(self, cache: str = "cache") -> str:
        own = self.repository
        return refused(ServerError, lambda: jars.fetch(own.lock, self.folder / cache, repository=own.url))

    def changed(self) -> str:
        self.repository.files = dict.fromkeys(self.repository.files, b"something else")
        return self.fetch()

    def empty(self) -> str:
        self.repository.files.clear()
        return self.fetch()

    def away(self) -> str:
        self.repository.server.server_close()
        return self.fetch()

    def full(self) -> str:
        with mock.patch.object(jars, "_download", side_effect=OSError(errno.ENOSPC, "No space left on device")):
            return self.fetch()

    def cache_below_a_file(self) -> str:
        (self.folder / "file").touch()
        return self.fetch("file/cache")

    def lock_broken(self) -> str:
        self.repository.lock.write_text("# one jar\norg.example:jar:1.0\n")
        return self.fetch()

    def without_java(self) -> str:
        with (
            mock.patch.object(shutil, "which", return_value=None),
            mock.patch.object(java, "_wheel_java", return_value=None),
        ):
            return refused(ServerError, java.find_java)

    def prepares(self) -> str:
        """Java runs, but writes no archive when it ends."""
        told: list[str] = []
        cache = self.folder / "cache"
        cache.mkdir()

        def start(_: Runtime, state: Path, *__: object) -> Child:
            return spawn(state, "class archive", SERVES, log=state / "node.log")

        own = Java(self.folder / "java", 17, "17.0.1")
        with (
            mock.patch.multiple(prepare, find_java=lambda: own, _start_node=start),
            mock.patch.object(jars, "fetch", return_value=Distribution((), "digest")),
        ):
            prepare._prepare(cache, told.append)
        return " ".join(told)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    monkeypatch.setenv("NO_PROXY", LOOPBACK)
    found = Repository(tmp_path)
    yield found
    found.close()


@each(
    case(PlaygroundErrorCode.JAR_CHANGED, Shop.changed),
    case(PlaygroundErrorCode.JAR_NOT_GIVEN, Shop.empty),
    case(PlaygroundErrorCode.JARS_NOT_FETCHED, Shop.away, fault="ConnectionError"),
    case(PlaygroundErrorCode.CACHE_FULL, Shop.full),
    case(PlaygroundErrorCode.CACHE_NOT_USABLE, Shop.cache_below_a_file),
    case(PlaygroundErrorCode.JAR_LINE_UNREADABLE, Shop.lock_broken, line=2),
    case(PlaygroundErrorCode.NO_JAVA, Shop.without_java, version=MINIMUM_MAJOR),
    case(PlaygroundErrorCode.NO_CLASS_ARCHIVE, Shop.prepares, version=17),
    case(PlaygroundErrorCode.ARCHIVE_NOT_WRITTEN, Shop.prepares),
)
def test_where_something_is_missing(one: Case, tmp_path: Path, repository: Repository) -> None:
    one.check(Shop(tmp_path, repository))


class Broken:
    """An admin client of a cluster that makes topics without leaders, or refuses them."""

    def __init__(self, error: KafkaError | None = None) -> None:
        self.error = error

    def create_topics(self, topics: list[Any], **_: object) -> dict[str, Future[None]]:
        futures: dict[str, Future[None]] = {topic.topic: Future() for topic in topics}
        for future in futures.values():
            if self.error is None:
                future.set_result(None)
            else:
                future.set_exception(KafkaException(self.error))
        return futures

    def list_topics(self, **_: object) -> SimpleNamespace:
        return SimpleNamespace(topics={})


def at(admin: Broken, do: Callable[[], object]) -> str:
    with mock.patch.object(load, "AdminClient", return_value=admin):
        return refused(ServerError, do)


def fills(bootstrap: str) -> object:
    return load._fill(bootstrap, [load.Topic("load-1", partitions=1, fill_bytes=100)])


def writes(*topics: str) -> object:
    return load.steady(NOBODY, topics, 1000, threading.Event())


TOO_MANY = KafkaError(KafkaError.INVALID_REPLICATION_FACTOR, "There are 3 brokers.")
ONE = [load.Topic("load-1")]


@each(
    case(
        PlaygroundErrorCode.NOT_ALL_JOINED,
        lambda: refused(ServerError, lambda: load.wait_for_brokers(NOBODY, [2, 1], 0)),
        brokers="[1, 2]",
        seconds=0,
    ),
    case(
        PlaygroundErrorCode.TOPIC_REFUSED,
        lambda: at(Broken(TOO_MANY), lambda: load.create_topics(NOBODY, ONE)),
        topic="load-1",
        fault="There are 3 brokers",
    ),
    case(
        PlaygroundErrorCode.NO_LEADERS, lambda: at(Broken(), lambda: load.create_topics(NOBODY, ONE)), topics="load-1"
    ),
    case(
        PlaygroundErrorCode.DATA_NOT_TAKEN,
        lambda: refused(ServerError, lambda: fills(NOBODY)),
        fault="1 records were not taken within 0.2 s",
    ),
    case(PlaygroundErrorCode.PLAYGROUND_SILENT, lambda: refused(ServerError, lambda: writes("load-1"))),
    case(PlaygroundErrorCode.NO_TOPIC_TO_WRITE, lambda: at(Broken(), lambda: writes("nowhere")), topics="nowhere"),
    case(PlaygroundErrorCode.NO_TOPIC_TO_WRITE, lambda: at(Broken(), writes), topics="none was named"),
)
def test_by_what_writes_to_it(one: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "ADMIN_SECONDS", 0.2)
    monkeypatch.setattr(load, "FLUSH_SECONDS", 0.2)
    one.check()
