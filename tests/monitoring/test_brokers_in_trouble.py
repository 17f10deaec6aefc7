"""Collectors against brokers over TCP that are killed or stand still while they are asked, or that refuse."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import Settings

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.core.failures import FailureKind
from kafkadash.kafka.connect import close_all
from kafkadash.monitoring import collection
from kafkadash.monitoring.models import (
    ON_REQUEST,
    BrokerState,
    BrokerWeights,
    ClusterState,
    Collection,
    CollectorKind,
    CollectorRun,
    ReassignmentSnapshot,
    ThrottleState,
    TopicState,
)
from tests.contract.fake_answers import (
    API_VERSIONS,
    DESCRIBE_CONFIGS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_QUORUM,
    LIST_OFFSETS,
    LIST_REASSIGNMENTS,
    METADATA,
)
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_model import ClusterModel

pytestmark = pytest.mark.django_db

COLLECTED = [kind for kind in CollectorKind if kind not in ON_REQUEST]
DEADLINE_S = 1.5
# Questions of one refresh: to any broker and to each, one after the other.
MOST_QUESTIONS = 4
ASKED_OF_EACH = {
    CollectorKind.LOG_DIRS: DESCRIBE_LOG_DIRS,
    CollectorKind.CONFIGS: DESCRIBE_CONFIGS,
    CollectorKind.VERSIONS: API_VERSIONS,
}
Refresher = Callable[[CollectorKind], Collection]


@pytest.fixture
def fake(settings: Settings) -> Iterator[FakeKafka]:
    settings.KAFKA_DEADLINE = DEADLINE_S
    with FakeKafka(ClusterModel(3, racks=("a", "b", "c"))) as kafka:
        kafka.model.add_topic("orders", [[1, 2], [2, 3], [3, 1]], records=1000)
        yield kafka


@pytest.fixture
def refresh(fake: FakeKafka, db: None) -> Iterator[Refresher]:
    """Collects one kind; returns what was noted about it, and fails when it took longer than its deadlines."""
    cluster = Cluster.objects.create(name="fake", slug="fake", bootstrap_servers=",".join(fake.bootstrap_servers))
    collection.ensure_runs()

    def run(kind: CollectorKind) -> Collection:
        run_id = CollectorRun.objects.get(cluster=cluster, kind=kind).pk
        began = time.monotonic()
        result = collection.refresh(run_id, only_if_due=False)
        assert time.monotonic() - began < MOST_QUESTIONS * (DEADLINE_S + 0.5)
        assert result is not None
        return Collection.objects.latest("pk")

    yield run
    close_all()


@pytest.mark.parametrize("kind", ASKED_OF_EACH)
def test_broker_stands_still__costs_its_own_figures_alone(
    kind: CollectorKind, fake: FakeKafka, refresh: Refresher
) -> None:
    refresh(CollectorKind.METADATA)
    whole = refresh(kind)
    fake.freeze(2)
    try:
        partial = refresh(kind)
    finally:
        fake.thaw(2)
    assert (partial.ok, partial.not_answered) == (True, [2])
    assert len(partial.errors) == 1
    assert partial.rows is not None
    assert whole.rows is not None
    assert 0 < partial.rows < whole.rows


@pytest.mark.parametrize("kind", [CollectorKind.LOG_DIRS, CollectorKind.CONFIGS])
def test_broker_is_killed_while_it_is_asked__costs_its_own_figures_alone(
    kind: CollectorKind, fake: FakeKafka, refresh: Refresher
) -> None:
    fake.model.set_config(2, "leader.replication.throttled.rate", "1000")
    refresh(CollectorKind.METADATA)
    refresh(kind)
    fake.dies_on[2] = ASKED_OF_EACH[kind]
    noted = refresh(kind)
    assert (noted.ok, noted.not_answered) == (True, [2])
    if kind is CollectorKind.CONFIGS:
        assert ThrottleState.objects.get().value == "1000"
        assert TopicState.objects.get().min_isr == 1
    else:
        taken = dict(BrokerWeights.objects.values_list("broker_id", "taken_at"))
        assert taken[2] < taken[1] == taken[3]


def test_broker_is_killed_while_it_is_asked_for_metadata__another_one_answers(
    fake: FakeKafka, refresh: Refresher
) -> None:
    refresh(CollectorKind.METADATA)
    for broker in (1, 2):
        fake.dies_on[broker] = METADATA
    for _ in range(4):
        assert refresh(CollectorKind.METADATA).ok
    assert ClusterState.objects.get().partitions == 3


def test_destination_is_killed_while_it_is_asked__progress_is_unknown_and_not_zero(
    fake: FakeKafka, refresh: Refresher
) -> None:
    fake.model.reassign("orders", 0, [3, 2])
    fake.model.fetch("orders", 0, 3, 500)
    refresh(CollectorKind.REASSIGNMENTS)
    assert ReassignmentSnapshot.objects.get().percent == pytest.approx(50.0)
    fake.dies_on[3] = LIST_OFFSETS
    noted = refresh(CollectorKind.REASSIGNMENTS)
    row = ReassignmentSnapshot.objects.get()
    assert (noted.ok, noted.not_answered, row.percent, row.outcome) == (True, [3], None, "running")


def test_every_broker_stands_still__nothing_is_stored_and_what_was_known_stays(
    fake: FakeKafka, refresh: Refresher
) -> None:
    for kind in (CollectorKind.METADATA, CollectorKind.CONFIGS, CollectorKind.LOG_DIRS):
        refresh(kind)
    before = list(TopicState.objects.values())
    for broker in (1, 2, 3):
        fake.freeze(broker)
    try:
        for kind in (CollectorKind.METADATA, CollectorKind.CONFIGS, CollectorKind.LOG_DIRS):
            noted = refresh(kind)
            assert (noted.ok, noted.taken_at, noted.rows) == (False, None, None)
            assert len(noted.errors) == 1
    finally:
        for broker in (1, 2, 3):
            fake.thaw(broker)
    assert list(TopicState.objects.values()) == before


@pytest.mark.parametrize(
    ("kind", "permission"),
    [
        (CollectorKind.LOG_DIRS, "Describe on the cluster"),
        (CollectorKind.CONFIGS, "DescribeConfigs on the cluster"),
        (CollectorKind.CONFIGS, "DescribeConfigs on the topic"),
        (CollectorKind.REASSIGNMENTS, "Describe on the cluster"),
        (CollectorKind.QUORUM, "Describe on the cluster"),
    ],
)
def test_principal_lacks_a_permission__the_kind_says_which_and_the_others_are_collected(
    kind: CollectorKind, permission: str, fake: FakeKafka, refresh: Refresher
) -> None:
    for each in COLLECTED:
        refresh(each)
    fake.denied = {DESCRIBE_LOG_DIRS, DESCRIBE_CONFIGS, LIST_REASSIGNMENTS, DESCRIBE_QUORUM}
    noted = refresh(kind)
    assert (noted.ok, noted.not_answered) == (False, [])
    assert permission in " ".join(map(str, noted.messages))
    run = CollectorRun.objects.get(kind=kind)
    assert (run.last_failure, run.succeeded_at is not None) == (FailureKind.NOT_AUTHORIZED, True)
    assert refresh(CollectorKind.METADATA).ok
    assert refresh(CollectorKind.VERSIONS).ok


def test_cluster_without_topics__is_collected_whole(fake: FakeKafka, refresh: Refresher) -> None:
    fake.model.delete_topic("orders")
    for kind in COLLECTED:
        noted = refresh(kind)
        assert (noted.ok, noted.errors, noted.not_answered) == (True, [], []), kind
    assert (ClusterState.objects.get().topics, ClusterState.objects.get().under_min_isr) == (0, 0)


def test_longest_topic_name_and_odd_rack__are_stored_as_kafka_tells_them(fake: FakeKafka, refresh: Refresher) -> None:
    name = "a." * 124 + "z"
    fake.model.add_topic(name, [[1, 2]], records=5)
    fake.model.brokers[1].rack = "Halle 7, Regal «ä» ☃"
    fake.model.set_config(name, "leader.replication.throttled.replicas", "0:1")
    for kind in COLLECTED:
        noted = refresh(kind)
        assert (noted.ok, noted.errors) == (True, []), kind
    assert TopicState.objects.filter(name=name, size_bytes=10_000).exists()
    assert BrokerState.objects.get(broker_id=1).rack == "Halle 7, Regal «ä» ☃"
    assert ThrottleState.objects.get().name == name


def test_broker_is_killed__is_silent_at_once_and_metadata_is_due(fake: FakeKafka, refresh: Refresher) -> None:
    for kind in (CollectorKind.METADATA, CollectorKind.ANSWERS):
        refresh(kind)
    assert not BrokerState.objects.filter(silent_since__isnull=False).exists()
    fake.kill(2)
    began = time.monotonic()
    noted = refresh(CollectorKind.ANSWERS)
    assert time.monotonic() - began < DEADLINE_S, "a refused connection is not waited for"
    assert (noted.ok, noted.not_answered) == (True, [2])
    assert list(BrokerState.objects.filter(silent_since__isnull=False).values_list("broker_id", flat=True)) == [2]
    metadata = CollectorRun.objects.get(kind=CollectorKind.METADATA)
    assert metadata.attempted_at is not None
    assert metadata.next_at - metadata.attempted_at < timedelta(seconds=metadata.interval_s / 2)


def test_broker_stands_still__is_silent_after_two_tries_and_answers_again(fake: FakeKafka, refresh: Refresher) -> None:
    refresh(CollectorKind.METADATA)
    fake.freeze(2)
    try:
        assert refresh(CollectorKind.ANSWERS).not_answered == [2]
    finally:
        fake.thaw(2)
    assert BrokerState.objects.get(broker_id=2).silent_since is not None
    refresh(CollectorKind.ANSWERS)
    assert BrokerState.objects.get(broker_id=2).silent_since is None


def test_a_thousand_brokers_that_are_not_registered__are_replicas_that_are_away(
    fake: FakeKafka, refresh: Refresher, viewer: User, client_of: Callable[[User], Client]
) -> None:
    """As a broken answer would name them: each kind is read all the same, and pages count what is not there."""
    lost = fake.model.add_topic("lost", [[1, 2]] * 1000)
    for partition in lost.partitions:
        partition.order = [1, 10_000 + partition.index]
        partition.isr = [1]

    assert all(
        refresh(kind).ok
        for kind in (
            CollectorKind.METADATA,
            CollectorKind.CONFIGS,
            CollectorKind.LOG_DIRS,
            CollectorKind.ANSWERS,
            CollectorKind.QUORUM,
        )
    )

    state = ClusterState.objects.get()
    assert (state.brokers, state.partitions, state.under_replicated) == (3, 1003, 1000)
    client = client_of(viewer)
    for path in ("", "brokers/", "topics/", "topics/lost/", "racks/", "drill/", "drill/?broker=1"):
        assert client.get(f"/clusters/fake/{path}").status_code == 200, path
