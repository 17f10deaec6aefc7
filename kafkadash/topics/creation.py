"""The kind of change "topic-create": new topics with an assignment that is approved (CreateTopics 19, KIP-4).

Kafka in KRaft mode places partitions by rules of its own when it gets a number of partitions, so the whole assignment
is sent. An item is one topic. It is reached when a topic of its name has exactly its assignment and its configs, ready
when there is none of the name, and it does not fit where another topic has the name.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.db.models.functions import Coalesce

from kafkadash.changes.rights import NeededRight
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import join_items
from kafkadash.core.messages import CodedReason, choose_plural, coded
from kafkadash.core.racks import alternate_racks, racks_known
from kafkadash.kafka.api import ConfigResource, ItemChanged, NewTopic, TopicMetadata, WholeClient, read_named_topics
from kafkadash.kafka.config_values import UNCLEAN_ELECTION, is_same_value, may_elect_uncleanly
from kafkadash.monitoring.canary import rules as canary
from kafkadash.monitoring.freshness import UP
from kafkadash.monitoring.models import BrokerState, CollectorKind, TopicState
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import UNCLEAN_APPROVALS, Items, ItemWords, PlannedItems, ShortKind, doubt_refusals
from kafkadash.short_runs.plans import share_of_partitions
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState
from kafkadash.topic_rules.rules import RuledItem
from kafkadash.topics.errors import TopicCheckTitle, TopicErrorCode
from kafkadash.topics.names import metric_name
from kafkadash.topics.placement import BrokerLoad, format_assignment, place_evenly, place_partitions
from kafkadash.topics.reasons import BrokersAway, TopicExists, TopicNameCollides
from kafkadash.topics.requests import BATCH, send_in_parts

KIND = "topic-create"
TOPIC_ALREADY_EXISTS = 36
_PARTITIONS_SHOWN = 6


@dataclass(frozen=True, slots=True)
class PlacementBrokers:
    """Brokers that can take replicas: ``racks`` maps each to its rack, to '' where racks are not judged.

    ``lacking``: brokers without a rack while others have one; Kafka places nothing then (KIP-36, KIP-179).
    ``held``: broker to its replicas and to the partitions of which it has the first replica.
    """

    racks: Mapping[int, str]
    lacking: tuple[int, ...] = ()
    held: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def loads(self) -> dict[int, BrokerLoad]:
        return {broker: BrokerLoad(rack, *self.held[broker]) for broker, rack in self.racks.items()}


def load_brokers(cluster: Cluster) -> PlacementBrokers:
    """Return the brokers of a cluster that can take replicas, as stored. One query."""
    brokers = BrokerState.objects.filter(UP, cluster=cluster).order_by("broker_id")
    rows = list(brokers.values_list("broker_id", "rack", "replicas", Coalesce("preferred", "leaders")))
    named = {broker: rack for broker, rack, _, _ in rows}
    held = {broker: (replicas, led) for broker, _, replicas, led in rows}
    lacking = tuple(broker for broker, rack in named.items() if rack is None)
    if racks_known(named.values()):
        return PlacementBrokers({broker: rack or "" for broker, rack in named.items()}, held=held)
    return PlacementBrokers(dict.fromkeys(named, ""), lacking if len(lacking) < len(named) else (), held)


def plan_topics(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan new topics. One query.

    ``wanted``: ``names``, ``configs``, and either ``assignment``, or ``partitions`` and ``factor``. With ``start`` and
    ``shift``, they are placed as KIP-36 does, without these balanced by what brokers hold now. Both place the topics
    one after the other, as if they were one, so that their leaders are even.
    """
    names, configs = wanted["names"], wanted["configs"]
    if "assignment" in wanted:
        typed = {"replicas": wanted["assignment"], "configs": configs}
        return PlannedItems([PlannedItem(name, {"topic": name, **typed}) for name in names])
    brokers, partitions, factor = load_brokers(cluster), wanted["partitions"], wanted["factor"]
    many = len(brokers.racks)
    if brokers.lacking:
        return PlannedItems([], [coded(TopicErrorCode.RACK_MISSING, brokers=list(brokers.lacking))])
    if not 1 <= factor <= many:
        return PlannedItems([], [coded(TopicErrorCode.FACTOR_WRONG, brokers=many)])
    if "start" not in wanted:
        balanced = iter(place_evenly(brokers.loads, len(names) * partitions, factor))
        rows = {name: [list(row) for row in islice(balanced, partitions)] for name in names}
        return PlannedItems(
            [PlannedItem(name, {"topic": name, "replicas": rows[name], "configs": configs}) for name in names]
        )
    items = []
    for place, name in enumerate(names):
        turns, start = divmod(wanted["start"] + place * partitions, many)
        shift = wanted["shift"] + turns
        placed = place_partitions(brokers.racks, partitions, factor, start=start, shift=shift)
        content = {"topic": name, "replicas": [list(row) for row in placed], "configs": configs}
        items.append(PlannedItem(name, {**content, "start": start, "shift": shift}))
    return PlannedItems(items)


