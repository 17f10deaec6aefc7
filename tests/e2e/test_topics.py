"""Topics are created, enlarged and deleted in a browser: refused, planned, approved, run and verified."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Any

from playwright.sync_api import BrowserContext, Page, expect

from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.topics.errors import TopicErrorCode
from tests.e2e.item_changes import approve_by, run_change
from tests.e2e.product import CHECKOUT, Product
from tests.e2e.test_elections import widen
from tests.e2e.test_ten_tasks import REFRESHED_MS, approve_change
from tests.e2e.visitor import Visitor

SCREENS = CHECKOUT / "var" / "screens" / "topics"


def test_topics__from_the_list_to_their_end(
    product: Product,
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
    bobs_session: dict[str, Any],
    admins_session: dict[str, Any],
) -> None:
    sessions = (alices_session, bobs_session, admins_session)
    alice, bob, admin = (new_context(storage_state=session).new_page() for session in sessions)
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
    run_change(alice, number, "2 of 2 topics as planned")
    visitor.look(alice.url, "done")
    assert visitor.wrong == []
    told = product.tools.topics()
    for name in names:
        replicas = [p.replicas for _, p in sorted(told[name].partitions.items())]
        assert ",".join(":".join(map(str, row)) for row in replicas) in planned
    widen(alice)
    planned, number = enlarge_in_browser(alice, names[0])
    approve_change(bob, number)
    run_change(alice, number, "1 of 1 topic as planned")
    partitions = product.tools.topics("--topic", names[0])[names[0]].partitions
    added = [":".join(map(str, partitions[place].replicas)) for place in (3, 4)]
    assert f"replicas {','.join(added)}" in planned
    number = delete_in_browser(alice, names[0], visitor)
    assert visitor.wrong == []
    approve_by(number, bob, admin)  # records that are gone are a high risk
    run_change(alice, number, "1 of 1 topic as planned")
    assert names[0] not in product.tools.topics()
    product.tools.run("topics", "--delete", "--topic", names[1])


def enlarge_in_browser(alice: Page, topic: str) -> tuple[str, str]:
    """Propose two more partitions of a topic of three; fewer are refused. Return what is planned, and the number."""
    alice.goto(f"/clusters/demo/topics/?q={topic}")
    alice.get_by_role("link", name=topic).click(timeout=REFRESHED_MS)
    alice.get_by_role("link", name="Add partitions").click()
    alice.get_by_label("Number of partitions").fill("2")
    alice.get_by_role("button", name="Plan partitions").click()
    expect(alice.locator("#count-error")).to_contain_text(TopicErrorCode.COUNT_WRONG)
    alice.get_by_label("Number of partitions").fill("5")
    alice.get_by_role("button", name="Plan partitions").click()
    planned = alice.locator("#items tbody").inner_text()
    alice.get_by_label("Reason").fill("More records come.")
    alice.get_by_role("button", name="Submit for approval").click()
    alice.wait_for_url(re.compile(r"/changes/\d+/$"))
    return planned, alice.url.split("/changes/")[1].split("/")[0]


def delete_in_browser(alice: Page, topic: str, visitor: Visitor) -> str:
    """Propose the deletion of a topic; another name is refused, and what was typed stays. Return the number."""
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
    return alice.url.split("/changes/")[1].split("/")[0]
