"""Every page and every form while PostgreSQL is away: a sentence, nothing typed is lost, and back by themselves.

An open page while PostgreSQL is away: its figures are called not fresh, and it goes on by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from playwright.sync_api import BrowserContext, expect

from kafkadash.accounts.errors import AccountErrorCode
from kafkadash.accounts.models import User
from kafkadash.changes.models import Comment
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import message_advice
from kafkadash.monitoring.models import CollectorKind, CollectorRun
from kafkadash.ops.health import forget_recent_checks
from tests.away.conftest import Away
from tests.clusters.test_every_url import URLS, address
from tests.live.conftest import Server, Socket
from tests.pages.conftest import text_of
from tests.planning.plans import drained, planned, world
from tests.waiting import wait_until

TITLE = "kafkadash cannot reach its database."
ALIVE = {"ops:livez": 200, "ops:readyz": 503}


@pytest.fixture
def visitor(away: Away, admin: User, client_of: Callable[[User], Client]) -> Iterator[Client]:
    client = client_of(admin)
    client.raise_request_exception = False
    yield client
    away.start()


def says_so(response: Any) -> str:
    html: str = response.content.decode()
    assert response.status_code == 503
    assert TITLE in html
    assert "Traceback" not in html
    assert response["Retry-After"] == "3"
    assert "no-store" in response["Cache-Control"]
    return html


def test_every_page_and_every_form__while_it_is_away__says_so_and_is_there_when_it_is_back(
    away: Away, visitor: Client, cluster: Cluster
) -> None:
    where = {url.name: address(url, cluster) for url in URLS}
    before = {name: visitor.get(path).status_code for name, path in where.items()}
    away.stop_for_many_pages()
    forget_recent_checks()

    for name, path in where.items():
        if name in ALIVE:
            assert Client().get(path).status_code == ALIVE[name]
            continue
        says_so(visitor.get(path))
        says_so(visitor.post(path, {"text": "typed"}))
    assert visitor.get("/static/css/tokens.css").status_code == 200, "its error page has the product's style"
    forget_recent_checks()
    document = Client().get(where["ops:readyz"]).json()
    assert document["checks"]["database"]["state"] == "bad"
    assert document["checks"]["beat"]["state"] == "unknown"

    away.start()
    is_back(visitor)
    after = {name: visitor.get(path).status_code for name, path in where.items()}
    assert {name: (before[name], status) for name, status in after.items() if status >= 500 and name not in ALIVE} == {}


def test_a_form_that_was_sent__is_kept_on_the_page_and_stored_once_when_it_is_sent_again(
    away: Away, cluster: Cluster, operator: User, client_of: Callable[[User], Client]
) -> None:
    topology = world({"orders": [[1, 2, 3]]})
    change = planned(cluster, topology, drained(topology, 3, instead=6))
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(operator)
    page = client.get(f"/changes/{change.pk}/").content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token is not None
    typed = "Broker 3 <b>burns</b>.\r\n\r\n  Two lines below & “quoted”."
    away.stop_for_many_pages()

    where = f"/changes/{change.pk}/comment/"
    html = says_so(client.post(where, {"csrfmiddlewaretoken": token[1], "text": typed}))
    assert "Submit form again" in html
    assert "<b>burns" not in html
    action, fields = kept_form(html)
    assert action == where
    again = says_so(client.post(action, fields))
    assert kept_form(again) == (action, fields), "also when it is sent while it is still away"

    away.start()
    is_back(client)
    assert client.post(action, fields).status_code == 302
    assert [comment.text for comment in Comment.objects.filter(request=change)] == [typed]


def test_a_password__is_not_written_into_the_page(away: Away, visitor: Client) -> None:
    away.stop_for_many_pages()
    html = says_so(visitor.post("/login/", {"login": "vera", "password": "hunter2"}))
    assert "hunter2" not in html
    assert "Submit form again" not in html
    assert "vera" in html
    assert message_advice(AccountErrorCode.FORM_NOT_KEPT) in text_of(html)


def test_a_part_of_a_page__asks_again_by_itself(away: Away, visitor: Client) -> None:
    away.stop_for_many_pages()
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/changes/"}
    response = visitor.get("/changes/?state=open", headers=headers)
    html = response.content.decode()
    assert response.status_code == 503
    assert 'hx-get="/changes/?state=open" hx-trigger="load delay:3s"' in html
    assert "<html" not in html
    posted = visitor.post("/changes/", headers=headers).content.decode()
    assert 'href="http://testserver/changes/"' in posted
    elsewhere = {**headers, "HX-Current-URL": "https://elsewhere.example/"}
    assert "elsewhere" not in visitor.post("/changes/", headers=elsewhere).content.decode()


def is_back(client: Client) -> None:
    wait_until(lambda: client.get("/").status_code == 200, "pages are back", 10)


def kept_form(html: str) -> tuple[str, dict[str, str]]:
    """As a browser sends it: the first line break of a textarea is none of its text."""
    form = html[html.index('<form method="post"') :]
    action = re.search(r'action="([^"]*)"', form)
    assert action is not None
    fields = re.findall(r'<textarea name="([^"]*)"[^>]*>\n(.*?)</textarea>', form, re.DOTALL)
    return unescape(action[1]), {unescape(name): unescape(value) for name, value in fields}


BACK_MS = 20_000


def read_lately(cluster: Cluster) -> None:
    taken = timezone.now() - timedelta(seconds=1)
    for kind in (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS):
        CollectorRun.objects.update_or_create(
            cluster=cluster, kind=kind, defaults={"interval_s": 2, "succeeded_at": taken}
        )


def test_a_socket_that_is_opened_meanwhile__is_closed_and_served_when_it_is_back(
    away: Away, server: Server, watch: Callable[..., Socket], cluster: Cluster, viewer: User
) -> None:
    cookie = watch("status:demo", user=viewer).connection.request.headers["Cookie"]  # type: ignore[union-attr]
    away.stop()
    assert watch("status:demo", cookie=cookie).closed_with() == 1011

    away.start()

    def served() -> bool:
        socket = watch("status:demo", cookie=cookie)
        return "status-demo" in str(socket.until(lambda message: "heartbeat" not in message)["content"])

    def served_or_closed() -> bool:
        try:
            return served()
        except Exception:  # noqa: BLE001  closed once more
            return False

    wait_until(served_or_closed, "a socket is served again", 10)


@pytest.mark.e2e
def test_an_open_page__says_that_it_is_not_fresh_and_is_live_again(
    away: Away, server: Server, cluster: Cluster, chrome: BrowserContext
) -> None:
    read_lately(cluster)
    page = chrome.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/clusters/demo/reassignments/")
    expect(page.locator("#connection")).to_have_text("Live")
    page.evaluate("window.never = 'reloaded'")
    connection.close()
    away.kill()

    expect(page.locator("#connection")).to_have_text("Stale: database unavailable", timeout=BACK_MS)
    expect(page.locator("#connection")).to_have_attribute("data-state", "unknown")
    expect(page.locator("#moves-demo")).to_have_attribute("data-stale", "")
    visitor = chrome.new_page()
    visitor.goto(f"http://127.0.0.1:{server.port}/clusters/demo/reassignments/")
    expect(visitor.get_by_role("heading", level=1)).to_have_text("Database unavailable")

    away.start()
    wait_until(lambda: page.request.get(page.url).status == 200, "pages are back", 10)
    read_lately(cluster)
    expect(page.locator("#connection")).to_have_text("Live", timeout=BACK_MS)
    assert page.evaluate("window.never") == "reloaded"
    back = re.compile("no (reassignments|partitions)")
    expect(visitor.get_by_role("heading", level=1)).to_contain_text(back, timeout=BACK_MS)
