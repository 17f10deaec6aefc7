"""The kind of change "group-reset": a consumer group goes on at other offsets (OffsetCommit 8, OffsetDelete 47).

An item is one partition: the committed offset that the plan found, and the rule of the new one. Log ends move, so a
rule such as *latest* is resolved when the item's turn comes, from the log as it is then. The result is stored before it
is sent, and a repetition sends the same. An item is ready when its group is empty and still has the offset of the plan,
and reached when the group has the new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from kafkadash.changes.rights import NeededRight, name_subjects
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedReason, PlainReason, choose_plural, coded
from kafkadash.group_changes.errors import GroupCheckTitle, GroupErrorCode
from kafkadash.group_changes.reasons import GroupActive, GroupReasonCode, OffsetMoved, OffsetOutOfLog
from kafkadash.group_changes.stored_groups import (
    EMPTY,
    StoredGroup,
    find_stale,
    flatten_offsets,
    load_groups,
    load_topics,
)
from kafkadash.kafka.api import (
    GroupDescription,
    ItemChanged,
    ItemError,
    KafkaFailure,
    LogSpan,
    TopicMetadata,
    TopicPartition,
    WholeClient,
    read_named_topics,
)
from kafkadash.monitoring.groups.names import label_group
from kafkadash.monitoring.models import CollectorKind
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import DoneItem, Items, ItemWords, PlannedItems, ShortKind, name_answers
from kafkadash.short_runs.plans import share_of_partitions
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState

KIND = "group-reset"
BATCH = 1000


class ResetTarget(StrEnum):
    """The rule of new offsets, as in the input and in items."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"
    SHIFT = "shift"
    OFFSETS = "offsets"


_RESOLVED_AT_START = frozenset({ResetTarget.EARLIEST, ResetTarget.LATEST, ResetTarget.TIME})


