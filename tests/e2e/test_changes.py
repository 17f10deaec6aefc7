"""A drain from the first step of its draft to its approval, by two people in two browsers, on real Kafka.

An approved change is started in a browser, followed without a reload, and done while nobody looks.

Its throttle raised, every figure against raw reads, its report and the way back: tests/smoke/two_people.py.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable
from typing import Any

from playwright.sync_api import BrowserContext, Page, expect

from kafkadash.devtools.playground.load import LoadTopic, load_topics
from tests.e2e.changes import propose
from tests.e2e.moves import NOTICED_MS, opened, was_never_reloaded
from tests.e2e.product import CHECKOUT, DRAINED, Product
from tests.e2e.visitor import Visitor
from tests.waiting import wait_until

# Noticed at the next refresh of the metadata, judged, published; on a busy machine all of it takes longer.
REFRESHED_MS = 120_000
PLANNED_MS = 120_000
WHY = "Broker 4 gets another disk on Tuesday <b>and</b> is emptied first."
CHANGE = re.compile(r"/changes/(\d+)/")


def test_a_drain__is_drafted_left_resumed_approved_by_another__and_turns_stale_when_a_topic_changes(
    product: Product,
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
    bobs_session: dict[str, Any],
) -> None:
    topic = f"e2e-{secrets.token_hex(3)}"
    load_topics(product.playground.bootstrap, [LoadTopic(topic, placement=[(DRAINED, 1, 2)], fill_bytes=2_000_000)])
    alice = new_context(storage_state=alices_session).new_page()
    bob = new_context(storage_state=bobs_session).new_page()
    _sees(alice, topic)

    number = _draft_and_leave(alice)
    _come_back_and_plan(alice, number)
    looker = Visitor(new_context(storage_state=alices_session).new_page(), CHECKOUT / "var" / "screens" / "demo")
    looker.visit(f"/changes/{number}/draft/plan/", "wizard-plan", shows=["Duration by throttle", topic])
    _submit(alice)
    expect(alice.locator("#decide")).to_contain_text("needs the role approver on Demo")
    expect(alice.get_by_role("button", name="Approve change")).to_have_count(0)

    _find_what_waits(bob, number)
    _comment(bob)
    bob.get_by_role("button", name="Approve change").click()
    expect(bob.locator("#change-bar")).to_contain_text("Approved")
    expect(bob.locator("#audit")).to_contain_text("bob")
    expect(alice.locator("#change-bar")).to_contain_text("Approved", timeout=REFRESHED_MS)
    expect(alice.locator("#comments")).to_contain_text("Do the others have room?")

    _reorder_with_kafkas_own_tool(product, topic)
    stale = f"{topic}-0 has replicas 1, {DRAINED}, 2, but the plan starts from {DRAINED}, 1, 2"
    for page in (bob, alice):
        expect(page.locator("#stale")).to_contain_text(stale, timeout=REFRESHED_MS)
    visitor = Visitor(new_context(storage_state=bobs_session).new_page(), CHECKOUT / "var" / "screens" / "demo")
    visitor.visit(f"/changes/{number}/", "change-stale", shows=[stale])

    alice.get_by_role("button", name="Refresh plan").click()
    expect(alice.locator("#change-bar")).to_contain_text("0 of 1 approval", timeout=PLANNED_MS)
    expect(bob.locator("#change-bar")).to_contain_text("0 of 1 approval", timeout=REFRESHED_MS)
    visitor.visit(f"/changes/{number}/", "change-proposed", shows=["Your decision, bob", topic])
    visitor.visit("/changes/", "changes-waiting", shows=[f"#{number}"])

    _decline(bob, number)
    expect(alice.locator("#change-bar")).to_contain_text("Declined", timeout=REFRESHED_MS)
    wrong = looker.wrong + visitor.wrong
    assert not wrong, "\n".join(wrong)


def _sees(page: Page, topic: str) -> None:
    """The product has read the topic: a plan made before that would leave it out."""
    page.goto(f"/clusters/demo/topics/?q={topic}")
    expect(page.get_by_role("link", name=topic)).to_be_visible(timeout=REFRESHED_MS)


def _draft_and_leave(alice: Page) -> str:
    """Up to the second step; returns the number of the draft."""
    alice.goto("/changes/")
    alice.get_by_role("link", name="Propose change").first.click()
    alice.get_by_label("demo").check()
    alice.get_by_label("Drain brokers").check()
    alice.get_by_role("button", name="Next").click()
    alice.locator(f"#drain-{DRAINED}").check()
    alice.get_by_role("button", name="Continue to limits").click()
    expect(alice.get_by_role("heading", name="Throttle")).to_be_visible()
    found = CHANGE.search(alice.url)
    assert found is not None
    alice.goto("/")
    return found[1]


def _come_back_and_plan(alice: Page, number: str) -> None:
    alice.goto("/changes/?show=mine")
    alice.get_by_role("link", name=f"#{number} Drain broker {DRAINED}").click()
    alice.get_by_role("link", name="Continue draft").first.click()
    if not alice.url.endswith("/limits/"):
        alice.get_by_role("button", name="Continue to limits").click()
    alice.get_by_label("Disk limit").fill("100")  # how full this machine's disk is does not matter
    alice.get_by_role("button", name="Continue to plan").click()
    expect(alice.locator("body")).to_contain_text("Continue to reason", timeout=PLANNED_MS)


def _submit(alice: Page) -> None:
    alice.get_by_role("link", name="Continue to reason").click()
    alice.get_by_role("button", name="Submit for approval").click()
    expect(alice.locator("#why-error")).to_be_visible()
    alice.get_by_label("Reason").fill(WHY)
    alice.get_by_role("button", name="Submit for approval").click()
    expect(alice.locator("#change-bar")).to_contain_text("0 of 1 approval")
    expect(alice.locator("#why")).to_contain_text(WHY)


def _find_what_waits(bob: Page, number: str) -> None:
    bob.goto("/")
    bob.get_by_role("navigation", name="Main").get_by_role("link", name="Changes").click()
    expect(bob.get_by_role("heading", level=1)).to_contain_text("waiting for you")
    bob.get_by_role("link", name=f"#{number} Drain broker {DRAINED}").click()
    expect(bob.get_by_role("heading", name="Your decision, bob")).to_be_visible()


def _comment(bob: Page) -> None:
    bob.get_by_role("textbox", name="Comment").fill("Do the others have room?")
    bob.get_by_role("button", name="Add comment", exact=True).click()
    expect(bob.locator("#comments")).to_contain_text("Do the others have room?")


def _reorder_with_kafkas_own_tool(product: Product, topic: str) -> None:
    plan = product.folder / f"{topic}.json"
    row = {"topic": topic, "partition": 0, "replicas": [1, DRAINED, 2]}
    plan.write_text(json.dumps({"version": 1, "partitions": [row]}), encoding="utf-8")
    done = product.playground.tool("reassign", ["--reassignment-json-file", str(plan), "--execute"])
    assert done.returncode == 0, done.stdout + done.stderr


def _decline(bob: Page, number: str) -> None:
    bob.goto(f"/changes/{number}/")
    bob.get_by_role("button", name="Decline change", exact=True).click()
    expect(bob.locator("#decide")).to_contain_text("Enter a reason to decline")
    bob.get_by_label("Reason to decline").fill("After the release, please.")
    bob.get_by_role("button", name="Decline change", exact=True).click()
    expect(bob.locator("#change-bar")).to_contain_text("Declined")
    expect(bob.locator("#decide")).to_contain_text("After the release, please.")


MIB = 32
RUN_REFRESHED_MS = 60_000
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
    load_topics(product.playground.bootstrap, [LoadTopic(topic, placement=[(1, 2)], fill_bytes=MIB * 1024 * 1024)])
    alices = new_context(storage_state=alices_session)
    alice, bob = alices.new_page(), new_context(storage_state=bobs_session).new_page()
    _is_measured(alice, topic)
    number = propose(alice, topic, 0, [3, 2], throttle="2")
    _approve(bob, number)
    bob.close()

    alice.goto(f"/changes/{number}/")
    alice.get_by_role("button", name="Start change", exact=True).click()
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

    wait_until(size_is_shown, f"the size of {topic} is known", RUN_REFRESHED_MS / 1000)


def _approve(bob: Page, number: str) -> None:
    bob.goto(f"/changes/{number}/")
    bob.get_by_role("button", name="Approve change").click()
    expect(bob.locator("#change-bar")).to_contain_text("Approved", timeout=NOTICED_MS)


def _percent(page: Page, number: str) -> float | None:
    """Of the bytes of the whole run, as its panel says it; None where that is not known."""
    said = SHOWN.search(page.locator(f"#run-{number} .big-figure").inner_text())
    return float(said[1]) if said else None


def _next_percent(page: Page, number: str, before: float | None) -> float:
    shown: list[float] = []

    def is_next() -> bool:
        percent = _percent(page, number)
        shown.extend([] if percent in (None, before) else [percent or 0.0])
        return bool(shown)

    wait_until(is_next, f"the percent after {before} is shown", 60)
    return shown[0]
