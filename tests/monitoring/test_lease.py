"""One collector per cluster and kind, and what a late one may do: nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest
from django.db import connection
from pytest_django import Settings

from kafkadash.clusters.models import Cluster
from kafkadash.core import leases as lease
from kafkadash.core.failures import FailureKind
from kafkadash.monitoring import schedule
from kafkadash.monitoring.collection import MOST_OVERRUNS, SET_ASIDE_S, RefreshOutcome, refresh
from kafkadash.monitoring.models import ON_REQUEST, Collection, CollectorKind, CollectorRun, QuorumSnapshot
from tests.monitoring.memory_kafka import MemoryCluster


def quorum_run(cluster: Cluster) -> CollectorRun:
    return CollectorRun.objects.get(cluster=cluster, kind="quorum")


def in_thread(work: Callable[[], RefreshOutcome | None]) -> RefreshOutcome | None:
    try:
        return work()
    finally:
        connection.close()


@pytest.mark.django_db
def test_take__somebody_holds_it__gets_nothing(cluster: Cluster) -> None:
    run = quorum_run(cluster)
    assert schedule.take_lease(run.pk) is not None
    assert schedule.take_lease(run.pk) is None


@pytest.mark.django_db
def test_take__not_due__gets_nothing_unless_asked_to(cluster: Cluster) -> None:
    run = quorum_run(cluster)
    CollectorRun.objects.filter(pk=run.pk).update(next_at=datetime.now(UTC) + timedelta(minutes=1))
    assert schedule.take_lease(run.pk) is None
    assert schedule.take_lease(run.pk, only_if_due=False) is not None


@pytest.mark.django_db
def test_refresh__overran_its_lease_twice__is_set_aside_and_tried_again_later(
    cluster: Cluster, kafka: MemoryCluster, settings: Settings
) -> None:
    run = quorum_run(cluster)
    settings.LEASE_TTL = -1  # over before it began
    for _ in range(MOST_OVERRUNS):
        assert schedule.take_lease(run.pk) is not None
    settings.LEASE_TTL = 30

    aside = refresh(run.pk)

    assert aside is not None
    run.refresh_from_db()
    assert (run.failures, run.last_failure, run.last_error) == (1, FailureKind.COLLECTOR_SET_ASIDE, aside.error)
    assert run.next_at > datetime.now(UTC) + timedelta(seconds=SET_ASIDE_S - 60)
    assert refresh(run.pk) is None
    again = refresh(run.pk, only_if_due=False)
    assert again is not None
    assert not again.error
    run.refresh_from_db()
    assert (run.failures, run.overruns) == (0, 0)


@pytest.mark.django_db
def test_refresh__set_aside__needs_to_overrun_only_once_more(cluster: Cluster, settings: Settings) -> None:
    run = quorum_run(cluster)
    CollectorRun.objects.filter(pk=run.pk).update(overruns=MOST_OVERRUNS)
    assert refresh(run.pk) is not None
    settings.LEASE_TTL = -1
    assert schedule.take_lease(run.pk, only_if_due=False) is not None
    settings.LEASE_TTL = 30

    aside = refresh(run.pk, only_if_due=False)

    assert aside is not None
    assert CollectorRun.objects.get(pk=run.pk).last_failure == FailureKind.COLLECTOR_SET_ASIDE


@pytest.mark.django_db
def test_write__lease_was_taken_over__writes_nothing(cluster: Cluster, settings: Settings) -> None:
    run = quorum_run(cluster)
    settings.LEASE_TTL = -1  # over before it began
    late = schedule.take_lease(run.pk)
    assert late is not None
    settings.LEASE_TTL = 30
    assert schedule.take_lease(run.pk) is not None
    with pytest.raises(lease.LeaseLost), late.write():
        Collection.objects.create()
    with pytest.raises(lease.LeaseLost):
        late.renew()
    late.give_back()
    run.refresh_from_db()
    assert run.lease_until is not None


@pytest.mark.django_db
def test_claim__due_run__is_handed_out_once(cluster: Cluster) -> None:
    first = schedule.claim_due()
    assert len(first) == len(set(CollectorKind) - ON_REQUEST)
    assert schedule.claim_due() == []
    schedule.hand_back(first[:2])
    assert sorted(schedule.claim_due()) == sorted(first[:2])


@pytest.mark.django_db
def test_claim__disabled_cluster__is_left_alone(cluster: Cluster) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(enabled=False)
    assert schedule.claim_due() == []


@pytest.mark.django_db(transaction=True)
def test_refresh__while_another_is_at_it__does_nothing(cluster: Cluster, kafka: MemoryCluster) -> None:
    run = quorum_run(cluster)
    asked, go_on = Event(), Event()

    def hold(_: str) -> None:
        asked.set()
        assert go_on.wait(20)

    kafka.before_answer = hold
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(in_thread, lambda: refresh(run.pk))
        assert asked.wait(20)
        assert refresh(run.pk) is None
        go_on.set()
        result = first.result(20)
    assert result is not None
    assert list(Collection.objects.values_list("epoch", "seq")) == [(result.epoch, result.seq)]


@pytest.mark.django_db(transaction=True)
def test_refresh__slept_past_its_lease__stores_nothing(
    cluster: Cluster, kafka: MemoryCluster, settings: Settings
) -> None:
    run = quorum_run(cluster)
    asked, go_on = Event(), Event()

    def sleep_once(_: str) -> None:
        if not asked.is_set():
            asked.set()
            assert go_on.wait(20)

    kafka.before_answer = sleep_once
    settings.LEASE_TTL = 0
    with ThreadPoolExecutor(1) as pool:
        sleeper = pool.submit(in_thread, lambda: refresh(run.pk))
        assert asked.wait(20)
        other = refresh(run.pk, only_if_due=False)
        go_on.set()
        late = sleeper.result(20)
    assert other is not None
    assert late is not None
    assert (late.seq, other.seq > 0) == (0, True)
    assert list(Collection.objects.values_list("epoch", flat=True)) == [other.epoch]
    assert list(QuorumSnapshot.objects.values_list("epoch", flat=True)) == [other.epoch]


@pytest.mark.django_db
@pytest.mark.parametrize("hours", [-1, 1])
def test_refresh__this_machines_clock_is_an_hour_off__the_next_one_is_due_in_time(
    hours: int, cluster: Cluster, kafka: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = CollectorRun.objects.get(cluster=cluster, kind="reassignments")
    monkeypatch.setattr(time, "time", lambda now=time.time: now() + hours * 3600)
    refresh(run.pk)
    monkeypatch.undo()
    with connection.cursor() as cursor:
        cursor.execute("SELECT next_at - clock_timestamp() FROM monitoring_collectorrun WHERE id = %s", [run.pk])
        left = cursor.fetchone()[0]
    assert left.total_seconds() == pytest.approx(10, abs=5)
