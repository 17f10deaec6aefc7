"""The kind of change "election": preferred leader elections of chosen partitions (KIP-183, ElectLeaders 43).

Each item is one partition. It is reached when its first replica leads it, ready when that replica is in the ISR and
another one leads, and it does not fit where the preferred replica is out of the ISR, the replicas are others than
approved, or the topic is another one of the same name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import F, Q

from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedReason, PlainReason, choose_plural, coded
from kafkadash.elections.errors import ElectionCheckTitle, ElectionErrorCode
from kafkadash.elections.reasons import ElectionReasonCode, PreferredOutOfSync, ReplicasChanged
from kafkadash.kafka.api import UNKNOWN_TOPIC_OR_PARTITION, ItemChanged, TopicPartition, WholeClient
from kafkadash.monitoring.models import CollectorKind, TopicState
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import Items, ItemWords, PlannedItems, ShortKind, name_answers
from kafkadash.short_runs.plans import share_of_partitions
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState

KIND = "election"
BATCH = 1000


def judge_election(
    item: PlannedItem, topic_id: str | None, leader: int | None, replicas: Sequence[int], isr: Collection[int]
) -> ItemReading:
    """Compare an item with a partition as metadata describes it. ``topic_id`` is None where there is no such topic."""
    wanted = item.content
    if topic_id is None:
        return ItemReading(ReadingState.UNFIT, PlainReason(ElectionReasonCode.PARTITION_GONE))
    if topic_id != wanted["topic_id"]:
        return ItemReading(ReadingState.UNFIT, PlainReason(ElectionReasonCode.TOPIC_RECREATED))
    if list(replicas) != wanted["replicas"]:
        return ItemReading(ReadingState.UNFIT, ReplicasChanged(tuple(replicas), tuple(wanted["replicas"])))
    found = {"leader": leader}
    preferred = replicas[0]
    if leader == preferred:
        return ItemReading(ReadingState.REACHED, found=found)
    if preferred not in isr:
        return ItemReading(ReadingState.UNFIT, PreferredOutOfSync(preferred), found)
    return ItemReading(ReadingState.READY, found=found)


def read_elections(_: Cluster, client: WholeClient, items: Items, deadline: float) -> Mapping[str, ItemReading]:
    """Read the leaders of the items' partitions with one Metadata request. Raises KafkaFailure."""
    names = {item.content["topic"] for item in items}
    answer = client.metadata(deadline=deadline, topics=sorted(names))
    found = {
        topic.name: (topic.topic_id, {each.partition: each for each in topic.partitions})
        for topic in answer.topics
        if topic.error is None
    }
    gone = {
        topic.name
        for topic in answer.topics
        if topic.error is not None and topic.error.code == UNKNOWN_TOPIC_OR_PARTITION
    }
    readings = {}
    for item in items:
        topic, number = item.content["topic"], item.content["partition"]
        if topic in gone:
            readings[item.subject] = judge_election(item, None, None, (), ())
        elif topic in found:
            topic_id, partitions = found[topic]
            own = partitions.get(number)
            readings[item.subject] = (
                judge_election(item, None, None, (), ())
                if own is None
                else judge_election(item, topic_id, own.leader, own.replicas, own.isr)
            )
    return readings


def send_elections(client: WholeClient, items: Items, deadline: float) -> ItemChanged[str]:
    """Elect the preferred leaders with one ElectLeaders request (43)."""
    subjects = {TopicPartition(item.content["topic"], item.content["partition"]): (item.subject,) for item in items}
    return name_answers(client.elect_leaders(list(subjects), deadline=deadline), subjects)


def plan_elections(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan elections of partitions that another broker leads although the preferred one is in sync, as stored.

    ``wanted`` may name a ``topic``, or a ``broker``: partitions that it leads, or is the preferred leader of.
    One query, which leaves out topics that have all their preferred leaders.
    """
    items, out_of_sync = [], 0
    broker = wanted.get("broker")
    rows = TopicState.objects.filter(cluster=cluster, format=1)
    rows = rows.filter(name=wanted["topic"]) if "topic" in wanted else rows
    for name, topic_id, number, leader, replicas, isr in _read_partitions(rows.filter(_WITH_OTHER_LEADERS)):
        if not replicas or leader == replicas[0] or (broker is not None and broker not in (leader, replicas[0])):
            continue
        if replicas[0] not in isr:
            out_of_sync += 1
            continue
        content = {"topic": name, "topic_id": topic_id, "partition": number, "replicas": replicas, "leader": leader}
        items.append(PlannedItem(f"{name}-{number}", content))
    left_out = [coded(ElectionErrorCode.OUT_OF_SYNC_LEFT_OUT, partitions=out_of_sync)] if out_of_sync else []
    return PlannedItems(items, left_out)


_WITH_OTHER_LEADERS = Q(preferred_leaders=None) | Q(preferred_leaders__lt=F("partition_count"))


def _read_partitions(rows: Any) -> Iterator[tuple[str, str, int, int | None, list[int], list[int]]]:
    """Yield topic, topic id, number, leader, replicas and ISR of each partition of these topics."""
    columns = rows.order_by("name").values_list("name", "topic_id", "partitions")
    for name, topic_id, partitions in columns.iterator(chunk_size=500):
        for number, leader, _, replicas, isr, _ in partitions:
            yield name, topic_id, number, leader, replicas, isr


def find_faults(cluster: Cluster, items: Items) -> dict[str, CodedReason]:
    """Return why items do not fit partitions as stored. One query."""
    rows = TopicState.objects.filter(cluster=cluster, format=1, name__in={item.content["topic"] for item in items})
    found = {(name, number): (topic_id, *of) for name, topic_id, number, *of in _read_partitions(rows)}
    faults = {}
    for item in items:
        own: tuple[Any, ...] = found.get((item.content["topic"], item.content["partition"]), (None, None, (), ()))
        reading = judge_election(item, *own)
        if reading.state is ReadingState.UNFIT and reading.reason is not None:
            faults[item.subject] = reading.reason
    return faults


def find_risk(cluster: Cluster, items: Items) -> RiskFacts:
    """An election copies nothing; clients of its partitions turn to another broker."""
    names = {item.content["topic"] for item in items}
    internal = TopicState.objects.filter(cluster=cluster, name__in=names, internal=True).count()
    return RiskFacts(0.0, share_of_partitions(cluster, len(items)), internal_topics=internal)


def describe_election(item: PlannedItem, before: Mapping[str, Any] | None) -> ItemWords:
    """Leaders before and after; before the run, the leader is that of the plan."""
    leader = (item.content if before is None else before).get("leader")
    return ItemWords("none" if leader is None else f"broker {leader}", f"broker {item.content['replicas'][0]}")


def describe_start(items: Items) -> list[str]:
    number = choose_plural("# partition gets its|# partitions get their", len(items))
    return [f"{number} preferred leader back. No data is copied; clients reconnect to the new leader."]


def make_known() -> None:
    make_short_kind_known(
        ShortKind(
            name=KIND,
            label="Leader election",
            noun="# partition|# partitions",
            batch=BATCH,
            plan=plan_elections,
            read=read_elections,
            send=send_elections,
            facts=(CollectorKind.METADATA,),
            title=ElectionCheckTitle.FITS,
            find_faults=find_faults,
            risk=find_risk,
            words=describe_election,
            start_words=describe_start,
            columns=("Partition", "Leader", "Preferred leader"),
        )
    )
