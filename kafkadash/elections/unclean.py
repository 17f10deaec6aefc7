"""The kind of change "unclean-election": a leader that lacks records, where no other is left (KIP-460, KIP-966).

Each item is one partition without a leader. Kafka chooses among its live replicas, and what the chosen one does not
have is lost for good. An item is reached once the approved broker leads, or one that has all committed records. It is
ready while no live replica is in the ISR or the ELR, its leader epoch is the approved one, and Kafka would choose the
approved broker, where one was certain. It does not fit otherwise: with another leader epoch it had a leader since, so
other records would be lost than those that were approved.

The rules of the choice are those of org.apache.kafka.controller.PartitionChangeBuilder.electAnyLeader.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kafkadash.changes.rights import NeededRight
from kafkadash.changes.risk import RiskFacts
from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.core.formatting import format_duration, join_items
from kafkadash.core.messages import CodedReason, PlainReason, choose_plural, coded
from kafkadash.elections.errors import ElectionCheckTitle, ElectionErrorCode
from kafkadash.elections.kind import BATCH, find_other_partition
from kafkadash.elections.reasons import ChoiceChanged, CleanPossible, ElectionReasonCode, LedAgain, LedByAnother
from kafkadash.kafka.api import ELECTION_NOT_NEEDED, ItemChanged, NotSupported, TopicPartition, WholeClient
from kafkadash.monitoring.eligible_replicas import LeaderCandidates, load_candidates
from kafkadash.monitoring.freshness import read_statuses
from kafkadash.monitoring.models import BrokerState, CollectorKind, TopicState
from kafkadash.monitoring.traffic.collector import read_log_ends
from kafkadash.short_runs.change_kind import make_short_kind_known
from kafkadash.short_runs.kinds import (
    UNCLEAN_APPROVALS,
    Items,
    ItemWords,
    PlannedItems,
    ShortKind,
    doubt_refusals,
    find_partitions,
    name_answers,
)
from kafkadash.short_runs.plans import share_of_partitions
from kafkadash.short_runs.state import ItemReading, PlannedItem, ReadingState, name_or_count

KIND = "unclean-election"


@dataclass(frozen=True, slots=True)
class LeaderlessPartition:
    """A partition as an election finds it. ``live``: its replicas on live brokers and directories, in their order.

    ``eligible`` and ``last_known`` are None where no broker offers them (KIP-966). ``leader_epoch`` grows with each
    change of the leader, also to none; None before Kafka 2.1.
    """

    leader: int | None
    leader_epoch: int | None
    isr: tuple[int, ...]
    live: tuple[int, ...]
    eligible: tuple[int, ...] | None
    last_known: tuple[int, ...] | None

    @property
    def clean(self) -> int | None:
        """Return a live replica with all committed records, which Kafka elects by itself."""
        return next((broker for broker in self.live if broker in {*self.isr, *(self.eligible or ())}), None)

    @property
    def choice(self) -> int | None:
        """Return the broker that Kafka elects; None where that is not certain.

        The first live replica, but for an empty ISR and ELR: then a single last known leader is elected if it is live.
        Kafka 4.0 elects it even if it is not (KAFKA-19522). Before KIP-966 the ISR is never empty.
        """
        if not self.live:
            return None
        if not self.isr and not self.eligible:
            if self.eligible is None or self.last_known is None:
                return None
            if len(self.last_known) == 1:
                return self.last_known[0] if self.last_known[0] in self.live else None
        return self.live[0]


def judge_unclean(
    item: PlannedItem, topic_id: str | None, replicas: Sequence[int], found: LeaderlessPartition
) -> ItemReading:
    """Compare an item with its partition. ``topic_id`` is None where there is no such partition."""
    if other := find_other_partition(item, topic_id, replicas):
        return ItemReading(ReadingState.UNFIT, other)
    wanted, leader, before = item.content, found.leader, {"leader": found.leader}
    if leader is not None:
        if leader in {*wanted["isr"], *(wanted["elr"] or ())}:
            return ItemReading(ReadingState.REACHED, LedAgain(leader), before)
        if wanted["choice"] not in (None, leader):
            return ItemReading(ReadingState.UNFIT, LedByAnother(leader, wanted["choice"]), before)
        return ItemReading(ReadingState.REACHED, found=before)
    if found.clean is not None:
        return ItemReading(ReadingState.UNFIT, CleanPossible(found.clean), before)
    if not found.live:
        return ItemReading(ReadingState.UNFIT, PlainReason(ElectionReasonCode.NO_REPLICA_LIVE), before)
    if found.leader_epoch != wanted.get("leader_epoch"):
        return ItemReading(ReadingState.UNFIT, PlainReason(ElectionReasonCode.LED_SINCE), before)
    if wanted["choice"] not in (None, found.choice):
        now = "uncertain" if found.choice is None else f"broker {found.choice}"
        return ItemReading(ReadingState.UNFIT, ChoiceChanged(now, wanted["choice"]), before)
    return ItemReading(ReadingState.READY, found=before)


def read_unclean(_: Cluster, client: WholeClient, items: Items, deadline: float) -> Mapping[str, ItemReading]:
    """Read partitions with Metadata and, where brokers offer it, with DescribeTopicPartitions. Raises KafkaFailure."""
    names = sorted({item.content["topic"] for item in items})
    wanted: dict[str, list[int]] = {name: [] for name in names}
    for item in items:
        wanted[item.content["topic"]].append(item.content["partition"])
    try:
        eligible = client.eligible_replicas(wanted, deadline=deadline / 2)
    except NotSupported:
        eligible = {}
    answer = client.metadata(deadline=deadline / 2, topics=names)
    brokers = {broker.id for broker in answer.brokers}
    found = find_partitions(answer, items)
    readings = {}
    for item in items:
        if item.subject not in found:
            continue
        own = found[item.subject]
        if own is None:
            readings[item.subject] = judge_unclean(item, None, (), _NOTHING)
            continue
        topic_id, p = own
        lists = eligible.get(TopicPartition(item.content["topic"], p.partition))
        live = tuple(broker for broker in p.replicas if broker in brokers and broker not in p.offline)
        known = (lists.eligible, lists.last_known) if lists else (None, None)
        partition = LeaderlessPartition(p.leader, p.leader_epoch, p.isr, live, *known)
        readings[item.subject] = judge_unclean(item, topic_id, p.replicas, partition)
    return readings


_NOTHING = LeaderlessPartition(None, None, (), (), None, None)


def send_unclean(client: WholeClient, items: Items, deadline: float) -> ItemChanged[str]:
    """Elect with one ElectLeaders request (43), unclean.

    Kafka leaves a partition alone that has a leader by then (84), which a reading settles: it may have all records.
    """
    subjects = {TopicPartition(item.content["topic"], item.content["partition"]): (item.subject,) for item in items}
    answer = client.elect_leaders(list(subjects), deadline=deadline, unclean=True)
    return doubt_refusals(name_answers(answer, subjects), ELECTION_NOT_NEEDED)


def plan_unclean(cluster: Cluster, wanted: Mapping[str, Any]) -> PlannedItems:
    """Plan elections of partitions without a leader, of one ``topic`` where the input names it. Five queries.

    An item holds all that its approvers see: ISR, ELR, the last end that a leader told, and what live replicas have.
    An ELR that is older than the newest metadata is unknown.
    """
    metadata = read_statuses([cluster.pk])[cluster.pk].get(CollectorKind.METADATA)
    rows = TopicState.objects.filter(cluster=cluster, format=1, offline_partitions__gt=0)
    rows = rows.filter(name=wanted["topic"]) if "topic" in wanted else rows
    stored = list(_load_partitions(cluster, rows.order_by("name"), metadata.taken_at if metadata else None))
    ends = read_log_ends(cluster, {each.topic for each in stored})
    items, clean, dead = [], 0, 0
    for each in stored:
        if each.found.leader is not None:
            continue
        if each.found.clean is not None:
            clean += 1
        elif not each.found.live:
            dead += 1
        else:
            own = ends.get(each.topic)
            known = own.ends.get(each.partition) if own is not None and own.topic_id == each.topic_id else None
            items.append(PlannedItem(f"{each.topic}-{each.partition}", _pack_item(each, known)))
    left_out = [coded(ElectionErrorCode.CLEAN_LEFT_OUT, partitions=clean)] if clean else []
    left_out += [coded(ElectionErrorCode.NO_REPLICA_LEFT_OUT, partitions=dead)] if dead else []
    return PlannedItems(items, left_out)


@dataclass(frozen=True, slots=True)
class StoredLeaderless:
    """A partition as stored; ``candidates`` is None where nothing was read of it."""

    topic: str
    topic_id: str
    partition: int
    replicas: tuple[int, ...]
    found: LeaderlessPartition
    candidates: LeaderCandidates | None


def _load_partitions(cluster: Cluster, rows: Any, since: datetime | None = None) -> Iterator[StoredLeaderless]:
    """Yield the partitions of these topics; an ELR that was read before ``since`` is unknown. Three queries."""
    topics = list(rows.values_list("name", "topic_id", "partitions"))
    candidates = load_candidates(cluster, [topic_id for _, topic_id, _ in topics])
    brokers = set(
        BrokerState.objects.filter(cluster=cluster, gone_at=None)
        .exclude(fenced=True)
        .values_list("broker_id", flat=True)
    )
    for name, topic_id, partitions in topics:
        for number, leader, epoch, replicas, isr, offline in partitions:
            own = candidates.get((topic_id, number))
            live = tuple(broker for broker in replicas if broker in brokers and broker not in offline)
            fresh = own is not None and (since is None or own.taken_at >= since)
            lists = (own.eligible, own.last_known) if own and fresh else (None, None)
            found = LeaderlessPartition(leader, epoch, tuple(isr), live, *lists)
            yield StoredLeaderless(name, topic_id, number, tuple(replicas), found, own)


def _pack_item(each: StoredLeaderless, leader_end: tuple[int, float] | None) -> dict[str, Any]:
    """``ends``: [broker, log end or null, seconds since the epoch or null] of live replicas, in the order of choice.

    ``elr_at``: when the ELR was read, in seconds since the epoch; null where it is unknown.
    """
    known = each.candidates.ends if each.candidates else {}
    elr_at = None
    if each.candidates is not None and each.found.eligible is not None:
        elr_at = round(each.candidates.taken_at.timestamp(), 3)
    ends: list[list[float | None]] = []
    for broker in each.found.live:
        end, at = known.get(broker, (None, None))
        ends.append([broker, end, None if at is None else round(at.timestamp(), 3)])
    return {
        "topic": each.topic,
        "topic_id": each.topic_id,
        "partition": each.partition,
        "leader_epoch": each.found.leader_epoch,
        "replicas": list(each.replicas),
        "isr": list(each.found.isr),
        "elr": None if each.found.eligible is None else list(each.found.eligible),
        "last_known": None if each.found.last_known is None else list(each.found.last_known),
        "elr_at": elr_at,
        "choice": each.found.choice,
        "leader_end": None if leader_end is None else list(leader_end),
        "ends": ends,
    }


def find_faults(cluster: Cluster, items: Items) -> dict[str, CodedReason]:
    """Return why items do not fit partitions as stored. Three queries."""
    rows = TopicState.objects.filter(cluster=cluster, format=1, name__in={item.content["topic"] for item in items})
    found = {(each.topic, each.partition): each for each in _load_partitions(cluster, rows)}
    faults = {}
    for item in items:
        own = found.get((item.content["topic"], item.content["partition"]))
        reading = (
            judge_unclean(item, None, (), _NOTHING)
            if own is None
            else judge_unclean(item, own.topic_id, own.replicas, own.found)
        )
        if reading.state is ReadingState.UNFIT and reading.reason is not None:
            faults[item.subject] = reading.reason
    return faults


def find_risk(cluster: Cluster, items: Items) -> RiskFacts:
    return RiskFacts(0.0, share_of_partitions(cluster, len(items)), unclean_elections=len(items))


def count_lost(leader_end: Sequence[float] | None, end: int | None) -> int | None:
    """Return how many records a replica lacks at least; None where its end or the leader's is unknown."""
    return None if leader_end is None or end is None else max(0, int(leader_end[0]) - end)


