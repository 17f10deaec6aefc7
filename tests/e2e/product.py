"""The running product for a browser: the demo's supervisor as a process of its own, and real Kafka behind it.

Its Valkey is started here and not by the demo, so that a test can take it away and give it back.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kafkadash.devtools.embedded.ports import free_port
from kafkadash.devtools.embedded.process import ChildProcess, ServerError, spawn
from kafkadash.devtools.embedded.valkey import EmbeddedValkey
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from tests.agreement.tools import Tools
from tests.embedded_plugin import RUN_FOLDER
from tests.pipeline.sparing import SPARING

CHECKOUT = Path(__file__).resolve().parents[2]
RACKS = ("a", "b", "c", "c")
DRAINED = 4  # its rack has another broker: what it holds can go there
READY_S, STOP_S, COMMAND_S = 240.0, 60.0, 120.0
READY_WORD = "Ready in"
# Changes that tests wait for are noticed sooner than usual, and a move in flight is read less often: some last through
# a whole module of tests. The rest keeps the product's own pace: a refresh costs four brokers, a worker and each open
# page something.
PACE = {
    "INTERVAL_REASSIGNMENTS": "3",
    "INTERVAL_MOVING": "4",
    "INTERVAL_METADATA": "6",
    "INTERVAL_LOG_DIRS": "10",
    "INTERVAL_CONFIGS": "10",
    "INTERVAL_GROUPS": "10",
    "SEGMENT_FLUSH_SECONDS": "10",
}
SPARK_MEMORY = "576m"  # Spark refuses to start with less than 450 MB of heap, of which Java counts only a part
UNTHROTTLED = 1_000_000_000  # bytes per second
# What a test run sets for itself; the demo is to use nothing of it.
OF_THE_TEST_RUN = ("DATABASE_URL", "SECRET_KEY", "FIELD_KEYS", "KAFKADASH_VAR")


def run_folder(name: str) -> Path:
    """Of this run and worker alone; what a killed run leaves behind in it is ended by the next one."""
    return Path(os.environ[RUN_FOLDER]) / f"{name}-{os.environ.get('PYTEST_XDIST_WORKER', 'single')}"


@dataclass(frozen=True, slots=True)
class Move:
    """A reassignment of partition 0 of ``topic``, started with Kafka's own tool."""

    topic: str
    plan: Path


@dataclass
class Product:
    """``folder`` holds everything of one run: the demo's folder, Valkey's, plans of moves. A broker for each rack."""

    folder: Path
    racks: tuple[str, ...] = RACKS
    port: int = field(default_factory=free_port)
    _demo: ChildProcess | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def var(self) -> Path:
        return self.folder / "demo"

    @property
    def log(self) -> Path:
        return self.folder / "logs" / "supervisor.log"

    @property
    def playground(self) -> KafkaPlayground:
        return KafkaPlayground(self.var / "playground", detached=True)

    @property
    def tools(self) -> Tools:
        return Tools(self.playground)

    @property
    def valkey(self) -> EmbeddedValkey:
        return EmbeddedValkey(self.folder)

    def start(self) -> None:
        """Returns when the pages show figures of real Kafka. Raises ServerError with the supervisor's last words."""
        self.valkey.start()
        options = ("--folder", str(self.var), "--port", str(self.port), "--racks", ",".join(self.racks))
        command = self._command("manage.py", "demo", *options, "--no-move", "--no-pipeline")
        self._demo = spawn(self.folder, "demo", command, log=self.log, cwd=CHECKOUT, stop_signal=signal.SIGINT)
        self._demo.wait_ready(lambda: READY_WORD in self.log.read_text(encoding="utf-8"), READY_S)

    def stop(self) -> None:
        """Ends the demo as Ctrl-C does, then Valkey."""
        if self._demo is not None:
            self._demo.stop(STOP_S)
        self.valkey.stop()

    def password(self, name: str) -> str:
        return str(json.loads((self.var / "sign-ins.json").read_text(encoding="utf-8"))[name])

    def manage(self, *args: str, given: str = "") -> str:
        """``manage.py`` on the running product; ``given`` is its standard input."""
        done = subprocess.run(
            self._command("manage.py", *args),
            cwd=CHECKOUT,
            input=given,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def running(self, logs: Path) -> Iterator[Self]:
        """From its start to its stop; ``logs`` is where they are kept when it does not start."""
        self.folder.mkdir(mode=0o755)
        try:
            try:
                self.start()
            except ServerError:
                self.keep_logs(logs)
                raise
            yield self
        finally:
            self.stop()

    @contextmanager
    def without_redis(self) -> Iterator[None]:
        self.valkey.stop()
        try:
            yield
        finally:
            self.valkey.start()

    @contextmanager
    def moving(self, mib: float, throttle: int, placement: Sequence[int] = (1, 2)) -> Iterator[Move]:
        """A move of that much data to broker 3 at ``throttle`` bytes per second; ended, one way or the other, after."""
        topic = f"e2e-{secrets.token_hex(3)}"
        load_topics(
            self.playground.bootstrap, [LoadTopic(topic, placement=[placement], fill_bytes=int(mib * 1024 * 1024))]
        )
        plan = self.folder / f"{topic}.json"
        row = {"topic": topic, "partition": 0, "replicas": [3, *placement[1:]]}
        plan.write_text(json.dumps({"version": 1, "partitions": [row]}), encoding="utf-8")
        move = Move(topic, plan)
        self._reassign(move, "--execute", "--additional", "--throttle", str(throttle))
        try:
            yield move
        finally:
            # One that completed meanwhile cannot be cancelled: then its throttles are taken away by --verify.
            ended = self.playground.tool("reassign", ["--reassignment-json-file", str(move.plan), "--cancel"])
            if ended.returncode:
                self._reassign(move, "--verify")

    @contextmanager
    def with_pipeline(self) -> Iterator[None]:
        """Spark runs beside it, as the demo starts it; it works some time after its start."""
        command = self._command("-m", "kafkadash.pipeline", "run", "--uri", (self.var / "pipeline").as_uri())
        pipeline = spawn(self.folder, "pipeline", command, log=self.log.with_name("pipeline.log"), cwd=CHECKOUT)
        try:
            yield
        finally:
            pipeline.stop(STOP_S)

    def let_go(self, move: Move) -> None:
        """Lift the throttle, so that the move completes soon."""
        self._reassign(move, "--execute", "--additional", "--throttle", str(UNTHROTTLED))

    def answers(self, path: str, within_s: float) -> int:
        """The status of a GET without a sign-in; raises where it takes longer."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=within_s) as response:  # noqa: S310  our own address
            return int(response.status)

    def keep_logs(self, where: Path) -> None:
        for logs in (self.log.parent, self.var / "logs", self.var / "playground" / "logs"):
            if logs.is_dir():
                shutil.copytree(logs, where / "logs", dirs_exist_ok=True)

    def _reassign(self, move: Move, *options: str) -> None:
        done = self.playground.tool("reassign", ["--reassignment-json-file", str(move.plan), *options])
        assert done.returncode == 0, done.stdout + done.stderr

    def _command(self, *args: str) -> list[str]:
        """Python with the product's environment instead of the test run's."""
        without = [part for name in OF_THE_TEST_RUN for part in ("-u", name)]
        own = {"KAFKADASH_VAR": str(self.var), "REDIS_URL": self.valkey.url(), "PIPELINE_DRIVER_MEMORY": SPARK_MEMORY}
        values = [f"{name}={value}" for name, value in {**own, **PACE, **SPARING}.items()]
        return ["env", *without, *values, sys.executable, *args]
