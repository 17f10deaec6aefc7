"""Topics that the product creates, enlarges and deletes on real Kafka, and what Kafka's own tools say of them."""

from __future__ import annotations

from kafkadash.accounts.models import User
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.models import TopicState
from kafkadash.short_runs.kinds import short_kind
from kafkadash.short_runs.models import ShortItem
from kafkadash.short_runs.plans import plan_items
from kafkadash.topic_rules.models import TopicRules
from kafkadash.topic_rules.reasons import RuleReasonCode
from kafkadash.topics.creation import KIND, load_brokers
from kafkadash.topics.deletion import KIND as DELETION
from kafkadash.topics.growth import KIND as GROWTH
from kafkadash.topics.placement import place_partitions
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.runs import READ
from tests.agreement.short_runs import DEADLINE_S, queue, step_until
from tests.agreement.tools import Tools
from tests.waiting import wait_until


def test_topics__are_as_approved(cluster: Cluster, refresh: Refresher, tools: Tools, operator: User) -> None:
    for kind in READ:
        refresh(kind)
    wanted = {
        "names": ["made-a", "made-b"],
        "partitions": 4,
        "factor": 3,
        "start": 2,
        "shift": 1,
        "configs": {
            "retention.ms": "3600000",
            "cleanup.policy": "compact, delete",
            "min.cleanable.dirty.ratio": "0.50",
            "preallocate": "FALSE",
        },
    }
    change = queue(cluster, KIND, wanted, operator)
    tools.run("topics", "--create", "--topic", "made-c", "--partitions", "1", "--replication-factor", "1")
    run = step_until(change, RequestState.DONE)
    assert run is not None
    assert (run.outcome, run.counts) == ("clean", {"done": 2})
    told = tools.topics()
    brokers = load_brokers(cluster)
    placed = place_partitions(brokers.racks, 4, 3, start=2, shift=1)
    assert [tuple(p.replicas) for _, p in sorted(told["made-a"].partitions.items())] == list(placed)
    for row in ShortItem.objects.filter(run=run):
        partitions = told[row.subject].partitions
        assert [list(partitions[number].replicas) for number in sorted(partitions)] == row.content["replicas"]
        configs = tools.run("configs", "--describe", "--entity-type", "topics", "--entity-name", row.subject)
        assert "retention.ms=3600000" in configs
        assert "cleanup.policy=compact,delete" in configs.replace(", delete", ",delete")
    tools.run("topics", "--delete", "--topic", "made-.*")


def test_topics__of_which_kafka_refuses_one__the_other_is_created(
    cluster: Cluster, refresh: Refresher, tools: Tools, operator: User
) -> None:
    for kind in READ:
        refresh(kind)
    wanted = {"names": ["made-d"], "assignment": [[1, 2]], "configs": {"retention.ms": "soon"}}
    run = step_until(queue(cluster, KIND, wanted, operator), RequestState.DONE)
    assert run is not None
    assert (run.outcome, run.counts) == ("exceptions", {"refused": 1})
    assert "made-d" not in tools.topic_names()


def test_topics__that_break_a_topic_rule__are_not_created(
    cluster: Cluster, refresh: Refresher, tools: Tools, operator: User
) -> None:
    for kind in READ:
        refresh(kind)
    bounds = {"retention.ms": [3_600_000, 2_592_000_000]}
    rules = TopicRules.objects.create(
        cluster=cluster, name_pattern="made-[a-z]", factor_least=2, min_isr_least=2, bounds=bounds
    )
    wanted = {"names": ["made-r", "Made"], "assignment": [[1, 2]], "configs": {"retention.ms": "3600000"}}
    left_out = [note.params["why"].code for note in plan_items(short_kind(KIND), cluster, wanted).left_out]
    assert left_out == [RuleReasonCode.INHERITED, RuleReasonCode.NAME], "the brokers' default is 1 replica in sync"
    wanted["configs"] = {"min.insync.replicas": "2", "retention.ms": "3600000"}
    run = step_until(queue(cluster, KIND, wanted, operator), RequestState.DONE)
    assert run is not None
    assert (run.outcome, run.counts) == ("clean", {"done": 1})
    late = queue(cluster, KIND, {**wanted, "names": ["made-s"]}, operator)
    rules.factor_least = 3
    rules.save()
    assert step_until(late, RequestState.STALE) is None
    assert {"made-r", "made-s", "Made"} & {*tools.topics()} == {"made-r"}
    tools.run("topics", "--delete", "--topic", "made-r")
    rules.delete()


def test_partitions__are_added_as_approved(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, operator: User
) -> None:
    topic = make_topic([[2, 1]])
    for kind in READ:
        refresh(kind)
    run = step_until(queue(cluster, GROWTH, {"topic": topic, "count": 4}, operator), RequestState.DONE)
    assert run is not None
    assert (run.outcome, run.counts) == ("clean", {"done": 1})
    told = tools.topics("--topic", topic)[topic].partitions
    [item] = ShortItem.objects.filter(run=run)
    assert [list(told[number].replicas) for number in sorted(told)] == [[2, 1], *item.content["replicas"]]


def test_partitions__kafkas_tool_was_quicker__turns_stale(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, operator: User
) -> None:
    topic = make_topic([[2, 1]])
    for kind in READ:
        refresh(kind)
    change = queue(cluster, GROWTH, {"topic": topic, "count": 4}, operator)
    tools.run("topics", "--alter", "--topic", topic, "--partitions", "2")
    wait_until(lambda: len(tools.topics("--topic", topic)[topic].partitions) == 2, "brokers tell it", DEADLINE_S)
    assert step_until(change, RequestState.STALE) is None
    assert len(tools.topics("--topic", topic)[topic].partitions) == 2


def test_topic__is_deleted__and_one_created_again_stays(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools, operator: User
) -> None:
    topics = [make_topic([[1, 2]]), make_topic([[2, 1]])]
    for kind in READ:
        refresh(kind)
    stored = TopicState.objects.filter(cluster=cluster, name__in=topics)
    ids = dict(stored.values_list("name", "topic_id"))
    run = step_until(queue(cluster, DELETION, {"topic_ids": [ids[topics[0]]]}, operator), RequestState.DONE)
    assert run is not None
    assert (run.outcome, run.counts) == ("clean", {"done": 1})
    assert topics[0] not in tools.topic_names()

    change = queue(cluster, DELETION, {"topic_ids": [ids[topics[1]]]}, operator)
    tools.run("topics", "--delete", "--topic", topics[1])
    wait_until(lambda: topics[1] not in tools.topic_names(), "it is deleted", DEADLINE_S)
    wait_until(lambda: _is_created(tools, topics[1]), "its name is free again", DEADLINE_S)
    wait_until(lambda: topics[1] in tools.topic_names(), "it is there again", DEADLINE_S)
    assert step_until(change, RequestState.STALE) is None
    assert topics[1] in tools.topic_names()
    # Some brokers still tell the configs of the topic that had the name before; other tests compare what is told.
    tools.run("topics", "--delete", "--topic", topics[1])


def _is_created(tools: Tools, topic: str) -> bool:
    """Beside ZooKeeper a name is refused until the controller has removed the topic that had it."""
    try:
        tools.run("topics", "--create", "--topic", topic, "--partitions", "1", "--replication-factor", "1")
    except AssertionError:
        return False
    return True
