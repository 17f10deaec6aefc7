"""A refresh that finds nothing new writes next to nothing, however large the cluster; a change writes what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from django.db.models import F

from kafkadash.clusters.models import Cluster
from kafkadash.observe.collection import Refresh
from kafkadash.observe.collectors import metadata
from kafkadash.observe.models import BrokerState, ClusterState, CollectorRun, TopicState
from tests.observe.conftest import Clock
from tests.observe.memory_cluster import MemoryCluster
from tests.observe.written_rows import written_rows

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], Refresh]
TOPICS, PARTITIONS = 150, 20


@pytest.fixture
def large(kafka: MemoryCluster, refresh: Refresher) -> MemoryCluster:
    for topic in range(TOPICS):
        for partition in range(PARTITIONS):
            kafka.add(f"topic-{topic}", partition, 1 + partition % 3, 4, 5)
    for kind in ("metadata", "configs", "log_dirs", "metadata"):
        refresh(kind)
    return kafka


def observed(rows: Counter[str]) -> Counter[str]:
    """Without the findings that follow from a refresh: each that is open is marked as seen."""
    return Counter({table: number for table, number in rows.items() if table.startswith("observe_")})


@pytest.mark.parametrize("kind", ["metadata", "reassignments", "versions"])
def test_unchanged_refresh__writes_at_most_ten_rows_and_is_fresh(
    kind: str, large: MemoryCluster, refresh: Refresher, clock: Clock, cluster: Cluster
) -> None:
    refresh(kind)
    clock.pass_by(30)
    with written_rows() as rows:
        refresh(kind)
    assert observed(rows).total() <= 10, rows
    run = CollectorRun.objects.get(cluster=cluster, kind=kind)
    assert run.succeeded_at is not None
    assert run.succeeded_at.timestamp() == pytest.approx(clock.now)


def test_unchanged_refresh_of_configs__writes_ages_alone(
    large: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    """One row for each broker and for each throttle that is set, whose age is their own; none for topics."""
    large.set_config("topic-7", "leader.replication.throttled.replicas", "0:1")
    large.set_config("topic-8", "retention.ms", "60000")
    refresh("configs")
    refresh("configs")
    clock.pass_by(30)
    with written_rows() as rows:
        refresh("configs")
    bookkeeping = rows.pop("observe_collectorrun") + rows.pop("observe_collection")
    assert bookkeeping <= 10
    assert observed(rows) == {"observe_brokerstate": 5, "observe_throttlestate": 1}


def test_one_topic_changed__its_row_alone_is_written(large: MemoryCluster, refresh: Refresher, clock: Clock) -> None:
    before = {row["name"]: row for row in TopicState.objects.values()}
    large.topics["topic-77"][3].isr = (1, 4)
    clock.pass_by(30)
    with written_rows() as rows:
        refresh("metadata")
    assert rows["observe_topicstate"] == 1
    after = {row["name"]: row for row in TopicState.objects.values()}
    assert [name for name in before if after[name] != before[name]] == ["topic-77"]
    assert after["topic-77"]["under_replicated"] == 1


def test_config_of_one_topic_changed__its_row_alone_is_written(
    large: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    before = {row["name"]: row for row in TopicState.objects.values()}
    large.set_config("topic-42", "min.insync.replicas", "3")
    clock.pass_by(30)
    with written_rows() as rows:
        refresh("configs")
    assert rows["observe_topicstate"] == 1
    after = {row["name"]: row for row in TopicState.objects.values()}
    assert [name for name in before if after[name] != before[name]] == ["topic-42"]
    assert (after["topic-42"]["min_isr"], after["topic-42"]["at_min_isr"]) == (3, PARTITIONS)


def test_a_broker_was_fenced__its_row_and_the_topics_it_hosts_are_written(
    large: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    large.fenced = {5}
    large.add("elsewhere", 0, 1, 2)
    refresh("metadata")
    quiet = BrokerState.objects.get(broker_id=2)
    for log in large.topics["topic-3"].values():
        log.isr, log.offline = (log.replicas[0], 4), (5,)
    clock.pass_by(30)
    with written_rows() as rows:
        refresh("metadata")
    assert rows["observe_topicstate"] == 1
    assert rows["observe_brokerstate"] == 1
    assert BrokerState.objects.get(broker_id=2).changed_at == quiet.changed_at


def test_more_changed_than_a_short_transaction_can_write__is_written_in_portions_and_whole(
    large: MemoryCluster, refresh: Refresher, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "_ROWS_AT_ONCE", 40)
    large.delete("topic-3")
    for topic in large.topics.values():
        topic[0].isr = (topic[0].replicas[0], 4)
    clock.pass_by(30)
    with written_rows() as rows:
        refresh("metadata")
    assert rows["observe_topicstate"] == TOPICS
    assert TopicState.objects.count() == TOPICS - 1
    assert set(TopicState.objects.values_list("under_replicated", flat=True)) == {1}
    assert ClusterState.objects.get().under_replicated == TOPICS - 1


def test_lease_lost_between_two_portions__the_rest_is_not_written(
    large: MemoryCluster, refresh: Refresher, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "_ROWS_AT_ONCE", 40)
    for topic in large.topics.values():
        topic[0].isr = (topic[0].replicas[0], 4)
    write, calls = metadata._write_topics, []

    def taken_over(gone: list[int], changed: list[TopicState]) -> None:
        write(gone, changed)
        calls.append(len(changed))
        if len(calls) == 2:
            CollectorRun.objects.filter(cluster=cluster, kind="metadata").update(epoch=F("epoch") + 1)

    monkeypatch.setattr(metadata, "_write_topics", taken_over)
    assert "Another collector took over" in refresh("metadata").error
    assert calls == [0, 40]
    assert TopicState.objects.filter(under_replicated=1).count() == 40
    assert ClusterState.objects.get().under_replicated == 0
