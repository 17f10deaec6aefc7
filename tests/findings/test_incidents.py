"""Incidents: causes that are stored with their consequences, what receivers are told, and who owns all of it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import pytest
from django.test import RequestFactory

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.models import Cluster
from kafkadash.findings import services
from kafkadash.findings.board import fold_findings, summarize_cluster
from kafkadash.findings.causes import HELD_BACK, READING_SETTLES, REPLICAS_SETTLE
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.forms import LONGEST_TERM, find_end
from kafkadash.findings.kinds import FactSource, FindingCode, FindingKind
from kafkadash.findings.models import Finding, Judgement
from kafkadash.findings.services import AcknowledgementTerms, acknowledge, judge, judge_ages, release
from kafkadash.monitoring.models import (
    BrokerState,
    ClusterState,
    CollectorKind,
    MoveOutcome,
    ReassignmentSnapshot,
    TopicState,
)
from kafkadash.notifications.models import EventStep, MessageState, NotificationEvent, NotificationTarget, TargetKind
from kafkadash.notifications.routing import route_events
from tests.factories import NOW, ROWS, ReassignmentFactory, TopicFactory, silent, watched
from tests.history_rows import beats, looked

pytestmark = pytest.mark.django_db

DOWN, LACKING, REFUSING = FindingKind.BROKER_DOWN, FindingKind.UNDER_REPLICATED, FindingKind.UNDER_MIN_ISR
Told = list[tuple[str, str]]


@pytest.fixture
def demo() -> Cluster:
    return watched("demo")


@pytest.fixture
def target(db: None) -> NotificationTarget:
    return receiver()


def receiver(**route: object) -> NotificationTarget:
    name = f"hook {NotificationTarget.objects.count()}"
    target = NotificationTarget.objects.create(name=name, kind=TargetKind.WEBHOOK, address="http://127.0.0.1:9/")
    target.routes.create(**route)
    return target


def stop(cluster: Cluster, broker: int = 3, *, stopped: bool = True) -> None:
    BrokerState.objects.filter(cluster=cluster, broker_id=broker).update(fenced=stopped)


def lose_replicas(cluster: Cluster) -> None:
    """Two partitions lack their replicas on broker 3, and refuse writes."""
    rows = [[number, 1, 5, [1, 3], [1], [3]] for number in range(2)]
    TopicFactory.create(cluster=cluster, name="orders", partitions=rows, replication_factor=2)
    ClusterState.objects.filter(cluster=cluster).update(under_replicated=2, under_min_isr=2)


def regain_replicas(cluster: Cluster) -> None:
    TopicState.objects.filter(cluster=cluster).delete()
    ClusterState.objects.filter(cluster=cluster).update(under_replicated=0, under_min_isr=0)


def read(cluster: Cluster, after: timedelta = timedelta(), readings: int = 1) -> None:
    """Judge further readings, of which the last one is ``after`` so long."""
    now = NOW + after
    for number in range(readings):
        at = now - timedelta(milliseconds=readings - number)
        cluster.collector_runs.update(succeeded_at=at)
        judge(cluster.pk, now)


def open_finding(kind: FindingKind) -> Finding:
    return Finding.objects.get(kind=kind, closed_at=None)


def told(target: NotificationTarget, after: timedelta = timedelta()) -> Told:
    """Return kind and step of each event in the messages to a target, once what waits is routed."""
    route_events(NOW + after)
    events = NotificationEvent.objects.filter(items__target=target).order_by("items__pk")
    return [(event.kind, event.step) for event in events]


def test_broker_down__is_one_incident_with_one_opening_and_one_closing(
    demo: Cluster, target: NotificationTarget
) -> None:
    stop(demo)
    lose_replicas(demo)
    read(demo, readings=2)
    cause = open_finding(DOWN)
    assert {open_finding(kind).cause for kind in (LACKING, REFUSING)} == {cause}
    assert told(target) == [(DOWN, EventStep.OPENED)]
    event = NotificationEvent.objects.get(subject_id=cause.public_id)
    assert event.consequences is not None
    assert event.consequences["count"] == 2
    assert [each["kind"] for each in event.consequences["first"]] == [REFUSING, LACKING]

    regain_replicas(demo)
    stop(demo, stopped=False)
    read(demo)
    assert not Finding.objects.filter(closed_at=None).exists()
    assert told(target) == [(DOWN, EventStep.OPENED), (DOWN, EventStep.CLOSED)]


def test_broker_down__that_hosts_more_topics_than_are_looked_into__is_one_incident(
    demo: Cluster, target: NotificationTarget
) -> None:
    stop(demo)
    for number in range(60):
        topic = {"name": f"topic-{number}", "topic_id": f"topic-{number}"}
        TopicFactory.create(cluster=demo, partitions=[[0, 1, 5, [1, 3], [1], [3]]], **topic)
    figures = ClusterState.objects.filter(cluster=demo)
    figures.update(
        under_replicated=60, under_min_isr=60, absent_brokers={"under_replicated": [3], "under_min_isr": [3]}
    )
    read(demo, readings=2)
    assert {open_finding(kind).cause for kind in (LACKING, REFUSING)} == {open_finding(DOWN)}
    assert told(target) == [(DOWN, EventStep.OPENED)]
    figures.update(absent_brokers=None)
    read(demo)
    assert {open_finding(kind).cause for kind in (LACKING, REFUSING)} == {None}, "nothing is proven"


def test_second_broker_down__tells_of_the_partitions_that_lack_its_replicas(
    demo: Cluster, target: NotificationTarget
) -> None:
    stop(demo)
    lose_replicas(demo)
    read(demo, readings=2)
    stop(demo, broker=2)
    TopicFactory.create(
        cluster=demo, name="more", topic_id="more", partitions=[[0, 1, 5, [1, 2], [1], [2]]], replication_factor=2
    )
    ClusterState.objects.filter(cluster=demo).update(under_replicated=3, under_min_isr=3)
    read(demo, after=timedelta(minutes=5), readings=2)
    first, second = Finding.objects.filter(kind=DOWN).order_by("pk")
    assert {open_finding(kind).cause for kind in (LACKING, REFUSING)} == {first}
    event = NotificationEvent.objects.get(subject_id=second.public_id, step=EventStep.OPENED)
    assert event.consequences is not None
    assert [each["kind"] for each in event.consequences["first"]] == [REFUSING, LACKING]
    assert told(target) == [(DOWN, EventStep.OPENED)] * 2


def test_critical_finding__ten_times_as_large_as_told__is_told_again_though_snoozed(
    demo: Cluster, target: NotificationTarget
) -> None:
    opened, escalated = (FindingKind.OFFLINE, EventStep.OPENED), (FindingKind.OFFLINE, EventStep.ESCALATED)
    for number, expected in ((2, [opened]), (19, [opened]), (20, [opened, escalated]), (40, [opened, escalated])):
        ClusterState.objects.filter(cluster=demo).update(offline_partitions=number)
        read(demo, after=timedelta(seconds=number))
        assert told(target, HELD_BACK + timedelta(seconds=number)) == expected, number
        Finding.objects.update(snoozed=True)


def test_partitions__that_lack_replicas_seconds_before_their_broker_is_down__wait_for_it(
    demo: Cluster, target: NotificationTarget
) -> None:
    lose_replicas(demo)
    read(demo)
    assert open_finding(REFUSING).cause is None
    assert told(target, HELD_BACK - timedelta(seconds=1)) == []
    stop(demo)
    read(demo, after=timedelta(seconds=5))
    assert open_finding(REFUSING).cause == open_finding(DOWN)
    assert told(target, timedelta(seconds=5)) == [(DOWN, EventStep.OPENED)]


def test_partitions__whose_brokers_stay_up__are_told_after_the_wait(demo: Cluster, target: NotificationTarget) -> None:
    lose_replicas(demo)
    read(demo)
    assert told(target) == []
    assert told(target, HELD_BACK) == [(REFUSING, EventStep.OPENED)]


def test_partitions__that_recover_within_the_wait__are_told_at_once(demo: Cluster, target: NotificationTarget) -> None:
    lose_replicas(demo)
    read(demo)
    regain_replicas(demo)
    read(demo)
    assert told(target) == [(REFUSING, EventStep.OPENED), (REFUSING, EventStep.CLOSED)]


def test_consequences__that_stay_when_the_cause_is_over__become_findings_of_their_own(
    demo: Cluster, target: NotificationTarget
) -> None:
    stop(demo)
    lose_replicas(demo)
    read(demo, readings=2)
    stop(demo, stopped=False)
    read(demo)
    closed = Finding.objects.get(kind=DOWN)
    assert closed.closed_at is not None
    assert open_finding(REFUSING).cause == closed
    before = [(DOWN, EventStep.OPENED), (DOWN, EventStep.CLOSED)]
    assert told(target) == before

    later = 2 * REPLICAS_SETTLE
    read(demo, after=later)
    assert open_finding(REFUSING).cause is None
    after = [*before, (REFUSING, EventStep.OPENED), (LACKING, EventStep.OPENED)]
    assert told(target, later) == after
    read(demo, after=later, readings=2)
    assert told(target, later) == after, "once"


def test_receiver__that_is_not_told_of_the_cause__is_told_of_the_consequence(
    demo: Cluster, target: NotificationTarget
) -> None:
    other = receiver(kinds=[REFUSING.value])
    stop(demo)
    lose_replicas(demo)
    read(demo)
    assert told(target) == [(DOWN, EventStep.OPENED)]
    assert told(other) == [(REFUSING, EventStep.OPENED)]


def test_receiver__that_refused_the_message_of_the_cause__is_told_of_the_consequence(
    demo: Cluster, target: NotificationTarget
) -> None:
    stop(demo)
    read(demo, readings=2)
    assert told(target) == [(DOWN, EventStep.OPENED)]
    target.messages.update(state=MessageState.REFUSED)
    lose_replicas(demo)
    read(demo, readings=2)
    assert told(target) == [(DOWN, EventStep.OPENED), (REFUSING, EventStep.OPENED), (LACKING, EventStep.OPENED)]


def test_unreachable_cluster__explains_what_was_told_before_and_tells_nothing_twice(
    demo: Cluster, target: NotificationTarget
) -> None:
    stop(demo)
    lose_replicas(demo)
    read(demo, readings=2)
    silent(demo, NOW - timedelta(minutes=12), error="refused")
    judge(demo.pk, NOW)
    root = open_finding(FindingKind.UNREACHABLE)
    assert {open_finding(kind).cause for kind in (DOWN, LACKING, REFUSING)} == {root}
    demo.collector_runs.update(failures=0, last_failure="")
    read(demo)
    assert open_finding(LACKING).cause == open_finding(DOWN)
    unreachable = [(FindingKind.UNREACHABLE, EventStep.OPENED), (FindingKind.UNREACHABLE, EventStep.CLOSED)]
    assert told(target) == [(DOWN, EventStep.OPENED), *unreachable]


def test_old_data__of_a_cluster_that_answers_again__is_told_only_if_it_stays(
    demo: Cluster, target: NotificationTarget
) -> None:
    silent(demo, NOW - timedelta(minutes=12), error="refused")
    judge(demo.pk, NOW)
    outage = open_finding(FindingKind.UNREACHABLE)
    demo.collector_runs.update(failures=0, last_failure="")
    end_collection(demo, [CollectorKind.METADATA], at=NOW, now=NOW)
    judge(demo.pk, NOW)
    assert open_finding(FindingKind.STALE).cause == outage
    before = [(FindingKind.UNREACHABLE, EventStep.OPENED), (FindingKind.UNREACHABLE, EventStep.CLOSED)]
    assert told(target) == before

    later = 2 * READING_SETTLES
    end_collection(demo, [CollectorKind.METADATA], at=NOW + later, now=NOW + later)
    judge(demo.pk, NOW + later)
    assert told(target, later) == [*before, (FindingKind.STALE, EventStep.OPENED)]


def end_collection(cluster: Cluster, kinds: Collection[str] = (), *, at: datetime | None, now: datetime) -> None:
    """Let the newest data of these kinds, or of all, be of ``at``; then only the clock has the cluster judged."""
    runs = cluster.collector_runs.all()
    (runs.filter(kind__in=kinds) if kinds else runs).update(succeeded_at=at)
    judge_ages(now)


def test_end_of_collection__while_configs_are_unread__is_told_each_time_and_closed(
    demo: Cluster, target: NotificationTarget
) -> None:
    end_collection(demo, [CollectorKind.CONFIGS], at=None, now=NOW)
    unread = open_finding(FindingKind.STALE)
    assert (unread.message_code, told(target)) == (FindingCode.FACTS_UNREAD_YET, [])
    expected: Told = []
    for minutes in (15, 30):
        later = NOW + timedelta(minutes=minutes)
        end_collection(demo, ROWS.keys() - {CollectorKind.CONFIGS}, at=later - timedelta(minutes=9), now=later)
        row = Finding.objects.get(kind=FindingKind.STALE, closed_at=None, scope="")
        assert row.message_code == FindingCode.NOTHING_COLLECTED
        assert told(target, later - NOW + HELD_BACK) == [*expected, (FindingKind.STALE, EventStep.OPENED)]
        end_collection(demo, ROWS.keys() - {CollectorKind.CONFIGS}, at=later, now=later)
        assert open_finding(FindingKind.STALE) == unread
        expected += [(FindingKind.STALE, EventStep.OPENED), (FindingKind.STALE, EventStep.CLOSED)]
        assert told(target, later - NOW) == expected


def test_end_of_collection__after_some_facts_were_old__escalates_once(
    demo: Cluster, target: NotificationTarget
) -> None:
    opened, escalated, closed = (
        (FindingKind.STALE, step) for step in (EventStep.OPENED, EventStep.ESCALATED, EventStep.CLOSED)
    )
    end_collection(demo, [CollectorKind.CONFIGS], at=NOW - timedelta(hours=3), now=NOW)
    assert told(target) == []
    assert told(target, HELD_BACK) == [opened]
    for seconds in (0, 5, 900):
        end_collection(demo, at=NOW - timedelta(hours=3), now=NOW + timedelta(seconds=seconds))
        judge(demo.pk, NOW + timedelta(seconds=seconds))
        assert told(target, timedelta(seconds=seconds)) == [opened, escalated]
    end_collection(demo, at=NOW, now=NOW)
    assert told(target) == [opened, escalated, closed]


def test_old_data__that_is_read_within_the_wait__is_not_told(demo: Cluster, target: NotificationTarget) -> None:
    end_collection(demo, [CollectorKind.GROUPS], at=NOW - timedelta(minutes=2), now=NOW)
    assert open_finding(FindingKind.STALE).message_code == FindingCode.FACTS_OLD
    end_collection(demo, [CollectorKind.GROUPS], at=NOW, now=NOW + timedelta(seconds=2))
    assert not Finding.objects.filter(kind=FindingKind.STALE, closed_at=None).exists()
    assert told(target, HELD_BACK) == []


def test_pipeline__that_nobody_looks_at__has_its_clusters_judged_once(demo: Cluster) -> None:
    looked(NOW - timedelta(hours=1), beats(NOW))
    judge_ages(NOW)
    assert open_finding(FindingKind.STALE).message_params["sources"] == [FactSource.PIPELINE]
    judge_ages(NOW + timedelta(seconds=1))
    assert Judgement.objects.get(cluster=demo).judged_at == NOW


def test_run_of_ours__explains_uneven_leaders_until_it_ends(demo: Cluster, target: NotificationTarget) -> None:
    BrokerState.objects.filter(cluster=demo, broker_id=3).update(leaders=0)
    ReassignmentFactory.create(cluster=demo, adding=[1], removing=[3], claimed_by="#42")
    read(demo, readings=2)
    row = open_finding(FindingKind.LEADER_SKEW)
    assert (row.cause, row.cause_run) == (None, 42)
    assert told(target) == []
    (incident,) = fold_findings(summarize_cluster(demo, NOW).findings)
    assert (incident.row, incident.run, len(incident.consequences)) == (None, 42, 1)

    ReassignmentSnapshot.objects.update(outcome=MoveOutcome.COMPLETED)
    read(demo)
    assert open_finding(FindingKind.LEADER_SKEW).cause_run is None
    assert told(target) == [(FindingKind.LEADER_SKEW, EventStep.OPENED)]


class TestAcknowledgement:
    UNTIL = NOW + timedelta(hours=1)

    @pytest.fixture
    def incident(self, demo: Cluster) -> Finding:
        stop(demo)
        lose_replicas(demo)
        read(demo, readings=2)
        return open_finding(DOWN)

    def test_one_is_for_all_findings_of_the_incident(
        self, demo: Cluster, incident: Finding, operator: User, rf: RequestFactory
    ) -> None:
        terms = AcknowledgementTerms("On it.", self.UNTIL)
        assert acknowledge(open_finding(LACKING), operator, rf.post("/"), NOW, terms) == incident
        rows = summarize_cluster(demo, NOW).findings
        assert {row.owner for row in rows} == {operator.get_username()}
        release(open_finding(REFUSING), operator, rf.post("/"))
        assert open_finding(DOWN).acknowledged_by is None

    def test_it_ends_by_itself_and_the_finding_is_told_again(
        self, demo: Cluster, incident: Finding, target: NotificationTarget, operator: User, rf: RequestFactory
    ) -> None:
        told(target)
        acknowledge(incident, operator, rf.post("/"), NOW, AcknowledgementTerms("", self.UNTIL, snoozed=True))
        (head,) = (each.row for each in summarize_cluster(demo, NOW).incidents)
        assert head is not None
        assert (head.owner, head.acknowledged and head.acknowledged.pk) == (operator.username, incident.pk)
        later = self.UNTIL + timedelta(seconds=1)
        demo.collector_runs.update(succeeded_at=later)
        assert judge_ages(self.UNTIL - timedelta(seconds=1)) == []
        assert judge_ages(later) == ["demo"]
        row = open_finding(DOWN)
        assert (row.acknowledged_by, row.acknowledged_until, row.snoozed) == (None, None, False)
        assert told(target, later - NOW)[-1] == (DOWN, EventStep.UNACKNOWLEDGED)
        actions = AuditEvent.objects.filter(object_id=row.public_id).order_by("pk")
        assert [event.action for event in actions] == ["finding.snoozed", "finding.lapsed"]

    def test_one_that_is_extended_in_the_moment_of_its_end_goes_on(
        self, demo: Cluster, incident: Finding, operator: User, rf: RequestFactory
    ) -> None:
        row = acknowledge(incident, operator, rf.post("/"), NOW, AcknowledgementTerms("", self.UNTIL))
        acknowledge(incident, operator, rf.post("/"), NOW, AcknowledgementTerms("", self.UNTIL + timedelta(hours=1)))
        assert services._end_acknowledgements(demo, [row], self.UNTIL) == []
        assert open_finding(DOWN).acknowledged_by == operator
        assert not AuditEvent.objects.filter(action="finding.lapsed").exists()

    def test_a_consequence_that_becomes_a_finding_of_its_own_has_no_owner(
        self, demo: Cluster, incident: Finding, operator: User, rf: RequestFactory
    ) -> None:
        acknowledge(incident, operator, rf.post("/"), NOW)
        stop(demo, stopped=False)
        read(demo)
        assert {row.owner for row in summarize_cluster(demo, NOW).findings} == {""}


@pytest.mark.parametrize(
    ("typed", "zone", "expected"),
    [
        ("2026-11-21T08:30", "UTC", datetime(2026, 11, 21, 8, 30, tzinfo=UTC)),
        ("2026-11-21 08:30", "Europe/Berlin", datetime(2026, 11, 21, 7, 30, tzinfo=UTC)),
        ("2026-11-21T03:03", "Europe/Berlin", OnCallErrorCode.END_PAST),
        ("2027-03-28T02:30", "Europe/Berlin", OnCallErrorCode.END_SKIPPED),
        ("2027-03-28T03:30", "Europe/Berlin", OnCallErrorCode.END_TOO_LATE),
        ("9999-12-31T23:59", "America/New_York", OnCallErrorCode.END_UNREADABLE),
        ("2026-11-21T08:30+02:00", "UTC", OnCallErrorCode.END_UNREADABLE),
        ("tomorrow", "UTC", OnCallErrorCode.END_UNREADABLE),
    ],
)
def test_end__typed_in_a_time_zone__is_an_instant_or_refused(
    typed: str, zone: str, expected: datetime | OnCallErrorCode
) -> None:
    assert find_end(typed, zone, NOW) == expected


def test_end__that_clocks_show_twice__is_the_later_one() -> None:
    now = datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert find_end("2026-10-25T02:30", "Europe/Berlin", now) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert timedelta(days=90) == LONGEST_TERM
