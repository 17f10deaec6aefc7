"""`make smoke`: the whole product once, from outside.

Starts the demo in a folder of its own, moves 400 MB with Kafka's own tool, watches the pushed panel from another
process and compares every figure in it with what the brokers themselves say. Exit code 0 only if everything holds.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.smoke.browser import Browser, Row, read_frames, rows_of
from tests.smoke.demo_process import CHECKOUT, DemoProcess, command
from tests.smoke.kafka_truth import TruthReader, make_topic

TOPIC = "smoke-move"
# One copy of each partition stays at its leader, the other goes from broker 1 to broker 5.
BEFORE, AFTER, DESTINATION = [[3, 1], [4, 1]], [[3, 5], [4, 5]], 5
LEADERS = {0: 3, 1: 4}
SIZE = 420_000_000
THROTTLE = 5_000_000
KEY = "reassignments:demo"
MOVE_SECONDS = 300.0
FRAMES_NEEDED, FRAMES_BETWEEN_NEEDED = 15, 5
POINTS_ALLOWED = 2.0


class NotSo(Exception):
    """A thing that had to hold and does not; the text says what was found."""


@dataclass(slots=True)
class Steps:
    """The table that is printed: step, seconds, figure."""

    rows: list[tuple[str, float, str]] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[Callable[[str], None]]:
        began = time.monotonic()
        said: list[str] = []
        try:
            yield said.append
        except BaseException as error:
            self._end(name, began, f"FAILED: {str(error) or type(error).__name__}")
            raise
        self._end(name, began, said[0] if said else "")

    def _end(self, name: str, began: float, figure: str) -> None:
        self.rows.append((name, time.monotonic() - began, figure))
        say(f"  {name:<38} {self.rows[-1][1]:7.1f} s  {figure}")


def main() -> int:
    root = Path(tempfile.mkdtemp(prefix="kafkadash-smoke-"))
    root.chmod(0o755)  # started by root, PostgreSQL runs as another user and must reach its files in here
    say(f"smoke in {root}")
    smoke = Smoke(root)
    try:
        smoke.run()
    except (NotSo, RuntimeError, OSError, subprocess.SubprocessError) as error:
        say(f"smoke failed: {error}\nLogs are kept in {root}.")
        return 1
    finally:
        smoke.end()
    shutil.rmtree(root)
    say("smoke passed")
    return 0


class Smoke:
    def __init__(self, root: Path) -> None:
        self.steps = Steps()
        self.folder = root / "var"
        self.frames_file = root / "frames.jsonl"
        self.plan = root / "plan.json"
        self.demo = DemoProcess(self.folder, "--no-move")
        self.watcher: subprocess.Popen[str] | None = None
        self.truth: TruthReader | None = None

    def run(self) -> None:
        with self.steps.step("demo started") as say:
            self.demo.wait_until_ready()
            say(f"{self.demo.seconds:.1f} s by its own account, {self.demo.base}")
        bootstrap = json.loads((self.folder / "playground" / "playground.json").read_text(encoding="utf-8"))
        servers = ",".join(f"127.0.0.1:{node['broker_port']}" for node in bootstrap["nodes"] if node["broker_port"])
        with self.steps.step("topic made and filled") as say:
            say(f"{make_topic(servers, TOPIC, BEFORE, SIZE) / 1e6:.0f} MB in {len(BEFORE)} partitions, 2 replicas each")
        with self.steps.step("watcher signed in and connected") as say:
            self._start_watcher()
            say(f"as alice, {KEY}")
        self.truth = TruthReader(servers, TOPIC, LEADERS, DESTINATION)
        self.truth.start()
        with self.steps.step("move started with Kafka's own tool") as say:
            self._start_move()
            say(f"--execute --throttle {THROTTLE}, all to broker {DESTINATION}")
        with self.steps.step("move watched to its end") as say:
            frames = self._frames_until_completed()
            say(f"{len(frames)} frames")
        self.truth.stop()
        for partition in LEADERS:
            self._judge(partition, frames)
        with self.steps.step("active controller") as say:
            say(self._compare_controller())
        with self.steps.step("Ctrl-C, then nothing is left") as say:
            say(self._stop_demo())

    def end(self) -> None:
        """Whatever happened: nothing of it stays."""
        if self.watcher is not None and self.watcher.poll() is None:
            self.watcher.kill()
            self.watcher.wait()
        self.demo.end()

    def _start_watcher(self) -> None:
        arguments = [self.demo.base, "alice", KEY, str(self.frames_file)]
        self.watcher = subprocess.Popen(
            [sys.executable, "-m", "tests.smoke.browser", *arguments],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            text=True,
        )
        assert self.watcher.stdin is not None
        self.watcher.stdin.write(self.demo.password("alice") + "\n")
        self.watcher.stdin.close()
        self._wait(lambda: bool(read_frames(self.frames_file)), 30, "no frame came")

    def _start_move(self) -> None:
        moves = [{"topic": TOPIC, "partition": p, "replicas": replicas} for p, replicas in enumerate(AFTER)]
        self.plan.write_text(json.dumps({"version": 1, "partitions": moves}), encoding="utf-8")
        plan = ("--reassignment-json-file", str(self.plan))
        command(self.folder, "playground", "tool", "reassign", "--", *plan, "--execute", "--throttle", str(THROTTLE))

    def _frames_until_completed(self) -> list[dict[str, Any]]:
        """All frames of the panel, up to the one in which every row of the topic has completed."""

        def completed() -> bool:
            rows = _rows(self._panels()[-1]) if self._panels() else {}
            return len(rows) == len(LEADERS) and all(row.outcome == "completed" for row in rows.values())

        self._wait(completed, MOVE_SECONDS, "the rows did not become completed")
        return self._panels()

    def _panels(self) -> list[dict[str, Any]]:
        return [frame for frame in read_frames(self.frames_file) if frame.get("key") == KEY and "content" in frame]

    def _judge(self, partition: int, frames: list[dict[str, Any]]) -> None:
        """One partition: enough samples, in order, growing, true; the last says completed."""
        rows = [row for frame in frames if (row := _rows(frame).get(partition)) is not None]
        samples = _samples(rows)
        with self.steps.step(f"{TOPIC}-{partition}: samples") as say:
            between = [percent for _, percent in samples if 5 <= percent <= 95]
            _demand(len(samples) >= FRAMES_NEEDED, f"{len(samples)} samples, {FRAMES_NEEDED} needed")
            _demand(len(between) >= FRAMES_BETWEEN_NEEDED, f"{len(between)} between 5 and 95 %")
            times = [at for at, _ in samples]
            _demand(all(a < b for a, b in itertools.pairwise(times)), "sample times do not increase strictly")
            percents = [percent for _, percent in samples]
            _demand(all(a <= b for a, b in itertools.pairwise(percents)), "progress fell")
            growing = len(set(percents))
            _demand(growing >= FRAMES_NEEDED, f"only {growing} different percentages: it does not grow")
            _demand(max(percents) <= 100, f"{max(percents)} % is more than everything")
            say(f"{len(samples)}, strictly later each, {growing} different percentages, {len(between)} in 5-95 %")
        with self.steps.step(f"{TOPIC}-{partition}: against raw reads") as say:
            say(self._largest_gap(partition, samples))
        with self.steps.step(f"{TOPIC}-{partition}: end") as say:
            last = rows[-1]
            _demand(last.outcome == "completed" and "completed" in last.text, f"the row says: {last.text}")
            say(f"the row says: {last.text}")

    def _largest_gap(self, partition: int, samples: list[tuple[float, float]]) -> str:
        assert self.truth is not None
        gaps = []
        for at, percent in samples:
            true = self.truth.at(partition, at)
            if true is not None:
                gaps.append((abs(percent - true), percent, true))
        failed = f", {len(self.truth.failures)} reads failed" if self.truth.failures else ""
        reads = len(self.truth.readings[partition])
        # A sample taken before the first raw read that got an answer has nothing to be compared with.
        _demand(len(gaps) >= len(samples) - 2, f"only {len(gaps)} of {len(samples)} samples were in reach{failed}")
        worst = max(gaps)
        found = f"largest gap {worst[0]:.2f} points (shown {worst[1]:.2f} %, true {worst[2]:.2f} %)"
        _demand(worst[0] <= POINTS_ALLOWED, f"{found}{failed}")
        return f"{found} of {len(gaps)} samples, {reads} raw reads{failed}"

    def _compare_controller(self) -> str:
        browser = Browser(self.demo.base)
        browser.sign_in("alice", self.demo.password("alice"))
        shown = re.search(r'data-controller="(\d+)"', browser.get("/clusters/demo/"))
        _demand(shown is not None, "the overview page names no active controller")
        assert shown is not None
        said = command(self.folder, "playground", "tool", "quorum", "--", "describe", "--status")
        leader = re.search(r"LeaderId:\s+(\d+)", said)
        _demand(leader is not None, f"kafka-metadata-quorum named no leader: {said}")
        assert leader is not None
        _demand(shown[1] == leader[1], f"the page says {shown[1]}, kafka-metadata-quorum says {leader[1]}")
        return f"page and kafka-metadata-quorum say {leader[1]}"

    def _stop_demo(self) -> str:
        opened = self.demo.opened()
        code = self.demo.interrupt()
        _demand(code == 0, f"the demo ended with {code}: {' / '.join(self.demo.lines[-3:])}")
        left = opened.still_there()
        _demand(not left, f"still there: {', '.join(left)}")
        return (
            f"exit code 0; {len(opened.processes)} processes, {len(opened.ports)} ports, "
            f"{len(opened.sockets)} socket files gone"
        )

    def _wait(self, condition: Callable[[], bool], deadline: float, otherwise: str) -> None:
        end = time.monotonic() + deadline
        while not condition():
            if self.watcher is not None and self.watcher.poll() is not None:
                raise NotSo(f"the watcher ended with exit code {self.watcher.returncode}")
            if time.monotonic() > end:
                raise NotSo(f"{otherwise} within {deadline:g} s")
            time.sleep(0.2)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _rows(frame: dict[str, Any]) -> dict[int, Row]:
    """The topic's rows in a frame, by partition."""
    found = {}
    for row in rows_of(str(frame["content"])):
        if (name := re.search(rf"{TOPIC}\s*-\s*(\d+)", row.text)) is not None:
            found[int(name[1])] = row
    return found


def _samples(rows: list[Row]) -> list[tuple[float, float]]:
    """(time, percent) of the running row, each sample once: other news may push the same sample again."""
    samples: list[tuple[float, float]] = []
    for row in rows:
        if row.outcome != "running" or row.sampled_at is None or row.percent is None:
            continue
        if not samples or samples[-1] != (row.sampled_at, row.percent):
            samples.append((row.sampled_at, row.percent))
    return samples


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise NotSo(otherwise)


if __name__ == "__main__":
    sys.exit(main())
