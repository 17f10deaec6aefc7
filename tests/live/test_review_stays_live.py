"""A review that is open: it says what changed, gives way when another content is proposed, and loses nothing typed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.changes.transitions import announce_changes
from kafkadash.clusters.models import Cluster, Role
from kafkadash.core.json_columns import pack_dataclass
from tests.changes.kind_fixtures import parcels
from tests.changes.parcels import PASSED, propose
from tests.live.conftest import Server
from tests.live.test_pages_stay_live import opened

__all__ = ["parcels"]
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("parcels")]
NOTE = "I looked at all of it."


@pytest.fixture
def change(cluster: Cluster, operator: User) -> ChangeRequest:
    now = timezone.now()
    return propose(cluster, operator, checked_at=now, expires_at=now + timedelta(hours=9), submitted_at=now)


@pytest.fixture
def review(
    chrome: BrowserContext, server: Server, change: ChangeRequest, approver: User, client_of: Callable[[User], Client]
) -> Page:
    """Open in the browser of an approver."""
    cookie: Any = client_of(approver).cookies["sessionid"].value
    chrome.clear_cookies()
    chrome.add_cookies([{"name": "sessionid", "value": cookie, "url": f"http://127.0.0.1:{server.port}"}])
    return opened(chrome, server, f"/changes/{change.pk}/")


def propose_another_content(change: ChangeRequest) -> None:
    ChangeRequest.objects.filter(pk=change.pk).update(digest="f" * 64, round=2)
    announce_changes(change.pk)


def test_comment_of_somebody_else__appears_and_what_is_typed_stays(
    review: Page, change: ChangeRequest, operator: User
) -> None:
    review.get_by_label("Comment", exact=True).fill("half a sen")
    review.get_by_label("Reason to decline").fill("half a reason")
    review.get_by_label("Note").fill(NOTE)

    services.comment(change, operator, "Look at the racks.")

    expect(review.locator("#comments")).to_contain_text("Look at the racks.")
    expect(review.locator("#audit")).to_contain_text("olga commented")
    expect(review.get_by_label("Comment", exact=True)).to_have_value("half a sen")
    expect(review.get_by_label("Reason to decline")).to_have_value("half a reason")
    expect(review.get_by_label("Note")).to_have_value(NOTE)
    expect(review.locator("#changed-while-you-read")).to_be_hidden()


def test_another_content__takes_the_form_away_and_keeps_the_note_for_the_next_reading(
    review: Page, change: ChangeRequest
) -> None:
    review.get_by_label("Note").fill(NOTE)

    propose_another_content(change)

    expect(review.locator("#changed-while-you-read")).to_be_visible()
    expect(review.get_by_role("button", name="Approve change")).to_be_hidden()
    assert review.locator("#decide-approve [name=digest]").input_value() == change.digest, "what was read"
    review.get_by_role("link", name="Review again").click()
    expect(review.locator("#changed-while-you-read")).to_be_hidden()
    expect(review.get_by_label("Note")).to_have_value(NOTE)
    assert review.locator("#decide-approve [name=digest]").input_value() == "f" * 64


def test_decision_of_somebody_else__is_shown_at_once_with_what_was_typed(
    review: Page, change: ChangeRequest, make_user: Callable[..., User]
) -> None:
    review.get_by_label("Note").fill(NOTE)

    services.decline(change, make_user("bea", Role.APPROVER), change.digest, "Not on a Friday.")

    expect(review.locator("#change-bar")).to_contain_text("Declined")
    expect(review.locator("#decide")).to_contain_text("Declined: bea")
    expect(review.get_by_role("button", name="Approve change")).to_have_count(0)
    expect(review.locator("#typed-before")).to_contain_text(NOTE)
    expect(review.locator("#announcements")).to_contain_text(f"Change #{change.pk} is now declined.")
    expect(review.locator("#waiting-count")).to_be_hidden()


def test_check_that_fails_meanwhile__is_shown(review: Page, change: ChangeRequest) -> None:
    failed = {**pack_dataclass(PASSED), "result": "failed", "figure": "2 of 3", "problems": ["orders-1 moved."]}
    ChangeRequest.objects.filter(pk=change.pk).update(
        checks=[failed], state=ChangeState.STALE, stale_reasons=["orders-1 moved."]
    )
    announce_changes(change.pk)

    expect(review.locator("#stale")).to_contain_text("orders-1 moved.")
    expect(review.locator("#check-as-planned")).to_contain_text("failed")
    expect(review.locator("#change-bar")).to_contain_text("Stale")


def test_list__is_told_of_what_comes_to_wait(
    chrome: BrowserContext, server: Server, review: Page, change: ChangeRequest, operator: User
) -> None:
    page = opened(chrome, server, "/changes/")
    expect(page.locator("h1")).to_have_text("Changes: 1 waiting for you")

    second = propose(change.cluster, operator)
    announce_changes(second.pk)

    expect(page.locator("h1")).to_have_text("Changes: 2 waiting for you")
    expect(page.locator("#waiting-count")).to_have_text("2")
    expect(page.locator(f"#change-{second.pk}")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"http://127.0.0.1:{server.port}/changes/{second.pk}/")
    page.locator("h1").click()
    page.keyboard.press("g")
    page.keyboard.press("c")
    expect(page).to_have_url(f"http://127.0.0.1:{server.port}/changes/")
