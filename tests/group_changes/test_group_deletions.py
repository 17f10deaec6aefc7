"""Deletion of groups, and of the committed offsets of a topic in a group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import pytest

from kafkadash.group_changes import group_deletion, offset_deletion, reset
from kafkadash.group_changes.errors import GroupErrorCode
from kafkadash.group_changes.reasons import GroupReasonCode
from kafkadash.monitoring.groups.names import key_of, label_group
from kafkadash.monitoring.models import GroupState
from kafkadash.short_runs.kinds import short_kind
from kafkadash.short_runs.plans import check_items
from tests.group_changes.conftest import GroupWorld
from tests.groups import group_seen

pytestmark = pytest.mark.django_db
GROUP = {"groups": ["billing"]}
OFFSETS = {"group": "billing", "topic": "orders"}


@pytest.mark.parametrize("arrives", [None, True, False])
def test_group__is_deleted__also_where_the_answer_is_lost(world: GroupWorld, arrives: bool | None) -> None:
    world.kind = group_deletion.KIND
    change = world.step(world.queue(GROUP))
    world.kafka.lose = arrives
    world.step(change)
    world.kafka.lose = None
    change = world.until(change, "done")
    assert (world.states(change), world.run(change).outcome) == ({"billing": "done"}, "clean")
    assert world.kafka.known.all == {}
    assert len(world.requests) == (2 if arrives is False else 1)


GROUP_SPOILED: dict[GroupReasonCode, Callable[[GroupWorld], object]] = {
    GroupReasonCode.ACTIVE: lambda world: setattr(world.group, "members", {"c": {"orders": [0]}}),
    GroupReasonCode.OFFSETS_MOVED: lambda world: world.commits.update({0: 61}),
}


@pytest.mark.parametrize("code", GROUP_SPOILED)
def test_group__was_used_since__turns_stale(world: GroupWorld, code: GroupReasonCode) -> None:
    world.kind = group_deletion.KIND
    change = world.queue(GROUP)
    GROUP_SPOILED[code](world)
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == code
    assert "billing" in world.kafka.known.all


def test_group__stored_as_active_or_gone__is_left_out(world: GroupWorld) -> None:
    world.kind = group_deletion.KIND
    draft = world.draft(GROUP)
    GroupState.objects.update(state="Stable")
    planned = group_deletion.plan_deletion(world.cluster, GROUP)
    assert (planned.items, len(planned.left_out)) == ([], 1)
    check = check_items(draft, world.clock).checks[0]
    assert [problem.params["why"].code for problem in check.problems] == [GroupReasonCode.ACTIVE]
    assert group_deletion.plan_deletion(world.cluster, {"groups": ["nothing"]}).items == []


STALE: dict[str, Mapping[str, object]] = {
    group_deletion.KIND: GROUP,
    offset_deletion.KIND: OFFSETS,
    reset.KIND: {"group": "billing", "to": "latest", "topic": "", "partitions": []},
}


@pytest.mark.parametrize("kind", STALE)
def test_group__its_own_data_is_stale__is_left_out_and_unknown(world: GroupWorld, kind: str) -> None:
    world.kind = kind
    draft = world.draft(STALE[kind])
    GroupState.objects.update(taken_at=world.clock - timedelta(hours=1))
    planned = short_kind(kind).plan(world.cluster, STALE[kind])
    assert (planned.items, [note.code for note in planned.left_out]) == ([], [GroupErrorCode.DATA_STALE])
    check = check_items(draft, world.clock).checks[0]
    assert (check.result, [each.code for each in check.problems]) == ("unknown", [GroupErrorCode.DATA_STALE])


def test_group__with_a_name_that_nobody_can_type__is_named_by_its_key() -> None:
    assert label_group("billing") == "billing"
    for name in ("", "a/b", "x" * 300):
        assert label_group(name) == f"~{key_of(name)}"


@pytest.mark.parametrize("arrives", [None, True, False])
def test_offsets__are_deleted__also_where_the_answer_is_lost(world: GroupWorld, arrives: bool | None) -> None:
    world.kind = offset_deletion.KIND
    change = world.step(world.queue(OFFSETS))
    world.kafka.lose = arrives
    world.step(change)
    world.kafka.lose = None
    change = world.until(change, "done")
    assert world.states(change) == {"orders-0": "done", "orders-1": "done"}
    assert world.commits == {}


OFFSETS_SPOILED: dict[GroupReasonCode, Callable[[GroupWorld], object]] = {
    GroupReasonCode.SUBSCRIBED: lambda world: setattr(world.group, "members", {"c": {"orders": [0]}}),
    GroupReasonCode.OFFSET_MOVED: lambda world: world.commits.update({0: 61}),
}


@pytest.mark.parametrize("code", OFFSETS_SPOILED)
def test_offsets__topic_is_read_again__turns_stale(world: GroupWorld, code: GroupReasonCode) -> None:
    world.kind = offset_deletion.KIND
    change = world.queue(OFFSETS)
    OFFSETS_SPOILED[code](world)
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == code
    assert world.requests == []


def test_offsets__members_read_another_topic__are_deleted(world: GroupWorld) -> None:
    world.kind = offset_deletion.KIND
    change = world.queue(OFFSETS)
    world.group.members = {"c": {"clicks": [0]}}
    world.kafka.before = lambda call: setattr(world.group, "members", {}) if call == "delete_offsets" else None
    change = world.until(change, "done")
    assert world.run(change).outcome == "clean"


def test_offsets__members_read_the_topic_as_stored__are_left_out(world: GroupWorld) -> None:
    group_seen(world.cluster, "readers", members={"c1": {"orders": [0]}}, now=datetime.now(UTC) - timedelta(seconds=20))
    planned = offset_deletion.plan_deletion(world.cluster, {"group": "readers", "topic": "orders"})
    assert (planned.items, planned.left_out[0].code) == ([], GroupErrorCode.SUBSCRIBED_LEFT_OUT)
