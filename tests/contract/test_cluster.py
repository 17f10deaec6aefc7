"""Who the brokers are, and what they speak."""

import pytest

from kafkadash.kafka.admin import WireAdmin
from tests.contract.backends import RACKS, Backend

pytestmark = pytest.mark.contract

DEADLINE = 10.0


def test_every_broker_is_described_with_rack_and_state(admin: WireAdmin, backend: Backend) -> None:
    cluster = admin.describe_cluster(deadline=DEADLINE)

    assert cluster.cluster_id == backend.cluster_id()
    assert [(broker.id, broker.rack, broker.fenced) for broker in cluster.brokers] == [
        (broker, rack, False) for broker, rack in zip(backend.broker_ids, RACKS, strict=True)
    ]
    addresses = {f"{broker.host}:{broker.port}" for broker in cluster.brokers}
    assert addresses == set(backend.connection.bootstrap_servers)


def test_the_controller_named_on_kraft_is_some_broker_and_not_the_active_controller(
    admin: WireAdmin, backend: Backend
) -> None:
    named = admin.describe_cluster(deadline=DEADLINE).controller_id

    assert named in backend.broker_ids
    assert named != backend.controller()


def test_each_broker_tells_the_versions_it_speaks(admin: WireAdmin, backend: Backend) -> None:
    versions = admin.api_versions(deadline=DEADLINE)

    assert sorted(versions.brokers) == backend.broker_ids
    assert not versions.errors
    for ranges in versions.brokers.values():
        assert ranges[46] == (0, 0)  # ListPartitionReassignments
        assert ranges[55] == (0, 2)  # DescribeQuorum
        assert ranges[3][1] >= 13  # Metadata
