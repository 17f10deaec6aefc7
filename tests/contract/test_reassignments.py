"""What is in flight, and how far each replica has come."""

import pytest

from kafkadash.kafka.admin import WireAdmin
from kafkadash.kafka.port import OffsetKind, OffsetQuery
from tests.contract.backends import Backend
from tests.waiting import wait_until

pytestmark = pytest.mark.contract

DEADLINE = 10.0


def test_a_move_in_flight_is_listed_as_kafka_lists_it(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2], [2, 3]], records=400)
    backend.start_move(topic_name, 0, [3, 2])
    try:
        rows = list(admin.list_reassignments(deadline=DEADLINE).rows)
        truth = backend.reassignments()
    finally:
        backend.cancel_move(topic_name, 0)

    assert rows == truth
    [row] = rows
    assert (row.topic, row.partition) == (topic_name, 0)
    assert (row.adding, row.removing) == ((3,), (1,))
    assert row.target == (3, 2)
    assert set(row.original) == {1, 2}


def test_nothing_in_flight_is_an_empty_listing(admin: WireAdmin, backend: Backend) -> None:
    assert admin.list_reassignments(deadline=DEADLINE).rows == []
    assert backend.reassignments() == []


def test_an_adding_replica_tells_its_own_growing_log_end(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    records = 400
    backend.create_topic(topic_name, [[1, 2]], records=records)
    seen: list[int] = []
    query = OffsetQuery(3, topic_name, 0, OffsetKind.LATEST)

    def has_grown_three_times() -> bool:
        backend.keep_moving(topic_name, 0, 3)
        answer = admin.replica_offsets([query], deadline=DEADLINE)
        if query in answer.offsets:  # until it has its first fetch answered, a new follower may not know the topic
            seen.append(answer.offsets[query].offset)
        return len({offset for offset in seen if 0 < offset < records}) >= 3

    backend.start_move(topic_name, 0, [1, 2, 3])
    try:
        wait_until(has_grown_three_times, f"the adding replica grows; seen {seen}")
        leader = backend.end_offset(1, topic_name, 0)
    finally:
        backend.cancel_move(topic_name, 0)
    assert seen == sorted(seen)
    assert leader == records


def test_each_replica_tells_log_start_and_log_end(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2], [2, 3]], records=20)
    queries = [
        OffsetQuery(broker, topic_name, partition, kind)
        for broker, partition in [(1, 0), (2, 0), (2, 1), (3, 1)]
        for kind in OffsetKind
    ]

    answer = admin.replica_offsets(queries, deadline=DEADLINE)

    assert not answer.errors
    for query in queries:
        expected = (
            backend.end_offset(query.broker, topic_name, query.partition) if query.kind is OffsetKind.LATEST else 0
        )
        assert answer.offsets[query].offset == expected
    assert answer.offsets[queries[0]].offset == 20


def test_what_a_broker_cannot_tell_is_an_error_of_that_query_only(
    admin: WireAdmin, backend: Backend, topic_name: str
) -> None:
    backend.create_topic(topic_name, [[1, 2]], records=1)
    good = OffsetQuery(1, topic_name, 0, OffsetKind.LATEST)
    elsewhere = OffsetQuery(3, topic_name, 0, OffsetKind.LATEST)
    beyond = OffsetQuery(1, topic_name, 7, OffsetKind.LATEST)
    unknown = OffsetQuery(1, "no-such-topic", 0, OffsetKind.LATEST)
    nobody = OffsetQuery(99, topic_name, 0, OffsetKind.LATEST)

    answer = admin.replica_offsets([good, elsewhere, beyond, unknown, nobody], deadline=DEADLINE)

    assert answer.offsets.keys() == {good}
    assert answer.errors[elsewhere].name == "NOT_LEADER_OR_FOLLOWER"
    assert answer.errors[beyond].name == "UNKNOWN_TOPIC_OR_PARTITION"
    assert answer.errors[unknown].name == "UNKNOWN_TOPIC_OR_PARTITION"
    assert answer.errors[nobody].code is None
    assert "Broker 99" in answer.errors[nobody].text


def test_nothing_asked_is_nothing_answered(admin: WireAdmin) -> None:
    answer = admin.replica_offsets([], deadline=DEADLINE)

    assert (answer.offsets, answer.errors) == ({}, {})
