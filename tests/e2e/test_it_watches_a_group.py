"""A consumer is stopped and comes back: whoever looks at its group sees the verdict turn, one finding, and both go."""

from __future__ import annotations

from playwright.sync_api import BrowserContext, Page, expect

from kafkadash.playground.consumers import Behaviour, Consumers, Reading
from tests.agreement.test_consumer_groups_tool import printed
from tests.e2e.moves import opened, was_never_reloaded
from tests.e2e.product import Product

GROUP = "e2e-reader"
GROUPS = "/clusters/demo/groups/"
# Ten samples that are like the verdict, and a second look that finds the same.
JUDGED_MS = 120_000


def test_consumer__that_is_stopped__turns_the_verdict_with_one_finding_and_turns_it_back(
    alice: BrowserContext, product: Product
) -> None:
    with Consumers(product.playground.bootstrap, [Reading(GROUP, Behaviour.HEALTHY)], rate=1) as consumers:
        listed = opened(alice.new_page(), f"{GROUPS}?q={GROUP}")
        row = listed.locator("table.groups tbody tr")
        expect(row).to_contain_text("OK", timeout=JUDGED_MS)
        page = opened(alice.new_page(), f"{GROUPS}{GROUP}/")
        pill, finding = (
            page.locator("#verdict-demo .status-pill"),
            page.get_by_role("link", name="Finding, acknowledge it"),
        )
        expect(pill).to_have_text("OK")
        expect(finding).to_have_count(0)

        consumers.behave(GROUP, Behaviour.STOPPED)
        expect(pill).to_have_text("Stop", timeout=JUDGED_MS)
        expect(page.get_by_role("heading", level=2).first).to_contain_text("The group has no members while")
        expect(finding).to_be_visible(timeout=JUDGED_MS)
        expect(row).to_contain_text("Stop")
        board = alice.new_page()
        board.goto("/?kind=consumer-lag")
        expect(board.locator(".finding-row").filter(has_text=GROUP)).to_have_count(1)

        consumers.behave(GROUP, Behaviour.HEALTHY)
        expect(pill).to_have_text("OK", timeout=JUDGED_MS)
        expect(finding).to_have_count(0, timeout=JUDGED_MS)
        expect(row).to_contain_text("OK")
        for looked_at in (listed, page):
            expect(looked_at.locator("#connection")).to_have_text("Live")
            assert was_never_reloaded(looked_at)


def test_figures__of_a_group_whose_topic_rests__are_those_of_kafkas_own_tool(
    alice: BrowserContext, product: Product
) -> None:
    page = alice.new_page()
    page.goto(f"{GROUPS}price-import/")
    told = printed(product.tools)["price-import"]
    assert told
    for (topic, number), row in told.items():
        shown = _cells(page, f"lag-{topic}-{number}")
        assert shown[3:6] == [f"{row.committed:,}", f"{row.end:,}", f"{row.lag:,}"]


def test_commits__of_a_group_that_stalls__are_those_of_kafkas_own_tool(alice: BrowserContext, product: Product) -> None:
    page = alice.new_page()
    page.goto(f"{GROUPS}invoice-writer/")
    told = printed(product.tools)["invoice-writer"]
    assert {_cells(page, f"lag-{t}-{n}")[3] for t, n in told} == {f"{row.committed:,}" for row in told.values()}
    assert page.locator("table.group-partitions tbody tr").count() == len(told)


def _cells(page: Page, id_: str) -> list[str]:
    return [text.strip() for text in page.locator(f'[id="{id_}"] > *').all_inner_texts()]
