"""A receiver that fails for half an hour beside one that works: what is lost, what comes twice, and what has to wait.

Events, their routing and their delivery are the product's own in this process, with as many threads as the worker of
notifications has, on an embedded PostgreSQL and in real time. The receiver fails in turn in each way that it can.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any

from tests.bench.bars import Bar, at_most, percentile
from tests.bench.server import empty_database
from tests.notifications.receivers import Answering, LocalReceiver, local_receiver

MINUTES = float(os.environ.get("KAFKADASH_BENCH_MINUTES", "30"))
EVERY_S = 10.0
"""Between two events: fewer than a storm, so that each is a message."""
WAYS = (Answering.ERROR, Answering.HANG, Answering.RESET)
THREADS = 2
"""Threads of the service worker-notify."""
WORKING_S = 5.0
"""Longest time until the receiver that works has a message, 95th percentile."""
AFTER_S = 300.0


def measure() -> list[Bar]:
    os.environ["NOTIFICATION_NETWORKS"] = "127.0.0.0/8"
    with empty_database(), ExitStack() as stack:
        logging.disable(logging.WARNING)  # a line for each try that fails
        failing, working = (stack.enter_context(local_receiver()) for _ in range(2))
        recorded = _run(failing, working)
        return [
            at_most("receiver down: events lost", _count_lost(failing, recorded), 0, "events"),
            at_most("receiver down: lost at the one that works", _count_lost(working, recorded), 0, "events"),
            at_most("receiver down: repeats with another ID", _count_other_ids(failing), 0, "messages"),
            at_most("receiver down: repeats after an answer", _count_needless(failing, working), 0, "messages"),
            at_most("other receiver meanwhile: p95", percentile(_delays(working, recorded), 95), WORKING_S, "s"),
            Bar("receiver down: tries that failed", sum(not each.accepted for each in failing.tries), "tries"),
            Bar("receiver down: events", len(recorded), "events"),
        ]


def _run(failing: LocalReceiver, working: LocalReceiver) -> dict[str, float]:
    """Record an event every ``EVERY_S`` for ``MINUTES`` and return each with its time, when all has been sent."""
    from kafkadash.notifications.models import NotificationMessage, NotificationRoute, NotificationTarget
    from tests.factories import watched

    cluster = watched("orders", datetime.now(UTC))
    for name, receiver in (("failing", failing), ("working", working)):
        target = NotificationTarget.objects.create(
            name=name, kind="webhook", address=receiver.url, shown=name, secret="key"
        )
        NotificationRoute.objects.create(target=target)
    recorded: dict[str, float] = {}
    ends = time.monotonic() + 60 * MINUTES
    with _workers():
        for number in range(int(60 * MINUTES / EVERY_S)):
            left = (ends - time.monotonic()) / (60 * MINUTES)
            failing.answering = WAYS[min(int((1 - left) * len(WAYS)), len(WAYS) - 1)]
            recorded[_record(cluster, number)] = time.monotonic()
            time.sleep(EVERY_S)
        failing.answering = Answering.ACCEPT
        failing.released.set()
        patience = time.monotonic() + AFTER_S
        while NotificationMessage.objects.exclude(state="sent").exists() and time.monotonic() < patience:
            time.sleep(1)
    return recorded


def _record(cluster: Any, number: int) -> str:
    from kafkadash.core.messages import coded
    from kafkadash.findings.kinds import FindingCode, FindingKind
    from kafkadash.notifications.models import EventStep, EventSubject
    from kafkadash.notifications.outbox import build_event, record_events

    subject = f"f-{number}"
    message = coded(FindingCode.RECORDS_LOST, group=f"service-{number}", records=number)
    event = build_event(
        cluster,
        EventSubject.FINDING,
        subject,
        EventStep.OPENED,
        message,
        datetime.now(UTC),
        kind=FindingKind.CONSUMER_LAG,
        state="critical",
    )
    record_events([event])
    return subject


@contextmanager
def _workers() -> Iterator[None]:
    """Route once a second and deliver what is due, as the tick and the worker do."""
    from django.db import connections

    from kafkadash.notifications.delivery import claim_due, deliver, hand_back
    from kafkadash.notifications.routing import route_events

    over = threading.Event()

    def send(target: int) -> None:
        try:
            deliver(target)
        finally:
            hand_back([target])
            connections.close_all()

    def tick() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            while not over.wait(1):
                route_events(datetime.now(UTC))
                for target in claim_due():
                    pool.submit(send, target)
        connections.close_all()

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _accepted_at(receiver: LocalReceiver) -> dict[str, float]:
    """Finding → time of the first try with it that was accepted."""
    found: dict[str, float] = {}
    for each in receiver.tries:
        if each.accepted:
            for event in each.document["events"]:
                found.setdefault(event["subject_id"], each.at)
    return found


def _count_lost(receiver: LocalReceiver, recorded: dict[str, float]) -> int:
    return len(recorded.keys() - _accepted_at(receiver).keys())


def _delays(receiver: LocalReceiver, recorded: dict[str, float]) -> Sequence[float]:
    accepted = _accepted_at(receiver)
    return [accepted[subject] - at for subject, at in recorded.items() if subject in accepted]


def _count_other_ids(receiver: LocalReceiver) -> int:
    """Findings that came in messages of different IDs."""
    ids: dict[str, set[str]] = defaultdict(set)
    for each in receiver.tries:
        for event in each.document["events"]:
            ids[event["subject_id"]].add(each.document["id"])
    return sum(len(of) > 1 for of in ids.values())


def _count_needless(*receivers: LocalReceiver) -> int:
    """Messages that came again after they had been accepted."""
    accepted = Counter(
        (number, each.document["id"])
        for number, receiver in enumerate(receivers)
        for each in receiver.tries
        if each.accepted
    )
    return sum(count - 1 for count in accepted.values())
