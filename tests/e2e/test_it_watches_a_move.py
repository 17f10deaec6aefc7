"""Somebody starts a move with Kafka's own tool; everybody who looks sees it come, grow and complete."""

from __future__ import annotations

import itertools
import re

from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.e2e.moves import NOTICED_MS, REASSIGNMENTS, MoveRow, opened, was_never_reloaded
from tests.e2e.product import Product


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
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"^1 partition is moving, .+ % copied\.$"))

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
        page.get_by_role("button", name="Order changed, show").click(timeout=NOTICED_MS)
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
            re.compile(rf"^{move.topic}-0 is moving, \d+\.\d % copied\.$")
        )
    # Kafka's --cancel ended it.
    page.goto(REASSIGNMENTS)
    expect(seen.row).to_have_attribute("data-outcome", "cancelled", timeout=NOTICED_MS)
    page.goto(f"{REASSIGNMENTS}{public_id}/")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{move.topic}-0 is not running: cancelled.")


def in_flight(page: Page) -> Locator:
    return page.locator("#overview-demo .stat-tile").filter(has_text="In flight").locator("dd").first
