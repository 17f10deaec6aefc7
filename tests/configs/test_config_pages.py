"""The forms of configs: what they show and lock, what they refuse and keep, and the drafts that they lead to."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.configs.edits import MOST_CHARACTERS
from kafkadash.configs.errors import ConfigErrorCode
from kafkadash.configs.stored import ConfigKey, ConfigOwner, OwnerKind
from kafkadash.kafka.api import ConfigType
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import ConfigCatalog, TopicState
from kafkadash.short_runs.kinds import items_of
from tests.configs.conftest import MIN_ISR, RETENTION, ConfigWorld
from tests.pages.conftest import Page

pytestmark = pytest.mark.django_db
TOPIC, BROKER, DEFAULT = (
    "/clusters/demo/topics/orders/configs/",
    "/clusters/demo/brokers/3/configs/",
    "/clusters/demo/default-configs/",
)


@pytest.fixture
def client(world: ConfigWorld, client_of: Callable[[User], Client]) -> Client:
    return client_of(world.operator)


def fields(page: Page) -> dict[str, str]:
    """The text of each field that can be typed in."""
    inputs = [field.attributes for field in page.find("input.mono")]
    return {each["name"] or "": each["value"] or "" for each in inputs}


@pytest.mark.parametrize(
    ("address", "typed", "locks"),
    [
        (
            TOPIC,
            {"value:min.insync.replicas": "2", "value:retention.ms": "", "value:preallocate": ""},
            {"leader.replication.throttled.replicas": ConfigErrorCode.KEY_OF_THROTTLES},
        ),
        (
            BROKER,
            {"value:log.cleaner.threads": ""},
            {
                "leader.replication.throttled.rate": ConfigErrorCode.KEY_OF_THROTTLES,
                "log.retention.hours": ConfigErrorCode.KEY_READ_ONLY,
                "ssl.keystore.password": ConfigErrorCode.KEY_SENSITIVE,
            },
        ),
        (DEFAULT, {"value:log.cleaner.threads": ""}, {"log.retention.hours": ConfigErrorCode.KEY_READ_ONLY}),
    ],
)
def test_form__has_fields_for_what_can_be_set_and_locks_the_rest(
    client: Client, address: str, typed: dict[str, str], locks: dict[str, ConfigErrorCode]
) -> None:
    page = Page.read(client.get(address))
    assert typed.items() <= fields(page).items()
    for key, code in locks.items():
        assert f"value:{key}" not in fields(page)
        assert code in page.html


def test_form__leads_to_a_draft_of_what_was_changed_only(client: Client, world: ConfigWorld) -> None:
    world.set_value("orders", "preallocate", "true")  # somebody did since the page was opened
    sent = {
        f"value:{RETENTION}": " 60000 ",
        f"was:{RETENTION}": "",
        f"value:{MIN_ISR}": "",
        f"was:{MIN_ISR}": "2",
        "value:preallocate": "",
        "was:preallocate": "",
    }
    response = client.post(TOPIC, sent)
    change = ChangeRequest.objects.get()
    assert (response["Location"], change.title) == (f"/changes/{change.pk}/items/", "Configs of orders")
    assert {item.subject: item.content["value"] for item in items_of(change)} == {
        "orders: retention.ms": "60000",
        "orders: min.insync.replicas": None,
    }
    page = Page.read(client.get(response["Location"]))
    assert "604800000 (default)" in page.html
    assert "removed: 1 (default)" in page.html


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        (RETENTION, "soon", ConfigErrorCode.VALUE_OF_TYPE),
        (RETENTION, "9" * 5_000, ConfigErrorCode.VALUE_TOO_LONG),
        (RETENTION, '""', ConfigErrorCode.VALUE_OF_TYPE),
        ("preallocate", "1", ConfigErrorCode.VALUE_OF_TYPE),
        ("cleanup.policy", "x" * (MOST_CHARACTERS + 1), ConfigErrorCode.VALUE_TOO_LONG),
        (MIN_ISR, "4", "config-min-isr-too-high"),
        ("no.such.key", "1", ConfigErrorCode.KEY_UNKNOWN),
        ("leader.replication.throttled.replicas", "*", ConfigErrorCode.KEY_OF_THROTTLES),
    ],
    ids=["word", "digits", "empty", "number", "long", "min-isr", "unknown", "throttle"],
)
def test_form__value_that_cannot_be__is_refused_and_kept(client: Client, key: str, value: str, code: str) -> None:
    response = client.post(TOPIC, {f"value:{key}": value})
    page = Page.read(response)
    assert response.status_code == 400
    assert code in page.first("#wrong").text
    if f"value:{key}" in fields(page):
        assert fields(page)[f"value:{key}"] == value
    assert not ChangeRequest.objects.exists()


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("log.retention.hours", ConfigErrorCode.KEY_READ_ONLY),
        ("ssl.keystore.password", ConfigErrorCode.KEY_SENSITIVE),
    ],
)
def test_form__of_a_broker__refuses_locked_keys_whatever_is_sent(
    client: Client, key: str, code: ConfigErrorCode
) -> None:
    page = Page.read(client.post(BROKER, {f"value:{key}": "secret-1"}))
    assert code in page.first("#wrong").text
    assert "secret-1" not in page.html


def test_form__name_is_longer_than_a_title__offers_a_shorter_one(client: Client) -> None:
    TopicState.objects.filter(name="orders").update(name="o" * 249)
    client.post(f"/clusters/demo/topics/{'o' * 249}/configs/", {f"value:{RETENTION}": "60000", f"was:{RETENTION}": ""})
    title = ChangeRequest.objects.get().title
    assert (len(title), title[:25], title[-1]) == (200, "retention.ms of ooooooooo", "…")


def test_form__nothing_was_changed__is_refused(client: Client) -> None:
    same = {f"value:{MIN_ISR}": " 2", f"was:{MIN_ISR}": "2"}
    assert Page.read(client.post(TOPIC, same)).refusal == ConfigErrorCode.NOTHING_CHANGED


def test_form__the_value_is_set_so_by_now__says_that_nothing_is_left(client: Client, world: ConfigWorld) -> None:
    world.set_value("orders", RETENTION, "60000")
    page = Page.read(client.post(TOPIC, {f"value:{RETENTION}": "60000", f"was:{RETENTION}": ""}))
    assert page.refusal == ConfigErrorCode.LEFT_OUT_SAME
    assert not ChangeRequest.objects.exists()


def test_form__configs_are_not_read__says_so(client: Client) -> None:
    TopicState.objects.update(config=None)
    assert ConfigErrorCode.NOT_READ in client.get(TOPIC).text
    assert ConfigErrorCode.NOT_READ in client.post(TOPIC, {f"value:{RETENTION}": "1"}).text
    ConfigCatalog.objects.all().delete()
    assert ConfigErrorCode.NOT_READ in client.get(DEFAULT).text


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("topics/nothing", CollectionErrorCode.TOPIC_NOT_SEEN),
        ("topics/a%00b", CollectionErrorCode.TOPIC_NOT_SEEN),
        ("brokers/99", ConfigErrorCode.OWNER_UNKNOWN),
    ],
)
def test_form__of_what_is_not_there__is_not_found(client: Client, address: str, code: StrEnum) -> None:
    response = client.get(f"/clusters/demo/{address}/configs/")
    assert response.status_code == 404
    assert code in response.text


def test_key__whose_name_is_too_long_for_an_item__is_locked() -> None:
    key = ConfigKey("a" * 300, ConfigType.STRING, read_only=False, sensitive=False, inherited=None)
    lock = key.find_lock(ConfigOwner(OwnerKind.TOPIC, "id", "orders", {}))
    assert lock is not None
    assert lock.code == ConfigErrorCode.KEY_TOO_LONG
