"""Changes while a broker is away: those that are done, and those that are refused. On the fake and on real Kafka.

All of it is tried while the broker is away once: a real one takes seconds to be missed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kafkadash.kafka.changing import ConfigChange, ConfigOperation
from kafkadash.kafka.connection import Connection
from kafkadash.kafka.port import ConfigResource, TopicPartition, Unreachable
from kafkadash.kafka.wire_client import WireClient
from tests.contract.backends import Backend
from tests.waiting import wait_until

pytestmark = pytest.mark.contract

DEADLINE = 10.0
LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
AWAY = 3
DEAD, ALIVE, NOBODY = (ConfigResource.broker(broker) for broker in (AWAY, 1, 77))
SET, DELETE = ConfigOperation.SET, ConfigOperation.DELETE
Connect = Callable[[Connection], WireClient]


def test_a_broker_that_is_away__cannot_lead_but_may_be_a_target__and_its_rate_needs_the_controller(
    connect: Connect, backend: Backend, topic_name: str
) -> None:
    by_brokers = connect(backend.connection)
    by_controller = connect(replace(backend.connection, controller_servers=backend.controller_servers()))
    led, moved = f"{topic_name}-led", f"{topic_name}-moved"
    backend.create_topic(led, [[AWAY, 2]])
    backend.create_topic(moved, [[1, 2]], records=1)
    with backend.fenced(AWAY):
        is_not_elected(by_brokers, backend, led)
        is_accepted_as_a_target(by_brokers, backend, moved)
        rate_is_set_by_the_active_controller(by_controller)
        rate_is_certainly_not_set(by_brokers)
    wait_until(lambda: LEADER_RATE in backend.configs(AWAY), "the broker came back with its rate")
    assert backend.configs(AWAY)[LEADER_RATE] == ("1234567", "DYNAMIC_BROKER_CONFIG")
    assert FOLLOWER_RATE not in backend.configs(AWAY)
    cleared = by_brokers.alter_configs([ConfigChange(b, LEADER_RATE, DELETE) for b in (DEAD, ALIVE)], deadline=DEADLINE)
    assert cleared.done == {DEAD, ALIVE}


def is_not_elected(admin: WireClient, backend: Backend, topic: str) -> None:
    """The preferred replica is not in sync, so the election is refused."""
    partition = TopicPartition(topic, 0)
    wait_until(lambda: backend.topic(topic)[0][0] == 2, "broker 2 leads")
    refused = admin.elect_leaders([partition], deadline=DEADLINE)
    assert refused.refused[partition].code == 80
    assert refused.refused[partition].name == "PREFERRED_LEADER_NOT_AVAILABLE"


def is_accepted_as_a_target(admin: WireClient, backend: Backend, topic: str) -> None:
    """The move hangs until the broker is back: whoever submits must look first."""
    partition = TopicPartition(topic, 0)
    accepted = admin.alter_reassignments({partition: (1, AWAY)}, deadline=DEADLINE, keep_factor=True)
    listed = backend.reassignments()
    cancelled = admin.alter_reassignments({partition: None}, deadline=DEADLINE, keep_factor=True)
    assert accepted.done == {partition}
    assert [(row.adding, row.removing) for row in listed] == [((AWAY,), (2,))]
    assert cancelled.done == {partition}


def rate_is_certainly_not_set(admin: WireClient) -> None:
    """A client that does not know the controllers' own addresses cannot set it."""
    with pytest.raises(Unreachable, match="Broker 3"):
        admin.alter_configs([ConfigChange(DEAD, FOLLOWER_RATE, SET, "7654321")], deadline=DEADLINE)
    mixed = admin.alter_configs([ConfigChange(b, FOLLOWER_RATE, DELETE) for b in (DEAD, ALIVE)], deadline=DEADLINE)
    assert mixed.done == {ALIVE}
    assert mixed.refused[DEAD].code is None


def rate_is_set_by_the_active_controller(admin: WireClient) -> None:
    """The active controller sets both rates of the broker and deletes one again."""
    both = admin.alter_configs([ConfigChange(b, LEADER_RATE, SET, "1234567") for b in (DEAD, ALIVE)], deadline=DEADLINE)
    unregistered = admin.alter_configs(
        [ConfigChange(b, LEADER_RATE, SET, "1234567") for b in (ALIVE, NOBODY)], deadline=DEADLINE
    )
    assert both.done == {DEAD, ALIVE}
    assert unregistered.done == {ALIVE}
    assert (unregistered.refused[NOBODY].code, unregistered.refused[NOBODY].name) == (102, "BROKER_ID_NOT_REGISTERED")
    for operation, value in ((SET, "1234567"), (DELETE, None)):
        changes = [ConfigChange(broker, FOLLOWER_RATE, operation, value) for broker in (DEAD, ALIVE)]
        assert admin.alter_configs(changes, deadline=DEADLINE).done == {DEAD, ALIVE}
