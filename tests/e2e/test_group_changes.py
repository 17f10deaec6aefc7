"""Offsets of a group are reset in a browser: refused while it is active, planned, approved, run, and rolled back."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from playwright.sync_api import BrowserContext, expect

from kafkadash.devtools.playground.load import LoadTopic, load_topics
from kafkadash.group_changes.errors import GroupErrorCode
from tests.agreement.test_group_changes import committed
from tests.committed import commit_offsets
from tests.e2e.item_changes import approve_by, run_change, submit_proposal
from tests.e2e.product import CHECKOUT, Product
from tests.e2e.test_elections import widen
from tests.e2e.test_ten_tasks import REFRESHED_MS, approve_change
from tests.e2e.visitor import TWO_LOOKS, Visitor
from tests.waiting import wait_until

SCREENS = CHECKOUT / "var" / "screens" / "group-changes"


@pytest.fixture
def member(product: Product) -> Iterator[tuple[str, Consumer]]:
    """A group that is named as its topic, and its member, which has committed offset 1."""
    name = f"e2e-{secrets.token_hex(3)}"
    bootstrap = product.playground.bootstrap
    load_topics(bootstrap, [LoadTopic(name, placement=[(1, 2, 3)], fill_bytes=100_000)])
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name, "enable.auto.commit": False})
    consumer.subscribe([name])
    wait_until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "it has the partition", 30)
    commit_offsets(consumer, [TopicPartition(name, 0, 1)])
    yield name, consumer
    consumer.close()
    product.tools.run("topics", "--delete", "--topic", name)


def test_offsets__from_the_groups_page_to_their_rollback(
    member: tuple[str, Consumer],
    product: Product,
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
    bobs_session: dict[str, Any],
    admins_session: dict[str, Any],
) -> None:
    group, consumer = member
    sessions = (alices_session, bobs_session, admins_session)
    alice, bob, admin = (new_context(storage_state=session).new_page() for session in sessions)
    visitor = Visitor(alice, SCREENS)
    alice.goto(f"/clusters/demo/groups/?q={group}")
    alice.get_by_role("link", name=group).first.click(timeout=REFRESHED_MS)
    alice.get_by_role("link", name="Reset offsets").click()
    alice.get_by_label("Target", exact=True).select_option("earliest")
    alice.get_by_role("button", name="Plan reset").click()
    expect(alice.locator("#wrong")).to_contain_text(GroupErrorCode.NOT_EMPTY_LEFT_OUT)
    visitor.look(alice.url, "refused", TWO_LOOKS)
    widen(alice)
    alice.goto(f"/clusters/demo/groups/{group}/delete-offsets/?topic={group}")
    expect(alice.locator("#left-out")).to_contain_text(GroupErrorCode.SUBSCRIBED_LEFT_OUT)
    alice.goto(f"/clusters/demo/groups/{group}/reset-offsets/")

    consumer.close()
    alice.get_by_role("link", name="Open group").click()
    expect(alice.locator(".page-head .inline-facts")).to_contain_text("Empty", timeout=REFRESHED_MS)
    alice.get_by_role("link", name="Reset offsets").click()
    alice.get_by_label("Target", exact=True).select_option("earliest")
    alice.get_by_role("button", name="Plan reset").click()
    expect(alice.locator("#items tbody tr")).to_contain_text("replays 1 record")
    visitor.look(alice.url, "planned", TWO_LOOKS)
    widen(alice)
    alice.get_by_label("Reason").fill("A bad release wrote garbage.")
    alice.get_by_role("button", name="Submit for approval").click()
    alice.wait_for_url(re.compile(r"/changes/\d+/$"))
    number = alice.url.split("/changes/")[1].split("/")[0]

    approve_change(bob, number)
    run_change(alice, number, "1 of 1 partition as planned")
    visitor.look(alice.url, "done", TWO_LOOKS)
    widen(alice)
    assert committed(product.tools, group) == {0: 0}

    alice.get_by_role("button", name="Propose rollback").click()
    alice.wait_for_url(re.compile(r"/changes/\d+/items/$"))
    expect(alice.locator("#items tbody tr")).to_contain_text("skips 1 record")
    visitor.look(alice.url, "rollback", TWO_LOOKS)
    for page in ("delete", "delete-offsets"):
        alice.goto(f"/clusters/demo/groups/{group}/{page}/")
        visitor.look(alice.url, page, TWO_LOOKS)
    alice.goto("/clusters/demo/delete-groups/")
    visitor.look(alice.url, "delete-groups", TWO_LOOKS)
    assert visitor.wrong == []
    widen(alice)

    alice.goto(f"/clusters/demo/groups/{group}/delete-offsets/")
    alice.locator("#topic").select_option(group)
    alice.get_by_role("button", name="Plan deletion").click()
    expect(alice.locator("#items tbody tr")).to_contain_text([f"{group}-0"])
    number = submit_proposal(alice, "It reads another topic now.", confirmed=group)
    approve_by(number, bob, admin)
    run_change(alice, number, "1 of 1 partition as planned")
    assert committed(product.tools, group) == {}

    def is_read_again() -> bool:
        """Return whether the group was read since its offsets were deleted; the page plans with what is stored."""
        alice.goto(f"/clusters/demo/groups/{group}/delete/")
        return "no committed offsets" in alice.locator("#items").inner_text()

    wait_until(is_read_again, "the group is read again", REFRESHED_MS / 1000)
    number = submit_proposal(alice, "Nobody reads it any more.", confirmed=group)
    approve_by(number, bob)  # without offsets nothing is lost
    run_change(alice, number, "1 of 1 group as planned")
    assert group not in product.tools.run("consumer-groups", "--list").split()
