"""The kind of change "election": preferred leader elections of chosen partitions (KIP-183, ElectLeaders 43).

Each item is one partition. It is reached when its first replica leads it, ready when that replica is in the ISR and
another one leads, and it does not fit where the preferred replica is out of the ISR, the replicas are others than
approved, or the topic is another one of the same name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import F, Q

from kafkadash.changes.checks import ChangeCheck, CheckOutcome, CheckResult, CheckSubject
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import PlainReason, choose_plural, coded, reason_message
from kafkadash.core.status import is_stale
from kafkadash.elections.errors import ElectionCheckCode, ElectionCheckTitle
from kafkadash.elections.reasons import ElectionReasonCode, PreferredOutOfSync, ReplicasChanged
from kafkadash.kafka.api import UNKNOWN_TOPIC_OR_PARTITION, ItemChanged, TopicPartition, WholeClient
from kafkadash.monitoring.models import ClusterState, CollectorKind, CollectorRun, TopicState
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import Items, ItemWords, PlannedItems, ShortKind
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState

KIND = "election"
BATCH = 1000
MOST_PROBLEMS = 20


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
    subjects = {TopicPartition(item.content["topic"], item.content["partition"]): item.subject for item in items}
    answer = client.elect_leaders(list(subjects), deadline=deadline)
    return ItemChanged(
        frozenset(subjects[partition] for partition in answer.done),
        {subjects[partition]: error for partition, error in answer.refused.items()},
        {subjects[partition]: error for partition, error in answer.lost.items()},
    )


def plan_elections(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan elections of partitions that another broker leads although the preferred one is in sync, as stored.

    ``wanted`` may name a ``topic``, or a ``broker``: partitions that it leads, or is the preferred leader of. Two
    queries; the partitions of topics that have all their preferred leaders are not read.
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
    run = _metadata_run(cluster)
    left_out = [coded(ElectionCheckCode.OUT_OF_SYNC_LEFT_OUT, partitions=out_of_sync)] if out_of_sync else []
    return PlannedItems(items, left_out, run.succeeded_at if run else None)


_WITH_OTHER_LEADERS = Q(preferred_leaders=None) | Q(preferred_leaders__lt=F("partition_count"))


def _read_partitions(rows: Any) -> Iterator[tuple[str, str, int, int | None, list[int], list[int]]]:
    """Yield topic, topic id, number, leader, replicas and ISR of each partition of these topics."""
    columns = rows.order_by("name").values_list("name", "topic_id", "partitions")
    for name, topic_id, partitions in columns.iterator(chunk_size=500):
        for number, leader, _, replicas, isr, _ in partitions:
            yield name, topic_id, number, leader, replicas, isr


def check_elections(cluster: Cluster, items: Items, now: datetime) -> CheckOutcome:
    """Check items against stored metadata. Two queries."""
    run = _metadata_run(cluster)
    at = run.succeeded_at if run else None
    title = coded(ElectionCheckTitle.FITS)
    if run is None or at is None or is_stale(at, run.interval_s, now):
        old = (coded(ElectionCheckCode.METADATA_OLD),)
        check = ChangeCheck("elections_fit", CheckSubject.CONTENT, CheckResult.UNKNOWN, title, problems=old)
        return CheckOutcome((check,), at)
    rows = TopicState.objects.filter(cluster=cluster, format=1, name__in={item.content["topic"] for item in items})
    found = {(name, number): (topic_id, *of) for name, topic_id, number, *of in _read_partitions(rows)}
    wrong = []
    for item in items:
        own: tuple[Any, ...] = found.get((item.content["topic"], item.content["partition"]), (None, None, (), ()))
        reading = judge_election(item, *own)
        if reading.state is ReadingState.UNFIT:
            wrong.append(coded(ElectionCheckCode.DOES_NOT_FIT, item=item.subject, why=reason_message(reading.reason)))
    check = ChangeCheck(
        "elections_fit",
        CheckSubject.CONTENT,
        CheckResult.FAILED if wrong else CheckResult.PASSED,
        title,
        f"{len(items) - len(wrong):,} of {len(items):,}",
        tuple(wrong[:MOST_PROBLEMS]),
        len(wrong),
    )
    return CheckOutcome((check,), at)


def _metadata_run(cluster: Cluster) -> CollectorRun | None:
    return CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.METADATA).first()


def find_risk(cluster: Cluster, items: Items) -> RiskFacts:
    """An election copies nothing; clients of its partitions turn to another broker."""
    total = ClusterState.objects.filter(cluster=cluster).values_list("partitions", flat=True).first()
    names = {item.content["topic"] for item in items}
    internal = TopicState.objects.filter(cluster=cluster, name__in=names, internal=True).count()
    return RiskFacts(0.0, len(items) / total if total else None, internal_topics=internal)


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
            checks=check_elections,
            risk=find_risk,
            words=describe_election,
            start_words=describe_start,
            columns=("Partition", "Leader", "Preferred leader"),
        )
    )
