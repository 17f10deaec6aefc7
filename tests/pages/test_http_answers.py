"""Signing in and out.

Errors are pages of ours: one sentence and a way on, no traceback.

No browser keeps what signed-in people saw; pages that fetch themselves again get 304 all the same.

A browser that has the page already gets 304, until the page says something else.

Figures: decimal units, nothing rounded up, unknown instead of zero.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.urls import include, path
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.accounts.errors import AccountErrorCode, ActionForbidden
from kafkadash.accounts.models import User
from kafkadash.clusters.access import public
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.core.messages import message_cause, message_text
from kafkadash.monitoring.models import ClusterState
from kafkadash.monitoring.templatetags import figures
from tests.conftest import PASSWORD
from tests.factories import NOW, ReassignmentFactory, TopicFactory, watched
from tests.pages.conftest import Page


def test_every_page_sends_a_stranger_to_the_sign_in_page(client: Client, db: None) -> None:
    response = client.get("/clusters/demo/")
    assert response.status_code == 302
    assert response.headers["Location"] == "/login/?next=/clusters/demo/"


def test_the_page_has_labelled_fields_and_keeps_where_one_wanted_to_go(client: Client, db: None) -> None:
    page = Page(client.get("/login/?next=/clusters/demo/").content.decode())
    assert page.title == "Sign in to kafkadash"
    assert '<label for="id_login">User name</label>' in page.html
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
    ("address", "status"), [("/fault/", 500), ("/refused/", 403), ("/nonsense/", 400), ("/clusters/nowhere/", 404)]
)
def test_each_has_a_sentence_and_a_way_on(browser: Client, address: str, status: int) -> None:
    response = browser.get(address)
    page = Page(response.content.decode())
    assert response.status_code == status
    assert page.title
    assert page.find("main p")
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
    assert message_cause(AccountErrorCode.FORM_TOO_OLD) in page.text


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/clusters/demo/",
        "/settings/clusters/demo/",
        "/settings/clusters/demo/roles/",
        "/audit/",
        "/audit/export/?format=json",
        "/account/password/",
        "/no/such/page/",
    ],
)
def test_answer_to_a_signed_in_person__is_not_stored(
    address: str, admin: User, client_of: Callable[[User], Client]
) -> None:
    watched("demo")
    answer = client_of(admin).get(address)
    assert answer["Cache-Control"] == "no-store"
    if "ETag" in answer:
        again = client_of(admin).get(address, headers={"if-none-match": answer["ETag"]})
        assert (again.status_code, again["Cache-Control"]) == (304, "no-store")


@pytest.mark.django_db
async def test_static_files__may_be_kept(async_client: AsyncClient) -> None:
    async_client.cookies["sessionid"] = "of somebody"
    answer = await async_client.get("/static/js/live.js")
    assert answer.status_code == 200
    assert "no-store" not in answer["Cache-Control"]


PAGES = [
    "/",
    "/clusters/demo/",
    "/clusters/demo/brokers/",
    "/clusters/demo/brokers/1/",
    "/clusters/demo/topics/",
    "/clusters/demo/topics/payments.ledger/",
    "/clusters/demo/racks/",
    "/clusters/demo/throttles/",
    "/clusters/demo/reassignments/",
    "/clusters/demo/reassignments/r-1/",
]


@pytest.fixture
def viewers_client(viewer: User, client_of: Callable[[User], Client]) -> Client:
    demo = watched("demo")
    TopicFactory.create(cluster=demo)
    ReassignmentFactory.create(cluster=demo, public_id="r-1")
    return client_of(viewer)


@pytest.mark.parametrize("address", PAGES)
def test_the_same_page_a_second_later_is_not_sent_again(viewers_client: Client, address: str) -> None:
    first = viewers_client.get(address)
    assert first.headers["Cache-Control"] == "no-store"
    with time_machine.travel(NOW + timedelta(seconds=1), tick=False):
        again = viewers_client.get(address, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("address", PAGES)
def test_data_that_became_stale_is_sent(viewers_client: Client, address: str) -> None:
    first = viewers_client.get(address)
    with time_machine.travel(NOW + timedelta(minutes=5), tick=False):
        again = viewers_client.get(address, headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 200


def test_a_changed_figure_is_sent(viewers_client: Client) -> None:
    first = viewers_client.get("/clusters/demo/")
    ClusterState.objects.update(partitions=1121)
    assert viewers_client.get("/clusters/demo/", headers={"If-None-Match": first.headers["ETag"]}).status_code == 200


def test_two_people_do_not_share_an_answer(
    viewers_client: Client, operator: User, client_of: Callable[[User], Client]
) -> None:
    etag = viewers_client.get("/").headers["ETag"]
    assert client_of(operator).get("/", headers={"If-None-Match": etag}).status_code == 200


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.0 %"),
        (57.3, "57.3 %"),
        (43.219, "43.2 %"),
        (99.96, "99.9 %"),
        (99.9999, "99.9 %"),
        (100.0, "100.0 %"),
        (100.4, "100.0 %"),
        (-1.0, "0.0 %"),
    ],
)
def test_percent(value: float, shown: str) -> None:
    assert figures.percent(value) == shown


@given(st.floats(min_value=0, max_value=100, allow_nan=False))
def test_percent_is_never_more_than_it_is(value: float) -> None:
    shown = float(str(figures.percent(value)).split()[0])
    assert value - 0.1 <= shown <= value + 1e-6


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (4_500_000_000, "4.5 GB"), (1_500_000_000_000_000, "1.5 PB")],
)
def test_size_is_decimal(number: int, shown: str) -> None:
    assert figures.size(number) == shown


@pytest.mark.parametrize(
    ("number", "shown"), [(0.0, "0.0 MB/s"), (10.0, "0.0 kB/s"), (9_900.0, "9.9 kB/s"), (1.93e7, "19.3 MB/s")]
)
def test_a_slow_rate_is_not_shown_as_nothing(number: float, shown: str) -> None:
    assert figures.rate(number) == shown


@pytest.mark.parametrize(("value", "shown"), [(42, "42 ms"), (210, "0.2 s"), (9_999, "10.0 s"), (62_000, "1 min 2 s")])
def test_milliseconds(value: int, shown: str) -> None:
    assert figures.milliseconds(value) == shown


@pytest.mark.parametrize(
    "filter_", [figures.figure, figures.size, figures.rate, figures.percent, figures.age, figures.milliseconds]
)
def test_a_missing_figure_is_unknown(filter_: object) -> None:
    assert callable(filter_)
    assert "unknown" in filter_(None)


def test_times_are_utc_and_get_their_day_when_it_is_not_today() -> None:
    assert figures.moment(datetime(2026, 11, 21, 1, 2, 3, tzinfo=UTC), NOW) == (
        '<time datetime="2026-11-21T01:02:03.000Z">01:02:03</time>'
    )
    assert ">19 Nov 01:02:03<" in figures.moment(datetime(2026, 11, 19, 1, 2, 3, tzinfo=UTC), NOW)
    assert "unknown" in figures.moment(None, NOW)


def test_ids_and_releases() -> None:
    assert figures.ids([3, 1]) == "3, 1"
    assert figures.ids([]) == "none"
    assert figures.version("4.3 or newer") == "4.3+"
