"""Findings in a maintenance window or a silence: stored, marked, not told, and told when it ends."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.core.status import HealthState
from kafkadash.findings.board import StatusBoard, summarize_cluster
from kafkadash.findings.causes import HELD_BACK
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding
from kafkadash.findings.services import judge_ages
from kafkadash.maintenance.models import QuietPeriod, QuietPurpose, QuietStage
from kafkadash.monitoring.models import ClusterState, CollectorKind
from kafkadash.notifications.models import EventStep, NotificationEvent, NotificationTarget
from tests.factories import NOW
from tests.findings.test_incidents import (
    DOWN,
    LACKING,
    REFUSING,
    demo,
    end_collection,
    lose_replicas,
    open_finding,
    read,
    stop,
    target,
    told,
)

__all__ = ["demo", "target"]

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def quiet(
    cluster: Cluster, begins: datetime = NOW - MINUTE, length: timedelta = HOUR, **columns: object
) -> QuietPeriod:
    return QuietPeriod.objects.create(
        **{"purpose": QuietPurpose.MAINTENANCE, "reason": "new kernel", "author_name": "alice", **columns},
        cluster=cluster,
        begins_at=begins,
        ends_at=begins + length,
    )


def stages() -> list[str]:
    return list(QuietPeriod.objects.order_by("pk").values_list("stage", flat=True))


def test_broker__stopped_in_its_window__is_expected_and_nobody_is_told(
    demo: Cluster, target: NotificationTarget
) -> None:
    window = quiet(demo, broker=3)
    stop(demo)
    read(demo)
    assert open_finding(DOWN).quiet == window
    assert told(target) == []
    assert stages() == [QuietStage.BEGUN]
    standing = summarize_cluster(demo, NOW)
    assert (standing.state, standing.quiet, standing.windows[0].about) == (HealthState.MAINTENANCE, False, "broker 3")
    assert standing.findings[0].expected
    assert StatusBoard([standing], NOW).title == standing.title

    stop(demo, stopped=False)
    read(demo, after=timedelta(seconds=30))
    assert not Finding.objects.filter(closed_at=None).exists()
    assert told(target, timedelta(seconds=30)) == []


def test_partitions__that_refuse_writes_in_the_window_of_a_broker__are_told(
    demo: Cluster, target: NotificationTarget
) -> None:
    quiet(demo, broker=3)
    stop(demo)
    lose_replicas(demo)
    read(demo, readings=2)
    assert {open_finding(kind).quiet is not None for kind in (DOWN, LACKING)} == {True}
    assert open_finding(REFUSING).quiet is None
    assert told(target) == [(REFUSING, EventStep.OPENED)]
    standing = summarize_cluster(demo, NOW)
    assert standing.state is HealthState.CRITICAL
    heads = [(incident.row and incident.row.kind, len(incident.consequences)) for incident in standing.incidents]
    assert heads == [(REFUSING, 0), (DOWN, 1)]


def test_partitions__that_refuse_writes_in_the_window_of_the_cluster__are_expected(
    demo: Cluster, target: NotificationTarget
) -> None:
    quiet(demo)
    lose_replicas(demo)
    read(demo, readings=2)
    assert told(target, timedelta(minutes=1)) == []
    assert NotificationEvent.objects.count() == 0


def test_end_of_a_window__judges_again_and_tells_what_is_left(demo: Cluster, target: NotificationTarget) -> None:
    quiet(demo, broker=3, length=2 * MINUTE)
    stop(demo)
    read(demo)
    assert told(target) == []
    after = timedelta(seconds=61)
    demo.collector_runs.update(succeeded_at=NOW + after)
    assert judge_ages(NOW + after) == ["demo"]
    assert judge_ages(NOW + after) == []
    assert stages() == [QuietStage.OVER]
    assert open_finding(DOWN).quiet is None
    assert told(target, after) == [(DOWN, EventStep.OPENED)]


def test_window__that_begins_after_the_finding__is_marked_and_the_closing_is_told(
    demo: Cluster, target: NotificationTarget
) -> None:
    stop(demo)
    read(demo)
    assert told(target) == [(DOWN, EventStep.OPENED)]
    quiet(demo, NOW, broker=3)
    assert judge_ages(NOW) == ["demo"]
    assert open_finding(DOWN).quiet is not None
    stop(demo, stopped=False)
    read(demo, after=MINUTE)
    assert told(target, MINUTE) == [(DOWN, EventStep.OPENED), (DOWN, EventStep.CLOSED)]


def test_end_of_a_window__repeats_nothing_that_was_told_before_it(demo: Cluster, target: NotificationTarget) -> None:
    stop(demo)
    read(demo)
    quiet(demo, NOW, length=MINUTE, broker=3)
    judge_ages(NOW)
    demo.collector_runs.update(succeeded_at=NOW + MINUTE)
    assert judge_ages(NOW + MINUTE) == ["demo"]
    assert open_finding(DOWN).quiet is None
    assert told(target, MINUTE) == [(DOWN, EventStep.OPENED)]


def test_opening__that_is_held_when_a_window_begins__is_not_sent(demo: Cluster, target: NotificationTarget) -> None:
    lose_replicas(demo)
    read(demo)
    quiet(demo, NOW)
    judge_ages(NOW)
    assert told(target, HOUR / 2) == []


def test_finding__that_grows_tenfold_in_a_window__is_told_again_when_it_ends(
    demo: Cluster, target: NotificationTarget
) -> None:
    kind = FindingKind.OFFLINE
    ClusterState.objects.filter(cluster=demo).update(offline_partitions=2)
    read(demo)
    assert told(target, HELD_BACK) == [(kind, EventStep.OPENED)]
    quiet(demo, NOW, length=MINUTE)
    ClusterState.objects.filter(cluster=demo).update(offline_partitions=200)
    read(demo, after=MINUTE / 2)
    assert told(target, MINUTE / 2) == [(kind, EventStep.OPENED)]
    read(demo, after=MINUTE)
    assert told(target, MINUTE) == [(kind, EventStep.OPENED), (kind, EventStep.ESCALATED)]


def test_collection__that_ends_in_a_window_after_old_facts_were_told__escalates_when_it_ends(
    demo: Cluster, target: NotificationTarget
) -> None:
    end_collection(demo, [CollectorKind.CONFIGS], at=NOW - HOUR, now=NOW)
    expected = [(FindingKind.STALE, EventStep.OPENED)]
    assert told(target, HELD_BACK) == expected
    quiet(demo, begins=NOW + MINUTE, length=2 * MINUTE)
    for minutes in (2, 3, 4):
        end_collection(demo, at=NOW - HOUR, now=NOW + minutes * MINUTE)
        expected += [(FindingKind.STALE, EventStep.ESCALATED)] if minutes == 3 else []
        assert told(target, minutes * MINUTE) == expected


def test_windows__of_a_rack_and_of_its_broker__hold_until_the_last_ends(
    demo: Cluster, target: NotificationTarget
) -> None:
    rack = demo.brokerstate_set.get(broker_id=3).rack
    quiet(demo, broker=3, length=2 * MINUTE)
    longer = quiet(demo, rack=rack)
    stop(demo)
    read(demo)
    assert open_finding(DOWN).quiet == longer
    read(demo, after=2 * MINUTE)
    assert told(target, 2 * MINUTE) == []


def test_silence__of_a_kind__keeps_the_severity_and_tells_nobody(demo: Cluster, target: NotificationTarget) -> None:
    quiet(demo, purpose=QuietPurpose.SILENCE, kind=DOWN.value, subject="3")
    stop(demo)
    read(demo)
    row = summarize_cluster(demo, NOW).findings[0]
    assert (row.state, row.expected, row.quiet is not None) == (HealthState.CRITICAL, False, True)
    assert told(target) == []


def test_acknowledgement__that_ends_in_a_window__ends_with_it(demo: Cluster, target: NotificationTarget) -> None:
    stop(demo)
    read(demo)
    quiet(demo, NOW, length=10 * MINUTE, broker=3)
    Finding.objects.update(acknowledged_until=NOW + MINUTE, acknowledged_at=NOW)
    read(demo, after=2 * MINUTE)
    assert judge_ages(NOW + 2 * MINUTE) == []
    assert told(target, 2 * MINUTE) == [(DOWN, EventStep.OPENED)]
    read(demo, after=10 * MINUTE)
    assert told(target, 10 * MINUTE) == [(DOWN, EventStep.OPENED), (DOWN, EventStep.UNACKNOWLEDGED)]


def test_consequence__of_a_silenced_cause__is_silenced_too(demo: Cluster, target: NotificationTarget) -> None:
    period = quiet(demo, purpose=QuietPurpose.SILENCE, kind=DOWN.value)
    stop(demo)
    lose_replicas(demo)
    read(demo, readings=2)
    assert open_finding(LACKING).quiet == period
    assert told(target) == [(REFUSING, EventStep.OPENED)]


def test_consequence__of_a_silenced_cause_that_has_closed__stays_silenced_while_it_settles(
    demo: Cluster, target: NotificationTarget
) -> None:
    period = quiet(demo, purpose=QuietPurpose.SILENCE, kind=DOWN.value)
    stop(demo)
    lose_replicas(demo)
    read(demo, readings=2)
    stop(demo, stopped=False)
    read(demo, after=MINUTE / 2)
    assert Finding.objects.get(kind=DOWN).closed_at is not None
    assert open_finding(LACKING).quiet == period
    assert LACKING not in dict(told(target, MINUTE / 2))
