"""``manage.py groups``: what it prints, what it refuses, and the changes it proposes."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from kafkadash.changes.models import ChangeRequest
from kafkadash.group_changes.errors import GroupErrorCode
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.groups.shares import SharePartition
from kafkadash.monitoring.models import GroupState
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.kinds import items_of
from tests.group_changes.conftest import GroupWorld
from tests.groups import group_seen, share_seen
from tests.topics.test_topic_commands import assert_refused, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def by(world: GroupWorld) -> list[str]:
    return ["--user", world.operator.username, "--reason", "The import read too far."]


def test_describe__has_the_columns_of_kafkas_tool(world: GroupWorld) -> None:
    code, said = run("groups", "describe", "billing")
    _, state, head, *rows = said.splitlines()
    assert (code, state, head.split()[:6]) == (
        0,
        "billing: Empty",
        ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"],
    )
    assert [row.split() for row in rows] == [
        ["billing", "orders", "0", "60", "100", "40", "-", "-", "-"],
        ["billing", "orders", "1", "100", "100", "0", "-", "-", "-"],
    ]
    [group] = json.loads(run("groups", "describe", "billing", "--json")[1])["groups"]
    first = {"topic": "orders", "partition": 0, "committed": 60, "log_end": 100, "lag": 40, "member": None}
    assert (group["state"], group["partitions"][0]) == ("Empty", first)
    assert run("groups", "list")[1].splitlines()[1:] == ["billing"]


def test_groups_of_other_types__are_listed_and_described_but_not_changed(world: GroupWorld, by: list[str]) -> None:
    GroupState.objects.update(type="Streams")
    share_seen(
        world.cluster, "queue", [SharePartition("orders", 0, 40, 100, 12), SharePartition("orders", 1, 0, 9, None)]
    )
    assert run("groups", "list")[1].splitlines()[1:] == ["billing", "queue"]
    listed = json.loads(run("groups", "list", "--json")[1])["groups"]
    assert [(group["group"], group["type"]) for group in listed] == [("billing", "Streams"), ("queue", "Share")]
    _, state, head, *rows = run("groups", "describe", "queue")[1].splitlines()
    assert (state, head.split()) == (
        "queue: Stable, share group",
        ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"],
    )
    assert [row.split() for row in rows] == [["queue", "orders", "0", "40", "12"], ["queue", "orders", "1", "0", "-"]]
    [group] = json.loads(run("groups", "describe", "queue", "--json")[1])["groups"]
    assert [each["completed_at_most"] for each in group["partitions"]] == [48, None]
    of_second = {"topic": "orders", "partition": 1, "start": 0, "completed_at_most": None, "log_end": 9, "lag": None}
    assert group["partitions"][1] == of_second
    for wanted in (["delete", "queue"], ["reset-offsets", "queue", "--to-latest"]):
        assert_refused(run("groups", *wanted, *by), GroupErrorCode.NO_COMMITS_OF_TYPE)


def test_changes__are_proposed(world: GroupWorld, by: list[str]) -> None:
    assert run("groups", "reset-offsets", "billing", "--shift-by", "-10", *by)[0] == 0
    reset = ChangeRequest.objects.get()
    assert (reset.state, reset.input["by"], len(items_of(reset))) == ("proposed", -10, 2)
    assert run("groups", "delete", "billing", *by, "--confirm", "billing")[0] == 0
    assert run("groups", "delete-offsets", "billing", "--topic", "orders", *by, "--confirm", "orders")[0] == 0
    assert ChangeRequest.objects.filter(state="proposed").count() == 3


def test_bad_input__is_refused_with_its_code(world: GroupWorld, by: list[str]) -> None:
    assert_refused(run("groups", "describe", "nobody"), CollectionErrorCode.GROUP_NOT_SEEN)
    answer = run("groups", "reset-offsets", "billing", "--to-offset", "orders-0=101", *by)
    assert_refused(answer, ShortRunErrorCode.NOT_PROPOSED)
    assert f"({GroupErrorCode.DOES_NOT_FIT}" in answer[1]
    assert_refused(run("groups", "delete", "billing", *by), ShortRunErrorCode.NOT_CONFIRMED)


def test_delete__of_a_group_with_members__is_refused_with_the_reason(world: GroupWorld, by: list[str]) -> None:
    group_seen(world.cluster, "busy", state="Stable", now=datetime.now(UTC))
    answer = run("groups", "delete", "billing", "busy", *by, "--confirm", "billing")
    assert_refused(answer, GroupErrorCode.NOT_EMPTY_LEFT_OUT)
    assert not ChangeRequest.objects.exists()
