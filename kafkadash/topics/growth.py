"""The kind of change "topic-grow": topics get more partitions (CreatePartitions 37, KIP-4 and KIP-179).

An item is one topic. The whole assignment of the new partitions is sent, placed as KIP-36 continues a topic, or as it
was typed. It is reached when the topic has exactly these partitions, ready when it has as many as the plan found, and
it does not fit where it has another number, another replication factor, or is another topic of the same name. Kafka
never takes partitions away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from kafkadash.changes.rights import NeededRight, name_subjects
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, CodedReason, PlainReason, choose_plural, coded
from kafkadash.core.racks import alternate_racks
from kafkadash.kafka.api import ItemChanged, NewPartitions, TopicMetadata, WholeClient, read_named_topics
from kafkadash.monitoring.canary import rules as canary
from kafkadash.monitoring.models import CollectorKind, MoveOutcome, ReassignmentSnapshot, TopicState
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import Items, ItemWords, PlannedItems, ShortKind, doubt_refusals
from kafkadash.short_runs.plans import share_of_partitions
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState
from kafkadash.topics.creation import PlacementBrokers, describe_placement, find_brokers_away, load_brokers
from kafkadash.topics.errors import TopicCheckTitle, TopicErrorCode
from kafkadash.topics.placement import MOST_PARTITIONS, place_partitions
from kafkadash.topics.reasons import BrokersAway, FactorDiffers, PartitionsChanged, TopicReasonCode
from kafkadash.topics.requests import BATCH, send_in_parts

KIND = "topic-grow"
INVALID_PARTITIONS = 37


def plan_growth(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan new partitions of ``topic``, or of each of ``topics``, so that it has ``count``. Two queries.

    ``factor``: the one that the topics will have when the partitions are added, where it is not the present one.
    ``replicas``: a typed assignment of the new partitions of a single topic, the last one for partition ``count`` - 1.
    """
    names = wanted.get("topics") or [wanted["topic"]]
    rows = TopicState.objects.filter(cluster=cluster, name__in=names, internal=False, format=1)
    newest = {row.name: row for row in rows.order_by("changed_at")}
    brokers = load_brokers(cluster)
    growing = [topic for _, topic in sorted(newest.items()) if topic.partition_count < wanted["count"]]
    planned = [_plan_topic(topic, brokers, wanted) for topic in growing]
    left_out = [each for each in planned if isinstance(each, CodedMessage)]
    return PlannedItems([each for each in planned if isinstance(each, PlannedItem)], left_out)


def plan_canary_growth(cluster: Cluster) -> dict[str, Any] | None:
    """Return the input for a partition of the canary's topic for each broker that prefers to lead none. Two queries.

    None where each broker has one, and where no partition can be added. Other replicas are the next brokers of the list
    by which KIP-36 places, in racks that hold as few as possible.
    """
    rows = TopicState.objects.filter(cluster=cluster, name=canary.TOPIC, format=1)
    topic, racks = rows.order_by("-changed_at").first(), load_brokers(cluster).racks
    if topic is None or not topic.partitions:
        return None
    lacking = canary.find_unled((row[3] for row in topic.partitions), racks)
    factor = len(topic.partitions[0][3])
    if not lacking or factor > len(racks):
        return None
    replicas = [_place_behind(broker, racks, factor) for broker in lacking]
    return {"topic": topic.name, "count": topic.partition_count + len(lacking), "replicas": replicas}


def _place_behind(leader: int, racks: Mapping[int, str], factor: int) -> list[int]:
    order = alternate_racks(racks)
    others = [*order[order.index(leader) + 1 :], *order[: order.index(leader)]]
    placed = [leader]
    while len(placed) < factor:
        held = Counter(racks[broker] for broker in placed)
        placed.append(min(others, key=lambda broker: held[racks[broker]]))
        others.remove(placed[-1])
    return placed


