"""Groups, commits and log spans while coordinators and leaders move, load, die, or say nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafkadash.kafka.connection import Connection
from kafkadash.kafka.port import DeadlineExceeded, Unreachable
from kafkadash.kafka.wire_client import WireClient
from tests.contract.fake_answers import LIST_OFFSETS, METADATA
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_groups import (
    DESCRIBE_CONSUMER_GROUPS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    OFFSET_FETCH,
    FakeMember,
)
from tests.contract.timing import in_time
from tests.waiting import wait_until

pytestmark = pytest.mark.contract

DEADLINE = 5.0
SHORT = 2.0
PLACEMENT = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


@pytest.fixture
def admin(fake: FakeKafka, connect: Callable[[Connection], WireClient]) -> WireClient:
    fake.model.add_topic("t", PLACEMENT, records=100)
    return connect(Connection("fake", 1, fake.bootstrap_servers))


def test_a_coordinator_that_moved_is_found_again(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_group("g", coordinator=2, committed={"t": {0: 7}})
    fake.model.groups.rumours["g"] = [1, 3]

    committed = admin.committed(["g"], deadline=DEADLINE)

    assert committed.offsets == {"g": {"t": {0: 7}}}
    assert not committed.errors
    assert fake.requests[FIND_COORDINATOR] == 3


def test_a_coordinator_that_is_named_wrongly_for_ever_is_an_error_within_the_deadline(
    fake: FakeKafka, admin: WireClient
) -> None:
    fake.model.add_group("moving", coordinator=2)
    fake.model.add_group("steady", coordinator=3, committed={"t": {0: 7}})
    fake.model.groups.rumours["moving"] = [1] * 1000

    with in_time(SHORT):
        committed = admin.committed(["moving", "steady"], deadline=SHORT)

    assert committed.offsets == {"steady": {"t": {0: 7}}}
    assert committed.errors["moving"].name == "NOT_COORDINATOR"


def test_a_coordinator_that_loads_is_asked_again(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_group("g", coordinator=2, members=[FakeMember("m", "c", {"t": (0,)})], committed={"t": {0: 7}})
    fake.model.groups.loading[2] = 2

    groups = admin.groups(deadline=DEADLINE)
    fake.model.groups.loading[2] = 2
    committed = admin.committed(["g"], deadline=DEADLINE)

    assert not groups.errors
    assert groups.groups["g"].state == "Stable"
    assert committed.offsets == {"g": {"t": {0: 7}}}


def test_a_coordinator_that_loads_for_long_is_missing_and_says_why(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_group("slow", coordinator=2)
    fake.model.add_group("steady", coordinator=3, committed={"t": {0: 7}})
    fake.model.groups.loading[2] = 1000

    with in_time(SHORT):
        groups = admin.groups(deadline=SHORT)
    with in_time(SHORT):
        committed = admin.committed(["slow", "steady"], deadline=SHORT)

    assert groups.groups.keys() == {"steady"}
    assert groups.errors[2].name == "COORDINATOR_LOAD_IN_PROGRESS"
    assert committed.offsets.keys() == {"steady"}
    assert committed.errors["slow"].name == "COORDINATOR_LOAD_IN_PROGRESS"


def test_an_offsets_partition_without_a_leader_costs_its_groups_only(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_group("homeless", coordinator=2)
    fake.model.add_group("steady", coordinator=3, committed={"t": {0: 7}})
    fake.model.groups.homeless.add("homeless")

    with in_time(SHORT):
        committed = admin.committed(["homeless", "steady"], deadline=SHORT)

    assert committed.offsets == {"steady": {"t": {0: 7}}}
    assert committed.errors["homeless"].name == "COORDINATOR_NOT_AVAILABLE"


def test_a_group_deleted_between_listing_and_describing_is_not_there(fake: FakeKafka, admin: WireClient) -> None:
    member = FakeMember("m", "c", {"t": (0,)})
    fake.model.add_group("old", members=[member])
    fake.model.add_group("new", type="consumer", members=[member])
    fake.model.add_group("kept", members=[member])
    fake.model.groups.deleted_on = {DESCRIBE_GROUPS: "old", DESCRIBE_CONSUMER_GROUPS: "new"}

    groups = admin.groups(deadline=DEADLINE)

    assert groups.groups.keys() == {"kept"}
    assert not groups.errors


def test_a_group_deleted_before_its_commits_are_read_has_none(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_group("gone", committed={"t": {0: 7}})
    fake.model.groups.deleted_on = {OFFSET_FETCH: "gone"}

    committed = admin.committed(["gone"], deadline=DEADLINE)

    assert (committed.offsets, committed.errors) == ({"gone": {}}, {})


def test_a_group_converted_between_listing_and_describing_is_described(fake: FakeKafka, admin: WireClient) -> None:
    member = FakeMember("m", "c", {"t": (0,)})
    fake.model.add_group("back", type="consumer", members=[member])
    fake.model.add_group("forth", type="classic", members=[member])
    fake.model.groups.converted_on = {DESCRIBE_CONSUMER_GROUPS: "back", DESCRIBE_GROUPS: "forth"}

    groups = admin.groups(deadline=DEADLINE).groups

    assert {name: (group.type, len(group.members or ())) for name, group in groups.items()} == {
        "back": ("Classic", 1),
        "forth": ("Consumer", 1),
    }


def test_a_silent_broker_costs_its_own_groups(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_group("silent", coordinator=2, committed={"t": {0: 7}})
    fake.model.add_group("steady", coordinator=3, committed={"t": {0: 8}})
    admin.log_spans({"t": [0, 1, 2]}, deadline=DEADLINE)
    fake.freeze(2)
    try:
        with in_time(SHORT):
            groups = admin.groups(deadline=SHORT)
        with in_time(SHORT):
            committed = admin.committed(["silent", "steady"], deadline=SHORT)
        with in_time(SHORT):
            spans = admin.log_spans({"t": [0, 1, 2]}, deadline=SHORT)
    finally:
        fake.thaw(2)

    assert groups.groups.keys() == {"steady"}
    assert groups.errors.keys() == {2}
    assert committed.offsets == {"steady": {"t": {0: 8}}}
    assert "did not answer in time" in committed.errors["silent"].text
    assert spans.spans["t"].keys() == {0, 2}
    assert "did not answer in time" in spans.errors["t"][1].text


def test_a_leader_that_moved_is_found_again(fake: FakeKafka, admin: WireClient) -> None:
    fake.cached.discard(METADATA)
    fake.model.delete_records("t", 1, 10)
    fake.model.rumours["t", 1] = [3, 1]

    spans = admin.log_spans({"t": [0, 1, 2]}, deadline=DEADLINE)

    assert {index: span[:2] for index, span in spans.spans["t"].items()} == {0: (0, 100), 1: (10, 100), 2: (0, 100)}
    assert not spans.errors


def test_a_leader_that_died_is_succeeded_within_the_deadline(fake: FakeKafka, admin: WireClient) -> None:
    admin.log_spans({"t": [0, 1, 2]}, deadline=DEADLINE)
    fake.dies_on[2] = LIST_OFFSETS
    fence = threading.Timer(0.5, lambda: fake.model.fence(2))
    fence.start()

    with in_time(DEADLINE):
        spans = admin.log_spans({"t": [0, 1, 2]}, deadline=DEADLINE)

    fence.join()
    assert spans.spans["t"].keys() == {0, 1, 2}


def test_what_consumers_can_read_ends_at_the_high_watermark(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.append_to_leader("t", 0, 50)

    assert admin.log_spans({"t": [0]}, deadline=DEADLINE).spans["t"][0][:2] == (0, 100)


def test_partitions_nobody_leads_or_nobody_knows_are_errors_at_once(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_topic("alone", [[2]], records=5)
    fake.kill(2)
    fake.model.fence(2)

    with in_time(1.0):
        spans = admin.log_spans({"t": [0, 9], "alone": [0], "gone": [0]}, deadline=60.0)

    assert spans.spans == {"t": {0: spans.spans["t"][0]}}
    names = {(topic, index): error.name for topic, errors in spans.errors.items() for index, error in errors.items()}
    assert names == {
        ("t", 9): "UNKNOWN_TOPIC_OR_PARTITION",
        ("alone", 0): "LEADER_NOT_AVAILABLE",
        ("gone", 0): "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_commits_outside_of_the_log_are_told_as_they_are(fake: FakeKafka, admin: WireClient) -> None:
    """A topic that was made anew, or whose records are gone: what lag that is, is for others to say."""
    fake.model.add_group("g", committed={"t": {0: 900, 1: 3}})
    fake.model.delete_records("t", 1, 10)

    committed = admin.committed(["g"], deadline=DEADLINE).offsets["g"]["t"]
    spans = admin.log_spans({"t": [0, 1]}, deadline=DEADLINE).spans["t"]

    assert committed == {0: 900, 1: 3}
    assert (spans[0].end, spans[1].start) == (100, 10)


def test_nine_thousand_empty_groups_are_listed_without_a_second_question(fake: FakeKafka, admin: WireClient) -> None:
    for number in range(9_000):
        fake.model.add_group(f"empty-{number}")

    groups = admin.groups(deadline=30.0)
    committed = admin.committed(groups.groups, deadline=30.0)

    assert len(groups.groups) == 9_000
    assert {group.state for group in groups.groups.values()} == {"Empty"}
    assert not fake.requests.keys() & {DESCRIBE_GROUPS, DESCRIBE_CONSUMER_GROUPS}
    assert len(committed.offsets) == 9_000
    assert fake.requests[FIND_COORDINATOR] == 9
    assert fake.requests[OFFSET_FETCH] < 9_000 / 100 + 30


def test_old_coordinators_are_asked_for_many_groups_one_by_one(fake: FakeKafka, admin: WireClient) -> None:
    """More than kafka-python takes on one connection at a time."""
    fake.versions.update({FIND_COORDINATOR: (0, 3), OFFSET_FETCH: (1, 7)})
    names = [f"g-{number}" for number in range(1_500)]
    for name in names:
        fake.model.add_group(name, coordinator=1, committed={"t": {0: 1}})

    committed = admin.committed(names, deadline=60.0)

    assert not committed.errors
    assert committed.offsets == {name: {"t": {0: 1}} for name in names}
    assert fake.requests[OFFSET_FETCH] == 1_500


def test_a_connection_that_is_renewed_ends_the_call_that_waits(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_group("g", coordinator=2)
    admin.committed(["g"], deadline=DEADLINE)
    wire = admin._current_wire()
    fake.freeze(2)
    with ThreadPoolExecutor(1) as pool, in_time(DEADLINE):
        waiting = pool.submit(admin.committed, ["g"], deadline=60.0)
        wait_until(lambda: bool(wire._calls), "it asks")
        admin.close()
        with pytest.raises(Unreachable):
            waiting.result()
    fake.thaw(2)


def test_a_connection_that_hangs_is_given_up_in_time_and_the_next_call_has_a_new_one(
    fake: FakeKafka, admin: WireClient
) -> None:
    fake.model.add_group("g", coordinator=2, committed={"t": {0: 7}})
    admin.committed(["g"], deadline=DEADLINE)
    free = threading.Event()
    admin._current_wire()._loop.call_soon_threadsafe(lambda: free.wait(60))
    try:
        with in_time(SHORT), pytest.raises(DeadlineExceeded, match="hung"):
            admin.committed(["g"], deadline=SHORT)
        assert admin.committed(["g"], deadline=DEADLINE).offsets == {"g": {"t": {0: 7}}}
    finally:
        free.set()
