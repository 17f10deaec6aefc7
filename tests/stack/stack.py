"""The product as separate processes in a folder of its own, any of which may be killed, frozen or kept away.

    with Stack(folder, Shape(racks=("a", "b", "c"), executes=2)) as stack:
        stack.provision()                          # alice, bob, admin; the playground registered as "demo"
        stack.kill("worker-execute")               # SIGKILL; it is started again after a second
        stack.kill("web", signal.SIGTERM)
        stack.freeze("worker-execute", 40)         # SIGSTOP now, SIGCONT 40 s later (or at ``thaw``)
        stack.pause("postgres"); stack.resume("postgres")   # away for as long as you like
        stack.wait_serving("postgres")
        stack.environment["worker-execute"] = {"SOME_SWITCH": "1"}   # from its next start on; "" is for all
        stack.manage("migrate")                    # manage.py on the stack's database; its output

Names of processes: ``postgres``, ``valkey``, ``web``, ``worker-tick``, ``worker-collect``, ``worker-jobs``,
``worker-execute``, ``beat`` (further ones ``web-2``, ``worker-execute-2`` …), and Kafka's nodes ``kafka-1`` … (brokers)
and ``kafka-101`` … (controllers). ``Shape(racks=())`` has no Kafka, ``Shape(webs=0, …)`` none of that service. With
``zookeepers`` Kafka is 3.9, with servers that the playground alone starts and stops.
Addresses stay the same over restarts. Everything ends with the stack, also when its block fails; what a killed Python
left running, the next stack of the same folder ends.
Nothing here needs Django; whoever wants it in this process puts ``stack.addresses()`` into ``os.environ`` first.

As root, PostgreSQL runs as another user: make the folder's parents enterable for it (mode 755).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from kafkadash.core.messages import as_message
from kafkadash.devtools.demo import supervisor as services
from kafkadash.devtools.demo.folder import DemoFolder, make_folder
from kafkadash.devtools.demo.people import PEOPLE
from kafkadash.devtools.embedded.ports import LOOPBACK, free_port
from kafkadash.devtools.embedded.postgres import NAME as POSTGRES
from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from kafkadash.devtools.embedded.process import ServerError, find_child, live_children, reap_leftovers, spawn, stop_all
from kafkadash.devtools.embedded.valkey import NAME as VALKEY
from kafkadash.devtools.embedded.valkey import EmbeddedValkey
from kafkadash.devtools.playground.cluster import KafkaPlayground, SecuredEnsemble
from tests.stack.keeper import Keeper, Say, Started
from tests.waiting import wait_until

CHECKOUT = Path(__file__).resolve().parents[2]
COMMAND_SECONDS = 180.0
SERVING_SECONDS = 60.0
STOP_SECONDS = 15.0
# Far beyond what a node's start takes on a machine that is busy with other things.
NODE_SECONDS = 45.0
# What a test run, or a demo, may have set for itself: nothing of it is for the stack.
OTHERS = ("KAFKADASH_VAR", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "FIELD_KEYS", "KAFKADASH_PORT")


@dataclass(frozen=True, slots=True)
class Shape:
    """How many of what. ``racks`` has one entry for each broker; without any there is no Kafka."""

    racks: tuple[str, ...] = ()
    controllers: int = 3
    zookeepers: int = 0
    dirs: int = 1
    webs: int = 1
    ticks: int = 1
    collects: int = 1
    jobs: int = 1
    executes: int = 1
    notifies: int = 1
    beats: int = 1


@dataclass
class Stack:
    """See the module's text. ``environment``: service → names and values beside those of the stack; "" for all."""

    folder: Path
    shape: Shape = field(default_factory=Shape)
    environment: dict[str, dict[str, str]] = field(default_factory=dict)
    say: Say = lambda _: None
    ensemble: SecuredEnsemble | None = None

    def __post_init__(self) -> None:
        self.folder = self.folder.absolute()
        # Beside the folder, not in it: whoever ends what runs from a folder looks right below it.
        kafka = self.folder.with_name(f"{self.folder.name}-kafka")
        self.playground = KafkaPlayground(kafka, ensemble=self.ensemble)
        self.postgres = EmbeddedPostgres(self.folder)
        self.valkey = EmbeddedValkey(self.folder)
        self.port = 0
        self._base: dict[str, str] = {}
        self._ports: dict[str, int] = {}
        self._keepers: dict[str, Keeper] = {}
        self._thaws: dict[str, threading.Timer] = {}

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    # --- the whole ---

    def start(self) -> None:
        """Returns when Kafka and the pages serve (those that the shape has). Raises ServerError."""
        own = make_folder(self.folder)
        reap_leftovers(self.folder)
        reap_leftovers(self.playground.folder)
        if self.shape.racks:
            servers = self.shape.zookeepers
            controlled = {"zookeepers": servers} if servers else {"controllers": self.shape.controllers}
            self.playground.up(racks=self.shape.racks, dirs=self.shape.dirs, **controlled)
            for node in self.playground.cluster.nodes:
                self._keep(node.name, self._node_starter(node.name, node.node_id))
        self._keep(POSTGRES, lambda: Started(self.postgres.start()), has_family=True)
        self._keep(VALKEY, lambda: Started(self.valkey.start()))
        self._base = {
            "DATABASE_URL": self.postgres.url(),
            "REDIS_URL": self.valkey.url(),
            **own.keys({}),
            "KAFKADASH_VAR": str(self.folder),
        }
        own.write_environment(self._base)
        self.manage("migrate")
        for service in self._services():
            self._keep(service.name, self._service_starter(service))
        self.port = self._ports.get("web", 0)
        for name in self._ports:
            self.wait_serving(name)

    def stop(self) -> None:
        """Ends everything that was started; the folder stays."""
        for name in list(self._thaws):
            self.thaw(name)
        for keeper in self._keepers.values():
            keeper.finish()
        left = live_children(self.folder)
        stop_all([child for child in left if child.entry.stage <= services.WORKER_STAGE], STOP_SECONDS)
        if self.shape.racks:
            self.playground.down()
        stop_all([child for child in left if child.entry.stage > services.WORKER_STAGE], STOP_SECONDS)
        self._keepers.clear()

    def remove(self) -> None:
        """Stops, and deletes all files of the stack."""
        self.stop()
        self.postgres.remove()
        for folder in (self.folder, self.playground.folder):
            shutil.rmtree(folder, ignore_errors=True)

    def addresses(self) -> dict[str, str]:
        """The environment by which any process of the product finds this stack's servers and keys."""
        return dict(self._base)

    @property
    def url(self) -> str:
        """Of the first web process."""
        return self.url_of("web")

    def url_of(self, name: str) -> str:
        return f"http://{LOOPBACK}:{self._ports[name]}"

    def password(self, name: str) -> str:
        """Of alice, bob or admin."""
        return DemoFolder(self.folder).sign_ins(tuple(PEOPLE))[name]

    def provision(self) -> str:
        """Users, and the playground as cluster ``demo``, with first figures read; it needs tick and collect."""
        cluster = self.playground.cluster
        beside = ("--zookeeper", cluster.zookeeper) if cluster.zookeepers else ()
        return self.manage("provision_demo", cluster.bootstrap, cluster.cluster_id, *beside)

    def manage(self, *args: str) -> str:
        """``manage.py`` on this stack; its output. Raises ServerError with what it said."""
        return self.python("manage.py", *args)

    def python(self, *args: str, timeout: float = COMMAND_SECONDS) -> str:
        """A Python program in this stack's environment; its output. Raises ServerError."""
        done = subprocess.run(
            [sys.executable, *args],
            cwd=CHECKOUT,
            env=self.environment_of("command"),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode != 0:
            raise ServerError(as_message(f"{' '.join(args)} failed: {done.stdout.strip()}\n{done.stderr.strip()}"))
        return done.stdout

    # --- one process ---

    def names(self) -> list[str]:
        return list(self._keepers)

    def processes(self) -> dict[str, int]:
        """Name → process id, of those that live now."""
        live = {name: keeper.child for name, keeper in self._keepers.items()}
        return {name: child.pid for name, child in live.items() if child is not None}

    def pid(self, name: str) -> int | None:
        child = self._keeper(name).child
        return child.pid if child is not None else None

    def starts(self, name: str) -> int:
        """How often it was started in this stack's life."""
        return self._keeper(name).starts

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int | None:
        """The id of the process that was killed, None when there was none. It is started again after a second."""
        return self._keeper(name).send(number)

    def pause(self, name: str, number: signal.Signals = signal.SIGKILL) -> int | None:
        """Ended by SIGKILL, or another signal, and away until ``resume``."""
        return self._keeper(name).pause(number)

    def resume(self, name: str) -> None:
        self._keeper(name).resume()

    @contextlib.contextmanager
    def away(self, *names: str) -> Iterator[None]:
        for name in names:
            self.pause(name)
        try:
            yield
        finally:
            for name in names:
                self.resume(name)

    def freeze(self, name: str, seconds: float) -> int | None:
        """SIGSTOP now, SIGCONT after ``seconds`` or at ``thaw``; returns at once with the process id."""
        pid = self.kill(name, signal.SIGSTOP)
        if pid is not None:
            timer = self._thaws[name] = threading.Timer(seconds, self.thaw, [name, pid])
            timer.daemon = True
            timer.start()
        return pid

    def thaw(self, name: str, pid: int | None = None) -> None:
        """Lets a frozen process go on; with ``pid`` only if that is still its process."""
        timer = self._thaws.pop(name, None)
        if timer is not None:
            timer.cancel()
        if pid is None or self.pid(name) == pid:
            self.kill(name, signal.SIGCONT)

    def serves(self, name: str) -> bool:
        """Whether it answers; of workers and beat, whether there is a process."""
        if not self._keeper(name).serves:
            return False
        return name not in self._ports or services.serves_pages(self._ports[name])

    def wait_serving(self, name: str, deadline_s: float = SERVING_SECONDS) -> None:
        wait_until(lambda: self.serves(name), f"{name} serves (see {self.log(name)})", deadline_s)

    def log(self, name: str) -> Path:
        if name.startswith("kafka-"):
            return self.playground.layout.log(name)
        return self.folder / "logs" / f"{name}.log"

    def environment_of(self, name: str) -> dict[str, str]:
        """All of a process's environment."""
        clean = {key: value for key, value in os.environ.items() if key not in OTHERS}
        own = {"KAFKADASH_PROCESS": f"kafkadash {name}", "LOG_JSON": "false", "PYTHONUNBUFFERED": "1"}
        return clean | self._base | own | self.environment.get("", {}) | self.environment.get(name, {})

    # --- starting ---

    def _keep(self, name: str, start: Callable[[], Started], *, has_family: bool = False) -> None:
        keeper = self._keepers[name] = Keeper(name, start, self.say, has_family=has_family)
        keeper.begin()

    def _keeper(self, name: str) -> Keeper:
        try:
            return self._keepers[name]
        except KeyError:
            raise ServerError(as_message(f"No {name} here; there are {', '.join(self._keepers)}.")) from None

    def _services(self) -> Iterator[services.DemoService]:
        kinds = {service.name: service for service in services.workers_and_beat()}
        wanted = {
            "worker-tick": self.shape.ticks,
            "worker-collect": self.shape.collects,
            "worker-jobs": self.shape.jobs,
            "worker-execute": self.shape.executes,
            "worker-notify": self.shape.notifies,
            "beat": self.shape.beats,
        }
        for number in range(1, self.shape.webs + 1):
            name = _numbered("web", number)
            self._ports[name] = free_port(taken=self._ports.values())
            yield replace(services.web_service(self._ports[name]), name=name)
        for kind, count in wanted.items():
            for number in range(1, count + 1):
                yield _another(kinds[kind], number)

    def _service_starter(self, service: services.DemoService) -> Callable[[], Started]:
        def start() -> Started:
            return Started(
                spawn(
                    self.folder,
                    service.name,
                    [sys.executable, *service.arguments],
                    log=self.log(service.name),
                    env=self.environment_of(service.name),
                    cwd=CHECKOUT,
                    stage=service.stage,
                )
            )

        return start

    def _node_starter(self, name: str, node_id: int) -> Callable[[], Started]:
        def start() -> Started:
            running = find_child(self.playground.folder, name, self.log(name))
            if running is not None:
                return Started(running)
            child, serves = self.playground.launch(node_id)
            return Started(child, serves, NODE_SECONDS)

        return start


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


def _another(service: services.DemoService, number: int) -> services.DemoService:
    """The same kind of service once more, under a name of its own."""
    if number == 1:
        return service
    arguments = tuple(argument.replace("@%h", f"-{number}@%h") for argument in service.arguments)
    return replace(service, name=_numbered(service.name, number), arguments=arguments)
