"""A broker is added to real Kafka and given its share by two people; Kafka's own tool counts what the pages count.

Among the last (``LAST`` of conftest.py): a broker that came, and that others gave replicas to, stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.moves import NOTICED_MS
from tests.e2e.product import Product
from tests.waiting import wait_until

RACK, ADDED, BESIDE = "b", 5, 2  # the new broker stands in the rack of broker 2
REFRESHED_MS = 120_000
PLANNED_MS = 120_000
RUN_MS = 240_000
WHY = "Broker 2 is alone in its rack and fills up."
AFTER = re.compile(r"([\d,]+) → ([\d,]+)")

Counts = dict[int, int]


@pytest.mark.long
def test_a_broker_that_was_added__gets_its_share_as_proposed_approved_and_run__and_kafka_counts_the_same(
    product: Product,
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
    bobs_session: dict[str, Any],
) -> None:
    alice = new_context(storage_state=alices_session).new_page()
    bob = new_context(storage_state=bobs_session).new_page()
    # What other tests moved is led by whom they left it to, until Kafka gives it back in the middle of this.
    product.tools.run("leader-election", "--election-type", "preferred", "--all-topic-partitions")
    product.manage("playground", "add-broker", "--rack", RACK)
    assert {broker: rack for broker, (_, _, rack, _) in product.tools.brokers().items()}[ADDED] == RACK
    alice.goto("/clusters/demo/brokers/")
    expect(_cell(alice, ADDED, "replicas")).to_have_text("0", timeout=REFRESHED_MS)
    # The new broker registers first, and is fenced until it has caught up.
    expect(alice.locator(f"#broker-{ADDED} .status-mark[data-state=ok]").first).to_be_visible(timeout=REFRESHED_MS)
    # Topics that other tests deleted may still be listed.
    wait_until(lambda: _is_listed_as_counted(alice, product), "the page counts what Kafka's tool counts", 60)
    replicas, leaders = _counted(product)
    assert ADDED not in replicas
    for broker, count in leaders.items():
        expect(_cell(alice, broker, "leaders")).to_have_text(str(count), timeout=REFRESHED_MS)

    number = _proposed(alice)
    promised = _promised(alice, "replicas"), _promised(alice, "leaders")
    assert promised[0][0] == {**replicas, ADDED: 0}
    assert promised[1][0] == {**leaders, ADDED: 0}
    _approve(bob, number)
    assert (_promised(bob, "replicas"), _promised(bob, "leaders")) == promised

    alice.goto(f"/changes/{number}/")
    alice.get_by_role("button", name="Start change", exact=True).click()
    expect(alice.locator("#change-bar")).to_contain_text("Done", timeout=RUN_MS)

    after = promised[0][1], promised[1][1]
    wait_until(lambda: _counted(product) == after, f"Kafka's own tool counts {after} replicas and leaders", 60)
    assert after[0][ADDED] > 0
    assert abs(after[0][ADDED] - after[0][BESIDE]) <= 1
    assert sum(after[0].values()) == sum(replicas.values())
    alice.goto("/clusters/demo/brokers/")
    for broker, count in after[0].items():
        expect(_cell(alice, broker, "replicas")).to_have_text(str(count), timeout=REFRESHED_MS)
    for broker, count in after[1].items():
        expect(_cell(alice, broker, "leaders")).to_have_text(str(count), timeout=REFRESHED_MS)


def _proposed(alice: Page) -> str:
    """The number of the change, which waits for its approval; its page is open."""
    alice.goto("/changes/new/?cluster=demo")
    alice.get_by_label("Add brokers").check()
    alice.get_by_role("button", name="Next").click()
    alice.locator(f"#add-{ADDED}").check()
    alice.get_by_role("button", name="Continue to limits").click()
    alice.get_by_label("Disk limit").fill("100")  # how full this machine's disk is does not matter
    alice.get_by_role("button", name="Continue to plan").click()
    onwards = alice.get_by_role("link", name="Continue to reason")
    expect(onwards).to_be_visible(timeout=PLANNED_MS)
    onwards.click()
    alice.get_by_label("Reason").fill(WHY)
    alice.get_by_role("button", name="Submit for approval").click()
    expect(alice.locator("#change-bar")).to_contain_text("0 of 1 approval")
    return alice.url.split("/changes/")[1].split("/")[0]


def _approve(bob: Page, number: str) -> None:
    bob.goto(f"/changes/{number}/")
    bob.get_by_role("button", name="Approve change").click()
    expect(bob.locator("#change-bar")).to_contain_text("Approved", timeout=NOTICED_MS)


def _counted(product: Product) -> tuple[Counts, Counts]:
    """Replicas and leaders of each broker that has any, as Kafka's own tool lists them."""
    partitions = [row for topic in product.tools.topics().values() for row in topic.partitions.values()]
    replicas = Counter(broker for row in partitions for broker in row.replicas)
    return dict(replicas), dict(Counter(row.leader for row in partitions if row.leader is not None))


def _promised(page: Page, what: str) -> tuple[Counts, Counts]:
    """Of each broker now and after, from the table of the review page."""
    now, after = {}, {}
    for broker in range(1, ADDED + 1):
        said = AFTER.search(page.locator(f"#bars-{broker} [data-label={what}] .bar-figures").inner_text())
        assert said is not None
        now[broker], after[broker] = (int(figure.replace(",", "")) for figure in said.groups())
    return now, after


def _is_listed_as_counted(page: Page, product: Product) -> bool:
    page.goto("/clusters/demo/brokers/")
    return _listed(page) == {**_counted(product)[0], ADDED: 0}


def _listed(page: Page) -> Counts:
    """Replicas of each broker, from the list of brokers."""
    return {broker: int(_cell(page, broker, "replicas").inner_text()) for broker in range(1, ADDED + 1)}


def _cell(page: Page, broker: int, what: str) -> Any:
    return page.locator(f"#broker-{broker} td[data-label={what}]")
