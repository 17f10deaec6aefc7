"""What the connection test says about a cluster, and what it keeps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from kafkadash.accounts.models import AuditEvent
from kafkadash.clusters.models import Cluster, Mode
from kafkadash.jobs import connection_test
from kafkadash.jobs.connection_test import KIND, mode_of
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.run import attempt
from kafkadash.jobs.services import enqueue
from kafkadash.kafka.port import (
    ApiVersions,
    Broker,
    ClusterDescription,
    Connection,
    ItemError,
    KafkaFailure,
    Quorum,
    QuorumReplica,
    QuorumUnavailable,
    Unreachable,
)

pytestmark = pytest.mark.django_db

KRAFT = {3: (0, 13), 18: (0, 4), 55: (0, 2)}
ZOOKEEPER = {3: (0, 12), 18: (0, 3)}


def brokers() -> list[Broker]:
    return [
        Broker(2, "k2", 9092, "b", fenced=False),
        Broker(1, "k1", 9092, "a", fenced=False),
        Broker(3, "k3", 9092, None, fenced=False),
    ]


@dataclass
class Answers:
    """A cluster's answers to the three questions; a failure is raised instead."""

    described: ClusterDescription | KafkaFailure = field(
        default_factory=lambda: ClusterDescription("kafka-id-1", 2, brokers(), taken_at=0)
    )
    versions: ApiVersions = field(default_factory=lambda: ApiVersions(dict.fromkeys((1, 2, 3), KRAFT), {}, taken_at=0))
    leader: Quorum | KafkaFailure = field(
        default_factory=lambda: Quorum(
            101, 7, 4_000, [QuorumReplica(i, "", None, None, None) for i in (102, 101)], [], 0
        )
    )
    asked: list[str] = field(default_factory=list)
    connection: Connection | None = None

    def describe_cluster(self, *, deadline: float) -> ClusterDescription:
        self._asked("describe_cluster", deadline)
        if isinstance(self.described, KafkaFailure):
            raise self.described
        return self.described

    def api_versions(self, *, deadline: float) -> ApiVersions:
        self._asked("api_versions", deadline)
        return self.versions

    def quorum(self, *, deadline: float) -> Quorum:
        self._asked("quorum", deadline)
        if isinstance(self.leader, KafkaFailure):
            raise self.leader
        return self.leader

    def _asked(self, what: str, deadline: float) -> None:
        assert 0 < deadline <= 10
        self.asked.append(what)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    answers = Answers()

    def admin_for(connection: Connection) -> Answers:
        answers.connection = connection
        return answers

    monkeypatch.setattr(connection_test, "admin_for", admin_for)
    return answers


def outcome_of(cluster: Cluster) -> Job:
    job = enqueue(KIND, cluster=cluster)
    attempt(job.pk)
    job.refresh_from_db()
    cluster.refresh_from_db()
    return job


def test_it_tells_what_answered_and_keeps_who_it_was(cluster: Cluster, answers: Answers) -> None:
    job = outcome_of(cluster)
    assert (job.state, job.error) == (JobState.DONE, "")
    assert job.result == {
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
    assert (cluster.kafka_id, cluster.mode) == ("kafka-id-1", Mode.KRAFT)
    assert answers.connection is not None
    assert answers.connection.bootstrap_servers == ("127.0.0.1:1",)
    assert AuditEvent.objects.get().action == "cluster.identified"


def test_without_key_55_it_is_zookeeper_and_no_quorum_is_asked_for(cluster: Cluster, answers: Answers) -> None:
    answers.versions = ApiVersions(dict.fromkeys((1, 2, 3), ZOOKEEPER), {}, taken_at=0)
    job = outcome_of(cluster)
    assert job.result is not None
    assert (job.result["mode"], job.result["controller"], job.result["voters"]) == ("zookeeper", None, None)
    assert cluster.mode == Mode.ZOOKEEPER
    assert answers.asked == ["describe_cluster", "api_versions"]


def test_brokers_that_do_not_answer_leave_the_mode_unknown() -> None:
    silent = ApiVersions({}, {1: ItemError("no answer within 8 s")}, taken_at=0)
    assert mode_of(silent) == Mode.UNKNOWN
    assert mode_of(replace(silent, brokers={2: ZOOKEEPER})) == Mode.ZOOKEEPER
    assert mode_of(replace(silent, brokers={2: ZOOKEEPER, 3: KRAFT})) == Mode.KRAFT


def test_what_fails_in_part_is_a_problem_and_not_a_failure(cluster: Cluster, answers: Answers) -> None:
    fenced = [*brokers()[:2], Broker(3, "k3", 9092, None, fenced=True)]
    answers.described = ClusterDescription("kafka-id-1", 2, fenced, taken_at=0)
    answers.versions = ApiVersions({1: KRAFT}, {2: ItemError("no answer within 8 s")}, taken_at=0)
    answers.leader = QuorumUnavailable("The controllers have no majority.")
    job = outcome_of(cluster)
    assert job.state == JobState.DONE
    assert job.result is not None
    assert job.result["problems"] == [
        "Broker 2: no answer within 8 s",
        "Broker 3 at k3:9092 was not asked.",
        "Broker 3 is fenced: it takes part in nothing.",
        "The controller quorum could not be read: The controllers have no majority.",
    ]
    assert job.result["controller"] is None
    assert cluster.kafka_id == "kafka-id-1"


def test_another_cluster_behind_the_addresses_is_refused(cluster: Cluster, answers: Answers) -> None:
    Cluster.objects.update(kafka_id="kafka-id-0", mode=Mode.ZOOKEEPER)
    cluster.refresh_from_db()
    job = outcome_of(cluster)
    assert (job.state, job.result) == (JobState.FAILED, None)
    assert "answers the Kafka cluster kafka-id-1, and not kafka-id-0 as before" in job.error
    assert (cluster.kafka_id, cluster.mode) == ("kafka-id-0", Mode.ZOOKEEPER)
    assert not AuditEvent.objects.exists()


def test_no_answer_at_all_is_the_adapters_sentence(cluster: Cluster, answers: Answers) -> None:
    answers.described = Unreachable("No broker accepted a connection at 127.0.0.1:1; is the address right?")
    job = outcome_of(cluster)
    assert (job.state, job.error) == (JobState.FAILED, str(answers.described))
    assert cluster.kafka_id == ""


def test_a_closed_port_is_a_sentence_with_the_real_client(cluster: Cluster) -> None:
    job = outcome_of(cluster)
    assert job.state == JobState.FAILED
    assert "127.0.0.1:1" in job.error
    assert job.error.endswith(".")


def test_a_cluster_that_was_removed_meanwhile_takes_the_job_with_it(cluster: Cluster) -> None:
    job = enqueue(KIND, cluster=cluster)
    cluster.delete()
    attempt(job.pk)
    assert not Job.objects.filter(pk=job.pk).exists()
