"""A seeded sample of `make chaos`: one short drain with its way back on three brokers, and a fault in each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    assert "1 of 1 runs hold" in said
    assert "2 of 2 faults struck" in said