def describe_unclean(item: PlannedItem, before: Mapping[str, Any] | None) -> ItemWords:
    """Name the choice, and for each live replica the records that would be lost, with the ages of both ends."""
    content, now = item.content, clock.now()
    there = None if before is None else before.get("leader")
    last = content["leader_end"]
    end = "last end of a leader unknown" if last is None else f"last end of a leader {last[0]:,}, {_age(last[1], now)}"
    lists = [f"ISR {_name(content['isr'])}"]
    lists += [f"{word} {_name(content[key])}" for word, key in (("ELR", "elr"), ("last known ELR", "last_known"))]
    if content.get("elr_at") is not None:
        lists[-1] += f", {_age(content['elr_at'], now)}"
    leader = "none" if there is None else f"broker {there}"
    return ItemWords(
        f"{leader}; {', '.join(lists)}; {end}",
        f"{_name_choice(content['choice'])} leads, without the records that are missing there",
        [_describe_candidate(content, broker, own, at, now) for broker, own, at in content["ends"]],
    )


def _describe_candidate(
    content: Mapping[str, Any], broker: int, end: int | None, at: float | None, now: datetime
) -> str:
    lost = count_lost(content["leader_end"], end)
    loss = "loss unknown" if lost is None else f"at least {choose_plural('# record|# records', lost)} lost"
    marks = ["expected"] if broker == content["choice"] else []
    marks += ["last known ELR"] if broker in (content["last_known"] or ()) else []
    read = "log end unknown" if end is None or at is None else f"log end {end:,}, {_age(at, now)}"
    return f"broker {broker}{f' ({join_items(marks)})' if marks else ''}: {loss}; {read}"


