"""Pause freezes the page, counts what waits, and resumes with the newest."""

from __future__ import annotations

import re

from playwright.sync_api import BrowserContext, expect

from tests.e2e.moves import NOTICED_MS, REASSIGNMENTS, MoveRow, opened
from tests.e2e.product import Product


def test_pause__freezes_counts_and_resumes(alice: BrowserContext, product: Product) -> None:
    page = opened(alice.new_page(), REASSIGNMENTS)
    running = opened(alice.new_page(), REASSIGNMENTS)
    connection, pause = page.locator("#connection"), page.locator(".top-tools [data-action=pause]")
    with product.moving(mib=24, throttle=500_000) as move:
        seen, elsewhere = MoveRow(page, move.topic), MoveRow(running, move.topic)
        expect(seen.row).to_be_visible(timeout=NOTICED_MS)
        seen.wait_for_more()

        pause.click()
        frozen = seen.percent()
        expect(pause).to_have_attribute("aria-pressed", "true")
        expect(connection).to_have_text(re.compile(r"^Paused, \d+ waiting$"), timeout=NOTICED_MS)
        for _ in range(2):
            elsewhere.wait_for_more()
        assert seen.percent() == frozen

        pause.click()
        expect(connection).to_have_text("Live")
        expect(pause).to_have_attribute("aria-pressed", "false")
        now = seen.percent()
        assert now is not None
        assert frozen is not None
        assert now > frozen
