"""Error pages ask the database from a thread that nobody tidies up after, so they do it themselves."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.test import RequestFactory

from kafkadash.accounts import error_pages
from kafkadash.accounts.models import User

PAGES: dict[str, tuple[int, Callable[[HttpRequest], HttpResponse]]] = {
    "403": (403, lambda request: error_pages.permission_denied(request, PermissionDenied("No."))),
    "404": (404, lambda request: error_pages.page_not_found(request, Http404())),
}


def request_of(user: User) -> HttpRequest:
    request = RequestFactory().get("/nowhere/")
    request.user = user
    request.session = SessionStore()
    return request


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_in_a_thread_of_its_own_gives_the_connection_back(name: str, viewer: User) -> None:
    status, render = PAGES[name]

    def in_a_thread() -> tuple[HttpResponse, bool]:
        request = request_of(User.objects.get(pk=viewer.pk))
        assert connection.connection is not None
        return render(request), connection.connection is None

    with ThreadPoolExecutor(1) as pool:
        response, given_back = pool.submit(in_a_thread).result(timeout=30)
    assert response.status_code == status
    assert "vera" in response.content.decode()
    assert given_back


@pytest.mark.django_db
@pytest.mark.parametrize("name", PAGES)
def test_a_transaction_of_somebody_else_is_left_alone(name: str, viewer: User) -> None:
    _, render = PAGES[name]
    with transaction.atomic():
        render(request_of(viewer))
        assert User.objects.filter(pk=viewer.pk).exists()
