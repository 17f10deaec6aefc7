"""A watcher in a process of its own, and what it has seen of one panel."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.smoke.browser import read_frames
from tests.smoke.demo_process import CHECKOUT, DemoProcess
from tests.smoke.steps import NotSo, demand, wait

FIRST_FRAME_SECONDS = 30.0
FRAMES_NEEDED, FRAMES_BETWEEN_NEEDED = 15, 5

Sample = tuple[float, float]
"""When it was taken, in seconds since the epoch, and the percent that was shown."""


class Watcher:
    """Signed in and connected once a first frame has come."""

    def __init__(self, demo: DemoProcess, name: str, out: Path, *keys: str) -> None:
        self._out = out
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.smoke.browser", demo.base, name, str(out), *keys],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(demo.password(name) + "\n")
        self._process.stdin.close()

    def panels(self, key: str) -> list[dict[str, Any]]:
        """All frames of a panel so far."""
        return [frame for frame in read_frames(self._out) if frame.get("key") == key and "content" in frame]

    def wait(self, condition: Callable[[], object], deadline: float, otherwise: Callable[[], str]) -> None:
        def holds() -> object:
            if self._process.poll() is not None:
                raise NotSo(f"the watcher ended with exit code {self._process.returncode}")
            return condition()

        wait(holds, deadline, otherwise)

    def wait_for_a_frame(self) -> None:
        self.wait(lambda: read_frames(self._out), FIRST_FRAME_SECONDS, lambda: "no frame came")

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def each_once(samples: Sequence[Sample]) -> list[Sample]:
    """Other news may push the same sample again."""
    return [sample for sample, _ in itertools.groupby(samples)]


def judge_samples(samples: Sequence[Sample]) -> str:
    """Enough, in order, growing. Raises NotSo."""
    between = [percent for _, percent in samples if 5 <= percent <= 95]
    demand(len(samples) >= FRAMES_NEEDED, f"{len(samples)} samples, {FRAMES_NEEDED} needed")
    demand(len(between) >= FRAMES_BETWEEN_NEEDED, f"{len(between)} between 5 and 95 %")
    times = [at for at, _ in samples]
    demand(all(a < b for a, b in itertools.pairwise(times)), "sample times do not increase strictly")
    percents = [percent for _, percent in samples]
    demand(all(a <= b for a, b in itertools.pairwise(percents)), "progress fell")
    growing = len(set(percents))
    demand(growing >= FRAMES_NEEDED, f"only {growing} different percentages: it does not grow")
    demand(max(percents) <= 100, f"{max(percents)} % is more than everything")
    return f"{len(samples)}, strictly later each, {growing} different percentages, {len(between)} in 5-95 %"
