"""How soon a committed refresh is on the screen while 500 others watch the same, for five minutes.

The whole product runs (`manage.py demo`), one slow move keeps the reassignments collector at its quickest pace. 499
sockets in a process of their own and one Chromium watch its panel over TCP. A refresh is known by when its data was
taken: this process sees its row appear in the database (polled every 5 ms, so up to that much too late, which is too
good for us by as much), and the browser notes when it has painted an age that counts from that time.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import psutil
import psycopg
from playwright.sync_api import Page, expect, sync_playwright

from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from tests.bench.bars import Bar, at_most, percentile
from tests.live.chromium import FLAGS, chromium_path
from tests.smoke.browser import Browser
from tests.smoke.demo_process import DemoProcess, command

WATCH_S = 300.0
SOCKETS = 500
KEY = "reassignments:demo"
PAGE = "/clusters/demo/reassignments/"
TOPIC = "bench-pixel"
THROTTLE = 200_000  # bytes per second: a move that outlasts the measurement

# Notes, after two frames, when a new time stands in the panel's age; 0.5 ms is the clock's step in a browser.
NOTE_PAINTS = """
() => {
  window.paints = {};
  const panel = () => document.querySelector("#moves-demo .freshness time");
  const look = () => {
    const taken = panel()?.getAttribute("datetime");
    if (!taken || taken in window.paints) return;
    window.paints[taken] = null;
    requestAnimationFrame(() => requestAnimationFrame(() => {
      window.paints[taken] = performance.timeOrigin + performance.now();
    }));
  };
  new MutationObserver(look).observe(document.getElementById("main"),
    { subtree: true, childList: true, attributes: true, characterData: true });
}
"""


def measure() -> list[Bar]:
    root = Path(tempfile.mkdtemp(prefix="kafkadash-bench-"))
    root.chmod(0o755)  # started by root, PostgreSQL runs as another user and must reach its files in here
    demo = DemoProcess(root / "var", "--no-move", environment={"LIVE_SOCKETS_PER_USER": str(SOCKETS)})
    try:
        demo.wait_until_ready()
        _start_slow_move(root, demo)
        with ExitStack() as stack:
            return _watched(demo, stack)
    finally:
        demo.end()
        shutil.rmtree(root, ignore_errors=True)


def _start_slow_move(root: Path, demo: DemoProcess) -> None:
    playground = KafkaPlayground(demo.folder / "playground", detached=True)
    load_topics(playground.bootstrap, [LoadTopic(TOPIC, placement=[[1, 2]], fill_bytes=2 * THROTTLE * round(WATCH_S))])
    plan = root / "plan.json"
    move = {"topic": TOPIC, "partition": 0, "replicas": [3, 2]}
    plan.write_text(json.dumps({"version": 1, "partitions": [move]}), encoding="utf-8")
    options = ("--reassignment-json-file", str(plan), "--execute", "--throttle", str(THROTTLE))
    command(demo.folder, "playground", "tool", "reassign", "--", *options)


def _watched(demo: DemoProcess, stack: ExitStack) -> list[Bar]:
    browser = Browser(demo.base)
    browser.sign_in("alice", demo.password("alice"))
    web = _web_process(demo)
    before = web.memory_info().rss
    sockets = stack.enter_context(_Crowd(demo.base, browser.cookies, SOCKETS - 1))
    page = _open_page(demo, browser, stack)
    connected = web.memory_info().rss
    commits = stack.enter_context(_Commits(EmbeddedPostgres(demo.folder).conninfo()))
    began, peak = time.monotonic(), connected
    while (passed := time.monotonic() - began) < WATCH_S:
        page.wait_for_timeout(min(1000.0, 1000 * (WATCH_S - passed)))
        peak = max(peak, web.memory_info().rss)
    page.wait_for_timeout(3000)  # the last commits are on their way
    paints = {_seconds(taken): painted / 1000 for taken, painted in page.evaluate("window.paints").items() if painted}
    commits.stop()
    frames, lost = sockets.result()
    delays = [paints[taken] - seen for taken, seen in commits.seen.items() if taken in paints]
    return [
        at_most("commit to pixel, p95", percentile(delays, 95), 1.0, "s"),
        Bar("commit to pixel, median", round(percentile(delays, 50), 3), "s"),
        Bar("commit to pixel, worst", round(max(delays), 3), "s"),
        at_most("refreshes never painted", len(commits.seen) - len(delays), 0.05 * len(commits.seen), "refreshes"),
        Bar("refreshes", len(commits.seen), "refreshes"),
        at_most("sockets lost", lost, 0, "sockets"),
        Bar("frames that the other sockets got", frames, "frames"),
        at_most("memory growth of web", (peak - before) / 1e6, 50, "MB"),
        Bar("of it while all sockets were connecting", round((connected - before) / 1e6, 1), "MB"),
    ]


def _web_process(demo: DemoProcess) -> psutil.Process:
    """The process that listens where the pages are."""
    port = int(demo.base.rsplit(":", 1)[1])
    for process in psutil.Process(demo.pid).children(recursive=True):
        for connection in process.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                return process
    raise RuntimeError(f"nobody listens on {port}")


def _open_page(demo: DemoProcess, browser: Browser, stack: ExitStack) -> Page:
    playwright = stack.enter_context(sync_playwright())
    chromium = playwright.chromium.launch(executable_path=chromium_path(), args=list(FLAGS))
    stack.callback(chromium.close)
    context = chromium.new_context(base_url=demo.base, viewport={"width": 1440, "height": 900})
    cookies = dict(part.split("=", 1) for part in browser.cookies.split("; "))
    context.add_cookies([{"name": name, "value": value, "url": demo.base} for name, value in cookies.items()])
    page = context.new_page()
    page.goto(PAGE)
    expect(page.locator("#connection")).to_have_text("Live", timeout=60_000)
    page.evaluate(NOTE_PAINTS)
    return page


def _seconds(iso: str) -> float:
    """As it stands in a page: to the millisecond."""
    return round(datetime.fromisoformat(iso).timestamp(), 3)


class _Commits:
    """When each refresh became visible to others: time its data was taken → time we saw its row."""

    def __init__(self, conninfo: str) -> None:
        self.seen: dict[float, float] = {}
        self._conninfo = conninfo
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> _Commits:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(10)

    def _poll(self) -> None:
        newest = (
            "SELECT id, taken_at FROM monitoring_collection WHERE kind = 'reassignments' AND ok AND id > %s ORDER BY id"
        )
        with psycopg.connect(self._conninfo, autocommit=True) as database:
            row = database.execute("SELECT coalesce(max(id), 0) FROM monitoring_collection").fetchone()
            last = row[0] if row else 0
            while not self._stop.wait(0.005):
                for number, taken_at in database.execute(newest, (last,)).fetchall():
                    last = number
                    self.seen[_seconds(taken_at.astimezone(UTC).isoformat(timespec="milliseconds"))] = time.time()


class _Crowd:
    """The other sockets, in a process of their own."""

    def __init__(self, base: str, cookies: str, number: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.crowd", base, KEY, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin
        self._process.stdin.write(cookies + "\n")
        self._process.stdin.flush()

    def __enter__(self) -> _Crowd:
        """When all are connected. Raises RuntimeError when they are not."""
        assert self._process.stdout
        if self._process.stdout.readline().strip() != "connected":
            raise RuntimeError("not all sockets could connect")
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def result(self) -> tuple[int, int]:
        """Ends them: frames got by all together, sockets that were closed on the way."""
        out, _ = self._process.communicate("stop\n", timeout=60)
        frames, lost = json.loads(out)
        return frames, lost
