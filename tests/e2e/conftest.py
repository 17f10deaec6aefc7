"""A browser in front of the running product. Nothing here touches the database: the product is another process.

One product and one browser serve all tests of this folder, which follow each other in every order of a run: while
Playwright runs, its event loop belongs to this thread, and neither Django's database nor coroutines work in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, BrowserType, Page, Playwright, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from tests.e2e.product import Product, run_folder
from tests.live.chromium import FLAGS, chromium_path

EXPECT_MS = 30_000
MOST_TEXT = 4_000
"""Characters of a page in the report of a failure."""
HERE = Path(__file__).parent
LAST = ("test_a_broker_is_added.py", "test_a_broker_leaves.py")  # what they add stays
LONG_FORMS = "KAFKADASH_LONG_FORMS"
LONG_TESTS = ("test_it_sees_history.py",)  # of ``make proof ARGS=history``
collect_ignore = () if os.environ.get(LONG_FORMS) else LONG_TESTS
DESKTOP = {"width": 1440, "height": 900}

SignIn = Callable[..., Page]


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups, also where only this folder is asked for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    own = [item for item in items if item.path.is_relative_to(HERE)]
    for item in own:
        item.add_marker(pytest.mark.kafka)
        item.add_marker(pytest.mark.xdist_group("e2e"))
    first = next((place for place, item in enumerate(items) if item.path.is_relative_to(HERE)), 0)
    others = [item for item in items if not item.path.is_relative_to(HERE)]
    own.sort(key=lambda item: LAST.index(item.path.name) if item.path.name in LAST else -1)
    items[:] = [*others[:first], *own, *others[first:]]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the texts of the open pages to the report of a failure: a timeout tells only what it waited for."""
    report = yield
    browser = getattr(item, "funcargs", {}).get("browser")
    if report.when == "call" and report.failed and browser is not None:
        for page in (page for context in browser.contexts for page in context.pages):
            report.sections.append((f"Page {page.url}", _read_text(page)))
    return report


def _read_text(page: Page) -> str:
    try:
        return page.locator("main").inner_text(timeout=1_000)[:MOST_TEXT]
    except PlaywrightError as error:
        return f"no text: {error}"


@pytest.fixture(scope="package")
def product(
    kafka_runtime: None, browser_type_launch_args: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    """The demo on four brokers in three racks, with sample data and no move; not started where there is no browser."""
    with Product(run_folder("e2e")).running(tmp_path_factory.mktemp("product")) as product:
        yield product


@pytest.fixture(autouse=True)
def logs_of_a_failure(request: pytest.FixtureRequest, product: Product, tmp_path: Path) -> Iterator[None]:
    """Beside the screenshot that pytest-playwright keeps."""
    yield
    call = getattr(request.node, "rep_call", None)
    if call is None or call.failed:
        product.keep_logs(tmp_path)


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=EXPECT_MS)
        yield playwright


@pytest.fixture(scope="package")
def browser_type(playwright: Playwright) -> BrowserType:
    return playwright.chromium


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    return {"executable_path": chromium_path(), "args": list(FLAGS)}


@pytest.fixture(scope="package")
def browser(browser_type: BrowserType, browser_type_launch_args: dict[str, Any]) -> Iterator[Browser]:
    browser = browser_type.launch(**browser_type_launch_args)
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def browser_context_args(product: Product) -> dict[str, Any]:
    return {"base_url": product.url, "viewport": DESKTOP}


@pytest.fixture
def output_path(tmp_path: Path) -> str:
    """Where pytest-playwright keeps the screenshot of a failed test."""
    return str(tmp_path)


@pytest.fixture
def sign_in(product: Product) -> SignIn:
    """``sign_in(page, "alice")``: through the sign-in page, as a person does it; ends on the page asked for."""

    def through_the_form(page: Page, name: str = "alice", password: str | None = None, path: str = "/") -> Page:
        page.goto(f"/login/?next={path}")
        page.get_by_label("User name").fill(name)
        page.get_by_label("Password").fill(password or product.password(name))
        page.get_by_role("button", name="Sign in").click()
        return page

    return through_the_form


@pytest.fixture(scope="package")
def alices_session(browser: Browser, product: Product) -> dict[str, Any]:
    """Cookies of one sign-in as alice, for the tests in which signing in is not the point."""
    return _session_of("alice", browser, product)


@pytest.fixture(scope="package")
def bobs_session(browser: Browser, product: Product) -> dict[str, Any]:
    """Of an approver."""
    return _session_of("bob", browser, product)


@pytest.fixture(scope="package")
def admins_session(browser: Browser, product: Product) -> dict[str, Any]:
    return _session_of("admin", browser, product)


def _session_of(name: str, browser: Browser, product: Product) -> dict[str, Any]:
    context = browser.new_context(base_url=product.url)
    page = context.new_page()
    page.goto("/login/")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(product.password(name))
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("link", name="Demo", exact=True)).to_be_visible()
    state: dict[str, Any] = dict(context.storage_state())
    context.close()
    return state


@pytest.fixture
def alice(new_context: Callable[..., BrowserContext], alices_session: dict[str, Any]) -> BrowserContext:
    """A browser in which alice, an operator of all clusters, is signed in."""
    return new_context(storage_state=alices_session)
