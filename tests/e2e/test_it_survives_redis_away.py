"""Redis is gone while something moves: the page says so, serves on, and comes back by itself."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.e2e.moves import NOTICED_MS, REASSIGNMENTS, MoveRow, opened, was_never_reloaded
from tests.e2e.product import Product
from tests.waiting import wait_until

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
                re.compile(r"^Cannot tell what moves in Demo: 1 partition moved .+ ago\.$")
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
