"""A network that lets no WebSocket through: the page fetches itself again and says so."""

from __future__ import annotations

import re

from playwright.sync_api import BrowserContext, WebSocketRoute, expect

from tests.e2e.moves import NOTICED_MS, REASSIGNMENTS, MoveRow
from tests.e2e.product import Product


def test_polling__websockets_are_blocked__says_so_and_still_updates(alice: BrowserContext, product: Product) -> None:
    page = alice.new_page()
    page.route_web_socket(re.compile(r"/live/"), refuse)
    page.goto(REASSIGNMENTS)
    expect(page.locator("#connection")).to_have_text(re.compile(r"^Live, polling every \d+ s$"), timeout=NOTICED_MS)

    with product.moving(mib=24, throttle=400_000) as move:
        seen = MoveRow(page, move.topic)
        expect(seen.row).to_be_visible(timeout=NOTICED_MS)
        first = seen.percent()
        assert first is not None
        assert seen.wait_for_more() > first
    expect(page.locator("#connection")).to_have_text(re.compile(r"^Live, polling"))


def refuse(socket: WebSocketRoute) -> None:
    socket.close(code=1011, reason="not let through")
