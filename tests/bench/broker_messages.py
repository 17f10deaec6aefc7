"""Time from the death of a broker until a receiver on this machine has the message, and how often it is told.

The product runs as processes beside a real Kafka, at its usual pace. A try begins when its messages and those of the
last minute are no storm, because a storm's digest may wait a minute (``notifications.rules``).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

from kafkadash.devtools.playground.load import LoadTopic, load_topics
from kafkadash.notifications.rules import STORM_EVENTS, STORM_WITHIN
from tests.bench.bars import Bar, at_most, percentile
from tests.notifications.receivers import LocalReceiver, local_receiver
from tests.stack.stack import Shape, Stack
from tests.waiting import wait_until

TRIES = int(os.environ.get("KAFKADASH_BENCH_TRIES", "20"))
MOST_S = 30.0
BACK_S = 240.0
KIND = "broker-down"
_ADD = """
from kafkadash.notifications.models import NotificationRoute, NotificationTarget
target = NotificationTarget.objects.create(name="bench", kind="webhook", address={url!r}, shown="bench", secret="key")
NotificationRoute.objects.create(target=target)
"""


def measure() -> list[Bar]:
    root = Path(tempfile.mkdtemp(prefix="kafkadash-bench-"))
    root.chmod(0o755)  # PostgreSQL may run as another user
    stack = Stack(root / "stack", Shape(racks=("a", "b", "c")), {"": {"NOTIFICATION_NETWORKS": "127.0.0.0/8"}})
    try:
        with local_receiver() as receiver, stack:
            placement = [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
            load_topics(stack.playground.bootstrap, [LoadTopic("orders", placement=placement)])
            stack.provision()
            stack.manage("shell", "-c", _ADD.format(url=receiver.url))
            seconds, events = [], 0
            for number in range(TRIES):
                _wait_for_room(receiver, events)
                before = len(receiver.events)
                seconds.append(_stop_broker(stack, receiver, f"kafka-{1 + number % 3}"))
                events = max(events, len(receiver.events) - before)
            return [*_judge(seconds, receiver), Bar("most events of one try", events, "events")]
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _stop_broker(stack: Stack, receiver: LocalReceiver, node: str) -> float:
    """Kill a broker until it was told, start it until all that opened is closed; return seconds until it was told."""
    known = len(_told(receiver, "opened"))
    began = time.monotonic()
    stack.pause(node)
    try:
        wait_until(lambda: len(_told(receiver, "opened")) > known, f"{node} is told to be down", BACK_S)
        took = time.monotonic() - began
    finally:
        stack.resume(node)
        stack.wait_serving(node)
    wait_until(lambda: not _open_now(receiver), "everything that was told is over", BACK_S)
    return took


def _wait_for_room(receiver: LocalReceiver, events: int) -> None:
    """Wait until so many events more make no storm of those that arrived in the last minute."""

    def has_room() -> bool:
        since = time.monotonic() - STORM_WITHIN.total_seconds()
        recent = sum(len(each.document["events"]) for each in receiver.tries if each.at > since)
        return recent + events <= STORM_EVENTS

    wait_until(has_room, f"room for {events} events", BACK_S)


def _told(receiver: LocalReceiver, step: str) -> list[str]:
    return [each["subject_id"] for each in receiver.events if (each["kind"], each["step"]) == (KIND, step)]


def _open_now(receiver: LocalReceiver) -> set[str]:
    steps: dict[str, str] = {each["subject_id"]: each["step"] for each in receiver.events}
    return {subject for subject, step in steps.items() if step != "closed"}


def _judge(seconds: list[float], receiver: LocalReceiver) -> list[Bar]:
    opened, closed = Counter(_told(receiver, "opened")), Counter(_told(receiver, "closed"))
    repeated = sum(count - 1 for told in (opened, closed) for count in told.values())
    missing = abs(len(opened) - TRIES) + abs(len(closed) - TRIES)
    others = Counter(each["kind"] for each in receiver.events if each["kind"] != KIND)
    return [
        at_most(f"broker stopped to message: p95 of {TRIES}", percentile(seconds, 95), MOST_S, "s"),
        Bar(f"broker stopped to message: median of {TRIES}", round(percentile(seconds, 50), 3), "s"),
        at_most("openings and closings told twice", repeated, 0, "messages"),
        at_most("openings and closings not told, or of other brokers", missing, 0, "messages"),
        Bar("events of other findings" + "".join(f", {kind}" for kind in sorted(others)), others.total(), "events"),
    ]
