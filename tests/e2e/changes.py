"""A change is proposed in a browser, as a person does it: a draft through the wizard's steps, and its submission."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from playwright.sync_api import Page, expect

from tests.e2e.moves import NOTICED_MS

WHY = "The first replica is on the slower disk."


def begin_draft(page: Page, slug: str = "demo") -> str:
    """A draft of an explicit assignment; its number. The page is on the first step."""
    page.goto(f"/changes/new/?cluster={slug}&mode=explicit")
    page.get_by_role("button", name="Next").click()
    page.wait_for_url(re.compile(r"/changes/\d+/draft/what/"))
    return page.url.split("/changes/")[1].split("/")[0]


def plan_draft(page: Page, slug: str = "demo") -> str:
    """A draft that balances replicas, with its plan; its number. The page is on the plan."""
    page.goto(f"/changes/new/?cluster={slug}&mode=balance")
    page.get_by_role("button", name="Next").click()
    page.wait_for_url(re.compile(r"/changes/\d+/draft/what/"))
    page.get_by_role("button", name=re.compile("^Continue")).click()
    page.wait_for_url(re.compile("/draft/limits/"))
    page.get_by_label("Disk limit").fill("100")
    page.get_by_role("button", name=re.compile("^Continue|plan")).click()
    page.wait_for_url(re.compile("/draft/plan/"))
    expect(page.locator("#brokers").or_(page.get_by_text("No partitions change"))).to_be_visible(timeout=NOTICED_MS)
    return page.url.split("/changes/")[1].split("/")[0]


def propose(
    page: Page, topic: str, partition: int, replicas: Sequence[int], slug: str = "demo", throttle: str = ""
) -> str:
    """The number of a change that gives one partition these replicas, waiting for its approval.

    ``throttle`` in MB/s is where it starts, and the lowest that is approved.
    """
    number = begin_draft(page, slug)
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": partition, "replicas": list(replicas)}]}
    page.get_by_label("Pasted JSON").fill(json.dumps(plan))
    page.get_by_role("button", name=re.compile("^Continue")).click()
    page.wait_for_url(re.compile("/draft/limits/"))
    if throttle:
        page.get_by_role("textbox", name="Throttle").fill(throttle)
        page.locator("#advanced > summary").click()
        page.get_by_role("textbox", name="Minimum").fill(throttle)
        page.get_by_label("Disk limit").fill("100")
    page.get_by_role("button", name=re.compile("^Continue|plan")).click()
    page.wait_for_url(re.compile("/draft/plan/"))
    onwards = page.get_by_role("link", name="Continue to reason")
    expect(onwards).to_be_visible(timeout=NOTICED_MS)
    onwards.click()
    page.get_by_label("Reason").fill(WHY)
    page.get_by_role("button", name="Submit for approval").click()
    page.wait_for_url(re.compile(rf"/changes/{number}/$"))
    expect(page.locator("#change-bar")).to_contain_text("Proposed")
    return number
