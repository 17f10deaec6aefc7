"""Consumer groups of both protocols, their members, and what they have committed.

Groups, commits and log spans while coordinators and leaders move, load, die, or say nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafkadash.kafka import connections
from kafkadash.kafka.api import (
    TRANSACTIONS_TOPIC,
    ClusterConnection,
    CoordinatedTransaction,
    CoordinatedTransactions,
    DeadlineExceeded,
    KafkaFailure,
    KafkaUnreachable,
    NotAuthorized,
    OpenTransaction,
    OtherGroup,
    ShareOffset,
)
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.mutations import WireClient
from tests.contract.fake_answers import DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_OFFSETS, METADATA
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_groups import (
    DESCRIBE_CONSUMER_GROUPS,
    DESCRIBE_GROUPS,
    DESCRIBE_SHARE_GROUPS,
    DESCRIBE_SHARE_OFFSETS,
    DESCRIBE_STREAMS_GROUPS,
    FIND_COORDINATOR,
    LIST_GROUPS,
    OFFSET_FETCH,
    FakeMember,
)
from tests.contract.timing import in_time
from tests.hostile_member import HOSTILE_ASSIGNMENTS
from tests.raised_codes import raises_code
from tests.waiting import wait_until

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
def admin(fake: FakeKafka, connect: Callable[[ClusterConnection], WireClient]) -> WireClient:
    fake.model.add_topic("t", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], records=100)
    return connect(ClusterConnection("fake", 1, fake.bootstrap_servers))


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

    listed = admin.groups(deadline=DEADLINE)
    [group] = listed.groups.values()

    assert (group.name, group.type, group.state, group.assignor) == ("new", "Consumer", "Stable", "uniform")
    [told] = group.members or ()
    assert (told.member_id, told.instance_id, dict(told.assigned)) == ("uuid", "static", {"t": (1,)})


def test_share_groups__are_described_with_start_offsets_and_lag(fake: FakeKafka, admin: WireClient) -> None:
    shared = {"t": {0: (40, 12), 1: (0, -1), 2: (-1, -1)}}
    members = [FakeMember(f"m-{number}", "picker", {"t": (0, 1)}) for number in range(2)]
    fake.model.add_group("shared", type="share", protocol_type="share", members=members, shared=shared)
    fake.model.add_group("idle", type="share", protocol_type="share")

    others = admin.groups(deadline=DEADLINE).others
    offsets = admin.share_offsets([*others, "gone"], deadline=DEADLINE)

    assert {name: (g.kind, g.state, g.is_share) for name, g in others.items()} == {
        "shared": ("share", "Stable", True),
        "idle": ("share", "Empty", True),
    }
    assert [(m.member_id, dict(m.assigned)) for m in others["shared"].members or ()] == [
        ("m-0", {"t": (0, 1)}),
        ("m-1", {"t": (0, 1)}),
    ]
    assert others["idle"].members == ()
    assert offsets.offsets == {
        "shared": {"t": {0: ShareOffset(40, 12), 1: ShareOffset(0, None), 2: ShareOffset(None, None)}},
        "idle": {},
        "gone": {},
    }
    assert {name: error.name for name, error in offsets.errors.items()} == {"shared": "UNKNOWN_TOPIC_OR_PARTITION"}


def test_share_group__of_a_broker_that_does_not_tell_more__is_listed(fake: FakeKafka, admin: WireClient) -> None:
    """Kafka 4.0 offers a first version of the request, which was removed; it tells no lag either."""
    fake.versions.update({DESCRIBE_SHARE_GROUPS: (0, 0), DESCRIBE_SHARE_OFFSETS: (0, 0)})
    member = FakeMember("m", "picker", {"t": (0,)})
    fake.model.add_group("shared", type="share", protocol_type="share", members=[member], shared={"t": {0: (4, 9)}})

    [other] = admin.groups(deadline=DEADLINE).others.values()
    offsets = admin.share_offsets(["shared"], deadline=DEADLINE)

    assert (other.kind, other.state, other.members) == ("share", "Stable", None)
    assert other.error is not None
    assert other.error.message.code == KafkaErrorCode.NOT_OFFERED
    assert offsets.offsets == {"shared": {"t": {0: ShareOffset(4, None)}}}


def test_streams_group__members_are_assigned_the_source_partitions_that_exist(
    fake: FakeKafka, admin: WireClient
) -> None:
    fake.model.add_topic("small", [[1, 2, 3]])
    member = FakeMember("m", "orders-app", {"t": (0, 2)}, instance="static")
    fake.model.add_group(
        "app",
        type="streams",
        protocol_type="streams",
        members=[member],
        sources=("t", "small", "bad\x00name"),
        committed={"t": {0: 7}},
    )

    group = admin.groups(deadline=DEADLINE).groups["app"]
    named = admin.describe_groups(["app"], deadline=DEADLINE)

    assert (group.type, group.state, group.error) == ("Streams", "Stable", None)
    [told] = group.members or ()
    assert (told.instance_id, dict(told.assigned)) == ("static", {"t": (0, 2), "small": (0,)})
    assert named == {"app": group}
    assert admin.committed(["app"], deadline=DEADLINE).offsets == {"app": {"t": {0: 7}}}


def test_group_of_a_type_from_a_newer_broker__is_named(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_group("new", type="Quantum\x00", protocol_type="quantum", state="Entangled")

    listed = admin.groups(deadline=DEADLINE)

    assert listed.groups == {}
    assert listed.others == {"new": OtherGroup("new", "quantum\N{REPLACEMENT CHARACTER}", "Entangled")}


def test_a_permission_that_is_missing_is_told_beside_what_is_not_hidden(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_group("mine", committed={"t": {0: 1}})
    fake.model.add_group("theirs", committed={"t": {0: 1}})
    fake.model.groups.hidden.add("theirs")

    committed = admin.committed(["mine", "theirs"], deadline=DEADLINE)

    assert committed.offsets == {"mine": {"t": {0: 1}}}
    assert "Describe on the group" in committed.errors["theirs"].text


def test_brokers_that_refuse_to_list_are_a_failure_of_the_call(fake: FakeKafka, admin: WireClient) -> None:
    fake.denied.add(LIST_GROUPS)

    with raises_code(KafkaErrorCode.CALL_FORBIDDEN, NotAuthorized, request="ListGroups"):
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


SHORT = 2.0
PLACEMENT = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


@pytest.fixture
def watching_admin(fake: FakeKafka, connect: Callable[[ClusterConnection], WireClient]) -> WireClient:
    fake.model.add_topic("t", PLACEMENT, records=100)
    return connect(ClusterConnection("fake", 1, fake.bootstrap_servers))


def test_a_coordinator_that_moved_is_found_again(fake: FakeKafka, watching_admin: WireClient) -> None:
    fake.model.add_group("g", coordinator=2, committed={"t": {0: 7}})
    fake.model.groups.rumours["g"] = [1, 3]

    committed = watching_admin.committed(["g"], deadline=DEADLINE)

    assert committed.offsets == {"g": {"t": {0: 7}}}
    assert not committed.errors
    assert fake.requests[FIND_COORDINATOR] == 3


def test_share_group__coordinator_that_moved_or_does_not_answer__is_found_again_or_told(
    fake: FakeKafka, watching_admin: WireClient
) -> None:
    for name, broker in (("moved", 2), ("silent", 1)):
        fake.model.add_group(name, type="share", coordinator=broker, shared={"t": {0: (4, 9)}})
    fake.model.groups.rumours["moved"] = [3]
    fake.freeze(1)
    try:
        with in_time(2 * SHORT):
            told = watching_admin.share_offsets(["moved", "silent"], deadline=2 * SHORT)
    finally:
        fake.thaw(1)

    assert told.offsets == {"moved": {"t": {0: ShareOffset(4, 9)}}}
    assert told.errors.keys() == {"silent"}


def test_a_coordinator_that_is_named_wrongly_for_ever_is_an_error_within_the_deadline(
    fake: FakeKafka, watching_admin: WireClient
) -> None:
    fake.model.add_group("moving", coordinator=2)
    fake.model.add_group("steady", coordinator=3, committed={"t": {0: 7}})
    fake.model.groups.rumours["moving"] = [1] * 1000

    with in_time(SHORT):
        committed = watching_admin.committed(["moving", "steady"], deadline=SHORT)

    assert committed.offsets == {"steady": {"t": {0: 7}}}
    assert committed.errors["moving"].name == "NOT_COORDINATOR"


def test_a_coordinator_that_loads_is_asked_again(fake: FakeKafka, watching_admin: WireClient) -> None:
    fake.model.add_group("g", coordinator=2, members=[FakeMember("m", "c", {"t": (0,)})], committed={"t": {0: 7}})
    fake.model.groups.loading[2] = 2

    groups = watching_admin.groups(deadline=DEADLINE)
    fake.model.groups.loading[2] = 2
    committed = watching_admin.committed(["g"], deadline=DEADLINE)

    assert not groups.errors
    assert groups.groups["g"].state == "Stable"
    assert committed.offsets == {"g": {"t": {0: 7}}}


def test_a_coordinator_that_loads_for_long_is_missing_and_says_why(fake: FakeKafka, watching_admin: WireClient) -> None:
    fake.model.add_group("slow", coordinator=2)
    fake.model.add_group("steady", coordinator=3, committed={"t": {0: 7}})
    fake.model.groups.loading[2] = 1000

    with in_time(SHORT):
        groups = watching_admin.groups(deadline=SHORT)
    with in_time(SHORT):
        committed = watching_admin.committed(["slow", "steady"], deadline=SHORT)

    assert groups.groups.keys() == {"steady"}
    assert groups.errors[2].name == "COORDINATOR_LOAD_IN_PROGRESS"
    assert committed.offsets.keys() == {"steady"}
    assert committed.errors["slow"].name == "COORDINATOR_LOAD_IN_PROGRESS"


def test_an_offsets_partition_without_a_leader_costs_its_groups_only(
    fake: FakeKafka, watching_admin: WireClient
) -> None:
    fake.model.add_group("homeless", coordinator=2)
    fake.model.add_group("steady", coordinator=3, committed={"t": {0: 7}})
    fake.model.groups.homeless.add("homeless")

    with in_time(SHORT):
        committed = watching_admin.committed(["homeless", "steady"], deadline=SHORT)

    assert committed.offsets == {"steady": {"t": {0: 7}}}
    assert committed.errors["homeless"].name == "COORDINATOR_NOT_AVAILABLE"


def test_a_group_deleted_between_listing_and_describing_is_not_there(
    fake: FakeKafka, watching_admin: WireClient
) -> None:
    member = FakeMember("m", "c", {"t": (0,)})
    fake.model.add_group("old", members=[member])
    fake.model.add_group("new", type="consumer", members=[member])
    fake.model.add_group("app", type="streams", members=[member])
    fake.model.add_group("shared", type="share", members=[member])
    fake.model.add_group("kept", members=[member])
    fake.model.groups.deleted_on = {
        DESCRIBE_GROUPS: "old",
        DESCRIBE_CONSUMER_GROUPS: "new",
        DESCRIBE_STREAMS_GROUPS: "app",
        DESCRIBE_SHARE_GROUPS: "shared",
    }

    groups = watching_admin.groups(deadline=DEADLINE)

    assert groups.groups.keys() == {"kept"}
    assert not groups.others
    assert not groups.errors


def test_a_group_deleted_before_its_commits_are_read_has_none(fake: FakeKafka, watching_admin: WireClient) -> None:
    fake.model.add_group("gone", committed={"t": {0: 7}})
    fake.model.groups.deleted_on = {OFFSET_FETCH: "gone"}

    committed = watching_admin.committed(["gone"], deadline=DEADLINE)

    assert (committed.offsets, committed.errors) == ({"gone": {}}, {})


def test_a_group_converted_between_listing_and_describing_is_described(
    fake: FakeKafka, watching_admin: WireClient
) -> None:
    member = FakeMember("m", "c", {"t": (0,)})
    fake.model.add_group("back", type="consumer", members=[member])
    fake.model.add_group("forth", type="classic", members=[member])
    fake.model.groups.converted_on = {DESCRIBE_CONSUMER_GROUPS: "back", DESCRIBE_GROUPS: "forth"}

    groups = watching_admin.groups(deadline=DEADLINE).groups

    assert {name: (group.type, len(group.members or ())) for name, group in groups.items()} == {
        "back": ("Classic", 1),
        "forth": ("Consumer", 1),
    }


def test_a_silent_broker_costs_its_own_groups(fake: FakeKafka, watching_admin: WireClient) -> None:
    fake.model.add_group("silent", coordinator=2, committed={"t": {0: 7}})
    fake.model.add_group("steady", coordinator=3, committed={"t": {0: 8}})
    watching_admin.log_spans({"t": [0, 1, 2]}, deadline=DEADLINE)
    fake.freeze(2)
    try:
        with in_time(SHORT):
            groups = watching_admin.groups(deadline=SHORT)
        with in_time(SHORT):
            committed = watching_admin.committed(["silent", "steady"], deadline=SHORT)
        with in_time(SHORT):
            spans = watching_admin.log_spans({"t": [0, 1, 2]}, deadline=SHORT)
    finally:
        fake.thaw(2)

    assert groups.groups.keys() == {"steady"}
    assert groups.errors.keys() == {2}
    assert committed.offsets == {"steady": {"t": {0: 8}}}
    assert committed.errors["silent"].message.code == KafkaErrorCode.NODE_TOO_SLOW
    assert spans.spans["t"].keys() == {0, 2}
    assert spans.errors["t"][1].message.code == KafkaErrorCode.NODE_TOO_SLOW


def test_a_leader_that_moved_is_found_again(fake: FakeKafka, watching_admin: WireClient) -> None:
    fake.cached.discard(METADATA)
    fake.model.delete_records("t", 1, 10)
    fake.model.rumours["t", 1] = [3, 1]

    spans = watching_admin.log_spans({"t": [0, 1, 2]}, deadline=DEADLINE)

    assert {index: span[:2] for index, span in spans.spans["t"].items()} == {0: (0, 100), 1: (10, 100), 2: (0, 100)}
    assert not spans.errors


def test_a_leader_that_died_is_succeeded_within_the_deadline(fake: FakeKafka, watching_admin: WireClient) -> None:
    watching_admin.log_spans({"t": [0, 1, 2]}, deadline=DEADLINE)
    fake.dies_on[2] = LIST_OFFSETS
    fence = threading.Timer(0.5, lambda: fake.model.fence(2))
    fence.start()

    with in_time(DEADLINE):
        spans = watching_admin.log_spans({"t": [0, 1, 2]}, deadline=DEADLINE)

    fence.join()
    assert spans.spans["t"].keys() == {0, 1, 2}


def test_what_consumers_can_read_ends_at_the_high_watermark(fake: FakeKafka, watching_admin: WireClient) -> None:
    fake.model.append_to_leader("t", 0, 50)

    assert watching_admin.log_spans({"t": [0]}, deadline=DEADLINE).spans["t"][0][:2] == (0, 100)


def test_partitions_nobody_leads_or_nobody_knows_are_errors_at_once(
    fake: FakeKafka, watching_admin: WireClient
) -> None:
    fake.model.add_topic("alone", [[2]], records=5)
    fake.kill(2)
    fake.model.fence(2)

    with in_time(1.0):
        spans = watching_admin.log_spans({"t": [0, 9], "alone": [0], "gone": [0]}, deadline=60.0)

    assert spans.spans == {"t": {0: spans.spans["t"][0]}}
    names = {(topic, index): error.name for topic, errors in spans.errors.items() for index, error in errors.items()}
    assert names == {
        ("t", 9): "UNKNOWN_TOPIC_OR_PARTITION",
        ("alone", 0): "LEADER_NOT_AVAILABLE",
        ("gone", 0): "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_commits_outside_of_the_log_are_told_as_they_are(fake: FakeKafka, watching_admin: WireClient) -> None:
    """A topic that was made anew, or whose records are gone: what lag that is, is for others to say."""
    fake.model.add_group("g", committed={"t": {0: 900, 1: 3}})
    fake.model.delete_records("t", 1, 10)

    committed = watching_admin.committed(["g"], deadline=DEADLINE).offsets["g"]["t"]
    spans = watching_admin.log_spans({"t": [0, 1]}, deadline=DEADLINE).spans["t"]

    assert committed == {0: 900, 1: 3}
    assert (spans[0].end, spans[1].start) == (100, 10)


def test_nine_thousand_empty_groups_are_listed_without_a_second_question(
    fake: FakeKafka, watching_admin: WireClient
) -> None:
    for number in range(9_000):
        fake.model.add_group(f"empty-{number}")

    groups = watching_admin.groups(deadline=30.0)
    committed = watching_admin.committed(groups.groups, deadline=30.0)

    assert len(groups.groups) == 9_000
    assert {group.state for group in groups.groups.values()} == {"Empty"}
    assert not fake.requests.keys() & {DESCRIBE_GROUPS, DESCRIBE_CONSUMER_GROUPS}
    assert len(committed.offsets) == 9_000
    assert fake.requests[FIND_COORDINATOR] == 9
    assert fake.requests[OFFSET_FETCH] < 9_000 / 100 + 30


def test_old_coordinators_are_asked_for_many_groups_one_by_one(fake: FakeKafka, watching_admin: WireClient) -> None:
    """More than kafka-python takes on one connection at a time."""
    fake.versions.update({FIND_COORDINATOR: (0, 3), OFFSET_FETCH: (1, 7)})
    names = [f"g-{number}" for number in range(1_500)]
    for name in names:
        fake.model.add_group(name, coordinator=1, committed={"t": {0: 1}})

    committed = watching_admin.committed(names, deadline=60.0)

    assert not committed.errors
    assert committed.offsets == {name: {"t": {0: 1}} for name in names}
    assert fake.requests[OFFSET_FETCH] == 1_500


def test_a_connection_that_is_renewed_ends_the_call_that_waits(fake: FakeKafka, watching_admin: WireClient) -> None:
    fake.model.add_group("g", coordinator=2)
    watching_admin.committed(["g"], deadline=DEADLINE)
    wire = watching_admin._current_wire()
    fake.freeze(2)
    with ThreadPoolExecutor(1) as pool, in_time(DEADLINE):
        waiting = pool.submit(watching_admin.committed, ["g"], deadline=60.0)
        wait_until(lambda: bool(wire._calls), "it asks")
        watching_admin.close()
        with pytest.raises(KafkaUnreachable):
            waiting.result()
    fake.thaw(2)


def test_a_connection_that_hangs_is_given_up_in_time_and_the_next_call_has_a_new_one(
    fake: FakeKafka, watching_admin: WireClient
) -> None:
    fake.model.add_group("g", coordinator=2, committed={"t": {0: 7}})
    watching_admin.committed(["g"], deadline=DEADLINE)
    free = threading.Event()
    watching_admin._current_wire()._loop.call_soon_threadsafe(lambda: free.wait(60))
    try:
        with in_time(SHORT), pytest.raises(DeadlineExceeded, match="is reconnecting"):
            watching_admin.committed(["g"], deadline=SHORT)
        assert watching_admin.committed(["g"], deadline=DEADLINE).offsets == {"g": {"t": {0: 7}}}
    finally:
        free.set()


def test_open_transactions__end_what_read_committed_reads_and_are_named(
    fake: FakeKafka, watching_admin: WireClient
) -> None:
    fake.model.open_transactions = {("t", 0): [(12, 60), (11, 40)], ("t", 1): [(13, 90)]}

    stable = watching_admin.stable_spans({"t": [0, 1, 2]}, deadline=DEADLINE).spans["t"]
    unstable = watching_admin.unstable_spans({"t": [0, 1, 2]}, deadline=DEADLINE).spans["t"]
    opened = watching_admin.open_transactions({"t": [0, 2], "gone": [0]}, deadline=DEADLINE)
    fake.denied.add(DESCRIBE_PRODUCERS)
    denied = watching_admin.open_transactions({"t": [0]}, deadline=DEADLINE)

    assert {index: span[:2] for index, span in stable.items()} == {0: (0, 40), 1: (0, 90), 2: (0, 100)}
    assert {index: span[:2] for index, span in unstable.items()} == {0: (40, 100), 1: (90, 100), 2: (100, 100)}
    assert opened == {"t": {0: [OpenTransaction(11, 40, 1.7e9, 1, 0), OpenTransaction(12, 60, 1.7e9, 1, 0)], 2: []}}
    assert denied == {}


def test_open_transactions__of_many_partitions__are_asked_in_portions__smaller_ones_where_an_answer_is_too_large(
    fake: FakeKafka, connect: Callable[[ClusterConnection], WireClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.model.add_topic("many", [[1]] * 21, records=100)
    fake.model.open_transactions = {("many", number): [(n, 40) for n in range(11, 16)] for number in range(21)}

    def read() -> dict[int, int]:
        admin = connect(ClusterConnection("fake", 1, fake.bootstrap_servers))
        opened = admin.open_transactions({"many": range(21)}, deadline=DEADLINE)
        return {number: len(own) for number, own in opened["many"].items()}

    assert read() == dict.fromkeys(range(21), 5)
    assert fake.requests[DESCRIBE_PRODUCERS] == 2
    monkeypatch.setattr(connections, "MOST_ANSWER_BYTES", 3_000)
    assert read() == dict.fromkeys(range(21), 5)


def test_unstable_spans__of_a_log_that_grows__begin_at_open_transactions_only(
    fake: FakeKafka, watching_admin: WireClient
) -> None:
    fake.model.written_after = {("t", 0): 10, ("t", 1): 10}
    fake.model.open_transactions = {("t", 1): [(13, 90)]}

    unstable = watching_admin.unstable_spans({"t": [0, 1]}, deadline=DEADLINE)

    assert {index: span[:2] for index, span in unstable.spans["t"].items()} == {0: (100, 100), 1: (90, 100)}
    assert fake.requests[LIST_OFFSETS] == 4


def test_transactional_ids__are_those_in_progress__none_while_a_broker_does_not_tell(
    fake: FakeKafka, watching_admin: WireClient
) -> None:
    fake.model.transactional_ids = {11: "orders\x00tx", 12: "other"}

    assert watching_admin.transactional_ids([11, 13], deadline=DEADLINE) == {11: "orders\N{REPLACEMENT CHARACTER}tx"}
    fake.model.groups.loading[2] = 1
    assert watching_admin.transactional_ids([11], deadline=DEADLINE) is None


def test_coordinated_transactions__tell_their_partitions__and_whether_any_may_be_missing(
    fake: FakeKafka, watching_admin: WireClient
) -> None:
    fake.model.transactional_ids = {11: "orders\x00tx", 12: "other"}
    fake.model.open_transactions = {("t", 0): [(11, 40)], ("t", 1): [(11, 60), (12, 70)]}
    fake.model.forgotten = {("t", 1)}
    fake.model.add_topic(TRANSACTIONS_TOPIC, [[1], [1]], internal=True)

    known = watching_admin.coordinated_transactions([11, 12, 13], deadline=DEADLINE)
    fake.denied.add(DESCRIBE_TRANSACTIONS)
    denied = watching_admin.coordinated_transactions([13], deadline=DEADLINE)
    fake.model.groups.loading[2] = 1
    loading = watching_admin.coordinated_transactions([13], deadline=DEADLINE)

    orders = CoordinatedTransaction("orders\N{REPLACEMENT CHARACTER}tx", "Ongoing", frozenset({("t", 0)}))
    other = CoordinatedTransaction("other", "Ongoing", frozenset())
    assert known == CoordinatedTransactions({11: orders, 12: other}, complete=True, sees_all=True)
    assert denied == CoordinatedTransactions({}, complete=True, sees_all=False)
    assert (loading.complete, loading.described) == (False, {})


def test_coordinated_transactions__are_not_complete__unless_their_topic_is_led_all_the_time(
    fake: FakeKafka, watching_admin: WireClient
) -> None:
    fake.cached.discard(METADATA)

    def is_complete() -> bool:
        known = watching_admin.coordinated_transactions([13], deadline=DEADLINE)
        assert (known.described, known.sees_all) == ({}, True)
        return known.complete

    assert not is_complete(), "there is no such topic"
    fake.model.add_topic(TRANSACTIONS_TOPIC, [[1, 2], [2, 1]], internal=True)
    assert is_complete()
    fake.model.partition(TRANSACTIONS_TOPIC, 1).leader = -1
    assert not is_complete()
    fake.model.partition(TRANSACTIONS_TOPIC, 1).leader = 2
    fake.model.rumours[TRANSACTIONS_TOPIC, 1] = [1]
    assert not is_complete(), "it moved while brokers were asked"
    assert is_complete()
    fake.versions_of[1] = {DESCRIBE_TRANSACTIONS: None}
    assert not is_complete(), "Kafka hides nothing, but one broker does not describe its own"
