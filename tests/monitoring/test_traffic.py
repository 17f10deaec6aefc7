"""Records and bytes in: rates from log ends, what is unknown, and the charts of cluster, topic and broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
import time_machine
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.core.failures import FailureKind
from kafkadash.findings.board import summarize_cluster
from kafkadash.kafka.api import LogSpan
from kafkadash.monitoring.collection import RefreshOutcome
from kafkadash.monitoring.collectors import to_utc
from kafkadash.monitoring.models import (
    ClusterPoint,
    ClusterTrend,
    CollectorRun,
    LogEndWindow,
    TopicState,
    TopicTraffic,
)
from kafkadash.monitoring.traffic.pages import TREND, broker_throughput, topic_throughput, trends_context
from kafkadash.monitoring.traffic.rules import (
    SLOT_S,
    SLOTS,
    LogEnds,
    PartitionRate,
    TrafficRate,
    advance_slots,
    byte_rate,
    keeps_all_bytes,
    partition_rates,
    record_rate,
    shard_of,
    sum_rates,
)
from kafkadash.ops.retention import prune
from tests.monitoring.conftest import Clock
from tests.monitoring.memory_kafka import MemoryCluster
from tests.pages.conftest import figures_of

Refresher = Callable[[str], RefreshOutcome]
NEVER_RUN: CollectorRun | None = None


# ---- rules


@pytest.mark.domain
@pytest.mark.parametrize(
    ("before", "span", "rate"),
    [
        ((100, 0.0), LogSpan(0, 700, 60.0), 10.0),
        ((100, 0.0), LogSpan(0, 100, 60.0), 0.0),
        ((100, 0.0), LogSpan(0, 99, 60.0), None),
        (None, LogSpan(0, 700, 60.0), None),
        ((100, 0.0), None, None),
        ((100, 0.0), LogSpan(0, 700, 0.0), None),
        ((100, 0.0), LogSpan(0, 280, 180.0), 1.0),
        ((100, 0.0), LogSpan(0, 281, 181.0), None),
    ],
    ids=["written", "idle", "shorter log", "new", "not read", "same time", "late", "too late"],
)
def test_record_rate__from_two_ends__or_unknown(
    before: tuple[int, float] | None, span: LogSpan | None, rate: float | None
) -> None:
    assert record_rate(before, span, 60) == rate


@pytest.mark.domain
def test_byte_rate__new_records_times_bytes_per_kept_record() -> None:
    assert byte_rate(10.0, LogSpan(500, 700, 60.0), 4000) == 200.0
    assert byte_rate(0.0, LogSpan(0, 0, 60.0), None) == 0.0
    assert byte_rate(None, LogSpan(500, 700, 60.0), 4000) is None
    assert byte_rate(10.0, LogSpan(700, 700, 60.0), 4000) is None
    assert byte_rate(10.0, LogSpan(500, 700, 60.0), 0) is None
    assert byte_rate(10.0, LogSpan(500, 700, 60.0), None) is None


@pytest.mark.domain
@pytest.mark.parametrize(
    ("config", "kept"),
    [
        (None, False),
        ({}, True),
        ({"cleanup.policy": ("delete", "topic")}, True),
        ({"cleanup.policy": ("compact,delete", "topic")}, False),
        ({"remote.storage.enable": ("true", "topic")}, False),
        ({"cleanup.policy": (None, "topic")}, True),
    ],
    ids=["not read", "defaults", "delete", "compacted", "tiered", "no value"],
)
def test_bytes_per_record__only_of_whole_logs(config: dict[str, tuple[str | None, str]] | None, kept: bool) -> None:
    assert keeps_all_bytes(config) is kept


@pytest.mark.domain
def test_topic_created_again__has_no_rate_yet() -> None:
    before = LogEnds("old-id", {0: (100, 0.0)})
    spans = {0: LogSpan(0, 700, 60.0)}
    assert partition_rates(before, "new-id", {0: 1}, spans, None, 60) == [PartitionRate(0, 1, None, None)]
    assert partition_rates(before, "old-id", {0: 1}, spans, None, 60) == [PartitionRate(0, 1, 10.0, None)]


@pytest.mark.domain
@given(st.lists(st.tuples(st.none() | st.floats(0, 1e6), st.none() | st.floats(0, 1e9)), max_size=12))
def test_sum__counts_what_is_unknown_and_never_invents(parts: list[tuple[float | None, float | None]]) -> None:
    rates = [
        PartitionRate(n, 1, records, octets if records is not None else None)
        for n, (records, octets) in enumerate(parts)
    ]
    whole = sum_rates(rates)
    known = [rate.records for rate in rates if rate.records is not None]
    assert whole.unknown == len(rates) - len(known)
    assert (whole.records is None) == (not known)
    assert whole.records is None or whole.records == pytest.approx(sum(known))
    assert sum_rates([]) == TrafficRate(None, None)


# ---- collection


@pytest.fixture
def written(kafka: MemoryCluster, refresh: Refresher, cluster: Cluster) -> MemoryCluster:
    """Topic orders with two partitions that brokers 1 and 2 lead, all other facts read."""
    kafka.add("orders", 0, 1, 2, end=1000)
    kafka.add("orders", 1, 2, 3, end=1000)
    for kind in ("metadata", "log_dirs", "configs"):
        assert not refresh(kind).error
    return kafka


@pytest.mark.django_db
def test_first_refresh__has_ends_and_no_rates(written: MemoryCluster, refresh: Refresher) -> None:
    assert not refresh("traffic").error
    point = ClusterPoint.objects.get()
    assert (point.records_rate, point.bytes_rate, point.partitions, point.unknown) == (None, None, 2, 2)
    assert LogEndWindow.objects.get().shard == shard_of("orders")
    assert not TopicTraffic.objects.exists()


@pytest.mark.django_db
def test_second_refresh__has_rates_of_cluster_topic_and_brokers(
    written: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    refresh("traffic")
    clock.pass_by(60)
    _write(written, "orders", 0, 600)
    _write(written, "orders", 1, 60)
    refresh("traffic")
    point = ClusterPoint.objects.latest("taken_at")
    assert (point.records_rate, point.unknown, point.without_bytes) == (11.0, 0, 0)
    # A log of 1,000,000 bytes has 1,600 records, the other one 1,060.
    octets = [10 * 1_000_000 / 1600, 1_000_000 / 1060]
    assert point.bytes_rate == pytest.approx(sum(octets), rel=1e-4)
    assert point.brokers["1"][:2] == [10.0, pytest.approx(octets[0], rel=1e-4)]
    assert point.brokers["2"][:2] == [1.0, pytest.approx(octets[1], rel=1e-4)]
    assert TopicTraffic.objects.get().topics == {"orders": [11.0, pytest.approx(sum(octets), rel=1e-4), 0, 0]}


@pytest.mark.django_db
def test_partition_that_is_not_read__is_unknown_and_counted(
    written: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    refresh("traffic")
    clock.pass_by(60)
    written.silent = {2}
    _write(written, "orders", 0, 600)
    refresh("traffic")
    point = ClusterPoint.objects.latest("taken_at")
    assert (point.records_rate, point.unknown) == (10.0, 1)
    clock.pass_by(60)
    written.silent = set()
    _write(written, "orders", 1, 240)
    refresh("traffic")
    # The end from before the gap was kept: two minutes for 240 records.
    assert ClusterPoint.objects.latest("taken_at").brokers["2"][0] == 2.0


@pytest.mark.django_db
def test_compacted_topic__has_records_and_no_bytes(written: MemoryCluster, refresh: Refresher, clock: Clock) -> None:
    written.set_config("orders", "cleanup.policy", "compact")
    refresh("configs")
    refresh("traffic")
    clock.pass_by(60)
    _write(written, "orders", 0, 600)
    refresh("traffic")
    point = ClusterPoint.objects.latest("taken_at")
    # Nothing was written to the other one: that is 0 bytes, whatever its log keeps.
    assert (point.records_rate, point.bytes_rate, point.without_bytes) == (10.0, 0.0, 1)


@pytest.mark.django_db
def test_no_leader_answers__is_a_failed_refresh(written: MemoryCluster, refresh: Refresher) -> None:
    written.silent = {1, 2}
    assert refresh("traffic").error
    assert CollectorRun.objects.get(kind="traffic").last_failure == FailureKind.UNREACHABLE
    assert not ClusterPoint.objects.exists()


@pytest.mark.django_db
def test_cluster_without_topics__has_a_point_of_nothing(
    kafka: MemoryCluster, refresh: Refresher, cluster: Cluster
) -> None:
    refresh("metadata")
    assert not refresh("traffic").error
    point = ClusterPoint.objects.get()
    assert (point.records_rate, point.partitions, point.lag) == (None, 0, None)


@pytest.mark.django_db
def test_figures_of_others__only_while_they_are_fresh(written: MemoryCluster, refresh: Refresher, clock: Clock) -> None:
    refresh("traffic")
    point = ClusterPoint.objects.latest("taken_at")
    assert (point.under_replicated, point.offline) == (0, 0)
    assert point.disk_total is not None
    clock.pass_by(3600)
    refresh("traffic")
    point = ClusterPoint.objects.latest("taken_at")
    assert (point.under_replicated, point.offline, point.disk_total) == (None, None, None)


@pytest.mark.django_db
def test_points__are_deleted_after_their_time(written: MemoryCluster, refresh: Refresher, clock: Clock) -> None:
    refresh("traffic")
    clock.pass_by(60)
    refresh("traffic")
    now = ClusterPoint.objects.latest("taken_at").taken_at
    assert prune(now + timedelta(hours=24))["cluster_points"] == 0
    found = prune(now + timedelta(hours=26))
    assert (found["cluster_points"], found["topic_traffic"]) == (2, 1)


# ---- charts


@pytest.mark.django_db
def test_charts__have_the_stored_rates_and_gaps(
    written: MemoryCluster, refresh: Refresher, clock: Clock, cluster: Cluster
) -> None:
    refresh("traffic")
    clock.pass_by(60)
    _write(written, "orders", 0, 600)
    _write(written, "orders", 1, 60)
    refresh("traffic")
    now = to_utc(clock())
    topic = topic_throughput(cluster, "orders", None, now, NEVER_RUN)
    octets, records = topic["panels"]
    assert [value for value in records.spec.lines[0].values if value is not None] == [11.0]
    assert len(records.spec.times) == 60
    assert octets.spec.unit == "kB/s"
    led = broker_throughput(cluster, 1, "hour", now, NEVER_RUN)["panels"][1]
    assert [value for value in led.spec.lines[0].values if value is not None] == [10.0]
    tiles = {tile.key: tile for tile in trends_context(cluster, now, NEVER_RUN)["tiles"]}
    assert tiles["records"].value == "11/s"
    assert tiles["lag"].spec.known is False
    assert len(json.loads(tiles["records"].spec.data)["x"]) == TREND.length_s // TREND.step_s


@pytest.mark.django_db
def test_charts__of_partial_sums__name_what_is_left_out(
    written: MemoryCluster, refresh: Refresher, clock: Clock, cluster: Cluster
) -> None:
    refresh("traffic")
    clock.pass_by(60)
    written.silent = {2}
    _write(written, "orders", 0, 600)
    refresh("traffic")
    now = to_utc(clock())
    tiles = {tile.key: tile for tile in trends_context(cluster, now, NEVER_RUN)["tiles"]}
    assert figures_of(tiles["records"].note) == figures_of(tiles["bytes"].note) == ["1"]
    topic = topic_throughput(cluster, "orders", None, now, NEVER_RUN)["panels"][1]
    assert figures_of(topic.summary)[-1] == "1"
    alone = broker_throughput(cluster, 1, None, now, NEVER_RUN)["panels"][1]
    assert figures_of(alone.summary)[-1] != "1"


@pytest.mark.django_db
def test_trend__newest_point_does_not_know_it__is_unknown_though_it_was_known(
    written: MemoryCluster, refresh: Refresher, clock: Clock, cluster: Cluster
) -> None:
    refresh("traffic")
    clock.pass_by(900)
    refresh("traffic")
    tiles = {tile.key: tile for tile in trends_context(cluster, to_utc(clock()), NEVER_RUN)["tiles"]}
    # The metadata is 15 minutes old: what was known of it then is drawn, and is not the value of now.
    assert tiles["under_replicated"].spec.known
    assert (tiles["under_replicated"].value, tiles["disk"].value) == ("", "")


@pytest.mark.django_db
def test_trend_of_a_list__holds_the_highest_rate_of_each_half_hour(
    written: MemoryCluster, refresh: Refresher, clock: Clock, cluster: Cluster
) -> None:
    clock.pass_by(SLOT_S - clock() % SLOT_S)  # all readings are of one slot
    refresh("traffic")
    for records in (600, 60):
        clock.pass_by(60)
        _write(written, "orders", 0, records)
        refresh("traffic")
    trend = ClusterTrend.objects.get()
    assert (trend.slots[-1], trend.rate) == (10.0, 1.0)
    for _ in range(31):
        clock.pass_by(60)
        refresh("traffic")
    trend = ClusterTrend.objects.get()
    known = [rate for rate in trend.slots if rate is not None]
    assert (known[0], known[-1]) == (10.0, 0.0)
    with time_machine.travel(to_utc(clock()), tick=False):
        standing = summarize_cluster(cluster, to_utc(clock()))
    assert standing.records_in
    assert standing.records_in.value == "0/s"
    assert "2.0H" in standing.records_in.path, "the highest rate is at the top"
    later = summarize_cluster(cluster, to_utc(clock()) + timedelta(hours=1)).records_in
    assert later
    assert later.value == "", "a rate of an hour ago is not that of now"
    begin, _, width, _ = map(int, later.box.split())
    end = int(later.path.rpartition("H")[2])
    assert begin + width - end == 2, "two slots have passed since"
    assert width <= SLOTS


@pytest.mark.domain
@pytest.mark.parametrize(
    ("slots", "moved", "rate", "after"),
    [
        ([], 1, 2.0, [2.0]),
        ([3.0], 0, 2.0, [3.0]),
        ([3.0], 0, None, [3.0]),
        ([3.0], 1, None, [3.0, None]),
        ([3.0], 3, 1.0, [3.0, None, None, 1.0]),
        ([1.0] * SLOTS, 2, 5.0, [*[1.0] * (SLOTS - 2), None, 5.0]),
        ([1.0] * SLOTS, 1000, 5.0, [*[None] * (SLOTS - 1), 5.0]),
    ],
    ids=["first", "higher before", "unknown now", "unknown slot", "gap", "full", "all old"],
)
def test_slots__move_with_time(
    slots: list[float | None], moved: int, rate: float | None, after: list[float | None]
) -> None:
    assert advance_slots(slots, moved, rate) == after


@pytest.mark.django_db
def test_topic_whose_name_is_a_number__has_its_own_rates(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock, cluster: Cluster
) -> None:
    kafka.add("0", 0, 1)
    refresh("metadata")
    refresh("traffic")
    clock.pass_by(60)
    _write(kafka, "0", 0, 120)
    refresh("traffic")
    records = topic_throughput(cluster, "0", None, to_utc(clock()), NEVER_RUN)["panels"][1]
    assert [value for value in records.spec.lines[0].values if value is not None] == [2.0]


@pytest.mark.django_db
def test_pages__show_charts_and_trends(
    written: MemoryCluster, refresh: Refresher, clock: Clock, cluster: Cluster, client: Client
) -> None:
    client.force_login(User.objects.create_superuser("root"))
    refresh("traffic")
    clock.pass_by(60)
    _write(written, "orders", 0, 600)
    refresh("traffic")
    assert TopicState.objects.count() == 1
    for address, canvas in (
        ("/clusters/memory/", "trend-records-canvas-memory"),
        ("/clusters/memory/trends/", "trend-records-canvas-memory"),
        ("/clusters/memory/topics/orders/?traffic=day", "topic-records-canvas"),
        ("/clusters/memory/brokers/1/?traffic=nonsense", "broker-records-canvas"),
    ):
        with time_machine.travel(to_utc(clock()), tick=False):
            response = client.get(address)
        assert response.status_code == 200, address
        assert f'id="{canvas}"'.encode() in response.content, address


def _write(kafka: MemoryCluster, topic: str, partition: int, records: int) -> None:
    log = kafka.topics[topic][partition]
    log.ends = {broker: end + records for broker, end in log.ends.items()}
