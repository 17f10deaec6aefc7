"""Signing in and out, and what somebody sees who may see nothing yet.

Everything that can be clicked can be reached and used with the keyboard alone.
"""

from __future__ import annotations

import re
import secrets

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.conftest import SignIn
from tests.e2e.moves import NOTICED_MS, REASSIGNMENTS, MoveRow, opened
from tests.e2e.product import Product

PASSWORD = "correct horse battery staple"


def test_sign_in__wrong_password__is_a_sentence(page: Page, sign_in: SignIn) -> None:
    sign_in(page, "alice", "not the password of alice")
    expect(page.get_by_role("alert")).to_have_text(re.compile(r"\w+ .*(password|name).*\.", re.IGNORECASE))
    expect(page).to_have_url(re.compile(r"/login/"))
    expect(page.get_by_label("Password")).to_have_value("")


def test_sign_in__right_password__leads_to_the_board_with_the_cluster(page: Page, sign_in: SignIn) -> None:
    sign_in(page, "alice")
    expect(page).to_have_url(re.compile(r"/$"))
    expect(page.get_by_role("link", name="Demo", exact=True)).to_be_visible()
    expect(page.locator(".top-user")).to_contain_text("alice")
    assert {cookie.get("name") for cookie in page.context.cookies()} == {"sessionid", "csrftoken"}


def test_sign_in__page_asked_for__is_where_it_leads(page: Page, sign_in: SignIn) -> None:
    page.goto("/clusters/demo/reassignments/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in to kafkadash")
    sign_in(page, "bob", path="/clusters/demo/reassignments/")
    expect(page).to_have_url(re.compile(r"/clusters/demo/reassignments/$"))


def test_sign_in__without_any_role__says_what_to_do_and_names_no_cluster(
    page: Page, sign_in: SignIn, product: Product
) -> None:
    stranger = f"stan-{secrets.token_hex(3)}"
    product.manage("user", "create", stranger, "--password-file", "-", given=PASSWORD)
    sign_in(page, stranger, PASSWORD)
    expect(page.get_by_role("heading", level=1)).to_have_text("No cluster access yet")
    expect(page.get_by_text(f"user give {stranger} --role viewer")).to_be_visible()
    expect(page.get_by_role("link", name="Demo", exact=True)).to_have_count(0)
    refused = page.goto("/clusters/demo/")
    assert refused is not None
    assert refused.status == 404


def test_sign_out__ends_the_session(page: Page, sign_in: SignIn) -> None:
    sign_in(page, "alice")
    page.locator(".top-user summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in to kafkadash")
    page.goto("/clusters/demo/")
    expect(page).to_have_url(re.compile(r"/login/\?next="))


# What a reader must be able to reach: numbered, so that each element that gets the focus can be told.
NUMBER_THEM = """() => {
  const wanted = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  const shown = [...document.querySelectorAll(wanted)].filter((e) => e.checkVisibility() && !e.disabled);
  shown.forEach((element, number) => { element.dataset.testNumber = number; });
  return shown.map((element) => element.outerHTML.slice(0, 120));
}"""
FOCUSED = "() => document.activeElement?.dataset.testNumber ?? null"
OUTLINE = "() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle + s.boxShadow; }"


@pytest.mark.parametrize("address", ["/", "/clusters/demo/", REASSIGNMENTS])
def test_tab__reaches_everything_and_shows_where_it_is(address: str, alice: BrowserContext) -> None:
    page = opened(alice.new_page(), address)
    page.keyboard.press("p")  # a push must not take the numbers away
    expect(page.locator("#connection")).to_have_text(re.compile("^Frozen"))
    wanted = page.evaluate(NUMBER_THEM)
    reached = set()
    for _ in range(len(wanted) + 2):
        page.keyboard.press("Tab")
        number = page.evaluate(FOCUSED)
        if number is not None:
            reached.add(int(number))
            assert page.evaluate(OUTLINE) != "nonenone", f"no focus ring on {wanted[int(number)]}"
    assert [wanted[number] for number in range(len(wanted)) if number not in reached] == []


def test_skip_link__is_first_and_leads_to_the_content(alice: BrowserContext) -> None:
    page = opened(alice.new_page(), "/clusters/demo/")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_keys__help_freeze_status_and_rows(alice: BrowserContext, product: Product) -> None:
    page = opened(alice.new_page(), REASSIGNMENTS)
    with product.moving(mib=16, throttle=100_000) as first, product.moving(mib=16, throttle=100_000) as second:
        for move in (first, second):
            expect(MoveRow(page, move.topic).row).to_be_visible(timeout=NOTICED_MS)

        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()

        page.keyboard.press("p")
        expect(page.locator("#connection")).to_have_text(re.compile("^Frozen"))
        page.keyboard.press("p")
        expect(page.locator("#connection")).to_have_text("Live")

        links = page.locator("main [data-row-link]")
        page.keyboard.press("j")
        expect(links.nth(0)).to_be_focused()
        page.keyboard.press("j")
        expect(links.nth(1)).to_be_focused()
        page.keyboard.press("k")
        expect(links.nth(0)).to_be_focused()

        page.keyboard.press("g")
        page.keyboard.press("s")
        expect(page).to_have_url(re.compile(r":\d+/$"))


def test_keys__slash__goes_to_the_filter_and_types_nothing(alice: BrowserContext) -> None:
    page = opened(alice.new_page(), "/clusters/demo/topics/")
    page.keyboard.press("/")
    field = page.locator("main [data-key-filter]")
    expect(field).to_be_focused()
    expect(field).to_have_value("")
    page.keyboard.type("ord/p")
    expect(field).to_have_value("ord/p")
    expect(page.locator("#connection")).to_have_text("Live")


def test_keys__pressed_in_the_frame_in_which_the_help_closes__are_heard(alice: BrowserContext) -> None:
    page = opened(alice.new_page(), REASSIGNMENTS)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    focused_in = page.evaluate(
        """() => {
            const help = document.getElementById("keys");
            const target = document.getElementById("keys-on");
            target.focus();
            help.close();
            target.dispatchEvent(new KeyboardEvent("keydown", { key: "p", bubbles: true, cancelable: true }));
            return target.id;
        }"""
    )
    assert focused_in == "keys-on"
    expect(page.locator("#connection")).to_have_text(re.compile("^Frozen"))


def test_keys__switched_off__do_nothing(alice: BrowserContext) -> None:
    page = opened(alice.new_page(), REASSIGNMENTS)
    page.keyboard.press("?")
    page.get_by_label("Enable shortcuts").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("p")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()
    expect(page.locator("#connection")).to_have_text("Live")
