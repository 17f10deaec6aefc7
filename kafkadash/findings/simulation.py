"""Simulation of broker failures and their effect on partitions and the quorum, without a call to the cluster.

The rules are those of KRaft (org.apache.kafka.controller.PartitionChangeBuilder): a partition whose leader dies gets
the first replica, in the order of the assignment, that is in the ISR and alive. If the whole ISR dies, the first living
replica of the ELR (KIP-966) leads, and the ISR is that replica; without one the partition goes offline, because an
unclean election cannot be relied on. min.insync.replicas is judged as ``kafka-topics`` does, by the size of the ISR.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

from kafkadash.monitoring.quorum.rules import NodeStatus, QuorumHealth

Kind = Literal["broker", "rack"]


class SimulatedPartition(NamedTuple):
    """A partition as metadata tells it; ``min_isr`` is None where the config was not read.

    ``eligible`` is the ELR; empty where it is unknown or the cluster keeps none.
    """

    topic: str
    number: int
    leader: int | None
    replicas: Sequence[int]
    isr: Sequence[int]
    min_isr: int | None
    eligible: Sequence[int] = ()


def _remaining_isr(partition: SimulatedPartition, living: Collection[int]) -> tuple[int, ...]:
    """Return the ISR once only ``living`` brokers are left, in the order of the replicas; empty: no clean leader."""
    left = tuple(r for r in partition.replicas if r in partition.isr and r in living)
    if left or not partition.eligible:
        return left
    return tuple(r for r in partition.replicas if r in partition.eligible and r in living)[:1]


class HitPartition(NamedTuple):
    """A partition that loses members of its ISR; ``left`` is its ISR then, in the order of the replicas."""

    partition: SimulatedPartition
    left: tuple[int, ...]

    @property
    def leader_then(self) -> int | None:
        """Return its leader if that is alive, else the first replica that is; None if none is."""
        leader = self.partition.leader
        return leader if leader in self.left else next(iter(self.left), None)

    @property
    def by_elr(self) -> bool:
        """Return whether a replica of the ELR leads then, because the whole ISR dies."""
        return bool(self.left) and self.left[0] not in self.partition.isr


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """A survivor: leaders now and then, and the replicas it holds (they do not change)."""

    leaders_now: int
    leaders_then: int
    replicas: int

    @property
    def gained(self) -> int:
        return self.leaders_then - self.leaders_now


@dataclass(slots=True)
class SimulationResult:
    """Effects of the death of some brokers. The lists are disjoint but for ``moving``, whose leader changes.

    ``offline``: no member of the ISR is left, and none of the ELR. ``by_elr`` are those of ``moving`` that only the ELR
    keeps online. ``under_min_isr``: fewer than min.insync.replicas are left, so writes
    with acks=all fail that do not fail now. ``at_min_isr``: exactly min.insync.replicas are left. ``…_now`` count
    partitions already in that state; ``unknown_min_isr`` partitions are hit, but their min.insync.replicas is not
    known. ``load`` has every survivor, ``leaders_of_dead`` how many partitions each of the dead leads now.
    """

    partitions: int = 0
    offline_now: int = 0
    under_now: int = 0
    at_now: int = 0
    min_isr_known: int = 0
    unknown_min_isr: int = 0
    offline: list[HitPartition] = field(default_factory=list)
    under_min_isr: list[HitPartition] = field(default_factory=list)
    at_min_isr: list[HitPartition] = field(default_factory=list)
    moving: list[HitPartition] = field(default_factory=list)
    at_then: int = 0
    load: dict[int, BrokerLoad] = field(default_factory=dict)
    leaders_of_dead: dict[int, int] = field(default_factory=dict)

    @property
    def by_elr(self) -> int:
        return sum(hit.by_elr for hit in self.moving)

    @property
    def busiest(self) -> tuple[int, BrokerLoad] | None:
        """The survivor that leads most afterwards."""
        return max(self.load.items(), key=lambda item: (item[1].leaders_then, -item[0]), default=None)


def simulate_failure(
    partitions: Iterable[SimulatedPartition], alive: Collection[int], dying: Collection[int]
) -> SimulationResult:
    """Return the effects if ``dying`` die now. ``alive``: brokers that serve now; only these can become leaders."""
    result = SimulationResult()
    dead, living = frozenset(dying), frozenset(alive) - frozenset(dying)
    now: Counter[int] = Counter()
    then: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    for partition in partitions:
        result.partitions += 1
        replicas.update(partition.replicas)
        leader, isr, least = partition.leader, partition.isr, partition.min_isr
        result.min_isr_known += least is not None
        at_now = least is not None and len(isr) == least
        result.at_now += at_now
        if leader is None:
            result.offline_now += 1
            result.under_now += least is not None
            result.at_then += at_now
            continue
        now[leader] += 1
        under_now = least is not None and len(isr) < least
        result.under_now += under_now
        if dead.isdisjoint(isr) and leader not in dead:
            then[leader] += 1
            result.at_then += at_now
            continue
        hit = HitPartition(partition, _remaining_isr(partition, living))
        if not hit.left:
            result.offline.append(hit)
            continue
        if leader in dead:
            result.moving.append(hit)
            then[hit.left[0]] += 1
        else:
            then[leader] += 1
        if least is None:
            result.unknown_min_isr += 1
        elif len(hit.left) < least:
            if not under_now:
                result.under_min_isr.append(hit)
        elif len(hit.left) == least:
            result.at_min_isr.append(hit)
            result.at_then += 1
    result.leaders_of_dead = {broker: now[broker] for broker in sorted(dead)}
    result.load = {broker: BrokerLoad(now[broker], then[broker], replicas[broker]) for broker in sorted(living)}
    return result


@dataclass(frozen=True, slots=True)
class BrokerLoss:
    """Row of the N−1 report: counts of partitions that the loss puts into a state (as ``SimulationResult``)."""

    kind: Kind
    name: str
    brokers: tuple[int, ...]
    offline: int
    under_min_isr: int
    at_min_isr: int
    moving: int
    unknown_min_isr: int
    busiest: int | None
    busiest_now: int
    busiest_then: int

    @property
    def severity(self) -> tuple[int, int, int, int]:
        return self.offline, self.under_min_isr, self.at_min_isr, self.moving


class _LossCounts:
    """Counts of one loss, while partitions are counted."""

    __slots__ = ("at", "gains", "moving", "offline", "under", "unknown")

    def __init__(self) -> None:
        self.offline = self.under = self.at = self.moving = self.unknown = 0
        self.gains: Counter[int] = Counter()

    def count(self, left: int, least: int | None, *, already_under: bool) -> None:
        """Count one partition with ``left`` surviving members of the ISR."""
        if left == 0:
            self.offline += 1
        elif least is None:
            self.unknown += 1
        elif left < least:
            self.under += not already_under
        elif left == least:
            self.at += 1

    def move(self, new_leader: int | None) -> None:
        """Count one partition whose leader dies. Without a new leader it is offline and does not move."""
        if new_leader is not None:
            self.moving += 1
            self.gains[new_leader] += 1


def single_losses(partitions: Iterable[SimulatedPartition], racks: Mapping[int, str | None]) -> list[BrokerLoss]:
    """Return the effects of the loss of each single broker and of each single rack, worst first, in one pass.

    ``racks``: every broker that serves now → its rack, None where it names none (then it dies with no rack).
    """
    brokers: defaultdict[int, _LossCounts] = defaultdict(_LossCounts)
    by_rack: defaultdict[str, _LossCounts] = defaultdict(_LossCounts)
    leaders: Counter[int] = Counter()
    for _, _, leader, replicas, isr, least, eligible in partitions:
        if leader is None:
            continue
        leaders[leader] += 1
        living = [r for r in replicas if r in isr and r in racks]
        spare = [r for r in replicas if r in eligible and r in racks and r not in isr] if eligible else []
        size = len(living)
        under = least is not None and len(isr) < least
        of_racks = [racks[r] for r in living]
        for broker in living:
            brokers[broker].count(size - 1 or min(1, len(spare)), least, already_under=under)
        for rack in set(of_racks):
            if rack is not None:
                left = size - of_racks.count(rack) or min(1, sum(racks[r] != rack for r in spare))
                by_rack[rack].count(left, least, already_under=under)
        if leader in living:
            home = racks[leader]
            heirs = [*living, *spare]
            brokers[leader].move(next((r for r in heirs if r != leader), None))
            if home is not None:
                by_rack[home].move(next((r for r in heirs if racks[r] != home), None))
    members: defaultdict[str, list[int]] = defaultdict(list)
    for broker, rack in sorted(racks.items()):
        if rack is not None:
            members[rack].append(broker)
    most_leading = sorted(racks, key=lambda b: (-leaders[b], b))
    rows = [_loss("broker", str(b), (b,), brokers[b], leaders, most_leading) for b in racks]
    rows += [_loss("rack", rack, tuple(own), by_rack[rack], leaders, most_leading) for rack, own in members.items()]
    return sorted(rows, key=lambda row: (*(-n for n in row.severity), row.kind == "broker", row.brokers))


def _loss(
    kind: Kind,
    name: str,
    dying: tuple[int, ...],
    seen: _LossCounts,
    leaders: Counter[int],
    most_leading: Sequence[int],
) -> BrokerLoss:
    # Of those that gain nothing, the one that leads most may still be the busiest.
    gone = frozenset(dying)
    candidates = [*seen.gains, *islice((b for b in most_leading if b not in gone), 1)]
    busiest = max(candidates, key=lambda b: (leaders[b] + seen.gains[b], -b), default=None)
    return BrokerLoss(
        kind=kind,
        name=name,
        brokers=dying,
        offline=seen.offline,
        under_min_isr=seen.under,
        at_min_isr=seen.at,
        moving=seen.moving,
        unknown_min_isr=seen.unknown,
        busiest=busiest,
        busiest_now=0 if busiest is None else leaders[busiest],
        busiest_then=0 if busiest is None else leaders[busiest] + seen.gains[busiest],
    )


@dataclass(frozen=True, slots=True)
class QuorumAfter:
    """The voters after the loss. A combined node is broker and voter in one process, and dies as both.

    ``apart``: voters that are no brokers; Kafka does not tell where they run, so they may or may not die too.
    ``unheard_then``: voters that live on but were not heard from since the leader changed; they may be in sync.
    """

    voters: int
    majority: int
    in_sync_now: int
    in_sync_then: int
    dying: tuple[int, ...]
    apart: int
    unheard_then: int = 0

    @property
    def lost(self) -> bool:
        return self.in_sync_then + self.unheard_then < self.majority

    @property
    def doubtful(self) -> bool:
        """Return whether the majority depends on voters that were not heard from since the leader changed."""
        return not self.lost and self.in_sync_then < self.majority

    @property
    def certain(self) -> bool:
        """Return whether the result is known: quorum lost, or no voter ``apart`` and majority not ``doubtful``."""
        return self.lost or not (self.apart or self.doubtful)

    @property
    def survives(self) -> int:
        """How many more voters may fail then."""
        return max(0, self.in_sync_then - self.majority)


def quorum_after(quorum: QuorumHealth, brokers: Collection[int], dying: Collection[int]) -> QuorumAfter:
    """The quorum if these brokers die. ``brokers``: ids of all that are known, also of those that are not listed."""
    healthy = [v.node.id for v in quorum.voters if v.status in (NodeStatus.LEADER, NodeStatus.IN_SYNC)]
    unheard = [v.node.id for v in quorum.voters if v.status is NodeStatus.UNKNOWN]
    combined = tuple(v.node.id for v in quorum.voters if v.node.id in brokers and v.node.id in dying)
    return QuorumAfter(
        voters=len(quorum.voters),
        majority=quorum.majority,
        in_sync_now=len(healthy),
        in_sync_then=sum(voter not in combined for voter in healthy),
        dying=combined,
        apart=sum(v.node.id not in brokers for v in quorum.voters),
        unheard_then=sum(voter not in combined for voter in unheard),
    )
