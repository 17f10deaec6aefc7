"""New topics from the plan to their end: what is sent, what is told of each, and what makes a plan not fit."""

from __future__ import annotations

from typing import Any

import pytest

from kafkadash.changes import services
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.core.messages import as_message
from kafkadash.kafka.api import ConfigResource, ItemChanged, ItemError, KafkaUnreachable
from kafkadash.monitoring.models import BrokerState, TopicState
from kafkadash.short_runs.kinds import Items
from kafkadash.short_runs.reasons import ItemReasonCode, ShortRunReasonCode
from kafkadash.short_runs.state import PlannedItem
from kafkadash.topics.creation import plan_topics
from kafkadash.topics.errors import TopicErrorCode
from kafkadash.topics.placement import MOST_PARTITIONS
from kafkadash.topics.reasons import TopicReasonCode
from kafkadash.topics.requests import send_in_parts, split_by_partitions
from tests.topics.conftest import TWO, TopicWorld

pytestmark = pytest.mark.django_db

DONE = {"bills": "done", "dues": "done"}


def assignments(world: TopicWorld, **wanted: Any) -> dict[str, list[list[int]]]:
    items = plan_topics(world.cluster, {**TWO, **wanted}).items
    return {item.subject: item.content["replicas"] for item in items}


# ---- plan


def test_plan__topics_follow_each_other_in_the_list_of_brokers(world: TopicWorld) -> None:
    assert assignments(world) == {"bills": [[2, 3, 4], [3, 4, 5]], "dues": [[4, 5, 6], [5, 6, 1]]}
    assert assignments(world) == assignments(world), "the same input has the same assignment"


def test_plan__beyond_the_end_of_the_list__followers_are_shifted(world: TopicWorld) -> None:
    [last] = plan_topics(world.cluster, {**TWO, "names": ["bills"], "start": 5, "shift": 0}).items
    [next_turn] = plan_topics(world.cluster, {**TWO, "names": ["bills"], "start": 6, "shift": 0}).items
    assert (last.content["start"], last.content["shift"]) == (5, 0)
    assert (next_turn.content["start"], next_turn.content["shift"]) == (0, 1)


def test_plan__leaves_out_brokers_that_take_no_replicas(world: TopicWorld) -> None:
    BrokerState.objects.filter(broker_id=2).update(fenced=True)
    used = {broker for rows in assignments(world, partitions=12).values() for row in rows for broker in row}
    assert used == {1, 3, 4, 5, 6}


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        ({"broker_id__in": [3, 6]}, TopicErrorCode.RACK_MISSING),
        ({}, None),
    ],
)
def test_plan__some_brokers_without_rack__places_nothing(
    world: TopicWorld, spoil: dict[str, Any], code: TopicErrorCode | None
) -> None:
    """The second case is a cluster where no broker has a rack: racks are not judged there."""
    BrokerState.objects.filter(**spoil).update(rack=None)
    planned = plan_topics(world.cluster, TWO)
    assert [message.code for message in planned.left_out] == ([code] if code else [])
    assert len(planned.items) == (0 if code else 2)


def test_plan__factor_above_the_brokers_of_now__places_nothing(world: TopicWorld) -> None:
    planned = plan_topics(world.cluster, {**TWO, "factor": 7})
    assert (list(planned.items), planned.left_out[0].code) == ([], TopicErrorCode.FACTOR_WRONG)


def test_requests__hold_at_most_what_kafka_takes() -> None:
    many = MOST_PARTITIONS // 2
    items = [
        PlannedItem(f"t-{n}", {"replicas": [[1]] * size}) for n, size in enumerate((many, many, 1, MOST_PARTITIONS))
    ]
    assert [[item.subject for item in part] for part in split_by_partitions(items)] == [
        ["t-0", "t-1"],
        ["t-2"],
        ["t-3"],
    ]


def test_requests__a_later_one_is_not_sent__its_topics_are_waiting_and_the_others_done(world: TopicWorld) -> None:
    items = [PlannedItem(name, {"replicas": [[1]] * MOST_PARTITIONS}) for name in ("a", "b")]
    sent: list[str] = []

    def send(part: Items, seconds: float) -> ItemChanged[str]:
        sent.extend(item.subject for item in part)
        if len(sent) > 1:
            raise KafkaUnreachable(as_message("No broker answers."))
        return ItemChanged(frozenset(sent))

    answer = send_in_parts(items, 10.0, send)
    assert answer.done == {"a"}
    assert {name: error.code for name, error in answer.refused.items()} == {"b": None}, "certainly not sent"
    with pytest.raises(KafkaUnreachable):
        send_in_parts(items, 10.0, send)


# ---- run


def test_run__creates_all_with_one_request_and_verifies(world: TopicWorld) -> None:
    change = world.until(world.queue({**TWO, "configs": {"retention.ms": "60000"}}), "done")
    assert world.states(change) == DONE
    assert world.created == [["bills", "dues"]]
    assert world.run(change).outcome == "clean"
    assert world.kafka.model.partitions["bills", 0].replicas == (2, 3, 4)
    assert world.kafka.configs[ConfigResource.topic("bills")] == {"retention.ms": "60000"}


@pytest.mark.parametrize("arrives", [True, False])
def test_run__answer_is_lost__a_reading_tells(world: TopicWorld, arrives: bool) -> None:
    change = world.step(world.queue(TWO))
    world.kafka.lose = arrives
    world.step(change)
    assert set(world.states(change).values()) == {"lost"}
    world.kafka.lose = None
    change = world.until(change, "done")
    assert world.states(change) == DONE
    assert len(world.created) == (1 if arrives else 2)


