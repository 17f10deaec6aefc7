"""One slow move, started with Kafka's own kafka-reassign-partitions, so that there is something to see.

A topic's second replicas go from broker 1 to broker 5, the next time back. The tool's `--verify` says whether the last
move is over, and takes its throttle away when it is; so every move is followed by one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence

from kafkadash.embedded.process import ServerError, write_atomically
from kafkadash.playground.cluster import Playground

ARCHIVE = "clickstream-archive"
# The two homes of its partitions: one copy in rack b stays, the other is at broker 1 (rack a) or broker 5 (rack c).
HOMES = (((3, 1), (4, 1), (3, 1), (4, 1)), ((3, 5), (4, 5), (3, 5), (4, 5)))
BROKERS_NEEDED = frozenset({1, 3, 4, 5})
THROTTLE = 1_000_000  # bytes per second; 240 MiB take about four minutes
PLAN_NAME = "demo-move.json"
# Kafka's words (class org.apache.kafka.tools.reassign.ReassignPartitionsCommand).
STILL_RUNNING = "is still in progress"
FIRST_LOOK_SECONDS = 200.0
NEXT_LOOK_SECONDS = 30.0
TOOL_SECONDS = 60.0


class SlowMove:
    def __init__(self, playground: Playground, say: Callable[[str], None]) -> None:
        self._playground = playground
        self._say = say
        self._plan = playground.folder / PLAN_NAME
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="move", daemon=True)

    def start(self) -> str:
        """Start a move unless the last one still runs; say in a few words what moves. Raises ServerError."""
        if self._plan.exists() and self._running():
            said = f"{ARCHIVE}, started last time, goes on"
        else:
            home = self._next_home()
            write_atomically(self._plan, _plan(home))
            self._tool("--execute", "--throttle", str(THROTTLE))
            said = f"{ARCHIVE} to broker {home[0][1]} at {THROTTLE / 1e6:g} MB/s"
        self._thread.start()
        return said

    def stop(self, deadline: float) -> None:
        """Stop looking after the move; Kafka goes on with it."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(deadline)

    def _watch(self) -> None:
        """Take the throttle away when the move is over, as the one who started it must."""
        wait = FIRST_LOOK_SECONDS
        while not self._stop.wait(wait):
            wait = NEXT_LOOK_SECONDS
            try:
                if self._running():
                    continue
            except ServerError as error:
                if not self._stop.is_set():
                    self._say(f"The state of the sample move could not be read: {error}")
                continue
            self._say(
                f"The sample move of {ARCHIVE} is over and its throttle is removed; the next start makes another."
            )
            return

    def _running(self) -> bool:
        return STILL_RUNNING in self._tool("--verify")

    def _next_home(self) -> Sequence[Sequence[int]]:
        """Where the topic is not; a plan that was carried out says where it is."""
        if not self._plan.exists():
            return HOMES[1]
        try:
            entries = json.loads(self._plan.read_text(encoding="utf-8"))["partitions"]
        except (ValueError, KeyError) as error:
            raise ServerError(f"{self._plan} cannot be read: remove it, a new move will be planned.") from error
        at = tuple(tuple(entry["replicas"]) for entry in entries)
        return HOMES[0] if at == HOMES[1] else HOMES[1]

    def _tool(self, *args: str) -> str:
        done = self._playground.tool("reassign", ["--reassignment-json-file", str(self._plan), *args], TOOL_SECONDS)
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise ServerError(f"kafka-reassign-partitions {args[0]} failed: {said[0] if said else 'it said nothing'}")
        return done.stdout


def _plan(home: Sequence[Sequence[int]]) -> str:
    partitions = [
        {"topic": ARCHIVE, "partition": partition, "replicas": list(replicas)}
        for partition, replicas in enumerate(home)
    ]
    return json.dumps({"version": 1, "partitions": partitions})
