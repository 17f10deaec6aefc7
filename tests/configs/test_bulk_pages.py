"""The form of one config of many topics: the choice of topics, its preview, what it refuses, and its draft."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import PlanErrorCode
from kafkadash.configs.errors import ConfigErrorCode
from kafkadash.monitoring.models import TopicState
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.topic_form import NAMES_SHOWN
from kafkadash.short_runs.kinds import items_of
from tests.configs.conftest import RETENTION, ConfigWorld
from tests.factories import TopicFactory
from tests.pages.conftest import Page

pytestmark = pytest.mark.django_db
NEW = "/clusters/demo/topic-configs/"
CHOSEN = "/clusters/demo/topics-chosen/"
NESTED = "(a+)+b"
WANTED = {"key": RETENTION, "value": "60000", "topics": "", "pattern": ".*", "excluded": ""}


@pytest.fixture
def client(world: ConfigWorld, client_of: Callable[[User], Client]) -> Client:
    return client_of(world.operator)


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        ({"pattern": ".*"}, ["clicks", "orders"]),
        ({"pattern": ".*", "excluded": "ord.*"}, ["clicks"]),
        ({"pattern": "nothing|or.*", "topics": "clicks"}, ["clicks", "orders"]),
        ({"pattern": "", "topics": "orders, __offsets"}, ["__offsets", "orders"]),
    ],
)
def test_form__leads_to_a_draft_of_the_chosen_topics(
    client: Client, world: ConfigWorld, choice: dict[str, str], chosen: list[str]
) -> None:
    TopicFactory.create(cluster=world.cluster, name="__offsets", topic_id="id-of-offsets", internal=True)
    response = client.post(NEW, {**WANTED, **choice})
    change = ChangeRequest.objects.get()
    assert response["Location"] == f"/changes/{change.pk}/items/"
    assert [item.subject for item in items_of(change)] == [f"{topic}: {RETENTION}" for topic in chosen]


def test_draft__of_topics_of_which_one_is_set_so__says_what_is_left_out(client: Client, world: ConfigWorld) -> None:
    world.set_value("clicks", RETENTION, "60000")
    address = client.post(NEW, WANTED)["Location"]
    world.set_value("orders", RETENTION, "60000")  # the page says what the plan left out, not what one of now would
    page = Page.read(client.get(address))
    assert page.texts("#left-out .error-code") == [ConfigErrorCode.LEFT_OUT_SAME]
    assert [item.subject for item in items_of(ChangeRequest.objects.get())] == [f"orders: {RETENTION}"]


@pytest.mark.parametrize(
    ("wanted", "field", "code"),
    [
        ({"key": ""}, "key", ConfigErrorCode.KEY_MISSING),
        ({"key": "no.such.key"}, "key", ConfigErrorCode.KEY_UNKNOWN),
        ({"key": "leader.replication.throttled.replicas"}, "key", ConfigErrorCode.KEY_OF_THROTTLES),
        ({"value": "soon"}, "value", ConfigErrorCode.VALUE_OF_TYPE),
        ({"pattern": ""}, "topics", ReassignmentErrorCode.NO_TOPICS_CHOSEN),
        ({"topics": "nothing"}, "topics", PlanErrorCode.TOPICS_UNKNOWN),
        ({"pattern": "nothing"}, "pattern", PlanErrorCode.NO_TOPIC_CHOSEN),
        ({"pattern": "("}, "pattern", PlanErrorCode.PATTERN_WRONG),
        ({"pattern": "a" * 501}, "pattern", ReassignmentErrorCode.PATTERN_TOO_LONG),
        ({"excluded": ".*"}, "excluded", PlanErrorCode.ALL_TOPICS_EXCLUDED),
    ],
)
def test_form__what_cannot_be__is_refused_and_kept(
    client: Client, wanted: dict[str, str], field: str, code: str
) -> None:
    response = client.post(NEW, {**WANTED, **wanted})
    page = Page.read(response)
    assert response.status_code == 400
    assert page.first(f"#id_{field}-error .error-code").text == code
    assert page.first("#id_value").attributes["value"] == {**WANTED, **wanted}["value"]
    assert not ChangeRequest.objects.exists()


def test_preview__tells_number_and_first_names(client: Client, world: ConfigWorld) -> None:
    for number in range(NAMES_SHOWN):
        TopicFactory.create(cluster=world.cluster, name=f"t{number:02}", topic_id=f"id-of-t{number}")
    text = client.post(CHOSEN, {"pattern": ".*"}).text
    assert f"{NAMES_SHOWN + 2} topics" in text
    assert "clicks, orders, t00" in text
    assert "and 2 more" in text
    assert "t19" not in text
    assert ReassignmentErrorCode.NO_TOPICS_CHOSEN in client.post(CHOSEN, {}).text


def test_preview__of_a_pattern_that_never_ends__is_given_up(client: Client, world: ConfigWorld) -> None:
    TopicState.objects.filter(name="orders").update(name="a" * 60)
    assert ReassignmentErrorCode.PATTERN_TOO_SLOW in client.post(CHOSEN, {"pattern": NESTED}).text
