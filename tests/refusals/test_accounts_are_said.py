"""What people are told at the door, by ``manage.py user``, and of pages that cannot be shown."""

from __future__ import annotations

import io
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import BadRequest, PermissionDenied
from django.core.management import CommandError, call_command
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from kafkadash.accounts import error_pages
from kafkadash.accounts.database_away import RETRY_S, database_away
from kafkadash.accounts.errors import AccountErrorCode
from kafkadash.accounts.models import User
from kafkadash.accounts.services import AccountRefused, create_user
from kafkadash.body_limit import USUAL, BodyLimit, Message
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.domain.refusals import pages
from tests.conftest import PASSWORD
from tests.pages.conftest import text_of
from tests.refusals.driving import Case, case, each, refused

pytestmark = pytest.mark.django_db

GOOD = "mauve-otter-under-the-bridge"


class Door:
    """Somebody who is not signed in, and ``vera``, a viewer."""

    def __init__(self, vera: User, client_of: Callable[[User], Client], folder: Path) -> None:
        self.vera, self.client_of, self.folder = vera, client_of, folder

    def signs_in(self, password: str = PASSWORD, name: str = "vera") -> str:
        return shown(Client().post("/login/", {"login": name, "password": password}, follow=True))

    def signs_in_again_and_again(self) -> str:
        for _ in range(5):
            self.signs_in("wrong")
        return self.signs_in()

    def signs_in_when_closed(self) -> str:
        User.objects.update(is_active=False)
        return self.signs_in()

    def asks_too_much(self) -> str:
        client = Client()
        for number in range(40):
            answer = client.post("/login/", {"login": f"nobody-{number}", "password": "wrong"})
            if answer.status_code == 429:
                return shown(answer)
        raise AssertionError("nobody is asked to be patient")

    def changes_password(self, old: str = PASSWORD, new: str = GOOD) -> str:
        typed = {"oldpassword": old, "password1": new, "password2": new}
        return shown(self.client_of(self.vera).post("/account/password/", typed))

    def types(self, *words: str) -> str:
        return refused(CommandError, lambda: call_command("user", *words, stdout=io.StringIO()))

    def file(self, content: bytes) -> str:
        path = self.folder / "password"
        path.write_bytes(content)
        return self.types("create", "ann", "--password-file", str(path))


def shown(response: object) -> str:
    assert isinstance(response, HttpResponse)
    return text_of(response.content.decode())


@pytest.fixture
def door(viewer: User, client_of: Callable[[User], Client], tmp_path: Path) -> Door:
    return Door(viewer, client_of, tmp_path)


@each(
    case(AccountErrorCode.SIGN_IN_WRONG, lambda d: d.signs_in("wrong")),
    case(AccountErrorCode.SIGN_IN_TOO_OFTEN, Door.signs_in_again_and_again),
    case(AccountErrorCode.ACCOUNT_IS_CLOSED, Door.signs_in_when_closed),
    case(AccountErrorCode.TOO_MANY_REQUESTS, Door.asks_too_much),
    case(AccountErrorCode.PASSWORD_WRONG, lambda d: d.changes_password(old="wrong")),
    case(AccountErrorCode.PASSWORD_REFUSED, lambda d: d.changes_password(new="short")),
    case(AccountErrorCode.PASSWORD_TOO_PLAIN, lambda d: d.changes_password(new="a" * 12), fewest=5),
    case(
        AccountErrorCode.ACCOUNT_NAME_REFUSED,
        lambda _: refused(AccountRefused, lambda: create_user("command line", "ann lee", GOOD)),
    ),
    case(AccountErrorCode.ACCOUNT_NAME_TAKEN, lambda d: d.types("create", "vera"), name="vera"),
    case(ClusterErrorCode.NO_SUCH_USER, lambda d: d.types("give", "nobody", "--role", "viewer"), name="nobody"),
    case(
        ClusterErrorCode.NO_ROLE_TO_TAKE,
        lambda d: d.types("take", "vera", "--role", "operator"),
        name="vera",
        role="operator",
        where="on all clusters",
    ),
    case(
        ClusterErrorCode.DATE_UNREADABLE,
        lambda d: d.types("create", "ann", "--role", "viewer", "--expires", "soon"),
        text="soon",
    ),
    case(
        ClusterErrorCode.DATE_GONE_BY,
        lambda d: d.types("create", "ann", "--role", "viewer", "--expires", "2020-01-01"),
        text="2020-01-01",
    ),
    case(
        ClusterErrorCode.SECRET_NOT_READ,
        lambda d: d.types("create", "ann", "--password-file", "/nowhere"),
        what="password",
        source="/nowhere",
        fault="no such file or directory",
    ),
    case(ClusterErrorCode.SECRET_NOT_READ, lambda d: d.file(b"\xff\xfe"), what="password", fault="it is no UTF-8 text"),
    case(ClusterErrorCode.NO_SECRET_GIVEN, lambda d: d.file(b"\n"), what="password"),
)
def test_at_the_door(one: Case, door: Door) -> None:
    one.check(door)


