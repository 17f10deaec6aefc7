"""Facts that something casts doubt on are read at once, and as often as their cost allows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from kafkadash.clusters.models import Cluster
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.kafka.port import AuthenticationFailed, ItemError, QuorumReplica, QuorumUnavailable, Unreachable
from kafkadash.observe import collection
from kafkadash.observe.collection import Refresh, interval_for
from kafkadash.observe.lease import read_soon
from kafkadash.observe.models import BrokerState, CollectorRun, Kind
from tests.observe.conftest import Clock
from tests.observe.memory_cluster import MemoryCluster

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], Refresh]
HOUR = timedelta(hours=1)


def put_off(kind: Kind) -> None:
    CollectorRun.objects.filter(kind=kind).update(next_at=Now() + HOUR)


def due(kind: Kind) -> bool:
    return CollectorRun.objects.filter(kind=kind, next_at__lte=Now()).exists()


@pytest.fixture
def known(kafka: MemoryCluster, refresh: Refresher) -> MemoryCluster:
    """Everything was read once, and metadata is due in an hour."""
    kafka.add("orders", 0, 1, 2)
    for kind in (Kind.METADATA, Kind.ANSWERS, Kind.QUORUM):
        refresh(kind)
    put_off(Kind.METADATA)
    return kafka


class TestDoubts:
    def test_nothing_new_casts_no_doubt(self, known: MemoryCluster, refresh: Refresher) -> None:
        for kind in (Kind.ANSWERS, Kind.QUORUM):
            refresh(kind)
        assert not due(Kind.METADATA)

    def test_a_silent_broker_casts_doubt_on_metadata(self, known: MemoryCluster, refresh: Refresher) -> None:
        known.silent = {2}
        refresh(Kind.ANSWERS)
        assert due(Kind.METADATA)
        assert BrokerState.objects.get(broker_id=2).silent_since is not None
        put_off(Kind.METADATA)
        refresh(Kind.ANSWERS)
        assert not due(Kind.METADATA), "that is known by now"

    def test_an_election_casts_doubt_on_metadata(self, known: MemoryCluster, refresh: Refresher) -> None:
        known.leader_epoch += 1
        refresh(Kind.QUORUM)
        assert due(Kind.METADATA)

    def test_an_observer_that_falls_behind_casts_doubt_on_metadata(
        self, known: MemoryCluster, refresh: Refresher, clock: Clock
    ) -> None:
        clock.pass_by(10)
        now = round(clock.now * 1000)
        behind = {4: now - 9000}
        known.observers = [
            QuorumReplica(n, f"d{n}", 499, behind.get(n, now - 100), behind.get(n, now - 100)) for n in (2, 3, 4, 5)
        ]
        refresh(Kind.QUORUM)
        assert due(Kind.METADATA)

    def test_controllers_that_are_silent_are_asked_again_at_once_and_then_metadata_is_read(
        self, known: MemoryCluster, refresh: Refresher
    ) -> None:
        known.fail_calls["quorum"] = QuorumUnavailable("No controller answers.")
        refresh(Kind.QUORUM)
        assert due(Kind.QUORUM), "it may be an election"
        assert not due(Kind.METADATA)
        refresh(Kind.QUORUM)
        assert not due(Kind.QUORUM)
        assert due(Kind.METADATA), "what brokers tell is old from now on, and its pages have to say so"

    def test_a_broker_that_does_not_answer_another_question_is_asked_for_a_sign_of_life(
        self, known: MemoryCluster, refresh: Refresher
    ) -> None:
        put_off(Kind.ANSWERS)
        known.silent = {2}
        refresh(Kind.LOG_DIRS)
        assert due(Kind.ANSWERS)

    def test_doubt_that_comes_up_during_a_refresh_is_followed_by_another(
        self, known: MemoryCluster, cluster: Cluster
    ) -> None:
        CollectorRun.objects.filter(kind=Kind.METADATA).update(next_at=Now())
        known.before_answer = lambda _: read_soon(cluster.pk, [Kind.METADATA])
        assert collection.refresh(CollectorRun.objects.get(kind=Kind.METADATA).pk) is not None
        assert due(Kind.METADATA)

    def test_refused_credentials_are_not_tried_the_sooner(
        self, known: MemoryCluster, refresh: Refresher, cluster: Cluster
    ) -> None:
        known.fail = AuthenticationFailed("Broker 1 refused the credentials.")
        refresh(Kind.METADATA)
        put_off(Kind.METADATA)
        read_soon(cluster.pk, [Kind.METADATA])
        assert not due(Kind.METADATA)


class TestSilence:
    def test_one_that_is_fenced_stays_silent_until_it_answers(self, known: MemoryCluster, refresh: Refresher) -> None:
        known.silent = {2}
        refresh(Kind.ANSWERS)
        since = BrokerState.objects.get(broker_id=2).silent_since
        assert isinstance(since, datetime)
        known.fenced = {2}
        refresh(Kind.METADATA)
        refresh(Kind.ANSWERS)
        assert BrokerState.objects.get(broker_id=2).silent_since == since
        known.silent, known.fenced = set(), set()
        refresh(Kind.ANSWERS)
        assert BrokerState.objects.get(broker_id=2).silent_since is None

    def test_a_refused_login_is_an_answer(
        self, known: MemoryCluster, refresh: Refresher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        known.silent = {2}
        refused = ItemError("Broker 2 refused the credentials.", name=FailureKind.CREDENTIALS_REFUSED)
        monkeypatch.setattr(known, "_silence", lambda _: {2: refused})
        refresh(Kind.ANSWERS)
        assert BrokerState.objects.get(broker_id=2).silent_since is None

    def test_when_nobody_answers_it_is_the_cluster_that_cannot_be_reached(
        self, known: MemoryCluster, refresh: Refresher
    ) -> None:
        known.silent = set(known.racks)
        assert refresh(Kind.ANSWERS).error
        assert CollectorRun.objects.get(kind=Kind.ANSWERS).last_failure == Unreachable.kind
        assert not BrokerState.objects.filter(silent_since__isnull=False).exists()


class TestPace:
    @pytest.mark.parametrize(
        ("kind", "processor_s", "seconds"),
        [
            (Kind.METADATA, None, 30),
            (Kind.METADATA, 0.099, 10),
            (Kind.METADATA, 0.101, 30),
            (Kind.CONFIGS, 0.05, 10),
            (Kind.ANSWERS, 0.049, 5),
            (Kind.ANSWERS, 0.051, 15),
            (Kind.LOG_DIRS, 0.001, 60),
        ],
    )
    def test_what_costs_less_than_a_hundredth_of_a_core_is_read_more_often(
        self, cluster: Cluster, kind: Kind, processor_s: float | None, seconds: float
    ) -> None:
        assert interval_for(cluster, kind, processor_s) == seconds

    def test_a_pace_of_the_clusters_own_stands(self, cluster: Cluster) -> None:
        cluster.cadence = {"metadata": 120}
        assert interval_for(cluster, Kind.METADATA, 0.001) == 120

    def test_a_quicker_usual_pace_stands(self, cluster: Cluster, settings: Settings) -> None:
        settings.COLLECT_INTERVALS = {**settings.COLLECT_INTERVALS, "metadata": 4}
        assert interval_for(cluster, Kind.METADATA, 0.001) == 4

    def test_the_cost_of_a_refresh_is_measured_and_smoothed(self, known: MemoryCluster, refresh: Refresher) -> None:
        run = CollectorRun.objects.get(kind=Kind.METADATA)
        assert run.processor_s is not None
        assert 0 < run.processor_s < 5
        CollectorRun.objects.filter(pk=run.pk).update(processor_s=1000)
        refresh(Kind.METADATA)
        run.refresh_from_db()
        assert run.processor_s == pytest.approx(500, abs=2)
        assert run.interval_s == 30
