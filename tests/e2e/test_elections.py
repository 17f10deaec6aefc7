"""Preferred leaders are elected in a browser: found on the topic's page, proposed, approved, run and verified.

The pages on this way are looked at in both themes, wide and narrow.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from kafkadash.devtools.embedded.ports import LOOPBACK
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from tests.agreement.test_elections import write
from tests.e2e.item_changes import approve_by, open_when_stored, run_change, submit_proposal
from tests.e2e.product import CHECKOUT, Product
from tests.e2e.test_ten_tasks import REFRESHED_MS, approve_change
from tests.e2e.visitor import Visitor
from tests.frozen_nodes import alive_by, freeze_nodes, thaw_nodes
from tests.waiting import wait_until

ELECT = "Elect preferred leaders"
LEADER, FOLLOWER = 4, 3
SCREENS = CHECKOUT / "var" / "screens" / "elections"


@pytest.fixture
def misled_topic(product: Product, tmp_path: Path) -> Iterator[str]:
    """A topic that broker 1 leads although broker 2 is its first replica: the replicas were reordered."""
    name = f"e2e-{secrets.token_hex(3)}"
    load_topics(product.playground.bootstrap, [LoadTopic(name, placement=[(1, 2, 3)])])
    plan = tmp_path / "reorder.json"
    row = {"topic": name, "partition": 0, "replicas": [2, 1, 3]}
    plan.write_text(json.dumps({"version": 1, "partitions": [row]}), encoding="utf-8")
    product.tools.run("reassign", "--reassignment-json-file", str(plan), "--execute")
    yield name
    product.tools.run("topics", "--delete", "--topic", name)


@pytest.fixture
def lone_topic(product: Product) -> Iterator[str]:
    """A topic on brokers 4 and 3."""
    name = f"e2e-{secrets.token_hex(3)}"
    load_topics(product.playground.bootstrap, [LoadTopic(name, placement=[(LEADER, FOLLOWER)])])
    yield name
    wait_until(product.tools.in_sync, "every replica is in sync again", 60)
    product.tools.run("topics", "--delete", "--topic", name)


def widen(page: Page) -> None:
    """A visitor leaves a page as narrow as a phone."""
    page.set_viewport_size({"width": 1440, "height": 900})


def test_election__from_the_topics_page_to_its_end(
    misled_topic: str,
    product: Product,
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
    bobs_session: dict[str, Any],
) -> None:
    alice, bob = (new_context(storage_state=session).new_page() for session in (alices_session, bobs_session))
    alice.goto(f"/clusters/demo/topics/?q={misled_topic}")
    alice.get_by_role("link", name=misled_topic).click(timeout=REFRESHED_MS)
    expect(alice.get_by_role("link", name=ELECT)).to_be_visible(timeout=REFRESHED_MS)
    alice.get_by_label("elect 2").check()
    alice.get_by_role("button", name="Elect chosen leaders").click()

    expect(alice.locator("#items tbody tr")).to_have_text(re.compile(rf"{misled_topic}-0\s*broker 1\s*broker 2"))
    alice.get_by_role("button", name="Submit for approval").click()
    expect(alice.locator("#why-error")).to_be_visible()
    visitor = Visitor(alice, SCREENS)
    visitor.visit(alice.url, "proposal")
    widen(alice)
    alice.get_by_role("button", name="Save draft").click()
    alice.wait_for_url(re.compile(r"/changes/\d+/items/$"))
    number = alice.url.split("/changes/")[1].split("/")[0]
    visitor.visit(alice.url, "draft")
    widen(alice)
    alice.get_by_label("Reason").fill("Its replicas were reordered.")
    alice.get_by_role("button", name="Submit for approval").click()
    alice.wait_for_url(re.compile(r"/changes/\d+/$"))
    visitor.visit(alice.url, "proposed")
    visitor.visit(f"/changes/{number}/items/cancel/", "cancel")
    widen(alice)

    approve_change(bob, number)
    run_change(alice, number, "1 of 1 partition as planned")
    expect(alice.locator("#items [data-item=done]")).to_have_count(1)
    visitor.visit(f"/changes/{number}/", "done")
    assert visitor.wrong == []
    assert product.tools.topics("--topic", misled_topic)[misled_topic].partitions[0].leader == 2


@pytest.mark.long
def test_unclean_election__is_approved_by_two_people(
    lone_topic: str,
    product: Product,
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
    bobs_session: dict[str, Any],
    admins_session: dict[str, Any],
) -> None:
    sessions = (alices_session, bobs_session, admins_session)
    alice, bob, admin = (new_context(storage_state=session).new_page() for session in sessions)
    at = f"/clusters/demo/elections/unclean/?topic={lone_topic}"
    open_when_stored(alice, at)
    expect(alice.locator("#items [data-empty=none]")).to_be_visible()
    expect(alice.get_by_role("button", name="Submit for approval")).to_have_count(0)
    with leader_alone_then_away(product, lone_topic):
        wait_until(lambda: alice.goto(at) and alice.locator("#items tbody tr").count() == 1, "nobody leads it", 60)
        expect(alice.locator("#items tbody tr")).to_contain_text([f"broker {FOLLOWER}"])
        number = submit_proposal(alice, "Its disks are lost.", confirmed=f"{lone_topic}-0")
        approve_by(number, bob, admin)
        run_change(alice, number, "1 of 1 partition as planned")
        assert product.tools.topics("--topic", lone_topic)[lone_topic].partitions[0].leader == FOLLOWER
        expect(alice.get_by_role("button", name="Propose rollback")).to_have_count(0)


@contextmanager
def leader_alone_then_away(product: Product, topic: str) -> Iterator[None]:
    """The leader has five records that the follower lacks, and stands still."""
    playground, others = product.playground, f"{LOOPBACK}:{product.playground.cluster.brokers[0].broker_port}"
    try:
        freeze_nodes(playground, FOLLOWER)
        wait_until(lambda: FOLLOWER not in alive_by(others), f"broker {FOLLOWER} is fenced", 60)
        with mock.patch.object(KafkaPlayground, "bootstrap", others):
            write(playground, (topic,), 5)
        freeze_nodes(playground, LEADER)
        wait_until(lambda: LEADER not in alive_by(others), f"broker {LEADER} is fenced", 60)
        thaw_nodes(playground, FOLLOWER)
        wait_until(lambda: FOLLOWER in alive_by(others), f"broker {FOLLOWER} is back", 60)
        with mock.patch.object(KafkaPlayground, "bootstrap", others):
            yield
    finally:
        thaw_nodes(playground, FOLLOWER, LEADER)
