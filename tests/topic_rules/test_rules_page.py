"""The settings page of topic rules: what it refuses, what it stores and audits, and rules that cannot be met."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.core.messages import PlainCode
from kafkadash.monitoring.models import BrokerState, ConfigCatalog
from kafkadash.topic_rules import name_match
from kafkadash.topic_rules.errors import RuleConflictCode, RuleErrorCode
from kafkadash.topic_rules.forms import read_limits, write_limits
from kafkadash.topic_rules.models import TopicRules
from kafkadash.topic_rules.pages import RulesRefused, change_rules
from kafkadash.topic_rules.rules import ValueRange
from tests.configs.conftest import RETENTION, ConfigWorld
from tests.pages.conftest import Page
from tests.raised_codes import raises_code

pytestmark = pytest.mark.django_db
RULES = "/settings/clusters/demo/topic-rules/"
TYPED = {
    "version": "0",
    "name_pattern": "[a-z]+[.][a-z]+",
    "factor_least": "2",
    "factor_most": "4",
    "min_isr_least": "1",
    "min_isr_most": "",
    "bounds": "retention.ms = 1h..30d\n",
    "topic_scope": "except",
    "topic_keys": "cleanup.policy\npreallocate",
    "broker_scope": "only",
    "broker_keys": "log.cleaner.threads",
    "reason": "As the platform team agreed.",
}


@pytest.fixture
def client(world: ConfigWorld, admin: User, client_of: Callable[[User], Client]) -> Client:
    return client_of(admin)


def test_page__stores_and_audits_what_changed__and_shows_it_again(client: Client) -> None:
    assert client.post(RULES, TYPED).status_code == 302
    stored = TopicRules.objects.get()
    assert (stored.version, stored.factor_most, stored.bounds) == (1, 4, {RETENTION: [3_600_000, 2_592_000_000]})
    event = AuditEvent.objects.get(action="topic_rules.changed")
    assert event.before is not None
    assert event.after is not None
    assert (event.reason, event.before["factor_least"], event.after["factor_least"]) == (TYPED["reason"], None, 2)
    assert event.after.keys() == {*TYPED} - {"version", "reason", "min_isr_most"}
    page = Page.read(client.get(RULES))
    assert page.title == "demo: 6 topic rules"
    assert page.first("#id_bounds").text.strip() == "retention.ms=1h..30d"
    assert client.post(RULES, {**TYPED, "version": "1"}).status_code == 302
    assert AuditEvent.objects.filter(action="topic_rules.changed").count() == 1, "nothing changed"


def test_rules__of_who_lost_the_role_meanwhile__stay(world: ConfigWorld, operator: User) -> None:
    with raises_code(RuleErrorCode.NEEDS_ROLE, RulesRefused):
        change_rules(world.cluster, operator, {}, version=0, reason="It was agreed.")
    assert not TopicRules.objects.exists()


def test_page__of_an_older_version__is_refused(client: Client) -> None:
    client.post(RULES, TYPED)
    refused = client.post(RULES, {**TYPED, "factor_least": "3"})
    assert RuleErrorCode.CHANGED_MEANWHILE in refused.content.decode()
    assert TopicRules.objects.get().factor_least == 2


@pytest.mark.parametrize(
    ("typed", "field", "code"),
    [
        ({"name_pattern": "a)|(b"}, "name_pattern", RuleErrorCode.PATTERN_WRONG),
        ({"name_pattern": "(?i)a"}, "name_pattern", RuleErrorCode.PATTERN_WRONG),
        ({"name_pattern": "((a{1,200}){1,200}){1,200}"}, "name_pattern", RuleErrorCode.PATTERN_WRONG),
        ({"name_pattern": r"(.*)(.*)(.*)(.*)\1\2\3\4"}, "name_pattern", RuleErrorCode.PATTERN_TOO_SLOW),
        ({"name_pattern": "a" * 201}, "name_pattern", RuleErrorCode.PATTERN_TOO_LONG),
        ({"factor_least": "5"}, "factor_least", RuleErrorCode.RANGE_REVERSED),
        ({"factor_least": "0"}, "factor_least", RuleErrorCode.NO_NUMBER),
        ({"factor_most": "32768"}, "factor_most", RuleErrorCode.NO_NUMBER),
        ({"min_isr_most": "-1"}, "min_isr_most", RuleErrorCode.NO_NUMBER),
        ({"min_isr_least": "5"}, "min_isr_least", RuleErrorCode.MIN_ISR_ABOVE_FACTOR),
        ({"topic_scope": "some"}, "topic_scope", RuleErrorCode.SCOPE_UNKNOWN),
        ({"topic_scope": "all"}, "topic_scope", RuleErrorCode.KEYS_UNUSED),
        ({"topic_keys": " \n"}, "topic_keys", RuleErrorCode.KEYS_MISSING),
        ({"topic_keys": "Retention"}, "topic_keys", RuleErrorCode.KEY_FORMAT),
        ({"broker_keys": "retention.ms"}, "broker_keys", RuleErrorCode.KEY_UNKNOWN),
        ({"topic_keys": "\n".join(f"a{n}" for n in range(201))}, "topic_keys", RuleErrorCode.TOO_MANY_LINES),
        ({"bounds": "retention.ms=60"}, "bounds", RuleErrorCode.BOUND_FORMAT),
        ({"bounds": "retention.ms=.."}, "bounds", RuleErrorCode.BOUND_FORMAT),
        ({"bounds": "retention.ms=1GiB.."}, "bounds", RuleErrorCode.BOUND_FORMAT),
        ({"bounds": "retention.ms=2d..1d"}, "bounds", RuleErrorCode.RANGE_REVERSED),
        ({"bounds": "retention.ms=1..\nretention.ms=2.."}, "bounds", RuleErrorCode.BOUND_REPEATED),
        ({"bounds": "min.insync.replicas=2.."}, "bounds", RuleErrorCode.BOUND_OF_MIN_ISR),
        ({"bounds": "cleanup.policy=1..2"}, "bounds", RuleConflictCode.NOT_NUMERIC),
        ({"bounds": "retention.ms=999999999999999999d.."}, "bounds", RuleConflictCode.OUTSIDE_TYPE),
        ({"reason": " "}, "reason", RuleErrorCode.REASON_MISSING),
    ],
)
def test_page__what_is_wrong_stands_at_its_field(
    client: Client, typed: dict[str, str], field: str, code: StrEnum
) -> None:
    with mock.patch.object(name_match, "TIME_S", 0.2 if code is RuleErrorCode.PATTERN_TOO_SLOW else 10.0):
        response = client.post(RULES, {**TYPED, **typed})
    page = Page.read(response)
    assert [link.attributes["href"] for link in page.find("#wrong a")] == [f"#id_{field}"]
    assert page.texts("#wrong .error-code") == [code]
    assert not TopicRules.objects.exists()


def test_rules__that_cannot_be_met__are_told_on_each_settings_page(client: Client, world: ConfigWorld) -> None:
    rules = {"factor_least": 5, "min_isr_least": 5, "bounds": {RETENTION: [1, 10], "preallocate": [0, 1]}}
    TopicRules.objects.create(cluster=world.cluster, topic_scope="except", topic_keys=[RETENTION], **rules)
    told = {RuleConflictCode.DEFAULT_LOCKED, RuleConflictCode.NOT_NUMERIC}
    assert set(Page.read(client.get(RULES)).texts("#impossible-rules .error-code")) == told
    BrokerState.objects.filter(broker_id__gt=4).update(gone_at=world.clock)
    told |= {RuleConflictCode.FACTOR_ABOVE_BROKERS, RuleConflictCode.MIN_ISR_ABOVE_BROKERS}
    for address in (RULES, "/settings/clusters/demo/policy/", "/settings/clusters/demo/"):
        assert set(Page.read(client.get(address)).texts("#impossible-rules .error-code")) == told
    TopicRules.objects.update(topic_scope="all")
    notes = Page.read(client.get(RULES)).texts("#notes .error-code")
    assert notes == [RuleConflictCode.DEFAULT_OUTSIDE, RuleConflictCode.DEFAULT_OUTSIDE]


def test_rules__before_anything_was_read__are_not_called_impossible(client: Client, world: ConfigWorld) -> None:
    ConfigCatalog.objects.all().delete()
    BrokerState.objects.all().delete()
    TopicRules.objects.create(cluster=world.cluster, factor_least=5, bounds={RETENTION: [1, 10]})
    assert not Page.read(client.get(RULES)).find("#impossible-rules")
    assert PlainCode.TEXT not in client.post(RULES, {**TYPED, "topic_keys": "any.key"}).content.decode()


@pytest.mark.parametrize(
    ("key", "typed", "limits"),
    [
        ("retention.ms", "1h..30d", (3_600_000, 2_592_000_000)),
        ("retention.ms", "..60000", (None, 60_000)),
        ("retention.ms", "-1..-1", (-1, -1)),
        ("segment.bytes", "1 MiB ..", (1_048_576, None)),
        ("max.connections", "1..5", (1, 5)),
        ("max.connections", "1h..", None),
        ("retention.ms", "1..2..3", None),
        ("retention.ms", "1" * 19 + "..", None),
    ],
)
def test_limits__are_read_and_written_alike(key: str, typed: str, limits: Any) -> None:
    found = read_limits(key, typed)
    assert found == (None if limits is None else ValueRange(*limits))
    if limits is not None:
        assert read_limits(*write_limits(key, limits).split("=")) == found
