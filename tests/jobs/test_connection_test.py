"""What the connection test says about a cluster, and what it keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.clusters.services import ClusterRefused, register_cluster
from kafkadash.core.messages import CodedMessage, as_message, coded, unpack_value
from kafkadash.jobs import connection_test
from kafkadash.jobs import connection_test as connection_steps
from kafkadash.jobs.connection_test import KIND, start_test
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import attempt_job, claim, enqueue, request_cancel, settle_expired_jobs
from kafkadash.kafka import znodes
from kafkadash.kafka.api import (
    ApiVersions,
    AuthenticationFailed,
    BrokerInfo,
    ClusterConnection,
    ClusterDescription,
    ClusterMetadata,
    ConnectionSecurity,
    GrantedPermissions,
    ItemError,
    KafkaFailure,
    KafkaUnreachable,
    LogDir,
    LogDirs,
    NotAuthorized,
    QuorumDescription,
    QuorumReplica,
    QuorumUnavailable,
    ReplicaSize,
    TopicMetadata,
)
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.probe import ProbeResult, ProbeStage
from kafkadash.kafka.znodes import OtherZooKeeper
from tests.memory_zookeeper import MemoryZooKeeper

pytestmark = pytest.mark.django_db

KRAFT = {3: (0, 13), 18: (0, 4), 55: (0, 2)}
ZOOKEEPER = {3: (0, 12), 18: (0, 3)}


def brokers() -> list[BrokerInfo]:
    return [
        BrokerInfo(2, "k2", 9092, "b", fenced=False),
        BrokerInfo(1, "k1", 9092, "a", fenced=False),
        BrokerInfo(3, "k3", 9092, None, fenced=False),
    ]


@dataclass
class Answers:
    """A cluster's answers to the questions; a failure is raised instead. ``unreachable`` maps addresses to why."""

    described: ClusterDescription | KafkaFailure = field(
        default_factory=lambda: ClusterDescription("kafka-id-1", 2, brokers(), taken_at=0)
    )
    versions: ApiVersions = field(default_factory=lambda: ApiVersions(dict.fromkeys((1, 2, 3), KRAFT), {}, taken_at=0))
    leader: QuorumDescription | KafkaFailure = field(
        default_factory=lambda: QuorumDescription(
            101, 7, 4_000, [QuorumReplica(i, "", None, None, None) for i in (102, 101)], [], 0
        )
    )
    granted: GrantedPermissions | KafkaFailure = field(
        default_factory=lambda: GrantedPermissions(frozenset(["Describe", "DescribeConfigs"]), {}, 0)
    )
    on_disk: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)
    connection: ClusterConnection | None = None
    unreachable: dict[str, tuple[ProbeStage, str]] = field(default_factory=dict)

    def describe_cluster(self, *, deadline: float) -> ClusterDescription:
        self._asked("describe_cluster", deadline)
        if isinstance(self.described, KafkaFailure):
            raise self.described
        return self.described

    def api_versions(self, *, deadline: float) -> ApiVersions:
        self._asked("api_versions", deadline)
        return self.versions

    def quorum(self, *, deadline: float) -> QuorumDescription:
        self._asked("quorum", deadline)
        if isinstance(self.leader, KafkaFailure):
            raise self.leader
        return self.leader

    def permissions(self, *, deadline: float) -> GrantedPermissions:
        self._asked("permissions", deadline)
        if isinstance(self.granted, KafkaFailure):
            raise self.granted
        return self.granted

    def log_dirs(self, brokers: Sequence[int], *, deadline: float) -> LogDirs:
        replicas = [ReplicaSize(topic, 0, 1, future=False) for topic in self.on_disk]
        return LogDirs({broker: [LogDir("/a", replicas, None, None)] for broker in brokers}, {}, 0)

    def metadata(self, *, deadline: float, topics: Sequence[str]) -> ClusterMetadata:
        hidden = [
            TopicMetadata(t, "", False, [], ItemError(as_message("no"), 29, "TOPIC_AUTHORIZATION_FAILED"))
            for t in topics
        ]
        return ClusterMetadata("kafka-id-1", [], hidden, 0)

    def probe(self, addresses: Sequence[str], security: ConnectionSecurity, *, deadline: float) -> list[ProbeResult]:
        reached = [ProbeResult(address, ("10.0.0.1",)) for address in addresses]
        return [
            replace(each, failed=self.unreachable[each.address][0], why=as_message(self.unreachable[each.address][1]))
            if each.address in self.unreachable
            else each
            for each in reached
        ]

    def _asked(self, what: str, deadline: float) -> None:
        assert 0 < deadline <= 10
        self.asked.append(what)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    answers = Answers()

    @contextmanager
    def own_admin(connection: ClusterConnection) -> Iterator[Answers]:
        answers.connection = connection
        yield answers

    monkeypatch.setattr(connection_test, "own_admin", own_admin)
    monkeypatch.setattr(connection_steps, "probe", answers.probe)
    return answers


