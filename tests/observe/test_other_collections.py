"""Log directories and API versions as the collectors store them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from kafkadash.clusters.models import Cluster
from kafkadash.observe.collection import Refresh
from kafkadash.observe.models import (
    BrokerState,
    BrokerWeights,
    Capabilities,
    ClusterState,
    Collection,
    TopicState,
)
from tests.observe.conftest import Clock
from tests.observe.memory_cluster import MemoryCluster

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], Refresh]


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


@pytest.mark.parametrize("away", ["fenced", "gone", "bad_directories"])
def test_log_dirs__part_of_the_replicas_cannot_be_read__topic_keeps_its_size(
    away: str, kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2)
    refresh("metadata")
    refresh("log_dirs")
    if away == "gone":
        del kafka.racks[2]
        refresh("metadata")
    else:
        setattr(kafka, away, {2})
    refresh("log_dirs")
    assert TopicState.objects.get().size_bytes == 2_000_000
    last = Collection.objects.latest("pk")
    assert last.not_answered == ([2] if away == "fenced" else [])
    assert len(last.errors) == (0 if away == "gone" else 1)


def test_log_dirs__each_directory__says_whether_it_is_cordoned_or_broken_and_what_is_copied_to_it(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2)
    kafka.bad_directories, kafka.copying = {2}, {1}
    refresh("log_dirs")
    dirs = {row.broker_id: row.dirs[0] for row in BrokerWeights.objects.all()}
    assert (dirs[1]["replicas"], dirs[1]["copies"], dirs[1]["cordoned"]) == (2, 1, False)
    assert (dirs[2]["total_bytes"], dirs[2]["usable_bytes"]) == (None, None)
    assert "KAFKA_STORAGE_ERROR" in dirs[2]["error"]
    assert dirs[5]["cordoned"] is True


def test_versions__what_all_brokers_can_do__is_kept_with_the_levels_in_force(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    refresh("metadata")
    refresh("versions")
    first = Capabilities.objects.get()
    assert first.apis == {"35": [1, 5], "45": [0, 1], "55": [0, 2], "60": [0, 2]}
    assert first.features == {
        "group.version": {"finalized": None, "supported": [0, 1]},
        "metadata.version": {"finalized": 30, "supported": [7, 30]},
    }
    assert first.releases == dict.fromkeys("12345", "4.3")
    clock.pass_by(600)
    refresh("versions")
    assert Capabilities.objects.get().changed_at == first.changed_at


def test_versions__one_broker_is_older__the_cluster_can_only_do_what_it_can(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    refresh("metadata")
    kafka.versions[3] = {35: (1, 4), 45: (0, 0), 55: (0, 2), 60: (0, 1), 99: (0, 0)}
    refresh("versions")
    capable = Capabilities.objects.get()
    assert capable.apis == {"35": [1, 4], "45": [0, 0], "55": [0, 2], "60": [0, 1]}
    assert (capable.releases["2"], capable.releases["3"]) == ("4.3", "3.9")
    assert ClusterState.objects.get().kafka_version == "3.9 or newer"
    assert dict(BrokerState.objects.values_list("broker_id", "release"))[3] == "3.9"
    kafka.silent = {3}
    refresh("versions")
    assert Capabilities.objects.get().releases["3"] == "3.9"
    assert ClusterState.objects.get().kafka_version == "3.9 or newer"
    assert Collection.objects.latest("pk").not_answered == [3]


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
    cluster.security_protocol, cluster.sasl_password = "SASL_PLAINTEXT", "planted"
    cluster.save(update_fields=["security_protocol", "sasl_password"])
    settings.FIELD_KEYS = [Fernet.generate_key().decode()]
    result = refresh("quorum")
    assert "FIELD_KEYS" in result.error
    assert Collection.objects.latest("pk").errors == [result.error]
