"""Elections of the product on real Kafka, and what Kafka's own tools say of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.elections.kind import KIND, plan_elections
from kafkadash.kafka.api import TopicPartition
from kafkadash.kafka.connect import admin_for
from kafkadash.monitoring.models import CollectorKind
from kafkadash.short_runs.change_kind import plan_draft
from kafkadash.short_runs.models import ShortRun
from kafkadash.short_runs.worker import step_once
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.waiting import wait_until

DEADLINE_S = 60.0


@pytest.fixture
def misled(cluster: Cluster, make_topic: TopicMaker, tools: Tools) -> Callable[[], str]:
    """Make a topic whose replicas were reordered since: broker 1 leads both, 2 and 3 are preferred."""

    def make() -> str:
        topic = make_topic([[1, 2, 3], [1, 3, 2]])
        targets = {TopicPartition(topic, 0): (2, 1, 3), TopicPartition(topic, 1): (3, 1, 2)}
        changed = admin_for(cluster.connection()).alter_reassignments(targets, deadline=10, keep_factor=True)
        assert changed.done == set(targets)
        wait_until(lambda: replicas(tools, topic) == {0: (2, 1, 3), 1: (3, 1, 2)}, "brokers tell the order", DEADLINE_S)
        assert leaders(tools, topic) == {0: 1, 1: 1}
        return topic

    return make


def leaders(tools: Tools, topic: str) -> Mapping[int, int | None]:
    return {number: p.leader for number, p in tools.topics("--topic", topic)[topic].partitions.items()}


def replicas(tools: Tools, topic: str) -> Mapping[int, tuple[int, ...]]:
    return {number: tuple(p.replicas) for number, p in tools.topics("--topic", topic)[topic].partitions.items()}


def queue(cluster: Cluster, topic: str, operator: User) -> ChangeRequest:
    draft = services.create_draft(cluster, KIND, operator, title="Elect", input={"topic": topic}, options={})
    planned = plan_draft(draft)
    services.submit(planned, operator, why="Leaders are skewed.", version=planned.version)
    expires = datetime.now(UTC) + timedelta(hours=1)
    ChangeRequest.objects.filter(pk=draft.pk).update(
        state=RequestState.APPROVED, approvals_needed=0, expires_at=expires
    )
    return services.start(ChangeRequest.objects.get(pk=draft.pk), operator, "Now.")


def step_to_end(change: ChangeRequest) -> ShortRun:
    def ended() -> bool:
        ShortRun.objects.filter(request=change).update(next_at=Now())
        step_once(ShortRun.objects.get(request=change).pk)
        change.refresh_from_db()
        return change.state in (RequestState.DONE, RequestState.FAILED)

    wait_until(ended, f"#{change.pk} has ended", DEADLINE_S)
    return ShortRun.objects.get(request=change)


def test_election__leads_as_kafkas_tools_say(
    cluster: Cluster, refresh: Refresher, tools: Tools, operator: User, misled: Callable[[], str]
) -> None:
    topic = misled()
    for kind in (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS, CollectorKind.QUORUM, CollectorKind.LOG_DIRS):
        refresh(kind)
    cluster.refresh_from_db()
    run = step_to_end(queue(cluster, topic, operator))
    assert (run.outcome, run.counts) == ("clean", {"done": 2})
    assert dict(run.rows.values_list("subject", "before")) == {f"{topic}-{n}": {"leader": 1} for n in (0, 1)}
    assert leaders(tools, topic) == {0: 2, 1: 3}
    refresh(CollectorKind.METADATA)
    assert plan_elections(cluster, {"topic": topic}).items == []


def test_election__kafkas_tool_was_quicker__sends_nothing(
    cluster: Cluster, refresh: Refresher, tools: Tools, operator: User, misled: Callable[[], str]
) -> None:
    topic = misled()
    for kind in (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS, CollectorKind.QUORUM, CollectorKind.LOG_DIRS):
        refresh(kind)
    cluster.refresh_from_db()
    change = queue(cluster, topic, operator)
    tools.run("leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "0")
    wait_until(lambda: leaders(tools, topic) == {0: 2, 1: 1}, "the tool's election is seen", DEADLINE_S)
    run = step_to_end(change)
    assert dict(run.rows.values_list("subject", "state")) == {f"{topic}-0": "unchanged", f"{topic}-1": "done"}
    assert leaders(tools, topic) == {0: 2, 1: 3}


def test_election__of_a_topic_made_again__turns_stale(
    cluster: Cluster,
    refresh: Refresher,
    tools: Tools,
    operator: User,
    misled: Callable[[], str],
) -> None:
    topic = misled()
    for kind in (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS, CollectorKind.QUORUM, CollectorKind.LOG_DIRS):
        refresh(kind)
    cluster.refresh_from_db()
    change = queue(cluster, topic, operator)
    tools.run("topics", "--delete", "--topic", topic)
    wait_until(lambda: topic not in tools.topics(), "the topic is deleted", DEADLINE_S)

    def turned_stale() -> bool:
        run = ShortRun.objects.filter(request=change).first()
        if run is not None:
            ShortRun.objects.filter(pk=run.pk).update(next_at=Now())
            step_once(run.pk)
        change.refresh_from_db()
        return change.state == RequestState.STALE

    wait_until(turned_stale, f"#{change.pk} is stale", DEADLINE_S)