def plan_canary(cluster: Cluster) -> dict[str, Any]:
    """Return the input for the topic of the canary: each broker is the preferred leader of one partition. One query."""
    many = len(load_brokers(cluster).racks)
    placed = {"partitions": many, "factor": min(canary.MOST_FACTOR, many), "start": 0, "shift": 0}
    return {"names": [canary.TOPIC], "configs": dict(canary.CONFIGS), **placed}


def judge_creation(item: PlannedItem, topic: TopicMetadata | None, configs: Mapping[str, str | None]) -> ItemReading:
    """Compare an item with the topic of its name, None where there is none, and with that topic's configs."""
    if topic is None:
        return ItemReading(ReadingState.READY, found={"partitions": None})
    found = {"partitions": len(topic.partitions)}
    replicas = [list(each.replicas) for each in sorted(topic.partitions, key=lambda each: each.partition)]
    same = replicas == item.content["replicas"]
    if same and all(is_same_value(configs.get(key), value) for key, value in item.content["configs"].items()):
        return ItemReading(ReadingState.REACHED, found=found)
    return ItemReading(ReadingState.UNFIT, TopicExists(len(topic.partitions)), found)


def read_topics(_: Cluster, client: WholeClient, items: Items, deadline: float) -> Mapping[str, ItemReading]:
    """Read which topics exist with a Metadata request, and their configs with a second one. Raises KafkaFailure."""
    topics = read_named_topics(client, [item.subject for item in items], deadline=deadline / 2)
    configured = {item.subject for item in items if item.content["configs"]}
    asked = [ConfigResource.topic(name) for name, topic in topics.items() if topic and name in configured]
    keys = {key for item in items for key in item.content["configs"]}
    answered = client.describe_configs(asked, deadline=deadline / 2, keys=keys).resources if asked else {}
    configs = {
        resource.name: {key: entry.value for key, entry in entries.items()} for resource, entries in answered.items()
    }
    readings = {}
    for item in items:
        name = item.subject
        if name in topics and (topics[name] is None or name in configs or name not in configured):
            readings[name] = judge_creation(item, topics[name], configs.get(name, {}))
    return readings


def send_topics(client: WholeClient, items: Items, deadline: float) -> ItemChanged[str]:
    """Create topics with one CreateTopics request for each 10,000 partitions.

    A topic that exists already may be that of an earlier request whose answer was lost.
    """

    def send(part: Items, seconds: float) -> ItemChanged[str]:
        topics = [
            NewTopic(item.content["topic"], tuple(map(tuple, item.content["replicas"])), item.content["configs"])
            for item in part
        ]
        return client.create_topics(topics, deadline=seconds)

    return doubt_refusals(send_in_parts(items, deadline, send), TOPIC_ALREADY_EXISTS)


def find_faults(cluster: Cluster, items: Items) -> dict[str, CodedReason]:
    """Return why topics cannot be created, from stored rows. Two queries."""
    stored = dict(TopicState.objects.filter(cluster=cluster).values_list("name", "partition_count"))
    by_metric = {metric_name(name): name for name in stored}
    brokers = load_brokers(cluster).racks
    faults: dict[str, CodedReason] = {}
    for item in items:
        name = item.content["topic"]
        if name in stored:
            faults[item.subject] = TopicExists(stored[name])
        elif (other := by_metric.get(metric_name(name))) is not None:
            faults[item.subject] = TopicNameCollides(other)
        elif away := find_brokers_away(item, brokers):
            faults[item.subject] = BrokersAway(away)
    return faults


