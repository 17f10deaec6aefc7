"""Facts that something casts doubt on are read at once, and as often as their cost allows.

Refused credentials are not tried for ever at full pace, and topics that Kafka hides are told.

A refresh that finds nothing new writes next to nothing, however large the cluster; a change writes what changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now
from pytest_django import Settings

from kafkadash.clusters.contact import judge_contact
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.services import set_enabled, update_connection
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import as_message, coded
from kafkadash.kafka.api import AuthenticationFailed, ItemError, KafkaUnreachable, QuorumReplica, QuorumUnavailable
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring import collection
from kafkadash.monitoring import metadata_collector as metadata
from kafkadash.monitoring.collection import RefreshOutcome, interval_for
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.freshness import collection_context
from kafkadash.monitoring.models import BrokerState, ClusterState, Collection, CollectorKind, CollectorRun, TopicState
from kafkadash.monitoring.schedule import read_soon
from tests.monitoring.conftest import Clock
from tests.monitoring.memory_kafka import MemoryCluster
from tests.monitoring.written_rows import written_rows

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], RefreshOutcome]
HOUR = timedelta(hours=1)


def put_off(kind: CollectorKind) -> None:
    CollectorRun.objects.filter(kind=kind).update(next_at=Now() + HOUR)


def due(kind: CollectorKind) -> bool:
    return CollectorRun.objects.filter(kind=kind, next_at__lte=Now()).exists()


@pytest.fixture
def known(kafka: MemoryCluster, refresh: Refresher) -> MemoryCluster:
    """Everything was read once, and metadata is due in an hour."""
    kafka.add("orders", 0, 1, 2)
    for kind in (CollectorKind.METADATA, CollectorKind.ANSWERS, CollectorKind.QUORUM):
        refresh(kind)
    put_off(CollectorKind.METADATA)
    return kafka


class TestDoubts:
    def test_nothing_new_casts_no_doubt(self, known: MemoryCluster, refresh: Refresher) -> None:
        for kind in (CollectorKind.ANSWERS, CollectorKind.QUORUM):
            refresh(kind)
        assert not due(CollectorKind.METADATA)

    def test_a_silent_broker_casts_doubt_on_metadata(self, known: MemoryCluster, refresh: Refresher) -> None:
        known.silent = {2}
        refresh(CollectorKind.ANSWERS)
        assert due(CollectorKind.METADATA)
        assert BrokerState.objects.get(broker_id=2).silent_since is not None
        put_off(CollectorKind.METADATA)
        refresh(CollectorKind.ANSWERS)
        assert not due(CollectorKind.METADATA), "that is known by now"

    def test_an_election_casts_doubt_on_metadata(self, known: MemoryCluster, refresh: Refresher) -> None:
        known.leader_epoch += 1
        refresh(CollectorKind.QUORUM)
        assert due(CollectorKind.METADATA)

    def test_an_observer_that_falls_behind_casts_doubt_on_metadata(
        self, known: MemoryCluster, refresh: Refresher, clock: Clock
    ) -> None:
        clock.pass_by(10)
        now = round(clock.now * 1000)
        behind = {4: now - 9000}
        known.observers = [
            QuorumReplica(n, f"d{n}", 499, behind.get(n, now - 100), behind.get(n, now - 100)) for n in (2, 3, 4, 5)
        ]
        refresh(CollectorKind.QUORUM)
        assert due(CollectorKind.METADATA)

    def test_controllers_that_are_silent_are_asked_again_at_once_and_then_metadata_is_read(
        self, known: MemoryCluster, refresh: Refresher
    ) -> None:
        known.fail_calls["quorum"] = QuorumUnavailable(as_message("No controller answers."))
        refresh(CollectorKind.QUORUM)
        assert due(CollectorKind.QUORUM), "it may be an election"
        assert not due(CollectorKind.METADATA)
        refresh(CollectorKind.QUORUM)
        assert not due(CollectorKind.QUORUM)
        assert due(CollectorKind.METADATA), "what brokers tell is old from now on, and its pages have to say so"

    def test_a_broker_that_does_not_answer_another_question_is_asked_for_a_sign_of_life(
        self, known: MemoryCluster, refresh: Refresher
    ) -> None:
        put_off(CollectorKind.ANSWERS)
        known.silent = {2}
        refresh(CollectorKind.LOG_DIRS)
        assert due(CollectorKind.ANSWERS)

    def test_a_cluster_that_answers_again_is_read_at_once(self, known: MemoryCluster, refresh: Refresher) -> None:
        known.fail = KafkaUnreachable(as_message("No broker answers."))
        for kind in (CollectorKind.VERSIONS, CollectorKind.METADATA):
            refresh(kind)
        put_off(CollectorKind.VERSIONS)
        refresh(CollectorKind.METADATA)
        assert not due(CollectorKind.VERSIONS)
        known.fail = None
        refresh(CollectorKind.METADATA)
        assert due(CollectorKind.VERSIONS)

    def test_doubt_that_comes_up_during_a_refresh_is_followed_by_another(
        self, known: MemoryCluster, cluster: Cluster
    ) -> None:
        CollectorRun.objects.filter(kind=CollectorKind.METADATA).update(next_at=Now())
        known.before_answer = lambda _: read_soon(cluster.pk, [CollectorKind.METADATA])
        assert collection.refresh(CollectorRun.objects.get(kind=CollectorKind.METADATA).pk) is not None
        assert due(CollectorKind.METADATA)

    def test_refused_credentials_are_not_tried_the_sooner(
        self, known: MemoryCluster, refresh: Refresher, cluster: Cluster
    ) -> None:
        known.fail = AuthenticationFailed(as_message("Broker 1 refused the credentials."))
        refresh(CollectorKind.METADATA)
        put_off(CollectorKind.METADATA)
        read_soon(cluster.pk, [CollectorKind.METADATA])
        assert not due(CollectorKind.METADATA)


class TestSilence:
    def test_one_that_is_fenced_stays_silent_until_it_answers(self, known: MemoryCluster, refresh: Refresher) -> None:
        known.silent = {2}
        refresh(CollectorKind.ANSWERS)
        since = BrokerState.objects.get(broker_id=2).silent_since
        assert isinstance(since, datetime)
        known.fenced = {2}
        refresh(CollectorKind.METADATA)
        refresh(CollectorKind.ANSWERS)
        assert BrokerState.objects.get(broker_id=2).silent_since == since
        known.silent, known.fenced = set(), set()
        refresh(CollectorKind.ANSWERS)
        assert BrokerState.objects.get(broker_id=2).silent_since is None

    def test_a_refused_login_is_an_answer(
        self, known: MemoryCluster, refresh: Refresher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        known.silent = {2}
        refused = ItemError(as_message("Broker 2 refused the credentials."), name=FailureKind.CREDENTIALS_REFUSED)
        monkeypatch.setattr(known, "_silence", lambda _: {2: refused})
        refresh(CollectorKind.ANSWERS)
        assert BrokerState.objects.get(broker_id=2).silent_since is None

    def test_when_nobody_answers_it_is_the_cluster_that_cannot_be_reached(
        self, known: MemoryCluster, refresh: Refresher
    ) -> None:
        known.silent = set(known.racks)
        assert refresh(CollectorKind.ANSWERS).error
        assert CollectorRun.objects.get(kind=CollectorKind.ANSWERS).last_failure == KafkaUnreachable.kind
        assert not BrokerState.objects.filter(silent_since__isnull=False).exists()


class TestPace:
    @pytest.mark.parametrize(
        ("kind", "processor_s", "seconds"),
        [
            (CollectorKind.METADATA, None, 30),
            (CollectorKind.METADATA, 0.099, 10),
            (CollectorKind.METADATA, 0.101, 30),
            (CollectorKind.CONFIGS, 0.05, 10),
            (CollectorKind.ANSWERS, 0.049, 5),
            (CollectorKind.ANSWERS, 0.051, 15),
            (CollectorKind.LOG_DIRS, 0.001, 60),
        ],
    )
    def test_what_costs_less_than_a_hundredth_of_a_core_is_read_more_often(
        self, cluster: Cluster, kind: CollectorKind, processor_s: float | None, seconds: float
    ) -> None:
        assert interval_for(cluster, kind, processor_s) == seconds

    def test_a_pace_of_the_clusters_own_stands(self, cluster: Cluster) -> None:
        cluster.cadence = {"metadata": 120}
        assert interval_for(cluster, CollectorKind.METADATA, 0.001) == 120

    def test_a_quicker_usual_pace_stands(self, cluster: Cluster, settings: Settings) -> None:
        settings.COLLECT_INTERVALS = {**settings.COLLECT_INTERVALS, "metadata": 4}
        assert interval_for(cluster, CollectorKind.METADATA, 0.001) == 4

    def test_the_cost_of_a_refresh_is_measured_and_smoothed(self, known: MemoryCluster, refresh: Refresher) -> None:
        run = CollectorRun.objects.get(kind=CollectorKind.METADATA)
        assert run.processor_s is not None
        assert 0 < run.processor_s < 5
        CollectorRun.objects.filter(pk=run.pk).update(processor_s=1000)
        refresh(CollectorKind.METADATA)
        run.refresh_from_db()
        assert run.processor_s == pytest.approx(500, abs=2)
        assert run.interval_s == 30


REFUSED = AuthenticationFailed(KafkaErrorCode.HANDSHAKE_FAILED, who="Broker 1", detail="no")


def pause(kind: str) -> timedelta:
    run = CollectorRun.objects.get(kind=kind)
    assert run.attempted_at is not None
    return run.next_at - run.attempted_at


def test_refused_credentials_are_tried_after_longer_and_longer_pauses(
    kafka: MemoryCluster,
    refresh: Refresher,
) -> None:
    kafka.fail = REFUSED
    pauses = []
    for _ in range(8):
        refresh("reassignments")
        pauses.append(round(pause("reassignments").total_seconds()))
    assert pauses == [20, 40, 80, 160, 320, 600, 600, 600]
    assert CollectorRun.objects.get(kind="reassignments").interval_s == 10, "the pause makes nothing fresh that is old"


def test_credentials_that_are_always_refused_are_given_up_until_a_person_acts(
    kafka: MemoryCluster, cluster: Cluster, refresh: Refresher, settings: Settings
) -> None:
    settings.REFUSED_TRIES = 3
    kafka.fail = REFUSED
    for _ in range(3):
        refresh("metadata")
    assert pause("metadata") > timedelta(days=365)
    [row] = [row for row in collection_context(cluster, datetime.now(UTC))["rows"] if row.kind == "metadata"]
    assert row.gave_up
    assert row.run is not None
    told = judge_contact(cluster, [row.run], datetime.now(UTC)).messages
    assert told == (REFUSED.message, coded(ClusterErrorCode.NOT_TRIED_ANY_MORE, times=3))

    set_enabled("test", cluster, False)
    set_enabled("test", cluster, True)
    assert pause("metadata") < timedelta(seconds=5)
    refresh("metadata")
    assert round(pause("metadata").total_seconds()) == 60, "it counts from the beginning"


def test_refusals_are_counted_apart_from_other_failures(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.fail = KafkaUnreachable(as_message("No broker accepted a connection."))
    for _ in range(20):
        refresh("metadata")
    kafka.fail = REFUSED
    refresh("metadata")
    assert round(pause("metadata").total_seconds()) == 60


def test_an_answer_brings_back_the_usual_pace(kafka: MemoryCluster, refresh: Refresher, settings: Settings) -> None:
    settings.COLLECT_INTERVALS_CHEAP = {}
    kafka.fail = REFUSED
    for _ in range(3):
        refresh("metadata")
    kafka.fail = None
    refresh("metadata")
    assert round(pause("metadata").total_seconds()) == 30


def test_a_cluster_that_is_down_is_looked_at_as_often_as_ever(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.fail = KafkaUnreachable(as_message("No broker accepted a connection."))
    for _ in range(3):
        refresh("metadata")
    assert round(pause("metadata").total_seconds()) == 30


def test_new_settings_do_not_wait_for_the_pause(kafka: MemoryCluster, cluster: Cluster, refresh: Refresher) -> None:
    kafka.fail = REFUSED
    for _ in range(5):
        refresh("metadata")
    update_connection("test", cluster, bootstrap_servers="127.0.0.1:2")
    assert CollectorRun.objects.filter(kind="metadata", next_at__lte=Now()).exists()


def test_settings_changed_while_the_old_ones_are_being_refused(
    kafka: MemoryCluster, cluster: Cluster, refresh: Refresher
) -> None:
    kafka.fail = REFUSED
    refresh("metadata")

    def somebody_saves(_: str) -> None:
        update_connection("test", cluster, bootstrap_servers="127.0.0.1:2")

    kafka.before_answer = somebody_saves
    refresh("metadata")
    assert pause("metadata") < timedelta(seconds=5)
    assert CollectorRun.objects.get(kind="metadata").refusals == 0, "the new settings have all their tries"


def test_topics_that_are_on_the_disks_and_hidden_in_the_metadata_are_told(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2)
    kafka.add("secret", 0, 1, 2)
    kafka.hidden = {"secret"}
    refresh("metadata")
    refresh("log_dirs")
    [error] = Collection.objects.get(kind="log_dirs").errors
    assert error == coded(KafkaErrorCode.TOPICS_HIDDEN, which="“secret”").as_json()
    assert ClusterState.objects.get().hidden_topics == 1
    kafka.hidden = set()
    kafka.silent = {2}
    refresh("metadata")
    refresh("log_dirs")
    assert ClusterState.objects.get().hidden_topics == 1, "it may lie on the broker that did not answer"
    kafka.silent = set()
    refresh("log_dirs")
    assert ClusterState.objects.get().hidden_topics == 0


def test_a_topic_that_is_only_newer_than_the_metadata_is_not_called_hidden(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2)
    refresh("metadata")
    kafka.add("new", 0, 1, 2)
    refresh("log_dirs")
    assert Collection.objects.get(kind="log_dirs").errors == []


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
    return Counter(
        {table: number for table, number in rows.items() if table.startswith(("monitoring_", "export_", "history_"))}
    )


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
    bookkeeping = rows.pop("monitoring_collectorrun") + rows.pop("monitoring_collection")
    assert bookkeeping <= 10
    assert observed(rows) == {"monitoring_brokerstate": 5, "monitoring_throttlestate": 1}


def test_one_topic_changed__its_row_alone_is_written(large: MemoryCluster, refresh: Refresher, clock: Clock) -> None:
    before = {row["name"]: row for row in TopicState.objects.values()}
    large.topics["topic-77"][3].isr = (1, 4)
    clock.pass_by(30)
    with written_rows() as rows:
        refresh("metadata")
    assert rows["monitoring_topicstate"] == 1
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
    assert rows["monitoring_topicstate"] == 1
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
    assert rows["monitoring_topicstate"] == 1
    assert rows["monitoring_brokerstate"] == 1
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
    assert rows["monitoring_topicstate"] == TOPICS
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
    assert refresh("metadata").error == coded(CollectionErrorCode.ANOTHER_COLLECTOR)
    assert calls == [0, 40]
    assert TopicState.objects.filter(under_replicated=1).count() == 40
    assert ClusterState.objects.get().under_replicated == 0
