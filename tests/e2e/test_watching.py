"""Somebody starts a move with Kafka's own tool; everybody who looks sees it come, grow and complete.

Offsets on the page of a group are those of Kafka's own tool.

That its verdict turns with one finding, and back: tests/agreement/test_consumer_groups.py; that an
open page shows it at once: tests/live/test_pages_stay_live.py.

A file of Kafka's tool is verified in a browser: while its move is under way, and after it has ended.

Redis is gone while something moves: the page says so, serves on, and comes back by itself.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.agreement.test_consumer_groups import printed
from tests.e2e.moves import NOTICED_MS, REASSIGNMENTS, MoveRow, opened, was_never_reloaded
from tests.e2e.product import CHECKOUT, Product
from tests.e2e.visitor import Visitor
from tests.waiting import wait_until


def test_move__started_by_kafkas_tool__is_seen_on_three_pages_until_it_completes(
    alice: BrowserContext, product: Product
) -> None:
    board = opened(alice.new_page(), "/")
    overview = opened(alice.new_page(), "/clusters/demo/")
    page = opened(alice.new_page(), REASSIGNMENTS)

    with product.moving(mib=48, throttle=500_000) as move:
        seen = MoveRow(page, move.topic)
        expect(seen.row).to_be_visible(timeout=NOTICED_MS)
        expect(board.locator("#status-demo")).to_contain_text("1 moving")
        expect(in_flight(overview)).to_have_text("1")
        moving = re.compile(r"^Demo: 1 partition moving, .+ % copied$")
        expect(page.get_by_role("heading", level=1)).to_have_text(moving)

        link = seen.row.get_by_role("link")
        link.focus()
        page.locator(".cluster-menu summary").click()
        link.focus()
        percents = [seen.wait_for_more() for _ in range(5)]
        assert all(earlier < later for earlier, later in itertools.pairwise(percents)), percents
        assert max(percents) <= 100.0
        expect(seen.row).to_contain_text(re.compile(r"\d+\.\d %"))
        expect(page.locator(".cluster-menu")).to_have_attribute("open", "")
        expect(link).to_be_focused()

        # The row goes to another group when it ends; under the reader's focus nothing moves before he wants it.
        product.let_go(move)
        page.get_by_role("button", name="Show new order").click(timeout=NOTICED_MS)
        expect(seen.row).to_have_attribute("data-outcome", "completed")
        expect(seen.row).to_contain_text("completed")
        assert seen.percent() == 100.0

    expect(board.locator("#status-demo")).not_to_contain_text("moving", timeout=NOTICED_MS)
    expect(in_flight(overview)).to_have_text("0")
    for looked_at in (board, overview, page):
        expect(looked_at.locator("#connection")).to_have_text("Live")
        assert was_never_reloaded(looked_at)


def test_move__looked_at_by_its_own_page__keeps_its_id_when_it_is_over(alice: BrowserContext, product: Product) -> None:
    page = opened(alice.new_page(), REASSIGNMENTS)
    with product.moving(mib=4, throttle=200_000) as move:
        seen = MoveRow(page, move.topic)
        expect(seen.row).to_be_visible(timeout=NOTICED_MS)
        public_id = seen.row.get_attribute("id")
        seen.row.get_by_role("link").click()
        expect(page).to_have_url(re.compile(rf"{REASSIGNMENTS}{public_id}/$"))
        expect(page.get_by_role("heading", level=1)).to_have_text(
            re.compile(rf"^{move.topic}-0: moving, \d+\.\d % copied$")
        )
    # Kafka's --cancel ended it.
    page.goto(REASSIGNMENTS)
    expect(seen.row).to_have_attribute("data-outcome", "cancelled", timeout=NOTICED_MS)
    page.goto(f"{REASSIGNMENTS}{public_id}/")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{move.topic}-0: cancelled")


def in_flight(page: Page) -> Locator:
    return page.locator("#overview-demo .stat-tile").filter(has_text="In flight").locator("dd").first


GROUPS = "/clusters/demo/groups/"


def test_figures__of_a_group_whose_topic_rests__are_those_of_kafkas_own_tool(
    alice: BrowserContext, product: Product
) -> None:
    page = alice.new_page()
    page.goto(f"{GROUPS}price-import/")
    told = printed(product.tools)["price-import"]
    assert told
    for (topic, number), row in told.items():
        shown = _cells(page, f"lag-{topic}-{number}")
        assert shown[3:6] == [f"{row.committed:,}", f"{row.end:,}", f"{row.lag:,}"]


def test_commits__of_a_group_that_stalls__are_those_of_kafkas_own_tool(alice: BrowserContext, product: Product) -> None:
    page = alice.new_page()
    page.goto(f"{GROUPS}invoice-writer/")
    told = printed(product.tools)["invoice-writer"]
    assert {_cells(page, f"lag-{t}-{n}")[3] for t, n in told} == {f"{row.committed:,}" for row in told.values()}
    assert page.locator("table.group-partitions tbody tr").count() == len(told)


def _cells(page: Page, id_: str) -> list[str]:
    return [text.strip() for text in page.locator(f'[id="{id_}"] > *').all_inner_texts()]


SLOW = 200_000  # bytes per second: the move outlasts the first look


def test_verify__of_the_file_of_a_move__says_what_kafkas_tool_says_until_it_is_done(
    product: Product, new_context: Callable[..., BrowserContext], alices_session: dict[str, Any]
) -> None:
    context = new_context(storage_state=alices_session)
    page = context.new_page()
    with product.moving(mib=8, throttle=SLOW) as move:
        page.goto("/clusters/demo/reassignments/")
        page.get_by_role("link", name="Verify file").click()
        page.get_by_label("JSON file").set_input_files(move.plan)
        page.get_by_role("button", name="Verify file").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("1 in progress", timeout=NOTICED_MS)
        expect(page.locator("#verdicts")).to_contain_text(
            f"Reassignment of partition {move.topic}-0 is still in progress."
        )
        product.let_go(move)
        verify = ["--reassignment-json-file", str(move.plan), "--verify", "--preserve-throttles"]
        done = f"Reassignment of partition {move.topic}-0 is completed."
        wait_until(lambda: done in product.playground.tool("reassign", verify).stdout, "the move is over", 60)
        page.get_by_role("button", name="Verify again").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("1 partition completed", timeout=NOTICED_MS)
        expect(page.locator("#verdicts")).to_contain_text(done)
        visitor = Visitor(context.new_page(), CHECKOUT / "var" / "screens" / "demo")
        visitor.visit(page.url, "verification", shows=[done])
        visitor.visit(f"{page.url}?state=failed", "verification-none")
    assert not visitor.wrong, "\n".join(visitor.wrong)


AWAY_S = 15  # what was read before counts as old from 10 on
# An answer that waited for Redis takes one of its time limits; all of them are longer.
QUICK_S = 2.5
BACK_MS = 60_000
# What stands in one of the colours of the state "ok", but for panels whose own data is still fresh.
GREEN_WORDS = """() => {
  const probe = document.querySelector("main").appendChild(document.createElement("span"));
  const resolved = (token) => { probe.style.color = `var(${token})`; return getComputedStyle(probe).color; };
  const greens = new Set(["--ok-text", "--ok-line", "--ok-fill"].map(resolved));
  probe.remove();
  const colours = (style) => [style.color, style.backgroundColor, style.fill];
  return [...document.querySelectorAll("main *")]
    .filter((element) => element.closest(".panel")?.dataset.stale !== undefined || !element.closest(".panel"))
    .filter((element) => element.checkVisibility() && colours(getComputedStyle(element)).some((c) => greens.has(c)))
    .map((element) => element.textContent.trim() || element.tagName);
}"""


@pytest.mark.long
def test_redis__away__is_said_in_words_and_survived(alice: BrowserContext, product: Product) -> None:
    page = opened(alice.new_page(), REASSIGNMENTS)
    overview = opened(alice.new_page(), "/clusters/demo/")
    pill = overview.locator("#overview-demo .status-pill").first
    # How full this machine's disk is does not matter, nor whether a group of the demo was judged meanwhile.
    well = re.compile("^(OK|Warning)$")
    expect(pill).to_have_text(well)
    with product.moving(mib=32, throttle=500_000) as move:
        seen = MoveRow(page, move.topic)
        expect(seen.row).to_be_visible(timeout=NOTICED_MS)
        before = seen.wait_for_more()
        with product.without_redis():
            gone_at = time.monotonic()
            is_stale(page.locator("#moves-demo"))
            is_stale(overview.locator("#quorum-demo"))
            nothing_old_is_green(page)
            nothing_old_is_green(overview)

            visitor = alice.new_page()
            visitor.goto(REASSIGNMENTS)
            expect(visitor.get_by_role("heading", level=1)).to_have_text(
                re.compile(r"^Demo: 1 partition moving .+ ago$")
            )
            is_stale(visitor.locator("#moves-demo"))
            wait_until(answering_until(alice, gone_at + AWAY_S), f"{AWAY_S} s are over", AWAY_S + 10)

        for looked_at in (page, visitor):
            expect(looked_at.locator("#moves-demo")).not_to_have_attribute("data-stale", "", timeout=BACK_MS)
            expect(looked_at.locator("#connection")).to_have_text("Live")
        after = seen.wait_for_more()
        assert after > before
        assert was_never_reloaded(page)
        expect(pill).to_have_text(well, timeout=BACK_MS)
        assert was_never_reloaded(overview)


def is_stale(panel: Locator) -> None:
    """Old in words, and hatched."""
    expect(panel).to_have_attribute("data-stale", "", timeout=NOTICED_MS)
    stamp = panel.locator(".freshness").first
    expect(stamp).to_have_attribute("data-fresh", "stale")
    expect(stamp).to_have_text(re.compile(r"data .+ old"))
    assert "gradient" in stamp.evaluate("stamp => getComputedStyle(stamp, '::before').backgroundImage")
    assert "gradient" in panel.evaluate("panel => getComputedStyle(panel).backgroundImage")


def nothing_old_is_green(page: Page) -> None:
    wait_until(lambda: page.evaluate(GREEN_WORDS) == [], "nothing old in the page is green", NOTICED_MS / 1000)


def answering_until(alice: BrowserContext, end: float) -> Callable[[], bool]:
    """A condition that asks for a page each time it is looked at; the answer must come quickly and be no error."""

    def asked() -> bool:
        began = time.monotonic()
        for path in (REASSIGNMENTS, "/"):
            answer = alice.request.get(path, timeout=1000 * QUICK_S)
            assert answer.status == 200, f"{path}: {answer.status}"
        return began >= end

    return asked