def _plan_topic(topic: TopicState, brokers: PlacementBrokers, wanted: Mapping[str, Any]) -> PlannedItem | CodedMessage:
    """Plan the new partitions of a topic, or return why they cannot be.

    Start and shift are the place, among the brokers by id, of the first replica of partition 0 or of the next broker:
    with these Kafka continued a topic when it placed by KIP-36 (class AdminZkClient, addPartitions).
    """
    first, count = topic.partition_count, wanted["count"]
    if count > first + MOST_PARTITIONS:
        limits = {"least": first + 1, "most": first + MOST_PARTITIONS, "partitions": first}
        return coded(TopicErrorCode.COUNT_WRONG, **limits)
    content = {"topic": topic.name, "topic_id": topic.topic_id, "first": first}
    if "replicas" in wanted:
        rows = wanted["replicas"][first - count :]  # the topic may have grown since they were typed
        if len(rows) < count - first:
            return coded(TopicErrorCode.COUNT_WRONG, least=first + 1, most=first + len(rows), partitions=first)
        return PlannedItem(topic.name, {**content, "replicas": rows})
    if brokers.lacking:
        return coded(TopicErrorCode.RACK_MISSING, brokers=list(brokers.lacking))
    replicas = topic.partitions[0][3]
    factor = wanted.get("factor") or len(replicas)
    if factor > len(brokers.racks):
        return coded(TopicErrorCode.FACTOR_WRONG, brokers=len(brokers.racks))
    start = next((place for place, broker in enumerate(sorted(brokers.racks)) if broker >= replicas[0]), 0)
    placed = place_partitions(brokers.racks, count - first, factor, start=start, shift=start, first=first)
    content |= {"start": start, "shift": start, "replicas": [list(row) for row in placed]}
    return PlannedItem(topic.name, content)


def judge_growth(item: PlannedItem, topic: TopicMetadata | None) -> ItemReading:
    """Compare an item with the topic of its name, None where there is none."""
    wanted = item.content
    if topic is None:
        return ItemReading(ReadingState.UNFIT, PlainReason(TopicReasonCode.GONE))
    found = {"partitions": len(topic.partitions)}
    if topic.topic_id != wanted["topic_id"]:
        return ItemReading(ReadingState.UNFIT, PlainReason(TopicReasonCode.RECREATED), found)
    ordered = sorted(topic.partitions, key=lambda each: each.partition)
    if len(topic.partitions) == wanted["first"]:
        if differs := find_other_factor(item, len(ordered[0].replicas)):
            return ItemReading(ReadingState.UNFIT, differs, found)
        return ItemReading(ReadingState.READY, found=found)
    if [list(each.replicas) for each in ordered[wanted["first"] :]] == wanted["replicas"]:
        return ItemReading(ReadingState.REACHED, found=found)
    return ItemReading(ReadingState.UNFIT, PartitionsChanged(len(topic.partitions), wanted["first"]), found)


def find_other_factor(item: PlannedItem, replicas: int) -> FactorDiffers | None:
    """Return that the new partitions have another number of replicas than partition 0, which Kafka refuses."""
    planned = len(item.content["replicas"][0])
    return FactorDiffers(replicas, planned) if replicas != planned else None


def read_growth(_: Cluster, client: WholeClient, items: Items, deadline: float) -> Mapping[str, ItemReading]:
    """Read how many partitions topics have with one Metadata request. Raises KafkaFailure."""
    topics = read_named_topics(client, [item.subject for item in items], deadline=deadline)
    return {item.subject: judge_growth(item, topics[item.subject]) for item in items if item.subject in topics}


