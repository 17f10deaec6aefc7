"""A seeded sample of `make chaos`: one short drain with its way back on three brokers, and a fault in each.

Which steps that failed are the product's own fault.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.own_faults import own_faults

CHECKOUT = Path(__file__).resolve().parents[2]
RUN_S = 900.0
QUICK = ("PostgreSQL killed", "worker-execute killed")
SEED = "40"  # a kill while rows move in the drain, and one before the first intent of the way back


@pytest.mark.kafka
@pytest.mark.xdist_group("chaos")
def test_a_short_run_holds(kafka_runtime: None) -> None:
    """The referee's judgement is the exit code; what it says is what fails the test."""
    chosen = [part for name in QUICK for part in ("--only", name)]
    command = [
        sys.executable,
        "-m",
        "tests.chaos",
        "--small",
        "--seed",
        SEED,
        "--faults",
        "2",
        "--per-run",
        "2",
        "--mib",
        "1",
    ]
    done = subprocess.Popen(
        [*command, *chosen],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said, _ = done.communicate(timeout=RUN_S)
    finally:
        if done.poll() is None:
            done.terminate()
            done.communicate(timeout=120)
    assert done.returncode == 0, said
    for figure in ("1 of 1 runs", "2 of 2 faults"):
        assert figure in said


LOG = """\
2026-11-21T21:16:24.005325Z [info     ] execute@vm ready. [celery.apps.worker]
2026-11-21T21:16:25.005325Z [error    ] execution.step_failed          [kafkadash.execution.worker.step] execution=1
Traceback (most recent call last):
  File "step.py", line 1, in step_once
{error}
2026-11-21T21:16:26.005325Z [info     ] went on
"""


def test_a_fault_of_its_own_is_told(tmp_path: Path) -> None:
    log = tmp_path / "worker-execute.log"
    log.write_text(LOG.format(error="KeyError: 'orders'"), encoding="utf-8")
    (fault,) = own_faults([log, tmp_path / "not-there.log"])
    assert fault.startswith("worker-execute: ")
    assert fault.endswith("KeyError: 'orders'")


def test_a_database_that_is_away_is_none(tmp_path: Path) -> None:
    log = tmp_path / "worker-execute.log"
    errors = ("django.db.utils.OperationalError: the connection is closed", "psycopg_pool.PoolTimeout: after 10.00 sec")
    log.write_text("".join(LOG.format(error=error) for error in errors), encoding="utf-8")
    assert own_faults([log]) == []
