"""The form of new topics: what it refuses, what it keeps, and the draft that it leads to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.models import BrokerState, TopicState
from kafkadash.short_runs.kinds import items_of
from kafkadash.topics.errors import TopicErrorCode
from kafkadash.topics.forms import MOST_NAMES
from tests.pages.conftest import Page
from tests.topics.conftest import TopicWorld

pytestmark = pytest.mark.django_db
NEW = "/clusters/demo/create-topics/"
SIX_NAMES = "t0\nt1\nt2\nt3\nt4\nt5"
TYPED = {
    "names": "bills\ndues",
    "placement": "kip-36",
    "partitions": "2",
    "factor": "3",
    "start": "1",
    "shift": "0",
    "configs": "retention.ms = 60000",
}


@pytest.fixture
def client(world: TopicWorld, client_of: Callable[[User], Client]) -> Client:
    return client_of(world.operator)


def test_form__draws_start_and_shift_and_shows_the_list(client: Client) -> None:
    page = Page.read(client.get(NEW))
    assert 0 <= int(page.first("#id_start").attributes["value"] or "") < 6
    assert "1 (eu-1a), 2 (eu-1b), 3 (eu-1c), 4 (eu-1a), 5 (eu-1b) and 6 (eu-1c)" in page.html


def test_form__leads_to_a_draft_with_the_assignment(client: Client) -> None:
    response = client.post(NEW, TYPED)
    change = ChangeRequest.objects.get()
    assert (response.status_code, response["Location"]) == (302, f"/changes/{change.pk}/items/")
    assert (change.state, change.kind, change.title) == ("draft", "topic-create", "Create 2 topics")
    assert [item.content["replicas"] for item in items_of(change)] == [[[2, 3, 4], [3, 4, 5]], [[4, 5, 6], [5, 6, 1]]]
    page = Page.read(client.get(response["Location"]))
    assert "replicas 2:3:4,3:4:5; start 1, shift 0; retention.ms=60000" in page.html
    sent = client.post(response["Location"], {"title": "", "why": "New service.", "version": change.version})
    assert sent["Location"] == f"/changes/{change.pk}/"
    assert ChangeRequest.objects.get().state == "proposed"


def test_form__takes_balanced_placement(client: Client) -> None:
    client.post(NEW, {**TYPED, "placement": "balanced", "start": "", "shift": ""})
    change = ChangeRequest.objects.get()
    assert "start" not in change.input
    replicas = [row for item in items_of(change) for row in item.content["replicas"]]
    assert sorted(row[0] for row in replicas) == sorted({row[0] for row in replicas})
    assert {tuple(sorted({broker % 3 for broker in row})) for row in replicas} == {(0, 1, 2)}  # a replica in each rack


def test_form__takes_a_typed_assignment(client: Client) -> None:
    client.post(NEW, {**TYPED, "names": "bills", "placement": "typed", "assignment": "6:1,1:2,2:3", "factor": ""})
    change = ChangeRequest.objects.get()
    assert change.title == "Create topic bills"
    assert [item.content["replicas"] for item in items_of(change)] == [[[6, 1], [1, 2], [2, 3]]]


@pytest.mark.parametrize(
    ("typed", "field", "code"),
    [
        ({"names": " \n"}, "names", TopicErrorCode.NAME_MISSING),
        ({"names": "x" * 250}, "names", TopicErrorCode.NAME_TOO_LONG),
        ({"names": "my topic"}, "names", TopicErrorCode.NAME_CHARACTERS),
        ({"names": "<b>"}, "names", TopicErrorCode.NAME_CHARACTERS),
        ({"names": ".."}, "names", TopicErrorCode.NAME_DOTS),
        ({"names": "__consumer_offsets"}, "names", TopicErrorCode.NAME_INTERNAL),
        ({"names": "bills\nbills"}, "names", TopicErrorCode.NAME_REPEATED),
        ({"names": "a.b\na_b"}, "names", TopicErrorCode.NAME_COLLIDES),
        ({"names": "orders"}, "names", TopicErrorCode.NAME_TAKEN),
        ({"names": "\n".join(f"t{n}" for n in range(MOST_NAMES + 1))}, "names", TopicErrorCode.TOO_MANY_NAMES),
        (
            {"names": "\n".join(f"t{n}" for n in range(6)), "partitions": "9999"},
            "names",
            TopicErrorCode.TOO_MANY_REPLICAS,
        ),
        (
            {"names": SIX_NAMES, "placement": "typed", "assignment": "1:2:3," * 9_999},
            "names",
            TopicErrorCode.TOO_MANY_REPLICAS,
        ),
        ({"partitions": "0"}, "partitions", TopicErrorCode.PARTITIONS_WRONG),
        ({"partitions": "10001"}, "partitions", TopicErrorCode.PARTITIONS_WRONG),
        ({"partitions": "-1"}, "partitions", TopicErrorCode.PARTITIONS_WRONG),
        ({"partitions": "9" * 400}, "partitions", TopicErrorCode.PARTITIONS_WRONG),
        ({"factor": "7"}, "factor", TopicErrorCode.FACTOR_WRONG),
        ({"factor": ""}, "factor", TopicErrorCode.FACTOR_WRONG),
        ({"start": "x"}, "start", TopicErrorCode.DRAW_WRONG),
        ({"shift": "10000"}, "shift", TopicErrorCode.DRAW_WRONG),
        ({"placement": "random"}, "placement", TopicErrorCode.PLACEMENT_UNKNOWN),
        ({"placement": ""}, "placement", TopicErrorCode.PLACEMENT_UNKNOWN),
        ({"placement": "typed", "assignment": ""}, "assignment", TopicErrorCode.ASSIGNMENT_MISSING),
        ({"placement": "typed", "assignment": "1:2,3"}, "assignment", TopicErrorCode.ASSIGNMENT_UNEVEN),
        ({"placement": "typed", "assignment": "1:9"}, "assignment", TopicErrorCode.ASSIGNMENT_BROKER),
        ({"configs": "a.b=" + "x" * 4_000}, "configs", TopicErrorCode.CONFIGS_TOO_LONG),
        ({"configs": "retention.ms"}, "configs", TopicErrorCode.CONFIG_FORMAT),
        ({"configs": "Retention=1"}, "configs", TopicErrorCode.CONFIG_FORMAT),
        ({"configs": "a.b=1\na.b=2"}, "configs", TopicErrorCode.CONFIG_REPEATED),
        ({"configs": "leader.replication.throttled.replicas=*"}, "configs", TopicErrorCode.CONFIG_OF_THROTTLES),
        ({"configs": "min.insync.replicas=4"}, "configs", TopicErrorCode.MIN_ISR_TOO_HIGH),
        (
            {"placement": "typed", "assignment": "1:2", "configs": "min.insync.replicas=3"},
            "configs",
            TopicErrorCode.MIN_ISR_TOO_HIGH,
        ),
    ],
)
def test_form__what_is_wrong_stands_at_its_field(
    client: Client, typed: dict[str, str], field: str, code: TopicErrorCode
) -> None:
    response = client.post(NEW, {**TYPED, **typed})
    page = Page.read(response)
    assert response.status_code == 400
    assert code in page.first(f"#id_{field}-error").text
    assert not ChangeRequest.objects.exists()


def test_form__keeps_what_was_typed(client: Client) -> None:
    page = Page.read(client.post(NEW, {**TYPED, "factor": "9"}))
    assert "bills\ndues" in page.html
    assert page.first("#id_start").attributes["value"] == "1", "the draw stays"


def test_form__text_that_no_column_takes__is_refused(client: Client) -> None:
    assert client.post(NEW, {**TYPED, "names": "a\x00b", "configs": "a=\x00"}).status_code == 400


@pytest.mark.parametrize(
    ("where", "value", "code"),
    [
        ({}, {"fenced": True}, TopicErrorCode.NO_BROKERS),
        ({"broker_id": 2}, {"rack": None}, TopicErrorCode.RACK_MISSING),
    ],
)
def test_form__brokers_that_topics_cannot_be_placed_on__say_so(
    client: Client, where: dict[str, Any], value: dict[str, Any], code: TopicErrorCode
) -> None:
    BrokerState.objects.filter(**where).update(**value)
    response = client.post(NEW, TYPED)
    assert response.status_code == 400
    assert code in Page.read(response).first("#wrong").text
    assert client.get(NEW).status_code == 200


def test_topics_page__offers_it_to_those_who_may_propose(
    client: Client, world: TopicWorld, client_of: Callable[[User], Client], viewer: User
) -> None:
    assert NEW in client.get("/clusters/demo/topics/").text
    assert NEW not in client_of(viewer).get("/clusters/demo/topics/").text
    Cluster.objects.filter(pk=world.cluster.pk).update(read_only=True)
    assert NEW not in client.get("/clusters/demo/topics/").text


def test_form__of_names_that_were_deleted__are_free(client: Client) -> None:
    TopicState.objects.filter(name="orders").delete()
    assert client.post(NEW, {**TYPED, "names": "orders"}).status_code == 302
