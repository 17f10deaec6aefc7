"""Pages of elections: the proposal, the draft, the review with its items, and who may do what."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Role
from kafkadash.elections.errors import ElectionErrorCode
from kafkadash.short_runs import plans
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.reasons import ShortRunReasonCode
from tests.elections.conftest import ElectionWorld
from tests.pages.conftest import Element, Page

pytestmark = pytest.mark.django_db
NEW = "/clusters/demo/elections/new/"
CHOOSE = "/clusters/demo/elections/choose/"


@pytest.fixture
def client(two_misled: ElectionWorld, client_of: Callable[[User], Client]) -> Client:
    return client_of(two_misled.operator)


def read(client: Client, address: str, status: int = 200) -> Page:
    response = client.get(address)
    assert response.status_code == status, address
    return Page.read(response)


def rows(page: Page) -> list[list[str]]:
    return [[cell.text for cell in row.children if isinstance(cell, Element)] for row in page.find("#items tbody tr")]


@pytest.mark.parametrize(
    ("scope", "partitions"),
    [("", ["orders-0", "orders-1"]), ("?broker=1", ["orders-0"]), ("?topic=orders", ["orders-0", "orders-1"])],
)
def test_proposal__lists_partitions_with_both_leaders(client: Client, scope: str, partitions: list[str]) -> None:
    page = read(client, NEW + scope)
    assert [row[0] for row in rows(page)] == partitions
    assert rows(page)[0][1:] == ["broker 3", "broker 1"]


def test_proposal__nothing_to_do__has_no_form(client: Client) -> None:
    page = read(client, f"{NEW}?topic=clicks")
    assert not page.has("proposal")
    assert page.find("#items [data-empty]")


def test_proposal__tells_what_is_left_out(client: Client, two_misled: ElectionWorld) -> None:
    two_misled.lead("orders", 1, 3, isr=[3, 4])
    page = read(client, NEW)
    assert [row[0] for row in rows(page)] == ["orders-0"]
    assert page.first("#left-out .error-code").text == ElectionErrorCode.OUT_OF_SYNC_LEFT_OUT


@pytest.mark.parametrize("scope", ["?broker=99", "?broker=x", "?broker=-1", "?broker=9999999999999", "?topic=none%00"])
def test_proposal__of_an_unknown_broker_or_topic__is_not_found(client: Client, scope: str) -> None:
    assert ElectionErrorCode.SCOPE_UNKNOWN in read(client, NEW + scope, 404).html


@pytest.mark.parametrize(
    "scope", ["?topic=orders&partition=9", "?topic=orders&partition=x", "?topic=orders&partition="]
)
def test_proposal__of_partitions_that_are_not_there__is_not_found(client: Client, scope: str) -> None:
    assert client.get(NEW + scope).status_code == 404


def test_proposal__of_chosen_partitions__has_them_alone(client: Client) -> None:
    address = f"{NEW}?topic=orders&partition=0&partition=3"
    page = read(client, address)
    assert [row[0] for row in rows(page)] == ["orders-0"]
    assert page.first("#left-out .error-code").text == ElectionErrorCode.LED_LEFT_OUT
    client.post(address, {"title": "", "why": "Skew."})
    change = ChangeRequest.objects.get()
    assert (change.state, change.input) == ("proposed", {"selection": {"orders": [0, 3]}})


def test_topic_page__has_a_box_for_each_partition_that_can_be_elected(
    client: Client, two_misled: ElectionWorld
) -> None:
    two_misled.lead("orders", 1, 3, isr=[3, 4])
    page = read(client, "/clusters/demo/topics/orders/")
    boxes = [box for box in page.find("#topic-partitions-demo input") if box.get("name") == "partition"]
    assert [(box.get("value"), box.get("form")) for box in boxes] == [("0", "elect-chosen")]


def test_proposal__no_box_is_ticked__asks_for_partitions(client: Client) -> None:
    page = read(client, f"{NEW}?topic=orders&chosen=on", 400)
    assert page.first("#partitions-error .error-code").text == ElectionErrorCode.PARTITIONS_MISSING


def test_choice__of_partitions_of_several_topics__becomes_a_draft(client: Client, two_misled: ElectionWorld) -> None:
    two_misled.lead("clicks", 1, 2)
    response = client.post(CHOOSE, {"partitions": "orders-1, clicks-1\norders-1"})
    change = ChangeRequest.objects.get()
    assert (response["Location"], change.state) == (f"/changes/{change.pk}/items/", "draft")
    assert change.input == {"selection": {"orders": [1], "clicks": [1]}}
    assert sorted(row[0] for row in rows(read(client, response["Location"]))) == ["clicks-1", "orders-1"]


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        (" \n\0", ElectionErrorCode.PARTITIONS_MISSING),
        ("orders", ElectionErrorCode.PARTITION_FORMAT),
        ("orders-1-", ElectionErrorCode.PARTITION_FORMAT),
        ("-1", ElectionErrorCode.PARTITION_FORMAT),
        ("orders-5", ElectionErrorCode.PARTITION_UNKNOWN),
        ("bills-0 orders-0", ElectionErrorCode.PARTITION_UNKNOWN),
        ("orders-99999999999999999999", ElectionErrorCode.PARTITION_FORMAT),
        ("orders-0 " * 1001, ElectionErrorCode.TOO_MANY_PARTITIONS),
        ("clicks-0", ElectionErrorCode.LED_LEFT_OUT),
    ],
)
def test_choice__is_wrong__is_refused_and_kept(client: Client, typed: str, code: str) -> None:
    response = client.post(CHOOSE, {"partitions": typed})
    page = Page.read(response)
    assert response.status_code in (400, 409)
    assert page.first("#partitions-error .error-code").text == code
    assert typed.replace("\0", "").strip() in page.html
    assert not ChangeRequest.objects.exists()


def test_proposal__without_a_reason__is_shown_again_with_what_was_typed(client: Client) -> None:
    response = client.post(NEW, {"title": "Skew after the restart", "why": " "})
    page = Page.read(response)
    assert response.status_code == 400
    assert page.first("#why-error .error-code").text == ChangeErrorCode.WHY_MISSING
    assert 'value="Skew after the restart"' in page.html
    assert not ChangeRequest.objects.exists()


def test_proposal__is_submitted_at_once(client: Client) -> None:
    offered = read(client, f"{NEW}?broker=1").title
    response = client.post(f"{NEW}?broker=1", {"title": "", "why": "Broker 1 was restarted."})
    change = ChangeRequest.objects.get()
    assert (response.status_code, response["Location"]) == (302, f"/changes/{change.pk}/")
    assert (change.state, change.kind, change.input) == ("proposed", "election", {"broker": 1})
    assert change.title == offered
    page = read(client, f"/changes/{change.pk}/")
    assert [row[0] for row in rows(page)] == ["orders-0"]


def test_proposal__saved_as_a_draft__needs_no_reason(client: Client) -> None:
    response = client.post(NEW, {"why": "", "then": "save"})
    change = ChangeRequest.objects.get()
    assert (response["Location"], change.state) == (f"/changes/{change.pk}/items/", "draft")


def test_proposal__cannot_be_submitted__stays_a_draft_that_says_why(client: Client, two_misled: ElectionWorld) -> None:
    two_misled.cluster.collector_runs.update(succeeded_at=None)
    response = client.post(NEW, {"why": "Skew."})
    change = ChangeRequest.objects.get()
    assert (response.status_code, change.state) == (409, "draft")
    assert Page.read(response).refusal


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ({"title": "x" * 1000, "why": "Skew."}, ChangeErrorCode.TITLE_TOO_LONG),
        ({"why": "x" * 100_000}, ChangeErrorCode.TEXT_TOO_LONG),
    ],
)
def test_proposal__text_is_too_long__is_refused_and_kept(
    client: Client, typed: dict[str, str], code: ChangeErrorCode
) -> None:
    response = client.post(NEW, typed)
    page = Page.read(response)
    assert (response.status_code, page.refusal) == (409, code)
    assert all(text in page.html for text in typed.values()), "nothing that was typed is lost"
    assert not ChangeRequest.objects.exists()


def test_proposal__nothing_is_left_when_it_is_sent__is_refused(client: Client, two_misled: ElectionWorld) -> None:
    response = client.post(f"{NEW}?topic=clicks", {"why": "Skew."})
    assert (response.status_code, Page.read(response).refusal) == (409, ShortRunErrorCode.NOTHING_TO_DO)
    assert not ChangeRequest.objects.exists()


def test_proposal__of_more_items_than_a_change_may_have__is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "MOST_ITEMS", 1)
    response = client.post(NEW, {"why": "Skew."})
    assert (response.status_code, Page.read(response).refusal) == (409, ShortRunErrorCode.TOO_MANY_ITEMS)
    assert not ChangeRequest.objects.exists()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.APPROVER])
def test_proposal__needs_the_right_to_propose(
    two_misled: ElectionWorld, make_user: Callable[..., User], client_of: Callable[[User], Client], role: Role
) -> None:
    assert client_of(make_user("vic", role)).get(NEW).status_code == 403


def test_draft__is_edited_planned_again_and_submitted(client: Client, two_misled: ElectionWorld) -> None:
    draft = two_misled.draft()
    address = f"/changes/{draft.pk}/items/"
    assert len(rows(read(client, address))) == 2
    two_misled.lead("orders", 0, 1)
    client.post(address, {"version": draft.version, "title": "Leaders", "why": "Skew.", "then": "plan"})
    assert [row[0] for row in rows(read(client, address))] == ["orders-1"]
    draft.refresh_from_db()
    response = client.post(address, {"version": draft.version, "title": "Leaders", "why": "Skew."})
    draft.refresh_from_db()
    assert (response["Location"], draft.state, draft.title) == (f"/changes/{draft.pk}/", "proposed", "Leaders")
    assert client.get(address)["Location"] == f"/changes/{draft.pk}/", "it is no draft any more"


def test_draft__of_an_older_version__is_refused(client: Client, two_misled: ElectionWorld) -> None:
    draft = two_misled.draft()
    services.edit_draft(draft, two_misled.operator, draft.version, title="Changed meanwhile")
    response = client.post(f"/changes/{draft.pk}/items/", {"version": draft.version, "title": "Mine", "why": "Skew."})
    assert response.status_code == 409
    assert 'value="Mine"' in response.content.decode()


def test_draft__submitted_without_a_reason__says_so(client: Client, two_misled: ElectionWorld) -> None:
    draft = two_misled.draft()
    response = client.post(f"/changes/{draft.pk}/items/", {"version": draft.version, "title": "Leaders", "why": ""})
    assert response.status_code == 400
    assert Page.read(response).first("#why-error .error-code").text == ChangeErrorCode.WHY_MISSING


def test_draft__of_another_kind_of_change__is_not_found(client: Client, two_misled: ElectionWorld) -> None:
    other = services.create_draft(
        two_misled.cluster, "reassignment", two_misled.operator, title="Drain", input={}, options={}
    )
    assert ShortRunErrorCode.NO_SHORT_CHANGE in read(client, f"/changes/{other.pk}/items/", 404).html


def test_review__shows_each_item_with_its_state(client: Client, two_misled: ElectionWorld) -> None:
    change = two_misled.until(two_misled.queue(), "done")
    page = read(client, f"/changes/{change.pk}/")
    assert [row[:3] for row in rows(page)] == [
        ["orders-0", "broker 3", "broker 1"],
        ["orders-1", "broker 3", "broker 2"],
    ]
    assert [row.get("data-item") for row in page.find("#items tbody tr")] == ["done", "done"]
    assert page.first("#ended").get("data-state") == "ok"
    assert rows(read(client, f"/changes/{change.pk}/?items=refused")) == []
    assert len(rows(read(client, f"/changes/{change.pk}/?items=nonsense&page=7"))) == 2


def test_review__says_why_the_run_stands_still(client: Client, two_misled: ElectionWorld) -> None:
    change = two_misled.step(two_misled.queue())
    two_misled.kafka.hidden.add("orders")
    two_misled.step(change)
    page = read(client, f"/changes/{change.pk}/")
    assert page.first("#items-problem .error-code").text == ShortRunReasonCode.ITEMS_UNREAD
    assert not page.find("#change-bar .segments"), "the run has no page of its own"


def test_run__is_paused_resumed_and_cancelled_from_its_page(client: Client, two_misled: ElectionWorld) -> None:
    change = two_misled.step(two_misled.queue())
    address = f"/changes/{change.pk}/items"
    assert client.post(f"{address}/pause/").status_code == 302
    change.refresh_from_db()
    assert change.state == "paused"
    assert client.post(f"{address}/resume/", {"pause_reason": ""}).status_code == 409
    assert client.post(f"{address}/resume/", {"pause_reason": "Go on."}).status_code == 302
    assert rows(read(client, f"{address}/cancel/"))
    assert client.post(f"{address}/cancel/", {"reason": ""}).status_code == 400
    assert client.post(f"{address}/cancel/", {"reason": "Wrong day."})["Location"] == f"/changes/{change.pk}/"
    change.refresh_from_db()
    assert change.state == "cancelling"
    assert not read(client, f"{address}/cancel/").has("cancel-form"), "there is nothing left to cancel"


@pytest.mark.parametrize(
    "address", ["/clusters/demo/brokers/", "/clusters/demo/brokers/3/", "/clusters/demo/topics/orders/"]
)
def test_pages__offer_the_election_to_those_who_may_propose(
    client: Client,
    two_misled: ElectionWorld,
    make_user: Callable[..., User],
    client_of: Callable[[User], Client],
    address: str,
) -> None:
    two_misled.cluster.state.preferred_leaders = 5
    two_misled.cluster.state.save()
    assert len([link for link in read(client, address).links(".page-actions") if NEW in link]) == 1
    viewer = client_of(make_user("vic", Role.VIEWER))
    assert not [link for link in read(viewer, address).links(".page-actions") if NEW in link]
