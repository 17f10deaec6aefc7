"""A file of Kafka's tool is verified in a browser: while its move is under way, and after it has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import BrowserContext, expect

from tests.e2e.moves import NOTICED_MS
from tests.e2e.product import CHECKOUT, Product
from tests.e2e.visitor import Visitor
from tests.waiting import wait_until

SLOW = 200_000  # bytes per second: the move outlasts the first look


def test_verify__of_the_file_of_a_move__says_what_kafkas_tool_says_until_it_is_done(
    product: Product, new_context: Callable[..., BrowserContext], alices_session: dict[str, Any]
) -> None:
    context = new_context(storage_state=alices_session)
    page = context.new_page()
    with product.moving(mib=8, throttle=SLOW) as move:
        page.goto("/clusters/demo/reassignments/")
        page.get_by_role("link", name="Verify a file").click()
        page.get_by_label("A file of at most 50 MB").set_input_files(move.plan)
        page.get_by_role("button", name="Verify").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("It is in progress.", timeout=NOTICED_MS)
        expect(page.locator("#verdicts")).to_contain_text(
            f"Reassignment of partition {move.topic}-0 is still in progress."
        )
        product.let_go(move)
        verify = ["--reassignment-json-file", str(move.plan), "--verify", "--preserve-throttles"]
        done = f"Reassignment of partition {move.topic}-0 is completed."
        wait_until(lambda: done in product.playground.tool("reassign", verify).stdout, "the move is over", 60)
        page.get_by_role("button", name="Verify again").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("It is done.", timeout=NOTICED_MS)
        expect(page.locator("#verdicts")).to_contain_text(done)
        visitor = Visitor(context.new_page(), CHECKOUT / "var" / "screens" / "demo")
        visitor.visit(page.url, "verification", shows=[done])
        visitor.visit(f"{page.url}?state=failed", "verification-none")
    assert not visitor.wrong, "\n".join(visitor.wrong)
