"""Part "standalone": the pipeline on a Spark cluster of a master and two workers says what it says on one machine.

Master and workers are those of the wheel, each a process of its own on the loopback. The same segments are taken in by
the same command twice, once with a master named in ``PYSPARK_SUBMIT_ARGS`` and once without, with hours and days by the
clock; all results have to be equal row for row, and both workers to have worked.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kafkadash.pipeline.session import require
from kafkadash.pipeline.work import works
from tests.pipeline.making import Maker
from tests.pipeline.tables import differing, markers, tables
from tests.proof.extent import Extent
from tests.waiting import wait_until

HERE = "127.0.0.1"
WORKERS = 2
MEMORY = "512m"
READY_SECONDS, DRIVER_SECONDS = 90, 300
FLUSHES, FLUSHES_AT_ONCE = 14, 5
NOTHING: Mapping[str, str] = MappingProxyType({})
_PACKAGE = "org.apache.spark.deploy"


class Cluster:
    """``root``: for the logs of its processes and the folders of its executors."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._port, self._page = _free_port(), _free_port()
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        return f"spark://{HERE}:{self._port}"

    def start(self) -> None:
        """Raises AssertionError where its workers do not come."""
        ports = ("--port", str(self._port), "--webui-port", str(self._page))
        self._start("master", f"{_PACKAGE}.master.Master", "--host", HERE, *ports)
        wait_until(self.told, "the master answers", READY_SECONDS)
        for number in range(1, WORKERS + 1):
            much = ("--cores", "1", "--memory", MEMORY, "--webui-port", "0", "--work-dir", str(self.work(number)))
            self._start(f"worker-{number}", f"{_PACKAGE}.worker.Worker", self.master, "--host", HERE, *much)
        wait_until(lambda: self.told().get("aliveworkers") == WORKERS, "its workers are there", READY_SECONDS)

    def work(self, number: int) -> Path:
        return self._root / f"worker-{number}"

    def told(self) -> dict[str, Any]:
        """What the master says of itself; nothing as long as it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{HERE}:{self._page}/json/", timeout=5) as answer:
                told: dict[str, Any] = json.load(answer)
                return told
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return {}

    def stop(self) -> None:
        for process in reversed(self._processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, name: str, main: str, *arguments: str) -> None:
        spark = next(iter(_spark_places()))
        environment = {**os.environ, "SPARK_HOME": str(spark), "SPARK_LOCAL_IP": HERE, "SPARK_DAEMON_MEMORY": MEMORY}
        with (self._root / f"{name}.log").open("ab") as log:
            command = [str(spark / "bin" / "spark-class"), main, *arguments]
            self._processes.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
            )


def prove(folder: Path, extent: Extent) -> bool:
    require()
    began = time.monotonic()
    here, there = folder / "here", folder / "there"
    # Two days ago: an hour ends in the middle, and the day is over.
    at = (datetime.now(UTC) - timedelta(days=2)).replace(minute=57, second=31, microsecond=0)
    Maker(here / "segments", groups=3, partitions=3, began=at).flushes(FLUSHES)
    shutil.copytree(here / "segments", there / "segments", copy_function=os.link)
    with _cluster(folder) as cluster:
        say(f"{cluster.master}: {WORKERS} workers of one core and {MEMORY}")
        more = {
            "PYSPARK_SUBMIT_ARGS": f"--master {cluster.master} pyspark-shell",
            "PIPELINE_SPARK_CONF": f"spark.executor.memory={MEMORY};spark.executor.cores=1",
            "SPARK_LOCAL_IP": HERE,
        }
        say(f"on it in {_taken_in(there, more):.0f} s")
        apps = [(app["name"], app["cores"]) for app in cluster.told().get("completedapps", [])]
        worked = [number for number in range(1, WORKERS + 1) if list(cluster.work(number).glob("app-*/*/stderr"))]
    say(f"on one machine in {_taken_in(here):.0f} s")
    wrong = differing(tables(here), tables(there))
    rows = {kind.value: len(of_kind) for kind, of_kind in tables(here).items()}
    whole = all(rows.get(work.kind) for work in works())
    say(f"{len(markers(there))} results; rows: {rows}; differing: {wrong or 'none'}")
    say(f"applications: {apps}; workers that worked: {worked}; {time.monotonic() - began:.0f} s")
    return not wrong and whole and worked == [1, 2] and len(markers(here)) == len(markers(there))


def _taken_in(folder: Path, more: Mapping[str, str] = NOTHING) -> float:
    """Seconds. Raises AssertionError with the end of the driver's log where it fails."""
    began = time.monotonic()
    command = [sys.executable, "-m", "tests.pipeline.driver", folder.as_uri(), str(FLUSHES_AT_ONCE), "0"]
    log = folder.with_name(f"{folder.name}.log")
    with log.open("ab") as out:
        code = subprocess.run(
            command, env={**os.environ, **more}, stdout=out, stderr=out, timeout=DRIVER_SECONDS, check=False
        ).returncode
    if code:
        raise AssertionError(f"the driver ended with {code}: {log.read_text(errors='replace')[-2000:]}")
    return time.monotonic() - began


@contextlib.contextmanager
def _cluster(root: Path) -> Iterator[Cluster]:
    cluster = Cluster(root)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _spark_places() -> list[Path]:
    found = find_spec("pyspark")
    return [Path(place) for place in (found.submodule_search_locations or [])] if found else []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        port: int = probe.getsockname()[1]
        return port


def say(line: str) -> None:
    print(f"  {line}", flush=True)  # noqa: T201