def steps_of(job: Job) -> dict[str, dict[str, Any]]:
    assert job.result is not None
    return {step["key"]: step for step in job.result["steps"]}


def said(job: Job) -> dict[str, tuple[str, CodedMessage | str]]:
    return {key: (step["state"], unpack_value(step["said"])) for key, step in steps_of(job).items()}


def outcome_of(cluster: Cluster) -> Job:
    job = enqueue(KIND, cluster=cluster)
    attempt_job(job.pk)
    job.refresh_from_db()
    cluster.refresh_from_db()
    return job


def test_it_tells_what_answered_and_keeps_who_it_was(cluster: Cluster, answers: Answers) -> None:
    job = outcome_of(cluster)
    assert (job.state, job.error) == (JobState.DONE, None)
    assert job.result is not None
    told = {
        "resolve": [],
        "connect": ["127.0.0.1:1"],
        "kafka": ["kafka-id-1"],
        "listeners": ["3 brokers", "k2:9092, k1:9092, k3:9092"],
        "versions": ["KRaft"],
        "quorum": ["101", "102"],
        "permissions": ["Describe", "DescribeConfigs"],
        "changes": [],
    }
    assert [(key, state) for key, (state, _) in said(job).items()] == [(key, "ok") for key in told]
    for key, (_, sentence) in said(job).items():
        for named in told[key]:
            assert named in str(sentence)
    assert {name: value for name, value in job.result.items() if name != "steps"} == {
        "kafka_id": "kafka-id-1",
        "mode": "kraft",
        "brokers": [
            {"id": 1, "host": "k1", "port": 9092, "rack": "a", "fenced": False},
            {"id": 2, "host": "k2", "port": 9092, "rack": "b", "fenced": False},
            {"id": 3, "host": "k3", "port": 9092, "rack": None, "fenced": False},
        ],
        "racks": ["a", "b"],
        "brokers_without_rack": 1,
        "controller": 101,  # from the quorum, never from DescribeCluster, which names a random broker on KRaft
        "voters": [101, 102],
        "problems": [],
    }
    assert (cluster.kafka_id, cluster.mode) == ("kafka-id-1", ClusterMode.KRAFT)
    assert answers.connection is not None
    assert answers.connection.bootstrap_servers == ("127.0.0.1:1",)
    assert AuditEvent.objects.get().action == "cluster.identified"


def test_without_key_55_it_is_zookeeper_and_no_quorum_is_asked_for(cluster: Cluster, answers: Answers) -> None:
    answers.versions = ApiVersions(dict.fromkeys((1, 2, 3), ZOOKEEPER), {}, taken_at=0)
    job = outcome_of(cluster)
    assert job.result is not None
    assert (job.result["mode"], job.result["controller"], job.result["voters"]) == ("zookeeper", None, None)
    assert cluster.mode == ClusterMode.ZOOKEEPER
    assert answers.asked == ["describe_cluster", "api_versions", "permissions"]
    assert said(job)["versions"] == ("warning", coded(ClusterErrorCode.WITH_ZOOKEEPER))


