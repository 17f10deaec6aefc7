"""``manage.py configs``: what it prints of owners, what it refuses, and the changes it proposes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.configs.errors import ConfigErrorCode
from kafkadash.configs.reasons import ConfigReasonCode
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import BrokerState, CollectorRun, TopicState
from kafkadash.short_runs.kinds import items_of
from tests.configs.conftest import MIN_ISR, RETENTION, ConfigWorld
from tests.topics.test_topic_commands import REASON, assert_refused, run

pytestmark = pytest.mark.django_db
ORDERS, BROKER, DEFAULTS = ("--topic", "orders"), ("--broker", "3"), ("--broker-defaults",)


@pytest.fixture
def by(world: ConfigWorld) -> list[str]:
    return ["--user", world.operator.username, *REASON]


def described(*arguments: str) -> dict[str, dict[str, Any]]:
    code, told = run("configs", "describe", *arguments, "--json")
    assert code == 0, told
    [owner] = json.loads(told)["owners"]
    return {config.pop("key"): config for config in owner["configs"]}


def test_describe__tells_values_sources_defaults_and_types(world: ConfigWorld) -> None:
    world.set_value("orders", "cleanup.policy", "")
    own = described(*ORDERS)
    assert own.keys() == {"cleanup.policy", MIN_ISR}
    assert own[MIN_ISR] == {
        "value": "2",
        "source": "topic",
        "default": "1",
        "default_source": "default",
        "type": "int",
        "read_only": False,
        "sensitive": False,
    }
    every = described(*ORDERS, "--all")
    assert (every[RETENTION]["value"], every[RETENTION]["source"]) == ("604800000", "default")
    code, said = run("configs", "describe", *ORDERS)
    age, subject, _, *rows = said.splitlines()
    assert (code, age[:6], subject[:6]) == (0, "As of ", "orders")
    assert [row.split() for row in rows] == [
        ["cleanup.policy", '""', "topic", "delete", "list", "no", "no"],
        [MIN_ISR, "2", "topic", "1", "int", "no", "no"],
    ]


def test_describe__hides_sensitive_values_and_escapes_what_a_terminal_acts_on(world: ConfigWorld) -> None:
    held = {"ssl.keystore.password": ["secret", "broker"], "log.cleaner.threads": ["1\x1b[2J", "broker"]}
    BrokerState.objects.filter(broker_id=3).update(config=held)
    assert described(*BROKER)["ssl.keystore.password"]["value"] is None
    said = run("configs", "describe", *BROKER)[1]
    assert "secret" not in said
    assert "\x1b" not in said
    assert described(*DEFAULTS) == {}
    assert described(*DEFAULTS, "--all")["log.cleaner.threads"]["source"] is None


def test_set_and_delete__propose_one_item_for_each_owner_and_config(world: ConfigWorld, by: list[str]) -> None:
    code, said = run("configs", "set", f"{RETENTION}=60000", *ORDERS, "--topic", "clicks", *by)
    change = ChangeRequest.objects.get()
    first = f"#{change.pk} {RETENTION} of 2 topics, proposed: /changes/{change.pk}/"
    assert (code, said.splitlines()[0]) == (0, first)
    assert {item.subject: item.content["value"] for item in items_of(change)} == {
        f"orders: {RETENTION}": "60000",
        f"clicks: {RETENTION}": "60000",
    }
    code, said = run("configs", "delete", MIN_ISR, *ORDERS, *by, "--json")
    [item] = json.loads(said)["items"]
    assert (code, item["content"]["before"], item["content"]["value"]) == (0, "2", None)
    for scope in (BROKER, DEFAULTS):
        assert run("configs", "set", "log.cleaner.threads=2", *scope, *by)[0] == 0
    assert set(ChangeRequest.objects.values_list("state", flat=True)) == {ChangeState.PROPOSED}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["set", RETENTION, *ORDERS], ConfigErrorCode.TYPED_NO_VALUE),
        (["set", "=1", *ORDERS], ConfigErrorCode.TYPED_NO_VALUE),
        (["delete", f"{RETENTION}=1", *ORDERS], ConfigErrorCode.TYPED_NO_KEY),
        (["set", f"{RETENTION}=1", f"{RETENTION}=2", *ORDERS], ConfigErrorCode.KEY_REPEATED),
        (["set", f"{RETENTION}=soon", *ORDERS], ConfigErrorCode.VALUE_OF_TYPE),
        (["set", f"{MIN_ISR}=9", *ORDERS], ConfigReasonCode.MIN_ISR_TOO_HIGH),
        (["set", "no.such.key=1", *ORDERS], ConfigErrorCode.KEY_UNKNOWN),
        (["set", "log.retention.hours=1", *BROKER], ConfigErrorCode.KEY_READ_ONLY),
        (["set", "ssl.keystore.password=1", *BROKER], ConfigErrorCode.KEY_SENSITIVE),
        (["delete", RETENTION, *ORDERS], ConfigErrorCode.LEFT_OUT_SAME),
        (["set", f"{RETENTION}=1", "--topic", "nowhere"], CollectionErrorCode.TOPIC_NOT_SEEN),
        (["set", "log.cleaner.threads=2", "--broker", "99999999999999999999"], ConfigErrorCode.OWNER_UNKNOWN),
    ],
)
def test_bad_input__is_refused_with_its_code(
    world: ConfigWorld, by: list[str], arguments: list[str], code: str
) -> None:
    assert_refused(run("configs", *arguments, *by), code)
    assert not ChangeRequest.objects.exists()


def test_nothing_read__is_an_error_and_not_an_empty_list(world: ConfigWorld) -> None:
    TopicState.objects.filter(name="orders").update(config=None)
    assert_refused(run("configs", "describe", *ORDERS), ConfigErrorCode.NOT_READ)
    CollectorRun.objects.update(succeeded_at=None)
    assert_refused(run("configs", "describe", *BROKER), CollectionErrorCode.NOT_COLLECTED)
