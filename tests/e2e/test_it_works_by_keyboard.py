"""Everything that can be clicked can be reached and used with the keyboard alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.e2e.moves import NOTICED_MS, REASSIGNMENTS, MoveRow, opened
from tests.e2e.product import Product

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
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()

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
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
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
    page.get_by_label("Keys are on").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("p")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    expect(page.locator("#connection")).to_have_text("Live")
