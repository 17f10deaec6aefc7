"""Orphan throttles, reassignments of others and a broker that is to go, mended in a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from kafkadash.kafka.throttles import FOLLOWER_RATE
from tests.e2e.item_changes import approve_by, run_change, submit_proposal
from tests.e2e.moves import NOTICED_MS, REASSIGNMENTS, MoveRow
from tests.e2e.product import Product
from tests.e2e.test_ten_tasks import REFRESHED_MS
from tests.waiting import wait_until

BROKER = 4


@pytest.fixture
def people(
    new_context: Callable[..., BrowserContext], alices_session: dict[str, Any], bobs_session: dict[str, Any]
) -> tuple[Page, Page]:
    return (
        new_context(storage_state=alices_session).new_page(),
        new_context(storage_state=bobs_session).new_page(),
    )


def test_orphan_throttle__is_removed(product: Product, people: tuple[Page, Page]) -> None:
    alice, bob = people
    product.tools.set_config(BROKER, **{FOLLOWER_RATE: "6000000"})
    alice.goto("/clusters/demo/throttles/")
    alice.get_by_role("link", name="Remove orphan throttles").click(timeout=REFRESHED_MS)
    expect(alice.locator("#items tbody tr")).to_contain_text([f"broker {BROKER}"])
    number = submit_proposal(alice, "Its reassignment ended last week.")
    approve_by(number, bob)
    run_change(alice, number, "1 of 1 throttle as planned")
    assert not any(product.tools.throttles(BROKER).values())


def test_reassignment_of_others__is_cancelled(product: Product, people: tuple[Page, Page]) -> None:
    alice, bob = people
    with product.moving(24, 100_000) as move:
        alice.goto(REASSIGNMENTS)
        expect(MoveRow(alice, move.topic).row).to_be_visible(timeout=NOTICED_MS)
        alice.get_by_role("link", name="In flight").click()
        alice.get_by_role("link", name="Cancel reassignments of others").click()
        expect(alice.locator("#items tbody tr")).to_contain_text([move.topic])
        number = submit_proposal(alice, "Nobody knows who began it.")
        approve_by(number, bob)
        run_change(alice, number, "1 of 1 reassignment as planned")
        assert product.tools.moves() == []


def test_broker__is_cordoned_and_rolled_back(product: Product, people: tuple[Page, Page]) -> None:
    alice, bob = people
    alice.goto(f"/clusters/demo/brokers/{BROKER}/decommission/")
    alice.get_by_role("link", name="Cordon broker").click(timeout=REFRESHED_MS)
    number = submit_proposal(alice, "It is replaced next week.")
    approve_by(number, bob)
    run_change(alice, number, "1 of 1 broker as planned")
    wait_until(lambda: all(product.tools.cordoned(BROKER).values()), "Kafka's tool tells it", 30)
    alice.get_by_role("button", name="Propose rollback").click()
    number = submit_proposal(alice, "It stays.")
    approve_by(number, bob)
    run_change(alice, number, "1 of 1 broker as planned")
    wait_until(lambda: not any(product.tools.cordoned(BROKER).values()), "Kafka's tool tells it", 30)
