"""``manage.py user``: accounts and roles without a browser."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.access import MANAGE, VIEW, is_allowed
from kafkadash.clusters.models import Cluster, ClusterRole

pytestmark = pytest.mark.django_db

GOOD = "mauve-otter-under-the-bridge"


def user(*arguments: str) -> str:
    out = io.StringIO()
    call_command("user", *arguments, stdout=out)
    return out.getvalue()


def test_a_made_up_password_is_shown_once_and_works() -> None:
    said = user("create", "ann", "--role", "viewer")
    password = said.split("(shown once): ")[1].split()[0]
    assert Client().login(username="ann", password=password)
    assert password not in repr(list(AuditEvent.objects.values_list("before", "after", "reason")))


def test_the_password_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(GOOD + "\n")
    said = user("create", "ann", "--role", "viewer", "--password-file", str(tmp_path / "password"))
    assert "shown once" not in said
    assert Client().login(username="ann", password=GOOD)


def test_the_password_may_come_by_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(GOOD + "\n"))
    user("create", "ann", "--password-file", "-")
    assert Client().login(username="ann", password=GOOD)


def test_a_role_on_one_cluster_until_a_day(cluster: Cluster) -> None:
    user("create", "ann", "--role", "admin", "--cluster", "demo", "--expires", "2999-01-31")
    ann = User.objects.get(username="ann")
    assert is_allowed(ann, MANAGE, cluster)
    assert not is_allowed(ann, VIEW, None)
    expires_at = ClusterRole.objects.get().expires_at
    assert expires_at is not None
    assert expires_at.isoformat() == "2999-01-31T00:00:00+00:00"


def test_roles_are_given_taken_and_listed(viewer: User, cluster: Cluster) -> None:
    user("give", "vera", "--role", "operator", "--cluster", "demo")
    name, roles = user("list").rstrip().split(": ")
    assert (name, roles.split(", ")) == ("vera", ["operator on demo", "viewer on all clusters"])
    user("take", "vera", "--role", "viewer")
    assert user("list") == "vera: operator on demo\n"
    with pytest.raises(CommandError, match="vera has no role viewer on all clusters"):
        user("take", "vera", "--role", "viewer")


def test_an_account_is_closed_and_opened(viewer: User) -> None:
    user("close", "vera")
    assert "(closed)" in user("list")
    assert "already" in user("close", "vera")
    user("open", "vera")
    viewer.refresh_from_db()
    assert viewer.is_active


def test_a_new_password_is_set(viewer: User) -> None:
    said = user("password", "vera")
    assert Client().login(username="vera", password=said.split("(shown once): ")[1].split()[0])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["create", "ann", "--password-file", "/nowhere"], "cannot be read from /nowhere"),
        (
            ["create", "ann", "--role", "viewer", "--cluster", "nowhere"],
            "There is no cluster nowhere. Registered clusters: none",
        ),
        (["create", "ann", "--role", "viewer", "--expires", "soon"], "soon is not a date or time"),
        (["create", "ann", "--role", "viewer", "--expires", "2020-13-01"], "2020-13-01 is not a date or time"),
        (["create", "ann", "--role", "viewer", "--expires", "2020-01-01"], "2020-01-01 is in the past"),
        (["create", "vera"], "The user vera already exists"),
        (["give", "nobody", "--role", "viewer"], "There is no user nobody"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_nothing_is_made(arguments: list[str], says: str, viewer: User) -> None:
    with pytest.raises(CommandError, match=says):
        user(*arguments)
    assert list(User.objects.values_list("username", flat=True)) == ["vera"]


def test_no_role_without_its_account(viewer: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise CommandError("no room")

    monkeypatch.setattr("kafkadash.clusters.management.commands.user.give_role", refuse)
    with pytest.raises(CommandError):
        user("create", "ann", "--role", "viewer")
    assert not User.objects.filter(username="ann").exists()
