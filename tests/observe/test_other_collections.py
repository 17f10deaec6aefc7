"""Quorum, log directories and API versions as the collectors store them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from kafkadash.clusters.models import Cluster
from kafkadash.observe.collection import Refresh
from kafkadash.observe.models import BrokerWeights, ClusterState, Collection, QuorumSnapshot, TopicState
from tests.observe.memory_cluster import MemoryCluster

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], Refresh]


def test_quorum__each_answer__is_a_snapshot_with_voters_and_observers(kafka: MemoryCluster, refresh: Refresher) -> None:
    refresh("quorum")
    refresh("quorum")
    snapshot = QuorumSnapshot.objects.latest("pk")
    assert QuorumSnapshot.objects.count() == 2
    assert snapshot.leader_id == 1
    assert [(r["id"], r["voter"]) for r in snapshot.replicas][:2] == [(1, True), (2, False)]


def test_log_dirs__every_broker_answers__sizes_per_broker_and_topic(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.add("orders", 0, 1, 2).size = 1_234_567
    refresh("metadata")
    refresh("log_dirs")
    weights = BrokerWeights.objects.get(broker_id=1)
    assert json.loads(zlib.decompress(weights.data)) == {"orders": {"0": 1_234_567}}
    assert weights.replica_bytes == 1_234_567
    assert weights.dirs[0]["usable_bytes"] == 9_000_000_000
    assert TopicState.objects.get().size_bytes == 2_500_000


def test_log_dirs__one_broker_is_silent__topic_keeps_its_size_and_the_broker_its_age(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2)
    refresh("metadata")
    refresh("log_dirs")
    before = BrokerWeights.objects.get(broker_id=2).taken_at
    kafka.silent = {2}
    refresh("log_dirs")
    assert TopicState.objects.get().size_bytes == 2_000_000
    assert BrokerWeights.objects.get(broker_id=2).taken_at == before
    last = Collection.objects.latest("pk")
    assert (last.ok, last.not_answered) == (True, [2])
    assert last.errors == ["broker 2: did not answer within 8 s"]


def test_versions__kraft_brokers__teach_mode_and_release(
    kafka: MemoryCluster, refresh: Refresher, cluster: Cluster
) -> None:
    refresh("versions")
    cluster.refresh_from_db()
    assert cluster.mode == "kraft"
    assert ClusterState.objects.get().kafka_version == "4.3 or newer"


def test_any_kind__credentials_cannot_be_decrypted__says_so_instead_of_asking(
    kafka: MemoryCluster, refresh: Refresher, cluster: Cluster, settings: Settings
) -> None:
    cluster.sasl_password = "planted"
    cluster.save(update_fields=["sasl_password"])
    settings.FIELD_KEYS = [Fernet.generate_key().decode()]
    result = refresh("quorum")
    assert "FIELD_KEYS" in result.error
    assert Collection.objects.latest("pk").errors == [result.error]
