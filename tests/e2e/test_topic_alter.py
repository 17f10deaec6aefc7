"""A topic is altered in a browser: refused, planned as steps, submitted, approved together, run and verified."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect

from kafkadash.topic_alter.errors import AlterErrorCode
from tests.e2e.product import CHECKOUT, Product
from tests.e2e.test_elections import widen
from tests.e2e.test_ten_tasks import REFRESHED_MS, RUN_MS
from tests.e2e.visitor import Visitor
from tests.waiting import wait_until

SCREENS = CHECKOUT / "var" / "screens" / "topic-alter"


@pytest.mark.long
def test_topic__gets_replicas_partitions_and_a_config_in_steps(
    product: Product,
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
    bobs_session: dict[str, Any],
) -> None:
    alice, bob = (new_context(storage_state=session).new_page() for session in (alices_session, bobs_session))
    visitor = Visitor(alice, SCREENS)
    topic = f"e2e-{secrets.token_hex(3)}"
    product.tools.run("topics", "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "1")

    def is_read() -> bool:
        """Configs of a new topic are read later than the topic."""
        response = alice.goto(f"/clusters/demo/topics/{topic}/configs/")
        return response is not None and response.ok and not alice.locator('[data-empty="unread"]').count()

    wait_until(is_read, "the topic and its configs are read", 60)
    alice.goto(f"/clusters/demo/topics/{topic}/")
    alice.get_by_role("link", name="Alter topic").click()
    alice.get_by_label("Partitions").fill("1")
    alice.get_by_role("button", name="Plan change").click()
    expect(alice.locator("#id_partitions-error")).to_contain_text(AlterErrorCode.FEWER_PARTITIONS)
    visitor.look(alice.url, "refused")
    widen(alice)
    alice.get_by_label("Partitions").fill("4")
    alice.get_by_label("Replication factor").fill("2")
    alice.get_by_label("Configs to set").fill("min.insync.replicas=2")
    alice.get_by_role("button", name="Plan change").click()
    alice.wait_for_url(re.compile(r"/changes/\d+/steps/$"))
    expect(alice.locator('li[data-step-planned="yes"]')).to_have_count(3, timeout=REFRESHED_MS)
    visitor.look(alice.url, "drafts")
    widen(alice)
    alice.get_by_label("Reason").fill("The billing service needs more consumers.")
    alice.get_by_role("button", name="Submit all 3 steps").click()
    alice.wait_for_url(re.compile(r"/changes/\d+/$"))
    address = alice.url

    bob.goto(address)
    bob.get_by_role("button", name="Approve all 3 steps").click(timeout=REFRESHED_MS)
    expect(bob.locator("main")).to_contain_text("You approved 3 steps.")
    alice.goto(address)
    visitor.look(alice.url, "approved")
    widen(alice)
    alice.locator("#change-bar").get_by_role("link", name="Start change…").click(timeout=REFRESHED_MS)
    alice.get_by_role("button", name="Start change", exact=True).click()
    alice.goto(address)
    expect(alice.locator('#steps li[data-step-state="done"]')).to_have_count(3, timeout=2 * RUN_MS)
    assert visitor.wrong == []
    partitions = product.tools.topics("--topic", topic)[topic].partitions
    assert [len(row.replicas) for row in partitions.values()] == [2, 2, 2, 2]
    configs = product.tools.run("configs", "--describe", "--entity-type", "topics", "--entity-name", topic)
    assert "min.insync.replicas=2" in configs
    product.tools.run("topics", "--delete", "--topic", topic)
