"""Processor seconds of a run and of all that it starts, by kind of process and by xdist worker.

A thread looks at the processes of this machine once a second. A process belongs to the run if its parent does, or if
the run's mark is in its environment, which also finds those that outlive their parent. Processes that begin and end
between two looks are in the sum, because whoever waits for a child is charged with its time, but of no known kind.
"""

from __future__ import annotations

import itertools
import os
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

LOOK_SECONDS = 1.0
# A process shows its parent's command until it has become its own program.
SETTLED_SECONDS = 3.0
# Machines differ by more than a factor of two, and a busy host is a slow one: budgets are compared with what a fixed
# piece of work takes during the run. WORK_SECONDS is what it took on the machine where the budgets were set.
WORK_SECONDS = 0.015
LOOKS_PER_WORK = 5
MARK = "KAFKADASH_TEST_RUN"  # in the environment of what a run starts
WORKER = "PYTEST_XDIST_WORKER"
SHARED = ""  # the worker of what serves all of them
OTHER = "other, and short ones"
# Kind → beginnings of its program's name, and what is in its command line. The first that fits; of long lines of Java
# the end says which class it runs.
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "brokers (JVM)": ((), (" kafka.Kafka ",)),
    "Kafka's tools (JVM)": ((), (" py4j.GatewayServer --enable-auth", " org.apache.kafka.tools.", " kafka.")),
    "Spark": ((), ("pyspark", "org.apache.spark")),
    "Chromium, Playwright": (("chrom", "node"), ()),
    "PostgreSQL, Valkey": (("postgres", "valkey", "initdb"), ()),
    "web, workers": ((), (" manage.py ", " celery ", " uvicorn ")),
    "pytest": ((), (" pytest ", "sys.stdin.readline")),
}


@dataclass(slots=True)
class SeenProcess:
    """``own`` seconds are its own, ``waited`` those of ended children that it waited for."""

    process: psutil.Process
    worker: str
    parent: int
    kind: str = OTHER
    own: float = 0.0
    waited: float = 0.0
    settled: bool = False


