"""Accounts: made with a usable password, changed with an audit event, never with a password in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from kafkadash.accounts.audit import record
from kafkadash.accounts.models import AuditEvent, User
from kafkadash.accounts.services import AccountRefused, create_user, set_active, set_password
from kafkadash.clusters.models import Cluster

pytestmark = pytest.mark.django_db

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
        ("vera", GOOD, "a user called vera already"),
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
