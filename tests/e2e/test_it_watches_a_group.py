"""Offsets on the page of a group are those of Kafka's own tool.

That its verdict turns with one finding, and back: tests/agreement/test_lag_findings.py; that an open page shows it at
once: tests/live/test_lists_stay_live.py.
"""

from __future__ import annotations

from playwright.sync_api import BrowserContext, Page

from tests.agreement.test_consumer_groups_tool import printed
from tests.e2e.product import Product

GROUPS = "/clusters/demo/groups/"


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
