"""Changes of many topics on a real cluster of three brokers, as two people make them on the pages.

1,000 topics of a partition with three replicas are created in one change, from the start to the verified end. A config
of all of them is set, and 1,000 leaders are elected after the preferred one was away. Then the review of 5,000 topics
that wait for their approval, and the page of a topic with 5,000 partitions. At the end one change creates 10,001
partitions, one more than Kafka takes in a request (class ReplicationControlManager).
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.agreement.tools import Tools
from tests.bench.bars import Bar, at_most, percentile
from tests.smoke.browser import Answer, Browser
from tests.stack.stack import Shape, Stack
from tests.waiting import wait_until

CREATED, PROPOSED, PARTITIONS = 1_000, 5_000, 5_000
MANY_TOPICS, MANY_EACH = 73, 137
RUN_S, PAGE_S, QUERIES = 60.0, 0.3, 15
READINGS = 100
CALM_S = 20.0  # brokers open and the collector stores what was just created: afterwards a page is one of many
POLL_S = 0.5
GIVE_UP_S = 300.0
NEW = "/clusters/demo/create-topics/"
CONFIGS = "/clusters/demo/topic-configs/"
ELECTION = "/clusters/demo/elections/new/?broker=1"
AWAY = 1
RETENTION = "86400123"
_COUNT_QUERIES = """
import django; django.setup()
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from kafkadash.accounts.models import User
client = Client(headers={"host": "127.0.0.1"})
client.force_login(User.objects.get(username="bob"))
client.get("PATH")
with CaptureQueriesContext(connection) as queries:
    assert client.get("PATH").status_code == 200
