"""An approved change is started in a browser, followed without a reload, and done while nobody looks.

Its throttle raised, every figure against raw reads, its report and the way back: tests/smoke/two_people.py.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Any

from playwright.sync_api import BrowserContext, Page, expect

from kafkadash.playground.load import Topic, load
from tests.e2e.changes import propose
from tests.e2e.moves import NOTICED_MS, opened, was_never_reloaded
from tests.e2e.product import Product
from tests.waiting import wait_until

MIB = 32
REFRESHED_MS = 60_000
RUN_MS = 120_000
SIZE = re.compile(r"\d MB")
SHOWN = re.compile(r"([\d.]+) %")


def test_a_change__started_by_a_click__is_followed_live_and_goes_on_when_nobody_looks(
    product: Product,
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
    bobs_session: dict[str, Any],
) -> None:
    topic = f"e2e-{secrets.token_hex(3)}"
    load(product.playground.bootstrap, [Topic(topic, placement=[(1, 2)], fill_bytes=MIB * 1024 * 1024)])
    alices = new_context(storage_state=alices_session)
    alice, bob = alices.new_page(), new_context(storage_state=bobs_session).new_page()
    _is_measured(alice, topic)
    number = propose(alice, topic, 0, [3, 2], throttle="2")
    _approve(bob, number)
    bob.close()

    alice.goto(f"/changes/{number}/")
    alice.get_by_role("button", name="Start", exact=True).click()
    expect(alice.locator("#change-bar")).to_contain_text("Executing", timeout=RUN_MS)
    run = opened(alice, f"/changes/{number}/run/")
    first = _next_percent(run, number, None)
    second = _next_percent(run, number, first)
    assert second > first
    expect(run.locator(f"#moves-{number}")).to_contain_text(f"{topic}-0")
    assert was_never_reloaded(run)

    # Whoever looks is not needed: it goes on while nobody has it open.
    alice.close()
    wait_until(lambda: _placed(product, topic) == ((3, 2), 3), "Kafka's own tool says that it is placed", RUN_MS / 1000)
    again = opened(alices.new_page(), f"/changes/{number}/run/")
    expect(again.locator("#change-bar")).to_contain_text("Done", timeout=RUN_MS)
    assert was_never_reloaded(again)


def _placed(product: Product, topic: str) -> tuple[tuple[int, ...], int | None]:
    """Replicas and leader."""
    partition = product.tools.topics("--topic", topic)[topic].partitions[0]
    return partition.replicas, partition.leader


def _is_measured(page: Page, topic: str) -> None:
    """Its size was read as well, which is another refresh: without it nobody could say what share is copied."""

    def size_is_shown() -> bool:
        page.goto(f"/clusters/demo/topics/?q={topic}")
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name=topic))
        return row.count() == 1 and bool(SIZE.search(row.inner_text()))

    wait_until(size_is_shown, f"the size of {topic} is known", REFRESHED_MS / 1000)


def _approve(bob: Page, number: str) -> None:
    bob.goto(f"/changes/{number}/")
    bob.get_by_role("button", name="Approve exactly this").click()
    expect(bob.locator("#change-bar")).to_contain_text("Approved", timeout=NOTICED_MS)


def _percent(page: Page, number: str) -> float | None:
    """Of the bytes of the whole run, as its panel says it; None where that is not known."""
    said = SHOWN.search(page.locator(f"#run-{number} .big-figure").inner_text())
    return float(said[1]) if said else None


def _next_percent(page: Page, number: str, before: float | None) -> float:
    wait_until(lambda: _percent(page, number) not in (None, before), f"the percent after {before} is shown", 60)
    percent = _percent(page, number)
    assert percent is not None
    return percent
