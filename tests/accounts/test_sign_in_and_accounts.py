"""Signing in: by user name, only for open accounts, and not by trying passwords.

Accounts: made with a usable password, changed with an audit event, never with a password in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
from django.conf import settings
from django.core.cache import caches
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.urls import NoReverseMatch, reverse

from kafkadash.accounts.errors import AccountErrorCode
from kafkadash.accounts.models import AuditEvent, User
from kafkadash.accounts.services import AccountRefused, create_user, record, set_active, set_password
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import message_text
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db

SIGN_IN = "/login/"
TRIES = 5  # of one account within five minutes: allauth's own limit


def sign_in(name: str, password: str, client: Client | None = None) -> HttpResponse:
    return cast("HttpResponse", (client or Client()).post(SIGN_IN, {"login": name, "password": password}))


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_the_right_password_opens_the_page_that_was_asked_for(viewer: User, client: Client) -> None:
    asked = client.get("/clusters/demo/")
    assert asked.status_code == 302
    assert asked["Location"] == f"{SIGN_IN}?next=/clusters/demo/"
    signed = client.post(asked["Location"], {"login": "vera", "password": PASSWORD, "next": "/clusters/demo/"})
    assert (signed.status_code, signed["Location"]) == (302, "/clusters/demo/")
    assert is_signed_in(client)


def test_it_never_leads_to_another_host(viewer: User, client: Client) -> None:
    fields = {"login": "vera", "password": PASSWORD, "next": "https://elsewhere.example/"}
    assert client.post(SIGN_IN, fields)["Location"] == settings.LOGIN_REDIRECT_URL


@pytest.mark.parametrize(("name", "password"), [("vera", "wrong"), ("nobody", PASSWORD), ("vera", "")])
def test_a_wrong_password_and_an_unknown_name_look_alike(
    name: str, password: str, viewer: User, client: Client
) -> None:
    response = sign_in(name, password, client)
    assert response.status_code == 200
    assert not is_signed_in(client)
    assert PASSWORD not in response.content.decode()


def test_a_closed_account_does_not_get_in(make_user: Callable[..., User], client: Client) -> None:
    make_user("ann", is_active=False)
    sign_in("ann", PASSWORD, client)
    assert not is_signed_in(client)


def test_closing_an_account_ends_its_sessions(viewer: User, client_of: Callable[[User], Client]) -> None:
    client = client_of(viewer)
    assert client.get("/").status_code == 200
    User.objects.update(is_active=False)
    assert client.get("/")["Location"].startswith(SIGN_IN)


def test_nobody_can_sign_up() -> None:
    with pytest.raises(NoReverseMatch):
        reverse("account_signup")
    assert Client().get("/accounts/signup/").status_code in (302, 404)
    assert not User.objects.exists()


def test_after_some_wrong_tries_even_the_right_password_must_wait(viewer: User, client: Client) -> None:
    for _ in range(TRIES):
        sign_in("vera", "wrong")
    response = sign_in("vera", PASSWORD, client)
    assert not is_signed_in(client)
    assert "too many" in response.content.decode().lower()


def test_a_port_in_the_host_begins_no_new_count(viewer: User, client: Client) -> None:
    for n in range(TRIES):
        Client(HTTP_HOST=f"127.0.0.1:{n + 1}").post(SIGN_IN, {"login": "vera", "password": "wrong"})
    assert "too many" in sign_in("vera", PASSWORD, client).content.decode().lower()


def test_nobody_locks_another_person_out(viewer: User, client: Client) -> None:
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    for _ in range(TRIES):
        sign_in("vera", "wrong", elsewhere)
    assert "too many" in sign_in("vera", PASSWORD, elsewhere).content.decode().lower()
    sign_in("vera", PASSWORD, client)
    assert is_signed_in(client)


def test_signing_in_and_out_is_in_the_audit(viewer: User, client: Client) -> None:
    sign_in("vera", "wrong", client)
    sign_in("my-pa55word-in-the-wrong-field", "vera", client)
    sign_in("vera", PASSWORD, client)
    client.post("/logout/")
    events = AuditEvent.objects.order_by("id").values_list("action", "actor_name", "object_id", "address")
    assert list(events) == [
        ("user.sign_in_failed", "sign-in", str(viewer.pk), "127.0.0.1"),
        ("user.sign_in_failed", "sign-in", "", "127.0.0.1"),
        ("user.signed_in", "vera", str(viewer.pk), "127.0.0.1"),
        ("user.signed_out", "vera", str(viewer.pk), "127.0.0.1"),
    ]
    assert "pa55word" not in repr(list(AuditEvent.objects.values()))


def test_a_changed_password_is_in_the_audit(viewer: User, client: Client) -> None:
    sign_in("vera", PASSWORD, client)
    new = "another-long-passphrase-7"
    client.post(reverse("account_change_password"), {"oldpassword": PASSWORD, "password1": new, "password2": new})
    assert AuditEvent.objects.order_by("-id")[0].action == "user.password_changed"


def test_password_page__user_without_password__says_so(viewer: User, client_of: Callable[[User], Client]) -> None:
    viewer.set_unusable_password()
    viewer.save()
    client, address = client_of(viewer), reverse("account_change_password")
    for page in (client.get(address), client.post(address, {"oldpassword": "", "password1": "x", "password2": "x"})):
        text = page.content.decode()
        assert page.status_code == 200
        assert message_text(AccountErrorCode.NO_PASSWORD) in text
        assert address not in text


def test_menu__user_with_password__links_to_password_page(viewer: User, client_of: Callable[[User], Client]) -> None:
    assert reverse("account_change_password") in client_of(viewer).get("/").content.decode()


def test_another_account_need_not_wait(viewer: User, operator: User, client: Client) -> None:
    for _ in range(TRIES):
        sign_in("vera", "wrong")
    sign_in("olga", PASSWORD, client)
    assert is_signed_in(client)


def test_the_count_is_in_the_database_so_no_restart_forgets_it(viewer: User, client: Client) -> None:
    for _ in range(TRIES):
        sign_in("vera", "wrong")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM cache WHERE cache_key LIKE '%%:login_failed:%%'")
        (rows,) = cursor.fetchone() or (0,)
    assert rows >= 1
    caches.close_all()  # what a new process starts with: no cache object that could remember
    del caches["default"]
    sign_in("vera", PASSWORD, client)
    assert not is_signed_in(client)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM cache")
    sign_in("vera", PASSWORD, client)
    assert is_signed_in(client)


def test_signing_out_needs_a_post(viewer: User, client_of: Callable[[User], Client]) -> None:
    client = client_of(viewer)
    client.get("/logout/")
    assert is_signed_in(client)
    client.post("/logout/")
    assert not is_signed_in(client)


GOOD = "mauve-otter-under-the-bridge"
ADDRESS = "192.0.2.7"


def test_a_new_account_can_sign_in_and_is_in_the_audit() -> None:
    user = create_user("command line", "ann", GOOD)
    assert Client().login(username="ann", password=GOOD)
    event = AuditEvent.objects.get()
    assert (event.actor, event.action, event.object_type, event.object_id) == (
        "command line",
        "user.created",
        "user",
        str(user.pk),
    )
    assert GOOD not in repr((event.after, event.reason))


@pytest.mark.parametrize(
    ("name", "password", "says"),
    [
        ("ann lee", GOOD, "valid username"),
        ("ann", "short", "at least 12"),
        ("ann", "password1234", "too common"),
        ("annabel-lee-1", "annabel-lee-1", "too similar"),
        ("vera", GOOD, "user vera already exists"),
    ],
)
def test_what_cannot_be_used_is_a_sentence(name: str, password: str, says: str, viewer: User) -> None:
    with pytest.raises(AccountRefused, match=says):
        create_user("command line", name, password)
    assert not AuditEvent.objects.exists()


def test_a_new_password_ends_the_sessions_of_the_old(viewer: User, client_of: Callable[[User], Client]) -> None:
    client = client_of(viewer)
    set_password("command line", viewer, GOOD)
    assert client.get("/").status_code == 302
    assert Client().login(username="vera", password=GOOD)
    assert AuditEvent.objects.get().action == "user.password_set"


def test_closing_twice_is_one_event(admin: User, viewer: User) -> None:
    assert set_active(admin, viewer, active=False)
    assert not set_active(admin, viewer, active=False)
    assert set_active(admin, viewer, active=True)
    assert list(AuditEvent.objects.order_by("id").values_list("action", flat=True)) == ["user.closed", "user.opened"]


def test_the_audit_says_who_from_where_and_hides_secrets(admin: User, cluster: Cluster, client: Client) -> None:
    request = client.get("/", REMOTE_ADDR=ADDRESS).wsgi_request
    record(
        admin,
        "cluster.changed",
        cluster,
        cluster="demo",
        reason="new password=abcdef for it",
        before={"sasl_password": "old", "name": "a"},
        after={"sasl_password": "new", "name": "b"},
        request=request,
    )
    event = AuditEvent.objects.get()
    assert (event.actor, event.actor_name, event.address) == (f"user:{admin.pk}", "adam", ADDRESS)
    assert "abcdef" not in event.reason
    assert (event.before, event.after) == (
        {"sasl_password": "[hidden]", "name": "a"},
        {"sasl_password": "[hidden]", "name": "b"},
    )
