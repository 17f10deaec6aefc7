"""Settings of notifications: receivers, routes, deliveries, and what is refused."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from kafkadash.accounts.models import AuditEvent
from kafkadash.clusters.models import Cluster, Role
from kafkadash.core.errors import RequestErrorCode
from kafkadash.notifications.errors import DeliveryErrorCode as Code
from kafkadash.notifications.forms import RouteForm
from kafkadash.notifications.models import NotificationRoute, NotificationTarget, TargetKind
from kafkadash.notifications.rules import SentChanges
from kafkadash.notifications.services import ReceiverRefused
from tests.conftest import new_user, signed_in
from tests.notifications.conftest import MakeTarget, Tell
from tests.pages.conftest import Page
from tests.raised_codes import raises_code

pytestmark = pytest.mark.django_db
LIST = "/settings/notifications/"


@pytest.fixture
def admin(db: None) -> Client:
    return signed_in(new_user("ada", Role.ADMIN))


def add(admin: Client, kind: TargetKind, address: str, name: str = "on-call") -> Page | None:
    """Return the page that refuses it, None where it was added."""
    answer = admin.post(f"{LIST}new/{kind.value}/", {"name": name, "address": address})
    return Page(answer.content.decode()) if answer.status_code == 200 else None


@pytest.mark.parametrize(
    ("kind", "address", "code"),
    [
        (TargetKind.WEBHOOK, "", Code.URL_WRONG),
        (TargetKind.WEBHOOK, "hooks.example.com", Code.URL_WRONG),
        (TargetKind.WEBHOOK, "ftp://hooks.example.com", Code.URL_WRONG),
        (TargetKind.WEBHOOK, "https://user:secret@hooks.example.com", Code.URL_WRONG),
        (TargetKind.WEBHOOK, "https://hooks.example.com:99999/", Code.URL_WRONG),
        (TargetKind.WEBHOOK, "https://hooks.example.com/a b", Code.URL_WRONG),
        (TargetKind.WEBHOOK, "http://hooks.example.com/", Code.URL_UNENCRYPTED),
        (TargetKind.WEBHOOK, "https://0177.0.0.1/", Code.URL_WRONG),
        (TargetKind.WEBHOOK, "https://127.0.0.1/", Code.ADDRESS_FORBIDDEN),
        (TargetKind.TEAMS, "https://localhost/", Code.ADDRESS_FORBIDDEN),
        (TargetKind.SLACK, "https://hooks.example.com/", Code.URL_OF_SERVICE),
        (TargetKind.PAGERDUTY, "https://events.pagerduty.com", Code.KEY_WRONG),
        (TargetKind.EMAIL, "a@example.com", Code.MAIL_NOT_SET),
        (TargetKind.APPRISE, "https://discord.com/api/webhooks/1/x", Code.SERVICE_UNKNOWN),
        (TargetKind.APPRISE, "discord://4174216298/key?verify=no", Code.SERVICE_OPTION),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(admin: Client, kind: TargetKind, address: str, code: Code) -> None:
    page = add(admin, kind, address)
    assert page is not None
    assert page.tells(code)
    assert not NotificationTarget.objects.exists()


def test_wrong_mail_addresses_and_names(admin: Client, settings: Settings) -> None:
    settings.EMAIL_FROM = "kafka@example.com"
    refusals = [add(admin, TargetKind.EMAIL, address) for address in ("nobody", "a@example.com, b")]
    assert [page is not None and page.tells(Code.MAIL_WRONG) for page in refusals] == [True, True]
    nameless = add(admin, TargetKind.EMAIL, "a@example.com", name=" ")
    assert nameless is not None
    assert nameless.tells(Code.NAME_NEEDED)
    assert add(admin, TargetKind.EMAIL, "a@example.com") is None
    twice = add(admin, TargetKind.EMAIL, "b@example.com")
    assert twice is not None
    assert twice.tells(Code.NAME_TAKEN)


def test_a_receiver_is_added_with_a_route_and_never_shown_again(admin: Client) -> None:
    assert add(admin, TargetKind.SLACK, "https://hooks.slack.com/services/T0/B0/s3cret") is None
    target = NotificationTarget.objects.get()
    assert target.address.endswith("s3cret")
    text = admin.get(f"{LIST}{target.pk}/").content.decode() + admin.get(LIST).content.decode()
    assert "s3cret" not in text
    assert "https://hooks.slack.com/" in text
    assert target.routes.count() == 1
    event = AuditEvent.objects.get(action="receiver.added")
    assert "s3cret" not in str(event.after)


def test_a_service_of_apprise_is_added_by_its_name_alone(admin: Client) -> None:
    assert "Discord" in admin.get(f"{LIST}new/apprise/").content.decode()
    assert add(admin, TargetKind.APPRISE, "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dVjs") is None
    target = NotificationTarget.objects.get()
    assert (target.kind, target.shown, target.routes.count()) == (TargetKind.APPRISE, "Discord", 1)
    assert "JHMHI8qBe7bk2ZwO5U711o3dVjs" not in admin.get(f"{LIST}{target.pk}/").content.decode()


def test_a_route_is_added_and_removed(admin: Client, make_target: MakeTarget) -> None:
    target = make_target()
    target.routes.all().delete()
    form = {"findings": "on", "severity": "critical", "kinds": ["broker-down"], "weekdays": ["0", "6"]}
    form["changes"] = "waiting"
    hours = {"begins": "22:00", "ends": "06:00", "time_zone": "Europe/Berlin"}
    admin.post(f"{LIST}{target.pk}/routes/", {**form, **hours})
    route = NotificationRoute.objects.get()
    assert route.changes == SentChanges.WAITING
    assert (route.severity, route.kinds, route.weekdays, route.cluster) == ("critical", ["broker-down"], [0, 6], None)
    admin.post(f"{LIST}{target.pk}/routes/remove/", {"route": str(route.pk)})
    assert not NotificationRoute.objects.exists()
    audited = AuditEvent.objects.filter(object_type="receiver").order_by("pk")
    assert list(audited.values_list("action", "after__changes", "before__changes")) == [
        ("receiver.route_added", "waiting", None),
        ("receiver.route_removed", None, "waiting"),
    ]


@pytest.mark.parametrize(
    ("kind", "form", "code"),
    [
        (TargetKind.WEBHOOK, {}, Code.NOTHING_SENT),
        (TargetKind.WEBHOOK, {"findings": "on", "time_zone": "Mars/Olympus"}, RequestErrorCode.TIME_ZONE_UNKNOWN),
        (TargetKind.PAGERDUTY, {"changes": "waiting"}, Code.FINDINGS_ONLY),
    ],
)
def test_a_route_that_cannot_be_is_refused(
    admin: Client, make_target: MakeTarget, kind: TargetKind, form: dict[str, str], code: Code
) -> None:
    target = make_target(kind=kind)
    page = Page(admin.post(f"{LIST}{target.pk}/routes/", form).content.decode())
    assert page.tells(code)
    assert target.routes.count() == 1


def test_a_route_of_a_cluster_that_is_removed_meanwhile_is_refused(db: None) -> None:
    cluster = Cluster.objects.create(name="orders", slug="orders")
    form = RouteForm({"cluster": str(cluster.pk), "findings": "on"})
    assert form.is_valid()
    cluster.delete()
    with raises_code(Code.CLUSTER_UNKNOWN, ReceiverRefused):
        form.columns()


def test_the_key_is_shown_once(admin: Client, make_target: MakeTarget) -> None:
    target = make_target()
    shown = admin.post(f"{LIST}{target.pk}/key/").content.decode()
    target.refresh_from_db()
    assert target.secret in shown
    assert target.secret not in admin.get(f"{LIST}{target.pk}/").content.decode()


@pytest.mark.parametrize(("address", "notices"), [("", 1), ("https://kafkadash.test", 0)])
def test_list__says_that_messages_have_no_links__where_there_is_no_public_url(
    admin: Client, make_target: MakeTarget, settings: Settings, address: str, notices: int
) -> None:
    make_target()
    settings.PUBLIC_URL = address
    assert len(Page.read(admin.get(LIST)).find("#no-links")) == notices


def test_hostile_names_are_shown_as_text(admin: Client, make_target: MakeTarget, tell: Tell) -> None:
    target = make_target()
    NotificationTarget.objects.update(name="<script>alert(1)</script>")
    admin.post(f"{LIST}{target.pk}/test/")
    text = admin.get(LIST).content.decode() + admin.get(f"{LIST}{target.pk}/").content.decode()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_removed_and_unknown_receivers(admin: Client, make_target: MakeTarget) -> None:
    target = make_target()
    admin.post(f"{LIST}{target.pk}/remove/")
    assert not NotificationTarget.objects.exists()
    answer = admin.get(f"{LIST}{target.pk}/")
    assert answer.status_code == 404
