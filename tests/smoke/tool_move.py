"""A move that Kafka's own tool started: watched to its end, every pushed figure compared with raw reads."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafkadash.devtools.playground.cluster import KafkaPlayground
from tests.agreement.tools import Tools
from tests.smoke.browser import Row, rows_of
from tests.smoke.demo_process import DemoProcess
from tests.smoke.extent import SmokeExtent
from tests.smoke.kafka_truth import POINTS_ALLOWED, Copy, PlanTruth, make_topic
from tests.smoke.steps import Steps, demand
from tests.smoke.watching import Sample, Watcher, each_once, judge_samples

TOPIC = "smoke-move"
# One copy of each partition stays at its leader, the other goes from broker 1 to broker 5.
BEFORE, AFTER, DESTINATION = [[3, 1], [4, 1]], [[3, 5], [4, 5]], 5
LEADERS = {0: 3, 1: 4}
KEY = "reassignments:demo"
MOVE_SECONDS = 300.0


class ToolMove:
    def __init__(self, demo: DemoProcess, servers: str, folder: Path, steps: Steps, extent: SmokeExtent) -> None:
        self._demo, self._servers, self._folder, self._steps = demo, servers, folder, steps
        self._size, self._rate = extent.move_bytes, extent.move_rate
        self._tools = Tools(KafkaPlayground(demo.folder / "playground", detached=True))
        self._plan = folder / "tool-move.json"

    def run(self) -> None:
        step = self._steps.step
        with step("topic made and filled") as say:
            made = make_topic(self._servers, TOPIC, BEFORE, self._size)
            say(f"{made / 1e6:.0f} MB in {len(BEFORE)} partitions, 2 replicas each")
        watcher = Watcher(self._demo, "alice", self._folder / "tool-move.jsonl", KEY)
        copies = [Copy(TOPIC, partition, DESTINATION, leader, made) for partition, leader in LEADERS.items()]
        truth = PlanTruth(self._servers, copies)
        try:
            watcher.wait_for_a_frame()
            truth.start()
            with step("move started with Kafka's own tool") as say:
                self._tool("--execute", "--throttle", str(self._rate))
                say(f"--execute --throttle {self._rate}, all to broker {DESTINATION}")
            with step("move watched to its end") as say:
                frames = _frames_until_completed(watcher)
                say(f"{len(frames)} frames")
        finally:
            watcher.end()
            truth.stop()
        for copy in copies:
            self._judge(copy, frames, truth)
        with step("its throttle taken away") as say:
            demand("is completed" in self._tool("--verify"), "kafka-reassign-partitions does not say that it is done")
            say("kafka-reassign-partitions --verify says completed")

    def _tool(self, *options: str) -> str:
        moves = [{"topic": TOPIC, "partition": p, "replicas": replicas} for p, replicas in enumerate(AFTER)]
        self._plan.write_text(json.dumps({"version": 1, "partitions": moves}), encoding="utf-8")
        return self._tools.run("reassign", "--reassignment-json-file", str(self._plan), *options)

    def _judge(self, copy: Copy, frames: Sequence[dict[str, Any]], truth: PlanTruth) -> None:
        """One partition: enough samples, in order, growing, true; the last says completed."""
        rows = [row for frame in frames if (row := _rows(frame).get(copy.partition)) is not None]
        samples = _samples(rows)
        with self._steps.step(f"{TOPIC}-{copy.partition}: samples") as say:
            say(judge_samples(samples))
        with self._steps.step(f"{TOPIC}-{copy.partition}: against raw reads") as say:
            say(_largest_gap(copy, samples, truth))
        with self._steps.step(f"{TOPIC}-{copy.partition}: end") as say:
            last = rows[-1]
            demand(last.outcome == "completed" and "completed" in last.text, f"the row says: {last.text}")
            say(f"the row says: {last.text}")


def _frames_until_completed(watcher: Watcher) -> list[dict[str, Any]]:
    """All frames of the panel, up to the one in which every row of the topic has completed."""

    def completed() -> bool:
        panels = watcher.panels(KEY)
        rows = _rows(panels[-1]) if panels else {}
        return len(rows) == len(LEADERS) and all(row.outcome == "completed" for row in rows.values())

    watcher.wait(completed, MOVE_SECONDS, lambda: "the rows did not become completed")
    return watcher.panels(KEY)


def _rows(frame: dict[str, Any]) -> dict[int, Row]:
    """The topic's rows in a frame, by partition."""
    found = {}
    for row in rows_of(str(frame["content"])):
        if (name := re.search(rf"{TOPIC}\s*-\s*(\d+)", row.text)) is not None:
            found[int(name[1])] = row
    return found


def _samples(rows: Sequence[Row]) -> list[Sample]:
    """Of the running row."""
    return each_once(
        [
            (row.sampled_at, row.percent)
            for row in rows
            if row.outcome == "running" and row.sampled_at is not None and row.percent is not None
        ]
    )


def _largest_gap(copy: Copy, samples: Sequence[Sample], truth: PlanTruth) -> str:
    gaps = []
    for at, percent in samples:
        true = truth.around(copy, at)
        if true is not None:
            gaps.append((true.points_off(percent), percent, str(true)))
    failed = f", {len(truth.failures)} reads failed" if truth.failures else ""
    # A sample taken before the first raw read that got an answer has nothing to be compared with.
    demand(len(gaps) >= len(samples) - 2, f"only {len(gaps)} of {len(samples)} samples were in reach{failed}")
    worst = max(gaps)
    found = f"largest gap {worst[0]:.2f} points (shown {worst[1]:.2f} %, {worst[2]})"
    demand(worst[0] <= POINTS_ALLOWED, f"{found}{failed}")
    return f"{found} of {len(gaps)} samples, {truth.reads} raw reads{failed}"
