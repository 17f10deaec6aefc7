"""A broker that is down keeps its configs in the cluster: they are changed through the active controller's listener."""

from collections.abc import Callable

import pytest

from kafkadash.kafka.changing import ConfigChange, ConfigOperation
from kafkadash.kafka.connection import Connection
from kafkadash.kafka.port import ConfigResource, Unreachable
from kafkadash.kafka.wire_client import WireClient
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_changes import ALTER_CONFIGS
from tests.contract.sockets import closed_port
from tests.contract.timing import in_time

pytestmark = pytest.mark.contract

DEADLINE = 10.0
RATE = "leader.replication.throttled.rate"
DEAD, ALIVE, NOBODY = (ConfigResource.broker(broker) for broker in (3, 1, 77))
Connect = Callable[[Connection], WireClient]


def _set(resource: ConfigResource, value: str = "1234567") -> ConfigChange:
    return ConfigChange(resource, RATE, ConfigOperation.SET, value)


def _clear(resource: ConfigResource) -> ConfigChange:
    return ConfigChange(resource, RATE, ConfigOperation.DELETE)


@pytest.mark.parametrize("value", ["-1", "fast", "1.5", "", str(2**63)])
def test_a_value_that_the_broker_would_refuse_is_not_sent_past_it(
    connect: Connect, fake: FakeKafka, value: str
) -> None:
    """A controller takes anything: the broker would find it when it comes back."""
    fake.start_controllers()
    fake.kill(3)
    fake.model.fence(3)
    admin = connect(Connection("fake", 1, fake.bootstrap_servers, controller_servers=fake.controller_servers))

    with pytest.raises(Unreachable, match="Broker 3"):
        admin.alter_configs([_set(DEAD, value)], deadline=DEADLINE)
    other = ConfigChange(DEAD, "log.cleaner.threads", ConfigOperation.SET, "2")
    with pytest.raises(Unreachable, match="Broker 3"):
        admin.alter_configs([_set(DEAD), other], deadline=DEADLINE)

    assert ALTER_CONFIGS not in fake.requests


def test_a_live_brokers_rate_goes_to_itself(connect: Connect, fake: FakeKafka) -> None:
    fake.start_controllers()
    admin = connect(Connection("fake", 1, fake.bootstrap_servers, controller_servers=fake.controller_servers))

    assert admin.alter_configs([_set(DEAD), _set(ALIVE)], deadline=DEADLINE).done == {DEAD, ALIVE}

    assert fake.asked_of[ALTER_CONFIGS] == {1: 1, 3: 1}


def test_only_the_active_controller_is_sent_it(connect: Connect, fake: FakeKafka) -> None:
    fake.start_controllers()
    fake.kill(3)
    fake.model.fence(3)
    admin = connect(Connection("fake", 1, fake.bootstrap_servers, controller_servers=fake.controller_servers))
    for active in (101, 103, 102):
        fake.model.elect_controller(active)
        fake.asked_of.clear()
        assert admin.alter_configs([_set(DEAD)], deadline=DEADLINE).done == {DEAD}
        assert fake.asked_of[ALTER_CONFIGS] == {active: 1}


def test_its_lost_reply_is_lost(connect: Connect, fake: FakeKafka) -> None:
    fake.start_controllers()
    fake.kill(3)
    fake.model.fence(3)
    fake.loses_reply[ALTER_CONFIGS] = 9
    admin = connect(Connection("fake", 1, fake.bootstrap_servers, controller_servers=fake.controller_servers))

    changed = admin.alter_configs([_set(DEAD)], deadline=DEADLINE)

    assert changed.lost.keys() == {DEAD}
    assert fake.requests[ALTER_CONFIGS] == 1


def test_controllers_that_cannot_be_reached_are_named_with_the_broker(connect: Connect, fake: FakeKafka) -> None:
    fake.kill(3)
    fake.model.fence(3)
    with closed_port() as address:
        admin = connect(Connection("fake", 1, fake.bootstrap_servers, controller_servers=(address,)))
        with in_time(1), pytest.raises(Unreachable, match=f"Broker 3 .* {address} could not be connected"):
            admin.alter_configs([_set(DEAD)], deadline=DEADLINE)
        mixed = admin.alter_configs([_set(DEAD), _set(ALIVE)], deadline=DEADLINE)
    assert mixed.done == {ALIVE}
    assert mixed.refused[DEAD].code is None


def test_a_closed_client_asks_no_controller(fake: FakeKafka) -> None:
    fake.start_controllers()
    admin = WireClient(Connection("fake", 1, fake.bootstrap_servers, controller_servers=fake.controller_servers))
    admin.alter_configs([_set(ALIVE)], deadline=DEADLINE)
    admin.close()
    with pytest.raises(Unreachable, match="closed because"):
        admin.alter_configs([_set(DEAD)], deadline=DEADLINE)


def test_controllers_of_another_cluster_are_sent_nothing(connect: Connect, fake: FakeKafka) -> None:
    """Brokers are numbered alike everywhere."""
    fake.start_controllers()
    fake.kill(3)
    fake.model.fence(3)
    fake.model.cluster_of_controllers = "another-cluster"
    admin = connect(Connection("fake", 1, fake.bootstrap_servers, controller_servers=fake.controller_servers))

    with pytest.raises(Unreachable, match="belong to the Kafka cluster another-cluster"):
        admin.alter_configs([_set(DEAD)], deadline=DEADLINE)

    assert ALTER_CONFIGS not in fake.requests
