"""Catch-up of replicas that no reassignment adds: rate, time left, unknown states, and what the collector asks for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.catch_up import collector
from kafkadash.monitoring.catch_up.packing import unpack_followers
from kafkadash.monitoring.catch_up.rules import CatchUpState, FollowerReading, FollowerSample, sum_followers
from kafkadash.monitoring.collection import RefreshOutcome, interval_for
from kafkadash.monitoring.models import BrokerCatchUp, Collection, CollectorKind, CollectorRun, TopicState
from tests.monitoring.conftest import Clock
from tests.monitoring.memory_kafka import MemoryCluster
from tests.monitoring.test_collection_pace import due, put_off

Refresher = Callable[[str], RefreshOutcome]
NEW = FollowerSample("orders", "id", 0, None)
UNREAD = FollowerReading(1, 0, 1000, 0.0, None, error="broker 3 did not answer")


def sampled(*ends: tuple[float, int, int], start: int = 0, sample: FollowerSample = NEW) -> FollowerSample:
    """``ends``: seconds, end of the leader, end of the replica; a record of the leader's log has 100 bytes."""
    for at, leader_end, own_end in ends:
        size = 100 * (leader_end - start)
        sample = sample.advance(FollowerReading(1, start, leader_end, at, own_end, at, size))
    return sample


class TestRules:
    def test_lag_that_shrinks__has_the_time_left_that_the_net_rate_gives(self) -> None:
        sample = sampled((0, 10_000, 0), (10, 10_100, 1_100), (20, 10_200, 2_200))
        assert (sample.state, sample.lag, sample.bytes_behind) == (CatchUpState.CLOSING, 8_000, 800_000)
        assert [sample.rate, sample.written_rate] == pytest.approx([110, 10])
        assert sample.seconds_left == pytest.approx(80)
        assert sample.rate_bytes == pytest.approx(11_000)

    @pytest.mark.parametrize(
        ("ends", "state"),
        [
            ([(0, 1_000, 0)], CatchUpState.MEASURING),
            ([(0, 1_000, 0), (5, 1_000, 10), (10, 1_000, 20)], CatchUpState.MEASURING),
            ([(0, 1_000, 100), (10, 1_000, 100), (20, 1_000, 100)], CatchUpState.STILL),
            ([(0, 1_000, 0), (10, 2_000, 500), (20, 3_000, 1_000)], CatchUpState.FALLING),
            ([(0, 1_000, 0), (10, 2_000, 1_000), (20, 3_000, 2_000)], CatchUpState.FALLING),
            ([(0, 1_000, 0), (10, 1_000, 9), (20, 1_000, 18), (120, 1_000, 18)], CatchUpState.STILL),
        ],
        ids=["one sample", "ten seconds", "no growth", "slower than writes", "as fast as writes", "stopped"],
    )
    def test_no_time_left_is_made_up(self, ends: list[tuple[float, int, int]], state: CatchUpState) -> None:
        sample = sampled(*ends)
        assert (sample.state, sample.seconds_left) == (state, None)

    def test_goes_on_after_a_pause__is_measured_anew(self) -> None:
        stopped = sampled((0, 9_000, 0), (10, 9_000, 1_000), (20, 9_000, 2_000), (120, 9_000, 2_000))
        sample = sampled((130, 9_000, 2_100), sample=stopped)
        assert (sample.state, sample.rate) == (CatchUpState.MEASURING, None)

    def test_missing_offset__is_unknown_and_keeps_the_measurement(self) -> None:
        before = sampled((0, 10_000, 0), (10, 10_000, 1_000), (20, 10_000, 2_000))
        unread = before.advance(UNREAD)
        assert (unread.state, unread.lag, unread.rate, unread.seconds_left) == (CatchUpState.UNREAD, None, None, None)
        assert unread.error == "broker 3 did not answer"
        assert sampled((30, 10_000, 3_000), sample=unread).seconds_left == pytest.approx(70)

    def test_level__has_nothing_left_though_it_is_not_in_sync(self) -> None:
        sample = sampled((0, 1_000, 1_000))
        assert (sample.state, sample.lag, sample.bytes_behind, sample.seconds_left) == (CatchUpState.LEVEL, 0, 0, 0.0)

    def test_retention_passed_it_by__lacks_only_what_the_leader_still_has(self) -> None:
        assert sampled((0, 10_000, 100), start=9_000).lag == 1_000

    def test_broker__has_the_time_of_its_slowest_replica_and_none_where_one_is_unknown(self) -> None:
        slow = sampled((0, 10_000, 0), (10, 10_000, 1_000), (20, 10_000, 2_000))
        quick = sampled((0, 1_000, 0), (10, 1_000, 100), (20, 1_000, 900))
        both = sum_followers([slow, quick])
        assert (both.records, both.taken_at) == (8_100, 20)
        assert both.seconds_left == pytest.approx(80)
        unknown = sum_followers([slow, quick.advance(UNREAD)])
        assert (unknown.records, unknown.seconds_left, unknown.counts) == (8_000, None, {"closing": 1, "unread": 1})
        assert sum_followers([quick], skipped=1).seconds_left is None
        assert sum_followers([]).records is None


