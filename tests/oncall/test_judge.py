"""Stored findings: opened, kept, closed and acknowledged, from what the collectors left in the database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.observe.models import BrokerState, BrokerWeights, ClusterState, Kind, QuorumSnapshot, TopicState
from kafkadash.oncall import services
from kafkadash.oncall.models import Finding, Judgement
from kafkadash.oncall.services import judge, judge_ages
from tests.factories import (
    GB,
    NOW,
    QuorumFactory,
    ReassignmentFactory,
    TopicFactory,
    directory,
    judged,
    node,
    silent,
    watched,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db


@pytest.fixture
def demo() -> Cluster:
    return watched("demo")


def figures(cluster: Cluster, **values: int | None) -> None:
    """The next reading of topics and brokers finds these figures."""
    ClusterState.objects.filter(cluster=cluster).update(**values)


def reading(cluster: Cluster, later: timedelta = timedelta(seconds=1), now: datetime = NOW) -> bool:
    """A further reading of every kind; true if a finding came or went."""
    cluster.collector_runs.update(succeeded_at=F("succeeded_at") + later)
    return judge(cluster.pk, now)


def open_kinds(cluster: Cluster) -> set[str]:
    rows = Finding.objects.filter(cluster=cluster, closed_at=None, opened_at__isnull=False)
    return set(rows.values_list("kind", flat=True))


def test_a_well_cluster_has_none_and_was_judged(demo: Cluster) -> None:
    """``watched`` relies on it: it only says that its clusters were judged."""
    Judgement.objects.all().delete()
    judge(demo.pk, NOW)
    assert not Finding.objects.exists()
    assert Judgement.objects.get(cluster=demo).judged_at == NOW


class TestLife:
    def test_it_opens_and_closes_with_the_same_id_and_returns_with_another(self, demo: Cluster) -> None:
        figures(demo, offline_partitions=2)
        assert reading(demo)
        opened = Finding.objects.get(cluster=demo)
        taken = demo.collector_runs.get(kind=Kind.METADATA).succeeded_at
        assert (opened.first_seen_at, opened.opened_at, opened.closed_at) == (taken, taken, None)
        assert opened.public_id.startswith("f-")

        figures(demo, offline_partitions=0)
        assert reading(demo)
        closed = Finding.objects.get(cluster=demo)
        assert closed.public_id == opened.public_id
        assert closed.closed_at == demo.collector_runs.get(kind=Kind.METADATA).succeeded_at
        assert Judgement.objects.get(cluster=demo).last_closed_at == closed.closed_at

        figures(demo, offline_partitions=1)
        reading(demo)
        assert Finding.objects.get(cluster=demo, closed_at=None).public_id != opened.public_id

    def test_the_first_data_of_a_new_cluster_closes_nothing_that_was_wrong(self, demo: Cluster) -> None:
        demo.collector_runs.filter(kind=Kind.METADATA).update(succeeded_at=None)
        judge(demo.pk, NOW)
        assert open_kinds(demo) == {"stale-data"}
        demo.collector_runs.filter(kind=Kind.METADATA).update(succeeded_at=NOW)
        judge(demo.pk, NOW)
        assert open_kinds(demo) == set()
        assert Judgement.objects.get(cluster=demo).last_closed_at is None

    def test_what_may_pass_opens_at_the_second_reading_and_not_at_a_second_judgement(self, demo: Cluster) -> None:
        figures(demo, under_replicated=4)
        assert not reading(demo)
        assert not judge(demo.pk, NOW)
        assert open_kinds(demo) == set()
        assert reading(demo)
        assert open_kinds(demo) == {"under-replicated"}

    def test_what_passed_before_the_second_reading_leaves_nothing(self, demo: Cluster) -> None:
        figures(demo, under_replicated=4)
        reading(demo)
        figures(demo, under_replicated=0)
        assert not reading(demo)
        assert not Finding.objects.exists()

    def test_its_number_is_followed_and_kept(self, demo: Cluster) -> None:
        for number in (1, 1, 3, 2):
            figures(demo, offline_partitions=number)
            reading(demo)
        finding = Finding.objects.get(cluster=demo)
        assert (finding.value, finding.measured, finding.threshold) == (2, "2 partitions", 0)
        assert [value for _, value in finding.history] == [1, 3, 2]

    def test_a_number_that_never_rests_keeps_the_first_and_the_newest(self, demo: Cluster) -> None:
        for number in range(1, 60):
            figures(demo, offline_partitions=number)
            reading(demo, timedelta(milliseconds=50))
        history = [value for _, value in Finding.objects.get(cluster=demo).history]
        assert len(history) <= 40
        assert (history[0], history[-1]) == (1, 59)

    def test_a_judgement_again_writes_no_finding(self, demo: Cluster) -> None:
        figures(demo, offline_partitions=2)
        reading(demo)
        before = list(Finding.objects.values())
        assert not judge(demo.pk, NOW)
        assert list(Finding.objects.values()) == before

    def test_the_database_refuses_a_second_open_one(self, demo: Cluster) -> None:
        _row(demo, "f-1")
        with pytest.raises(IntegrityError, match="one_open_finding"):
            _row(demo, "f-2")

    def test_old_ones_are_forgotten_and_open_ones_never(self, demo: Cluster) -> None:
        _row(demo, "f-old", closed_at=NOW - timedelta(days=91))
        _row(demo, "f-new", closed_at=NOW - timedelta(days=89))
        _row(demo, "f-open", first_seen_at=NOW - timedelta(days=400))
        assert services.prune(NOW) == 1
        assert set(Finding.objects.values_list("public_id", flat=True)) == {"f-new", "f-open"}


class TestNotKnown:
    def test_nothing_closes_while_the_cluster_does_not_answer(self, demo: Cluster) -> None:
        figures(demo, offline_partitions=2)
        reading(demo)
        silent(demo, NOW - timedelta(minutes=12), error="refused")
        figures(demo, offline_partitions=0)
        assert judge(demo.pk, NOW)
        assert open_kinds(demo) == {"offline-partitions", "unreachable"}

        demo.collector_runs.update(succeeded_at=NOW, failures=0, last_failure="", last_error="")
        judge(demo.pk, NOW)
        assert open_kinds(demo) == set()

    def test_a_figure_that_is_not_known_any_more_closes_nothing(self, demo: Cluster) -> None:
        figures(demo, under_min_isr=3)
        reading(demo)
        figures(demo, under_min_isr=None)
        reading(demo)
        assert open_kinds(demo) == {"under-min-isr"}

    def test_a_directory_of_a_broker_that_does_not_answer_stays(self, demo: Cluster) -> None:
        full = [directory("/a", total=100 * GB, usable=5 * GB)]
        BrokerWeights.objects.filter(cluster=demo, broker_id=2).update(dirs=full)
        judged(demo)
        BrokerWeights.objects.filter(cluster=demo, broker_id=2).update(taken_at=NOW - timedelta(minutes=9))
        reading(demo)
        assert open_kinds(demo) == {"disk-full"}
        BrokerWeights.objects.filter(cluster=demo, broker_id=2).update(dirs=[directory("/a")], taken_at=NOW)
        reading(demo)
        assert open_kinds(demo) == set()

    def test_a_cluster_that_is_switched_off_keeps_what_was_open(self, demo: Cluster) -> None:
        figures(demo, offline_partitions=2)
        reading(demo)
        Cluster.objects.filter(pk=demo.pk).update(enabled=False)
        judge(demo.pk, NOW)
        assert open_kinds(demo) == {"offline-partitions", "collection-off"}


class TestTime:
    """When collection is dead nothing arrives: the clock alone opens what there is to say."""

    def test_silence_opens_and_is_said_once(self, demo: Cluster) -> None:
        later = NOW + timedelta(minutes=5)
        assert judge_ages(later) == ["demo"]
        assert open_kinds(demo) == {"stale-data"}
        assert judge_ages(later) == []

    def test_nothing_is_judged_while_all_is_fresh(self, demo: Cluster) -> None:
        assert judge_ages(NOW) == []
        assert Judgement.objects.get(cluster=demo).judged_at == NOW

    def test_a_lost_event_is_made_up_for(self, demo: Cluster) -> None:
        Judgement.objects.filter(cluster=demo).update(judged_at=NOW - timedelta(minutes=5))
        figures(demo, offline_partitions=1)
        assert judge_ages(NOW) == ["demo"]
        assert open_kinds(demo) == {"offline-partitions"}

    def test_it_asks_as_often_for_many_clusters_as_for_one(
        self, demo: Cluster, django_assert_num_queries: Callable[..., object]
    ) -> None:
        for n in range(5):
            watched(f"more-{n}")
        with django_assert_num_queries(3):  # type: ignore[attr-defined]
            judge_ages(NOW)


class TestFacts:
    """What is stored becomes the right kind of finding."""

    def test_a_broker_that_is_fenced(self, demo: Cluster) -> None:
        BrokerState.objects.filter(cluster=demo, broker_id=2).update(fenced=True)
        reading(demo)
        finding = Finding.objects.get(cluster=demo)
        assert (finding.kind, finding.scope, finding.state) == ("broker-down", "2", "critical")

    def test_partitions_are_named_and_the_missing_broker_too(self, demo: Cluster) -> None:
        TopicFactory.create(
            cluster=demo,
            name="orders",
            partitions=[[0, 1, 5, [1, 2, 3], [1, 3], [2]], [1, 1, 5, [1, 2, 3], [1, 3], [2]]],
        )
        figures(demo, under_replicated=2)
        judged(demo)
        assert Finding.objects.get().detail == "All miss their replica on broker 2 · orders-0, orders-1"

    def test_topics_without_slack_are_not_at_min_isr(self, demo: Cluster) -> None:
        shape = {"under_min_isr": 0, "at_min_isr": 1, "under_replicated": 0}
        TopicFactory.create(cluster=demo, name="tight", min_isr=3, **shape)
        figures(demo, at_min_isr=1)
        judged(demo)
        assert open_kinds(demo) == set()
        TopicFactory.create(
            cluster=demo,
            name="slack",
            min_isr=2,
            partitions=[[0, 1, 5, [1, 2, 3], [1, 2], [3]]],
            **{**shape, "under_replicated": 1},
        )
        figures(demo, at_min_isr=2)
        judged(demo)
        assert Finding.objects.get(kind="at-min-isr").measured == "1 partition"

    def test_a_partition_with_one_replica_in_sync_goes_offline_with_it(self, demo: Cluster) -> None:
        shape = {"under_min_isr": 0, "at_min_isr": 1, "under_replicated": 1}
        for name, min_isr, isr in (("last", 1, [1]), ("slack", 2, [1, 2])):
            rows = [[0, 1, 5, [1, 2, 3], isr, []]]
            TopicFactory.create(cluster=demo, name=name, topic_id=name, min_isr=min_isr, partitions=rows, **shape)
        figures(demo, at_min_isr=2, under_replicated=2)
        judged(demo)
        assert Finding.objects.get(kind="at-min-isr").sentence == (
            "2 partitions are at min-ISR: the next lost replica takes 1 of them offline and stops writes to the other."
        )

    def test_topics_without_slack_are_not_at_min_isr_while_one_of_their_partitions_moves(self, demo: Cluster) -> None:
        """The replica that is added gives the widest partition slack, and no other."""
        still = [[n, 1, 5, [1, 2], [1, 2], []] for n in range(1, 12)]
        TopicFactory.create(
            cluster=demo, name="tight", min_isr=2, partitions=[[0, 1, 5, [1, 2, 3], [1, 2], []], *still]
        )
        ReassignmentFactory.create(cluster=demo, topic="tight", partition=0, adding=[3], removing=[2])
        figures(demo, at_min_isr=12, at_min_isr_moving=1, under_replicated=1, under_replicated_moving=1)
        judged(demo)
        assert open_kinds(demo) == set()

    def test_of_many_topics_only_partitions_that_miss_a_replica_are_at_min_isr(self, demo: Cluster) -> None:
        for number in range(52):
            TopicFactory.create(
                cluster=demo,
                name=f"topic-{number}",
                topic_id=f"topic-{number}",
                partitions=[[0, 1, 5, [1, 2, 3], [1, 2], [3]], [1, 1, 5, [1, 2], [1, 2], []]],
            )
        figures(demo, at_min_isr=104, under_replicated=52)
        judged(demo)
        assert Finding.objects.get(kind="at-min-isr").measured == "52 partitions"
        assert "stops writes" in Finding.objects.get(kind="at-min-isr").sentence
        TopicState.objects.filter(cluster=demo).update(min_isr=1)
        judged(demo)
        assert "takes them offline" in Finding.objects.get(kind="at-min-isr").sentence

    def test_offline_partitions_of_unread_configs_hide_no_partition_that_refuses_writes(self, demo: Cluster) -> None:
        unread = {"min_isr": None, "under_min_isr": None, "at_min_isr": None}
        TopicFactory.create(
            cluster=demo, name="new", topic_id="new", partitions=[[0, None, 5, [1, 2, 3], [1], [2, 3]]], **unread
        )
        TopicFactory.create(cluster=demo, name="orders", partitions=[[0, 1, 5, [1, 2, 3], [1], [2, 3]]])
        figures(demo, offline_partitions=1, under_min_isr=1, under_replicated=2)
        reading(demo)
        finding = Finding.objects.get(kind="under-min-isr")
        assert (finding.measured, finding.detail.split(" · ")[0]) == ("1 partition", "orders-0")

    def test_partitions_that_refuse_writes_are_counted_apart_from_offline_ones(self, demo: Cluster) -> None:
        figures(demo, offline_partitions=2, under_min_isr=5)
        reading(demo)
        assert Finding.objects.get(kind="under-min-isr").measured == "3 partitions"

    def test_a_zombie(self, demo: Cluster) -> None:
        ReassignmentFactory.create(cluster=demo, topic="orders", partition=3, adding=[6], removing=[6])
        ReassignmentFactory.create(cluster=demo)
        reading(demo)
        assert Finding.objects.get(cluster=demo).detail == "orders-3"

    def test_elections_of_the_last_ten_minutes(self, demo: Cluster) -> None:
        for minutes, epoch in ((30, 39), (11, 43), (9, 43), (7, 44), (5, 45), (3, 46)):
            QuorumFactory.create(cluster=demo, taken_at=NOW - timedelta(minutes=minutes), leader_epoch=epoch)
        reading(demo)
        assert Finding.objects.get(cluster=demo).measured == "4 elections"  # 43 to 47; that from 39 is older

    def test_a_voter_that_lags(self, demo: Cluster) -> None:
        nodes = [node(101, caught_up_ago=9000), node(102, caught_up_ago=0), node(103, caught_up_ago=340)]
        QuorumSnapshot.objects.filter(cluster=demo).update(replicas=nodes)
        judged(demo)
        assert Finding.objects.get(cluster=demo).measured == "2 of 3"

    def test_silent_controllers(self, demo: Cluster) -> None:
        runs = demo.collector_runs.filter(kind__in=[Kind.QUORUM, Kind.REASSIGNMENTS])
        runs.update(
            succeeded_at=NOW - timedelta(minutes=2),
            failures=3,
            last_failure=FailureKind.QUORUM_UNAVAILABLE,
            last_error="No.",
        )
        judge(demo.pk, NOW)
        assert open_kinds(demo) == {"quorum-lost"}

    def test_zookeeper_mode_and_another_cluster(self, demo: Cluster) -> None:
        Cluster.objects.filter(pk=demo.pk).update(mode=Mode.ZOOKEEPER)
        judge(demo.pk, NOW)
        assert open_kinds(demo) == {"zookeeper-mode"}
        Cluster.objects.filter(pk=demo.pk).update(other_kafka_id="another")
        judge(demo.pk, NOW)
        assert open_kinds(demo) == {"another-cluster"}

    def test_registered_twice(self, demo: Cluster) -> None:
        first = Cluster.objects.create(name="first", slug="first", bootstrap_servers="a:1")
        Cluster.objects.filter(pk=demo.pk).update(same_as=first)
        judge(demo.pk, NOW)
        assert open_kinds(demo) == {"registered-twice"}


class TestOwner:
    def test_taking_and_giving_back_is_in_the_audit(self, demo: Cluster, operator: User, approver: User, rf) -> None:  # type: ignore[no-untyped-def]
        finding, request = _row(demo, "f-1"), rf.post("/")
        services.acknowledge(finding, operator, request, NOW)
        services.acknowledge(finding, operator, request, NOW)
        services.acknowledge(finding, approver, request, NOW)
        services.release(finding, approver, request)
        events = AuditEvent.objects.filter(object_type="finding", object_id="f-1").order_by("pk")
        assert [(e.action, e.actor_name, e.before, e.after) for e in events] == [
            ("finding.acknowledged", "olga", {"owner": None}, {"owner": "olga"}),
            ("finding.acknowledged", "abel", {"owner": "olga"}, {"owner": "abel"}),
            ("finding.released", "abel", {"owner": "abel"}, {"owner": None}),
        ]

    def test_one_that_closed_meanwhile_is_refused_with_a_sentence(self, demo: Cluster, operator: User, rf) -> None:  # type: ignore[no-untyped-def]
        with pytest.raises(services.Refused, match="has closed"):
            services.acknowledge(_row(demo, "f-1", closed_at=NOW), operator, rf.post("/"), NOW)

    def test_it_stays_with_its_owner_while_it_goes_on(self, demo: Cluster, operator: User, rf) -> None:  # type: ignore[no-untyped-def]
        figures(demo, offline_partitions=2)
        reading(demo)
        services.acknowledge(Finding.objects.get(), operator, rf.post("/"), NOW)
        figures(demo, offline_partitions=3)
        reading(demo)
        assert Finding.objects.get().acknowledged_by == operator


@pytest.mark.django_db(transaction=True)
def test_a_judgement_waits_for_one_that_runs_and_then_sees_the_later_facts() -> None:
    demo = watched("demo")
    figures(demo, offline_partitions=1)
    reading(demo)
    done: list[bool] = []

    def judge_elsewhere() -> None:
        try:
            done.append(judge(demo.pk, NOW))
        finally:
            connection.close()

    other = threading.Thread(target=judge_elsewhere)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [services._LOCK, demo.pk])
        other.start()
        wait_until(_somebody_waits, "the other judgement waits for its turn")
        figures(demo, offline_partitions=0)
        demo.collector_runs.update(succeeded_at=F("succeeded_at") + timedelta(seconds=1))
    other.join(10)
    assert done == [True]
    assert Finding.objects.get().closed_at is not None


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool(cursor.fetchone()[0])


def _row(cluster: Cluster, public_id: str, **fields: object) -> Finding:
    kind = FindingKind.BROKER_DOWN
    times = {"first_seen_at": NOW, "opened_at": NOW, "seen_at": NOW}
    words = {"sentence": "Broker 1 is down.", "answer": "has broker 1 down"}
    scope = "" if "closed_at" not in fields else public_id
    return Finding.objects.create(
        cluster=cluster,
        public_id=public_id,
        kind=kind.value,
        scope=scope,
        state="critical",
        rank=kind.rank,
        **{**times, **words, **fields},
    )
