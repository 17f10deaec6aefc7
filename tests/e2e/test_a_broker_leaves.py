"""A broker that hosts nothing is unregistered in a browser: refused while it runs, stopped, proposed, approved, run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import BrowserContext, expect

from kafkadash.broker_life.errors import BrokerLifeErrorCode
from tests.e2e.item_changes import approve_by, open_when_stored, run_change, submit_proposal
from tests.e2e.product import Product
from tests.e2e.test_ten_tasks import REFRESHED_MS
from tests.waiting import wait_until


def test_broker__is_unregistered(
    product: Product,
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
    bobs_session: dict[str, Any],
) -> None:
    alice, bob = (new_context(storage_state=session).new_page() for session in (alices_session, bobs_session))
    before = product.tools.brokers().keys()
    product.manage("playground", "add-broker", "--rack", "a")
    [added] = product.tools.brokers().keys() - before
    at = f"/clusters/demo/brokers/{added}/unregister/"
    open_when_stored(alice, at)
    # Kafka lists a broker as fenced until its first heartbeats: the rows may be of then.
    wait_until(lambda: alice.goto(at) and alice.locator("#left-out").count(), "it is stored as running", 60)
    expect(alice.locator("#left-out")).to_contain_text(BrokerLifeErrorCode.DOES_NOT_FIT)
    expect(alice.get_by_role("button", name="Submit for approval")).to_have_count(0)

    product.manage("playground", "stop-broker", str(added))
    alice.goto(f"/clusters/demo/brokers/{added}/decommission/")
    alice.get_by_role("link", name="Unregister broker").click(timeout=REFRESHED_MS)
    expect(alice.locator("#items tbody tr")).to_contain_text(["fenced"])
    number = submit_proposal(alice, "Its lease has ended.", confirmed=str(added))
    approve_by(number, bob)
    run_change(alice, number, "1 of 1 broker as planned")
    assert product.tools.brokers().keys() == before
