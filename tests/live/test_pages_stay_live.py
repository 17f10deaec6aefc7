"""The browser's side: what the page says of its connection, and what it does with what it gets.

Lists with more rows than are pushed: a page of them fetches itself when it is told that facts were read.

A chart in a browser: drawn within the content security policy, renewed by itself, still while the page is frozen.

Pages of history in a browser: drawn, accessible in both themes, never wider than a phone, whatever names are.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, FloatRect, Locator, Page, Route, WebSocketRoute, expect
from pytest_django import Settings

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, ClusterMode, ClusterRole
from kafkadash.findings.services import judge
from kafkadash.history.models import SeriesKind
from kafkadash.live.publisher import publish_panels
from kafkadash.maintenance.models import QuietPeriod, QuietPurpose
from kafkadash.monitoring.groups.names import slug_of
from kafkadash.monitoring.models import (
    ClusterState,
    CollectorKind,
    CollectorRun,
    MoveOutcome,
    ReassignmentSnapshot,
    TopicState,
)
from kafkadash.timeline.entries import BUCKETS
from tests.e2e.visitor import Visitor
from tests.factories import BrokerFactory, TopicFactory, judged, watched
from tests.groups import STALLED, WELL, group_seen
from tests.history_rows import beats, group_row, looked, rolled_up, taken_in
from tests.live.conftest import Server, publish_raw
from tests.quorums import answers, steady
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e
REASSIGNMENTS = "/clusters/demo/reassignments/"


@pytest.fixture
def moves(cluster: Cluster) -> list[ReassignmentSnapshot]:
    """Three moves in flight, read a second ago."""
    now = timezone.now()
    for kind in (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS):
        CollectorRun.objects.create(cluster=cluster, kind=kind, interval_s=30, succeeded_at=now - timedelta(seconds=1))
    return [
        ReassignmentSnapshot.objects.create(
            cluster=cluster, public_id=f"r-{n}", topic_id=f"id-{n}", topic=f"orders-{n}", partition=0,
            replicas=[1, 2, 3], adding=[3], removing=[1], target=[2, 3], original=[1, 2],
            started_before=now - timedelta(minutes=10 - n), percent=10.0 * n, sampled_at=now, last_seen_at=now,
            epoch=1, seq=1,
        )
        for n in (1, 2, 3)
    ]  # fmt: skip


def opened(chrome: BrowserContext, server: Server, path: str, words: str = "Live") -> Page:
    page = chrome.new_page()
    page.goto(f"http://127.0.0.1:{server.port}{path}")
    expect(connection(page)).to_have_text(words)
    return page


def board_in_a_new_order(chrome: BrowserContext, server: Server) -> tuple[Page, Locator]:
    """The status board under the pointer while a cluster is added before others, and its button to show that."""
    Cluster.objects.create(name="Zulu", slug="zulu", bootstrap_servers="127.0.0.1:1")
    page = opened(chrome, server, "/")
    page.locator("#status-zulu").hover()
    Cluster.objects.create(name="Another", slug="another", bootstrap_servers="127.0.0.1:1")
    show = page.get_by_role("button", name="Show new order").first
    expect(show).to_be_visible()
    return page, show


def test_what_is_pushed_makes_htmx_do_nothing(
    chrome: BrowserContext, server: Server, cluster: Cluster, settings: Settings
) -> None:
    page = opened(chrome, server, "/")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    acts = 'hx-get="/runbooks/" hx-trigger="load" hx-swap="none"'
    content = (
        f'<article id="status-demo"><p {acts} data-{acts}>pushed</p><hx-partial hx-target="#status-demo">'
        f"<b {acts}>replaced</b></hx-partial><template><i {acts}></i></template></article>"
    )
    config = settings.CHANNEL_LAYERS["default"]["CONFIG"]

    publish_raw("status:demo", content, secret_keys=config["symmetric_encryption_keys"])

    expect(page.locator("#status-demo")).to_have_text("pushed")
    expect(page.locator("#status-demo [hx-get], #status-demo [data-hx-get]")).to_have_count(0)
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert not [url for url in asked if "runbooks" in url]


def connection(page: Page) -> Locator:
    return page.locator("#connection .connection-words")


def row(page: Page, n: int) -> Locator:
    return page.locator(f"#r-{n}")


def now_at(move: ReassignmentSnapshot, percent: float, **fields: object) -> None:
    """The move has come this far, as the collector stores and publishes it."""
    now = timezone.now()
    ReassignmentSnapshot.objects.filter(pk=move.pk).update(percent=percent, sampled_at=now, **fields)
    CollectorRun.objects.filter(cluster=move.cluster, kind=CollectorKind.REASSIGNMENTS).update(succeeded_at=now)
    publish_panels(move.cluster_id, {CollectorKind.REASSIGNMENTS}, 1)


def test_push__morphs_the_row_and_keeps_focus_and_selection(
    chrome: BrowserContext, server: Server, moves: list[ReassignmentSnapshot]
) -> None:
    page = opened(chrome, server, REASSIGNMENTS)
    link = row(page, 2).get_by_role("link")
    link.focus()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")

    now_at(moves[1], 43.21)

    expect(row(page, 2)).to_have_attribute("data-percent", "43.21")
    expect(row(page, 2)).to_contain_text("43.2 %")
    expect(link).to_be_focused()
    assert page.evaluate("getSelection().toString()") == page.locator("h1").inner_text()


def test_freeze__keeps_the_latest_of_each_panel_and_shows_it_when_it_goes_on(
    chrome: BrowserContext, server: Server, moves: list[ReassignmentSnapshot]
) -> None:
    page = opened(chrome, server, REASSIGNMENTS)
    freeze = page.locator(".top-tools [data-action=freeze]")

    expect(freeze).to_have_text("Freeze page")
    freeze.click()
    expect(freeze).to_have_text("Resume updates")
    # What was on its way when the button was pressed may wait already.
    expect(connection(page)).to_have_text(re.compile(r"^Frozen"))
    expect(page.locator("#connection")).to_have_attribute("data-state", "maintenance")
    now_at(moves[0], 50.0)
    expect(connection(page)).to_have_text("Frozen, 1 update waiting")
    now_at(moves[0], 60.0)
    expect(row(page, 1)).to_have_attribute("data-percent", "10.00")
    page.keyboard.press("p")

    expect(row(page, 1)).to_have_attribute("data-percent", "60.00")
    expect(connection(page)).to_have_text("Live")
    expect(freeze).to_have_text("Freeze page")


def test_new_order__with_the_pointer_in_the_panel__is_held_until_asked_for(
    chrome: BrowserContext, server: Server, moves: list[ReassignmentSnapshot]
) -> None:
    page = opened(chrome, server, REASSIGNMENTS)
    row(page, 2).hover()

    now_at(moves[0], 100.0, outcome=MoveOutcome.COMPLETED, ended_at=timezone.now())
    show = page.get_by_role("button", name="Show new order")
    expect(show).to_be_visible()
    assert order(page) == ["r-1", "r-2", "r-3"]
    show.click()

    expect(show).to_have_count(0)
    expect(row(page, 1)).to_have_attribute("data-outcome", "completed")
    assert order(page) == ["r-2", "r-3", "r-1"]


def test_new_order__held_for_the_pointer__is_shown_when_it_leaves_and_the_end_is_announced(
    chrome: BrowserContext, server: Server, moves: list[ReassignmentSnapshot]
) -> None:
    page = opened(chrome, server, REASSIGNMENTS)
    row(page, 2).hover()
    now_at(moves[0], 100.0, outcome=MoveOutcome.COMPLETED, ended_at=timezone.now())
    expect(page.get_by_role("button", name="Show new order")).to_be_visible()

    page.mouse.move(1, 1)

    expect(row(page, 1)).to_have_attribute("data-outcome", "completed")
    expect(page.locator("#announcements")).to_have_text("orders-1-0 completed.")


def test_growing_figures__with_the_pointer_in_the_panel__are_not_held_nor_announced(
    chrome: BrowserContext, server: Server, moves: list[ReassignmentSnapshot]
) -> None:
    page = opened(chrome, server, REASSIGNMENTS)
    row(page, 2).hover()

    now_at(moves[1], 77.7)

    expect(row(page, 2)).to_have_attribute("data-percent", "77.70")
    expect(page.locator("#announcements")).to_be_empty()


def test_data__that_is_not_renewed__becomes_stale_in_words_by_itself(
    chrome: BrowserContext, server: Server, cluster: Cluster, moves: list[ReassignmentSnapshot]
) -> None:
    taken = timezone.now() - timedelta(seconds=10)
    CollectorRun.objects.filter(cluster=cluster).update(succeeded_at=taken, interval_s=150)  # stale from 5 min
    page = chrome.new_page()
    page.clock.install()
    page.goto(f"http://127.0.0.1:{server.port}{REASSIGNMENTS}")
    panel = page.locator("#moves-demo")
    stamp = panel.locator(".panel-head .freshness")
    expect(stamp).to_have_text(re.compile(r"^data \d+ s old$"))
    assert stamp.get_attribute("data-fresh") is None

    page.clock.fast_forward("05:00")
    page.clock.run_for(1000)

    expect(stamp).to_have_attribute("data-fresh", "stale")
    expect(stamp).to_have_text(re.compile(r"^data 5 min \d+ s old$"))
    expect(panel).to_have_attribute("data-stale", "")


def test_browser__whose_clock_is_wrong__shows_ages_by_the_servers(
    chrome: BrowserContext, server: Server, moves: list[ReassignmentSnapshot]
) -> None:
    page = chrome.new_page()
    page.clock.install(time=timezone.now() - timedelta(hours=3))
    page.goto(f"http://127.0.0.1:{server.port}{REASSIGNMENTS}")

    page.clock.run_for(2000)

    expect(page.locator("#moves-demo .panel-head .freshness")).to_have_text(re.compile(r"^data \d+ s old$"))


NOTE_CONNECTION = """() => {
  window.connectionNoted = [];
  const note = () => {
    const shown = document.querySelector("#connection");
    window.connectionNoted.push([shown.dataset.state, shown.querySelector(".connection-words").textContent]);
  };
  const all = { subtree: true, childList: true, characterData: true, attributes: true };
  new MutationObserver(note).observe(document.querySelector("#connection"), all);
}"""


def test_server__that_stops_and_starts__is_waited_for_in_words_and_found_again(
    chrome: BrowserContext, server: Server, moves: list[ReassignmentSnapshot]
) -> None:
    # A machine without a network says so at once: what is meant here is a server that does not answer.
    chrome.add_init_script("Object.defineProperty(Navigator.prototype, 'onLine', { get: () => true })")
    page = opened(chrome, server, REASSIGNMENTS)
    page.evaluate(NOTE_CONNECTION)  # while this machine is busy it may have gone on before anybody looks

    server.stop()
    expect(connection(page)).to_have_text("Offline")
    noted = [words for state, words in page.evaluate("() => window.connectionNoted") if state == "warning"]
    assert any(re.fullmatch(r"Reconnecting(, retry in \d s)?", words) for words in noted), noted
    expect(page.locator("#connection")).to_have_attribute("data-state", "unknown")
    ReassignmentSnapshot.objects.filter(pk=moves[0].pk).update(percent=66.6)  # missed by everybody
    server.start()

    expect(connection(page)).to_have_text("Live", timeout=20_000)
    expect(row(page, 1)).to_have_attribute("data-percent", "66.60")


def test_page__come_back_to_with_the_back_button__is_live_again(
    chrome: BrowserContext, server: Server, moves: list[ReassignmentSnapshot]
) -> None:
    page = opened(chrome, server, REASSIGNMENTS)

    page.goto(f"http://127.0.0.1:{server.port}/")
    page.go_back()

    expect(connection(page)).to_have_text("Live")
    now_at(moves[0], 34.0)
    expect(row(page, 1)).to_have_attribute("data-percent", "34.00")


def test_websockets__that_are_blocked__are_replaced_by_polling_and_taken_up_when_they_work(
    chrome: BrowserContext, server: Server, moves: list[ReassignmentSnapshot]
) -> None:
    page = chrome.new_page()
    blocked = True

    def proxy(route: WebSocketRoute) -> None:
        if blocked:
            route.close(code=1013, reason="blocked")
        else:
            route.connect_to_server()

    page.route_web_socket("**/live/**", proxy)
    page.goto(f"http://127.0.0.1:{server.port}{REASSIGNMENTS}")
    ReassignmentSnapshot.objects.filter(pk=moves[0].pk).update(percent=33.3)

    expect(connection(page)).to_have_text("Live, polling every 10 s")
    expect(row(page, 1)).to_have_attribute("data-percent", "33.30")
    blocked = False

    expect(connection(page)).to_have_text("Live", timeout=20_000)
    now_at(moves[0], 34.0)
    expect(row(page, 1)).to_have_attribute("data-percent", "34.00")


def test_cluster__that_is_added__appears_on_the_board_and_is_live_there(
    chrome: BrowserContext, server: Server, cluster: Cluster
) -> None:
    page = opened(chrome, server, "/")
    expect(page.locator("#status-new")).to_have_count(0)

    added = Cluster.objects.create(name="Newcomer", slug="new", bootstrap_servers="127.0.0.1:1")
    expect(page.locator("#status-new")).to_contain_text("Newcomer")
    expect(page.locator("#live")).to_have_attribute("hx-ws:connect", re.compile("status:new"))
    expect(connection(page)).to_have_text("Live")
    Cluster.objects.filter(pk=added.pk).update(name="Renamed")  # sends no signal
    expect_pushed(page, added, "Renamed")


def test_board__of_one_state__shows_a_cluster_that_gets_into_it(
    chrome: BrowserContext, server: Server, cluster: Cluster
) -> None:
    page = opened(chrome, server, "/?state=ok")
    expect(page.locator("#status-demo")).to_have_count(0)

    for kind in CollectorKind:
        CollectorRun.objects.create(cluster=cluster, kind=kind, interval_s=30, succeeded_at=timezone.now())
    ClusterState.objects.create(cluster=cluster, brokers=3, offline_partitions=0, under_replicated=0)
    judge(cluster.pk, timezone.now())
    publish_panels(cluster.pk, {CollectorKind.METADATA}, 1)

    expect(page.locator("#status-demo")).to_have_attribute("data-state", "ok")


def test_board__in_a_new_order__is_held_while_the_pointer_is_in_it(
    chrome: BrowserContext, server: Server, cluster: Cluster
) -> None:
    page, show = board_in_a_new_order(chrome, server)
    expect(page.locator("#status-another")).to_have_count(0)
    show.click()

    expect(page.locator("#status-another")).to_be_visible()
    expect(page.get_by_role("button", name="Show new order")).to_have_count(0)


def test_maintenance_window__on_a_phone__is_named_in_the_header_of_its_cluster(
    chrome: BrowserContext, server: Server
) -> None:
    now = timezone.now()
    watched("demo", now)
    cluster = watched("other", now, offline_partitions=1)
    judged(cluster, now)
    for each in Cluster.objects.all():
        QuietPeriod.objects.create(
            cluster=each,
            purpose=QuietPurpose.MAINTENANCE,
            broker=3,
            begins_at=now - timedelta(minutes=1),
            ends_at=now + timedelta(hours=1),
            reason="a disk is replaced " * 6,
            author_name="alice",
        )
    page = chrome.new_page()
    page.set_viewport_size({"width": 320, "height": 800})
    page.goto(f"http://127.0.0.1:{server.port}/")
    for window in (page.locator("#status-other .head-window"), page.locator("#status-demo .line-window")):
        expect(window.get_by_role("link")).to_be_visible()
        box = window.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 320
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_board__new_order_asked_for_while_the_page_is_fetched__is_shown(
    chrome: BrowserContext, server: Server, cluster: Cluster
) -> None:
    page, show = board_in_a_new_order(chrome, server)
    page.clock.install()  # so that from here on a hint fetches only when the test lets time pass
    page.clock.pause_at(timezone.now() + timedelta(seconds=1))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    under_way: list[Route] = []
    page.route(page.url, lambda route: route.continue_() if under_way else under_way.append(route))

    def fetch_begins() -> bool:
        """Ask for a fetch; an earlier one, which a hint began, has to end first."""
        page.evaluate("document.dispatchEvent(new Event('kafkadash:stale'))")
        page.clock.run_for(2000)
        return bool(under_way)

    wait_until(fetch_begins, "the page is fetched")
    before = len(asked)
    show.click()
    under_way[0].fulfill(status=304)
    wait_until(lambda: page.title() and len(asked) > before, "the page is fetched once more")

    page.clock.resume()
    expect(page.locator("#status-another")).to_be_visible()


def test_role__taken_away__leads_away_from_the_page(
    chrome: BrowserContext, server: Server, viewer: User, moves: list[ReassignmentSnapshot]
) -> None:
    page = opened(chrome, server, REASSIGNMENTS)

    ClusterRole.objects.get(user=viewer).delete()

    expect(page.locator("#moves-demo")).to_have_count(0)
    expect(page.locator("body")).not_to_contain_text("orders-1")


def test_password_changed_elsewhere__leads_to_the_sign_in_page(
    chrome: BrowserContext, server: Server, viewer: User, moves: list[ReassignmentSnapshot]
) -> None:
    page = opened(chrome, server, REASSIGNMENTS)

    viewer.set_password("another long pass phrase")
    viewer.save(update_fields=["password"])

    expect(page).to_have_url(re.compile("/login/"))


def order(page: Page) -> list[str]:
    return page.locator("#moves-demo tr[data-outcome]").evaluate_all("rows => rows.map(row => row.id)")  # type: ignore[no-any-return]


def expect_pushed(page: Page, cluster: Cluster, text: str) -> None:
    publish_panels(cluster.pk, {CollectorKind.METADATA}, 1)
    expect(page.locator(f"#status-{cluster.slug}")).to_contain_text(text)


GROUPS = "/clusters/demo/groups/"
TOPICS = "/clusters/demo/topics/"


@pytest.fixture
def topics(cluster: Cluster) -> Cluster:
    """Two topics, read a second ago."""
    now = timezone.now()
    for kind in (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS, CollectorKind.CONFIGS):
        CollectorRun.objects.create(cluster=cluster, kind=kind, interval_s=30, succeeded_at=now - timedelta(seconds=1))
    for name in ("clicks", "orders"):
        TopicFactory.create(cluster=cluster, name=name, topic_id=name, changed_at=now)
    return cluster


def test_hint__with_a_half_typed_filter__shows_what_is_new_and_keeps_what_was_typed(
    chrome: BrowserContext,
    server: Server,
    topics: Cluster,
) -> None:
    page = opened(chrome, server, TOPICS)
    page.keyboard.press("/")
    field = page.get_by_label("Part of the name")
    expect(field).to_be_focused()
    page.keyboard.type("ord")

    TopicState.objects.filter(name="orders").update(under_min_isr=1)
    TopicFactory.create(cluster=topics, name="payments", topic_id="payments", changed_at=timezone.now())
    publish_panels(topics.pk, {CollectorKind.METADATA}, 1)

    expect(page.locator("#topic-payments")).to_be_visible()
    expect(page.locator("#topic-orders")).to_contain_text("1 under min-ISR")
    expect(page.locator("h1")).to_have_text(re.compile(": 1 of 3 topics under min-ISR$"))
    expect(field).to_be_focused()
    expect(field).to_have_value("ord")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"http://127.0.0.1:{server.port}{TOPICS}?q=ord&internal=")
    expect(page.locator("#topic-clicks")).to_have_count(0)
    expect(page.locator("#topic-orders")).to_be_visible()


def test_rows_of_a_list__are_walked_by_keys_and_opened(
    chrome: BrowserContext,
    server: Server,
    topics: Cluster,
) -> None:
    page = opened(chrome, server, TOPICS)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("orders: 1 of 1 partition in sync")


def test_group__whose_verdict_turns__is_shown_on_its_page_and_in_the_list(
    chrome: BrowserContext, server: Server, topics: Cluster
) -> None:
    now = timezone.now()
    CollectorRun.objects.create(cluster=topics, kind=CollectorKind.GROUPS, interval_s=30, succeeded_at=now)
    well = group_seen(topics, "reader", {("orders", 0): WELL}, members={"c": {"orders": [0]}}, now=now)
    listed, page = opened(chrome, server, GROUPS), opened(chrome, server, f"{GROUPS}reader/")
    row, pill = listed.locator("table.groups tbody tr"), page.locator("#verdict-demo .status-pill")
    expect(row).to_contain_text("OK")
    expect(pill).to_have_text("OK")

    well.delete()
    group_seen(topics, "reader", {("orders", 0): STALLED}, now=now)
    publish_panels(topics.pk, {CollectorKind.GROUPS}, 1)

    expect(row).to_contain_text("No active members")
    expect(pill).to_have_text("No active members")


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
    Cluster.objects.update(mode=ClusterMode.KRAFT)
    for kind in (CollectorKind.METADATA, CollectorKind.QUORUM):
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


def opened_quorum(chrome: BrowserContext, server: Server) -> Page:
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
    page = opened_quorum(chrome, server)
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
    page = opened_quorum(chrome, server)
    assert worst(page) < 1000
    page.get_by_text("Show as table").click()
    page.evaluate("window.before = document.getElementById('lag-canvas-demo')")
    collected(kraft, late_ms=5_000)

    soon(page)

    expect(page.locator("#lag-demo .chart-summary")).to_contain_text("except voter 103: up to 5.")
    assert worst(page) > 5000
    expect(canvas(page)).to_have_count(1)
    assert page.evaluate("window.before === document.getElementById('lag-canvas-demo')")
    expect(page.locator("#lag-table-demo table")).to_be_visible()


def test_chart__stands_still_while_frozen(chrome: BrowserContext, server: Server, kraft: Cluster) -> None:
    page = opened_quorum(chrome, server)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/quorum/lag/" in request.url else None)
    freeze = page.locator(".top-tools [data-action=freeze]")
    freeze.click()
    collected(kraft, late_ms=5_000)
    soon(page)
    # Two seconds of the page's own clock, in which it would have asked twice.
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 2100))")
    assert asked == []

    freeze.click()
    expect(page.locator("#lag-demo .chart-summary")).to_contain_text("except voter 103")


def test_nodes__are_pushed(chrome: BrowserContext, server: Server, kraft: Cluster) -> None:
    page = opened_quorum(chrome, server)
    expect(page.locator("h1")).to_have_text("Quorum tolerates 1 more failure")
    collected(kraft, late_ms=30_000)

    publish_panels(kraft.pk, {CollectorKind.QUORUM}, 1)

    expect(page.locator("h1")).to_have_text("Quorum tolerates 0 more failures")
    expect(page.locator("#nodes-demo")).to_contain_text("Lagging")


DAY, NEXT_DAY = datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC)


def test_timeline__dragged_across__leads_to_a_permalink_of_that_part(
    chrome: BrowserContext, server: Server, cluster: Cluster
) -> None:
    page = chrome.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/clusters/demo/timeline/?from={DAY:%F}&to={DAY:%F}&kind=findings")
    drag(page, 0.9, pixels=2)  # as a click is: it leads nowhere
    width = chart_area(page)["width"]

    drag(page, 0.25, pixels=0.5 * width)
    page.wait_for_url("**/timeline/?*T*")
    begin, end = span_of(page)
    pixel = (NEXT_DAY - DAY) / width
    assert abs(begin - DAY - timedelta(hours=6)) <= 2 * pixel
    assert abs(end - DAY - timedelta(hours=18)) <= 2 * pixel
    assert "kind=findings" in page.url

    whole = page.url
    drag(page, 48.25 / BUCKETS, pixels=0.5 * chart_area(page)["width"] / BUCKETS)
    page.wait_for_url(lambda url: url != whole)
    step, second = (end - begin) / BUCKETS, timedelta(seconds=1)
    inner_begin, inner_end = span_of(page)
    assert abs(inner_begin - begin - 48 * step) <= second, "it begins with the interval that was touched"
    assert abs(inner_end - begin - 49 * step) <= second


def drag(page: Page, begin: float, pixels: float) -> None:
    """Drag across the chart of the timeline, beginning at this part of its width."""
    area = chart_area(page)
    at, height = area["x"] + begin * area["width"], area["y"] + area["height"] / 2
    page.mouse.move(at, height)
    page.mouse.down()
    page.mouse.move(at + pixels, height, steps=2)
    page.mouse.up()


def chart_area(page: Page) -> FloatRect:
    area = page.locator("#changes-canvas .u-over").bounding_box()
    assert area is not None
    return area


def span_of(page: Page) -> tuple[datetime, datetime]:
    query = parse_qs(urlsplit(page.url).query)
    return datetime.fromisoformat(query["from"][0]), datetime.fromisoformat(query["to"][0])


LONG = f"{'long.name-' * 24}249.chars"
PAGES = {
    "group-history": f"groups/{slug_of(LONG)}/history/?range=week",
    "topic-size-history": f"topics/{LONG}/history/?range=week",
    "broker-bytes-history": "brokers/1/history/?range=year",
    "node-lag-history": "quorum/history/?range=week",
}


@pytest.fixture
def kept(cluster: Cluster) -> Cluster:
    """Some hours of two days and some days of a year, with gaps, of a group, a topic, a broker and two nodes."""
    Cluster.objects.update(mode=ClusterMode.KRAFT)
    now = timezone.now()
    for kind in CollectorKind:
        CollectorRun.objects.create(cluster=cluster, kind=kind, interval_s=30, succeeded_at=now)
    group_row(cluster, LONG, now)
    TopicFactory.create(cluster=cluster, name=LONG, topic_id="long")
    BrokerFactory.create(cluster=cluster, broker_id=1)
    looked(now, beats(now))
    taken_in(now)
    hour = now.replace(minute=0, second=0, microsecond=0)
    for n in (1, 2, 3, 20, 21, 40):
        figures: dict[str, Any] = {"p50": 10 * n, "p95": 400 * n, "most": 1000 * n}
        at = hour - timedelta(hours=n)
        for topic in (LONG, "short"):
            rolled_up(cluster, at, grain=3600, group=LONG, topic=topic, **figures)
        rolled_up(cluster, at, grain=3600, kind=SeriesKind.TOPIC, topic=LONG, other=10**9 * n, **figures)
        for node in (1, 2):
            known = {"kind": SeriesKind.QUORUM, "node": node, "other": 40, "changes": n % 2, **figures}
            rolled_up(cluster, at, grain=3600, **known)
        day = hour.replace(hour=0) - timedelta(days=7 * n)
        rolled_up(cluster, day, grain=86_400, kind=SeriesKind.BROKER, node=1, other=30 + n, **figures)
    return cluster


def test_history__of_long_names_and_with_gaps__has_nothing_wrong_in_any_look(
    chrome: BrowserContext, server: Server, kept: Cluster, tmp_path: Path
) -> None:
    visitor = Visitor(chrome.new_page(), tmp_path)
    for chart, path in PAGES.items():
        visitor.visit(f"http://127.0.0.1:{server.port}/clusters/{kept.slug}/{path}", chart)
        canvas = visitor.page.locator(f"#{chart}-canvas canvas")
        expect(canvas).to_be_visible()
        assert len(canvas.evaluate(COLOURS)) > 1, f"nothing is drawn on {chart}"
        visitor.page.locator(f"#{chart}-table summary").click()
        expect(visitor.page.locator(f"#{chart}-table table")).to_be_visible()
        visitor.look(path, f"{chart}-table")
    assert not visitor.wrong, "\n".join(visitor.wrong)
