"""Offsets of tiered topics (KIP-405) as they are read with the log directories, and what is told of their bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import as_message
from kafkadash.kafka.api import ConfigResource, DeadlineExceeded
from kafkadash.monitoring.collection import RefreshOutcome
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import Collection, TierState, TopicState
from kafkadash.monitoring.tiers import collector
from kafkadash.monitoring.tiers.rules import PartitionTiers, TopicTiers, sum_tiers
from kafkadash.monitoring.tiers.stored import load_tiers
from tests.monitoring.conftest import Clock
from tests.monitoring.memory_kafka import MemoryCluster

Refresher = Callable[[str], RefreshOutcome]

TIERED = PartitionTiers(log_start=0, local_start=1_232, last_tiered=1_429, log_end=1_500, local_bytes=2_680_000)
"""A partition as Kafka 4.3 told it: 268 records of 10,000 bytes are on the disk, 70 of them nowhere else."""


@pytest.fixture
def tiered(kafka: MemoryCluster, refresh: Refresher) -> MemoryCluster:
    """Two partitions of orders, with the figures of ``TIERED`` and with half of it uploaded; clicks is not tiered."""
    for number, end in ((0, 1_500), (1, 100)):
        log = kafka.add("orders", number, 1, 2, 3, end=end)
        log.size = 2_680_000 if number == 0 else 1_000_000
    first, second = kafka.topics["orders"].values()
    second.tiered = 49
    first.local, first.tiered = {1: 1_232, 2: 1_232, 3: 1_232}, 1_429
    kafka.add("clicks", 0, 1, 2)
    kafka.configs[ConfigResource.topic("orders")] = {"remote.storage.enable": "true"}
    for kind in ("metadata", "configs"):
        refresh(kind)
    return kafka


@pytest.mark.django_db
def test_collection__tiered_topic__stores_offsets_and_bytes_of_its_leaders(
    tiered: MemoryCluster, cluster: Cluster, refresh: Refresher
) -> None:
    refresh("log_dirs")

    assert TierState.objects.count() == 1, "clicks is not tiered"
    orders = TopicState.objects.get(name="orders")
    found = load_tiers(cluster, orders)
    assert found is not None
    assert found.partitions == {0: TIERED, 1: PartitionTiers(0, 0, 49, 100, 1_000_000)}
    assert found.whole == TopicTiers(2, 3_680_000, 1_480, 14_800_000, 120, 1_200_000)


@pytest.mark.django_db
def test_collection__offsets_are_not_answered__keeps_them_and_says_so(
    tiered: MemoryCluster, cluster: Cluster, refresh: Refresher
) -> None:
    refresh("log_dirs")
    before = TierState.objects.get()
    tiered.fail_calls["replica_offsets"] = DeadlineExceeded(as_message("no answer within 8 s"))

    refresh("log_dirs")

    assert TierState.objects.get().taken_at == before.taken_at
    errors = Collection.objects.filter(kind="log_dirs").latest("pk").errors
    assert [each["code"] for each in errors] == [CollectionErrorCode.TIERS_NOT_READ]


@pytest.mark.django_db
def test_collection__not_tiered_any_more__has_no_row(tiered: MemoryCluster, refresh: Refresher) -> None:
    refresh("log_dirs")
    tiered.configs.clear()
    refresh("configs")

    refresh("log_dirs")

    assert not TierState.objects.exists()


@pytest.mark.django_db
def test_collection__configs_not_read__keeps_its_row(tiered: MemoryCluster, refresh: Refresher) -> None:
    refresh("log_dirs")
    TopicState.objects.update(config=None)

    refresh("log_dirs")

    assert TierState.objects.exists()


@pytest.mark.django_db
def test_collection__more_partitions_than_fit__takes_turns_and_says_how_many_are_left_out(
    tiered: MemoryCluster, cluster: Cluster, refresh: Refresher, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two partitions of orders, one of clicks and of events each; two are read at once."""
    tiered.add("events", 0, 1, 2)
    for name in ("clicks", "events"):
        tiered.configs[ConfigResource.topic(name)] = {"remote.storage.enable": "true"}
    for kind in ("metadata", "configs"):
        refresh(kind)
    monkeypatch.setattr(collector, "MOST_PARTITIONS", 2)
    names = dict(TopicState.objects.values_list("topic_id", "name"))

    read = []
    for _ in range(3):
        clock.pass_by(60)
        refresh("log_dirs")
        newest = TierState.objects.latest("taken_at").taken_at
        rows = TierState.objects.filter(taken_at=newest)
        [error] = Collection.objects.filter(kind="log_dirs").latest("pk").errors
        assert error["code"] == CollectionErrorCode.TIERS_LEFT_OUT
        read.append((sorted(names[row.topic_id] for row in rows), error["params"]["topics"]))

    assert read == [(["clicks", "events"], 1), (["orders"], 2), (["clicks", "events"], 1)]
    assert TierState.objects.count() == 3


@pytest.mark.domain
def test_sum__broker_cannot_tell_what_is_tiered__remote_is_unknown_and_local_is_not() -> None:
    old = PartitionTiers(log_start=0, local_start=1_232, last_tiered=None, log_end=1_500, local_bytes=2_680_000)

    assert sum_tiers([TIERED, old]) == TopicTiers(2, 5_360_000, None, None, None, None)


@pytest.mark.domain
@pytest.mark.parametrize(
    ("offsets", "remote", "only_remote", "pending"),
    [
        ((0, 1_232, -1, 1_500), None, 1_232, None),  # restarted, or remote.log.copy.disable
        ((0, 1_232, 899, 1_500), None, 1_232, None),
        ((0, 0, -1, 1_500), None, 0, None),
        ((0, 1_232, 1_231, 1_500), 1_232, 1_232, 268),
        ((700, 700, 99, 1_500), 0, 0, 800),
        ((700, 700, -1, 700), 0, 0, 0),
    ],
    ids=["-1", "before the disk", "-1 and all on disk", "not twice", "deleted", "no records"],
)
def test_records__last_tiered_offset_may_be_unknown__are_not_taken_as_none(
    offsets: tuple[int, int, int, int], remote: int | None, only_remote: int, pending: int | None
) -> None:
    found = PartitionTiers(*offsets, local_bytes=2_680_000)

    assert (found.remote_records, found.remote_only_records, found.pending_records) == (remote, only_remote, pending)


@pytest.mark.domain
def test_bytes__nothing_on_the_disk__remote_bytes_are_unknown() -> None:
    empty = PartitionTiers(log_start=0, local_start=100, last_tiered=99, log_end=100, local_bytes=0)

    assert (empty.remote_records, empty.remote_bytes, empty.pending_bytes) == (100, None, 0)