def _age(at: float, now: datetime) -> str:
    return f"{format_duration(max(0.0, (now - datetime.fromtimestamp(at, UTC)).total_seconds()))} ago"


def _name(brokers: Collection[int] | None) -> str:
    return "unknown" if brokers is None else join_items([str(broker) for broker in brokers]) if brokers else "none"


def _name_choice(choice: int | None) -> str:
    return "a replica of Kafka's choice" if choice is None else f"broker {choice}"


def describe_start(items: Items) -> list[str]:
    number = choose_plural("# partition gets a leader|# partitions get leaders", len(items))
    return [
        f"{number} without all committed records. Records are lost for good; there is no rollback.",
        "Kafka chooses the leader: usually the first live replica, in the order of the assignment.",
        "A returning broker of the ISR or ELR would lose nothing: start it first if you can.",
    ]


def make_known() -> None:
    make_short_kind_known(
        ShortKind(
            name=KIND,
            label="Unclean election",
            noun="# partition|# partitions",
            batch=BATCH,
            plan=plan_unclean,
            read=read_unclean,
            send=send_unclean,
            facts=(CollectorKind.METADATA,),
            title=ElectionCheckTitle.UNCLEAN_FITS,
            find_faults=find_faults,
            risk=find_risk,
            rights=lambda _: [NeededRight("Alter")],
            words=describe_unclean,
            start_words=describe_start,
            columns=("Partition", "Leader", "After the election"),
            approvals_needed=UNCLEAN_APPROVALS,
            confirm=name_or_count,
        )
    )
