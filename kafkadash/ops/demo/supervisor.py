"""The demo: one process in the foreground that starts everything, keeps it alive, and stops all of it.

It never opens the product's own database: what needs Django is done by short child processes that get the demo's
environment, the same way that web and workers do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kafkadash.embedded.ports import LOOPBACK
from kafkadash.embedded.postgres import NAME as POSTGRES
from kafkadash.embedded.postgres import Postgres
from kafkadash.embedded.process import Child, ServerError, children, recorded, stop_all
from kafkadash.embedded.valkey import NAME as VALKEY
from kafkadash.embedded.valkey import Valkey
from kafkadash.ops.demo import checks, sample, services
from kafkadash.ops.demo.folder import Folder
from kafkadash.ops.demo.people import PEOPLE
from kafkadash.ops.demo.report import Report, memory_lines
from kafkadash.ops.demo.stopping import Lane, StopRequests, wait_for
from kafkadash.ops.errors import OperationErrorCode
from kafkadash.playground.cluster import Playground
from kafkadash.playground.consumers import GROUPS, Consumers
from kafkadash.playground.prepare import prepare_runtime

DEFAULT_RACKS = ("a", "a", "b", "b", "c")
WATCH_SECONDS = 0.2
# Whoever stops a broker on purpose takes it out of the ledger right after; one that is still there by now crashed.
CRASHED_SECONDS = 5.0
MIGRATE_SECONDS = 180.0
PROVISION_SECONDS = 180.0
STOP_SECONDS = 22.0  # a worker of runs ends its step within 20
THREAD_SECONDS = 8.0
BROKER_TO_STOP = 3
# Spark refuses to start with less than 450 MB of heap, and the JVM counts only a part of what it is given.
PIPELINE_HEAP = "576m"


@dataclass(frozen=True, slots=True)
class Options:
    """`given` is the user's environment, without what an environment file of an earlier demo added to it.

    `pipeline`: whether Spark is started, which costs a JVM of about 1 GB and a part of a processor.
    """

    folder: Path
    port: int | None
    drain: bool
    reset: bool
    racks: tuple[str, ...]
    given: Mapping[str, str]
    pipeline: bool = True


class Demo:
    """One run. `start` returns when the pages show live data, `watch` when somebody asked to stop."""

    def __init__(self, options: Options, folder: Folder, report: Report, requests: StopRequests) -> None:
        self._options = options
        self._folder = folder
        self._report = report
        self._requests = requests
        self._environment: dict[str, str] = {}
        self._lanes: list[Lane] = []
        self._kept: list[services.Kept] = []
        self._playground = Playground(folder.playground)
        self._traffic: sample.Traffic | None = None
        self._consumers: Consumers | None = None
        self._drains = options.drain and len(options.racks) >= sample.BROKERS_NEEDED
        self._port = 0
        self._dead_since: dict[int, float] = {}

    def start(self) -> None:
        """Raises ServerError or InterruptedStart; whatever was started by then is stopped by `stop`."""
        with self._report.step("checks") as step:
            step.detail = checks.check(self._folder.path, self._options.given)
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
        """Whether anything was started, or is just being started."""
        return bool(self._running()) or any(lane.is_alive() for lane in self._lanes)

    def stop(self) -> None:
        """Stop everything, in order; at once when somebody asks a second time. Leaves no process and no address."""
        asked = self._requests.count
        lane = Lane("stop", self._stop_in_order)
        lane.start()
        while lane.is_alive():
            lane.join(0.1)
            if self._requests.count > max(asked, 1):
                self._report.say("Stopping at once.")
                asked = self._requests.count
                for child in self._running():
                    if child.name != POSTGRES:  # a database that is killed has to recover; its own stop is quick
                        child.kill()
        if lane.error is not None:
            raise lane.error

    def summary(self) -> list[str]:
        """What a newcomer wants to know when everything runs."""
        passwords = self._folder.sign_ins(tuple(PEOPLE))
        command = ".venv/bin/python manage.py"
        if self._folder.path != services.CODE / "var":
            command = f"KAFKADASH_VAR={self._folder.path} {command}"
        to_try = ["sign in as alice and open the cluster"]
        if self._drains:
            to_try = [
                f"sign in as bob: alice proposes under Changes to drain broker {sample.DRAINED}; approve exactly that",
                "sign in as alice in a private window, start it, watch it, raise its throttle; then roll it back",
            ]
        if len(self._options.racks) >= BROKER_TO_STOP:
            to_try.append(f"{command} playground stop-broker {BROKER_TO_STOP}   (then start-broker): watch the board")
        to_try.append(f"{command} playground tool reassign -- --list   is what Kafka itself says")
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
            f"Logs are in {self._folder.logs}. Ctrl-C stops everything.",
        ]

    # --- starting ---

    def _run_together(self, *work: tuple[str, Callable[[], None]]) -> None:
        lanes = [Lane(name, target) for name, target in work]
        self._lanes += lanes
        for lane in lanes:
            lane.start()
        wait_for(lanes, self._requests)

    def _clear(self) -> None:
        left = self._folder.reap()
        if left:
            self._report.say(f"  A demo that was killed had left {', '.join(left)} running: stopped.")
        if self._options.reset:
            with self._report.step("reset"):
                self._folder.reset()
        self._folder.logs.mkdir(exist_ok=True)
        self._folder.keep_previous_logs()
        self._port = checks.choose_port(self._options.port, self._folder.read_environment().get("KAFKADASH_PORT"))

    def _fetch_jars(self) -> None:
        once = False

        def say(text: str) -> None:
            nonlocal once
            once = True
            self._report.say(f"  {text}")

        began = time.monotonic()
        with self._report.step("Kafka's jars and Java") as step:
            runtime = prepare_runtime(say)
            step.detail = f"{len(runtime.jars.paths)} jars, Java {runtime.java.major}"
        if once:
            self._report.set_apart(time.monotonic() - began)

    def _start_kafka(self) -> None:
        with self._report.step("Kafka") as step:
            self._playground.up(racks=self._options.racks)
            racks = [broker.rack or "none" for broker in self._playground.cluster.brokers]
            step.detail = f"{len(racks)} brokers in racks {','.join(racks)}"
        # In a lane of its own that nobody waits for when the demo stops: it starts no process, and a producer whose
        # brokers are gone takes minutes to give up.
        samples = Lane("samples", self._fill_topics)
        samples.start()
        wait_for([samples], self._requests)
        self._traffic = sample.Traffic(self._playground.bootstrap, self._report.say)
        self._traffic.start()

    def _fill_topics(self) -> None:
        with self._report.step("sample topics") as step:
            report = sample.fill(self._playground.bootstrap, len(self._options.racks), with_archive=self._drains)
            step.detail = f"{len(report.topics)} topics, {report.bytes / 1e6:.0f} MB produced"
        with self._report.step("consumer groups") as step:
            self._consumers = Consumers(
                self._playground.bootstrap, rf=min(3, len(self._options.racks)), say=self._report.say
            )
            self._consumers.start()
            step.detail = f"{len(GROUPS)} groups, some of which misbehave"

    def _start_product(self) -> None:
        self._start_database()
        with self._report.step("migrations"):
            self._child("migrate", ("manage.py", "migrate"), MIGRATE_SECONDS)
        with self._report.step("web, workers, beat") as step:
            web = self._keep(services.web(self._port))
            for service in services.workers_and_beat():
                self._keep(service)
            services.wait_for_pages(web, self._port)
            step.detail = f"port {self._port}"

    def _start_database(self) -> None:
        given = self._options.given
        with self._report.step("PostgreSQL and Valkey") as step:
            database = given.get("DATABASE_URL") or self._embedded_database()
            redis = given.get("REDIS_URL") or self._embedded_valkey()
            embedded = [name for name in ("DATABASE_URL", "REDIS_URL") if not given.get(name)]
            step.detail = "embedded, on private sockets" if len(embedded) == 2 else "as the environment says"
        self._environment = {
            "DATABASE_URL": database,
            "REDIS_URL": redis,
            **self._folder.keys(given),
            "KAFKADASH_PORT": str(self._port),
        }
        self._folder.write_environment(self._environment)
        self._environment |= {"KAFKADASH_VAR": str(self._folder.path), "LOG_JSON": "false", "PYTHONUNBUFFERED": "1"}

    def _embedded_database(self) -> str:
        server = Postgres(self._folder.path)
        server.start()
        return server.url()

    def _embedded_valkey(self) -> str:
        server = Valkey(self._folder.path)
        server.start()
        return server.url()

    def _provision(self) -> None:
        name = "cluster, sign-ins, a drain" if self._drains else "cluster and sign-ins"
        with self._report.step(name) as step:
            self._folder.sign_ins(tuple(PEOPLE))
            playground = self._playground.cluster
            drain = ("--drain",) if self._drains else ()
            arguments = ("manage.py", "provision_demo", playground.bootstrap, playground.cluster_id, *drain)
            step.detail = self._child("provision", arguments, PROVISION_SECONDS)

    def _start_pipeline(self) -> None:
        """Last, and nobody waits for it: Spark takes its time to start, and no page needs it."""
        if not self._options.pipeline:
            return
        if not services.has_spark():
            self._report.say("  No pipeline: PySpark is not installed, so there is no history and no forecast.")
            return
        uri = self._options.given.get("PIPELINE_URI") or (self._folder.path / "pipeline").as_uri()
        self._environment["PIPELINE_DRIVER_MEMORY"] = self._options.given.get("PIPELINE_DRIVER_MEMORY") or PIPELINE_HEAP
        self._keep(services.pipeline(uri))

    def _keep(self, service: services.Service) -> Child:
        kept = services.Kept(service, self._folder, self._environment, self._report.say)
        child = kept.start()
        self._kept.append(kept)
        return child

    def _child(self, name: str, arguments: tuple[str, ...], deadline: float) -> str:
        return services.run_to_end(name, arguments, self._folder, self._environment, deadline)

    # --- keeping and stopping ---

    def _look_after_servers(self) -> None:
        for child in [*recorded(self._folder.path), *recorded(self._folder.playground)]:
            if child.alive():
                self._dead_since.pop(child.pid, None)
                continue
            if child.name == VALKEY:
                self._report.say("Valkey ended; it is started again.")
                Valkey(self._folder.path).start()
            elif time.monotonic() - self._dead_since.setdefault(child.pid, time.monotonic()) > CRASHED_SECONDS:
                raise ServerError(OperationErrorCode.PROCESS_ENDED, name=child.name, how=services.how_it_ended(child))

    def _running(self) -> list[Child]:
        return [*children(self._folder.path), *children(self._folder.playground)]

    def _stop_in_order(self) -> None:
        if self._consumers is not None:
            self._consumers.stop(THREAD_SECONDS)
        if self._traffic is not None:
            self._traffic.stop(THREAD_SECONDS)
        own = [child for child in children(self._folder.path) if child.entry.stage <= services.WORKER_STAGE]
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
