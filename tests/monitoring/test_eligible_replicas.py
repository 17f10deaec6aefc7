"""Eligible leader replicas as the collector of metadata stores them, and what it asks for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import as_message
from kafkadash.kafka.api import DeadlineExceeded
from kafkadash.monitoring import eligible_replicas
from kafkadash.monitoring.collection import RefreshOutcome
from kafkadash.monitoring.eligible_replicas import LeaderCandidates, load_candidates
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import Collection, TopicState
from tests.monitoring.conftest import Clock
from tests.monitoring.memory_kafka import MemoryCluster

pytestmark = pytest.mark.django_db
Refresher = Callable[[str], RefreshOutcome]


@pytest.fixture
def orphan(kafka: MemoryCluster) -> MemoryCluster:
    """orders-1 has no leader, orders-2 lacks a replica, the others are in sync."""
    kafka.racks, kafka.fenced = {1: "a", 2: "b", 3: "c"}, {3}
    for number in range(4):
        kafka.add("orders", number, 1, 2, 3, end=100)
    kafka.add("clicks", 0, 1, 2)
    log = kafka.topics["orders"][1]
    log.leader, log.isr, log.offline, log.ends = None, (), (3,), {1: 90, 2: 95, 3: 100}
    kafka.topics["orders"][2].isr = (1, 2)
    kafka.eligible = {("orders", 1): ((3,), (3,))}
    return kafka


def stored(cluster: Cluster) -> dict[int, LeaderCandidates]:
    topic_ids = list(TopicState.objects.values_list("topic_id", flat=True))
    return {number: own for (_, number), own in load_candidates(cluster, topic_ids).items()}


def test_collection__asks_for_troubled_partitions_alone(
    orphan: MemoryCluster, cluster: Cluster, refresh: Refresher
) -> None:
    refresh("metadata")
    assert orphan.described == [("orders", 1), ("orders", 2)]
    found = stored(cluster)
    assert (found[1].eligible, found[1].last_known) == ((3,), (3,))
    assert {broker: end for broker, (end, _) in found[1].ends.items()} == {1: 90, 2: 95}, "broker 3 is fenced"
    assert (found[2].eligible, found[2].ends) == ((), {})


def test_collection__partitions_are_in_sync_again__keeps_and_asks_nothing(
    orphan: MemoryCluster, cluster: Cluster, refresh: Refresher
) -> None:
    refresh("metadata")
    for log in orphan.topics["orders"].values():
        log.leader, log.isr, log.offline = 1, log.replicas, ()
    orphan.described.clear()
    refresh("metadata")
    assert (stored(cluster), orphan.described) == ({}, [])


def test_collection__no_broker_offers_it__is_unknown(
    orphan: MemoryCluster, cluster: Cluster, refresh: Refresher
) -> None:
    orphan.eligible = None
    refresh("metadata")
    assert (stored(cluster)[1].eligible, stored(cluster)[1].last_known) == (None, None)
    assert set(stored(cluster)[1].ends) == {1, 2}
    assert Collection.objects.get().errors == []


def test_collection__answer_does_not_come__keeps_what_is_stored_with_its_age(
    orphan: MemoryCluster, cluster: Cluster, refresh: Refresher, clock: Clock
) -> None:
    refresh("metadata")
    before = stored(cluster)
    clock.pass_by(30)
    orphan.fail_calls["eligible_replicas"] = DeadlineExceeded(as_message("no answer"))
    assert refresh("metadata").error is None
    assert stored(cluster) == before
    [error] = Collection.objects.latest("pk").errors
    assert CollectionErrorCode.ELIGIBLE_NOT_READ in str(error)


def test_collection__more_are_troubled_than_one_answer_has__asks_for_the_worst(
    orphan: MemoryCluster, refresh: Refresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eligible_replicas, "MOST_PARTITIONS", 1)
    refresh("metadata")
    assert orphan.described == [("orders", 1)]