print(len(queries))
"""


def measure() -> list[Bar]:
    root = Path(tempfile.mkdtemp(prefix="kafkadash-bench-"))
    root.chmod(0o755)  # started by root, PostgreSQL runs as another user and must reach its files in here
    stack = Stack(root / "stack", Shape(("a", "b", "c")))
    try:
        with stack:
            stack.provision()
            return list(_TopicRuns(stack).bars())
    finally:
        stack.remove()
        shutil.rmtree(root, ignore_errors=True)


class _TopicRuns:
    def __init__(self, stack: Stack) -> None:
        self._stack, self._tools = stack, Tools(stack.playground)
        self._alice, self._bob = Browser(stack.url), Browser(stack.url)
        self._alice.sign_in("alice", stack.password("alice"))
        self._bob.sign_in("bob", stack.password("bob"))
        wait_until(lambda: "3 (c)" in self._alice.get(NEW), "all brokers are known", GIVE_UP_S)

    def bars(self) -> Iterator[Bar]:
        names = [f"bench.{number:04}" for number in range(CREATED)]
        number = self._propose(names, partitions="1", factor="3", placement="kip-36")
        took, seen = self._run(number)
        told = self._tools.topics()
        if not told.keys() >= set(names):
            raise RuntimeError(f"Kafka's tool names {len(told.keys() & set(names))} of {CREATED} topics")
        yield at_most(f"{CREATED:,} topics created in one change, from start to verified", took, RUN_S, "s")
        yield Bar("different states of its items seen on the page", seen, "states", "≥ 2", seen >= 2)

        self._wait_for_topic(names[-1])
        yield from self._alter()
        yield from self._elect()
        proposed = self._propose(
            [f"more.{number:04}" for number in range(PROPOSED)], partitions="1", factor="3", placement="kip-36"
        )
        review = f"/changes/{proposed}/"
        yield from self._read(f"review of {PROPOSED:,} topics", review)
        queries = int(self._stack.python("-c", _COUNT_QUERIES.replace("PATH", review)).split()[-1])
        yield at_most("review of them, queries", queries, QUERIES, "queries")

        self._run(self._propose(["wide"], partitions=str(PARTITIONS), factor="1", placement="kip-36"))
        page = "/clusters/demo/topics/wide/"
        wait_until(lambda: f"{PARTITIONS:,}" in self._alice.get("/clusters/demo/topics/?q=wide"), "it is known", 60)
        yield from self._read(f"page of a topic with {PARTITIONS:,} partitions", page)

        many = [f"many.{number:03}" for number in range(MANY_TOPICS)]
        took, _ = self._run(self._propose(many, partitions=str(MANY_EACH), factor="1", placement="kip-36"))
        found = MANY_TOPICS * MANY_EACH
        wait_until(lambda: self._count_partitions("many[.].*") == found, f"Kafka's tool names {found:,}", GIVE_UP_S)
        yield at_most(f"{found:,} partitions created in one change, from start to verified", took, RUN_S, "s")

    def _count_partitions(self, pattern: str) -> int:
        return sum(len(topic.partitions) for topic in self._tools.topics("--topic", pattern).values())

    def _wait_for_topic(self, name: str) -> None:
        wait_until(lambda: name in self._alice.get(f"/clusters/demo/topics/?q={name}"), f"{name} is known", GIVE_UP_S)

    def _alter(self) -> Iterator[Bar]:
        """Set a config of all topics that match an expression."""
        wait_until(lambda: "retention.ms" in self._alice.get(CONFIGS), "configs are known", GIVE_UP_S)
        form = self._alice.form(CONFIGS, CONFIGS)
        answer = self._alice.send(form, key="retention.ms", value=RETENTION, pattern=r"bench\..*")
        took, _ = self._run(self._submit(answer))
        name = "bench.0999"
        value, _ = self._tools.configs(name)["retention.ms"]
        if value != RETENTION:
            raise RuntimeError(f"Kafka's tool says retention.ms={value} of {name}")
        yield at_most(f"{CREATED:,} configs set in one change, from start to verified", took, RUN_S, "s")

    def _elect(self) -> Iterator[Bar]:
        """Elect the preferred leader of 1,000 topics that is back after it was away."""
        names = [f"led.{number:04}" for number in range(CREATED)]
        self._run(self._propose(names, placement="typed", assignment="1:2:3"))
        playground = self._stack.playground
        playground.stop_broker(AWAY)
        playground.start_broker(AWAY)
        wait_until(lambda: self._count_in_sync(names) == CREATED, "all replicas are in sync again", GIVE_UP_S)
        misled = self._count_misled()
        wait_until(lambda: self._offers(misled), "the election of all is offered", GIVE_UP_S)
        answer = self._alice.send(self._alice.form(ELECTION, ELECTION), why="The broker is back.")
        number = re.fullmatch(r"/changes/(\d+)/", answer.path)
        if number is None:
            raise RuntimeError(f"{answer.status} {answer.path}: {answer.words[:300]}")
        took, _ = self._run(number[1])
        if left := self._count_misled():
            raise RuntimeError(f"Kafka's tool says that {left} preferred leaders are missing")
        yield at_most(f"{misled:,} leaders elected in one change, from start to verified", took, RUN_S, "s")

    def _propose(self, names: list[str], **typed: str) -> str:
        """Propose new topics; return the number of the change, which waits for its approval."""
        form = self._alice.form(NEW, NEW)
        return self._submit(self._alice.send(form, names="\n".join(names), **typed))

    def _submit(self, draft: Answer) -> str:
        """Submit a draft, as soon as Kafka has validated it where it does; return the number of the change."""
        number = re.fullmatch(r"/changes/(\d+)/items/", draft.path)
        if number is None:
            raise RuntimeError(f"{draft.status} {draft.path}: {draft.words[-900:]}")
        change = f"/changes/{number[1]}/"
        wait_until(lambda: self._send_reason(draft.path).path == change, f"{change} is submitted", GIVE_UP_S)
        return number[1]

    def _send_reason(self, path: str) -> Answer:
        return self._alice.send(self._alice.form(path, path), why="The bench asks for it.")

    def _offers(self, number: int) -> bool:
        page = self._alice.get(ELECTION)
        return f"{number:,}" in page and 'name="why"' in page

    def _count_in_sync(self, names: list[str]) -> int:
        told = self._tools.topics()
        return sum(set(row.isr) == set(row.replicas) for name in names for row in told[name].partitions.values())

    def _count_misled(self) -> int:
        """Count partitions that broker ``AWAY`` should lead and does not, from Kafka's own tool."""
        rows = [row for topic in self._tools.topics().values() for row in topic.partitions.values()]
        return sum(row.replicas[0] == AWAY != row.leader for row in rows)

    def _run(self, number: str) -> tuple[float, int]:
        """Approve and start a change; return the seconds until its end, and how many states of its items were shown."""
        page = f"/changes/{number}/"
        self._bob.send(self._bob.form(page, "/approve/"))
        wait_until(lambda: "/start/" in self._alice.get(page), "it may be started", GIVE_UP_S)
        began, seen = time.perf_counter(), set()
        self._alice.send(self._alice.form(page, "/start/"))
        while 'data-outcome="done"' not in (shown := self._alice.get(page)):
            seen.update(re.findall(r"\?items=(\w+)#items[^>]*>([\d,]+)", shown))
            if time.perf_counter() - began > GIVE_UP_S:
                raise RuntimeError(f"#{number} is not done after {GIVE_UP_S:g} s")
            time.sleep(POLL_S)
        return time.perf_counter() - began, len(seen)

    def _read(self, name: str, path: str) -> Iterator[Bar]:
        """Read a page over HTTP, beside brokers and collectors at their usual pace."""
        time.sleep(CALM_S)
        readings = []
        for _ in range(READINGS):
            began = time.perf_counter()
            self._bob.get(path)
            readings.append(time.perf_counter() - began)
        yield at_most(f"{name}, p95", percentile(readings, 95), PAGE_S, "s")
        yield Bar(f"{name}, median", round(percentile(readings, 50), 3), "s")
