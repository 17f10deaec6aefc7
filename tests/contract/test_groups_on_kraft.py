"""Coordinators and leaders of real Kafka stop, hang and come back while groups are read."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from kafkadash.kafka.api import ClusterConnection, Offsets
from kafkadash.kafka.mutations import WireClient
from tests.committed import commit_offsets
from tests.contract.kraft_backend import KraftBackend
from tests.contract.timing import in_time
from tests.hostile_member import HOSTILE_ASSIGNMENTS, hostile_member
from tests.waiting import wait_until

pytestmark = [pytest.mark.contract, pytest.mark.kafka, pytest.mark.xdist_group("kraft")]

DEADLINE = 20.0
SHORT = 3.0


def commit(kraft: KraftBackend, group: str, topic: str, offset: int) -> None:
    """As a consumer does that chose its partitions itself: there are offsets, and no members."""
    servers = ",".join(kraft.connection.bootstrap_servers)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False})
    try:
        commit_offsets(consumer, [TopicPartition(topic, index, offset) for index in range(3)])
    finally:
        consumer.close()


def _all_told(admin: WireClient, names: Sequence[str]) -> Mapping[str, Offsets]:
    """Who has just taken over may tell of a state before the last commits (see ``Committed``), but not nothing."""
    told = admin.committed(names, deadline=DEADLINE)
    assert told.errors == {}
    assert told.offsets.keys() == set(names)
    return told.offsets


def _is_committed(kraft: KraftBackend, group: str, topic: str) -> bool:
    try:
        commit(kraft, group, topic, 2)
    except KafkaException as error:
        if error.args[0].code() not in (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR):
            raise
        return False
    return True


def test_groups_follow_a_coordinator_that_stops_and_wait_for_none_that_hangs(
    kraft: KraftBackend, connect: Callable[[ClusterConnection], WireClient], topic_name: str
) -> None:
    kraft.create_topic(topic_name, [[1, 2, 3], [2, 3, 1], [3, 1, 2]], records=4)
    kraft.elect_preferred_leaders()  # a broker that came back from the stop of another test leads nothing
    names = [f"{topic_name}-{number}" for number in range(12)]  # spread over all brokers as coordinators
    for name in names:
        wait_until(partial(_is_committed, kraft, name, topic_name), "its new coordinator has loaded", DEADLINE)
    admin = connect(kraft.connection)
    expected = {name: {topic_name: dict.fromkeys(range(3), 2)} for name in names}
    ours = {name: group.coordinator for name, group in admin.groups(deadline=DEADLINE).groups.items() if name in names}
    assert ours.keys() == set(names)
    # The names may hash to partitions that fewer brokers lead: two are enough.
    away, hangs = sorted({broker for broker in ours.values() if broker is not None})[-2:]
    assert admin.committed(names, deadline=DEADLINE).offsets == expected

    with kraft.stopped(away):
        wait_until(
            lambda: _all_told(admin, names) == expected, "those who took over told what had been committed", DEADLINE
        )
        listed = admin.groups(deadline=DEADLINE).groups
        spans = admin.log_spans({topic_name: range(3)}, deadline=DEADLINE)
        assert {listed[name].coordinator for name in names} <= {1, 2, 3} - {away}
        assert {index: span[:2] for index, span in spans.spans[topic_name].items()} == dict.fromkeys(range(3), (0, 4))

    hanging = [name for name, group in admin.groups(deadline=DEADLINE).groups.items() if group.coordinator == hangs]
    admin.committed(names, deadline=DEADLINE)
    assert hanging
    with kraft.frozen(hangs), in_time(SHORT):
        part = admin.committed(names, deadline=SHORT)
    assert {name: part.offsets[name] for name in names if name not in hanging} == {
        name: offsets for name, offsets in expected.items() if name not in hanging
    }
    assert part.errors.keys() == set(names) & set(hanging)


def test_what_is_granted_on_groups_is_what_the_fields_client_reads(
    kraft: KraftBackend, connect: Callable[[ClusterConnection], WireClient], topic_name: str
) -> None:
    kraft.create_topic(topic_name, [[1, 2, 3]] * 3, records=1)
    servers = kraft.connection.bootstrap_servers[0]
    empty, newer = f"{topic_name}-empty", f"{topic_name}-newer"
    commit(kraft, empty, topic_name, 1)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": newer, "group.protocol": "consumer"})
    consumer.subscribe([topic_name])
    wait_until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "it is a member", DEADLINE)
    granted = connect(kraft.connection).group_permissions([empty, newer, "unheard-of"], deadline=DEADLINE)
    client = AdminClient({"bootstrap.servers": servers})
    for name, told in client.describe_consumer_groups([empty, newer], include_authorized_operations=True).items():
        operations = told.result(DEADLINE).authorized_operations
        assert (
            granted[name] == frozenset(each.name.title().replace("_", "") for each in operations) >= {"Read", "Delete"}
        )
    assert granted.keys() == {empty, newer}
    consumer.close()


@pytest.mark.parametrize("assignment", HOSTILE_ASSIGNMENTS, ids=["moves backwards", "NUL", "slash"])
def test_what_a_member_assigns_itself_costs_its_own_group_only(
    kraft: KraftBackend, connect: Callable[[ClusterConnection], WireClient], topic_name: str, assignment: bytes
) -> None:
    kraft.create_topic(topic_name, [[1, 2, 3]] * 3, records=1)
    good, bad = f"{topic_name}-good", f"{topic_name}-bad"
    commit(kraft, good, topic_name, 1)
    admin = connect(kraft.connection)

    with hostile_member(kraft.connection.bootstrap_servers[0], bad, assignment) as member:
        began = time.thread_time()
        groups = admin.groups(deadline=DEADLINE).groups
        took = time.thread_time() - began

    assert took < 1
    assert (groups[good].state, groups[good].error) == ("Empty", None)
    assert (groups[bad].state, [m.member_id for m in groups[bad].members or ()]) == ("Stable", [member])
    assert [dict(m.assigned) for m in groups[bad].members or ()] == [{}]
    assert groups[bad].error is not None