def find_brokers_away(item: PlannedItem, brokers: Container[int]) -> tuple[int, ...]:
    """Return the brokers of an item's assignment that are none of those which can take replicas."""
    return tuple(sorted({broker for row in item.content["replicas"] for broker in row if broker not in brokers}))


def find_risk(cluster: Cluster, items: Items) -> RiskFacts:
    """A new topic is empty: nothing is copied and no client is disturbed."""
    return RiskFacts(0.0, share_of_partitions(cluster, sum(len(item.content["replicas"]) for item in items)))


def list_ruled(items: Items) -> list[RuledItem]:
    """Return what the topic rules judge: names, replication factors and configs."""
    return [
        RuledItem(
            item.subject,
            new_topic=item.content["topic"],
            factor=len(item.content["replicas"][0]),
            configs=item.content["configs"],
        )
        for item in items
    ]


def describe_topic(item: PlannedItem, before: Mapping[str, Any] | None) -> ItemWords:
    content = item.content
    parts = [choose_plural("# partition|# partitions", len(content["replicas"])), *describe_placement(content)]
    parts += [f"{key}={value}" for key, value in sorted(content["configs"].items())]
    there = before.get("partitions") if before else None
    return ItemWords("none" if there is None else choose_plural("# partition|# partitions", there), "; ".join(parts))


def describe_placement(content: Mapping[str, Any]) -> list[str]:
    """Return the replication factor, the first assignments, and what Kafka would have drawn for them."""
    replicas: Sequence[Sequence[int]] = content["replicas"]
    shown = format_assignment(replicas[:_PARTITIONS_SHOWN]) + (",…" if len(replicas) > _PARTITIONS_SHOWN else "")
    drawn = [f"start {content['start']}, shift {content['shift']}"] if "start" in content else []
    return [f"RF {len(replicas[0])}", f"replicas {shown}", *drawn]


def describe_start(items: Items) -> list[str]:
    topics = choose_plural("# topic is|# topics are", len(items))
    partitions = choose_plural("# partition|# partitions", sum(len(item.content["replicas"]) for item in items))
    sentences = [f"{topics} created, with {partitions}. No existing topic changes."]
    if any("start" in item.content for item in items):
        sentences.append("Replicas are placed as KIP-36 does, by start, shift and the list of brokers.")
    if count_approvals(items) > 1:
        sentences.append("Kafka may elect leaders of new topics uncleanly, and lose acknowledged records then.")
    return sentences


def count_approvals(items: Items) -> int:
    """Return the fewest approvals: as many as an unclean election needs where Kafka may hold one by itself."""
    values = {item.content["configs"].get(UNCLEAN_ELECTION, "false") for item in items}
    return UNCLEAN_APPROVALS if any(may_elect_uncleanly(UNCLEAN_ELECTION, value) for value in values) else 1


def describe_brokers(racks: Mapping[int, str]) -> str:
    """Return the list that KIP-36 places by, such as "1 (a), 3 (b), 2 (a)"."""
    listed = alternate_racks(racks)
    return join_items([f"{broker} ({racks[broker]})" if racks[broker] else str(broker) for broker in listed])


def make_known() -> None:
    make_short_kind_known(
        ShortKind(
            name=KIND,
            label="Topic creation",
            noun="# topic|# topics",
            batch=BATCH,
            plan=plan_topics,
            read=read_topics,
            send=send_topics,
            facts=(CollectorKind.METADATA,),
            title=TopicCheckTitle.CREATION_FITS,
            find_faults=find_faults,
            risk=find_risk,
            rights=lambda _: [NeededRight("Create", or_on_topics=True)],
            approvals_of_items=count_approvals,
            ruled=list_ruled,
            words=describe_topic,
            start_words=describe_start,
            columns=("Topic", "Now", "Planned"),
        )
    )
