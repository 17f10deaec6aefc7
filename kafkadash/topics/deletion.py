"""The kind of change "topic-delete": topics and their records are deleted for good (DeleteTopics 20, KIP-516).

An item is one topic, named by its id, so that a topic that was created again under the same name is never deleted. It
is reached when no topic has the name, ready when the approved topic has it, and it does not fit where another topic
has the name or a reassignment of the topic is in flight.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from kafkadash.changes.rights import NeededRight, name_subjects
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.core.formatting import format_size
from kafkadash.core.messages import CodedReason, PlainReason, choose_plural, first_names, join_names
from kafkadash.kafka.api import ItemChanged, TopicMetadata, WholeClient, read_named_topics
from kafkadash.monitoring.freshness import freshness_of_kind, read_statuses
from kafkadash.monitoring.groups.names import label_group
from kafkadash.monitoring.groups.pages import find_share_readers, present_groups
from kafkadash.monitoring.models import CollectorKind, TopicState
from kafkadash.monitoring.traffic.pages import format_record_rate, read_topic_rates
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import Items, ItemWords, PlannedItems, ShortKind, doubt_refusals, name_answers
from kafkadash.short_runs.plans import share_of_partitions
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState, name_or_count
from kafkadash.topics.errors import TopicCheckTitle
from kafkadash.topics.growth import moving_topics
from kafkadash.topics.reasons import TopicReasonCode
from kafkadash.topics.requests import BATCH

KIND = "topic-delete"
UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID = 3, 100
MOST_GROUPS = 8
"""Groups of an item that are named; of the others their number."""


def plan_deletion(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan the deletion of topics by their ``topic_ids``, without those that are gone or internal. Five queries.

    The input has ids, so that a plan that is made again never names a topic that was created under the name since.
    Items name what reads and writes the topics, so that approvers see it; null where nobody knows.
    """
    rows = TopicState.objects.filter(cluster=cluster, topic_id__in=wanted["topic_ids"], internal=False)
    columns = rows.order_by("name").values_list("name", "topic_id", "partition_count", "size_bytes")
    found = [row for row in columns if row[1] != row[0]]  # before Kafka 2.8 a topic has no id
    names = {name for name, *_ in found}
    readers, rates = _find_readers(cluster, names), read_topic_rates(cluster, names, clock.now())
    items = []
    for name, topic_id, partitions, size in found:
        records, octets = rates.get(name, (None, None))
        content = {"topic": name, "topic_id": topic_id, "partitions": partitions, "size_bytes": size}
        content |= {"groups": None if readers is None else list(first_names(readers.get(name, []), MOST_GROUPS))}
        items.append(PlannedItem(name, {**content, "records_per_s": records, "bytes_per_s": octets}))
    return PlannedItems(items)


def _find_readers(cluster: Cluster, topics: Collection[str]) -> dict[str, list[str]] | None:
    """Return the groups with offsets, by topic, share groups last; None while groups are not read. Three queries."""
    freshness = freshness_of_kind(CollectorKind.GROUPS, read_statuses([cluster.pk])[cluster.pk], clock.now())
    if freshness.stale:
        return None
    readers = defaultdict(list)
    read = present_groups(cluster).filter(topics__has_any_keys=sorted(topics)).order_by("name")
    for group, own in read.values_list("name", "topics"):
        for topic in topics & own.keys():
            readers[topic].append(label_group(group))
    for group, shared in find_share_readers(cluster, topics).values_list("name", "topics"):
        for topic in set(topics) & set(shared):
            readers[topic].append(label_group(group))
    return readers


def judge_deletion(item: PlannedItem, topic: TopicMetadata | None, *, moves: bool = False) -> ItemReading:
    """Compare an item with the topic of its name, None where there is none."""
    if topic is None:
        return ItemReading(ReadingState.REACHED, found={"partitions": None})
    if topic.topic_id != item.content["topic_id"]:
        return ItemReading(ReadingState.UNFIT, PlainReason(TopicReasonCode.RECREATED))
    found = {"partitions": len(topic.partitions)}
    if moves:
        return ItemReading(ReadingState.UNFIT, PlainReason(TopicReasonCode.MOVING), found)
    return ItemReading(ReadingState.READY, found=found)