@dataclass
class EffortMeter:
    """Measures this process and all that it starts, from ``start`` to ``stop``. ``run`` is the mark of the run."""

    run: str = field(default_factory=lambda: os.environ.get(MARK, ""))
    _seen: dict[int, SeenProcess] = field(default_factory=dict)
    _others: set[int] = field(default_factory=set)
    _workers: dict[int, str] = field(default_factory=dict)
    # Seconds of processes that ended: by kind; and by worker, of those for which nobody of the run waited.
    _ended: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _orphaned: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _started: Counter[str] = field(default_factory=Counter)
    _works: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self.meet_this_process()
        self._thread = threading.Thread(target=self._look_often, name="effort", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def meet_this_process(self) -> None:
        """Count this process, and from now on all that it starts."""
        own = psutil.Process()
        self._seen[own.pid] = SeenProcess(own, SHARED, own.ppid(), "pytest", settled=True)

    def name_worker(self, pid: int, worker: str) -> None:
        """Charge this process, and what it starts from now on, to the worker."""
        with self._lock:
            self._workers[pid] = worker
            if (seen := self._seen.get(pid)) is not None:
                seen.worker = worker

    def seconds_by_worker(self) -> dict[str, float]:
        """Worker → processor seconds until now of its process and of what it started."""
        with self._lock:
            found = defaultdict(float, self._orphaned)
            for seen in self._seen.values():
                found[seen.worker] += seen.own + seen.waited
            return dict(found)

    def seconds_by_kind(self) -> dict[str, float]:
        """Kind of process → processor seconds, with the rest of the sum as ``OTHER``."""
        whole = sum(self.seconds_by_worker().values())
        with self._lock:
            found = defaultdict(float, self._ended)
            for seen in self._seen.values():
                found[seen.kind] += seen.own
        found[OTHER] += whole - sum(found.values())
        return dict(found)

    def started_by_kind(self) -> dict[str, int]:
        """Kind → processes that were started by one of another kind: those that they forked do not count."""
        with self._lock:
            return {kind: self._started[kind] for kind in [*KINDS, OTHER]}

    def weigh_machine(self) -> None:
        """Take one more sample of how long this machine takes for a fixed piece of work."""
        self._works.append(_do_fixed_work())

    def slowness(self) -> float:
        """How many times longer this machine took than the one of the budgets, at least 1.

        The mean of the samples without the highest and the lowest tenth: a processor that shares its core with another
        guest is slow from moment to moment, and the processor seconds of a run add up over all of them. Budgets are
        upper limits: a machine that does the fixed work faster gets no smaller ones.
        """
        cut = len(self._works) // 10
        usual = sorted(self._works)[cut : len(self._works) - cut]
        return max(1.0, statistics.fmean(usual) / WORK_SECONDS) if usual else 1.0

    def table(self) -> list[str]:
        """Lines to print: kind, processor seconds, processes started."""
        seconds, started = self.seconds_by_kind(), self.started_by_kind()
        rows = [f"{kind:<24}{seconds.get(kind, 0.0):>12.1f}{started[kind]:>10}" for kind in [*KINDS, OTHER]]
        whole = f"{'all':<24}{sum(seconds.values()):>12.1f}{sum(started.values()):>10}"
        return [f"{'process':<24}{'processor s':>12}{'started':>10}", *rows, whole]

    def look(self) -> None:
        """Read the times of all processes of the run."""
        with self._lock:
            running = set(psutil.pids())
            for pid in self._seen.keys() - running:
                self._forget(pid)
            self._others &= running
            for pid in sorted(running - self._seen.keys() - self._others):
                self._meet(pid)
            for pid, seen in list(self._seen.items()):
                try:
                    _read(seen)
                    if not seen.settled and time.time() - seen.process.create_time() > SETTLED_SECONDS:
                        self._count(seen)
                except psutil.Error:
                    self._forget(pid)

    def _look_often(self) -> None:
        for number in itertools.count():
            self.look()
            if number % LOOKS_PER_WORK == 0:
                self.weigh_machine()
            if self._stop.wait(LOOK_SECONDS):
                self.look()
                return

    def _meet(self, pid: int) -> None:
        try:
            process = psutil.Process(pid)
            parent_id = process.ppid()
            parent = self._seen.get(parent_id)
            environment = process.environ() if parent is None or parent.worker == SHARED else {}
        except (psutil.Error, OSError):
            self._others.add(pid)
            return
        if parent is None and not (self.run and environment.get(MARK) == self.run):
            self._others.add(pid)
            return
        worker = self._workers.get(pid) or environment.get(WORKER) or (parent.worker if parent is not None else SHARED)
        self._seen[pid] = SeenProcess(process, worker, parent_id)

    def _forget(self, pid: int) -> None:
        """Its seconds are its parent's now, if that waited for it; else they are kept here."""
        seen = self._seen.pop(pid)
        self._ended[seen.kind] += seen.own
        parent = self._seen.get(seen.parent)
        if not seen.settled:
            self._count(seen)
        if parent is None:
            self._orphaned[seen.worker] += seen.own + seen.waited

    def _count(self, seen: SeenProcess) -> None:
        seen.settled = True
        parent = self._seen.get(seen.parent)
        self._started[seen.kind] += parent is None or parent.kind != seen.kind


def _do_fixed_work() -> float:
    """Return the processor seconds of a work that fits into a processor's own cache, as most of a run does."""
    began = time.thread_time()
    for _ in range(25):
        texts = {number * 7919 % 4003: str(number) for number in range(4000)}
        sum(map(len, texts.values()))
    return time.thread_time() - began


def slowness_now() -> float:
    """How many times longer this machine takes at this moment than the one of the budgets; at least 1."""
    return max(1.0, statistics.median(_do_fixed_work() for _ in range(3)) / WORK_SECONDS)


def _read(seen: SeenProcess) -> None:
    with seen.process.oneshot():
        times = seen.process.cpu_times()
        seen.parent = seen.process.ppid()
        seen.own = times.user + times.system
        seen.waited = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
        if not seen.settled and (command := seen.process.cmdline()):  # there is none once it has ended
            seen.kind = kind_of(command)


def kind_of(command: Sequence[str]) -> str:
    """The kind of process that a command line is of."""
    program, text = Path(command[0]).name, f" {' '.join(command)} "
    return next(
        (
            kind
            for kind, (names, words) in KINDS.items()
            if program.startswith(names) or any(word in text for word in words)
        ),
        OTHER,
    )
