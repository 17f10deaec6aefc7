"""Events of a cluster as marks on its charts: controller changes, findings, runs."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster
from kafkadash.core.status import HealthState
from kafkadash.findings.kinds import FindingCode, FindingKind
from kafkadash.findings.models import Finding
from kafkadash.history.charts import quorum_history_context, range_named, topic_history_context
from kafkadash.monitoring.annotations import MOST_MARKS, read_marks
from kafkadash.monitoring.models import QuorumSnapshot
from kafkadash.monitoring.traffic.pages import topic_throughput
from tests.execution.stored_runs import requested, running
from tests.factories import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]


def _term(cluster: Cluster, minutes: int, leader: int, epoch: int) -> None:
    QuorumSnapshot.objects.create(
        cluster=cluster,
        taken_at=NOW - timedelta(minutes=minutes),
        leader_id=leader,
        leader_epoch=epoch,
        replicas=[],
        epoch=9,
        seq=1000 - minutes,
    )


def _finding(cluster: Cluster, kind: FindingKind, minutes: int, broker: int = 2) -> None:
    at = NOW - timedelta(minutes=minutes)
    Finding.objects.create(
        cluster=cluster,
        public_id=f"f{kind.value}{minutes}",
        kind=kind,
        scope=f"{broker}-{minutes}",
        state=HealthState.CRITICAL,
        rank=kind.rank,
        message_code=FindingCode.DOWN_FENCED,
        message_params={"broker": broker, "replicas": 1},
        first_seen_at=at,
        opened_at=at,
        seen_at=NOW,
    )


def test_charts__mark_findings_runs_and_controller_changes(cluster: Cluster, operator: User) -> None:
    for minutes, leader, epoch in ((50, 1, 1), (40, 1, 1), (30, 3, 2)):
        _term(cluster, minutes, leader, epoch)
    _finding(cluster, FindingKind.BROKER_DOWN, 20)
    _finding(cluster, FindingKind.CONSUMER_LAG, 10)  # a band of its group's own charts
    _finding(cluster, FindingKind.OFFLINE, 90)  # before the hour
    change = requested(cluster, operator, ChangeState.DONE)
    running(change, {}, started_at=NOW - timedelta(minutes=15), ended_at=NOW - timedelta(minutes=5))
    panel = topic_throughput(cluster, "orders", "hour", NOW, None)["panels"][0]
    marks = [(round((NOW.timestamp() - mark.at) / 60), mark.label) for mark in panel.spec.marks]
    assert [minutes for minutes, _ in marks] == [30, 20, 15, 5]
    numbers = [re.findall(r"\d+", label) for _, label in marks]
    assert numbers == [["1", "3", "2"], ["2"], [str(change.pk)], [str(change.pk)]]


def test_marks__are_the_newest_of_one_cluster(cluster: Cluster) -> None:
    for minutes in range(40):
        _term(cluster, minutes, minutes % 3, 100 - minutes)
    marks = read_marks(cluster.pk, NOW - timedelta(hours=1), NOW + timedelta(seconds=1))
    assert len(marks) == MOST_MARKS
    assert marks[-1].at == NOW.timestamp()
    assert read_marks(cluster.pk + 1, NOW - timedelta(hours=1), NOW + timedelta(seconds=1)) == []


@pytest.mark.parametrize(("name", "marked"), [("hour", 1), ("week", 1), ("year", 0)])
def test_histories__mark_up_to_a_week(cluster: Cluster, name: str, marked: int) -> None:
    _finding(cluster, FindingKind.BROKER_DOWN, 20)
    _term(cluster, 50, 1, 1)
    _term(cluster, 30, 3, 2)
    topic = topic_history_context(cluster, "orders", range_named(name), NOW)["panels"][0]
    assert sum(bool(row.marks) for row in topic.rows) >= marked
    assert topic.marked == bool(marked)
    # The quorum counts its own leader changes.
    assert not quorum_history_context(cluster, None, range_named(name), NOW)["panels"][0].marked
