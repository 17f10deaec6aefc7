"""Consumer groups of both protocols, their members, and what they have committed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from kafkadash.kafka.connection import Connection
from kafkadash.kafka.port import KafkaFailure, NotAuthorized
from kafkadash.kafka.wire_client import WireClient
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_groups import (
    DESCRIBE_CONSUMER_GROUPS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    LIST_GROUPS,
    OFFSET_FETCH,
    FakeMember,
)
from tests.hostile_member import HOSTILE_ASSIGNMENTS

pytestmark = pytest.mark.contract

DEADLINE = 5.0
Versions = dict[int, tuple[int, int] | None]

OFFERED: dict[str, Versions] = {
    "newest": {},
    "Kafka 2.8": {
        LIST_GROUPS: (0, 4),
        DESCRIBE_GROUPS: (0, 5),
        DESCRIBE_CONSUMER_GROUPS: None,
        FIND_COORDINATOR: (0, 3),
        OFFSET_FETCH: (1, 7),
    },
    "Kafka 1.0": {
        LIST_GROUPS: (0, 1),
        DESCRIBE_GROUPS: (0, 1),
        DESCRIBE_CONSUMER_GROUPS: None,
        FIND_COORDINATOR: (0, 1),
        OFFSET_FETCH: (1, 3),
    },
}


@pytest.fixture
def admin(fake: FakeKafka, connect: Callable[[Connection], WireClient]) -> WireClient:
    fake.model.add_topic("t", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], records=100)
    return connect(Connection("fake", 1, fake.bootstrap_servers))


@pytest.mark.parametrize("offered", OFFERED)
def test_brokers_of_all_ages_tell_the_same_of_classic_groups(fake: FakeKafka, admin: WireClient, offered: str) -> None:
    fake.versions.update(OFFERED[offered])
    member = FakeMember("m-1", "billing", {"t": (0, 2)}, instance="static" if offered != "Kafka 1.0" else None)
    fake.model.add_group("busy", members=[member], committed={"t": {0: 7, 2: 100}})
    fake.model.add_group("left", committed={"t": {1: 5}})
    fake.model.add_group("bare", protocol_type="", committed={"t": {1: 9}})
    fake.model.add_group("connect", protocol_type="connect")

    answer = admin.groups(deadline=DEADLINE)
    committed = admin.committed(answer.groups, deadline=DEADLINE)

    assert not answer.errors
    assert {(g.name, g.type, g.state, g.protocol_type, g.assignor) for g in answer.groups.values()} == {
        ("busy", "Classic", "Stable", "consumer", "range"),
        ("left", "Classic", "Empty", "consumer", ""),
        ("bare", "Classic", "Empty", "", ""),
    }
    [told] = answer.groups["busy"].members or ()
    assert (told.member_id, told.client_id, told.host) == ("m-1", "billing", "127.0.0.1")
    assert (told.instance_id, dict(told.assigned)) == (member.instance, {"t": (0, 2)})
    for name in ("left", "bare"):
        members = answer.groups[name].members
        assert members is not None
        assert not members
    assert {name: group.coordinator for name, group in answer.groups.items()} == {
        name: fake.model.groups.all[name].coordinator for name in ("busy", "left", "bare")
    }
    assert committed.offsets == {"busy": {"t": {0: 7, 2: 100}}, "left": {"t": {1: 5}}, "bare": {"t": {1: 9}}}
    assert not committed.errors


def test_groups_of_the_newer_protocol_are_described_by_their_own_request(fake: FakeKafka, admin: WireClient) -> None:
    member = FakeMember("uuid", "billing", {"t": (1,)}, instance="static")
    fake.model.add_group("new", type="consumer", assignor="uniform", members=[member])
    fake.model.add_group("shared", type="share", protocol_type="share", members=[member])

    listed = admin.groups(deadline=DEADLINE)
    [group] = listed.groups.values()

    [other] = listed.others.values()
    assert (other.name, other.kind) == ("shared", "share")
    assert (group.name, group.type, group.state, group.assignor) == ("new", "Consumer", "Stable", "uniform")
    [told] = group.members or ()
    assert (told.member_id, told.instance_id, dict(told.assigned)) == ("uuid", "static", {"t": (1,)})


def test_a_permission_that_is_missing_is_told_beside_what_is_not_hidden(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_group("mine", committed={"t": {0: 1}})
    fake.model.add_group("theirs", committed={"t": {0: 1}})
    fake.model.groups.hidden.add("theirs")

    committed = admin.committed(["mine", "theirs"], deadline=DEADLINE)

    assert committed.offsets == {"mine": {"t": {0: 1}}}
    assert "Describe on the group" in committed.errors["theirs"].text


def test_brokers_that_refuse_to_list_are_a_failure_of_the_call(fake: FakeKafka, admin: WireClient) -> None:
    fake.denied.add(LIST_GROUPS)

    with pytest.raises(NotAuthorized, match="Describe on the cluster"):
        admin.groups(deadline=DEADLINE)


def test_nobody_who_answers_is_a_failure_of_each_call(fake: FakeKafka, admin: WireClient) -> None:
    for broker in (1, 2, 3):
        fake.kill(broker)

    for ask in (
        lambda: admin.groups(deadline=1.0),
        lambda: admin.committed(["g"], deadline=1.0),
        lambda: admin.log_spans({"t": [0]}, deadline=1.0),
    ):
        with pytest.raises(KafkaFailure):
            ask()


def test_nothing_asked_is_nothing_answered(fake: FakeKafka, admin: WireClient) -> None:
    committed = admin.committed([], deadline=DEADLINE)
    spans = admin.log_spans({}, deadline=DEADLINE)

    assert (committed.offsets, committed.errors, spans.spans, spans.errors) == ({}, {}, {}, {})
    assert FIND_COORDINATOR not in fake.requests  # Kafka makes its offsets topic when it is first asked


def test_members_whose_assignment_is_in_other_bytes_are_told_without_it(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_group("odd", members=[FakeMember("m", "c", {}, raw=b"\x00\x01\xff")])

    group = admin.groups(deadline=DEADLINE).groups["odd"]

    assert group.error is not None
    assert "consumer protocol" in group.error.text
    assert [dict(member.assigned) for member in group.members or ()] == [{}]


@pytest.mark.parametrize(
    "raw",
    HOSTILE_ASSIGNMENTS,
    ids=["moves backwards", "NUL in a topic", "slash in a topic"],
)
def test_members__hostile_assignment__costs_itself_only(fake: FakeKafka, admin: WireClient, raw: bytes) -> None:
    fake.model.add_group(
        "g", members=[FakeMember("bad", "c\x00", {}, raw=raw), FakeMember("good", "c", {"orders": (0,)})]
    )

    began = time.thread_time()
    group = admin.groups(deadline=DEADLINE).groups["g"]

    assert time.thread_time() - began < 1
    assert group.error is not None
    assert {member.member_id: dict(member.assigned) for member in group.members or ()} == {
        "bad": {},
        "good": {"orders": (0,)},
    }
    assert {member.client_id for member in group.members or ()} == {"c\N{REPLACEMENT CHARACTER}", "c"}


def test_group__of_500_members_with_a_megabyte_each__costs_itself_only(fake: FakeKafka, admin: WireClient) -> None:
    """Asked together with others, its answer is more than is read; so each is asked for itself in the end."""
    megabyte = bytes(2**20)
    names = [f"small-{number}" for number in range(6)]
    for name in names:
        fake.model.add_group(name, members=[FakeMember("m", "c", {"orders": (0,)})])
    fake.model.add_group("small-2b", members=[FakeMember(f"m-{n}", "c", {}, raw=megabyte) for n in range(500)])

    groups = admin.groups(deadline=60).groups

    assert {name: [dict(member.assigned) for member in groups[name].members or ()] for name in names} == {
        name: [{"orders": (0,)}] for name in names
    }
    assert groups["small-2b"].members is None
    assert groups["small-2b"].error is not None
    assert admin.metadata(deadline=DEADLINE).brokers
