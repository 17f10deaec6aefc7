"""A form that was refused comes back on its page in the browser: live as before, with its error and what was typed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import BrowserContext, Locator, Page, expect

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.changes.transitions import announce_changes
from kafkadash.clusters.models import Cluster
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution
from tests.changes.kind_fixtures import parcels
from tests.changes.parcels import propose
from tests.execution.stored_runs import requested, running
from tests.live.conftest import Server
from tests.live.test_pages_stay_live import opened
from tests.live.test_run_stays_live import stepped

__all__ = ["parcels"]
pytestmark = pytest.mark.e2e


@pytest.fixture
def browser_of(
    chrome: BrowserContext, server: Server, client_of: Callable[[User], Client]
) -> Callable[[User], BrowserContext]:
    def signed_in(user: User) -> BrowserContext:
        cookie: Any = client_of(user).cookies["sessionid"].value
        chrome.clear_cookies()
        chrome.add_cookies([{"name": "sessionid", "value": cookie, "url": f"http://127.0.0.1:{server.port}"}])
        return chrome

    return signed_in


@pytest.fixture
def run(cluster: Cluster, operator: User) -> Execution:
    return running(requested(cluster, operator), {RowState.MOVING: 1, RowState.PENDING: 3}, now=timezone.now())


@pytest.fixture
def run_page(run: Execution, browser_of: Callable[[User], BrowserContext], server: Server, operator: User) -> Page:
    return opened(browser_of(operator), server, f"/changes/{run.request_id}/run/")


@pytest.fixture
def review(cluster: Cluster, operator: User) -> ChangeRequest:
    now = timezone.now()
    return propose(cluster, operator, checked_at=now, expires_at=now + timedelta(hours=9), submitted_at=now)


def in_sight(element: Locator) -> bool:
    seen: bool = element.evaluate(
        "e => { const at = e.getBoundingClientRect(); return at.top >= 0 && at.bottom <= innerHeight; }"
    )
    return seen


def shows_what_happens_next(page: Page, run: Execution) -> None:
    """What a step stored is pushed, and what becomes of the request is fetched."""
    stepped(run, 61.6)
    expect(page.locator(f"#run-{run.request_id} .big-figure b")).to_have_text("61.6 %")
    ChangeRequest.objects.filter(pk=run.request_id).update(state=ChangeState.PAUSED)
    announce_changes(run.request_id)
    expect(page.locator("#change-bar")).to_contain_text("Paused")


def test_refused_throttle__keeps_the_run_live_with_error_and_text(run_page: Page, run: Execution) -> None:
    run_page.locator("#rate").fill("500")
    run_page.locator("#throttle-reason").fill("Quiet night.")
    run_page.locator("#throttle-form button").click()
    expect(run_page.locator("#rate-error")).to_contain_text("needs a new approval")
    expect(run_page.locator("#rate")).to_be_focused()
    assert run_page.url.endswith(f"/changes/{run.request_id}/run/")

    shows_what_happens_next(run_page, run)

    expect(run_page.locator("#rate-error")).to_contain_text("needs a new approval")
    expect(run_page.locator("#refused")).to_contain_text("needs a new approval")
    expect(run_page.locator("#rate")).to_have_value("500")
    expect(run_page.locator("#throttle-reason")).to_have_value("Quiet night.")


def test_refused_parallel__keeps_the_run_live_with_error_at_its_field(run_page: Page, run: Execution) -> None:
    run_page.locator("#parallel summary").click()
    run_page.locator("#per-cluster").fill("many")
    run_page.locator("#parallel-reason").fill("More.")
    run_page.locator("#parallel-form button").click()
    expect(run_page.locator("#per-cluster-error")).to_contain_text("whole number")

    shows_what_happens_next(run_page, run)

    expect(run_page.locator("#per-cluster-error")).to_contain_text("whole number")
    expect(run_page.locator("#per-cluster")).to_have_value("many")
    expect(run_page.locator("#parallel-reason")).to_have_value("More.")


def test_refused_resume__stays_on_the_live_run_and_a_reload_is_the_run(run_page: Page, run: Execution) -> None:
    ChangeRequest.objects.filter(pk=run.request_id).update(state=ChangeState.PAUSED)
    announce_changes(run.request_id)
    run_page.locator("#steer-bar summary", has_text="Resume").click()
    run_page.locator("#steer-bar button").click()
    expect(run_page.locator("#resume-reason-bar-error")).to_contain_text("Enter a reason to resume")
    assert in_sight(run_page.locator("#resume-reason-bar-error"))

    stepped(run, 61.6)
    expect(run_page.locator(f"#run-{run.request_id} .big-figure b")).to_have_text("61.6 %")
    expect(run_page.locator("#resume-reason-bar-error")).to_be_visible()

    run_page.reload()
    expect(run_page.locator(f"#run-{run.request_id}")).to_be_visible()
    expect(run_page.locator("#resume-reason-bar-error")).to_have_count(0)
    run_page.goto(run_page.url.replace("/run/", "/resume/"))
    assert run_page.url.endswith(f"/changes/{run.request_id}/run/")


@pytest.mark.usefixtures("parcels")
def test_declined_without_a_reason__is_said_in_sight_and_stays_while_others_comment(
    review: ChangeRequest,
    browser_of: Callable[[User], BrowserContext],
    server: Server,
    approver: User,
    operator: User,
) -> None:
    page = opened(browser_of(approver), server, f"/changes/{review.pk}/")
    page.set_viewport_size({"width": 1280, "height": 400})
    field, error = page.get_by_label("Reason to decline (required)"), page.locator("#reason-error")
    expect(field).to_have_attribute("required", "")
    page.get_by_label("Note").fill("It looks fine.")
    page.get_by_role("button", name="Decline change", exact=True).click()
    expect(error).to_be_visible()
    expect(field).to_be_focused()
    assert in_sight(field)
    assert in_sight(error)
    assert page.evaluate("scrollY") > 0, "the field is below what fits"

    services.comment(review, operator, "Look at the racks.")

    expect(page.locator("#comments")).to_contain_text("Look at the racks.")
    expect(error).to_be_visible()
    field.fill("Not on a Friday.")
    page.get_by_role("button", name="Decline change", exact=True).click()
    expect(page.locator("#change-bar")).to_contain_text("Declined")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_buttons_in_menus__look_as_everywhere_else(theme: Any, run_page: Page) -> None:
    """Of each kind of button: ink, surface and border are the same inside of a menu as outside of it."""
    run_page.emulate_media(color_scheme=theme)
    looks = run_page.evaluate(
        """() => ["button-primary", "button-danger", "button"].map((kind) => {
          const inks = [];
          for (const where of [document.querySelector("#steer-bar form.menu"), document.querySelector("main")]) {
            const button = document.createElement("button");
            button.className = `button ${kind}`;
            button.textContent = "Do it";
            where.append(button);
            const style = getComputedStyle(button);
            inks.push([style.color, style.backgroundColor, style.borderColor].join(" "));
            button.remove();
          }
          return inks;
        })"""
    )
    assert [inside for inside, _ in looks] == [outside for _, outside in looks]
    assert len({outside for _, outside in looks}) == len(looks)