@pytest.fixture
def ensemble(cluster: Cluster, answers: Answers, monkeypatch: pytest.MonkeyPatch) -> MemoryZooKeeper:
    """Brokers with ZooKeeper, whose address is stored; broker 2 is the controller."""
    answers.versions = ApiVersions(dict.fromkeys((1, 2, 3), ZOOKEEPER), {}, taken_at=0)
    Cluster.objects.update(zookeeper="z:2181/kafka")
    cluster.refresh_from_db()
    ensemble = MemoryZooKeeper()
    ensemble.identify("kafka-id-1")
    ensemble.write(znodes.CONTROLLER, {"version": 2, "brokerid": 2, "timestamp": "1", "kraftControllerEpoch": -1})
    ensemble.write(f"{znodes.BROKERS}/2", {"version": 5, "endpoints": []})
    monkeypatch.setattr(connection_test, "open_zookeeper", ensemble.open)
    return ensemble


class TestZooKeeper:
    def test_tells_the_controller(self, cluster: Cluster, ensemble: MemoryZooKeeper) -> None:
        job = outcome_of(cluster)
        state, sentence = said(job)["zookeeper"]
        assert (state, str(sentence)) == ("ok", "ZooKeeper has 1 broker; broker 2 is the controller.")
        assert job.result is not None
        assert job.result["problems"] == []
        [connection] = ensemble.opened
        assert (connection.addresses, connection.chroot) == (("z:2181",), "/kafka")

    @pytest.mark.parametrize(
        "failure",
        [
            OtherZooKeeper(KafkaErrorCode.ZOOKEEPER_WITHOUT_KAFKA, path="/kafka/cluster/id"),
            NotAuthorized(KafkaErrorCode.ZNODE_PROTECTED, path="/kafka/controller"),
            KafkaUnreachable(KafkaErrorCode.ZOOKEEPER_LOST, address="z:2181"),
        ],
        ids=lambda failure: str(failure.code),
    )
    def test_that_cannot_be_read__is_a_problem(
        self, cluster: Cluster, ensemble: MemoryZooKeeper, failure: KafkaFailure
    ) -> None:
        ensemble.failure = failure
        job = outcome_of(cluster)
        wrong = coded(JobErrorCode.ZOOKEEPER_UNREAD, why=failure.message)
        assert (job.state, said(job)["zookeeper"]) == (JobState.DONE, ("warning", wrong))
        assert job.result is not None
        assert job.result["problems"] == [wrong.as_json()]

    def test_of_another_cluster__is_refused(self, cluster: Cluster, ensemble: MemoryZooKeeper) -> None:
        ensemble.identify("kafka-id-2")
        why = coded(KafkaErrorCode.ZOOKEEPER_OF_OTHER_CLUSTER, answered="kafka-id-2", expected="kafka-id-1")
        assert said(outcome_of(cluster))["zookeeper"] == ("warning", coded(JobErrorCode.ZOOKEEPER_UNREAD, why=why))

    def test_of_brokers_without_it__is_not_used(
        self, cluster: Cluster, answers: Answers, ensemble: MemoryZooKeeper
    ) -> None:
        answers.versions = ApiVersions(dict.fromkeys((1, 2, 3), KRAFT), {}, taken_at=0)
        assert said(outcome_of(cluster))["zookeeper"] == ("warning", coded(ClusterErrorCode.ZOOKEEPER_UNUSED))
        ensemble.failure = KafkaUnreachable(KafkaErrorCode.ZOOKEEPER_LOST, address="z:2181")
        assert said(outcome_of(cluster))["zookeeper"] == ("warning", coded(ClusterErrorCode.ZOOKEEPER_UNUSED))

    @pytest.mark.parametrize("offered", [ZOOKEEPER, KRAFT], ids=["before", "after"])
    def test_during_a_migration__is_told(
        self, cluster: Cluster, answers: Answers, ensemble: MemoryZooKeeper, offered: dict[int, tuple[int, int]]
    ) -> None:
        answers.versions = ApiVersions({1: offered, 2: ZOOKEEPER, 3: ZOOKEEPER}, {}, taken_at=0)
        ensemble.write(znodes.CONTROLLER, {"version": 2, "brokerid": 3000, "timestamp": "1", "kraftControllerEpoch": 7})
        told = coded(JobErrorCode.MIGRATES, controller=3000)
        assert said(outcome_of(cluster))["zookeeper"] == ("warning", told)