def plan_reset(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan new offsets of ``group`` from stored rows, which are not stale. Three queries.

    ``to`` is the rule, with ``at_ms`` or ``by``. ``topic`` and ``partitions`` narrow the scope, which else is all that
    the group has committed. With the rule *offsets*, ``offsets`` has topic → partition → offset, None where there is to
    be none. ``committed``: what the run to roll back has left.
    """
    group = load_groups(cluster, [wanted["group"]]).get(wanted["group"])
    if group is None:
        return PlannedItems([])
    if group.freshness.stale:
        return PlannedItems([], [coded(GroupErrorCode.DATA_STALE, group=label_group(group.name))])
    scope = wanted["offsets"] if wanted["to"] == ResetTarget.OFFSETS else {wanted["topic"]: None}
    topics = load_topics(cluster, {each.topic for each in group.commits} | scope.keys())
    items: list[PlannedItem] = []
    gone: list[str] = []
    for partition, rule in sorted(_choose_partitions(wanted, group, topics)):
        if partition.topic not in topics:
            gone.append(partition.topic)
            continue
        committed = _find_committed(wanted, group, partition)
        if rule["to"] == ResetTarget.OFFSETS and rule["offset"] == committed:
            continue
        start, end = group.logs.get(partition, (None, None))
        content = {
            "group": group.name,
            "topic": partition.topic,
            "topic_id": topics[partition.topic][0],
            "partition": partition.partition,
            "committed": committed,
            "start": start,
            "end": end,
            **rule,
        }
        items.append(PlannedItem(str(partition), content))
    left_out = [coded(GroupErrorCode.TOPIC_LEFT_OUT, topic=topic) for topic in dict.fromkeys(gone)]
    return PlannedItems(items, left_out)


def _choose_partitions(
    wanted: Mapping[str, Any], group: StoredGroup, topics: Mapping[str, tuple[str, int]]
) -> Iterator[tuple[TopicPartition, dict[str, Any]]]:
    """Yield each partition of the scope with its rule."""
    rule: dict[str, Any] = {"to": wanted["to"]}
    if wanted["to"] == ResetTarget.OFFSETS:
        for topic, offsets in wanted["offsets"].items():
            for number, offset in offsets.items():
                yield TopicPartition(topic, int(number)), {**rule, "offset": offset}
        return
    rule |= {name: wanted[name] for name in ("at_ms", "by") if name in wanted}
    topic = wanted["topic"]
    if not topic:
        yield from ((partition, rule) for partition in group.commits)
        return
    numbers = wanted["partitions"] or range(topics[topic][1] if topic in topics else 0)
    yield from ((TopicPartition(topic, number), rule) for number in numbers)


def _find_committed(wanted: Mapping[str, Any], group: StoredGroup, partition: TopicPartition) -> int | None:
    """Return the offset that the plan starts from.

    Stored rows with the offset that a rollback restores are older than the run, so the offset that it left counts.
    """
    stored = group.commits.get(partition)
    if "committed" not in wanted:
        return stored
    topic, number = partition.topic, str(partition.partition)
    left: int | None = wanted["committed"][topic][number]
    return left if stored == wanted["offsets"][topic][number] else stored


# ---- judging


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """A partition of a group as Kafka or stored rows have it; ``at_time``: the span from the time of the rule on.

    ``state`` of the group is None where there is no such group, ``topic_id`` where there is no such topic. ``exists``:
    whether the topic has the partition. ``committed`` is None for no offset, and so are ``start`` and ``end`` where not
    known.
    """

    state: str | None
    topic_id: str | None
    exists: bool
    committed: int | None
    start: int | None
    end: int | None
    at_time: int | None = None


def judge_reset(item: PlannedItem, facts: PartitionFacts) -> ItemReading | None:
    """Compare an item with its partition as Kafka has it; None where that does not tell."""
    wanted, before = item.content, item.before
    reason = _find_topic_fault(item, facts)
    if reason is not None:
        return ItemReading(ReadingState.UNFIT, reason)
    target = resolve_target(wanted, facts) if before is None else before["target"]
    found = {"committed": facts.committed, "target": target, "start": facts.start, "end": facts.end}
    if target == facts.committed and (target is not None or has_no_target(wanted)):
        return ItemReading(ReadingState.REACHED, found=found)
    reason = find_reset_fault(item, facts, target)
    if reason is not None:
        return ItemReading(ReadingState.UNFIT, reason, found)
    if target is None and not has_no_target(wanted):
        return None
    return ItemReading(ReadingState.READY, found=found)


def has_no_target(content: Mapping[str, Any]) -> bool:
    """Return whether no offset is to be committed afterwards, as a rollback may want it."""
    return bool(content["to"] == ResetTarget.OFFSETS and content["offset"] is None)


def resolve_target(content: Mapping[str, Any], facts: PartitionFacts) -> int | None:
    """Return the new offset by the rule of an item, None where the facts do not tell, or where there is to be none."""
    to = content["to"]
    if to == ResetTarget.EARLIEST:
        return facts.start
    if to == ResetTarget.LATEST:
        return facts.end
    if to == ResetTarget.TIME:
        return facts.at_time
    if to == ResetTarget.SHIFT:
        return None if facts.committed is None else facts.committed + int(content["by"])
    offset: int | None = content["offset"]
    return offset


def _find_topic_fault(item: PlannedItem, facts: PartitionFacts) -> CodedReason | None:
    if facts.topic_id is None:
        return PlainReason(GroupReasonCode.TOPIC_GONE)
    if facts.topic_id != item.content["topic_id"]:
        return PlainReason(GroupReasonCode.TOPIC_RECREATED)
    return None if facts.exists else PlainReason(GroupReasonCode.PARTITION_GONE)


def find_reset_fault(item: PlannedItem, facts: PartitionFacts, target: int | None) -> CodedReason | None:
    """Return why an item does not fit its partition and group."""
    if facts.state is None:
        return PlainReason(GroupReasonCode.GONE)
    if facts.state != EMPTY:
        return GroupActive(facts.state)
    if facts.committed != item.content["committed"]:
        return OffsetMoved(facts.committed, item.content["committed"])
    if item.content["to"] == ResetTarget.SHIFT and item.content["committed"] is None:
        return PlainReason(GroupReasonCode.NOT_COMMITTED)
    if target is None or facts.start is None or facts.end is None or facts.start <= target <= facts.end:
        return None
    return OffsetOutOfLog(target, facts.start, facts.end)


def find_faults(cluster: Cluster, items: Items) -> dict[str, CodedReason]:
    """Return why offsets cannot be reset as planned, from stored rows. Three queries."""
    name = items[0].content["group"]
    group = load_groups(cluster, [name]).get(name)
    topics = load_topics(cluster, {item.content["topic"] for item in items})
    faults: dict[str, CodedReason] = {}
    for item in items:
        partition = TopicPartition(item.content["topic"], item.content["partition"])
        topic_id, count = topics.get(partition.topic, (None, 0))
        start, end = group.logs.get(partition, (None, None)) if group else (None, None)
        facts = PartitionFacts(
            group.state if group else None,
            topic_id,
            0 <= partition.partition < count,
            group.commits.get(partition) if group else None,
            start,
            end,
        )
        reading = judge_reset(item, facts)
        if reading is not None and reading.reason is not None:
            faults[item.subject] = reading.reason
    return faults


# ---- Kafka


def read_reset(_: Cluster, client: WholeClient, items: Items, deadline: float) -> Mapping[str, ItemReading]:
    """Read topics, logs, committed offsets and the group, in this order. Raises KafkaFailure."""
    name, seconds = items[0].content["group"], deadline / 5
    topics = read_named_topics(client, {item.content["topic"] for item in items}, deadline=seconds)
    there: dict[str, set[int]] = {}
    for item in items:
        topic, number = item.content["topic"], item.content["partition"]
        if number in _numbers(topics.get(topic)):
            there.setdefault(topic, set()).add(number)
    spans = client.log_spans(there, deadline=seconds).spans if there else {}
    at_ms = next((item.content["at_ms"] for item in items if item.content["to"] == ResetTarget.TIME), None)
    late = client.offsets_at(there, at_ms, deadline=seconds).spans if there and at_ms is not None else {}
    commits = client.committed([name], deadline=seconds)
    described = client.describe_groups([name], deadline=seconds).get(name)
    if name in commits.errors or (described is not None and described.members is None):
        return {}
    committed = flatten_offsets(commits.offsets[name])
    readings = {}
    for item in items:
        topic, number = item.content["topic"], item.content["partition"]
        span, first = spans.get(topic, {}).get(number), late.get(topic, {}).get(number)
        if topic not in topics or (span is None and number in there.get(topic, ())):
            continue
        own = committed.get(TopicPartition(topic, number))
        facts = _collect_facts(topics[topic], number, described, own, span, first)
        if (reading := judge_reset(item, facts)) is not None:
            readings[item.subject] = reading
    return readings


def _numbers(topic: TopicMetadata | None) -> set[int]:
    return {each.partition for each in topic.partitions} if topic else set()


def _collect_facts(
    topic: TopicMetadata | None,
    number: int,
    group: GroupDescription | None,
    committed: int | None,
    span: LogSpan | None,
    first: LogSpan | None,
) -> PartitionFacts:
    return PartitionFacts(
        group.state if group else None,
        topic.topic_id if topic else None,
        number in _numbers(topic),
        committed,
        span.start if span else None,
        span.end if span else None,
        first.start if first else None,
    )


def send_reset(client: WholeClient, items: Items, deadline: float) -> ItemChanged[str]:
    """Commit the new offsets with one request, and delete those that are to be none with another.

    Raises KafkaFailure where the first request was not sent; items of the other one are refused then, without a code.
    """
    name = items[0].content["group"]
    targets = {
        TopicPartition(item.content["topic"], item.content["partition"]): item.before["target"]
        for item in items
        if item.before is not None
    }
    commits = {partition: target for partition, target in targets.items() if target is not None}
    removed = [partition for partition, target in targets.items() if target is None]
    first = client.commit_offsets(name, commits, deadline=deadline / 2)
    try:
        then = client.delete_offsets(name, removed, deadline=deadline / 2)
    except KafkaFailure as failure:
        if not commits:
            raise
        then = ItemChanged(refused=dict.fromkeys(removed, ItemError(failure.message)))
    answer = ItemChanged(first.done | then.done, {**first.refused, **then.refused}, {**first.lost, **then.lost})
    return name_answers(answer, {partition: (str(partition),) for partition in targets})


def find_rollback(done: Sequence[DoneItem]) -> Mapping[str, Any]:
    """Return the input that restores the committed offsets from before a run, from those that the run left."""
    offsets: dict[str, dict[str, int | None]] = {}
    committed: dict[str, dict[str, int | None]] = {}
    for item, before in done:
        topic, number = item.content["topic"], str(item.content["partition"])
        offsets.setdefault(topic, {})[number] = before["committed"]
        committed.setdefault(topic, {})[number] = before["target"]
    return {
        "group": done[0][0].content["group"],
        "to": ResetTarget.OFFSETS.value,
        "offsets": offsets,
        "committed": committed,
    }


# ---- words


def find_rights(items: Items) -> list[NeededRight]:
    """Return the rights for OffsetCommit, and for OffsetDelete where no offset is to be committed."""
    topics = name_subjects(item.content["topic"] for item in items)
    removes = any(has_no_target(item.content) for item in items)
    groups = name_subjects(item.content["group"] for item in items)
    needed = ("Read", "Delete") if removes else ("Read",)
    return [NeededRight("Read", topics), *(NeededRight(operation, groups=groups) for operation in needed)]


def find_risk(cluster: Cluster, items: Items) -> RiskFacts:
    return RiskFacts(0.0, share_of_partitions(cluster, len(items)), reset_offsets=len(items))


def planned_facts(content: Mapping[str, Any]) -> PartitionFacts:
    """Return the facts that an item was planned from."""
    return PartitionFacts(
        state=EMPTY,
        topic_id=content["topic_id"],
        exists=True,
        committed=content["committed"],
        start=content["start"],
        end=content["end"],
    )


def describe_reset(item: PlannedItem, before: Mapping[str, Any] | None) -> ItemWords:
    content = item.content
    committed = (before or content)["committed"]
    now = "none committed" if committed is None else f"{committed:,}"
    if has_no_target(content):
        return ItemWords(now, "none committed")
    target = resolve_target(content, planned_facts(content)) if before is None else before["target"]
    rule = _describe_rule(content)
    if target is None:
        return ItemWords(now, f"{rule}; offset unknown until the start")
    parts = [f"{target:,}", rule, describe_distance(committed, target)]
    if before is None and content["to"] in _RESOLVED_AT_START:
        parts.append("read again at the start")
    return ItemWords(now, "; ".join(filter(None, parts)))


def _describe_rule(content: Mapping[str, Any]) -> str:
    to = content["to"]
    if to == ResetTarget.TIME:
        return f"first record since {datetime.fromtimestamp(content['at_ms'] / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    if to == ResetTarget.SHIFT:
        return f"shift by {content['by']:+,}"
    return {ResetTarget.EARLIEST: "log start", ResetTarget.LATEST: "log end"}.get(to, "")


def describe_distance(committed: int | None, target: int) -> str:
    """Return how many records a consumer skips or reads again, counted in offsets."""
    if committed is None:
        return "skipped or replayed records unknown"
    if target == committed:
        return "as committed"
    records = choose_plural("# record|# records", abs(target - committed))
    return f"skips {records}" if target > committed else f"replays {records}"


def describe_start(items: Items) -> list[str]:
    """Return sentences about the whole reset, from the offsets as planned."""
    skipped = replayed = unknown = 0
    for item in items:
        committed, target = item.content["committed"], resolve_target(item.content, planned_facts(item.content))
        if committed is None or target is None:
            unknown += 1
        else:
            skipped += max(0, target - committed)
            replayed += max(0, committed - target)
    counted = [
        f"{choose_plural('# record|# records', skipped)} skipped",
        f"{choose_plural('# record|# records', replayed)} replayed",
        *([f"unknown for {choose_plural('# partition|# partitions', unknown)}"] if unknown else []),
    ]
    told = [
        f"{', '.join(counted)}, counted by offsets as of planning.",
        "The group must stay empty until the change ends.",
    ]
    if any(item.content["to"] in _RESOLVED_AT_START for item in items):
        told.append("The rule is approved: log start, log end and times are read again when the change starts.")
    return told


def make_known() -> None:
    make_short_kind_known(
        ShortKind(
            name=KIND,
            label="Offset reset",
            noun="# partition|# partitions",
            batch=BATCH,
            plan=plan_reset,
            read=read_reset,
            send=send_reset,
            facts=(CollectorKind.GROUPS, CollectorKind.METADATA),
            title=GroupCheckTitle.RESET_FITS,
            find_faults=find_faults,
            stale=find_stale,
            risk=find_risk,
            rights=find_rights,
            words=describe_reset,
            start_words=describe_start,
            columns=("Partition", "Committed offset", "Planned"),
            rollback_input=find_rollback,
        )
    )
