"""Errors are pages of ours: one sentence and a way on, no traceback."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path

from kafkadash.accounts.errors import ActionForbidden
from kafkadash.accounts.models import User
from kafkadash.clusters.access import public
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.domain.messages import message_text
from tests.pages.conftest import Page


@public
def fault(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("a secret detail")


@public
def refused(request: HttpRequest) -> HttpResponse:
    raise ActionForbidden(ClusterErrorCode.NEEDS_ROLE, cluster="demo", roles="admin")


@public
def nonsense(request: HttpRequest) -> HttpResponse:
    raise BadRequest("a secret detail")


handler403 = "kafkadash.accounts.error_pages.permission_denied"
urlpatterns = [
    path("fault/", fault),
    path("refused/", refused),
    path("nonsense/", nonsense),
    path("", include("kafkadash.urls")),
]


@pytest.fixture
def browser(viewer: User, client_of: Callable[[User], Client], settings: object) -> Client:
    settings.ROOT_URLCONF = __name__  # type: ignore[attr-defined]
    client = client_of(viewer)
    client.raise_request_exception = False
    return client


@pytest.mark.parametrize(
    ("address", "status", "title"),
    [
        ("/fault/", 500, "kafkadash itself has failed."),
        ("/refused/", 403, "You may not do this."),
        ("/nonsense/", 400, "This request cannot be understood."),
        ("/clusters/nowhere/", 404, "There is nothing here for you."),
    ],
)
def test_each_has_a_sentence_and_a_way_on(browser: Client, address: str, status: int, title: str) -> None:
    response = browser.get(address)
    page = Page(response.content.decode())
    assert (response.status_code, page.title) == (status, title)
    assert 'href="/"' in page.part("main")
    assert "Traceback" not in page.html
    assert "secret detail" not in page.html


def test_a_refusal_says_which_role_it_needs(browser: Client) -> None:
    told = message_text(ClusterErrorCode.NEEDS_ROLE, cluster="demo", roles="admin")
    assert f"{told} needs-role" in Page(browser.get("/refused/").content.decode()).text


def test_a_form_without_its_token_says_that_nothing_changed(viewer: User) -> None:
    client = Client(enforce_csrf_checks=True)
    response = client.post("/login/", {"login": "vera", "password": "x"})
    page = Page(response.content.decode())
    assert response.status_code == 403
    assert page.title == "This form is too old, or cookies are blocked."