@pytest.mark.parametrize("before", ["unknown", "zookeeper", "kraft"])
def test_brokers_of_both_modes__are_a_cluster_with_zookeeper(
    cluster: Cluster, answers: Answers, ensemble: MemoryZooKeeper, before: str
) -> None:
    Cluster.objects.update(mode=before)
    answers.versions = ApiVersions({1: KRAFT, 2: ZOOKEEPER, 3: ZOOKEEPER}, {}, taken_at=0)
    job = outcome_of(cluster)
    assert job.result is not None
    assert (cluster.mode, job.result["mode"], "quorum" in answers.asked) == ("zookeeper", "zookeeper", False)
    state, sentence = said(job)["versions"]
    assert (state, re.findall(r"\d+|KRaft|ZooKeeper", str(sentence))) == ("ok", ["1", "KRaft", "2", "3", "ZooKeeper"])


def test_brokers_that_do_not_answer__leave_the_mode_as_it_was(cluster: Cluster, answers: Answers) -> None:
    Cluster.objects.update(mode=ClusterMode.ZOOKEEPER)
    answers.versions = ApiVersions({}, {1: ItemError(as_message("no answer within 8 s"))}, taken_at=0)
    job = outcome_of(cluster)
    assert job.result is not None
    assert (cluster.mode, job.result["mode"]) == (ClusterMode.ZOOKEEPER, ClusterMode.UNKNOWN)


def test_what_fails_in_part_is_a_problem_and_not_a_failure(cluster: Cluster, answers: Answers) -> None:
    fenced = [*brokers()[:2], BrokerInfo(3, "k3", 9092, None, fenced=True)]
    answers.described = ClusterDescription("kafka-id-1", 2, fenced, taken_at=0)
    answers.versions = ApiVersions({1: KRAFT}, {2: ItemError(as_message("no answer within 8 s"))}, taken_at=0)
    answers.leader = QuorumUnavailable(as_message("The controllers have no majority."))
    job = outcome_of(cluster)
    assert job.state == JobState.DONE
    assert job.result is not None
    assert job.result["problems"] == [
        "Broker 2: no answer within 8 s",
        coded(JobErrorCode.NOT_ASKED, broker=3, address="k3:9092").as_json(),
        coded(JobErrorCode.TAKES_NO_PART, broker=3).as_json(),
        coded(JobErrorCode.QUORUM_UNREAD, why=answers.leader.message).as_json(),
    ]
    assert job.result["controller"] is None
    assert cluster.kafka_id == "kafka-id-1"


def test_another_cluster_behind_the_addresses_is_refused(cluster: Cluster, answers: Answers) -> None:
    Cluster.objects.update(kafka_id="kafka-id-0", mode=ClusterMode.ZOOKEEPER)
    cluster.refresh_from_db()
    job = outcome_of(cluster)
    assert job.state == JobState.FAILED
    assert said(job)["kafka"] == ("critical", job.error)
    assert "listeners" not in steps_of(job)
    assert job.error_code == ClusterErrorCode.IDENTITY_CHANGED
    assert (job.error_params["answered"], job.error_params["expected"]) == ("kafka-id-1", "kafka-id-0")
    assert (cluster.kafka_id, cluster.mode) == ("kafka-id-0", ClusterMode.ZOOKEEPER)
    assert not AuditEvent.objects.exists()


def test_no_answer_at_all_is_the_adapters_sentence(cluster: Cluster, answers: Answers) -> None:
    answers.described = KafkaUnreachable(
        as_message("No broker accepted a connection at 127.0.0.1:1; is the address right?")
    )
    job = outcome_of(cluster)
    assert (job.state, job.error) == (JobState.FAILED, answers.described.message)
    assert cluster.kafka_id == ""
    assert said(job)["kafka"] == ("critical", job.error)


