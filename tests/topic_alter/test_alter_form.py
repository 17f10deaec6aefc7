"""The form that alters topics: refusals, and values that are no change."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command

from kafkadash.changes.errors import ChangeRefused
from kafkadash.configs.errors import ConfigErrorCode
from kafkadash.monitoring.models import BrokerState, ConfigCatalog, TopicState
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.topic_alter.alteration import create_steps
from kafkadash.topic_alter.errors import AlterErrorCode
from kafkadash.topic_rules.models import TopicRules
from kafkadash.topic_rules.reasons import RuleReasonCode
from kafkadash.topics.errors import TopicErrorCode
from tests.factories import ReassignmentFactory
from tests.topic_alter.conftest import AlterWorld

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("field", "code", "typed"),
    [
        ("topics", ReassignmentErrorCode.NO_TOPICS_CHOSEN, {"topics": "", "factor": "2"}),
        ("topics", AlterErrorCode.INTERNAL_TOPIC, {"topics": "orders\nclicks", "factor": "2"}),
        ("topics", AlterErrorCode.TOPIC_MOVING, {"topics": "orders", "factor": "2"}),
        ("partitions", AlterErrorCode.NO_NUMBER, {"partitions": "many"}),
        ("partitions", AlterErrorCode.NO_NUMBER, {"partitions": "-2"}),
        ("partitions", AlterErrorCode.FEWER_PARTITIONS, {"partitions": "4"}),
        ("partitions", AlterErrorCode.FEWER_PARTITIONS, {"partitions": "0"}),
        ("partitions", AlterErrorCode.TOO_MANY_PARTITIONS, {"partitions": "10006"}),
        ("factor", TopicErrorCode.FACTOR_WRONG, {"factor": "7"}),
        ("factor", TopicErrorCode.FACTOR_WRONG, {"factor": "0"}),
        ("factor", AlterErrorCode.MIN_ISR_STAYS, {"factor": "1"}),
        ("throttle", ReassignmentErrorCode.RATE_MISSING, {"factor": "2", "throttle": ""}),
        ("assignment", AlterErrorCode.ASSIGNMENT_LENGTH, {"assignment": "1:2:3,,2:3:1"}),
        ("assignment", AlterErrorCode.ASSIGNMENT_OF_ONE, {"topics": "orders\nclicks", "assignment": "1:2"}),
        ("assignment", TopicErrorCode.ASSIGNMENT_FORMAT, {"assignment": "1:x"}),
        ("assignment", TopicErrorCode.ASSIGNMENT_UNEVEN, {"assignment": "1:2,1"}),
        ("assignment", TopicErrorCode.ASSIGNMENT_REPEATS, {"assignment": "1:1"}),
        ("assignment", TopicErrorCode.ASSIGNMENT_BROKER, {"assignment": "1:99"}),
        ("assignment", AlterErrorCode.FACTOR_CONTRADICTS, {"assignment": "1:2", "factor": "3"}),
        ("added", ConfigErrorCode.KEY_UNKNOWN, {"added": "retention=1"}),
        ("added", ConfigErrorCode.VALUE_OF_TYPE, {"added": "retention.ms=soon"}),
        ("added", AlterErrorCode.CONFIG_FORMAT, {"added": "retention.ms"}),
        ("added", TopicErrorCode.MIN_ISR_TOO_HIGH, {"added": "min.insync.replicas=3", "factor": "2"}),
        ("added", TopicErrorCode.MIN_ISR_TOO_HIGH, {"added": "min.insync.replicas=+4"}),
        ("removed", TopicErrorCode.MIN_ISR_TOO_HIGH, {"removed": "min.insync.replicas", "factor": "1"}),
        ("added", AlterErrorCode.CONFIGS_TOO_LONG, {"added": "a" * 4001}),
        ("removed", AlterErrorCode.CONFIG_TWICE, {"added": "retention.ms=1", "removed": "retention.ms"}),
        ("removed", ConfigErrorCode.KEY_OF_THROTTLES, {"removed": "leader.replication.throttled.replicas"}),
        ("__all__", AlterErrorCode.NOTHING_ASKED, {"partitions": "-1", "factor": "-1"}),
    ],
)
def test_form__kafka_would_refuse_it_or_nobody_means_it__names_field_and_code(
    world: AlterWorld, field: str, code: str, typed: dict[str, str]
) -> None:
    if code == AlterErrorCode.INTERNAL_TOPIC:
        TopicState.objects.filter(name="clicks").update(internal=True)
    if code == AlterErrorCode.TOPIC_MOVING:
        ReassignmentFactory.create(cluster=world.cluster, topic="orders")
    if typed.get("removed") == "min.insync.replicas":
        catalog = ConfigCatalog.objects.get(cluster=world.cluster)
        catalog.topics["min.insync.replicas"][3] = ["2", "default"]
        catalog.save()
    form = world.form(**{"topics": "orders", **typed})
    assert not form.is_valid()
    told = [str(error.code) for error in form.errors.as_data()[field]]
    assert code in told


@pytest.mark.parametrize(
    ("field", "code", "typed"),
    [
        ("factor", RuleReasonCode.FACTOR, {"factor": "2"}),
        ("assignment", RuleReasonCode.FACTOR, {"assignment": "1:2,2:3,3:1,1:3,2:1"}),
        ("added", RuleReasonCode.VALUE, {"added": "retention.ms=60000"}),
    ],
)
def test_form__topic_rules_do_not_allow_it__names_field_and_code(
    world: AlterWorld, field: str, code: str, typed: dict[str, str]
) -> None:
    TopicRules.objects.create(cluster=world.cluster, factor_least=3, bounds={"retention.ms": [3_600_000, None]})
    form = world.form(**{"topics": "orders", **typed})
    assert not form.is_valid()
    assert [str(error.code) for error in form.errors.as_data()[field]] == [code]


def test_form__factor_outside_the_rules_stays__is_taken(world: AlterWorld) -> None:
    TopicRules.objects.create(cluster=world.cluster, factor_least=3)
    assert world.form(topics="clicks", assignment="5:3,1:2").is_valid(), "its two replicas only change their order"


def test_steps__topics_are_so_already__is_refused(world: AlterWorld) -> None:
    form = world.form(topics="orders", partitions="5", factor="3", added="min.insync.replicas=2")
    assert form.is_valid()
    with pytest.raises(ChangeRefused) as refused:
        create_steps(world.cluster, world.operator, form.alteration)
    assert refused.value.code == AlterErrorCode.ALL_SO_ALREADY


def test_steps__one_of_them_cannot_be_planned__none_is_created(world: AlterWorld) -> None:
    BrokerState.objects.filter(broker_id=2).update(rack=None)
    form = world.form(topics="orders", partitions="7", added="retention.ms=60000")
    assert form.is_valid()
    with pytest.raises(ChangeRefused) as refused:
        create_steps(world.cluster, world.operator, form.alteration)
    assert refused.value.code == TopicErrorCode.RACK_MISSING
    assert not world.cluster.changes.exists()


def test_command__makes_the_same_drafts_and_refuses_the_same(world: AlterWorld) -> None:
    out = io.StringIO()
    by = ("--cluster", "demo", "--user", world.operator.username, "--json")
    call_command("alter-topics", "orders", "clicks", "--partitions", "6", "--config", "retention.ms=1", *by, stdout=out)
    said = json.loads(out.getvalue())
    assert [step["kind"] for step in said["steps"]] == ["topic-grow", "config-edit"]
    assert said["address"] == f"/changes/{said['steps'][0]['change']}/steps/"
    with pytest.raises(SystemExit) as refused:
        call_command("alter-topics", "orders", "--partitions", "2", *by, stdout=io.StringIO(), stderr=io.StringIO())
    assert (refused.value.code, world.cluster.changes.count()) == (2, 2)