@pytest.mark.django_db
class TestCollector:
    @pytest.fixture
    def lagging(self, kafka: MemoryCluster, refresh: Refresher) -> MemoryCluster:
        """Broker 3 is up with 600 of 1,000 records of orders-0; broker 4 is being added, broker 5 is fenced."""
        kafka.fenced = {5}
        log = kafka.add("orders", 0, 1, 3)
        log.isr, log.ends[3] = (1,), 600
        kafka.add("orders", 1, 1, 5).isr = (1,)
        kafka.topics["orders"][1].offline = (5,)
        kafka.add("clicks", 0, 1, 2)
        kafka.move("clicks", 0, 1, 4)
        kafka.topics["clicks"][0].isr = (1, 2)
        for kind in (CollectorKind.REASSIGNMENTS, CollectorKind.LOG_DIRS):
            refresh(kind)
        put_off(CollectorKind.CATCH_UP)
        refresh(CollectorKind.METADATA)
        return kafka

    def test_replica_behind__is_measured_until_it_is_in_sync(
        self, lagging: MemoryCluster, refresh: Refresher, clock: Clock
    ) -> None:
        assert due(CollectorKind.CATCH_UP), "metadata has found a replica behind"
        log = lagging.topics["orders"][0]
        for _ in range(3):
            refresh(CollectorKind.CATCH_UP)
            clock.pass_by(10)
            log.ends[3] += 50
        row = BrokerCatchUp.objects.get()
        assert (row.broker_id, row.replicas, row.records, row.bytes_behind) == (3, 1, 300, 300_000)
        assert [row.rate, row.seconds_left] == pytest.approx([5, 60])
        assert row.sampled_at is not None
        assert row.sampled_at.timestamp() == pytest.approx(clock.now - 10, abs=0.001)
        assert CollectorRun.objects.get(kind=CollectorKind.CATCH_UP).interval_s == 5
        assert interval_for(row.cluster, CollectorKind.CATCH_UP, 2.0) == 20, "a costly one is slower"
        log.isr = (1, 3)
        refresh(CollectorKind.CATCH_UP)
        assert not BrokerCatchUp.objects.exists()

    def test_metadata_was_never_read__is_no_fresh_answer(self, lagging: MemoryCluster, refresh: Refresher) -> None:
        TopicState.objects.all().delete()
        CollectorRun.objects.filter(kind=CollectorKind.METADATA).update(succeeded_at=None)
        refresh(CollectorKind.CATCH_UP)
        assert CollectorRun.objects.get(kind=CollectorKind.CATCH_UP).succeeded_at is None

    def test_all_in_sync__kafka_is_not_asked(self, lagging: MemoryCluster, refresh: Refresher) -> None:
        lagging.topics["orders"][0].isr = (1, 3)
        refresh(CollectorKind.METADATA)
        asked: list[str] = []
        lagging.before_answer = asked.append
        refresh(CollectorKind.CATCH_UP)
        assert asked == []
        newest = Collection.objects.latest("pk")
        assert (newest.rows, newest.taken_at) == (0, CollectorRun.objects.get(kind="metadata").succeeded_at)
        assert CollectorRun.objects.get(kind=CollectorKind.CATCH_UP).interval_s == 30

    def test_follower_or_leader_does_not_answer__lag_is_unknown(
        self, lagging: MemoryCluster, refresh: Refresher
    ) -> None:
        for silent in (3, 1):
            lagging.silent = {silent}
            refresh(CollectorKind.CATCH_UP)
            row = BrokerCatchUp.objects.get()
            assert (row.records, row.seconds_left, row.counts) == (None, None, {"unread": 1})
            assert Collection.objects.latest("pk").not_answered == [silent]
        lagging.silent, lagging.topics["orders"][0].leader = set(), None
        refresh(CollectorKind.CATCH_UP)
        [sample] = unpack_followers(BrokerCatchUp.objects.get())
        assert (sample.state, sample.leader) == (CatchUpState.UNREAD, None)

    def test_more_than_a_refresh_reads__the_rest_is_told(
        self, lagging: MemoryCluster, cluster: Cluster, refresh: Refresher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in (2, 3):
            lagging.add("orders", number, 1, 3).isr = (1,)
        refresh(CollectorKind.METADATA)
        monkeypatch.setattr(collector, "MOST_REPLICAS", 1)
        refresh(CollectorKind.CATCH_UP)
        row = BrokerCatchUp.objects.get(cluster=cluster)
        assert (row.replicas, row.counts, row.seconds_left) == (3, {"measuring": 1, "skipped": 2}, None)

    def test_topic_was_deleted__its_replicas_are_gone(self, lagging: MemoryCluster, refresh: Refresher) -> None:
        refresh(CollectorKind.CATCH_UP)
        lagging.delete("orders")
        refresh(CollectorKind.CATCH_UP)
        assert not BrokerCatchUp.objects.exists()
