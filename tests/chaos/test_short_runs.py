"""A seeded sample of `make chaos`: two short drains with their way back, two faults in each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
RUNS_S = 600.0
QUICK = ("worker-execute killed", "PostgreSQL killed", "active controller killed", "destination broker killed")


@pytest.mark.kafka
@pytest.mark.xdist_group("chaos")
def test_two_short_runs_hold(kafka_runtime: None) -> None:
    """The referee's judgement is the exit code; what it says is what fails the test."""
    chosen = [part for name in QUICK for part in ("--only", name)]
    command = [sys.executable, "-m", "tests.chaos", "--seed", "5", "--faults", "4", "--per-run", "2", "--mib", "1"]
    done = subprocess.Popen(
        [*command, *chosen],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said, _ = done.communicate(timeout=RUNS_S)
    finally:
        if done.poll() is None:
            done.terminate()
            done.communicate(timeout=120)
    assert done.returncode == 0, said
    assert "2 of 2 runs hold" in said
    assert "4 of 4 faults struck" in said
