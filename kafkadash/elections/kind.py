"""The kind of change "election": preferred leader elections of chosen partitions (KIP-183, ElectLeaders 43).

Each item is one partition. It is reached when its first replica leads it, ready when that replica is in the ISR and
another one leads, and it does not fit where the preferred replica is out of the ISR, the replicas are others than
approved, or the topic is another one of the same name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import F, Q

from kafkadash.changes.rights import NeededRight
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedReason, PlainReason, choose_plural, coded
from kafkadash.elections.errors import ElectionCheckTitle, ElectionErrorCode
from kafkadash.elections.reasons import ElectionReasonCode, PreferredOutOfSync, ReplicasChanged
from kafkadash.kafka.api import ItemChanged, TopicPartition, WholeClient
from kafkadash.monitoring.models import CollectorKind, TopicState
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import Items, ItemWords, PlannedItems, ShortKind, find_partitions, name_answers
from kafkadash.short_runs.plans import share_of_partitions
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState

KIND = "election"
BATCH = 1000


def find_other_partition(item: PlannedItem, topic_id: str | None, replicas: Sequence[int]) -> CodedReason | None:
    """Return why a partition is not the approved one; None where it is. ``topic_id`` is None where it is not there."""
    if topic_id is None:
        return PlainReason(ElectionReasonCode.PARTITION_GONE)
    if topic_id != item.content["topic_id"]:
        return PlainReason(ElectionReasonCode.TOPIC_RECREATED)
    if list(replicas) != item.content["replicas"]:
        return ReplicasChanged(tuple(replicas), tuple(item.content["replicas"]))
    return None


def judge_election(
    item: PlannedItem, topic_id: str | None, leader: int | None, replicas: Sequence[int], isr: Collection[int]
) -> ItemReading:
    """Compare an item with a partition as metadata describes it. ``topic_id`` is None where there is no such topic."""
    if other := find_other_partition(item, topic_id, replicas):
        return ItemReading(ReadingState.UNFIT, other)
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
    found = find_partitions(client.metadata(deadline=deadline, topics=sorted(names)), items)
    return {
        item.subject: judge_election(item, None, None, (), ())
        if (own := found[item.subject]) is None
        else judge_election(item, own[0], own[1].leader, own[1].replicas, own[1].isr)
        for item in items
        if item.subject in found
    }


def send_elections(client: WholeClient, items: Items, deadline: float) -> ItemChanged[str]:
    """Elect the preferred leaders with one ElectLeaders request (43)."""
    subjects = {TopicPartition(item.content["topic"], item.content["partition"]): (item.subject,) for item in items}
    return name_answers(client.elect_leaders(list(subjects), deadline=deadline), subjects)


def plan_elections(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan elections of partitions that another broker leads although the preferred one is in sync, as stored.

    ``wanted`` may name a ``topic``, a ``broker``: partitions that it leads, or is the preferred leader of, or a
    ``selection``: numbers of partitions by topic. One query, which leaves out topics that have all their preferred
    leaders unless they are selected.
    """
    items, out_of_sync, led = [], 0, 0
    broker, selection = wanted.get("broker"), wanted.get("selection")
    rows = TopicState.objects.filter(cluster=cluster, format=1)
    rows = rows.filter(name=wanted["topic"]) if "topic" in wanted else rows
    rows = rows.filter(_WITH_OTHER_LEADERS) if selection is None else rows.filter(name__in=selection)
    for name, topic_id, number, leader, replicas, isr in _read_partitions(rows):
        if not replicas or (selection is not None and number not in selection[name]):
            continue
        if leader == replicas[0]:
            led += selection is not None
            continue
        if broker is not None and broker not in (leader, replicas[0]):
            continue
        if replicas[0] not in isr:
            out_of_sync += 1
            continue
        content = {"topic": name, "topic_id": topic_id, "partition": number, "replicas": replicas, "leader": leader}
        items.append(PlannedItem(f"{name}-{number}", content))
    left_out = [coded(ElectionErrorCode.OUT_OF_SYNC_LEFT_OUT, partitions=out_of_sync)] if out_of_sync else []
    left_out += [coded(ElectionErrorCode.LED_LEFT_OUT, partitions=led)] if led else []
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
            rights=lambda _: [NeededRight("Alter")],
            words=describe_election,
            start_words=describe_start,
            columns=("Partition", "Leader", "Preferred leader"),
        )
    )
