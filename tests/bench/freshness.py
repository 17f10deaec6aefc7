"""How soon pages tell of what happens to a real cluster, and what the readings cost brokers and the collector.

Three brokers, three controllers of their own, the product at its usual pace. A page is green for as long as its
headline is the one that it had while all was well: the headline is the answer of a page. Pages are asked five times a
second, one after the other, so each figure is too high by up to a second.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from urllib.error import URLError

import psutil

from kafkadash.devtools.playground.load import MIB, LoadTopic, load_topics
from tests.agreement.tools import Tools
from tests.bench.bars import Bar, at_most, percentile
from tests.smoke.browser import Browser
from tests.stack.green_pages import GreenPages
from tests.stack.stack import Shape, Stack

KILLS, QUORUM_LOSSES, CHANGES = 20, 5, 5
COST_S = 60.0
GIVE_UP_S = 120.0
PAUSE_S = 0.2
TOPIC = "orders"
OF_CLUSTER = (
    "/",
    "/clusters/demo/",
    "/clusters/demo/brokers/",
    "/clusters/demo/topics/",
    f"/clusters/demo/topics/{TOPIC}/",
)
OF_QUORUM = (*OF_CLUSTER, "/clusters/demo/racks/", "/clusters/demo/quorum/", "/clusters/demo/reassignments/")
RATE = "leader.replication.throttled.rate"


def measure() -> list[Bar]:
    root = Path(tempfile.mkdtemp(prefix="kafkadash-bench-"))
    root.chmod(0o755)  # started by root, PostgreSQL runs as another user and must reach its files in here
    stack = Stack(root / "stack", Shape(("a", "b", "c"), executes=0))
    try:
        with stack:
            placement = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
            load_topics(stack.playground.bootstrap, [LoadTopic(TOPIC, placement=placement, fill_bytes=3 * MIB)])
            stack.provision()
            browser = Browser(stack.url)
            browser.sign_in("alice", stack.password("alice"))
            return _Watch(stack, Tools(stack.playground), browser).bars()
    finally:
        stack.remove()
        shutil.rmtree(root, ignore_errors=True)


class _Watch:
    def __init__(self, stack: Stack, tools: Tools, browser: Browser) -> None:
        self._stack, self._tools, self._browser = stack, tools, browser
        self._green = GreenPages(browser, tools, OF_QUORUM)

    def bars(self) -> list[Bar]:
        changes = {"a topic's config": self._config, "a broker's throttle": self._throttle, "a new topic": self._topic}
        bars = []
        for name, change in changes.items():
            times = [change(number) for number in range(CHANGES)]
            print(f"  {name}: {', '.join(f'{took:.1f}' for took in times)} s", flush=True)  # noqa: T201
            bars += [at_most(f"{name} on its page, p95", percentile(times, 95), 12, "s")]
        self._green.wait_until_green()
        costs = self._costs()
        killed: list[float] = []
        lost: list[float] = []
        for broker, number in zip(cycle((2, 3)), range(KILLS), strict=False):
            killed.append(self._broker_killed(broker))
            if number % (KILLS // QUORUM_LOSSES) == 0:  # apart, or pages tell that the leader keeps changing
                lost.append(self._quorum_lost())
        return [
            at_most("killed broker: last green page, p95", percentile(killed, 95), 10, "s"),
            Bar("killed broker: last green page, median", round(percentile(killed, 50), 3), "s"),
            at_most("lost quorum: last green page, p95", percentile(lost, 95), 15, "s"),
            Bar("lost quorum: last green page, median", round(percentile(lost, 50), 3), "s"),
            *bars,
            *costs,
        ]

    # --- what happens

    def _broker_killed(self, broker: int) -> float:
        with self._stack.away(f"kafka-{broker}"):
            took = self._until_none_is_green(f"broker {broker} killed", OF_CLUSTER)
        self._green.wait_until_green()
        return took

    def _quorum_lost(self) -> float:
        cluster = self._stack.playground.cluster
        controllers = [node.name for node in cluster.nodes if node not in cluster.brokers]
        with self._stack.away(*controllers[:2]):
            took = self._until_none_is_green("quorum lost", OF_QUORUM)
        self._green.wait_until_green()
        return took

    def _config(self, number: int) -> float:
        value = str(86_423_579 + number)
        self._tools.set_config(TOPIC, retention_ms=value)
        return self._until(lambda: value in self._page(f"/clusters/demo/topics/{TOPIC}/"))

    def _throttle(self, number: int) -> float:
        rate = 5_000_000 + 1_000_000 * number
        self._tools.set_config(2, **{RATE.replace(".", "_"): str(rate)})
        took = self._until(lambda: f"{rate / 1e6:.1f} MB/s" in self._page("/clusters/demo/throttles/"))
        self._tools.delete_config(2, RATE)
        return took

    def _topic(self, number: int) -> float:
        name = f"fresh-{number}"
        self._tools.run("topics", "--create", "--topic", name, "--partitions", "1", "--replication-factor", "3")
        return self._until(lambda: name in self._page("/clusters/demo/topics/"))

    # --- what it costs

    def _costs(self) -> list[Bar]:
        """Processor time per second of the collector, and of a broker with it and without it."""
        with_it = self._processor_share(["worker-collect", "kafka-2", "kafka-3"])
        with self._stack.away("worker-collect"):
            without = self._processor_share(["kafka-2", "kafka-3"])
        self._green.wait_until_green()
        brokers = (sum(with_it[name] - without[name] for name in without)) / len(without)
        return [
            at_most("readings cost a broker", 100 * brokers, 1, "% of a core"),
            Bar("readings cost the collector", round(100 * with_it["worker-collect"], 2), "% of a core"),
        ]

    def _processor_share(self, names: Sequence[str]) -> dict[str, float]:
        processes = {name: psutil.Process(self._stack.pid(name)) for name in names}
        before = {name: _spent(process) for name, process in processes.items()}
        time.sleep(COST_S)
        return {name: (_spent(process) - before[name]) / COST_S for name, process in processes.items()}

    # --- pages

    def _page(self, path: str) -> str:
        with suppress(URLError, TimeoutError):
            return self._browser.get(path)
        return ""

    def _until_none_is_green(self, event: str, paths: Sequence[str]) -> float:
        """Prints as well which pages were the last."""
        last: list[str] = []

        def none() -> bool:
            green = [path for path in paths if self._green.is_green(path)]
            last[:] = green or last
            return not green

        took = self._until(none)
        print(f"  {event}: {took:.1f} s, last green: {', '.join(last)}", flush=True)  # noqa: T201
        return took

    def _until(self, true: Callable[[], bool]) -> float:
        """Seconds until then; ``GIVE_UP_S`` where that does not come."""
        began = time.monotonic()
        while not true() and time.monotonic() - began < GIVE_UP_S:
            time.sleep(PAUSE_S)
        return time.monotonic() - began


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
