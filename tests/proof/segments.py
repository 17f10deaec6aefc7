"""Part "segments": flushers of segments are killed at every point and at any moment; each row is in a file once.

In each round one flush is killed at every point that it has, one after the other; then snapshots keep coming while two
flushers at a time run and are killed at random. In the end all rows that were queued are compared with the rows of the
files that manifests name.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

from cryptography.fernet import Fernet

from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from tests.proof.extent import Extent
from tests.waiting import wait_until

KILLS = 20
LONGEST_S = 0.5
"""Seconds from the lease to the kill."""
SEED = 9


def prove(folder: Path, extent: Extent) -> bool:
    began = time.monotonic()
    postgres = EmbeddedPostgres(folder)
    postgres.start()
    try:
        os.environ |= {
            "DATABASE_URL": postgres.url(),
            "KAFKADASH_VAR": str(folder / "var"),
            "SECRET_KEY": "of a proof, long enough to be taken",
            "FIELD_KEYS": Fernet.generate_key().decode(),
            "DJANGO_SETTINGS_MODULE": "kafkadash.settings",
            "LOG_LEVEL": "ERROR",
        }
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        problems = _rounds(folder, extent)
    finally:
        postgres.stop()
        postgres.remove()
    for problem in problems[:20]:
        _say(f"WRONG: {problem}")
    _say(f"{time.monotonic() - began:.0f} s")
    return not problems


def _rounds(folder: Path, extent: Extent) -> list[str]:
    from kafkadash.export.flusher import POINTS
    from tests.export.flushing import Flushing

    flushing, chance, problems = Flushing(folder), random.Random(SEED), []
    for number in range(1, extent.rounds + 1):
        flushing.queue(3)
        deaths = 0
        for first in range(len(POINTS)):
            deaths += flushing.run(*POINTS[first:]) != 0
        if deaths != len(POINTS):
            problems.append(f"of {len(POINTS)} points {deaths} were hit in round {number}")
        killed = sum(_two_at_once(flushing, chance) for _ in range(KILLS // 2))
        flushing.run()
        problems += flushing.problems()
        _say(f"round {number}: {deaths} deaths at points, {killed} of {KILLS} at random, {len(flushing.rows())} rows")
    return problems


def _two_at_once(flushing, chance: random.Random) -> int:  # type: ignore[no-untyped-def]  # its module needs Django
    """How many of two were killed before they had ended: at any moment after one of them had taken the lease."""
    flushing.queue(5)
    flushing.wait_for_the_lease()
    both: list[subprocess.Popen[str]] = [flushing.start(), flushing.start()]
    wait_until(lambda: flushing.leased() or all(p.poll() is not None for p in both), "one of them is at it", 60)
    time.sleep(chance.uniform(0, LONGEST_S))
    for process in both:
        process.kill()
        process.communicate(timeout=60)
    return sum(process.returncode == -9 for process in both)


def _say(text: str) -> None:
    print(f"  {text}", flush=True)  # noqa: T201
