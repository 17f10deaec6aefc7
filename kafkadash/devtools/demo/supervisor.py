"""The demo: one process in the foreground that checks the machine, starts all services, restarts them and stops them.

The supervisor never opens the product's database. Work that needs Django is done by short child processes with the
demo's environment, as web and workers run. A service that ends is started again, each time after a longer pause. Every
failure becomes one message with a remedy and an exit code, and nothing is left running.

It prints a line per step with its time, then the memory of each process. Slow work is done in threads, so that Ctrl-C
and SIGTERM are heard at any time.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Self

import environ
import psutil
import psycopg
import redis
from psycopg.conninfo import make_conninfo

from kafkadash.core.environment import SECRET_NAMES
from kafkadash.core.messages import coded, message_text
from kafkadash.core.setting_errors import SettingErrorCode
from kafkadash.devtools.demo import folder as folders
from kafkadash.devtools.demo import sample
from kafkadash.devtools.demo.folder import DemoFolder
from kafkadash.devtools.demo.people import PEOPLE
from kafkadash.devtools.embedded.files import read_tail
from kafkadash.devtools.embedded.ports import LOOPBACK, port_is_free
from kafkadash.devtools.embedded.postgres import NAME as POSTGRES
from kafkadash.devtools.embedded.postgres import EmbeddedPostgres, install_folder
from kafkadash.devtools.embedded.process import ChildProcess, ServerError, live_children, recorded, spawn, stop_all
from kafkadash.devtools.embedded.valkey import NAME as VALKEY
from kafkadash.devtools.embedded.valkey import EmbeddedValkey, server_binary
from kafkadash.devtools.errors import DemoErrorCode
from kafkadash.devtools.playground import jars
from kafkadash.devtools.playground.cluster import KafkaPlayground, prepare_release, prepare_runtime
from kafkadash.devtools.playground.consumers import GROUPS, PlaygroundConsumers
from kafkadash.devtools.playground.jars import find_java

NAME_WIDTH = 30


@dataclass(slots=True)
class ReportStep:
    """A step under way; `detail` is what its line will say."""

    detail: str = ""


class StartReport:
    """Prints whole lines, from any thread."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._guard = threading.Lock()
        self._began = time.monotonic()
        self._apart = 0.0

    def say(self, text: str) -> None:
        with self._guard:
            try:
                self._write(text)
            except OSError:  # the terminal is gone: nobody reads on, and what runs must still be stopped
                self._write = _nobody_reads

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[ReportStep]:
        """Print the step's line when it went well."""
        began = time.monotonic()
        step = ReportStep()
        yield step
        self.say(f"  {name:<{NAME_WIDTH}} {time.monotonic() - began:6.1f} s  {step.detail}".rstrip())

    def set_apart(self, seconds: float) -> None:
        """Downloads depend on the network and happen once: they do not count as starting."""
        self._apart += seconds

    def total(self) -> str:
        seconds = time.monotonic() - self._began - self._apart
        apart = f" (plus {self._apart:.1f} s for one-time downloads and preparation)" if self._apart else ""
        return f"{seconds:.1f} s{apart}"


def memory_lines(processes: Iterable[ChildProcess]) -> list[str]:
    """Return one line per process with the memory of its process tree, and their sum; shared pages are counted once."""
    sizes = [(child.name, _tree_bytes(child.pid)) for child in processes]
    lines = [f"  {name:<{NAME_WIDTH}} {_format_megabytes(size)}" for name, size in sizes]
    known = [size for _, size in sizes if size is not None]
    return [
        *lines,
        f"  {'total':<{NAME_WIDTH}} {_format_megabytes(sum(known) if len(known) == len(sizes) else None)}",
    ]


def _nobody_reads(_text: str) -> None:
    """Discard a line, after the terminal was closed."""


def _tree_bytes(pid: int) -> int | None:
    try:
        process = psutil.Process(pid)
        return sum(_process_bytes(each) for each in [process, *process.children(recursive=True)])
    except psutil.Error:
        return None


def _process_bytes(process: psutil.Process) -> int:
    full = process.memory_full_info()
    # Linux shares a page's size out among those that use it (PSS); elsewhere only what is not shared is exact.
    return int(getattr(full, "pss", full.uss))


def _format_megabytes(size: int | None) -> str:
    return f"{size / 1e6:6.0f} MB" if size is not None else "unknown"


