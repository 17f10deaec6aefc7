"""Topic rules hold in forms, in checks, and at the start of a run; a rollback may restore what is outside them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.checks import CheckResult
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.plan import PartitionMove
from kafkadash.changes.recheck import recheck
from kafkadash.monitoring.models import CollectorKind, CollectorRun, ConfigCatalog
from kafkadash.planning.proposal import ROLLBACK, SET_RF
from kafkadash.planning.stored_checks import run_stored_checks
from kafkadash.short_runs.kinds import items_of, short_kind
from kafkadash.short_runs.plans import check_items, plan_items
from kafkadash.short_runs.rollback import propose_rollback
from kafkadash.topic_rules import name_match
from kafkadash.topic_rules.errors import RuleCheckTitle, RuleErrorCode
from kafkadash.topic_rules.models import TopicRules
from kafkadash.topic_rules.reasons import RuleReasonCode
from kafkadash.topic_rules.rules import KeyScope
from kafkadash.topics.creation import KIND as CREATION
from tests.configs.conftest import MIN_ISR, RETENTION, TOPIC_KEYS, ConfigWorld
from tests.configs.test_config_commands import ORDERS, by  # noqa: F401
from tests.execution.conftest import world as runs  # noqa: F401
from tests.execution.worlds import World
from tests.pages.conftest import Page
from tests.planning.conftest import wizard  # noqa: F401
from tests.planning.stored import Wizard
from tests.raised_codes import raises_code
from tests.topics.test_topic_commands import assert_refused, run

pytestmark = pytest.mark.django_db
SLOW = r"(.*)(.*)(.*)(.*)\1\2\3\4"
HOUR, MONTH = 3_600_000, 30 * 86_400_000
RULES: dict[str, Any] = {
    "name_pattern": "[a-z]+[.][a-z]+",
    "factor_least": 3,
    "factor_most": 4,
    "min_isr_least": 2,
    "bounds": {RETENTION: [HOUR, MONTH]},
    "topic_scope": KeyScope.EXCEPT,
    "topic_keys": ["cleanup.policy"],
    "broker_scope": KeyScope.ONLY,
    "broker_keys": [MIN_ISR],
}
NEW, BULK = "/clusters/demo/create-topics/", "/clusters/demo/topic-configs/"
TOPIC, DEFAULT = "/clusters/demo/topics/orders/configs/", "/clusters/demo/default-configs/"
TYPED = {
    "names": "team.bills",
    "placement": "kip-36",
    "partitions": "2",
    "factor": "3",
    "start": "1",
    "shift": "0",
    "configs": "min.insync.replicas=2",
}
WANTED = {"names": ["bills"], "partitions": 1, "factor": 3, "start": 0, "shift": 0, "configs": {}}


@pytest.fixture
def client(world: ConfigWorld, client_of: Callable[[User], Client]) -> Client:
    return client_of(world.operator)


def rule(world: ConfigWorld | World, **columns: Any) -> None:
    TopicRules.objects.update_or_create(cluster=world.cluster, defaults=columns or RULES)


@pytest.mark.parametrize(
    ("typed", "field", "code"),
    [
        ({"names": "team.bills\nBills"}, "names", RuleReasonCode.NAME),
        ({"factor": "2"}, "factor", RuleReasonCode.FACTOR),
        ({"placement": "typed", "assignment": "1:2,2:3"}, "assignment", RuleReasonCode.FACTOR),
        ({"configs": "min.insync.replicas=2\ncleanup.policy=compact"}, "configs", RuleReasonCode.KEY),
        ({"configs": "min.insync.replicas=1"}, "configs", RuleReasonCode.VALUE),
        ({"configs": "min.insync.replicas=2\nretention.ms=soon"}, "configs", RuleReasonCode.VALUE),
        ({"configs": "min.insync.replicas=2\nretention.ms=-1"}, "configs", RuleReasonCode.VALUE),
        ({"configs": ""}, "configs", RuleReasonCode.INHERITED),
    ],
)
def test_new_topic__breaks_a_rule__is_an_error_of_its_field(
    client: Client, world: ConfigWorld, typed: dict[str, str], field: str, code: StrEnum
) -> None:
    rule(world)
    response = client.post(NEW, {**TYPED, **typed})
    assert response.status_code == 400
    assert f"#id_{field}" in [link.attributes["href"] for link in Page.read(response).find("#wrong a")]
    assert code in response.content.decode()
    assert not ChangeRequest.objects.exists()


def test_new_topic__inherited_value_is_unknown__has_to_be_set(client: Client, world: ConfigWorld) -> None:
    rule(world)
    ConfigCatalog.objects.update(topics={}, brokers={MIN_ISR: [3, False, False, ["2", "static"]]})
    refused = client.post(NEW, {**TYPED, "configs": ""})
    assert "min.insync.replicas" not in Page.read(refused).texts("#wrong")[0], "the brokers tell it"
    assert RuleReasonCode.INHERITED_UNKNOWN in refused.content.decode()
    kept = client.post(NEW, {**TYPED, "configs": f"{TYPED['configs']}\nretention.ms={HOUR}"})
    assert kept.status_code == 302
    change = ChangeRequest.objects.get()
    assert check_items(change, world.clock).checks[1].result is CheckResult.PASSED
    ConfigCatalog.objects.update(topics=TOPIC_KEYS)
    CollectorRun.objects.filter(kind=CollectorKind.CONFIGS).update(succeeded_at=world.clock - timedelta(hours=1))
    refused = client.post(NEW, {**TYPED, "names": "team.dues"})
    assert RuleReasonCode.INHERITED_UNKNOWN in refused.content.decode(), "read too long ago"


@pytest.mark.parametrize(
    ("address", "sent", "code"),
    [
        (TOPIC, {"value:retention.ms": "60000"}, RuleReasonCode.VALUE),
        (TOPIC, {"value:min.insync.replicas": "", "was:min.insync.replicas": "2"}, RuleReasonCode.INHERITED),
        (TOPIC, {"value:cleanup.policy": "compact"}, RuleReasonCode.KEY),
        (DEFAULT, {"value:log.cleaner.threads": "2"}, RuleReasonCode.KEY),
        (BULK, {"key": RETENTION, "value": "60000", "pattern": ".*"}, RuleReasonCode.VALUE),
        (BULK, {"key": "cleanup.policy", "value": "compact", "pattern": ".*"}, RuleReasonCode.KEY),
    ],
)
def test_config__breaks_a_rule__is_refused(
    client: Client, world: ConfigWorld, address: str, sent: dict[str, str], code: StrEnum
) -> None:
    rule(world)
    response = client.post(address, sent)
    assert response.status_code == 400
    assert code in response.content.decode()
    assert not ChangeRequest.objects.exists()


def test_command__breaks_a_rule__is_refused(world: ConfigWorld, by: list[str]) -> None:  # noqa: F811
    rule(world)
    assert_refused(run("configs", "set", f"{RETENTION}=60000", *ORDERS, *by), RuleReasonCode.VALUE)
    assert not ChangeRequest.objects.exists()


def test_plan_form__factor_outside_the_rules__is_an_error_of_its_field(
    world: ConfigWorld,
    wizard: Wizard,  # noqa: F811
) -> None:
    rule(world)
    answer = wizard.begins(world.cluster, SET_RF).sends("what", {"factor": "2"})
    assert RuleReasonCode.FACTOR in answer.content.decode()
    assert wizard.change.input.get("factor") is None


def test_config__that_a_rule_forbids__has_no_field(client: Client, world: ConfigWorld) -> None:
    rule(world)
    page = Page.read(client.get(TOPIC))
    assert "value:cleanup.policy" not in [each.attributes["name"] for each in page.find("input.mono")]
    assert "not allowed by the topic rules" in page.html


def test_plan__items_that_break_a_rule__are_left_out_and_told(world: ConfigWorld) -> None:
    rule(world, topic_scope=KeyScope.ONLY, topic_keys=[RETENTION])
    ids = {"of": "topic", "ids": ["id-of-orders", "id-of-clicks"]}
    edits = [{**ids, "key": RETENTION, "value": "60000"}, {**ids, "key": MIN_ISR, "value": None}]
    draft = world.draft({"edits": edits})
    assert {item.content["key"] for item in items_of(draft)} == {RETENTION}
    [note] = draft.left_out
    assert (note["code"], note["params"]["items"]) == (RuleErrorCode.LEFT_OUT, 2)


def test_rules_are_tightened__neither_submitted_nor_approved_nor_started(world: ConfigWorld) -> None:
    draft, proposed = (world.draft(world.edit(topic, RETENTION, "60000")) for topic in ("clicks", "orders"))
    proposed = services.submit(proposed, world.operator, why="It was found.", version=proposed.version)
    queued = world.queue_edit(value="70000")
    rule(world)
    [check] = [check for check in check_items(draft, world.clock).checks if check.code == "topic_rules"]
    assert (check.result, check.problem_count) == (CheckResult.FAILED, 1)
    with raises_code(ChangeErrorCode.PLAN_NO_LONGER_FITS, ChangeRefused):
        services.submit(draft, world.operator, why="It was found.", version=draft.version)
    started = world.step(queued)
    assert (started.state, world.requests) == ("stale", 0)
    assert started.stale_reasons[0]["params"]["why"]["code"] == RuleReasonCode.VALUE
    recheck(world.cluster.pk, datetime.now(UTC))
    proposed.refresh_from_db()
    assert (proposed.state, proposed.stale_reasons[0]["code"]) == ("stale", RuleErrorCode.BROKEN)


def test_queued__nobody_can_tell_whether_a_rule_is_kept__waits(world: ConfigWorld) -> None:
    world.kind = CREATION
    change = world.queue(WANTED)
    rule(world, min_isr_least=1)
    ConfigCatalog.objects.update(topics={})
    change = world.step(change)
    assert change.state == "queued"
    assert RuleReasonCode.INHERITED_UNKNOWN not in str(world.run(change).blocked)
    assert "The inherited value of min.insync.replicas is unknown" in str(world.run(change).blocked)


def test_name__that_takes_too_long_to_match__is_unknown(world: ConfigWorld) -> None:
    world.kind = CREATION
    draft = world.draft({**WANTED, "names": ["a" * 249]})
    rule(world, name_pattern=SLOW)
    with mock.patch.object(name_match, "TIME_S", 0.05):
        [check] = [check for check in check_items(draft, world.clock).checks if check.code == "topic_rules"]
        assert not plan_items(short_kind(CREATION), world.cluster, draft.input).items, "left out of a new plan"
    assert (check.result, check.problems[0].params["why"].code) == (CheckResult.UNKNOWN, RuleReasonCode.NAME_UNJUDGED)


def test_rollback__restores_a_value_outside_the_rules__and_says_so(world: ConfigWorld) -> None:
    world.set_value("orders", RETENTION, "60000")
    change = world.until(world.queue_edit(value=str(HOUR)), "done")
    rule(world)
    world.set_value("orders", RETENTION, str(HOUR))
    draft = propose_rollback(change, world.operator)
    [check] = [check for check in check_items(draft, world.clock).checks if check.code == "topic_rules"]
    assert (check.result, check.title.code, len(check.problems)) == (CheckResult.PASSED, RuleCheckTitle.RESTORED, 1)
    copy = services.copy(draft, world.operator)
    assert not items_of(copy), "a copy is no rollback"


def test_reassignment__factor_outside_the_rules__fails_and_is_not_started(runs: World, operator: User) -> None:  # noqa: F811
    rows = [PartitionMove("clicks", "id-of-clicks", 0, (3, 5), (3, 5, 6))]
    change = runs.queue(operator, rows)
    rule(runs, factor_most=2)
    [check] = [c for c in run_stored_checks(change, datetime.now(UTC)).checks if c.code == "topic_rules"]
    assert (check.result, check.problems[0].params["why"].code) == (CheckResult.FAILED, RuleReasonCode.FACTOR)
    runs.step()
    assert (runs.change().state, runs.kafka.sent) == (RequestState.STALE, [])
    change.input = {"mode": ROLLBACK, "of": 1}
    [check] = [c for c in run_stored_checks(change, datetime.now(UTC)).checks if c.code == "topic_rules"]
    assert check.result is CheckResult.PASSED