def send_growth(client: WholeClient, items: Items, deadline: float) -> ItemChanged[str]:
    """Add partitions with one CreatePartitions request for each 10,000 of them.

    Kafka refuses a number of partitions that the topic has already, which may be that of an earlier request whose
    answer was lost.
    """

    def send(part: Items, seconds: float) -> ItemChanged[str]:
        topics = [
            NewPartitions(item.content["topic"], item.content["first"], tuple(map(tuple, item.content["replicas"])))
            for item in part
        ]
        return client.create_partitions(topics, deadline=seconds)

    return doubt_refusals(send_in_parts(items, deadline, send), INVALID_PARTITIONS)


def find_faults(cluster: Cluster, items: Items) -> dict[str, CodedReason]:
    """Return why topics cannot grow as planned, from stored rows. Three queries."""
    names = [item.content["topic"] for item in items]
    rows = TopicState.objects.filter(cluster=cluster, name__in=names)
    moving = moving_topics(cluster, names)
    columns = ("name", "topic_id", "partition_count", "partitions")
    stored = {name: (topic_id, count, rows) for name, topic_id, count, rows in rows.values_list(*columns)}
    brokers = load_brokers(cluster).racks
    faults: dict[str, CodedReason] = {}
    for item in items:
        topic_id, count, partitions = stored.get(item.content["topic"], (None, 0, []))
        if topic_id is None:
            faults[item.subject] = PlainReason(TopicReasonCode.GONE)
        elif topic_id != item.content["topic_id"]:
            faults[item.subject] = PlainReason(TopicReasonCode.RECREATED)
        elif count != item.content["first"]:
            faults[item.subject] = PartitionsChanged(count, item.content["first"])
        elif item.content["topic"] in moving:
            faults[item.subject] = PlainReason(TopicReasonCode.MOVING)
        elif away := find_brokers_away(item, brokers):
            faults[item.subject] = BrokersAway(away)
        elif differs := find_other_factor(item, len(partitions[0][3])):
            faults[item.subject] = differs
    return faults


def moving_topics(cluster: Cluster, names: Collection[str]) -> set[str]:
    """Return those of the topics of which a reassignment is in flight, as stored. One query."""
    running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING, topic__in=names)
    return set(running.values_list("topic", flat=True))


def find_risk(cluster: Cluster, items: Items) -> RiskFacts:
    """New partitions are empty; producers that partition by key send keys to others from then on."""
    names = [item.content["topic"] for item in items]
    internal = TopicState.objects.filter(cluster=cluster, name__in=names, internal=True).count()
    share = share_of_partitions(cluster, sum(len(item.content["replicas"]) for item in items))
    return RiskFacts(0.0, share, internal_topics=internal)


def describe_growth(item: PlannedItem, before: Mapping[str, Any] | None) -> ItemWords:
    first, added = item.content["first"], len(item.content["replicas"])
    there = first if before is None else before["partitions"]
    planned = [choose_plural("# partition|# partitions", first + added), *describe_placement(item.content)]
    return ItemWords(choose_plural("# partition|# partitions", there), "; ".join(planned))


def describe_start(items: Items) -> list[str]:
    added = choose_plural("# partition is|# partitions are", sum(len(item.content["replicas"]) for item in items))
    return [
        f"{added} added. Kafka cannot remove partitions again.",
        "Producers that partition by key send keys to other partitions from then on.",
    ]


def make_known() -> None:
    make_short_kind_known(
        ShortKind(
            name=KIND,
            label="New partitions",
            noun="# topic|# topics",
            batch=BATCH,
            plan=plan_growth,
            read=read_growth,
            send=send_growth,
            facts=(CollectorKind.METADATA, CollectorKind.REASSIGNMENTS),
            title=TopicCheckTitle.GROWTH_FITS,
            find_faults=find_faults,
            risk=find_risk,
            rights=lambda items: [NeededRight("Alter", name_subjects(item.content["topic"] for item in items))],
            words=describe_growth,
            start_words=describe_start,
            columns=("Topic", "Now", "Planned"),
            passing=frozenset({TopicReasonCode.MOVING, TopicReasonCode.FACTOR_DIFFERS}),
        )
    )
