"""A chart in a browser: drawn within the content security policy, renewed by itself, still while the page is frozen."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, Locator, Page, expect

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.live.publisher import publish_panels
from kafkadash.observe.models import CollectorRun, Kind
from tests.live.conftest import Server
from tests.quorums import answers, steady
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e
QUORUM = "/clusters/demo/quorum/?range=15m"
# Something else than nothing stands on the canvas, in so many colours.
COLOURS = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) seen.add(data.slice(i, i + 3).join());
  return [...seen].sort();
}"""


@pytest.fixture
def kraft(cluster: Cluster) -> Cluster:
    """Fifteen minutes of a healthy quorum, read just now."""
    Cluster.objects.update(mode=Mode.KRAFT)
    for kind in (Kind.METADATA, Kind.QUORUM):
        CollectorRun.objects.create(cluster=cluster, kind=kind, interval_s=10, succeeded_at=timezone.now())
    collected(cluster)
    return cluster


def collected(cluster: Cluster, late_ms: int = 0) -> None:
    """Voter 103 is so much later than usual in the newest answers; stored, not yet published."""
    now = timezone.now()
    answers(
        cluster,
        now,
        timedelta(minutes=16),
        behind=lambda node, index: steady(node, index) + (late_ms if node == 103 and index > 90 else 0),
    )
    CollectorRun.objects.filter(cluster=cluster).update(succeeded_at=now)


def opened(chrome: BrowserContext, server: Server) -> Page:
    page = chrome.new_page()
    page.goto(f"http://127.0.0.1:{server.port}{QUORUM}")
    expect(page.locator("#connection .connection-words")).to_have_text("Live")
    expect(canvas(page)).to_be_visible()
    return page


def canvas(page: Page) -> Locator:
    return page.locator("#lag-canvas-demo canvas")


def worst(page: Page) -> float:
    """The largest value that the chart was given."""
    spec = json.loads(page.locator("#lag-canvas-demo").get_attribute("data-chart") or "{}")
    return float(max(v for series in spec["series"] for v in series["y"] if v is not None))


def soon(page: Page) -> None:
    """The panel is renewed every second from now on."""
    page.evaluate("document.getElementById('lag-demo').dataset.every = 1")


def test_chart__is_drawn_and_follows_theme_and_width(chrome: BrowserContext, server: Server, kraft: Cluster) -> None:
    page = opened(chrome, server)
    light = canvas(page).evaluate(COLOURS)
    assert len(light) > 5

    page.emulate_media(color_scheme="dark")
    wait_until(lambda: canvas(page).evaluate(COLOURS) != light, "it is drawn in the other theme's colours")

    page.set_viewport_size({"width": 320, "height": 800})
    wait_until(lambda: (canvas(page).bounding_box() or {"width": 999})["width"] <= 320, "it is as narrow as the page")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_chart__is_renewed_in_place_and_keeps_an_open_table(
    chrome: BrowserContext, server: Server, kraft: Cluster
) -> None:
    page = opened(chrome, server)
    assert worst(page) < 1000
    page.get_by_text("Show as table").click()
    page.evaluate("window.before = document.getElementById('lag-canvas-demo')")
    collected(kraft, late_ms=5_000)

    soon(page)

    expect(page.locator("#lag-demo .chart-summary")).to_contain_text("but for voter 103: up to 5.")
    assert worst(page) > 5000
    expect(canvas(page)).to_have_count(1)
    assert page.evaluate("window.before === document.getElementById('lag-canvas-demo')")
    expect(page.locator("#lag-table-demo table")).to_be_visible()


def test_chart__stands_still_while_frozen(chrome: BrowserContext, server: Server, kraft: Cluster) -> None:
    page = opened(chrome, server)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/quorum/lag/" in request.url else None)
    freeze = page.locator(".top-tools").get_by_role("button", name="Freeze page")
    freeze.click()
    collected(kraft, late_ms=5_000)
    soon(page)
    # Two seconds of the page's own clock, in which it would have asked twice.
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 2100))")
    assert asked == []

    freeze.click()
    expect(page.locator("#lag-demo .chart-summary")).to_contain_text("but for voter 103")


def test_nodes__are_pushed(chrome: BrowserContext, server: Server, kraft: Cluster) -> None:
    page = opened(chrome, server)
    expect(page.locator("h1")).to_have_text("The quorum survives 1 more failure.")
    collected(kraft, late_ms=30_000)

    publish_panels(kraft.pk, {Kind.QUORUM}, 1)

    expect(page.locator("h1")).to_have_text("The quorum survives no further failure.")
    expect(page.locator("#nodes-demo")).to_contain_text("Lagging")
