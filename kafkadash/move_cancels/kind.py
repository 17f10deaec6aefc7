"""The kind of change "move-cancel": reassignments that kafkadash did not start are cancelled (KIP-455).

Each item is one partition. A cancel leaves the replicas without those that are being added, in the order in which Kafka
lists them. A reassignment that had ended by then is told as such and left alone; one that adds or removes other brokers
than approved is another reassignment. The throttles of a cancelled reassignment stay: they become orphans.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kafkadash.changes.rights import NeededRight
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedReason, PlainReason, choose_plural, coded
from kafkadash.execution.claims import find_moves_in_flight
from kafkadash.kafka.api import ItemChanged, OngoingReassignment, PartitionMetadata, TopicPartition, WholeClient
from kafkadash.monitoring.models import CollectorKind, MoveOutcome, ReassignmentSnapshot
from kafkadash.move_cancels.errors import CancelCheckTitle, CancelNoteCode
from kafkadash.move_cancels.reasons import CancelReasonCode, MoveChanged, MoveEnded, NothingInSync
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import (
    Items,
    ItemWords,
    PlannedItems,
    ShortKind,
    doubt_refusals,
    find_partitions,
    name_answers,
)
from kafkadash.short_runs.plans import share_of_partitions
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState

KIND = "move-cancel"
BATCH = 1000
_NO_REASSIGNMENT_IN_PROGRESS = 85


def plan_cancels(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan the cancel of reassignments in flight that are not of kafkadash, as stored. One query.

    ``wanted`` may name one by its ``id``, or only those that are ``stuck``: they add and remove the same broker.
    """
    rows = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING)
    if "id" in wanted:
        rows = rows.filter(public_id=wanted["id"])
    items, ours = [], 0
    for row in rows.order_by("topic", "partition"):
        if wanted.get("stuck") and not set(row.adding) & set(row.removing):
            continue
        if row.claimed_by:
            ours += 1
            continue
        content = {
            "topic": row.topic,
            "topic_id": row.topic_id,
            "partition": row.partition,
            "replicas": row.replicas,
            "adding": row.adding,
            "removing": row.removing,
        }
        items.append(PlannedItem(f"{row.topic}-{row.partition}", content))
    left_out = [coded(CancelNoteCode.OURS_LEFT_OUT, moves=ours)] if ours else []
    return PlannedItems(items, left_out)


def remaining_replicas(replicas: Sequence[int], adding: Collection[int]) -> tuple[int, ...]:
    """Return the replicas that a cancel leaves (PartitionReassignmentRevert of Kafka's controller)."""
    return tuple(replica for replica in replicas if replica not in adding)


def judge_cancel(
    item: PlannedItem,
    listed: OngoingReassignment | None,
    partition: PartitionMetadata,
    claimed: Collection[tuple[str, int]],
) -> ItemReading | None:
    """Compare an item with the listing and with the partition; ``listed`` is None where nothing of it is in flight.

    None: the broker that told the replicas does not know yet how the reassignment ended. Where it removed none, all
    listed replicas are what it leads to, so there they mean that it has ended.
    """
    content = item.content
    found = {"replicas": list(partition.replicas)}
    if listed is None:
        replicas = set(partition.replicas)
        if replicas == set(remaining_replicas(content["replicas"], content["adding"])):
            return ItemReading(ReadingState.REACHED, found=found)
        if content["removing"] and replicas == set(content["replicas"]):
            return None
        return ItemReading(ReadingState.REACHED, MoveEnded(partition.replicas), found)
    if (content["topic"], content["partition"]) in claimed:
        return ItemReading(ReadingState.UNFIT, PlainReason(CancelReasonCode.OURS), found)
    if (set(listed.adding), set(listed.removing)) != (set(content["adding"]), set(content["removing"])):
        return ItemReading(ReadingState.UNFIT, MoveChanged(listed.adding, listed.removing), found)
    remaining = remaining_replicas(listed.replicas, listed.adding)
    if not set(remaining) & set(partition.isr):
        return ItemReading(ReadingState.UNFIT, NothingInSync(remaining), found)
    return ItemReading(ReadingState.READY, found={"replicas": list(listed.replicas)})


