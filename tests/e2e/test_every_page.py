"""Every page in both themes, wide and narrow: accessible, within its content security policy, nothing sideways."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import URLPattern, URLResolver, get_resolver
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.e2e.moves import NOTICED_MS, REASSIGNMENTS, MoveRow
from tests.e2e.product import Product

SIGN_IN = "/login/"
# Route of the URL configuration → addresses of it that are visited. {id} is a reassignment in flight.
SIGNED_IN = {
    "": ["/", "/?state=ok", "/?state=critical"],
    "clusters/<slug:slug>/": ["/clusters/demo/"],
    "clusters/<slug:slug>/reassignments/": [
        REASSIGNMENTS,
        f"{REASSIGNMENTS}?running=all",
        f"{REASSIGNMENTS}?ended=all",
    ],
    "clusters/<slug:slug>/reassignments/<slug:public_id>/": [f"{REASSIGNMENTS}{{id}}/"],
    "logout/": ["/logout/"],
    "account/inactive/": ["/account/inactive/"],
    "account/password/": ["/account/password/"],
}
SIGNED_OUT = {"login/": [SIGN_IN]}
FRAGMENTS = {"clusters/"}  # parts of pages that the pages above fetch
MISSING = "/clusters/no-such-cluster/"
# Chromium's own word on a page that is answered with 403 or 404, as it should be.
EXPECTED_ON_ERROR_PAGES = re.compile(r"^Failed to load resource: the server responded with a status of 40[34]\b")

KEEP_VIOLATIONS = """
window.kafkadashViolations = [];
document.addEventListener("securitypolicyviolation",
  (event) => window.kafkadashViolations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


@dataclass
class Visitor:
    """Goes through pages and notes what is wrong with each."""

    page: Page
    wrong: list[str] = field(default_factory=list)
    _said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.add_init_script(KEEP_VIOLATIONS)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self._said.append(f"uncaught {error}"))

    def visit(self, address: str, status: int = 200) -> None:
        self._said.clear()
        answer = self.page.goto(address)
        assert answer is not None
        if answer.status != status:
            self.wrong.append(f"{address}: status {answer.status}")
        self.look(address)

    def look(self, address: str) -> None:
        page = self.page
        if page.locator("#live").count():
            expect(page.locator("#connection")).to_have_text("Live")
        headings = page.get_by_role("heading", level=1).count()
        if headings != 1:
            self.wrong.append(f"{address}: {headings} h1")
        sideways = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if sideways > 0:
            self.wrong.append(f"{address}: scrolls sideways by {sideways} px")
        for violation in Axe().run(page).response["violations"]:
            nodes = [" ".join(node["target"]) for node in violation["nodes"]]
            self.wrong.append(f"{address}: axe {violation['id']} ({violation['help']}) at {nodes}")
        self.wrong += [f"{address}: policy violation {each}" for each in page.evaluate("window.kafkadashViolations")]
        self.wrong += [f"{address}: console {text}" for text in self._said if not EXPECTED_ON_ERROR_PAGES.match(text)]

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self._said.append(message.text)


@pytest.fixture(scope="module")
def moving_id(browser: Browser, product: Product, alices_session: dict[str, Any]) -> Iterator[str]:
    """The id of a reassignment that is in flight as long as this module's tests run."""
    with product.moving(mib=16, throttle=50_000) as move:
        context = browser.new_context(base_url=product.url, storage_state=alices_session)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(REASSIGNMENTS)
        row = MoveRow(page, move.topic).row
        expect(row).to_be_visible(timeout=NOTICED_MS)
        public_id = row.get_attribute("id")
        context.close()
        assert public_id
        yield public_id


def test_pages__all_routes__are_among_those_visited_here() -> None:
    def routes(patterns: list[URLPattern | URLResolver], before: str = "") -> Iterator[str]:
        for pattern in patterns:
            route = before + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from routes(pattern.url_patterns, route)
            else:
                yield route

    assert set(routes(get_resolver().url_patterns)) == SIGNED_IN.keys() | SIGNED_OUT.keys() | FRAGMENTS


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 320])
def test_pages__in_this_theme_and_width__have_nothing_wrong(
    width: int,
    scheme: Literal["light", "dark"],
    moving_id: str,
    new_context: Callable[..., BrowserContext],
    alices_session: dict[str, Any],
) -> None:
    def newcomer(context: BrowserContext) -> Visitor:
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        return Visitor(page)

    visitor = newcomer(new_context(storage_state=alices_session))
    for addresses in SIGNED_IN.values():
        for address in addresses:
            visitor.visit(address.format(id=moving_id))
    visitor.visit(MISSING, status=404)

    stranger = newcomer(new_context())
    stranger.visit(SIGN_IN)
    with stranger.page.expect_navigation():
        # A form whose token is not the session's: what a forged one would send.
        stranger.page.evaluate(
            "document.querySelector('[name=csrfmiddlewaretoken]').value = 'forged';"
            " document.querySelector('main form').submit()"
        )
    expect(stranger.page.get_by_role("heading", level=1)).not_to_have_text("Sign in to kafkadash")
    stranger.look("403")
    assert visitor.wrong + stranger.wrong == []
