"""What charts cost a browser, and what Lighthouse says of ten pages: the product runs as a demo, with a day of points.

Points of the last day are copies of one shape, written into the demo's database; everything else is real. Lighthouse is
installed from ``tests/bench/lighthouse`` and uses the Chromium that the browser tests use.
"""

from __future__ import annotations

import gzip
import json
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import BrowserContext, BrowserType, sync_playwright

from kafkadash.devtools.embedded.ports import free_port
from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from kafkadash.monitoring.traffic.rules import shard_of
from tests.bench.bars import Bar, at_most
from tests.live.chromium import FLAGS, chromium_path
from tests.smoke.browser import Browser
from tests.smoke.demo_process import DemoProcess

TOPIC, GROUP = "orders", "invoice-writer"
CHART_PAGES = {
    "overview": "/clusters/demo/",
    "topic": f"/clusters/demo/topics/{TOPIC}/?traffic=day",
    "broker": "/clusters/demo/brokers/1/?traffic=day",
    "group": f"/clusters/demo/groups/{GROUP}/?range=day",
    "quorum": "/clusters/demo/quorum/?range=24h",
}
LIGHTHOUSE_PAGES = {
    "board": "/",
    **CHART_PAGES,
    "brokers": "/clusters/demo/brokers/",
    "reassignments": "/clusters/demo/reassignments/",
    "changes": "/changes/",
    "failure simulation": "/clusters/demo/drill/",
}
CHART_KB, PAINT_S, THROTTLE, RUNS = 60, 1.5, 4, 5
_CHART_FILES = ("/vendor/uplot/", "/js/charts")
_LOCK = Path(__file__).parent / "lighthouse"
_INSTALLED = Path(__file__).resolve().parents[2] / "var" / "lighthouse"

# Notes when the first chart is on the screen: two frames after its canvas is in the page.
NOTE_CHART = """
window.chartPaint = null;
new MutationObserver(() => {
  if (window.chartPaint !== null || !document.querySelector("[data-chart] canvas")) return;
  window.chartPaint = 0;
  requestAnimationFrame(() => requestAnimationFrame(() => { window.chartPaint = performance.now(); }));
}).observe(document, { subtree: true, childList: true });
"""
CLUSTER_POINTS = """
INSERT INTO monitoring_clusterpoint (cluster_id, taken_at, records_rate, bytes_rate, partitions, unknown, without_bytes,
    lag, under_replicated, offline, disk_used, disk_total, format, brokers)
SELECT c.id, t, 900 + 400 * sin(n / 90.0), 1e6 * (4 + sin(n / 90.0)), 60, 0, 0, (4000 + 900 * cos(n / 45.0))::bigint,
    0, 0, 2e11 + n * 1e6, 3e11, 1,
    jsonb_build_object('1', jsonb_build_array(300 + 90 * sin(n / 60.0), 2e6, 0, 0, 4e10, 6e10))
FROM clusters_cluster c, generate_series(1, 1439) n, LATERAL (SELECT now() - n * interval '1 minute' AS t) x
"""
TOPIC_POINTS = """
INSERT INTO monitoring_topictraffic (cluster_id, shard, taken_at, format, topics)
SELECT c.id, %s, now() - n * interval '1 minute', 1,
    jsonb_build_object(%s::text, jsonb_build_array(200 + 80 * sin(n / 60.0), 1e6 * (1 + sin(n / 60.0)), 0, 0))
FROM clusters_cluster c, generate_series(1, 1439) n
"""


def measure() -> list[Bar]:
    root = Path(tempfile.mkdtemp(prefix="kafkadash-bench-"))
    root.chmod(0o755)  # started by root, PostgreSQL runs as another user and must reach its files in here
    demo = DemoProcess(root / "var", "--no-move")
    try:
        demo.wait_until_ready()
        with psycopg.connect(EmbeddedPostgres(demo.folder).conninfo()) as database:
            database.execute(CLUSTER_POINTS)
            database.execute(TOPIC_POINTS, [shard_of(TOPIC), TOPIC])
        visitor = Browser(demo.base)
        visitor.sign_in("alice", demo.password("alice"))
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=chromium_path(), args=list(FLAGS))
            bars = [
                bar
                for name, page in CHART_PAGES.items()
                for bar in _measure_charts(chromium, demo, visitor, name, page)
            ]
            chromium.close()
            return [*bars, *_audit_pages(playwright.chromium, demo, visitor, root / "profile")]
    finally:
        demo.end()
        shutil.rmtree(root, ignore_errors=True)