def read_deletion(_: Cluster, client: WholeClient, items: Items, deadline: float) -> Mapping[str, ItemReading]:
    """Read which topics exist with a Metadata request, and which move with a second one. Raises KafkaFailure."""
    moving = {row.topic for row in client.list_reassignments(deadline=deadline / 2).rows}
    topics = read_named_topics(client, [item.subject for item in items], deadline=deadline / 2)
    return {
        item.subject: judge_deletion(item, topics[item.subject], moves=item.subject in moving)
        for item in items
        if item.subject in topics
    }


def send_deletion(client: WholeClient, items: Items, deadline: float) -> ItemChanged[str]:
    """Delete topics with one DeleteTopics request (20).

    A topic that Kafka no longer knows may have been deleted by an earlier request whose answer was lost. While a
    deletion that ZooKeeper holds is under way, Kafka knows the id and not the topic.
    """
    subjects = {item.content["topic_id"]: (item.subject,) for item in items}
    answer = client.delete_topics(list(subjects), deadline=deadline)
    return doubt_refusals(name_answers(answer, subjects), UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION)


def find_faults(cluster: Cluster, items: Items) -> dict[str, CodedReason]:
    """Return why topics cannot be deleted as planned, from stored rows. Two queries."""
    names = [item.content["topic"] for item in items]
    stored = dict(TopicState.objects.filter(cluster=cluster, name__in=names).values_list("name", "topic_id"))
    moving = moving_topics(cluster, names)
    faults: dict[str, CodedReason] = {}
    for item in items:
        name = item.content["topic"]
        if name not in stored:
            faults[item.subject] = PlainReason(TopicReasonCode.GONE)
        elif stored[name] != item.content["topic_id"]:
            faults[item.subject] = PlainReason(TopicReasonCode.RECREATED)
        elif name in moving:
            faults[item.subject] = PlainReason(TopicReasonCode.MOVING)
    return faults


def find_risk(cluster: Cluster, items: Items) -> RiskFacts:
    share = share_of_partitions(cluster, sum(item.content["partitions"] for item in items))
    return RiskFacts(0.0, share, deleted_topics=len(items))


def describe_deletion(item: PlannedItem, before: Mapping[str, Any] | None) -> ItemWords:
    content = item.content
    there = content["partitions"] if before is None else before["partitions"]
    if there is None:
        return ItemWords("none", f"deleted; topic ID {content['topic_id']}")
    size = "size unknown" if content["size_bytes"] is None else f"{format_size(content['size_bytes'])} incl. replicas"
    records = content.get("records_per_s")
    written = "writes unknown" if records is None else f"{format_record_rate(records)} written"
    partitions = choose_plural("# partition|# partitions", there)
    now = f"{partitions}, {size}, {written}, {_describe_readers(content.get('groups'))}"
    return ItemWords(now, f"deleted; topic ID {content['topic_id']}")


def _describe_readers(groups: list[str | int] | None) -> str:
    """Return which groups have committed offsets of a topic; None where nobody knows."""
    if groups is None:
        return "groups unknown"
    return f"offsets of {join_names(groups)}" if groups else "no group has offsets"


def describe_start(items: Items) -> list[str]:
    topics = choose_plural("# topic is|# topics are", len(items))
    return [f"{topics} deleted, with all records. There is no rollback."]


def make_known() -> None:
    make_short_kind_known(
        ShortKind(
            name=KIND,
            label="Topic deletion",
            noun="# topic|# topics",
            batch=BATCH,
            plan=plan_deletion,
            read=read_deletion,
            send=send_deletion,
            facts=(CollectorKind.METADATA, CollectorKind.REASSIGNMENTS),
            title=TopicCheckTitle.DELETION_FITS,
            find_faults=find_faults,
            risk=find_risk,
            rights=lambda items: [NeededRight("Delete", name_subjects(item.content["topic"] for item in items))],
            words=describe_deletion,
            start_words=describe_start,
            columns=("Topic", "Now", "Planned"),
            confirm=name_or_count,
        )
    )
