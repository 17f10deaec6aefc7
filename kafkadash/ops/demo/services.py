"""The product's own processes: web, workers, beat, the pipeline. One that ends is started again, each time later."""

from __future__ import annotations

import http.client
import importlib.util
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kafkadash.domain.messages import message_text
from kafkadash.embedded.files import tail
from kafkadash.embedded.ports import LOOPBACK
from kafkadash.embedded.process import SECRET_NAMES, Child, ServerError, spawn
from kafkadash.ops.demo.folder import Folder
from kafkadash.ops.errors import OperationErrorCode

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
class Service:
    """`arguments` follow the name of the Python program."""

    name: str
    arguments: tuple[str, ...]
    stage: int
    secrets: frozenset[str] = _ALL


def web(port: int) -> Service:
    return Service("web", ("-m", "kafkadash.web", "--port", str(port), "--grace", "3"), WEB_STAGE)


def workers_and_beat() -> list[Service]:
    """The tick has a worker of its own, so that clusters that do not answer can never hold it up; so have runs.

    So have jobs: what people ask for, a plan or a file of a million rows, keeps no collector waiting.
    """
    return [
        Service(
            "worker-tick",
            (*_CELERY, *_WORKER, "-c", "1", "-Q", "tick", "-n", "tick@%h"),
            WORKER_STAGE,
            _WITHOUT_FIELD_KEYS,
        ),
        Service("worker-collect", (*_CELERY, *_WORKER, "-c", "4", "-Q", "collect", "-n", "collect@%h"), WORKER_STAGE),
        Service("worker-jobs", (*_CELERY, *_WORKER, "-c", "2", "-Q", "jobs", "-n", "jobs@%h"), WORKER_STAGE),
        Service("worker-execute", (*_CELERY, *_WORKER, "-c", "2", "-Q", "execute", "-n", "execute@%h"), WORKER_STAGE),
        Service("beat", (*_CELERY, "beat", "--pidfile="), BEAT_STAGE, _QUEUE),
    ]


def pipeline(uri: str) -> Service:
    """Of Spark, after everybody else in the queue for the processor: history is never more urgent than what is now."""
    return Service("pipeline", ("-m", "kafkadash.pipeline", "run", "--uri", uri, "--nice", "10"), WORKER_STAGE, _NONE)


def has_spark() -> bool:
    return all(importlib.util.find_spec(package) is not None for package in ("pyspark", "pyarrow"))


class Kept:
    """A service's process, started again when it ends by itself."""

    def __init__(
        self, service: Service, folder: Folder, environment: Mapping[str, str], say: Callable[[str], None]
    ) -> None:
        self._service = service
        self._folder = folder
        self._environment = environment
        self._say = say
        self._child: Child | None = None
        self._started = 0.0
        self._again: float | None = None
        self._failures = 0

    def start(self) -> Child:
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

    def _ended(self, child: Child) -> None:
        if time.monotonic() - self._started > STEADY_SECONDS:
            self._failures = 0
        pause = BACK_OFF_SECONDS[min(self._failures, len(BACK_OFF_SECONDS) - 1)]
        self._failures += 1
        self._again = time.monotonic() + pause
        self._say(f"{child.name} ended ({how_it_ended(child)}); it is started again in {pause:g} s.{last_lines(child)}")
        child.stop()  # takes the entry of the ended process out of the ledger


def start_process(
    name: str, arguments: tuple[str, ...], folder: Folder, environment: Mapping[str, str], *, stage: int = 0
) -> Child:
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
    name: str, arguments: tuple[str, ...], folder: Folder, environment: Mapping[str, str], deadline: float
) -> str:
    """Run a short process; return the last line of its log. Raises ServerError with its last lines when it failed."""
    child = start_process(name, arguments, folder, environment)
    try:
        end = time.monotonic() + deadline
        while child.alive():
            if time.monotonic() > end:
                raise ServerError(
                    message_text(OperationErrorCode.PROCESS_TOO_SLOW, name=name, seconds=deadline, log=child.log)
                    + last_lines(child)
                )
            time.sleep(0.05)
        if child.exit_code() != 0:
            raise ServerError(
                message_text(OperationErrorCode.PROCESS_FAILED, name=name, how=how_it_ended(child), log=child.log)
                + last_lines(child)
            )
    finally:
        child.stop()
    lines = tail(folder.log(name), 1)
    return lines[0] if lines else ""


def wait_for_pages(child: Child, port: int) -> None:
    """Return when the sign-in page is served. Raises ServerError with the last lines of the log."""
    child.wait_ready(lambda: serves_pages(port), READY_SECONDS)


def how_it_ended(child: Child) -> str:
    code = child.exit_code()
    if code is None:
        return "nobody knows how"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def last_lines(child: Child) -> str:
    lines = tail(child.log, SAID_LINES) if child.log is not None else []
    return "".join(f"\n    {line}" for line in [f"Last lines of {child.log}:", *lines]) if lines else ""


def serves_pages(port: int) -> bool:
    """Whether the sign-in page is served."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", "/login/")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