def test_a_closed_port_is_a_sentence_with_the_real_client(cluster: Cluster) -> None:
    job = outcome_of(cluster)
    assert job.state == JobState.FAILED
    assert job.error == coded(KafkaErrorCode.CONNECTING_FAILED, address="127.0.0.1:1", said="connection refused")


def test_a_cluster_that_was_removed_meanwhile_takes_the_job_with_it(cluster: Cluster) -> None:
    job = enqueue(KIND, cluster=cluster)
    cluster.delete()
    attempt_job(job.pk)
    assert not Job.objects.filter(pk=job.pk).exists()


def test_an_advertised_listener_that_cannot_be_reached_is_named(cluster: Cluster, answers: Answers) -> None:
    words = "The host name k2 cannot be resolved (no such name)."
    answers.unreachable = {"k2:9092": (ProbeStage.RESOLVE, words)}
    job = outcome_of(cluster)
    assert job.state == JobState.DONE
    step = steps_of(job)["listeners"]
    assert step["state"] == "warning"
    assert unpack_value(step["said"]) == coded(JobErrorCode.LISTENERS_UNREACHABLE, reached=2, brokers="3 brokers")
    [told] = unpack_value(step["items"])
    assert told == coded(JobErrorCode.LISTENER_UNREACHABLE, broker=2, address="k2:9092", why=as_message(words))
    assert job.result is not None
    assert step["items"][0] in job.result["problems"]


@pytest.mark.parametrize(
    ("cluster_may", "topics_may", "on_disk", "missing"),
    [
        (["Describe", "DescribeConfigs"], {"orders": ["Describe", "DescribeConfigs"]}, ("orders",), []),
        (["DescribeConfigs"], {}, ("orders",), ["Describe on the cluster is missing. Not available: reassignments"]),
        (["Describe"], {}, (), ["DescribeConfigs on the cluster is missing. Not available: broker configuration"]),
        (
            ["Describe", "DescribeConfigs"],
            {"a": ["Describe"], "b": ["Describe", "DescribeConfigs"]},
            ("a", "b"),
            ["DescribeConfigs on “a” is missing"],
        ),
        (
            ["Describe", "DescribeConfigs"],
            {"a": ["Describe", "DescribeConfigs"]},
            ("a", "b", "__cluster_metadata"),
            ["Describe on “b” is missing: Kafka hides these, so counts are too low."],
        ),
        (["Describe", "DescribeConfigs"], {}, ("a", "b"), ["Describe on all topics is missing"]),
    ],
)
def test_a_missing_permission_is_named_with_what_it_costs(
    cluster: Cluster,
    answers: Answers,
    cluster_may: list[str],
    topics_may: dict[str, list[str]],
    on_disk: tuple[str, ...],
    missing: list[str],
) -> None:
    topics = {name: frozenset(may) for name, may in topics_may.items()}
    answers.granted, answers.on_disk = GrantedPermissions(frozenset(cluster_may), topics, 0), on_disk
    step = steps_of(outcome_of(cluster))["permissions"]
    assert step["state"] == ("warning" if missing else "ok")
    assert len(step["items"]) == len(missing)
    items = [str(unpack_value(item)) for item in step["items"]]
    assert all(item.startswith(start) for item, start in zip(items, missing, strict=True))


CHANGES = frozenset({"Describe", "DescribeConfigs", "Alter", "AlterConfigs", "Create"})


@pytest.mark.parametrize(
    ("on_cluster", "on_topics", "state", "missing"),
    [
        (CHANGES, {"a": CHANGES | {"Delete"}}, "ok", []),
        (frozenset({"Describe", "DescribeConfigs"}), {"a": frozenset({"Describe", "DescribeConfigs"})}, "ok", []),
        (CHANGES - {"Create"}, {"a": CHANGES | {"Delete"}, "b": CHANGES}, "warning", ["Create", "Delete"]),
    ],
    ids=["all", "watches only", "some"],
)
def test_permissions_for_changes__are_told_where_some_are_granted(
    cluster: Cluster,
    answers: Answers,
    on_cluster: frozenset[str],
    on_topics: dict[str, frozenset[str]],
    state: str,
    missing: list[str],
) -> None:
    answers.granted, answers.on_disk = GrantedPermissions(on_cluster, on_topics, 0), tuple(on_topics)
    step = steps_of(outcome_of(cluster))["changes"]
    assert step["state"] == state
    assert [unpack_value(item).params["operation"] for item in step["items"]] == missing


