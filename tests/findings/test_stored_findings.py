"""Stored findings: opened, kept, closed and acknowledged, from what the collectors left in the database.

Findings of consumer groups, from the rows that the collector leaves.

What the pipeline hands back opens findings: a disk that fills, files that it could not read, and standing still.

Findings of the canary, from its stored samples.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import coded, message_columns
from kafkadash.findings import services
from kafkadash.findings.board import next_step
from kafkadash.findings.facts import EligibleFacts
from kafkadash.findings.judges import MORE, MOST_NAMED, MOST_STOPPED
from kafkadash.findings.kinds import FactSource, FindingCode, FindingKind, FindingNoteCode
from kafkadash.findings.models import Finding, Judgement
from kafkadash.findings.services import judge, judge_ages
from kafkadash.findings.stored_facts import facts_of
from kafkadash.history.models import DiskForecast, PipelineLedger
from kafkadash.monitoring.canary.rules import CanaryReading, CanaryReason, CanaryState
from kafkadash.monitoring.groups.names import key_of
from kafkadash.monitoring.groups.rules import LagState
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    CanaryPoint,
    Capabilities,
    ClusterState,
    CollectorKind,
    CollectorRun,
    ConfigDrift,
    EligibleReplicaState,
    GroupState,
    QuorumSnapshot,
    TopicState,
)
from tests.factories import (
    GB,
    NOW,
    QuorumFactory,
    ReassignmentFactory,
    TopicFactory,
    directory,
    failed_with,
    judged,
    node,
    silent,
    watched,
)
from tests.history_rows import beats, handed_back, looked, taken_in
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
        taken = demo.collector_runs.get(kind=CollectorKind.METADATA).succeeded_at
        assert (opened.first_seen_at, opened.opened_at, opened.closed_at) == (taken, taken, None)
        assert opened.public_id.startswith("f-")

        figures(demo, offline_partitions=0)
        assert reading(demo)
        closed = Finding.objects.get(cluster=demo)
        assert closed.public_id == opened.public_id
        assert closed.closed_at == demo.collector_runs.get(kind=CollectorKind.METADATA).succeeded_at
        assert Judgement.objects.get(cluster=demo).last_closed_at == closed.closed_at

        figures(demo, offline_partitions=1)
        reading(demo)
        assert Finding.objects.get(cluster=demo, closed_at=None).public_id != opened.public_id

    def test_the_first_data_of_a_new_cluster_closes_nothing_that_was_wrong(self, demo: Cluster) -> None:
        demo.collector_runs.filter(kind=CollectorKind.METADATA).update(succeeded_at=None)
        judge(demo.pk, NOW)
        assert open_kinds(demo) == {"stale-data"}
        demo.collector_runs.filter(kind=CollectorKind.METADATA).update(succeeded_at=NOW)
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

        demo.collector_runs.update(succeeded_at=NOW, failures=0, last_failure="", **failed_with(""))
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
        with django_assert_num_queries(6):  # type: ignore[attr-defined]
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
        missing = coded(FindingNoteCode.MISS_REPLICA, partitions=2, brokers=(2,))
        names = coded(FindingNoteCode.NAMED, names=("orders-0", "orders-1"))
        message = coded(FindingCode.UNDER_REPLICATED, partitions=2, notes=(missing, names))
        assert Finding.objects.get().message == message

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
        finding = Finding.objects.get(kind="at-min-isr")
        assert finding.message_code == FindingCode.NEXT_DOES_BOTH
        assert [finding.message_params[name] for name in ("partitions", "last", "others")] == [2, 1, 1]

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
        assert Finding.objects.get(kind="at-min-isr").message_code == FindingCode.NEXT_STOPS_WRITES
        TopicState.objects.filter(cluster=demo).update(min_isr=1)
        judged(demo)
        assert Finding.objects.get(kind="at-min-isr").message_code == FindingCode.NEXT_GOES_OFFLINE

    def test_offline_partitions_of_unread_configs_hide_no_partition_that_refuses_writes(self, demo: Cluster) -> None:
        unread = {"min_isr": None, "under_min_isr": None, "at_min_isr": None}
        TopicFactory.create(
            cluster=demo, name="new", topic_id="new", partitions=[[0, None, 5, [1, 2, 3], [1], [2, 3]]], **unread
        )
        TopicFactory.create(cluster=demo, name="orders", partitions=[[0, 1, 5, [1, 2, 3], [1], [2, 3]]])
        figures(demo, offline_partitions=1, under_min_isr=1, under_replicated=2)
        reading(demo)
        finding = Finding.objects.get(kind="under-min-isr")
        assert finding.message.params["partitions"] == 1
        assert finding.message.params["notes"][0] == coded(FindingNoteCode.NAMED, names=("orders-0",))

    def test_partitions_that_refuse_writes_are_counted_apart_from_offline_ones(self, demo: Cluster) -> None:
        figures(demo, offline_partitions=2, under_min_isr=5)
        reading(demo)
        assert Finding.objects.get(kind="under-min-isr").measured == "3 partitions"

    def test_offline_and_under_min_isr_partitions_by_their_elr(self, demo: Cluster) -> None:
        """Broker 3 is fenced; of the offline partitions 0 and 1 wait for it, 3 has lost all, and 1 can lead 4."""
        BrokerState.objects.filter(cluster=demo, broker_id=3).update(fenced=True)
        orders = TopicFactory.create(
            cluster=demo,
            name="orders",
            partitions=[
                [0, None, 5, [1, 3], [], [3]],
                [1, None, 5, [3, 2], [3], [3]],
                [2, 1, 5, [1, 2, 3], [1], [3]],
                [3, None, 5, [3, 2], [], [3]],
                [4, None, 5, [1, 3], [], [3]],
            ],
        )
        elr = {"0": [[3], [], {}], "1": [[], [], {}], "2": [[2, 3], [], {}], "3": [[], [3], {}], "4": [[1], [], {}]}
        stored = EligibleReplicaState.objects.create(
            cluster=demo, topic_id=orders.topic_id, partitions=elr, taken_at=NOW
        )
        features = {"eligible.leader.replicas.version": {"finalized": 1, "supported": [0, 1]}}
        capable = Capabilities.objects.create(cluster=demo, features=features, changed_at=NOW)
        facts = facts_of(demo, NOW)
        assert facts.offline_elr == EligibleFacts(3, 2, (3,), each=True)
        assert facts.under_elr == EligibleFacts(1, 1, (2, 3), each=True)
        stored.partitions["1"] = [[2], [], {}]
        BrokerState.objects.filter(cluster=demo, broker_id=2).update(fenced=True)
        TopicState.objects.filter(pk=orders.pk).update(
            partitions=[[1, None, 5, [3, 2], [], [3, 2]], *orders.partitions[:1]]
        )
        stored.save()
        assert facts_of(demo, NOW).offline_elr == EligibleFacts(2, 2, (2, 3), each=False)
        capable.features["eligible.leader.replicas.version"]["finalized"] = None
        capable.save()
        assert facts_of(demo, NOW).offline_elr == EligibleFacts(), "the cluster keeps no ELR: it is unknown"

    def test_brokers_that_differ_for_an_hour(self, demo: Cluster) -> None:
        since = NOW - timedelta(minutes=70)
        software = [{"brokers": [1, 2], "release": "4.3"}, {"brokers": [3], "release": "4.3"}]
        Capabilities.objects.create(cluster=demo, software=software, mixed_since=since, changed_at=NOW)
        keys = {"num.io.threads": [since.timestamp(), [["8", "static", [1, 2]], ["16", "broker", [3]]]]}
        ConfigDrift.objects.create(cluster=demo, keys=keys, changed_at=NOW)
        reading(demo)
        assert open_kinds(demo) == {"mixed-versions", "config-drift"}
        assert set(Finding.objects.values_list("message_code", "since")) == {
            (FindingCode.APIS_DIFFER, since),
            (FindingCode.CONFIGS_DIFFER, since),
        }
        for kind in (FindingKind.MIXED_VERSIONS, FindingKind.CONFIG_DRIFT):
            step = next_step(demo, kind, "")
            assert step is not None
            assert step.url == "/clusters/demo/drift/"
        silent_broker = BrokerState.objects.filter(cluster=demo, broker_id=3)
        silent_broker.update(fenced=True, replicas=0)
        ConfigDrift.objects.update(keys={})
        reading(demo)
        assert not open_kinds(demo) & {"mixed-versions", "config-drift"}

    def test_a_zombie(self, demo: Cluster) -> None:
        ReassignmentFactory.create(cluster=demo, topic="orders", partition=3, adding=[6], removing=[6])
        ReassignmentFactory.create(cluster=demo)
        reading(demo)
        message = coded(FindingCode.MOVES_NEVER_END, moves=1, names=("orders-3",))
        assert Finding.objects.get(cluster=demo).message == message

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
        runs = demo.collector_runs.filter(kind__in=[CollectorKind.QUORUM, CollectorKind.REASSIGNMENTS])
        runs.update(
            succeeded_at=NOW - timedelta(minutes=2),
            failures=3,
            last_failure=FailureKind.QUORUM_UNAVAILABLE,
            **failed_with("No."),
        )
        judge(demo.pk, NOW)
        assert open_kinds(demo) == {"quorum-lost"}

    def test_zookeeper_mode_and_another_cluster(self, demo: Cluster) -> None:
        Cluster.objects.filter(pk=demo.pk).update(mode=ClusterMode.ZOOKEEPER)
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
        with pytest.raises(services.FindingRefused, match="is closed"):
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
    said = message_columns(coded(FindingCode.DOWN_FENCED, broker=1, replicas=3), "message")
    scope = "" if "closed_at" not in fields else public_id
    return Finding.objects.create(
        cluster=cluster,
        public_id=public_id,
        kind=kind.value,
        scope=scope,
        state="critical",
        rank=kind.rank,
        **{**times, **said, **fields},
    )


READ_AT = NOW - timedelta(seconds=3)


@pytest.fixture
def demo_with_groups() -> Cluster:
    """A well cluster whose groups are collected every 30 s."""
    cluster = watched("demo")
    CollectorRun.objects.update_or_create(
        cluster=cluster, kind=FactSource.GROUPS.value, defaults={"succeeded_at": READ_AT, "interval_s": 30}
    )
    return cluster


def group_row(cluster: Cluster, name: str, worst: LagState = LagState.STALL, **more: Any) -> GroupState:
    """A group with one bad partition out of two, as it was read 3 s ago."""
    values: dict[str, Any] = {
        "state": "Stable",
        "verdict": "err" if worst.failing else worst.value,
        "worst": worst.value,
        "rank": 0,
        "verdict_since": NOW - timedelta(minutes=11),
        "partitions": 2,
        "members": 1,
        "counts": {worst.value: 1, "ok": 1},
        "worst_topic": "orders.paid",
        "worst_partition": 14,
        "worst_lag": 90,
        "lag": 100,
        "taken_at": READ_AT,
        "first_seen_at": NOW - timedelta(days=1),
        **more,
    }
    return GroupState(cluster=cluster, key=key_of(name), name=name, **values)


def look(cluster: Cluster) -> set[tuple[str, str]]:
    """A further reading of all groups but the old ones; (kind, scope) of what is open then."""
    later = timedelta(seconds=1)
    GroupState.objects.filter(cluster=cluster, taken_at__gte=NOW - timedelta(seconds=60)).update(
        taken_at=F("taken_at") + later
    )
    cluster.collector_runs.update(succeeded_at=F("succeeded_at") + later)
    judge(cluster.pk, NOW)
    return {(f.kind, f.scope) for f in Finding.objects.filter(closed_at=None, opened_at__isnull=False)}


def test_it_opens_at_the_second_reading_and_closes_when_it_reads_again(demo_with_groups: Cluster) -> None:
    group_row(demo_with_groups, "invoice-writer").save()
    assert look(demo_with_groups) == set()
    assert look(demo_with_groups) == {("consumer-lag", key_of("invoice-writer"))}
    opened = Finding.objects.get()
    assert opened.message == coded(
        FindingCode.GROUP_STALLS,
        group="invoice-writer",
        place="orders.paid-14",
        waiting=100,
        notes=(
            coded(FindingNoteCode.FAILING_PARTITIONS, failing=1, partitions=2),
            coded(FindingNoteCode.MOST_WAIT_IN, waiting=90, place="orders.paid-14"),
            coded(FindingNoteCode.MEMBERS, members=1),
        ),
    )
    assert (opened.state, opened.since) == ("warning", NOW - timedelta(minutes=11))

    GroupState.objects.update(worst="ok", verdict="ok", counts={"ok": 2})
    assert look(demo_with_groups) == set()
    closed = Finding.objects.get()
    assert (closed.public_id, closed.closed_at is not None) == (opened.public_id, True)


def test_a_group_that_is_gone_or_was_deleted_closes_it(demo_with_groups: Cluster) -> None:
    group_row(demo_with_groups, "invoice-writer").save()
    look(demo_with_groups)
    assert look(demo_with_groups)
    GroupState.objects.update(gone_at=NOW)
    assert look(demo_with_groups) == set()


def test_a_group_that_was_not_read_lately_keeps_its_finding(demo_with_groups: Cluster) -> None:
    group_row(demo_with_groups, "invoice-writer").save()
    look(demo_with_groups)
    opened = look(demo_with_groups)
    GroupState.objects.update(taken_at=NOW - timedelta(seconds=61), worst="ok", verdict="ok")
    assert look(demo_with_groups) == opened


def test_a_group_that_cannot_be_judged_now_keeps_its_finding(demo_with_groups: Cluster) -> None:
    """Its samples began anew, or one leader is away: that it reads again is not told."""
    group_row(demo_with_groups, "invoice-writer").save()
    look(demo_with_groups)
    opened = look(demo_with_groups)
    public_id = Finding.objects.get().public_id
    GroupState.objects.update(worst="unknown", verdict="unknown", counts={"unknown": 2}, in_doubt=2)
    assert look(demo_with_groups) == opened
    GroupState.objects.update(worst="ok", verdict="ok", counts={"unknown": 1, "ok": 1}, in_doubt=1)
    assert look(demo_with_groups) == opened
    GroupState.objects.update(worst="stall", verdict="err", in_doubt=0)
    assert look(demo_with_groups) == opened
    assert Finding.objects.get().public_id == public_id
    GroupState.objects.update(worst="ok", verdict="ok", counts={"unknown": 1, "ok": 1}, in_doubt=0, lag_unknown=1)
    assert look(demo_with_groups) == set(), "what never waited hides nothing"


def test_the_sum_of_the_others_stays_while_one_of_them_cannot_be_judged(demo_with_groups: Cluster) -> None:
    GroupState.objects.bulk_create(
        group_row(demo_with_groups, f"dead-{n}", LagState.STOP, members=0) for n in range(40)
    )
    look(demo_with_groups)
    assert ("consumer-lag", MORE) in look(demo_with_groups)
    GroupState.objects.update(worst="unknown", verdict="unknown", in_doubt=1)
    opened = look(demo_with_groups)
    assert len(opened) == MOST_STOPPED + 1
    GroupState.objects.update(in_doubt=0)
    assert look(demo_with_groups) == set()


def test_lost_records_and_a_group_that_was_never_judged(demo_with_groups: Cluster) -> None:
    group_row(demo_with_groups, "reader", LagState.OK, lost=7).save()
    new = group_row(demo_with_groups, "new", LagState.UNKNOWN, taken_at=NOW - timedelta(hours=1), worst_partition=None)
    new.worst = new.verdict = new.worst_topic = ""
    new.save()
    look(demo_with_groups)
    assert look(demo_with_groups) == {("consumer-data-loss", key_of("reader"))}
    assert [facts_of(demo_with_groups, NOW + age).groups_judged for age in (timedelta(), timedelta(hours=1))] == [
        True,
        False,
    ]


def asked_for_facts(cluster: Cluster) -> int:
    with CaptureQueriesContext(connection) as queries:
        facts = facts_of(cluster, NOW)
    assert len(facts.groups_in_trouble) == GroupState.objects.count()
    return len(queries)


def test_thousands_are_few_findings_and_no_more_queries(demo_with_groups: Cluster) -> None:
    of_none = asked_for_facts(demo_with_groups)
    GroupState.objects.bulk_create(
        group_row(demo_with_groups, f"dead-{n}", LagState.STOP, members=0, lag=n, worst_lag=n) for n in range(1, 3001)
    )
    assert asked_for_facts(demo_with_groups) == of_none
    look(demo_with_groups)
    opened = look(demo_with_groups)
    assert len(opened) == MOST_STOPPED + 1 <= MOST_NAMED
    assert ("consumer-lag", MORE) in opened
    assert look(demo_with_groups) == opened


def test_from_there_one_goes_to_the_group(demo_with_groups: Cluster) -> None:
    group_row(demo_with_groups, "a/b").save()
    look(demo_with_groups)
    look(demo_with_groups)
    finding = Finding.objects.get()
    step = next_step(demo_with_groups, FindingKind(finding.kind), finding.scope)
    assert step is not None
    assert step.url == f"/clusters/demo/groups/~{key_of('a/b')}/"
    still = next_step(demo_with_groups, FindingKind.PIPELINE_STILL, "")
    assert still is not None
    assert still.url == "/pipeline/"
    the_sum = next_step(demo_with_groups, FindingKind.CONSUMER_LAG, MORE)
    assert the_sum is not None
    assert the_sum.url == "/clusters/demo/groups/"


def kinds(cluster: Cluster) -> set[str]:
    return set(Finding.objects.filter(cluster=cluster, closed_at=None).values_list("kind", flat=True))


def test_no_pipeline__says_nothing_about_it(demo: Cluster) -> None:
    judged(demo)
    assert not kinds(demo) & {"pipeline-stands-still", "disk-full-soon", "segment-set-aside"}


def test_a_disk_that_is_full_within_a_day__is_found_and_closed_with_the_next_forecast(demo: Cluster) -> None:
    handed_back(demo, 1, NOW)
    before = kinds(demo)
    DiskForecast.objects.update(used_bytes=99, grows_per_day=2.0)
    judge(demo.pk, NOW)
    found = kinds(demo) - before
    row = Finding.objects.get(cluster=demo, kind__in=found, scope="1:/data")
    assert row.kind == "disk-full-soon"
    DiskForecast.objects.update(used_bytes=10)
    judge(demo.pk, NOW)
    row.refresh_from_db()
    assert row.closed_at is not None


def test_a_file_that_was_set_aside__is_found(demo: Cluster) -> None:
    handed_back(demo, 1, NOW)
    judge(demo.pk, NOW)
    row = Finding.objects.get(cluster=demo, kind="segment-set-aside")
    assert (row.message_code, row.message_params["segments"]) == (FindingCode.SEGMENTS_UNREAD, 1)
    assert row.message_params["why"] == PipelineLedger.objects.get().set_aside[0]["why"]
    PipelineLedger.objects.update(ingested_at=NOW - timedelta(hours=25))
    judge(demo.pk, NOW)
    row.refresh_from_db()
    assert row.closed_at is not None


def test_no_batch_for_long_while_segments_wait__is_found_and_an_idle_pipeline_is_not(demo: Cluster) -> None:
    long_ago = NOW - timedelta(minutes=10)
    taken_in(NOW, ingested_at=long_ago)
    looked(NOW, beats(NOW, last_batch_at=long_ago.isoformat()))
    judged(demo)
    assert "pipeline-stands-still" not in kinds(demo)
    looked(NOW, beats(NOW, last_batch_at=long_ago.isoformat()), segments_waiting=3)
    judged(demo)
    assert "pipeline-stands-still" in kinds(demo)


CANARY_EVERY = timedelta(seconds=30)
_OK = CanaryReading(CanaryState.MEASURED, 4.0, 5.0)
_SLOW = CanaryReading(CanaryState.MEASURED, 1400.0, 1500.4)
_REFUSED = CanaryReading(CanaryState.FAILED, code=CanaryReason.REFUSED.value, detail="NOT_ENOUGH_REPLICAS")
_ELSEWHERE = CanaryReading(CanaryState.NOT_MEASURED, code=CanaryReason.LED_ELSEWHERE.value, detail="1")


@pytest.fixture
def probed_demo(demo: Cluster) -> Cluster:
    """A well cluster whose canary is started."""
    every = CANARY_EVERY.total_seconds()
    CollectorRun.objects.create(cluster=demo, kind=CollectorKind.CANARY, succeeded_at=READ_AT, interval_s=every)
    return demo


def probe_again(cluster: Cluster, samples: int, readings: Mapping[int, CanaryReading]) -> set[tuple[str, str]]:
    """Store further samples, the newest of now; (kind, scope) of what is open after each was judged."""
    for _ in range(samples):
        CanaryPoint.objects.filter(cluster=cluster).update(taken_at=F("taken_at") - CANARY_EVERY)
        stored = {str(broker): each.as_json() for broker, each in readings.items()}
        CanaryPoint.objects.create(cluster=cluster, taken_at=NOW, readings=stored)
        reading(cluster)
    open_ones = Finding.objects.filter(closed_at=None, opened_at__isnull=False)
    return set(open_ones.values_list("kind", "scope"))


def test_canary__third_failure_opens__a_measured_probe_closes(probed_demo: Cluster) -> None:
    assert probe_again(probed_demo, 1, {1: _OK, 2: _OK}) == set()
    assert probe_again(probed_demo, 2, {1: _OK, 2: _REFUSED}) == set()
    assert probe_again(probed_demo, 1, {1: _OK, 2: _REFUSED}) == {("canary-fails", "2")}
    opened = Finding.objects.get()
    why = coded(CanaryReason.REFUSED, detail="NOT_ENOUGH_REPLICAS")
    assert opened.message == coded(FindingCode.CANARY_FAILED, broker=2, probes=3, why=why)
    assert (opened.state, opened.value, opened.since) == ("critical", 3, NOW - 2 * CANARY_EVERY)
    assert probe_again(probed_demo, 1, {1: _OK, 2: _OK}) == set()
    assert Finding.objects.get().public_id == opened.public_id


def test_canary__median_above_a_second_opens__one_below_closes(probed_demo: Cluster) -> None:
    assert probe_again(probed_demo, 4, {1: _OK, 3: _SLOW}) == set()
    assert probe_again(probed_demo, 1, {1: _OK, 3: _SLOW}) == {("canary-slow", "3")}
    opened = Finding.objects.get()
    assert opened.message == coded(FindingCode.CANARY_LATE, broker=3, milliseconds=1500, most=1000)
    assert (opened.state, opened.value, opened.unit) == ("warning", 1500, "ms")
    assert opened.since == NOW - 4 * CANARY_EVERY
    assert probe_again(probed_demo, 4, {1: _OK, 3: _OK}) == {("canary-slow", "3")}
    assert probe_again(probed_demo, 1, {1: _OK, 3: _OK}) == set()


def test_canary__partition_that_is_led_elsewhere__neither_opens_nor_closes(probed_demo: Cluster) -> None:
    """Broker 1 leads that of broker 2 meanwhile: what is measured there says nothing about either."""
    assert probe_again(probed_demo, 12, {1: _OK, 2: _ELSEWHERE}) == set()
    probe_again(probed_demo, 3, {1: _OK, 2: _REFUSED})
    probe_again(probed_demo, 5, {1: _OK, 2: _REFUSED, 3: _SLOW})
    opened = probe_again(probed_demo, 12, {1: _OK, 2: _ELSEWHERE, 3: _ELSEWHERE})
    assert opened == {("canary-fails", "2"), ("canary-slow", "3")}
    facts = facts_of(probed_demo, NOW)
    assert facts.canaries_blind == {2, 3}
    assert facts.canary_measured
    assert not facts.canaries, "ten samples tell of neither"
    assert probe_again(probed_demo, 1, {1: _OK, 2: _OK, 3: _ELSEWHERE}) == {("canary-slow", "3")}


def test_canary__that_nobody_ran_for_a_while__begins_anew(probed_demo: Cluster) -> None:
    probe_again(probed_demo, 2, {2: _REFUSED})
    CanaryPoint.objects.update(taken_at=F("taken_at") - 5 * CANARY_EVERY)
    assert probe_again(probed_demo, 2, {2: _REFUSED}) == set()
    assert probe_again(probed_demo, 1, {2: _REFUSED}) == {("canary-fails", "2")}
    probed_demo.collector_runs.filter(kind=CollectorKind.CANARY).update(succeeded_at=NOW - timedelta(hours=1))
    judge(probed_demo.pk, NOW)
    assert ("canary-fails", "2") in probe_again(probed_demo, 0, {}), "nobody probed since: it is not known to be over"
    probed_demo.collector_runs.filter(kind=CollectorKind.CANARY).delete()
    judge(probed_demo.pk, NOW)
    assert probe_again(probed_demo, 0, {}) == set(), "its canary was stopped"
