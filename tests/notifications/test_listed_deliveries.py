"""Lists of the settings page: deliveries with what was answered and when, and routes with where, when and what."""

from __future__ import annotations

from datetime import UTC, datetime, time

import pytest
from django.test import Client

from kafkadash.clusters.models import Cluster, Role
from kafkadash.notifications.delivery import deliver
from kafkadash.notifications.errors import DeliveryErrorCode as Code
from kafkadash.notifications.models import NotificationTarget
from kafkadash.notifications.routing import route_events
from tests.conftest import new_user, signed_in
from tests.factories import NOW
from tests.notifications.conftest import MakeTarget, Tell
from tests.notifications.receivers import LocalReceiver
from tests.pages.conftest import Page

pytestmark = pytest.mark.django_db
LIST = "/settings/notifications/"


@pytest.fixture
def admin(db: None) -> Client:
    return signed_in(new_user("ada", Role.ADMIN))


def stamp(at: datetime | None) -> str:
    assert at is not None
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def test_delivery__that_failed_and_then_was_accepted__is_listed_with_answer_status_time_and_tries(
    admin: Client, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver
) -> None:
    target = make_target(receiver.url)
    tell()
    route_events(datetime.now(UTC))
    receiver.answers += [(503, b"<b>later</b>", {}), (202, b"queued as 7", {})]
    untried = Page.read(admin.get(LIST)).first(f"#delivery-{target.messages.get().public_id}")
    assert (untried.texts("td")[-2], len(untried.find("time"))) == ("0", 1)
    for tries, mark, shown in (
        (1, "warning", ("503", Code.STATUS.value, "<b>later</b>")),
        (2, "ok", ("202", "queued as 7", " ms")),
    ):
        NotificationTarget.objects.update(next_at=NOW)
        deliver(target.pk)
        message = target.messages.get()
        for address in (LIST, f"{LIST}{target.pk}/"):
            row = Page.read(admin.get(address)).first(f"#delivery-{message.public_id}")
            cells = row.texts("td")
            assert [each.get("data-state") for each in row.find(".status-mark")] == [mark]
            assert cells[-2] == str(tries)
            assert [text for text in shown if text not in cells[-1]] == []
            times = [each.get("datetime")[:19] for each in row.find("time")]
            assert times == [stamp(message.created_at), stamp(message.tried_at)]
        assert message.status == int(shown[0])


def test_route__of_a_receiver__is_listed_with_where_hours_and_events(admin: Client, make_target: MakeTarget) -> None:
    cluster = Cluster.objects.create(name="Orders EU", slug="orders")
    target = make_target(
        cluster=cluster,
        changes="all",
        severity="critical",
        kinds=["broker-down"],
        weekdays=[0, 6],
        begins=time(22),
        ends=time(6, 30),
        time_zone="Europe/Berlin",
    )
    target.routes.create(findings=False, changes="all")
    target.routes.create(begins=time(22), ends=time(6, 30), time_zone="Mars/Olympus")
    page = Page.read(admin.get(LIST))
    night, always, unknown_zone = page.context["rows"][0]["routes"]
    shown = page.first(f"#receiver-{target.pk}").texts("td p")
    for line, text in zip((night, always, unknown_zone), shown, strict=True):
        assert [part for part in (line.where, line.hours, *line.events) if part not in text] == []
    assert (night.where, len(night.events), len(always.events)) == ("Orders EU", 2, 1)
    assert [word for word in ("Monday", "Sunday", "22:00", "06:30", "Europe/Berlin") if word not in night.hours] == []
    assert "Tuesday" not in night.hours
    for line in (always, unknown_zone):
        assert not set("0123456789") & set(line.hours), "at all times"
    assert "Mars/Olympus" in unknown_zone.hours
    assert {night.where, night.hours, *night.events}.isdisjoint({always.where, always.hours})
    own = Page.read(admin.get(f"{LIST}{target.pk}/"))
    rows = [own.first(f"#route-{line.route.pk}").text for line in (night, always)]
    for line, text in zip((night, always), rows, strict=True):
        assert [part for part in (line.where, line.hours, *line.events) if part not in text] == []