SASL: dict[str, Any] = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "dash",
    "sasl_password": "s3cret-x",
}


def test_a_refused_login_is_the_step_that_failed(admin: User, answers: Answers) -> None:
    answers.described = AuthenticationFailed(
        as_message("The bootstrap server a:9093 refused the credentials: Authentication failed.")
    )
    job = outcome_of(register_cluster(admin, "secure", "a:9093", **SASL))
    assert said(job)["sasl"] == ("critical", answers.described.message)
    assert said(job)["tls"][0] == "ok"
    assert "kafka" not in steps_of(job)


def test_what_was_typed_is_tried_with_the_stored_secrets_and_nothing_is_learned(admin: User, answers: Answers) -> None:
    cluster = register_cluster(admin, "secure", "a:9093,b:9093", **SASL)
    job = start_test(admin, cluster, {"bootstrap_servers": "b:9093"})
    assert "s3cret-x" not in str(job.input), "a secret in a job's row is encrypted"
    attempt_job(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.DONE, job.error
    assert answers.connection is not None
    assert answers.connection.bootstrap_servers == ("b:9093",)
    assert answers.connection.security.sasl_password == "s3cret-x"
    cluster.refresh_from_db()
    assert (cluster.bootstrap_servers, cluster.kafka_id) == ("a:9093,b:9093", "")
    assert "sasl_password" not in job.input["connection"], "the row keeps no secret when the test has ended"
    event = AuditEvent.objects.get(action="cluster.connection_tested")
    assert event.after is not None
    assert event.after["bootstrap_servers"] == "b:9093"
    assert "s3cret-x" not in str(event.after)


@pytest.mark.parametrize("end", ["cancelled while it waits", "its worker is gone", "cancelled, and its worker is gone"])
def test_no_secret_is_kept_of_a_test_that_ended_without_running_to_its_end(admin: User, end: str) -> None:
    cluster = register_cluster(admin, "secure", "a:9093,b:9093", **SASL)
    job = start_test(admin, cluster, {"bootstrap_servers": "b:9093"})
    if end != "cancelled while it waits":
        assert claim(job.pk) is not None
        Job.objects.filter(pk=job.pk).update(lease_until=Now() - timedelta(seconds=1))
    if end != "its worker is gone":
        request_cancel(job.pk)
    settle_expired_jobs()
    job.refresh_from_db()
    assert job.state == (JobState.FAILED if end == "its worker is gone" else JobState.CANCELLED)
    assert job.input["connection"]["bootstrap_servers"] == "b:9093"
    assert "sasl_password" not in job.input["connection"]


def test_a_cluster_that_is_not_registered_yet_can_be_tried(admin: User, answers: Answers) -> None:
    job = start_test(admin, None, {"bootstrap_servers": "b:9092"})
    attempt_job(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.DONE, job.error
    assert not Cluster.objects.exists()


def test_it_says_when_the_cluster_is_registered_already(admin: User, cluster: Cluster, answers: Answers) -> None:
    Cluster.objects.update(kafka_id="kafka-id-1")
    job = start_test(admin, None, {"bootstrap_servers": "b:9092"})
    attempt_job(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert said(job)["kafka"] == (
        "critical",
        coded(ClusterErrorCode.SAME_CLUSTER, cluster="The cluster", other="Demo"),
    )


def test_settings_that_make_no_sense_are_refused_before_a_job_is_made(admin: User) -> None:
    with pytest.raises(ClusterRefused):
        start_test(admin, None, {"bootstrap_servers": "nowhere"})
    assert not Job.objects.exists()