POLL_SECONDS = 0.05
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class InterruptedStart(Exception):
    """Request to stop the demo while it was still starting."""


class StopRequests:
    """Counts how often somebody asked to stop. A handler may only count: anything with a lock in it could deadlock."""

    def __init__(self) -> None:
        self.count = 0
        self._before: list[tuple[signal.Signals, Any]] = []

    def __enter__(self) -> Self:
        self._before = [(number, signal.signal(number, self._arrived)) for number in SIGNALS]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)

    def _arrived(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1


class StopThread(threading.Thread):
    """Thread that runs a sequence of steps. Its error is kept for the waiting thread."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self.error: BaseException | None = None
        self._work = work

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  raised again in the main thread
            self.error = error


def wait_for(lanes: Iterable[StopThread], requests: StopRequests) -> None:
    """Return when all have done their work. Raises the first error of any, or InterruptedStart."""
    lanes = list(lanes)
    while True:
        running = [lane for lane in lanes if lane.is_alive()]
        for lane in lanes:
            if lane.error is not None:
                raise lane.error
        if requests.count:
            raise InterruptedStart
        if not running:
            return
        time.sleep(POLL_SECONDS)


MINIMUM_PYTHON = (3, 11)
MIB = 1024 * 1024
# The sample data with all replicas, the copy that a move makes, and as much again to breathe.
FREE_MIB = 3000
# Kafka's jars and a class archive.
FREE_CACHE_MIB = 200
FIRST_PORT = 8000
PORTS_TRIED = 200
CONNECT_SECONDS = 5


def check_machine(folder: Path, environment: Mapping[str, str]) -> str:
    """Return what was found, in a few words. Raises ServerError for the first thing that is wrong.

    `environment` is the user's: DATABASE_URL and REDIS_URL replace the embedded servers,
    KAFKADASH_DEMO_FREE_MIB the free space asked for.
    """
    if sys.version_info < MINIMUM_PYTHON:
        raise ServerError(DemoErrorCode.PYTHON_TOO_OLD, version=sys.version.split()[0])
    _check_space(folder, int(environment.get("KAFKADASH_DEMO_FREE_MIB", FREE_MIB)))
    _check_space(_existing_parent(jars.cache_dir()), FREE_CACHE_MIB)
    if url := environment.get("DATABASE_URL"):
        _check_database(url)
    else:
        install_folder()
    if url := environment.get("REDIS_URL"):
        _check_redis(url)
    else:
        server_binary()
    java = find_java()
    return f"Python {sys.version.split()[0]}, Java {java.version}"


def choose_port(preferred: int | None, stored: str | None) -> int:
    """The port for the pages: the one asked for, or last time's, or the first free one from 8000 on."""
    if preferred is not None:
        if not port_is_free(preferred):
            raise ServerError(DemoErrorCode.PORT_TAKEN, port=preferred)
        return preferred
    candidates = list(range(FIRST_PORT, FIRST_PORT + PORTS_TRIED))
    if stored is not None and stored.isdigit():
        candidates.insert(0, int(stored))
    for port in candidates:
        if port_is_free(port):
            return port
    raise ServerError(DemoErrorCode.NO_FREE_PORT, first=FIRST_PORT, last=FIRST_PORT + PORTS_TRIED, host=LOOPBACK)


def _check_space(folder: Path, needed_mib: int) -> None:
    free = int(shutil.disk_usage(folder).free) // MIB
    if free < needed_mib:
        raise ServerError(DemoErrorCode.DISK_TOO_FULL, folder=folder, free=free, needed=needed_mib)


def _existing_parent(path: Path) -> Path:
    """The path or its nearest parent that exists."""
    while not path.exists() and path.parent != path:
        path = path.parent
    return path


def _check_database(url: str) -> None:
    try:
        config = environ.Env.db_url_config(url)  # as the settings read it
    except ValueError:
        raise ServerError(SettingErrorCode.DATABASE_URL_WRONG) from None
    if not str(config.get("ENGINE", "")).startswith("django.db.backends.postgresql"):
        raise ServerError(DemoErrorCode.NO_POSTGRESQL)
    names = {"HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password", "NAME": "dbname"}
    try:
        conninfo = make_conninfo(**{name: config[key] for key, name in names.items() if config.get(key)})
        psycopg.connect(conninfo, connect_timeout=CONNECT_SECONDS).close()
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
        raise ServerError(DemoErrorCode.DATABASE_REFUSES, reason=reason) from error


def _check_redis(url: str) -> None:
    try:
        with redis.Redis.from_url(
            url, socket_timeout=CONNECT_SECONDS, socket_connect_timeout=CONNECT_SECONDS
        ) as client:
            client.ping()
    except (redis.RedisError, ValueError, OSError) as error:
        raise ServerError(DemoErrorCode.REDIS_REFUSES, reason=error) from error


CODE = Path(__file__).resolve().parents[3]
READY_SECONDS = 60.0
PROBE_SECONDS = 5.0
SAID_LINES = 8
BACK_OFF_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
# A process that lived this long had started well: what ended it is a new trouble.
STEADY_SECONDS = 60.0
# Secrets that a process gets. A worker encrypts live frames with a key made from SECRET_KEY; FIELD_KEYS open the
# passwords of clusters, so only who connects to Kafka or stores them has those.
_ALL = frozenset(SECRET_NAMES)
_WITHOUT_FIELD_KEYS = _ALL - {"FIELD_KEYS"}
_QUEUE = frozenset({"DATABASE_URL", "REDIS_URL"})
_NONE: frozenset[str] = frozenset()
# The order of stopping, one after the other: nothing new is asked for, then pages, then workers finish what they do.
BEAT_STAGE, WEB_STAGE, WORKER_STAGE = 0, 1, 2

_CELERY = ("-m", "celery", "-A", "kafkadash.celery")
# With one host and no results, workers need not know of each other.
_WORKER = ("worker", "-P", "threads", "--without-gossip", "--without-mingle", "--without-heartbeat")


@dataclass(frozen=True, slots=True)
class DemoService:
    """`arguments` follow the name of the Python program."""

    name: str
    arguments: tuple[str, ...]
    stage: int
    secrets: frozenset[str] = _ALL


def web_service(port: int) -> DemoService:
    return DemoService("web", ("-m", "kafkadash.web", "--port", str(port), "--grace", "3"), WEB_STAGE)


def workers_and_beat() -> list[DemoService]:
    """The tick has a worker of its own, so that clusters that do not answer can never hold it up; so have runs.

    So have jobs, because a plan or a file of a million rows must keep no collector waiting, and notifications, because
    a receiver may not answer.
    """
    return [
        DemoService(
            "worker-tick",
            (*_CELERY, *_WORKER, "-c", "1", "-Q", "tick", "-n", "tick@%h"),
            WORKER_STAGE,
            _WITHOUT_FIELD_KEYS,
        ),
        DemoService(
            "worker-collect", (*_CELERY, *_WORKER, "-c", "4", "-Q", "collect", "-n", "collect@%h"), WORKER_STAGE
        ),
        DemoService("worker-jobs", (*_CELERY, *_WORKER, "-c", "2", "-Q", "jobs", "-n", "jobs@%h"), WORKER_STAGE),
        DemoService(
            "worker-execute", (*_CELERY, *_WORKER, "-c", "2", "-Q", "execute", "-n", "execute@%h"), WORKER_STAGE
        ),
        DemoService("worker-notify", (*_CELERY, *_WORKER, "-c", "2", "-Q", "notify", "-n", "notify@%h"), WORKER_STAGE),
        DemoService("beat", (*_CELERY, "beat", "--pidfile="), BEAT_STAGE, _QUEUE),
    ]


def pipeline_service(uri: str) -> DemoService:
    """Return the service that runs Spark. Nice value 10 gives history a lower CPU priority than live data."""
    return DemoService(
        "pipeline", ("-m", "kafkadash.pipeline", "run", "--uri", uri, "--nice", "10"), WORKER_STAGE, _NONE
    )


def has_spark() -> bool:
    return all(importlib.util.find_spec(package) is not None for package in ("pyspark", "pyarrow"))


class KeptService:
    """A service's process, started again when it ends by itself."""

    def __init__(
        self, service: DemoService, folder: DemoFolder, environment: Mapping[str, str], say: Callable[[str], None]
    ) -> None:
        self._service = service
        self._folder = folder
        self._environment = environment
        self._say = say
        self._child: ChildProcess | None = None
        self._started = 0.0
        self._again: float | None = None
        self._failures = 0

    def start(self) -> ChildProcess:
        """Raises ServerError when the process cannot even be started."""
        self._child = start_process(
            self._service.name,
            self._service.arguments,
            self._folder,
            {**self._environment, **dict.fromkeys(_ALL - self._service.secrets, "")},
            stage=self._service.stage,
        )
        self._started = time.monotonic()
        self._again = None
        return self._child

    def look_after(self) -> None:
        """To be called a few times a second: say when it ended, start it again when its time has come."""
        if self._again is not None:
            if time.monotonic() >= self._again:
                self.start()
        elif self._child is not None and not self._child.alive():
            self._ended(self._child)

    def _ended(self, child: ChildProcess) -> None:
        if time.monotonic() - self._started > STEADY_SECONDS:
            self._failures = 0
        pause = BACK_OFF_SECONDS[min(self._failures, len(BACK_OFF_SECONDS) - 1)]
        self._failures += 1
        self._again = time.monotonic() + pause
        self._say(f"{child.name} ended ({how_it_ended(child)}); restart in {pause:g} s.{last_lines(child)}")
        child.stop()  # takes the entry of the ended process out of the ledger


def start_process(
    name: str, arguments: tuple[str, ...], folder: DemoFolder, environment: Mapping[str, str], *, stage: int = 0
) -> ChildProcess:
    """A Python process of this product, with the demo's environment and its own log."""
    return spawn(
        folder.path,
        name,
        [sys.executable, *arguments],
        log=folder.log(name),
        env={**environment, "KAFKADASH_PROCESS": f"kafkadash {name}"},
        cwd=CODE,
        stage=stage,
    )


def run_to_end(
    name: str, arguments: tuple[str, ...], folder: DemoFolder, environment: Mapping[str, str], deadline: float
) -> str:
    """Run a short process; return the last line of its log. Raises ServerError with its last lines when it failed."""
    child = start_process(name, arguments, folder, environment)
    try:
        end = time.monotonic() + deadline
        while child.alive():
            if time.monotonic() > end:
                slow = coded(DemoErrorCode.PROCESS_TOO_SLOW, name=name, seconds=deadline, log=child.log)
                raise ServerError(replace(slow, news=last_lines(child)))
            time.sleep(0.05)
        if child.exit_code() != 0:
            failed = coded(DemoErrorCode.PROCESS_FAILED, name=name, how=how_it_ended(child), log=child.log)
            raise ServerError(replace(failed, news=last_lines(child)))
    finally:
        child.stop()
    lines = read_tail(folder.log(name), 1)
    return lines[0] if lines else ""


def wait_for_pages(child: ChildProcess, port: int) -> None:
    """Return when the sign-in page is served. Raises ServerError with the last lines of the log."""
    child.wait_ready(lambda: serves_pages(port), READY_SECONDS)


def how_it_ended(child: ChildProcess) -> str:
    code = child.exit_code()
    if code is None:
        return "cause unknown"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def last_lines(child: ChildProcess) -> str:
    lines = read_tail(child.log, SAID_LINES) if child.log is not None else []
    return "".join(f"\n    {line}" for line in [f"Last lines of {child.log}:", *lines]) if lines else ""


def serves_pages(port: int) -> bool:
    """Return whether the sign-in page is served."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", "/login/")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


DEFAULT_RACKS = ("a", "a", "b", "b", "c")
WATCH_SECONDS = 0.2
# Whoever stops a broker on purpose takes it out of the ledger right after; one that is still there by now crashed.
CRASHED_SECONDS = 5.0
MIGRATE_SECONDS = 180.0
PROVISION_SECONDS = 180.0
STOP_SECONDS = 22.0  # a worker of runs ends its step within 20
THREAD_SECONDS = 8.0
BROKER_TO_STOP = 3
# A quorum that tolerates a failure, apart from the brokers: any broker may be stopped.
CONTROLLERS = 3
# With --zookeeper instead of the controllers; they tolerate a failure too.
ZOOKEEPERS = 3
# Spark refuses to start with less than 450 MB of heap, and the JVM counts only a part of what it is given.
PIPELINE_HEAP = "576m"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """`given` is the user's environment, without what an environment file of an earlier demo added to it.

    `pipeline`: whether Spark is started, which costs a JVM of about 1 GB and a part of a processor.
    `zookeeper`: whether Kafka is 3.9 with ZooKeeper, which has no quorum of controllers.
    """

    folder: Path
    port: int | None
    drain: bool
    reset: bool
    racks: tuple[str, ...]
    given: Mapping[str, str]
    pipeline: bool = True
    zookeeper: bool = False


class DemoSupervisor:
    """Supervisor of one demo run. `start` returns when the pages show live data, `watch` when a stop is requested."""

    def __init__(self, options: DemoOptions, folder: DemoFolder, report: StartReport, requests: StopRequests) -> None:
        self._options = options
        self._folder = folder
        self._report = report
        self._requests = requests
        self._environment: dict[str, str] = {}
        self._lanes: list[StopThread] = []
        self._kept: list[KeptService] = []
        self._playground = KafkaPlayground(folder.playground)
        self._traffic: sample.SampleTraffic | None = None
        self._consumers: PlaygroundConsumers | None = None
        self._drains = options.drain and len(options.racks) >= sample.BROKERS_NEEDED
        self._port = 0
        self._dead_since: dict[int, float] = {}

    def start(self) -> None:
        """Raises ServerError or InterruptedStart; whatever was started by then is stopped by `stop`."""
        with self._report.step("checks") as step:
            step.detail = check_machine(self._folder.path, self._options.given)
        self._clear()
        self._run_together(("jars", self._fetch_jars))
        self._run_together(("kafka", self._start_kafka), ("product", self._start_product))
        self._run_together(("provision", self._provision))
        self._start_pipeline()

    def watch(self) -> None:
        """Return when somebody asked to stop. Raises ServerError when the database or Kafka ended by itself."""
        while not self._requests.count:
            for kept in self._kept:
                kept.look_after()
            self._look_after_servers()
            time.sleep(WATCH_SECONDS)

    def runs(self) -> bool:
        """Return whether any service runs or is just being started."""
        return bool(self._running()) or any(lane.is_alive() for lane in self._lanes)

    def stop(self) -> None:
        """Stop everything, in order; at once when somebody asks a second time. Leaves no process and no address."""
        requests = self._requests.count
        lane = StopThread("stop", self._stop_in_order)
        lane.start()
        while lane.is_alive():
            lane.join(0.1)
            if self._requests.count > max(requests, 1):
                self._report.say("Stopping immediately.")
                requests = self._requests.count
                for child in self._running():
                    if child.name != POSTGRES:  # a database that is killed has to recover; its own stop is quick
                        child.kill()
        if lane.error is not None:
            raise lane.error

    def summary(self) -> list[str]:
        """Return the summary for a newcomer, shown when everything runs."""
        passwords = self._folder.sign_ins(tuple(PEOPLE))
        command = ".venv/bin/python manage.py"
        if self._folder.path != CODE / "var":
            command = f"KAFKADASH_VAR={self._folder.path} {command}"
        to_try = ["Sign in as alice and open the cluster."]
        if self._drains:
            to_try = [
                f"Sign in as bob, open Changes and approve the drain of broker {sample.DRAINED} by alice.",
                "Sign in as alice in a private window. Start the change, follow the run, raise its throttle.",
                "Create a rollback as alice, approve it as bob, start it as alice.",
            ]
        if len(self._options.racks) >= BROKER_TO_STOP:
            to_try.append(f"Watch the board: {command} playground stop-broker {BROKER_TO_STOP} (then start-broker)")
        to_try.append(f"Compare with Kafka's own tool: {command} playground tool reassign -- --list")
        return [
            f"Ready in {self._report.total()}.",
            "",
            "Memory",
            *memory_lines(self._running()),
            "",
            f"  http://{LOOPBACK}:{self._port}/",
            *(f"  {name:<6} {passwords[name]:<14} {PEOPLE[name].what}" for name in PEOPLE),
            "",
            "To try",
            *(f"  {number}. {what}" for number, what in enumerate(to_try, 1)),
            "",
            f"Logs: {self._folder.logs}. Ctrl-C stops everything.",
        ]

    # --- starting ---

    def _run_together(self, *work: tuple[str, Callable[[], None]]) -> None:
        lanes = [StopThread(name, target) for name, target in work]
        self._lanes += lanes
        for lane in lanes:
            lane.start()
        wait_for(lanes, self._requests)

    def _clear(self) -> None:
        if not self._options.reset:
            self._folder.refuse_other_data()
        left = self._folder.reap()
        if left:
            self._report.say(f"  Stopped leftovers of a killed demo: {', '.join(left)}")
        if self._options.reset:
            with self._report.step("reset"):
                self._folder.reset()
        self._folder.logs.mkdir(exist_ok=True)
        self._folder.keep_previous_logs()
        self._port = choose_port(self._options.port, self._folder.read_environment().get("KAFKADASH_PORT"))

    def _fetch_jars(self) -> None:
        once = False

        def say(text: str) -> None:
            nonlocal once
            once = True
            self._report.say(f"  {text}")

        began = time.monotonic()
        with self._report.step("Kafka's jars and Java") as step:
            runtime = prepare_runtime(say)
            if self._options.zookeeper:
                runtime = prepare_release(jars.ZOOKEEPER_LOCK, say)
            step.detail = f"{len(runtime.jars.paths)} jars, Java {runtime.java.major}"
        if once:
            self._report.set_apart(time.monotonic() - began)

    def _start_kafka(self) -> None:
        with self._report.step("Kafka") as step:
            if self._options.zookeeper:
                beside = f"Kafka 3.9, {ZOOKEEPERS} ZooKeeper servers; no controller quorum to show"
                self._playground.up(racks=self._options.racks, zookeepers=ZOOKEEPERS)
            else:
                beside = f"{CONTROLLERS} controllers"
                self._playground.up(racks=self._options.racks, controllers=CONTROLLERS, zookeepers=0)
            racks = [broker.rack or "none" for broker in self._playground.cluster.brokers]
            step.detail = f"{len(racks)} brokers in racks {','.join(racks)}, {beside}"
        # In a lane of its own that nobody waits for when the demo stops: it starts no process, and a producer whose
        # brokers are gone takes minutes to give up.
        samples = StopThread("samples", self._fill_topics)
        samples.start()
        wait_for([samples], self._requests)
        self._traffic = sample.SampleTraffic(self._playground.bootstrap, self._report.say)
        self._traffic.start()

    def _fill_topics(self) -> None:
        with self._report.step("sample topics") as step:
            report = sample.fill_topics(self._playground.bootstrap, len(self._options.racks), with_archive=self._drains)
            step.detail = f"{len(report.topics)} topics, {report.bytes / 1e6:.0f} MB produced"
        with self._report.step("consumer groups") as step:
            self._consumers = PlaygroundConsumers(
                self._playground.bootstrap, rf=min(3, len(self._options.racks)), say=self._report.say
            )
            self._consumers.start()
            step.detail = f"{len(GROUPS)} groups, some with problems on purpose"

    def _start_product(self) -> None:
        self._start_database()
        with self._report.step("migrations"):
            self._child("migrate", ("manage.py", "migrate"), MIGRATE_SECONDS)
        with self._report.step("web, workers, beat") as step:
            web = self._keep(web_service(self._port))
            for service in workers_and_beat():
                self._keep(service)
            wait_for_pages(web, self._port)
            step.detail = f"port {self._port}"

    def _start_database(self) -> None:
        given = self._options.given
        with self._report.step("PostgreSQL and Valkey") as step:
            database = given.get("DATABASE_URL") or self._embedded_database()
            redis = given.get("REDIS_URL") or self._embedded_valkey()
            embedded = [name for name in ("DATABASE_URL", "REDIS_URL") if not given.get(name)]
            step.detail = "embedded, on private sockets" if len(embedded) == 2 else "as set in the environment"
        self._environment = {
            "DATABASE_URL": database,
            "REDIS_URL": redis,
            **self._folder.keys(given),
            "KAFKADASH_PORT": str(self._port),
        }
        self._folder.write_environment(self._environment)
        self._environment |= {"KAFKADASH_VAR": str(self._folder.path), "LOG_JSON": "false", "PYTHONUNBUFFERED": "1"}
        self._environment |= {
            "PUBLIC_URL": given.get("PUBLIC_URL") or f"http://{LOOPBACK}:{self._port}",
            # Receivers of notifications may be on this machine, to try them.
            "NOTIFICATION_NETWORKS": given.get("NOTIFICATION_NETWORKS") or f"{LOOPBACK}/32",
        }

    def _embedded_database(self) -> str:
        server = EmbeddedPostgres(self._folder.path)
        server.start()
        return server.url()

    def _embedded_valkey(self) -> str:
        server = EmbeddedValkey(self._folder.path)
        server.start()
        return server.url()

    def _provision(self) -> None:
        name = "cluster, users, drain" if self._drains else "cluster and users"
        with self._report.step(name) as step:
            self._folder.sign_ins(tuple(PEOPLE))
            playground = self._playground.cluster
            drain = ("--drain",) if self._drains else ()
            beside = ("--zookeeper", playground.zookeeper) if playground.zookeepers else ()
            arguments = ("manage.py", "provision_demo", playground.bootstrap, playground.cluster_id, *beside, *drain)
            step.detail = self._child("provision", arguments, PROVISION_SECONDS)

    def _start_pipeline(self) -> None:
        """Last, and nobody waits for it: Spark takes its time to start, and no page needs it."""
        if not self._options.pipeline:
            return
        if not has_spark():
            self._report.say("  No pipeline: PySpark is not installed, so there are no history and no forecasts.")
            return
        uri = self._options.given.get("PIPELINE_URI") or (self._folder.path / "pipeline").as_uri()
        self._environment["PIPELINE_DRIVER_MEMORY"] = self._options.given.get("PIPELINE_DRIVER_MEMORY") or PIPELINE_HEAP
        self._keep(pipeline_service(uri))

    def _keep(self, service: DemoService) -> ChildProcess:
        kept = KeptService(service, self._folder, self._environment, self._report.say)
        child = kept.start()
        self._kept.append(kept)
        return child

    def _child(self, name: str, arguments: tuple[str, ...], deadline: float) -> str:
        return run_to_end(name, arguments, self._folder, self._environment, deadline)

    # --- keeping and stopping ---

    def _look_after_servers(self) -> None:
        for child in [*recorded(self._folder.path), *recorded(self._folder.playground)]:
            if child.alive():
                self._dead_since.pop(child.pid, None)
                continue
            if child.name == VALKEY:
                self._report.say("Valkey ended. Restarting.")
                EmbeddedValkey(self._folder.path).start()
            elif time.monotonic() - self._dead_since.setdefault(child.pid, time.monotonic()) > CRASHED_SECONDS:
                raise ServerError(DemoErrorCode.PROCESS_ENDED, name=child.name, how=how_it_ended(child))

    def _running(self) -> list[ChildProcess]:
        return [*live_children(self._folder.path), *live_children(self._folder.playground)]

    def _stop_in_order(self) -> None:
        if self._consumers is not None:
            self._consumers.stop(THREAD_SECONDS)
        if self._traffic is not None:
            self._traffic.stop(THREAD_SECONDS)
        own = [child for child in live_children(self._folder.path) if child.entry.stage <= WORKER_STAGE]
        stop_all(own, STOP_SECONDS)
        self._playground.down()
        self._end_rest()
        self._folder.forget_addresses()

    def _end_rest(self) -> None:
        """The servers; and whatever a step that was still under way goes on to start, until that step has ended."""
        while True:
            under_way = [lane for lane in self._lanes if lane.is_alive() and lane.name != "jars"]
            stop_all(self._running(), STOP_SECONDS)
            if not under_way:
                return
            for lane in under_way:
                lane.join(0.1)


FAILED = 1
INTERRUPTED = 130  # what shells say of a program that Ctrl-C ended


def run_demo(options: DemoOptions, say: Callable[[str], object], complain: Callable[[str], object]) -> int:
    """Run the demo until somebody asks it to stop: 0, 1 when something failed, 130 when the start was cut short."""
    report = StartReport(say)
    with StopRequests() as requests:
        try:
            folder = folders.make_folder(options.folder)
            with folder.held():
                return _supervise_demo(DemoSupervisor(options, folder, report, requests), folder, report, complain)
        except ServerError as error:
            complain(str(error))
            return FAILED


def _supervise_demo(
    demo: DemoSupervisor, folder: DemoFolder, report: StartReport, complain: Callable[[str], object]
) -> int:
    code = 0
    report.say(f"kafkadash demo in {folder.path}")
    try:
        demo.start()
        for line in demo.summary():
            report.say(line)
        demo.watch()
    except InterruptedStart:
        code = INTERRUPTED
    except ServerError as error:
        complain(str(error))
        code = FAILED
    except Exception as error:  # noqa: BLE001  a user gets a sentence, the traceback goes to the log
        log = folder.log("demo")
        with log.open("a", encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
        complain(message_text(DemoErrorCode.DEMO_CRASHED, log=log))
        code = FAILED
    if demo.runs():
        with report.step("stopped"):
            demo.stop()
    return code
