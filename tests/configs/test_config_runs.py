"""Changes of configs from the plan to their end, and back: what is sent, what is told, and what no longer fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.checks import ChangeCheck, CheckResult
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest, Policy
from kafkadash.changes.risk import RiskLevel, level_of
from kafkadash.changes.state_machine import WorkflowErrorCode
from kafkadash.clusters.models import ClusterRole, Role
from kafkadash.configs.errors import ConfigErrorCode
from kafkadash.configs.kind import KIND, find_rollback, plan_edits
from kafkadash.configs.reasons import ConfigReasonCode
from kafkadash.core.messages import as_message
from kafkadash.jobs.models import Job
from kafkadash.jobs.runner import attempt_job
from kafkadash.kafka.api import CLUSTER_DEFAULT, ConfigResource, ItemError
from kafkadash.kafka.config_values import UNCLEAN_ELECTION
from kafkadash.monitoring.models import BrokerState, TopicState
from kafkadash.short_runs import fail_points, validation
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.kinds import items_of, short_kind
from kafkadash.short_runs.models import ShortItem
from kafkadash.short_runs.plans import check_items
from kafkadash.short_runs.reasons import ItemReasonCode, ShortRunReasonCode
from kafkadash.short_runs.rollback import propose_rollback
from kafkadash.short_runs.state import PlannedItem
from tests.configs.conftest import MIN_ISR, ORDERS, RETENTION, ConfigWorld
from tests.elections.test_election_runs import killed_at
from tests.raised_codes import raises_code

pytestmark = pytest.mark.django_db
INVALID = ItemError(as_message("Invalid value -2 for configuration retention.ms"), 40, "INVALID_CONFIG")


def words_of(item: PlannedItem) -> tuple[str, str]:
    words = short_kind(KIND).words(item, None)
    return words.before, words.after


def test_plan__of_several_owners__tells_values_and_leaves_out_what_needs_nothing(world: ConfigWorld) -> None:
    every = {"ids": ["id-of-orders", "id-of-clicks", "no-such-id"]}
    edits = [
        {"of": "topic", **every, "key": RETENTION, "value": "60000"},
        {"of": "topic", **every, "key": MIN_ISR, "value": None},
        {"of": "topic", **every, "key": "preallocate", "value": None},
        {"of": "broker", "ids": ["3", "99"], "key": "log.cleaner.threads", "value": "2"},
        {"of": "default", "ids": [""], "key": "log.cleaner.threads", "value": ""},
    ]
    planned = plan_edits(world.cluster, {"edits": edits})
    assert {item.subject: words_of(item) for item in planned.items if "clicks" not in item.subject} == {
        ORDERS: ("604800000 (default)", "60000"),
        "orders: min.insync.replicas": ("2", "removed: 1 (default)"),
        "broker 3: log.cleaner.threads": ("1 (default)", "2"),
        "all brokers: log.cleaner.threads": ("1 (default)", '""'),
    }
    assert {note.code: note.params["configs"] for note in planned.left_out} == {
        ConfigErrorCode.LEFT_OUT_GONE: 4,
        ConfigErrorCode.LEFT_OUT_SAME: 2,
    }


def test_approvals__two_where_kafka_may_elect_uncleanly_by_itself(
    world: ConfigWorld, make_user: Callable[..., User]
) -> None:
    Policy.objects.create(cluster=world.cluster, approvals_high=1, self_approval=True, break_glass=True)
    harmless = world.draft(world.edit("orders", UNCLEAN_ELECTION, "false"))
    draft = world.draft(world.edit("orders", UNCLEAN_ELECTION, "TRUE"))
    assert (harmless.least_approvals, draft.least_approvals) == (1, 2)
    world.set_value("clicks", UNCLEAN_ELECTION, "false")
    removal = world.draft(world.edit("clicks", UNCLEAN_ELECTION, None))
    assert removal.least_approvals == 2, "the default may be another one when it runs"
    change = services.submit(draft, world.operator, why="It has to go on.", version=draft.version)
    assert change.approvals_needed == 2
    for role in (Role.APPROVER, Role.ADMIN):
        ClusterRole.objects.create(user=world.operator, role=role)
    with raises_code(WorkflowErrorCode.OWN_HANDS, ChangeRefused):
        services.approve(change, world.operator, change.digest)
    with raises_code(WorkflowErrorCode.GLASS_NEVER, ChangeRefused):
        services.break_glass(change, world.operator, change.digest, "It burns.")
    states = [services.approve(change, make_user(name, Role.APPROVER), change.digest).state for name in ("ann", "ben")]
    assert states == ["proposed", "approved"]


def test_refresh__plan_needs_two_approvals_by_now(
    world: ConfigWorld, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    world.set_value("orders", UNCLEAN_ELECTION, "true")
    edit, topic = world.edit("orders", UNCLEAN_ELECTION, "true"), {"of": "topic", "ids": ["id-of-orders"]}
    draft = world.draft({"edits": [*edit["edits"], {**topic, "key": RETENTION, "value": "60000"}]})
    change = services.submit(draft, world.operator, why="It has to go on.", version=draft.version)
    assert (change.least_approvals, len(items_of(change))) == (1, 1), "it is set so already"
    world.set_value("orders", UNCLEAN_ELECTION, None)
    ChangeRequest.objects.filter(pk=change.pk).update(state="stale")
    with django_capture_on_commit_callbacks(execute=True):
        services.start_refresh(change, world.operator)
    change.refresh_from_db()
    assert (change.state, change.least_approvals, change.approvals_needed) == ("proposed", 2, 2)


def test_run__sets_and_removes_after_kafka_validated__rollback_restores(world: ConfigWorld) -> None:
    ids = {"of": "topic", "ids": ["id-of-orders"]}
    edits = [{**ids, "key": RETENTION, "value": "60000"}, {**ids, "key": MIN_ISR, "value": None}]
    calls: list[str] = []
    world.kafka.before = calls.append
    change = world.until(world.queue({"edits": edits}), "done")
    assert set(world.states(change).values()) == {"done"}
    assert (world.run(change).outcome, world.requests) == ("clean", 1)
    assert calls.index("validate_configs") < calls.index("alter_configs")
    assert world.kafka.configs[ConfigResource.topic("orders")] == {RETENTION: "60000"}

    draft = propose_rollback(change, world.operator)
    assert propose_rollback(change, world.operator) == draft, "the draft that was begun"
    assert (draft.origin_id, draft.origin_word, draft.kind) == (change.pk, "rollback", KIND)
    assert {item.subject: words_of(item) for item in items_of(draft)} == {
        ORDERS: ("60000", "removed: 604800000 (default)"),
        "orders: min.insync.replicas": ("1 (default)", "2"),
    }
    world.set_value("orders", RETENTION, "60000")
    world.set_value("orders", MIN_ISR, None)
    assert not check_items(draft, world.clock).checks[0].problems
    back = world.until(world.queue(draft.input), "done")
    assert set(world.states(back).values()) == {"done"}
    assert world.kafka.configs[ConfigResource.topic("orders")] == {MIN_ISR: "2"}


def test_rollback__somebody_set_another_value_since__is_left_out(world: ConfigWorld) -> None:
    change = world.until(world.queue_edit(), "done")
    [item] = ShortItem.objects.filter(run__request=change)
    wanted = find_rollback([(PlannedItem(item.subject, item.content), item.before or {})])
    assert len(plan_edits(world.cluster, wanted).items) == 1, "what is stored is from before the run"
    world.set_value("orders", RETENTION, "90000")
    planned = plan_edits(world.cluster, wanted)
    assert (planned.items, [note.code for note in planned.left_out]) == ([], [ConfigErrorCode.LEFT_OUT_CHANGED])


def test_run__of_a_broker_and_the_default__reads_each_where_it_is_set(world: ConfigWorld) -> None:
    key = "log.cleaner.threads"
    edits = [
        {"of": "broker", "ids": ["3"], "key": key, "value": "2"},
        {"of": "default", "ids": [""], "key": key, "value": "4"},
    ]
    change = world.until(world.queue({"edits": edits}), "done")
    assert set(world.states(change).values()) == {"done"}
    assert world.kafka.configs[ConfigResource.broker(3)] == {key: "2"}
    assert world.kafka.configs[CLUSTER_DEFAULT] == {key: "4"}


def test_queued__kafka_refuses_a_value__turns_stale_before_anything_is_sent(world: ConfigWorld) -> None:
    world.kafka.refuse_configs[RETENTION] = INVALID
    change = world.until_stale(world.queue_edit(value="-2"))
    why = change.stale_reasons[0]["params"]["why"]
    assert (why["code"], why["params"]["kafka_code"]) == (ItemReasonCode.REFUSED_BY_KAFKA, 40)
    assert world.requests == 0


def test_draft__kafka_refuses_a_value__is_not_submitted(world: ConfigWorld) -> None:
    def validate() -> ChangeCheck:
        with mock.patch.object(validation, "admin_for", return_value=world.kafka):
            attempt_job(Job.objects.get(kind=validation.JOB, input__artifact=draft.artifact_id).pk)
        return check_items(draft, world.clock).checks[-1]

    draft = world.draft(world.edit("orders", RETENTION, "-2"))
    assert check_items(draft, world.clock).checks[-1].result is CheckResult.UNKNOWN
    world.kafka.refuse_configs[RETENTION] = INVALID
    check = validate()
    assert (check.result, check.lasting, check.figure) == (CheckResult.FAILED, True, "0 of 1")
    with pytest.raises(ChangeRefused) as refused:
        services.submit(draft, world.operator, why="It was found.", version=draft.version)
    assert refused.value.code == ChangeErrorCode.PLAN_NEVER_STARTS

    draft = world.draft(world.edit("orders", MIN_ISR, "1"))
    assert validate().result is CheckResult.PASSED
    assert world.requests == 0
    draft = world.draft(world.edit("clicks", MIN_ISR, "1"))
    world.kafka.lose_configs = False
    assert [problem.code for problem in validate().problems] == [ShortRunErrorCode.NOT_VALIDATED]


def test_queued__kafka_does_not_validate__waits(world: ConfigWorld) -> None:
    change = world.queue_edit()
    world.kafka.lose_configs = True
    change = world.step(change)
    blocked = world.run(change).blocked
    assert blocked is not None
    assert (change.state, blocked.stored_code, world.requests) == ("queued", ShortRunReasonCode.NOT_VALIDATED, 0)
    world.kafka.lose_configs = None
    assert world.until(change, "done").state == "done"


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda w: w.set_value("orders", RETENTION, "90000"), ConfigReasonCode.VALUE_CHANGED),
        (lambda w: w.kafka.model.topics.update(orders="another-id"), ConfigReasonCode.TOPIC_RECREATED),
        (lambda w: w.kafka.model.topics.pop("orders"), ConfigReasonCode.TOPIC_GONE),
    ],
)
def test_queued__owner_is_not_as_approved__turns_stale(
    world: ConfigWorld, spoil: Callable[[ConfigWorld], object], code: ConfigReasonCode
) -> None:
    change = world.queue_edit()
    spoil(world)
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == code
    assert world.requests == 0


@pytest.mark.parametrize("arrives", [True, False])
def test_run__request_times_out__a_reading_tells(world: ConfigWorld, arrives: bool) -> None:
    change = world.step(world.queue_edit())
    world.kafka.lose_configs = arrives
    world.step(change)
    assert world.states(change) == {ORDERS: "lost"}
    world.kafka.lose_configs = None
    change = world.until(change, "done")
    assert world.states(change) == {ORDERS: "done"}
    assert (world.requests, world.value_of("orders", RETENTION)) == (1 if arrives else 2, "60000")


@pytest.mark.parametrize("point", fail_points.POINTS)
def test_run__worker_killed_at_a_point__nothing_is_sent_twice(
    world: ConfigWorld, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    change = world.step(world.queue_edit())
    with killed_at(monkeypatch, point):
        world.step(change)
    change = world.until(change, "done")
    assert (world.states(change), world.requests) == ({ORDERS: "done"}, 1)


def test_run__kafka_refuses_one_topic_and_another_is_changed_meanwhile__is_partial(world: ConfigWorld) -> None:
    edits = [
        {"of": "topic", "ids": ["id-of-orders"], "key": RETENTION, "value": "60000"},
        {"of": "topic", "ids": ["id-of-clicks"], "key": "preallocate", "value": "true"},
        {"of": "default", "ids": [""], "key": "log.cleaner.threads", "value": "2"},
    ]
    change = world.step(world.queue({"edits": edits}))
    world.kafka.refuse_configs[RETENTION] = INVALID
    world.set_value("clicks", "preallocate", "false")
    change = world.until(change, "done")
    assert world.states(change) == {
        ORDERS: "refused",
        "clicks: preallocate": "skipped",
        "all brokers: log.cleaner.threads": "done",
    }
    assert world.run(change).outcome == "exceptions"


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda: TopicState.objects.filter(name="orders").delete(), ConfigReasonCode.TOPIC_GONE),
        (lambda: TopicState.objects.filter(name="orders").update(topic_id="new"), ConfigReasonCode.TOPIC_RECREATED),
        (lambda: TopicState.objects.filter(name="orders").update(config=None), ConfigReasonCode.UNREAD),
        (lambda: TopicState.objects.filter(name="orders").update(replication_factor=2), "min-isr"),
        (lambda: BrokerState.objects.filter(broker_id=3).update(gone_at="2026-01-01T00:00Z"), "broker"),
    ],
)
def test_draft__stored_rows_are_others__does_not_fit(
    world: ConfigWorld, spoil: Callable[[], object], code: str
) -> None:
    edits = world.edit("orders", MIN_ISR, "3")["edits"]
    if code == "broker":
        edits = [{"of": "broker", "ids": ["3"], "key": "log.cleaner.threads", "value": "2"}]
    draft = world.draft({"edits": edits})
    spoil()
    check = check_items(draft, world.clock).checks[0]
    named = {"min-isr": ConfigReasonCode.MIN_ISR_TOO_HIGH, "broker": ConfigReasonCode.BROKER_GONE}
    assert [problem.params["why"].code for problem in check.problems] == [named.get(code, code)]


@pytest.mark.parametrize(
    ("key", "value", "level"),
    [
        (RETENTION, "60000", RiskLevel.MEDIUM),
        (RETENTION, "-1", RiskLevel.LOW),
        (MIN_ISR, None, RiskLevel.MEDIUM),
        ("cleanup.policy", "compact", RiskLevel.MEDIUM),
        ("preallocate", "true", RiskLevel.LOW),
    ],
)
def test_risk__of_values_by_which_records_go__is_higher(
    world: ConfigWorld, key: str, value: str | None, level: RiskLevel
) -> None:
    change = world.queue(world.edit("clicks", key, value))
    assert level_of(ChangeRequest.objects.get(pk=change.pk).risk) is level


@pytest.mark.parametrize("value", ["3", "+3"])
def test_start__a_partition_has_fewer_replicas_than_have_to_be_in_sync__is_not_sent(
    world: ConfigWorld, value: str
) -> None:
    """Stored rows tell the replicas of the widest partition, and may be from before a reassignment."""
    world.kafka.model.partitions["orders", 1].replicas = (1, 2)
    change = world.until_stale(world.queue_edit(MIN_ISR, value))
    assert change.stale_reasons[0]["params"]["why"]["code"] == ConfigReasonCode.MIN_ISR_TOO_HIGH
    assert world.requests == 0
