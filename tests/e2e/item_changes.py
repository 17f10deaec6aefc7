"""Changes that are lists of items, proposed, approved and run in a browser by several people."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.e2e.test_ten_tasks import REFRESHED_MS, RUN_MS
from tests.waiting import wait_until


def open_when_stored(page: Page, address: str) -> None:
    """Open the page about something that has just come to be."""

    def is_found() -> bool:
        answer = page.goto(address)
        return answer is not None and answer.ok

    wait_until(is_found, f"{address} is found", 60)


def submit_proposal(page: Page, why: str, confirmed: str = "") -> str:
    """Submit the shown proposal, once it was refused without a reason; return the number of the change."""
    page.get_by_role("button", name="Submit for approval").click()
    expect(page.locator("#why-error")).to_be_visible()
    page.get_by_label("Reason").fill(why)
    if confirmed:
        page.get_by_label("Confirmation").fill(confirmed)
    page.get_by_role("button", name="Submit for approval").click()
    page.wait_for_url(re.compile(r"/changes/\d+/$"))
    return page.url.split("/changes/")[1].split("/")[0]


def approve_by(number: str, *approvers: Page) -> None:
    for page in approvers:
        page.goto(f"/changes/{number}/")
        page.get_by_role("button", name="Approve change").click()
    expect(approvers[-1].locator("#change-bar")).to_contain_text("Approved")


def run_change(page: Page, number: str, ended: str) -> None:
    page.goto(f"/changes/{number}/")
    page.locator("#change-bar").get_by_role("link", name="Start change…").click(timeout=REFRESHED_MS)
    page.get_by_role("button", name="Start change", exact=True).click()
    expect(page.locator("#ended")).to_contain_text(ended, timeout=RUN_MS)
