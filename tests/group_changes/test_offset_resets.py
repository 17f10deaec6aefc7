"""New committed offsets of a group, from the plan to the end and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from kafkadash.changes.checks import CheckResult
from kafkadash.changes.errors import ChangeRefused
from kafkadash.core.messages import as_message
from kafkadash.group_changes.reasons import GroupReasonCode
from kafkadash.group_changes.reset import describe_reset, describe_start, find_rights, plan_reset
from kafkadash.kafka.api import ItemError, KafkaUnreachable, TopicPartition
from kafkadash.monitoring.models import GroupState, TopicState
from kafkadash.short_runs import fail_points
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.kinds import ItemWords, items_of
from kafkadash.short_runs.plans import check_items
from kafkadash.short_runs.reasons import ItemReasonCode
from kafkadash.short_runs.rollback import propose_rollback
from tests.group_changes.conftest import GroupWorld
from tests.groups import group_seen, samples
from tests.pages.conftest import figures_of
from tests.raised_codes import raises_code

pytestmark = pytest.mark.django_db


class WorkerKilled(BaseException):
    """Nothing is caught after this."""


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, point: str) -> Iterator[None]:
    def reach(reached: str) -> None:
        if reached == point:
            raise WorkerKilled

    with monkeypatch.context() as patch, suppress(WorkerKilled):
        patch.setattr(fail_points, "_reach", reach)
        yield


def planned(world: GroupWorld, wanted: dict[str, Any]) -> dict[str, list[str]]:
    """Return subject → figures of the offset that it gets."""
    items = plan_reset(world.cluster, wanted).items
    return {item.subject: figures_of(describe_reset(item, None).after) for item in items}


AFTER: dict[str, tuple[dict[str, Any], list[str]]] = {
    "earliest": ({}, ["0", "60"]),
    "latest": ({}, ["100", "40"]),
    "shift": ({"by": -10}, ["50", "10"]),
    "time": ({"at_ms": 1_000}, ["1970", "00:00:01"]),
}


def test_plan__has_the_target_that_stored_rows_tell(world: GroupWorld) -> None:
    for to, (more, after) in AFTER.items():
        told = planned(world, world.wanted(to, **more))
        assert (set(told), told["orders-0"]) == ({"orders-0", "orders-1"}, after)


def test_plan__of_a_topic__has_partitions_without_commit_as_unknown(world: GroupWorld) -> None:
    items = plan_reset(world.cluster, world.wanted("latest", "orders", [0, 2])).items
    assert {item.subject: item.content["committed"] for item in items} == {"orders-0": 60, "orders-2": None}
    assert figures_of(describe_start(items)[0]) == ["40", "0", "1"]
    TopicState.objects.filter(name="orders").delete()
    assert plan_reset(world.cluster, world.wanted("latest")).items == []


def test_run__log_has_grown__commits_the_end_of_now(world: GroupWorld) -> None:
    change = world.queue(world.wanted("latest"))
    world.kafka.known.log("orders", [130, 100, 0, 0, 0])
    change = world.until(change, "done")
    assert world.states(change) == {"orders-0": "done", "orders-1": "unchanged"}
    assert world.run(change).outcome == "clean"
    assert world.commits == {0: 130, 1: 100}


def test_run__to_a_time__commits_the_first_record_since(world: GroupWorld) -> None:
    change = world.until(world.queue(world.wanted("time", at_ms=75)), "done")
    assert world.run(change).outcome == "clean"
    assert world.commits == {0: 75, 1: 75}


@pytest.mark.parametrize("arrives", [True, False])
def test_run__answer_is_lost_and_the_log_grows__the_same_offset_is_committed(world: GroupWorld, arrives: bool) -> None:
    change = world.step(world.queue(world.wanted("latest")))
    world.kafka.lose = arrives
    world.step(change)
    assert world.states(change) == {"orders-0": "lost", "orders-1": "unchanged"}
    world.kafka.lose = None
    world.kafka.known.log("orders", [150] * 5)
    change = world.until(change, "done")
    assert world.states(change) == {"orders-0": "done", "orders-1": "unchanged"}
    assert world.requests == [("commit_offsets", {TopicPartition("orders", 0): 100})] * (1 if arrives else 2)


def test_run__nothing_could_be_sent__is_resolved_anew(world: GroupWorld) -> None:
    change = world.step(world.queue(world.wanted("latest", "orders", [0])))
    world.kafka.fail["commit_offsets"] = KafkaUnreachable(as_message("The coordinator is unknown."))
    world.step(change)
    assert world.states(change) == {"orders-0": "pending"}
    world.kafka.fail.clear()
    world.kafka.known.log("orders", [150] * 5)
    world.until(change, "done")
    assert world.commits[0] == 150


@pytest.mark.parametrize("point", fail_points.POINTS)
def test_run__worker_killed_at_a_point__next_one_settles(
    world: GroupWorld, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    change = world.step(world.queue(world.wanted("earliest")))
    with killed_at(monkeypatch, point):
        world.step(change)
    change = world.until(change, "done")
    assert world.run(change).counts == {"done": 2}
    assert world.commits == {0: 0, 1: 0}


def test_run__kafka_refuses_one__ends_with_exceptions(world: GroupWorld) -> None:
    refused = ItemError(as_message("not authorized"), 29, "TOPIC_AUTHORIZATION_FAILED")
    world.kafka.refuse[TopicPartition("orders", 0)] = refused
    change = world.until(world.queue(world.wanted("earliest")), "done")
    assert world.run(change).counts == {"refused": 1, "done": 1}
    assert world.run(change).outcome == "exceptions"
    assert world.commits == {0: 60, 1: 0}


def test_run__consumer_joins_at_the_instant_of_the_request__is_refused(world: GroupWorld) -> None:
    change = world.step(world.queue(world.wanted("earliest")))

    def join(call: str) -> None:
        if call == "commit_offsets":
            world.group.members = {"c": {"orders": [0]}}

    world.kafka.before = join
    change = world.until(change, "done")
    assert set(world.reasons(change).values()) == {ItemReasonCode.REFUSED_BY_KAFKA}
    assert world.commits == {0: 60, 1: 100}


def test_running__consumer_joins__is_skipped(world: GroupWorld) -> None:
    change = world.step(world.queue(world.wanted("earliest")))
    world.group.members = {"c": {"orders": [0]}}
    change = world.until(change, "done")
    assert set(world.reasons(change).values()) == {GroupReasonCode.ACTIVE}
    assert world.requests == []


SPOILED: dict[GroupReasonCode, Callable[[GroupWorld], object]] = {
    GroupReasonCode.ACTIVE: lambda world: setattr(world.group, "members", {"c": {"orders": [0]}}),
    GroupReasonCode.GONE: lambda world: world.kafka.known.all.clear(),
    GroupReasonCode.OFFSET_MOVED: lambda world: world.commits.update({0: 61}),
    GroupReasonCode.TOPIC_GONE: lambda world: world.kafka.model.topics.pop("orders"),
    GroupReasonCode.TOPIC_RECREATED: lambda world: world.kafka.model.topics.update(orders="another-id"),
    GroupReasonCode.PARTITION_GONE: lambda world: world.kafka.model.partitions.pop(("orders", 0)),
    GroupReasonCode.OUT_OF_LOG: lambda world: world.kafka.known.log("orders", [100] * 5, start=80),
}


@pytest.mark.parametrize("code", SPOILED)
def test_queued__group_or_topic_is_another__turns_stale(world: GroupWorld, code: GroupReasonCode) -> None:
    change = world.queue(world.typed(_0=70))
    SPOILED[code](world)
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == code
    assert world.requests == []


def test_queued__group_cannot_be_described__waits(world: GroupWorld) -> None:
    change = world.queue(world.wanted("latest"))
    world.group.members = None
    assert world.step(change).state == "queued"
    world.group.members = {}
    world.until(change, "done")


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda: GroupState.objects.update(state="Stable"), GroupReasonCode.ACTIVE),
        (lambda: GroupState.objects.all().delete(), GroupReasonCode.GONE),
        (lambda: TopicState.objects.filter(name="orders").delete(), GroupReasonCode.TOPIC_GONE),
        (lambda: TopicState.objects.filter(name="orders").update(topic_id="other"), GroupReasonCode.TOPIC_RECREATED),
    ],
)
def test_draft__stored_rows_are_others__does_not_fit(
    world: GroupWorld, spoil: Callable[[], object], code: GroupReasonCode
) -> None:
    draft = world.draft(world.typed(_0=70))
    spoil()
    check = check_items(draft, world.clock).checks[0]
    assert [problem.params["why"].code for problem in check.problems] == [code]


# ---- rollback


def test_rollback__restores_what_was_committed__and_none(world: GroupWorld) -> None:
    change = world.until(world.queue(world.typed(_0=70, _1=100, _2=5)), "done")
    assert world.commits == {0: 70, 1: 100, 2: 5}
    draft = propose_rollback(change, world.operator)
    assert (draft.origin, draft.origin_word) == (change, "rollback")
    assert propose_rollback(change, world.operator) == draft
    assert {item.subject: describe_reset(item, None) for item in items_of(draft)} == {
        "orders-0": ItemWords("70", "60; replays 10 records"),
        "orders-2": ItemWords("5", "none committed"),
    }
    rights = [(right.operation, right.groups) for right in find_rights(items_of(draft))]
    assert rights == [("Read", ()), ("Read", ("billing",)), ("Delete", ("billing",))]
    fits, told = check_items(draft, world.clock).checks
    assert (fits.problems, told.result) == ((), CheckResult.PASSED)

    back = world.until(world.queue(draft.input), "done")
    assert world.states(back) == {"orders-0": "done", "orders-2": "done"}
    assert world.run(back).outcome == "clean"
    assert world.commits == {0: 60, 1: 100}
    assert [call for call, _ in world.requests] == ["commit_offsets", "commit_offsets", "delete_offsets"]


def test_rollback__stored_rows_have_heard_that_a_consumer_went_on__starts_from_there(world: GroupWorld) -> None:
    change = world.until(world.queue(world.typed(_0=70)), "done")
    GroupState.objects.all().delete()
    group_seen(world.cluster, "billing", {("orders", 0): samples([75] * 3, 25)}, now=datetime.now(UTC))
    [item] = items_of(propose_rollback(change, world.operator))
    assert describe_reset(item, None) == ItemWords("75", "60; replays 15 records")


def test_rollback__consumer_went_on__turns_stale(world: GroupWorld) -> None:
    change = world.until(world.queue(world.typed(_0=70)), "done")
    back = world.queue(propose_rollback(change, world.operator).input)
    world.commits[0] = 75
    world.until_stale(back)
    assert world.commits[0] == 75


def test_rollback__nothing_was_done__is_refused(world: GroupWorld) -> None:
    world.kafka.refuse[TopicPartition("orders", 0)] = ItemError(as_message("no"), 29, "TOPIC_AUTHORIZATION_FAILED")
    change = world.until(world.queue(world.typed(_0=70)), "done")
    with raises_code(ShortRunErrorCode.NO_ROLLBACK, ChangeRefused):
        propose_rollback(change, world.operator)
