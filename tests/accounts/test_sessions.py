"""Own sessions are listed and ended; one that nobody uses ends by itself, an open page keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from kafkadash.accounts import sessions
from kafkadash.accounts.errors import AccountErrorCode
from kafkadash.accounts.models import AuditEvent, User
from kafkadash.accounts.services import AccountRefused, check_password
from kafkadash.core.messages import coded
from kafkadash.live.consumer import user_of_session
from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _asked_each_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sessions, "NOTED_EVERY_S", -1.0)
    yield
    sessions._noted.clear()


def signed_in(user: User, browser: str = "Firefox") -> Client:
    client = Client(headers={"user-agent": browser})
    assert client.post("/login/", {"login": user.username, "password": PASSWORD}).status_code == 302
    return client


def is_signed_in(client: Client) -> bool:
    return client.get("/account/sessions/").status_code == 200


def row_of(client: Client) -> UserSession:
    return UserSession.objects.get(session_key=client.session.session_key)


def idle_for(client: Client, hours: float) -> None:
    UserSession.objects.filter(pk=row_of(client).pk).update(last_seen_at=timezone.now() - timedelta(hours=hours))


def test_page__lists_own_sessions_only(viewer: User, stranger: User) -> None:
    here = signed_in(viewer, "Firefox of vera")
    signed_in(viewer, "Safari of vera")
    signed_in(stranger, "Chrome of stan")
    page = here.get("/account/sessions/").content.decode()
    assert [name in page for name in ("Firefox of vera", "Safari of vera", "Chrome of stan")] == [True, True, False]
    assert page.count("End session</button>") == 1


def test_session__ended_from_another__is_signed_out(viewer: User) -> None:
    here, there = signed_in(viewer), signed_in(viewer)
    assert here.post(f"/account/sessions/{row_of(there).pk}/end/").status_code == 302
    assert (is_signed_in(here), is_signed_in(there)) == (True, False)
    event = AuditEvent.objects.get(action="user.sessions_ended")
    assert (event.actor_name, event.after) == ("vera", {"sessions": 1})


def test_session_of_somebody_else__is_not_ended(viewer: User, stranger: User) -> None:
    here, of_stan = signed_in(viewer), signed_in(stranger)
    here.post(f"/account/sessions/{row_of(of_stan).pk}/end/")
    here.post("/account/sessions/end-others/")
    assert is_signed_in(of_stan)


def test_all_others__are_ended_at_once(viewer: User) -> None:
    here, *others = (signed_in(viewer) for _ in range(3))
    here.post("/account/sessions/end-others/")
    assert [is_signed_in(client) for client in (here, *others)] == [True, False, False]


def test_session__idle_for_too_long__ends_with_the_next_request(viewer: User) -> None:
    client = signed_in(viewer)
    idle_for(client, 2.1)
    answer = client.get("/account/sessions/")
    assert (answer.status_code, answer["Location"]) == (302, "/login/?next=/account/sessions/")
    event = AuditEvent.objects.get(action="user.signed_out", actor_name="vera")
    assert event.why == coded(AccountErrorCode.SESSION_IDLE)
    assert not is_signed_in(client)


def test_session__idle_for_too_long__opens_no_socket(viewer: User) -> None:
    client = signed_in(viewer)
    key = client.session.session_key
    assert user_of_session(key) == viewer
    idle_for(client, 2.1)
    assert user_of_session(key) is None


def test_open_page__counts_as_use(viewer: User) -> None:
    client = signed_in(viewer)
    idle_for(client, 1.9)
    assert user_of_session(client.session.session_key) == viewer
    assert timezone.now() - row_of(client).last_seen_at < timedelta(minutes=1)


def test_idle_limit__is_a_setting(viewer: User, settings: Settings) -> None:
    settings.SESSION_IDLE_SECONDS = 3 * 3600
    client = signed_in(viewer)
    idle_for(client, 2.1)
    assert is_signed_in(client)


def test_use__is_noted_at_most_once_a_minute(
    viewer: User, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Callable[..., object]
) -> None:
    monkeypatch.setattr(sessions, "NOTED_EVERY_S", 60.0)
    key = signed_in(viewer).session.session_key
    assert key is not None
    with django_assert_num_queries(0):  # type: ignore[attr-defined]
        assert sessions.is_in_use(key)


def test_rows_of_sessions_that_are_over__are_forgotten(viewer: User) -> None:
    old, young = signed_in(viewer), signed_in(viewer)
    UserSession.objects.filter(pk=row_of(old).pk).update(created_at=timezone.now() - timedelta(hours=13))
    assert sessions.forget_expired(timezone.now()) == 1
    assert row_of(young).user == viewer


@pytest.mark.parametrize("plain", ["aaaaaaaaaaaa", "abababababab", "abcdefghijklm", "zyxwvutsrqpon", "qwertzqwertz"])
def test_password__of_few_characters_in_simple_order__is_refused(plain: str) -> None:
    with pytest.raises(AccountRefused):
        check_password(plain, None)


def test_password__of_words__is_taken() -> None:
    check_password("mauve-otter-under-the-bridge", None)