def read_cancels(cluster: Cluster, client: WholeClient, items: Items, deadline: float) -> Mapping[str, ItemReading]:
    """Read the listing, then the partitions: one that left the listing in between has ended. Raises KafkaFailure."""
    listing = client.list_reassignments(deadline=deadline)
    answer = client.metadata(deadline=deadline, topics=sorted({item.content["topic"] for item in items}))
    moving = {(row.topic, row.partition): row for row in listing.rows}
    found = find_partitions(answer, items)
    claimed = find_moves_in_flight(cluster.pk)
    readings = {}
    for item in items:
        if item.subject not in found:
            continue
        own = found[item.subject]
        place = item.content["topic"], item.content["partition"]
        if own is None or own[0] != item.content["topic_id"]:
            readings[item.subject] = ItemReading(ReadingState.UNFIT, PlainReason(CancelReasonCode.TOPIC_GONE))
        elif reading := judge_cancel(item, moving.get(place), own[1], claimed):
            readings[item.subject] = reading
    return readings


def send_cancels(client: WholeClient, items: Items, deadline: float) -> ItemChanged[str]:
    """Cancel with one AlterPartitionReassignments request (45) whose targets are null.

    NO_REASSIGNMENT_IN_PROGRESS says that one had ended before; how it ended is told by the next reading.
    """
    subjects = {TopicPartition(item.content["topic"], item.content["partition"]): (item.subject,) for item in items}
    answer = client.alter_reassignments(dict.fromkeys(subjects), deadline=deadline, keep_factor=False)
    return doubt_refusals(name_answers(answer, subjects), _NO_REASSIGNMENT_IN_PROGRESS)


def find_faults(cluster: Cluster, items: Items) -> dict[str, CodedReason]:
    """Return why items do not fit reassignments as stored. One that has ended needs nothing, and fits. One query."""
    topics = {item.content["topic"] for item in items}
    running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING, topic__in=topics)
    rows = {(row.topic, row.partition): row for row in running}
    faults = {}
    for item in items:
        row = rows.get((item.content["topic"], item.content["partition"]))
        if row is not None and (why := _find_difference(item, row)):
            faults[item.subject] = why
    return faults


def _find_difference(item: PlannedItem, row: ReassignmentSnapshot) -> CodedReason | None:
    content = item.content
    if row.topic_id != content["topic_id"]:
        return PlainReason(CancelReasonCode.TOPIC_GONE)
    if row.claimed_by:
        return PlainReason(CancelReasonCode.OURS)
    if (set(row.adding), set(row.removing)) != (set(content["adding"]), set(content["removing"])):
        return MoveChanged(tuple(row.adding), tuple(row.removing))
    return None


def find_risk(cluster: Cluster, items: Items) -> RiskFacts:
    """A cancel copies nothing; the data copied so far is given up."""
    return RiskFacts(bytes_share=0.0, partitions_share=share_of_partitions(cluster, len(items)))


def describe_cancel(item: PlannedItem, before: Mapping[str, Any] | None) -> ItemWords:
    content = item.content
    listed = content["replicas"] if before is None else before.get("replicas", content["replicas"])
    after = remaining_replicas(content["replicas"], content["adding"])
    adds = f", adding {_join_ids(content['adding'])}" if content["adding"] else ""
    removes = f", removing {_join_ids(content['removing'])}" if content["removing"] else ""
    return ItemWords(f"{_join_ids(listed)}{adds}{removes}", _join_ids(after))


def _join_ids(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"


def describe_start(items: Items) -> list[str]:
    number = choose_plural("# reassignment is|# reassignments are", len(items))
    return [
        f"{number} cancelled. Added replicas are deleted, with the data copied so far.",
        "Throttles of cancelled reassignments stay, and can be removed as orphans afterwards.",
    ]


def make_known() -> None:
    make_short_kind_known(
        ShortKind(
            name=KIND,
            label="Cancel of reassignments",
            noun="# reassignment|# reassignments",
            batch=BATCH,
            plan=plan_cancels,
            read=read_cancels,
            send=send_cancels,
            facts=(CollectorKind.REASSIGNMENTS,),
            title=CancelCheckTitle.FITS,
            find_faults=find_faults,
            risk=find_risk,
            rights=lambda _: [NeededRight("Alter")],
            words=describe_cancel,
            start_words=describe_start,
            columns=("Partition", "Replicas", "After the cancel"),
        )
    )
