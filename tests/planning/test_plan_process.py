"""The child process that plans: real ones, from their private folder to their end."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from kafkadash.changes.plan import PlanErrorCode, read_rows
from kafkadash.core.child_process import LEFT_BEHIND_S, PREFIX
from kafkadash.planning.job import PlanFault, make_plan
from kafkadash.planning.topology import write_topology
from tests.planning.topologies import topology

pytestmark = pytest.mark.plan_process

WORLD = topology({"orders": [[1, 2, 3], [2, 3, 4], [3, 1, 5]], "clicks": [[3, 4]]})
DRAIN: dict[str, Any] = {"mode": "drain", "brokers": [3], "disk_limit": 0.8}
REQUEST: dict[str, Any] = {"format": 2, "request": DRAIN}
FILES = {"topology.json": write_topology(WORLD)}


@pytest.fixture(autouse=True)
def place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests plan at the same time, in the folder for temporary files of all."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))


def test_a_plan_comes_with_its_report_and_says_how_far_it_is() -> None:
    said: list[tuple[float, str]] = []
    outcome = make_plan(REQUEST, FILES, lambda fraction, stage: said.append((fraction, stage)))
    assert outcome.artifact is not None
    assert [row.name for row in read_rows(outcome.artifact)] == ["clicks-0", "orders-0", "orders-1", "orders-2"]
    assert outcome.result["impact"]["partitions_moved"] == 4
    assert said[-1] == (1.0, "done")


def test_what_cannot_be_planned_comes_with_its_problems_and_no_plan() -> None:
    outcome = make_plan({"format": 2, "request": {**DRAIN, "brokers": [9]}}, FILES, lambda *_: None)
    assert outcome.artifact is None
    [problem] = outcome.result["problems"]
    assert (problem["code"], problem["params"]) == (
        PlanErrorCode.BROKERS_UNKNOWN,
        {"brokers": [9], "known": [1, 2, 3, 4, 5, 6]},
    )


def test_the_folder_is_private_while_it_runs_and_gone_afterwards() -> None:
    before = folders()
    modes: set[int] = set()

    def step(_fraction: float, _stage: str) -> None:
        modes.update(stat.S_IMODE(folder.stat().st_mode) for folder in folders() - before)

    make_plan(REQUEST, FILES, step)
    assert modes == {0o700}
    assert folders() == before


def test_when_planning_is_cancelled_the_child_is_killed_and_its_folder_is_gone() -> None:
    before = folders()
    others = psutil.Process().children()  # of earlier tests; they may end at any moment
    children: list[psutil.Process] = []

    class Cancelled(Exception):
        pass

    def cancel(_fraction: float, _stage: str) -> None:
        children.extend(child for child in psutil.Process().children() if child not in others)
        raise Cancelled

    with pytest.raises(Cancelled):
        make_plan(REQUEST, FILES, cancel)
    assert children
    assert not any(child.is_running() for child in children)
    assert folders() == before


def test_too_little_memory_is_a_problem() -> None:
    large = topology({"orders": [[1, 2, 3]] * 50_000})
    files = {"topology.json": write_topology(large)}
    outcome = make_plan({**REQUEST, "memory_bytes": 60_000_000}, files, lambda *_: None)
    assert outcome.artifact is None
    assert outcome.result["problems"][0]["code"] == PlanErrorCode.PLANNER_OUT_OF_MEMORY


def test_a_fault_of_the_child_is_told_as_one() -> None:
    with pytest.raises(PlanFault, match="exit code 1"):
        make_plan({**REQUEST, "format": 99}, FILES, lambda *_: None)


def test_folders_that_a_killed_worker_left_behind_are_swept() -> None:
    old, young = (Path(tempfile.mkdtemp(prefix=PREFIX)) for _ in range(2))
    then = time.time() - LEFT_BEHIND_S - 60
    os.utime(old, (then, then))
    make_plan(REQUEST, FILES, lambda *_: None)
    assert not old.exists()
    assert young.exists()
    young.rmdir()


def test_a_solver_that_gets_no_memory_aborts__and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not Python and raises nothing there; a child that ends as it does stands in for it."""
    child = tmp_path / "child"
    child.write_text('#!/bin/sh\necho "terminate called: what(): std::bad_alloc" >&2\nkill -ABRT $$\n')
    child.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(child))
    with pytest.raises(PlanFault, match=r"needs more than 2\.0 GB of memory"):
        make_plan({**REQUEST, "memory_bytes": 2_000_000_000}, FILES, lambda *_: None)
