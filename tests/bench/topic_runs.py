"""Changes of many topics on a real cluster of three brokers, as two people make them on the pages.

1,000 topics of a partition with three replicas are created in one change, from the start to the verified end. Then the
review of 5,000 topics that wait for their approval, and the page of a topic with 5,000 partitions.
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
from tests.smoke.browser import Browser
from tests.stack.stack import Shape, Stack
from tests.waiting import wait_until

CREATED, PROPOSED, PARTITIONS = 1_000, 5_000, 5_000
RUN_S, PAGE_S, QUERIES = 60.0, 0.3, 15
READINGS = 100
CALM_S = 20.0  # brokers open and the collector stores what was just created: afterwards a page is one of many
POLL_S = 0.5
GIVE_UP_S = 300.0
NEW = "/clusters/demo/create-topics/"
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
        number = self._propose(names, partitions=1, factor=3)
        took, seen = self._run(number)
        told = self._tools.topics()
        if not told.keys() >= set(names):
            raise RuntimeError(f"Kafka's tool names {len(told.keys() & set(names))} of {CREATED} topics")
        yield at_most(f"{CREATED:,} topics created in one change, from start to verified", took, RUN_S, "s")
        yield Bar("different states of its items seen on the page", seen, "states", "≥ 2", seen >= 2)

        wait_until(lambda: names[-1] in self._alice.get(f"/clusters/demo/topics/?q={names[-1]}"), "they are known", 60)
        proposed = self._propose([f"more.{number:04}" for number in range(PROPOSED)], partitions=1, factor=3)
        review = f"/changes/{proposed}/"
        yield from self._read(f"review of {PROPOSED:,} topics", review)
        queries = int(self._stack.python("-c", _COUNT_QUERIES.replace("PATH", review)).split()[-1])
        yield at_most("review of them, queries", queries, QUERIES, "queries")

        self._run(self._propose(["wide"], partitions=PARTITIONS, factor=1))
        page = "/clusters/demo/topics/wide/"
        wait_until(lambda: f"{PARTITIONS:,}" in self._alice.get("/clusters/demo/topics/?q=wide"), "it is known", 60)
        yield from self._read(f"page of a topic with {PARTITIONS:,} partitions", page)

    def _propose(self, names: list[str], *, partitions: int, factor: int) -> str:
        """Return the number of a change that waits for its approval."""
        form = self._alice.form(NEW, NEW)
        typed = {"names": "\n".join(names), "partitions": str(partitions), "factor": str(factor), "placement": "kip-36"}
        answer = self._alice.send(form, **typed)
        number = re.fullmatch(r"/changes/(\d+)/items/", answer.path)
        if number is None:
            raise RuntimeError(f"{answer.status} {answer.path}: {answer.words[:300]}")
        answer = self._alice.send(self._alice.form(answer.path, answer.path), why="The bench asks for it.")
        if answer.path != f"/changes/{number[1]}/":
            raise RuntimeError(f"{answer.status} {answer.path}: {answer.words[:300]}")
        return number[1]

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
