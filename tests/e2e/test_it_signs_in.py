"""Signing in and out, and what somebody sees who may see nothing yet."""

from __future__ import annotations

import re
import secrets

from playwright.sync_api import Page, expect

from tests.e2e.conftest import SignIn
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
    expect(page.get_by_role("heading", level=1)).to_have_text("You have no role on any cluster yet.")
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