def _measure_charts(chromium: Chromium, demo: DemoProcess, visitor: Browser, name: str, address: str) -> list[Bar]:
    visits = [_visit(chromium, demo, visitor, address) for _ in range(RUNS)]
    paint = statistics.median(paint for paint, _ in visits)
    return [
        at_most(f"{name}: first chart painted, {THROTTLE} × slower processor, median", paint, PAINT_S, "s"),
        at_most(f"{name}: charts transferred", statistics.median(size for _, size in visits), CHART_KB, "kB"),
    ]


def _visit(chromium: Chromium, demo: DemoProcess, visitor: Browser, address: str) -> tuple[float, float]:
    """Return when the first chart is painted, in seconds, and what charts transferred, in kB; with an empty cache."""
    context = chromium.new_context(base_url=demo.base, viewport={"width": 1440, "height": 900})
    _take_session(context, demo, visitor)
    context.add_init_script(NOTE_CHART)
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Emulation.setCPUThrottlingRate", {"rate": THROTTLE})
    addresses: dict[str, str] = {}
    sizes: dict[str, float] = {}
    session.on(
        "Network.responseReceived", lambda event: addresses.update({event["requestId"]: event["response"]["url"]})
    )
    session.on("Network.loadingFinished", lambda event: sizes.update({event["requestId"]: event["encodedDataLength"]}))
    page.goto(address)
    page.wait_for_function("window.chartPaint > 0", timeout=60_000)
    painted = float(page.evaluate("window.chartPaint")) / 1000
    data: str = page.evaluate(
        '[...document.querySelectorAll("[data-chart]")].map((chart) => chart.dataset.chart).join("")'
    )
    files = sum(size for request, size in sizes.items() if any(part in addresses[request] for part in _CHART_FILES))
    context.close()
    return painted, (files + len(gzip.compress(data.encode()))) / 1000


def _take_session(context: BrowserContext, demo: DemoProcess, visitor: Browser) -> None:
    cookies = dict(part.split("=", 1) for part in visitor.cookies.split("; "))
    context.add_cookies([{"name": name, "value": value, "url": demo.base} for name, value in cookies.items()])


def _audit_pages(browser_type: BrowserType, demo: DemoProcess, visitor: Browser, profile: Path) -> list[Bar]:
    """Run Lighthouse on each page: accessibility has to be 100, performance is information.

    It drives a browser that is signed in already: with a cookie as an extra header its own one loads no page.
    """
    _install_lighthouse()
    port, bars = free_port(), []
    signed_in = browser_type.launch_persistent_context(
        profile, executable_path=chromium_path(), args=[*FLAGS, f"--remote-debugging-port={port}"]
    )
    _take_session(signed_in, demo, visitor)
    for name, address in LIGHTHOUSE_PAGES.items():
        scores = _read_scores(demo.base + address, port)
        accessible = round(100 * scores["accessibility"])
        bars += [
            Bar(f"{name}: Lighthouse accessibility", accessible, "points", "= 100", accessible == 100),
            Bar(f"{name}: Lighthouse performance", round(100 * scores["performance"]), "points"),
        ]
    signed_in.close()
    return bars


def _install_lighthouse() -> None:
    """Install what the lock file names. Raises RuntimeError without npm."""
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("no npm here: install Node.js 18 or newer (Debian: apt-get install npm)")
    _INSTALLED.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_LOCK / name, _INSTALLED / name)
    subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=_INSTALLED, check=True)


def _read_scores(url: str, port: int) -> dict[str, float]:
    """Raises RuntimeError where the page shown at the end is another one, such as the sign-in page."""
    with tempfile.TemporaryDirectory() as folder:
        written_to = Path(folder) / "report.json"
        subprocess.run(
            [
                str(_INSTALLED / "node_modules" / ".bin" / "lighthouse"),
                url,
                "--quiet",
                f"--port={port}",
                "--disable-storage-reset",  # which would end the session
                "--only-categories=accessibility,performance",
                "--output=json",
                f"--output-path={written_to}",
            ],
            check=True,
        )
        report: dict[str, Any] = json.loads(written_to.read_text(encoding="utf-8"))
    if report["finalDisplayedUrl"] != url:
        raise RuntimeError(f"{url} led to {report['finalDisplayedUrl']}")
    return {name: float(report["categories"][name]["score"] or 0) for name in ("accessibility", "performance")}
