"""Topics are created in a browser: refused, planned, approved, run and verified; and their deletion is proposed."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Any

from playwright.sync_api import BrowserContext, Page, expect

from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.topics.errors import TopicErrorCode
from tests.e2e.product import CHECKOUT, Product
from tests.e2e.test_elections import widen
from tests.e2e.test_ten_tasks import REFRESHED_MS, RUN_MS, approve_change
from tests.e2e.visitor import Visitor

SCREENS = CHECKOUT / "var" / "screens" / "topics"


def test_topics__from_the_list_to_their_end(
    product: Product,
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
    bobs_session: dict[str, Any],
) -> None:
    alice, bob = (new_context(storage_state=session).new_page() for session in (alices_session, bobs_session))
    visitor = Visitor(alice, SCREENS)
    names = [f"e2e-{secrets.token_hex(3)}-{part}" for part in ("a", "b")]
    alice.goto("/clusters/demo/topics/")
    alice.get_by_role("link", name="Create topics").click()
    alice.get_by_label("Names").fill("orders\n" + names[0])
    alice.get_by_label("Partitions").fill("3")
    alice.get_by_role("button", name="Plan topics").click()
    expect(alice.locator("#id_names-error")).to_contain_text(TopicErrorCode.NAME_TAKEN)
    visitor.look(alice.url, "refused")
    widen(alice)
    alice.get_by_label("Names").fill("\n".join(names))
    alice.get_by_label("Configs").fill("retention.ms=3600000")
    alice.get_by_role("button", name="Plan topics").click()
    alice.wait_for_url(re.compile(r"/changes/\d+/items/$"))
    number = alice.url.split("/changes/")[1].split("/")[0]
    expect(alice.locator("#items tbody tr")).to_have_count(2)
    visitor.look(alice.url, "draft")
    widen(alice)
    planned = alice.locator("#items tbody").inner_text()
    alice.get_by_label("Reason").fill("The billing service starts.")
    alice.get_by_role("button", name="Submit for approval").click()
    alice.wait_for_url(re.compile(r"/changes/\d+/$"))

    approve_change(bob, number)
    alice.goto(f"/changes/{number}/")
    alice.locator("#change-bar").get_by_role("link", name="Start change…").click(timeout=REFRESHED_MS)
    alice.get_by_role("button", name="Start change", exact=True).click()
    expect(alice.locator("#ended")).to_contain_text("2 of 2 topics as planned", timeout=RUN_MS)
    visitor.look(alice.url, "done")
    assert visitor.wrong == []
    told = product.tools.topics()
    for name in names:
        replicas = [p.replicas for _, p in sorted(told[name].partitions.items())]
        assert ",".join(":".join(map(str, row)) for row in replicas) in planned
    delete_in_browser(alice, names[0], visitor)
    assert visitor.wrong == []
    product.tools.run("topics", "--delete", "--topic", "|".join(names))


def delete_in_browser(alice: Page, topic: str, visitor: Visitor) -> None:
    """Propose the deletion of a topic; another name is refused, and what was typed stays."""
    widen(alice)
    alice.goto(f"/clusters/demo/topics/?q={topic}")
    alice.get_by_role("link", name=topic).click(timeout=REFRESHED_MS)
    alice.get_by_role("link", name="Delete topic").click()
    alice.get_by_label("Reason").fill("The billing service has gone.")
    alice.get_by_label("Confirmation").fill("orders")
    alice.get_by_role("button", name="Submit for approval").click()
    expect(alice.locator("#confirm-error")).to_contain_text(ShortRunErrorCode.NOT_CONFIRMED)
    visitor.look(alice.url, "delete")
    widen(alice)
    alice.get_by_label("Confirmation").fill(topic)
    alice.get_by_role("button", name="Submit for approval").click()
    alice.wait_for_url(re.compile(r"/changes/\d+/$"))
    expect(alice.locator("#change-bar")).to_contain_text("Proposed")
