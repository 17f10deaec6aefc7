"""The kind of change "group-offset-delete": the committed offsets of a topic leave a group (OffsetDelete 47).

An item is one partition. It is reached when the group has no committed offset of it, and ready when it has the one of
the plan and no member reads the topic. Members that read other topics may go on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kafkadash.changes.rights import NeededRight, name_subjects
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedReason, PlainReason, choose_plural, coded
from kafkadash.group_changes.errors import GroupCheckTitle, GroupErrorCode
from kafkadash.group_changes.reasons import GroupReasonCode, OffsetMoved
from kafkadash.group_changes.stored_groups import find_stale, load_groups
from kafkadash.kafka.api import GROUP_ID_NOT_FOUND, ItemChanged, TopicPartition, WholeClient
from kafkadash.monitoring.groups.names import label_group
from kafkadash.monitoring.models import CollectorKind
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import Items, ItemWords, PlannedItems, ShortKind, doubt_refusals, name_answers
from kafkadash.short_runs.plans import share_of_partitions
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState

KIND = "group-offset-delete"
BATCH = 1000


def plan_deletion(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan the deletion of what ``group`` has committed of ``topic``. Two queries."""
    name, topic = wanted["group"], wanted["topic"]
    group = load_groups(cluster, [name]).get(name)
    if group is None:
        return PlannedItems([])
    if group.freshness.stale:
        return PlannedItems([], [coded(GroupErrorCode.DATA_STALE, group=label_group(name))])
    if topic in group.topics:
        return PlannedItems([], [coded(GroupErrorCode.SUBSCRIBED_LEFT_OUT, group=label_group(name), topic=topic)])
    return PlannedItems(
        [
            PlannedItem(
                str(partition),
                {"group": name, "topic": topic, "partition": partition.partition, "committed": offset},
            )
            for partition, offset in sorted(group.commits.items())
            if partition.topic == topic
        ]
    )


def judge_offset(item: PlannedItem, committed: int | None, topics: Collection[str]) -> ItemReading:
    """Compare an item with the group's committed offset; ``topics``: those that members read."""
    found = {"committed": committed}
    if committed is None:
        return ItemReading(ReadingState.REACHED, found=found)
    if item.content["topic"] in topics:
        return ItemReading(ReadingState.UNFIT, PlainReason(GroupReasonCode.SUBSCRIBED), found)
    if committed != item.content["committed"]:
        return ItemReading(ReadingState.UNFIT, OffsetMoved(committed, item.content["committed"]), found)
    return ItemReading(ReadingState.READY, found=found)


def read_offsets(_: Cluster, client: WholeClient, items: Items, deadline: float) -> Mapping[str, ItemReading]:
    """Read committed offsets, then the members. Raises KafkaFailure."""
    name = items[0].content["group"]
    commits = client.committed([name], deadline=deadline / 2)
    group = client.describe_groups([name], deadline=deadline / 2).get(name)
    if name in commits.errors or (group is not None and group.members is None):
        return {}
    members = group.members if group is not None and group.members else ()
    topics = {topic for member in members for topic in member.assigned}
    offsets = commits.offsets[name]
    return {
        item.subject: judge_offset(item, offsets.get(item.content["topic"], {}).get(item.content["partition"]), topics)
        for item in items
    }


def send_deletion(client: WholeClient, items: Items, deadline: float) -> ItemChanged[str]:
    """Delete offsets with one OffsetDelete request.

    A group that Kafka does not know may have gone with its last offset, by an earlier request whose answer was lost.
    """
    subjects = {TopicPartition(item.content["topic"], item.content["partition"]): (item.subject,) for item in items}
    answer = client.delete_offsets(items[0].content["group"], list(subjects), deadline=deadline)
    return doubt_refusals(name_answers(answer, subjects), GROUP_ID_NOT_FOUND)


def find_faults(cluster: Cluster, items: Items) -> dict[str, CodedReason]:
    """Return why offsets cannot be deleted as planned, from stored rows. Two queries."""
    name = items[0].content["group"]
    group = load_groups(cluster, [name]).get(name)
    if group is None:
        return {item.subject: PlainReason(GroupReasonCode.GONE) for item in items}
    faults: dict[str, CodedReason] = {}
    for item in items:
        committed = group.commits.get(TopicPartition(item.content["topic"], item.content["partition"]))
        if item.content["topic"] in group.topics:
            faults[item.subject] = PlainReason(GroupReasonCode.SUBSCRIBED)
        elif committed != item.content["committed"]:
            faults[item.subject] = OffsetMoved(committed, item.content["committed"])
    return faults


def find_rights(items: Items) -> list[NeededRight]:
    topics = name_subjects(item.content["topic"] for item in items)
    groups = name_subjects(item.content["group"] for item in items)
    return [NeededRight("Read", topics), NeededRight("Delete", groups=groups)]


def find_risk(cluster: Cluster, items: Items) -> RiskFacts:
    return RiskFacts(0.0, share_of_partitions(cluster, len(items)), deleted_offsets=len(items))


def describe_deletion(item: PlannedItem, before: Mapping[str, Any] | None) -> ItemWords:
    committed = (item.content if before is None else before)["committed"]
    return ItemWords("none committed" if committed is None else f"{committed:,}", "none committed")


def describe_start(items: Items) -> list[str]:
    offsets = choose_plural("# committed offset is|# committed offsets are", len(items))
    return [
        f"{offsets} deleted. There is no rollback: this list keeps the offsets.",
        "Consumers that come back start as auto.offset.reset says.",
    ]


def make_known() -> None:
    make_short_kind_known(
        ShortKind(
            name=KIND,
            label="Offset deletion",
            noun="# partition|# partitions",
            batch=BATCH,
            plan=plan_deletion,
            read=read_offsets,
            send=send_deletion,
            facts=(CollectorKind.GROUPS,),
            title=GroupCheckTitle.OFFSET_DELETION_FITS,
            find_faults=find_faults,
            stale=find_stale,
            risk=find_risk,
            rights=find_rights,
            words=describe_deletion,
            start_words=describe_start,
            columns=("Partition", "Committed offset", "Planned"),
            confirm=lambda items: str(items[0].content["topic"]),
        )
    )
