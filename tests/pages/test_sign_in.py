"""Signing in and out."""

from __future__ import annotations

from django.test import Client

from kafkadash.accounts.models import User
from tests.conftest import PASSWORD
from tests.pages.conftest import Page


def test_every_page_sends_a_stranger_to_the_sign_in_page(client: Client, db: None) -> None:
    response = client.get("/clusters/demo/")
    assert response.status_code == 302
    assert response.headers["Location"] == "/login/?next=/clusters/demo/"


def test_the_page_has_labelled_fields_and_keeps_where_one_wanted_to_go(client: Client, db: None) -> None:
    page = Page(client.get("/login/?next=/clusters/demo/").content.decode())
    assert page.title == "Sign in to kafkadash"
    assert '<label for="id_login">Name</label>' in page.html
    assert 'autocomplete="current-password"' in page.html
    assert 'name="next" value="/clusters/demo/"' in page.html


def test_signing_in_leads_there(client: Client, viewer: User) -> None:
    form = {"login": viewer.username, "password": PASSWORD, "next": "/clusters/demo/"}
    response = client.post("/login/", form)
    assert response.status_code == 302
    assert response.headers["Location"] == "/clusters/demo/"


def test_a_wrong_password_is_said_once_and_the_name_is_kept(client: Client, viewer: User) -> None:
    response = client.post("/login/", {"login": viewer.username, "password": "xyzzy-4711"})
    page = Page(response.content.decode())
    assert 'role="alert"' in page.html
    assert f'value="{viewer.username}"' in page.html
    assert "xyzzy-4711" not in page.html


def test_an_empty_field_is_marked(client: Client, db: None) -> None:
    page = Page(client.post("/login/", {"login": "", "password": ""}).content.decode())
    assert page.html.count('aria-invalid="true"') == 2
    assert 'aria-describedby="id_login-error"' in page.html


def test_signing_out_takes_one_click_and_a_post(client: Client, viewer: User) -> None:
    client.force_login(viewer)
    assert 'action="/logout/"' in client.get("/").content.decode()
    assert client.get("/logout/").status_code == 200
    client.post("/logout/")
    assert client.get("/").status_code == 302
