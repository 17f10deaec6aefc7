"""The browser's side: what the page says of its connection, and what it does with what it gets."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, Locator, Page, Route, WebSocketRoute, expect
from pytest_django import Settings

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, ClusterRole
from kafkadash.live.publisher import publish_panels
from kafkadash.observe.models import ClusterState, CollectorRun, Kind, Outcome, ReassignmentSnapshot
from kafkadash.oncall.services import judge
from tests.live.conftest import Server, publish_raw
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e
REASSIGNMENTS = "/clusters/demo/reassignments/"


@pytest.fixture
def moves(cluster: Cluster) -> list[ReassignmentSnapshot]:
    """Three moves in flight, read a second ago."""
    now = timezone.now()
    for kind in (Kind.METADATA, Kind.REASSIGNMENTS):
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
    show = page.get_by_role("button", name="Order changed, show").first
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
    CollectorRun.objects.filter(cluster=move.cluster, kind=Kind.REASSIGNMENTS).update(succeeded_at=now)
    publish_panels(move.cluster_id, {Kind.REASSIGNMENTS}, 1)


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
    freeze = page.locator(".top-tools").get_by_role("button", name="Freeze page")

    freeze.click()
    # What was on its way when the button was pressed may wait already.
    expect(connection(page)).to_have_text(re.compile(r"^Frozen"))
    expect(page.locator("#connection")).to_have_attribute("data-state", "maintenance")
    now_at(moves[0], 50.0)
    expect(connection(page)).to_have_text("Frozen, 1 waiting")
    now_at(moves[0], 60.0)
    expect(row(page, 1)).to_have_attribute("data-percent", "10.00")
    page.keyboard.press("p")

    expect(row(page, 1)).to_have_attribute("data-percent", "60.00")
    expect(connection(page)).to_have_text("Live")
    expect(freeze).to_have_attribute("aria-pressed", "false")


def test_new_order__with_the_pointer_in_the_panel__is_held_until_asked_for(
    chrome: BrowserContext, server: Server, moves: list[ReassignmentSnapshot]
) -> None:
    page = opened(chrome, server, REASSIGNMENTS)
    row(page, 2).hover()

    now_at(moves[0], 100.0, outcome=Outcome.COMPLETED, ended_at=timezone.now())
    show = page.get_by_role("button", name="Order changed, show")
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
    now_at(moves[0], 100.0, outcome=Outcome.COMPLETED, ended_at=timezone.now())
    expect(page.get_by_role("button", name="Order changed, show")).to_be_visible()

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
    assert any(re.fullmatch(r"Reconnecting(, next try in \d s)?", words) for words in noted), noted
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

    for kind in Kind:
        CollectorRun.objects.create(cluster=cluster, kind=kind, interval_s=30, succeeded_at=timezone.now())
    ClusterState.objects.create(cluster=cluster, brokers=3, offline_partitions=0, under_replicated=0)
    judge(cluster.pk, timezone.now())
    publish_panels(cluster.pk, {Kind.METADATA}, 1)

    expect(page.locator("#status-demo")).to_have_attribute("data-state", "ok")


def test_board__in_a_new_order__is_held_while_the_pointer_is_in_it(
    chrome: BrowserContext, server: Server, cluster: Cluster
) -> None:
    page, show = board_in_a_new_order(chrome, server)
    expect(page.locator("#status-another")).to_have_count(0)
    show.click()

    expect(page.locator("#status-another")).to_be_visible()
    expect(page.get_by_role("button", name="Order changed, show")).to_have_count(0)


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
    publish_panels(cluster.pk, {Kind.METADATA}, 1)
    expect(page.locator(f"#status-{cluster.slug}")).to_contain_text(text)
