"""A config is edited in a browser: refused, planned, approved, run and verified; and its rollback is proposed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import BrowserContext, expect

from kafkadash.configs.errors import ConfigErrorCode
from tests.e2e.item_changes import run_change
from tests.e2e.product import CHECKOUT, Product
from tests.e2e.test_elections import widen
from tests.e2e.test_ten_tasks import approve_change
from tests.e2e.visitor import TWO_LOOKS, Visitor

TOPIC = "orders"
SCREENS = CHECKOUT / "var" / "screens" / "configs"


def test_config__from_the_topics_page_to_its_rollback(
    product: Product,
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
    bobs_session: dict[str, Any],
) -> None:
    alice, bob = (new_context(storage_state=session).new_page() for session in (alices_session, bobs_session))
    visitor = Visitor(alice, SCREENS)
    alice.goto(f"/clusters/demo/topics/{TOPIC}/")
    alice.get_by_role("link", name="Edit configs").click()
    alice.locator("#config-filter").fill("flush")
    expect(alice.get_by_label("preallocate")).to_be_hidden()
    alice.get_by_label("flush.ms", exact=True).fill("soon")
    alice.get_by_role("button", name="Plan change").click()
    expect(alice.locator("#wrong")).to_contain_text(ConfigErrorCode.VALUE_OF_TYPE)
    visitor.look(alice.url, "refused", TWO_LOOKS)
    widen(alice)
    alice.get_by_label("flush.ms", exact=True).fill("60000")
    alice.get_by_role("button", name="Plan change").click()
    alice.wait_for_url(re.compile(r"/changes/\d+/items/$"))
    number = alice.url.split("/changes/")[1].split("/")[0]
    expect(alice.locator("#items tbody tr")).to_contain_text(["60000"])
    visitor.look(alice.url, "draft", TWO_LOOKS)
    widen(alice)
    alice.get_by_label("Reason").fill("Its broker loses power often.")
    alice.get_by_role("button", name="Submit for approval").click()
    alice.wait_for_url(re.compile(r"/changes/\d+/$"))

    approve_change(bob, number)
    run_change(alice, number, "1 of 1 config as planned")
    entity = ("--entity-type", "topics", "--entity-name", TOPIC)
    assert "flush.ms=60000" in product.tools.run("configs", "--describe", *entity)
    alice.get_by_role("button", name="Propose rollback").click()
    alice.wait_for_url(re.compile(r"/changes/\d+/items/$"))
    expect(alice.locator("#items tbody tr")).to_contain_text(["removed"])
    assert visitor.wrong == []
    product.tools.run("configs", "--alter", *entity, "--delete-config", "flush.ms")
