"""Part "pipeline": driver and ingest are killed while segments keep coming, and the database is as if nobody had been.

Each round kills the driver at every point once and as often again at any moment, and beside it the ingest the same way;
in the middle of a round the checkpoint is deleted. When all has been taken in, two fresh databases get what comes of
the same segments without any trouble: of the same batches, and of all of it in one. The first has to be equal row for
row in all that the ingest writes, the second in all that does not depend on where a batch ends.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import psycopg
from cryptography.fernet import Fernet

from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from kafkadash.history.ingest import POINTS as INGEST_POINTS
from kafkadash.pipeline import application as query
from kafkadash.pipeline.session import require
from tests.pipeline.driver import POINTS as DRIVER_POINTS
from tests.pipeline.killing import Killed, driver, taker
from tests.pipeline.making import Maker
from tests.pipeline.stored import ANY_WAY, Rows, Stored, differing, stored
from tests.proof.extent import Extent

FLUSHES_AT_ONCE = 3
FLUSH_SECONDS, BATCH_SECONDS = 3.0, 1.0
DRIVER_SECONDS, INGEST_SECONDS = (1.0, 15.0), (0.8, 5.0)
"""From its start to the kill at random: from before Spark is there until it has done some batches."""
MAIN, AGAIN, WHOLE = "kafkadash", "again", "whole"
MAY_BE_EMPTY = ("workloads", "cluster workloads", "forecasts")


class Proof:
    def __init__(self, folder: Path, postgres: EmbeddedPostgres, seed: int) -> None:
        # Two hours ahead, so that no hour of it is over while drivers are killed.
        self.began = datetime.now(UTC).replace(minute=50, second=7, microsecond=0) + timedelta(hours=1)
        self.root, self.folder, self.postgres = folder, folder / "pipeline", postgres
        self.maker = Maker(self.folder / "segments", groups=3, partitions=3, began=self.began)
        self.drivers = self.ingests = self.lost = 0
        self._seed = seed
        self._taker: Killed | None = None

    def round(self) -> None:
        over = Event()
        with ThreadPoolExecutor(2) as beside:
            running = [beside.submit(self._segments_come, over), beside.submit(self._ingest_is_killed, over)]
            try:
                self._driver_is_killed(running)
                with driver(self.folder, FLUSHES_AT_ONCE, BATCH_SECONDS):  # there is something to take in meanwhile
                    running[1].result()
            finally:
                over.set()
                if self._taker:
                    self._taker.end()
            running[0].result()
        say(f"{self.drivers} kills of the driver, {self.ingests} of the ingest, {self.maker.seq} flushes")

    def _segments_come(self, over: Event) -> None:
        while not over.wait(FLUSH_SECONDS):
            self.maker.flush()

    def _driver_is_killed(self, beside: Sequence[Future[None]]) -> None:
        chance = random.Random(self._seed + self.drivers)
        for number, point in enumerate(reversed(DRIVER_POINTS)):
            if number == len(DRIVER_POINTS) // 2:
                self._lose_checkpoint()
            nth, after = str(chance.randint(1, 2)), chance.uniform(*DRIVER_SECONDS)
            with driver(self.folder, FLUSHES_AT_ONCE, BATCH_SECONDS, point, nth) as first:
                first.at_its_point()
                # Its JVM may be there still, and is ended by the next.
                with driver(self.folder, FLUSHES_AT_ONCE, BATCH_SECONDS) as second:
                    second.after(after)
            self.drivers += 2
            say(f"the driver was killed at “{point}” ({nth}), and after {after:.0f} s")
            for each in beside:
                if each.done():
                    each.result()

    def _lose_checkpoint(self) -> None:
        shutil.rmtree(self.folder / query.CHECKPOINT)
        self.lost += 1
        say("its checkpoint is gone")

    def _ingest_is_killed(self, over: Event) -> None:
        chance = random.Random(self._seed + self.ingests)
        for point in INGEST_POINTS:
            if over.is_set():
                return
            with taker(self.folder, self.postgres.url(MAIN), point=point) as self._taker:
                self._taker.at_its_point()
            with taker(self.folder, self.postgres.url(MAIN)) as self._taker:
                self._taker.after(chance.uniform(*INGEST_SECONDS))
            self.ingests += 2

    def finish(self) -> bool:
        with driver(self.folder, 1000) as last:  # all that is left is one batch, and it has caught up
            last.ends()
        self._drain(self.folder, MAIN)
        found = self.stored(MAIN)
        self._answers(found["ledger"])
        for folder, database in ((self.folder, MAIN), (self.root / AGAIN, AGAIN), (self.root / WHOLE, WHOLE)):
            self._drain(folder, database)
        return self._compare()

    def _answers(self, ledger: Rows) -> None:
        """By a driver that nobody kills: hours and days of all three, and the batches of two of them."""
        from kafkadash.pipeline.session import open_session
        from tests.pipeline.answers import by_the_clock, in_one, of_the_same_batches

        for name in (AGAIN, WHOLE):
            shutil.copytree(self.folder / "segments", self.root / name / "segments", copy_function=os.link)
        spark = open_session(os.environ)
        try:
            later = self.began + timedelta(days=2)
            last = of_the_same_batches(spark, self.root / AGAIN, ledger)
            say(f"{len(ledger)} batches were done again, without trouble")
            in_one(spark, self.root / WHOLE, "whole")
            for folder, name in ((self.folder, last), (self.root / AGAIN, last), (self.root / WHOLE, "whole")):
                by_the_clock(spark, folder, name, later)
        finally:
            spark.stop()

    def _drain(self, folder: Path, database: str) -> None:
        with taker(folder, self.postgres.url(database), "drain") as process:
            process.ends()

    def _compare(self) -> bool:
        main, again, whole = (self.stored(name) for name in (MAIN, AGAIN, WHOLE))
        say("rows: " + ", ".join(f"{len(rows)} {name}" for name, rows in main.items()))
        wrong = differing(main, again)
        wrong_whole = {name: count for name, count in differing(main, whole).items() if name in ANY_WAY}
        empty = [name for name, rows in main.items() if not rows and name not in MAY_BE_EMPTY]
        queries = {entry[0] for entry in main["ledger"]}
        streams = {name for name in queries if not name.startswith(("hourly", "daily"))}
        say(f"differing from the same batches: {wrong or 'none'}; from one batch: {wrong_whole or 'none'}")
        if empty:
            say(f"WRONG: nothing in {', '.join(empty)}")
        if len(streams) != self.lost + 1:
            say(f"WRONG: {self.lost} checkpoints were lost, and there were {len(streams)} queries")
        return not (wrong or wrong_whole or empty) and len(streams) == self.lost + 1

    def stored(self, database: str) -> Stored:
        with psycopg.connect(self.postgres.conninfo(database)) as connection:
            return stored(lambda statement: connection.execute(statement.encode()).fetchall())


def prove(folder: Path, extent: Extent) -> bool:
    require()
    began = time.monotonic()
    with _postgres(folder) as postgres:
        proof = Proof(folder, postgres, extent.rounds)
        for _ in range(extent.rounds):
            proof.round()
        held = proof.finish()
    say(f"{proof.drivers} kills of the driver and {proof.ingests} of the ingest, {proof.lost} checkpoints lost")
    say(f"{time.monotonic() - began:.0f} s")
    return held


@contextmanager
def _postgres(folder: Path) -> Iterator[EmbeddedPostgres]:
    """With three databases that know the clusters and nothing else."""
    postgres = EmbeddedPostgres(folder)
    postgres.start()
    try:
        os.environ |= {
            "DATABASE_URL": postgres.url(MAIN),
            "KAFKADASH_VAR": str(folder / "var"),
            "SECRET_KEY": "of a proof, long enough to be taken",
            "FIELD_KEYS": Fernet.generate_key().decode(),
            "DJANGO_SETTINGS_MODULE": "kafkadash.settings",
            "LOG_LEVEL": "ERROR",
        }
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connection

        from kafkadash.clusters.models import Cluster

        call_command("migrate", verbosity=0)
        for name in ("east", "west"):
            Cluster.objects.create(name=name, slug=name, bootstrap_servers="127.0.0.1:1")
        connection.close()
        with psycopg.connect(postgres.conninfo("postgres"), autocommit=True) as to:
            # Django's pool keeps some connections, and a database that is copied may have none.
            to.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [MAIN])
            for name in (AGAIN, WHOLE):
                to.execute(f"CREATE DATABASE {name} TEMPLATE {MAIN}".encode())
        yield postgres
    finally:
        postgres.stop()
        postgres.remove()


def say(line: str) -> None:
    print(f"  {line}", flush=True)  # noqa: T201
