"""Part "pipeline": the driver is killed at named points and at random, and the tables are those of the batch answer.

Each round kills it at every point once and as often again at a random moment, while flushes keep coming; at its end the
checkpoint is deleted. Last all of it is taken in, and compared, row for row, with what one batch makes of the same
segments.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.pipeline import query
from kafkadash.pipeline.batch import Batches
from kafkadash.pipeline.flushes import manifests
from kafkadash.pipeline.lake import Lake
from kafkadash.pipeline.session import open_session, require
from kafkadash.pipeline.store import open_store
from kafkadash.pipeline.works import works
from tests.pipeline.driver import POINTS
from tests.pipeline.making import Maker
from tests.pipeline.tables import Tables, markers, tables
from tests.proof.extent import Extent

FLUSHES_AT_ONCE = 2
DRIVER_SECONDS = 600
# Random kills strike from the start of Spark to the last batch of a run.
LATEST_KILL_SECONDS = 40.0


class Drivers:
    """One folder of the pipeline, and drivers that come and go on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.maker = Maker(folder / "segments", groups=3, partitions=3)
        self.kills = 0

    def killed_at(self, point: str, chance: random.Random) -> None:
        self.maker.flushes(FLUSHES_AT_ONCE * 2)
        nth = "1" if point in ("lake written", "marker written") else str(chance.randint(1, 2))
        if self._run(point, nth) == -signal.SIGKILL:
            self.kills += 1
        say(f"killed at “{point}”")

    def killed_somewhen(self, chance: random.Random) -> None:
        self.maker.flushes(FLUSHES_AT_ONCE * 2)
        after = chance.uniform(3, LATEST_KILL_SECONDS)
        process = subprocess.Popen(self._command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        struck = threading.Timer(after, process.kill)
        struck.start()
        code = process.wait(DRIVER_SECONDS)
        struck.cancel()
        self.kills += code == -signal.SIGKILL
        say(f"killed after {after:.0f} s" if code else "ended before it was killed")

    def lose_checkpoint(self) -> None:
        shutil.rmtree(self.folder / query.CHECKPOINT, ignore_errors=True)
        say("its checkpoint is gone")

    def finish(self) -> str:
        """Takes in the rest; the id of the query that did so."""
        code = self._run()
        if code:
            raise AssertionError(f"the last driver ended with {code}")
        return query.query_id(open_store(self.folder.as_uri()))

    def _run(self, *point: str) -> int:
        return subprocess.run(
            self._command(*point),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=DRIVER_SECONDS,
            check=False,
        ).returncode

    def _command(self, *point: str) -> list[str]:
        return [sys.executable, "-m", "tests.pipeline.driver", self.folder.as_uri(), str(FLUSHES_AT_ONCE), *point]


def prove(folder: Path, extent: Extent) -> bool:
    require()
    drivers = Drivers(folder)
    chance = random.Random(extent.rounds)
    drivers.maker.flushes(4)
    for _ in range(extent.rounds):
        for point in POINTS:
            drivers.killed_at(point, chance)
            drivers.killed_somewhen(chance)
        drivers.lose_checkpoint()
    last = drivers.finish()
    batch_answer(folder)
    whole = tables(folder, lambda name: name == "batch")
    streamed = tables(folder, lambda name: not name.startswith(("batch", "hourly", "daily")))
    of_last = tables(folder, lambda name: name == last)
    rows = {kind.value: len(of_kind) for kind, of_kind in whole.items()}
    say(f"{drivers.kills} kills, {drivers.maker.seq} flushes, {len(markers(folder))} results; the batch answer: {rows}")
    held = whole == streamed == of_last and all(rows.values()) and drivers.kills > 0
    if not held:
        say(f"all results: {differing(whole, streamed)}; of the last query: {differing(whole, of_last)}")
    return held


def differing(one: Tables, other: Tables) -> dict[ResultKind, int]:
    keys = {kind: {*one.get(kind, {}), *other.get(kind, {})} for kind in {*one, *other}}
    return {
        kind: sum(one.get(kind, {}).get(key) != other.get(kind, {}).get(key) for key in of_kind)
        for kind, of_kind in keys.items()
    }


def batch_answer(folder: Path) -> None:
    spark = open_session(os.environ)
    try:
        store = open_store(folder.as_uri())
        Batches(Lake(spark, store, "batch"), works()).do(0, manifests(store))
    finally:
        spark.stop()


def say(line: str) -> None:
    print(f"  {line}", flush=True)  # noqa: T201
