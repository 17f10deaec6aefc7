"""The sample move: a new one only when the last is over, and then the other way."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkadash.embedded.process import ServerError
from kafkadash.ops.demo.move import HOMES, PLAN_NAME, SlowMove
from kafkadash.playground.cluster import Playground


class Tool(Playground):
    """A playground whose reassign tool answers as told; it keeps what it was asked."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked: list[Sequence[str]] = []
        self.running = False
        self.fails = ""

    def tool(self, name: str, args: Sequence[str], timeout: float | None = 120.0) -> subprocess.CompletedProcess[str]:
        self.asked.append(args)
        state = "is still in progress" if self.running else "is completed"
        said = f"Reassignment of partition clickstream-archive-0 {state}."
        return subprocess.CompletedProcess([name], 1 if self.fails else 0, said, self.fails)


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    return Tool(tmp_path)


def run_once(tool: Tool) -> str:
    move = SlowMove(tool, say=lambda _: None)
    try:
        return move.start()
    finally:
        move.stop(5)


def replicas(tool: Tool) -> list[list[int]]:
    plan = json.loads((tool.folder / PLAN_NAME).read_text(encoding="utf-8"))
    return [entry["replicas"] for entry in plan["partitions"]]


def test_first_start__moves_to_broker_5_with_a_throttle(tool: Tool) -> None:
    assert "to broker 5 at 1 MB/s" in run_once(tool)
    assert replicas(tool) == [list(home) for home in HOMES[1]]
    assert tool.asked[-1][-3:] == ["--execute", "--throttle", "1000000"]


def test_move_still_running__is_left_alone(tool: Tool) -> None:
    run_once(tool)
    tool.running = True
    assert "goes on" in run_once(tool)
    assert "--verify" in tool.asked[-1]


def test_move_that_is_over__is_followed_by_the_way_back(tool: Tool) -> None:
    run_once(tool)
    assert "to broker 1" in run_once(tool)
    assert "to broker 5" in run_once(tool)


def test_refusal_of_the_tool__is_a_sentence(tool: Tool) -> None:
    tool.fails = "Error: no such topic\nstack"
    with pytest.raises(ServerError, match=r"kafka-reassign-partitions --execute failed: Error: no such topic$"):
        run_once(tool)