def of_a_browser(path: str = "/changes/", data: dict[str, str] | None = None, *, part: bool = False) -> HttpRequest:
    headers = {"HX-Request": "true"} if part else {}
    factory = RequestFactory()
    if data is None:
        return factory.get(path, headers=headers)
    return factory.post(path, data, headers=headers)


def away(data: dict[str, str] | None = None, *, part: bool = False) -> str:
    return shown(database_away(of_a_browser(data=data, part=part)))


def script_finds() -> str:
    """What the page says itself when the database answers again, by a script."""
    return unescape(database_away(of_a_browser(data={"text": "typed"})).content.decode())


def without_token() -> str:
    return shown(Client(enforce_csrf_checks=True).post("/login/", {"login": "vera", "password": "x"}))


def crashed(request: HttpRequest) -> str:
    return shown(error_pages.server_error(request))


def sends_too_much() -> str:
    said: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        said.append(message)

    async def app(*_: object) -> None:
        raise AssertionError("it is not asked")

    async def nobody(_: object) -> bool:
        raise AssertionError("only larger pages ask that")

    length = str(USUAL + 1).encode()
    scope = {"type": "http", "path": "/", "headers": [(b"content-length", length)]}
    async_to_sync(BodyLimit(app, [], nobody))(scope, receive, send)
    return str(said[-1]["body"].decode())


@each(
    case(pages.BODY_TOO_LARGE, sends_too_much),
    case(
        AccountErrorCode.REQUEST_MALFORMED,
        lambda: shown(error_pages.bad_request(of_a_browser(), BadRequest("a secret detail"))),
    ),
    case(
        AccountErrorCode.NOT_INCLUDED, lambda: shown(error_pages.permission_denied(of_a_browser(), PermissionDenied()))
    ),
    case(AccountErrorCode.FORM_TOO_OLD, without_token),
    case(AccountErrorCode.PAGE_MISSING, lambda: shown(Client().get("/accounts/nowhere/", follow=True))),
    case(AccountErrorCode.PAGE_CRASHED, lambda: crashed(of_a_browser())),
    case(AccountErrorCode.DATABASE_AWAY, away, seconds=RETRY_S),
    case(AccountErrorCode.DATABASE_AWAY_FORM, lambda: away({"text": "typed"}), seconds=RETRY_S),
    case(AccountErrorCode.DATABASE_AWAY_PART, lambda: away(part=True), seconds=RETRY_S),
    case(AccountErrorCode.DATABASE_AWAY_ASKED, lambda: away({"text": "typed"}, part=True)),
    case(AccountErrorCode.FORM_KEPT, lambda: away({"text": "typed"})),
    case(AccountErrorCode.FORM_NOT_KEPT, lambda: away({"login": "vera", "password": "x"})),
    case(AccountErrorCode.DATABASE_BACK, script_finds),
)
def test_by_a_page_that_cannot_be_shown(one: Case) -> None:
    one.check()
