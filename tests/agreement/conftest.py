"""A registered cluster behind which real Kafka answers, and Kafka's own tools to ask the same things."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, ClusterMode, Role
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from kafkadash.execution.engine import throttle_ledger as ledger
from kafkadash.execution.models import Execution
from kafkadash.execution.worker import throttle_ledger as throttle_reads
from kafkadash.kafka.connect import close_all
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring import collection
from kafkadash.monitoring.models import CollectorKind, CollectorRun
from tests.agreement.runs import Requests
from tests.agreement.tools import Tools
from tests.kafka_configs import alter
from tests.kafka_releases import has_quorum
from tests.waiting import wait_until

_names = itertools.count(1)
UNTHROTTLED = 1_000_000_000  # bytes per second

Refresher = Callable[[CollectorKind], collection.RefreshOutcome]
TopicMaker = Callable[..., str]


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups, also where only this folder is asked for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder ask the session's one real cluster, and store what it says."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for mark in (pytest.mark.kafka, pytest.mark.xdist_group("kraft"), pytest.mark.django_db):
                item.add_marker(mark)


@pytest.fixture(autouse=True)
def brokers_show_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """These brokers show a change within a second: nobody waits six for that, nor ten for what others did."""
    monkeypatch.setattr(ledger, "SHOWS_LATE", timedelta(seconds=2))
    monkeypatch.setattr(throttle_reads, "EVERY", timedelta(seconds=2))


@pytest.fixture
def late_calls_come_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that hung for a test does what it was sent as soon as it goes on: no minute is waited for that."""
    monkeypatch.setattr(ledger, "UNANSWERED", timedelta(seconds=4))


@pytest.fixture
def tools(playground: KafkaPlayground) -> Iterator[Tools]:
    """No broker keeps a rate for the tests that follow, also where a topic was deleted in the middle of its move."""
    tools = Tools(playground)
    yield tools
    for node in playground.status():
        if node.broker_port is not None and node.pid is not None:
            for _, name in tools.throttles(node.node_id):
                alter(playground, node.node_id, **{name: None})


@pytest.fixture
def cluster(db: None, playground: KafkaPlayground) -> Iterator[Cluster]:
    """The session's real cluster, registered, with nothing collected yet."""
    cluster = Cluster.objects.create(
        name="Real",
        slug="real",
        bootstrap_servers=playground.bootstrap,
        zookeeper=playground.cluster.zookeeper,
        mode=ClusterMode.KRAFT if has_quorum() else ClusterMode.ZOOKEEPER,
    )
    collection.ensure_runs()
    yield cluster
    close_all()


@pytest.fixture
def refresh(cluster: Cluster) -> Refresher:
    """Collects one kind now; fails with the collector's sentence where Kafka did not answer.

    With ZooKeeper there is no quorum to read, and the collector says so.
    """

    def collect(kind: CollectorKind) -> collection.RefreshOutcome:
        run = CollectorRun.objects.get(cluster=cluster, kind=kind)
        result = collection.refresh(run.pk, only_if_due=False)
        assert result is not None
        if kind is CollectorKind.QUORUM and not has_quorum():
            assert result.error is not None
            assert result.error.code == KafkaErrorCode.NO_QUORUM_TO_DESCRIBE
        else:
            assert not result.error, result.error
        return result

    return collect


@pytest.fixture
def make_topic(playground: KafkaPlayground) -> TopicMaker:
    """``make_topic([[1, 2]], mib=4)``: a topic of this test alone, filled on all replicas; returns its name."""

    def make(placement: Sequence[Sequence[int]], mib: float = 0) -> str:
        name = f"agreement-{next(_names)}"
        load_topics(playground.bootstrap, [LoadTopic(name, placement=placement, fill_bytes=int(mib * 1024 * 1024))])
        if not has_quorum():
            tools = Tools(playground)
            wait_until(lambda: tools.replicas(name) == tuple(placement[0]), f"every broker knows {name}", 30)
        return name

    return make


@dataclass
class Mover:
    """Moves partition 0 of topics with Kafka's own kafka-reassign-partitions."""

    tools: Tools
    folder: Path
    _plans: dict[str, Path] = field(default_factory=dict)

    def start(self, topic: str, replicas: Sequence[int], *, throttle: int, beside: bool = False) -> None:
        """To these replicas, at ``throttle`` bytes per second; ``beside`` moves that are under way."""
        plan = self._plans[topic] = self.folder / f"{topic}.json"
        row = {"topic": topic, "partition": 0, "replicas": list(replicas)}
        plan.write_text(json.dumps({"version": 1, "partitions": [row]}), encoding="utf-8")
        if not has_quorum():
            self._brake(topic, {*replicas, *self.tools.replicas(topic)}, throttle)
        self._tool(topic, "--execute", *(["--additional"] if beside else []), "--throttle", str(throttle))

    def _brake(self, topic: str, brokers: Collection[int], rate: int) -> None:
        """Throttle the move before it begins: with ZooKeeper a broker may copy much before it hears of its throttle.

        Brokers describe a topic's configs from ZooKeeper, but their own rates as they have applied them, and they
        apply changes in order. A broker that tells the new rate has therefore applied the topic's configs too.
        """
        self.tools.set_config(
            topic, leader_replication_throttled_replicas="*", follower_replication_throttled_replicas="*"
        )
        # Unlike any rate that a move before has left, so that no broker tells it from before.
        own = str(rate + len(self._plans))
        for broker in brokers:
            self.tools.set_config(
                broker, leader_replication_throttled_rate=own, follower_replication_throttled_rate=own
            )

    def let_go(self, topic: str) -> None:
        """Lift the throttle, so that the move ends soon."""
        self._tool(topic, "--execute", "--additional", "--throttle", str(UNTHROTTLED))

    def cancel(self, topic: str) -> None:
        """Also takes the throttles away; of a move that is over, only these."""
        self._tool(topic, "--cancel")
        del self._plans[topic]

    def forget(self, topic: str) -> None:
        """The topic is deleted, so nothing of its move is left."""
        del self._plans[topic]

    def end_all(self) -> None:
        for topic in list(self._plans):
            self.cancel(topic)

    def _tool(self, topic: str, *options: str) -> None:
        self.tools.run("reassign", "--reassignment-json-file", str(self._plans[topic]), *options)


@pytest.fixture
def mover(tools: Tools, tmp_path: Path) -> Iterator[Mover]:
    mover = Mover(tools, tmp_path)
    try:
        yield mover
    finally:
        mover.end_all()


@pytest.fixture
def requests(
    cluster: Cluster, refresh: Refresher, make_user: Callable[..., User], tools: Tools, tmp_path: Path
) -> Iterator[Requests]:
    """Alice proposes and runs, bob approves; a run that a failed test left in the middle is ended with Kafka's tool."""
    yield Requests(cluster, refresh, make_user("alice", Role.OPERATOR), make_user("bob", Role.APPROVER))
    if not Execution.objects.filter(cluster=cluster, active=True).exists():
        return
    left = [
        {"topic": move.topic, "partition": move.partition, "replicas": list(move.replicas)} for move in tools.moves()
    ]
    file = tmp_path / "left.json"
    file.write_text(json.dumps({"version": 1, "partitions": left}), encoding="utf-8")
    tools.run("reassign", "--reassignment-json-file", str(file), "--cancel" if left else "--verify")


@pytest.fixture
def alices_client(requests: Requests, client_of: Callable[[User], Client]) -> Client:
    return client_of(requests.alice)