def test_run__kafka_says_that_a_topic_exists__a_reading_tells_whose_it_is(world: TopicWorld) -> None:
    """An earlier request may have created it without an answer, or somebody else did at this instant."""
    change = world.step(world.queue(TWO))

    def create_first(call: str) -> None:
        if call == "create_topics" and "bills" not in world.kafka.model.topics:
            world.kafka.model.add_topic("bills", [[2, 3, 4], [3, 4, 5]])
            world.kafka.model.add_topic("dues", [[6]])

    world.kafka.before = create_first
    change = world.until(change, "done")
    assert world.states(change) == {"bills": "done", "dues": "skipped"}
    assert world.reasons(change)["dues"] == TopicReasonCode.EXISTS


def test_run__kafka_refuses_a_config__the_other_topic_is_created(world: TopicWorld) -> None:
    world.kafka.refuse_topics["dues"] = ItemError(as_message("Unknown topic config name"), 40, "INVALID_CONFIG")
    change = world.until(world.queue(TWO), "done")
    assert world.states(change) == {"bills": "done", "dues": "refused"}
    assert world.reasons(change)["dues"] == ItemReasonCode.REFUSED_BY_KAFKA
    assert world.run(change).outcome == "exceptions"


def test_run__no_broker_answers__waits_and_goes_on(world: TopicWorld) -> None:
    change = world.step(world.queue(TWO))
    world.kafka.fail["create_topics"] = KafkaUnreachable(as_message("No broker answers."))
    world.step(change)
    assert world.run(change).error_code == ShortRunReasonCode.NOT_SENT
    del world.kafka.fail["create_topics"]
    assert world.states(world.until(change, "done")) == DONE


def test_run__topic_is_deleted_before_verification__is_told(world: TopicWorld) -> None:
    change = world.until(world.queue(TWO), "verifying")
    del world.kafka.model.topics["dues"]
    world.step(change)
    change = world.step(change, seconds=30)
    assert world.states(change) == {"bills": "done", "dues": "reverted"}


def test_run__topic_may_not_be_described__waits(world: TopicWorld) -> None:
    world.kafka.hidden.add("bills")
    change = world.step(world.queue(TWO))
    assert world.run(change).blocked_code == ShortRunReasonCode.ITEMS_UNREAD


def test_queued__somebody_created_the_topic__turns_stale(world: TopicWorld) -> None:
    change = world.queue(TWO)
    world.kafka.model.add_topic("bills", [[1]])
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == TopicReasonCode.EXISTS
    assert world.created == []


def test_queued__somebody_created_just_this_topic__is_not_created_again(world: TopicWorld) -> None:
    change = world.queue(TWO)
    world.kafka.model.add_topic("bills", [[2, 3, 4], [3, 4, 5]])
    change = world.until(change, "done")
    assert world.states(change) == {"bills": "unchanged", "dues": "done"}


@pytest.mark.parametrize(
    ("configs", "state"),
    [({"retention.ms": "60000"}, "unchanged"), ({"retention.ms": "1"}, "skipped"), ({}, "skipped")],
)
def test_running__a_topic_of_this_name_appears__counts_only_with_the_same_configs(
    world: TopicWorld, configs: dict[str, str], state: str
) -> None:
    change = world.step(world.queue({**TWO, "configs": {"retention.ms": "60000"}}))
    world.kafka.model.add_topic("bills", [[2, 3, 4], [3, 4, 5]])
    world.kafka.configs[ConfigResource.topic("bills")] = configs
    change = world.until(change, "done")
    assert world.states(change) == {"bills": state, "dues": "done"}


# ---- before the start


def refused_by(world: TopicWorld, wanted: dict[str, Any]) -> str:
    draft = world.draft(wanted)
    with pytest.raises(ChangeRefused) as refused:
        services.submit(draft, world.operator, why="New service.", version=draft.version)
    assert refused.value.code == ChangeErrorCode.PLAN_NO_LONGER_FITS
    return str(refused.value.message.params["first"].params["why"].code)


def test_submit__stored_topic_has_the_name__is_refused(world: TopicWorld) -> None:
    assert refused_by(world, {**TWO, "names": ["orders"]}) == TopicReasonCode.EXISTS


def test_submit__stored_topic_has_the_name_in_metrics__is_refused(world: TopicWorld) -> None:
    TopicState.objects.filter(name="orders").update(name="orders.eu")
    assert refused_by(world, {**TWO, "names": ["orders_eu"]}) == TopicReasonCode.COLLIDES


def test_submit__a_broker_has_gone__is_refused(world: TopicWorld) -> None:
    draft = world.draft(TWO)
    BrokerState.objects.filter(broker_id=4).update(fenced=True)
    with pytest.raises(ChangeRefused) as refused:
        services.submit(draft, world.operator, why="New service.", version=draft.version)
    assert refused.value.message.params["first"].params["why"].code == TopicReasonCode.BROKERS_AWAY


def test_approvals__two_where_kafka_may_elect_uncleanly_by_itself(world: TopicWorld) -> None:
    harmless, unclean = (
        world.draft(TWO | {"configs": {"unclean.leader.election.enable": value}}) for value in ("false", "true")
    )
    assert (harmless.least_approvals, unclean.least_approvals) == (1, 2)
