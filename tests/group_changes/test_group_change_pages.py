"""The pages of changes of groups: what they refuse, what they show, and the changes that they submit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.risk import RiskLevel, level_of
from kafkadash.group_changes import group_deletion
from kafkadash.group_changes.errors import GroupErrorCode
from kafkadash.group_changes.forms import MOST_CHARACTERS
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.groups.names import slug_of
from kafkadash.monitoring.models import GroupState
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.kinds import items_of
from tests.group_changes.conftest import GroupWorld
from tests.groups import group_seen, share_seen
from tests.pages.conftest import Page, figures_of

pytestmark = pytest.mark.django_db
GROUP = "/clusters/demo/groups/billing/"
RESET = f"{GROUP}reset-offsets/"
WHY = {"title": "", "why": "A bad release wrote garbage."}


@pytest.fixture
def client(world: GroupWorld, client_of: Callable[[User], Client]) -> Client:
    return client_of(world.operator)


REFUSED: Sequence[tuple[dict[str, str], GroupErrorCode]] = (
    ({"to": ""}, GroupErrorCode.RULE_UNKNOWN),
    ({"to": "newest"}, GroupErrorCode.RULE_UNKNOWN),
    ({"to": "latest", "topic": "clicks"}, GroupErrorCode.TOPIC_UNKNOWN),
    ({"to": "latest", "partitions": "0"}, GroupErrorCode.PARTITIONS_ALONE),
    ({"to": "latest", "topic": "orders", "partitions": "1-"}, GroupErrorCode.PARTITIONS_FORMAT),
    ({"to": "latest", "topic": "orders", "partitions": "-1"}, GroupErrorCode.PARTITIONS_FORMAT),
    ({"to": "latest", "topic": "orders", "partitions": ", ,"}, GroupErrorCode.PARTITIONS_FORMAT),
    ({"to": "latest", "topic": "orders", "partitions": "0-2147483647"}, GroupErrorCode.PARTITION_UNKNOWN),
    ({"to": "time", "at": ""}, GroupErrorCode.TIME_WRONG),
    ({"to": "time", "at": "0001-01-01T00:00"}, GroupErrorCode.TIME_WRONG),
    ({"to": "time", "at": "9999-12-31T23:59-23:59"}, GroupErrorCode.TIME_AHEAD),
    ({"to": "time", "at": "2999-01-01T00:00"}, GroupErrorCode.TIME_AHEAD),
    ({"to": "shift", "by": "0"}, GroupErrorCode.SHIFT_WRONG),
    ({"to": "shift", "by": "--1"}, GroupErrorCode.SHIFT_WRONG),
    ({"to": "shift", "by": "-61", "topic": "orders", "partitions": "0"}, GroupErrorCode.DOES_NOT_FIT),
    ({"to": "shift", "by": "-1", "topic": "orders", "partitions": "2"}, GroupErrorCode.DOES_NOT_FIT),
    ({"to": "offsets", "offsets": ""}, GroupErrorCode.OFFSETS_MISSING),
    ({"to": "offsets", "offsets": "orders-0=-1"}, GroupErrorCode.OFFSETS_FORMAT),
    ({"to": "offsets", "offsets": "orders-0=9223372036854775808"}, GroupErrorCode.OFFSETS_FORMAT),
    ({"to": "offsets", "offsets": "orders-0=1\norders-00=2"}, GroupErrorCode.OFFSETS_REPEATED),
    ({"to": "offsets", "offsets": "orders-5=1"}, GroupErrorCode.PARTITION_UNKNOWN),
    ({"to": "offsets", "offsets": "nothing-0=1"}, GroupErrorCode.PARTITION_UNKNOWN),
    ({"to": "offsets", "offsets": "orders-0=101"}, GroupErrorCode.DOES_NOT_FIT),
    ({"to": "offsets", "offsets": "x" * (MOST_CHARACTERS + 1)}, GroupErrorCode.OFFSETS_TOO_LONG),
)


def test_reset__is_refused(client: Client) -> None:
    for query, code in REFUSED:
        response = client.post(f"{RESET}?{urlencode(query)}", WHY)
        found = Page.read(response).texts("#wrong .error-code")
        assert (response.status_code, found[0]) == (400, code), query
    assert not ChangeRequest.objects.exists()


def test_reset__of_a_group_with_members__is_refused(client: Client) -> None:
    GroupState.objects.update(state="Stable")
    assert Page.read(client.get(RESET)).has("not-empty")
    response = client.get(f"{RESET}?to=latest")
    assert response.status_code == 400
    assert Page.read(response).first("#wrong .error-code").text == GroupErrorCode.NOT_EMPTY_LEFT_OUT


def test_reset__of_a_group_without_offsets__is_refused(client: Client, world: GroupWorld) -> None:
    group_seen(world.cluster, "idle", {}, now=datetime.now(UTC) - timedelta(seconds=20), state="Empty", members={})
    response = client.get(f"/clusters/demo/groups/{slug_of('idle')}/reset-offsets/?to=latest")
    assert Page.read(response).first("#wrong .error-code").text == GroupErrorCode.NO_OFFSETS


def test_reset__shows_what_is_skipped_and_is_submitted(client: Client) -> None:
    address = f"{RESET}?to=latest&topic=orders&partitions=0"
    page = Page.read(client.get(address))
    assert page.figures("#proposal p") == ["40", "0"]
    assert [figures_of(cell)[:2] for cell in page.texts("#items tbody td")] == [["60"], ["100", "40"]]
    sent = client.post(address, WHY)
    change = ChangeRequest.objects.get()
    assert (sent["Location"], change.state) == (f"/changes/{change.pk}/", "proposed")
    assert level_of(change.risk) is RiskLevel.MEDIUM


def test_rollback__is_proposed_with_one_click(client: Client, world: GroupWorld) -> None:
    change = world.until(world.queue(world.typed(_0=70)), "done")
    page = Page.read(client.get(f"/changes/{change.pk}/"))
    address = f"/changes/{change.pk}/items/rollback/"
    assert f'action="{address}"' in page.html
    sent = client.post(address)
    draft = ChangeRequest.objects.get(origin=change)
    assert sent["Location"] == f"/changes/{draft.pk}/items/"
    page = Page.read(client.get(sent["Location"]))
    assert [figures_of(cell) for cell in page.texts("#items tbody td")] == [["70"], ["60", "10"]]


def test_delete__shows_what_goes_and_asks_for_the_name(client: Client) -> None:
    page = Page.read(client.get(f"{GROUP}delete/"))
    assert ["2", "40"] in [figures_of(cell) for cell in page.texts("#items tbody td")]
    wrong = client.post(f"{GROUP}delete/", {**WHY, "confirm": "Billing"})
    assert Page.read(wrong).first("#confirm-error .error-code").text == ShortRunErrorCode.NOT_CONFIRMED
    assert client.post(f"{GROUP}delete/", {**WHY, "confirm": "billing"}).status_code == 302
    assert level_of(ChangeRequest.objects.get().risk) is RiskLevel.HIGH


def test_delete_several__keeps_the_names_and_asks_for_the_number(client: Client, world: GroupWorld) -> None:
    now = datetime.now(UTC)
    for name, state in (("billing-old", "Empty"), ("billing-now", "Stable"), ("other", "Empty")):
        group_seen(world.cluster, name, state=state, now=now)
    address = "/clusters/demo/delete-groups/"
    refused = client.get(f"{address}?q=")
    assert refused.status_code == 400
    assert Page.read(refused).first("#q-error .error-code").text == GroupErrorCode.PATTERN_MISSING
    assert Page.read(client.get(f"{address}?q=BILLING")).first("#groups-chosen").text == "billing, billing-old"
    sent = client.post(address, {"q": "billing"})
    group_seen(world.cluster, "billing-new", now=now)
    change = ChangeRequest.objects.get()
    assert (change.title, change.input) == ("Delete 2 groups", {"groups": ["billing", "billing-old"]})
    assert client.post(sent["Location"], {**WHY, "title": change.title, "confirm": "3"}).status_code == 400
    assert client.post(sent["Location"], {**WHY, "title": change.title, "confirm": "2"}).status_code == 302
    assert [item.subject for item in items_of(ChangeRequest.objects.get(state="proposed"))] == change.input["groups"]


def test_delete_several__too_many_or_none__is_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "/clusters/demo/delete-groups/"
    assert client.post(address, {"q": "nothing"}).status_code == 409
    monkeypatch.setattr(group_deletion, "MOST_GROUPS", 0)
    refused = client.post(address, {"q": "billing"})
    assert refused.status_code == 400
    assert Page.read(refused).first("#q-error .error-code").text == GroupErrorCode.TOO_MANY


def test_delete_offsets__asks_for_the_topic_and_its_name(client: Client) -> None:
    address = f"{GROUP}delete-offsets/"
    assert client.get(f"{address}?topic=clicks").status_code == 400
    assert "(type orders)" in client.get(f"{address}?topic=orders").text
    assert client.post(f"{address}?topic=orders", {**WHY, "confirm": "orders"}).status_code == 302


def test_pages__of_a_group_that_is_gone__are_not_found(client: Client, world: GroupWorld) -> None:
    GroupState.objects.update(gone_at=world.clock)
    for page in ("reset-offsets", "delete", "delete-offsets"):
        response = client.get(f"{GROUP}{page}/")
        assert response.status_code == 404
        assert CollectionErrorCode.GROUP_NOT_SEEN in response.text
    share_seen(world.cluster, "billing")
    response = client.get(f"{GROUP}reset-offsets/")
    assert response.status_code == 404
    assert GroupErrorCode.NO_COMMITS_OF_TYPE in response.text


def test_reset__of_a_streams_group__names_what_it_leaves(client: Client, world: GroupWorld) -> None:
    assert 'id="streams"' not in client.get(f"{GROUP}reset-offsets/").text
    GroupState.objects.update(type="Streams")
    assert 'id="streams"' in client.get(f"{GROUP}reset-offsets/").text
