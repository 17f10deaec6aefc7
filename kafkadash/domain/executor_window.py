"""Which rows may be submitted now, and in what order (04-changes.md §2 and §3, 05-planner.md §7).

A rolling window: as soon as a broker has a free slot, the next row takes it. Content is judged apart from health: what
is no longer as approved ends the row, what is unwell makes it wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kafkadash.domain.executor_look import gone, gone_reason, settled, tells, unhinted
from kafkadash.domain.executor_state import ENDED, Key, Mode, Move, Observation, PartitionSeen, State, Work
from kafkadash.domain.plan import Options
from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.row_reasons import (
    BrokerAway,
    BrokerCordoned,
    BrokerFenced,
    BrokerNotRegistered,
    FactorNotApproved,
    NoLeader,
    NotAsPlanned,
    RateInUse,
    ReassignedByOthers,
    ThereAlready,
    UnderMinIsr,
)
from kafkadash.domain.run_reasons import (
    ListingUnread,
    LookTooOld,
    QuorumSilent,
    RunPaused,
    RunWindowClosed,
    UnderMinIsrBrake,
)

OLDEST_LOOK = timedelta(seconds=30)
"""Nothing is submitted on what was read longer ago."""


@dataclass(frozen=True, slots=True)
class Brake:
    """Min-ISR: ``under`` are partitions for whose sake nothing is submitted, ``halved`` brokers with half the moves."""

    under: tuple[str, ...] = ()
    halved: frozenset[int] = frozenset()

    @property
    def reason(self) -> CodedReason | None:
        """None when nothing is held up."""
        return UnderMinIsrBrake(self.under[0], len(self.under)) if self.under else None


def brake(seen: Observation) -> Brake:
    """A replica that is offline needs no bandwidth and brakes nothing; one that lags while its broker lives does."""
    pressed = [p for p in seen.pressed if p.lagging]
    under = tuple(f"{p.topic}-{p.partition}" for p in pressed if p.under)
    halved = frozenset(broker for p in pressed if len(p.isr) == p.min_isr for broker in p.replicas)
    return Brake(under, halved)


def held(seen: Observation, mode: Mode, now: datetime) -> tuple[CodedReason, ...]:
    """Return why nothing at all is submitted now; the brake has its own reason, as it lets repairs pass."""
    reasons: list[CodedReason] = []
    if mode is Mode.PAUSED:
        reasons.append(RunPaused())
    if not seen.quorum:
        reasons.append(QuorumSilent())
    if not seen.listing:
        reasons.append(ListingUnread())
    if not seen.window_open:
        reasons.append(RunWindowClosed())
    if now - seen.at > OLDEST_LOOK:
        reasons.append(LookTooOld((now - seen.at).total_seconds()))
    return (*reasons, *seen.withheld)


def content(move: Move, seen: Observation, options: Options, now: datetime) -> Move:
    """A row of which nothing was sent: ended if it is not as approved any more, else as it is."""
    row = move.work.row
    if not tells(move, seen):
        return move
    if gone(row, seen):
        return settled(move, State.TOPIC_DELETED, seen.at, now, gone_reason(row, seen))
    partition = seen.partitions[move.work.key]
    if partition.listed is not None:
        return move.to(State.SKIPPED, now, ReassignedByOthers(partition.listed.target))
    if partition.replicas != row.current:
        kind = ThereAlready if partition.replicas == row.target else NotAsPlanned
        why = kind(partition.replicas, row.current)
        return settled(move, State.SKIPPED, seen.at, now, why)
    if len(row.target) != len(row.current) and not options.change_rf:
        return move.to(State.SKIPPED, now, FactorNotApproved(len(row.current), len(row.target)))
    return unhinted(move)


class Health:
    """Judges rows by the brokers of one look."""

    def __init__(self, seen: Observation) -> None:
        self._seen = seen
        self._kept: dict[int, CodedReason] = {}
        self._added: dict[int, CodedReason] = {}
        self._throttled = {id_: broker.others_rate for id_, broker in seen.brokers.items() if broker.others_rate}
        for id_, broker in seen.brokers.items():
            if not broker.alive:
                self._kept[id_] = BrokerAway(id_)
            elif broker.fenced:
                self._kept[id_] = BrokerFenced(id_)
            elif broker.cordoned:
                self._added[id_] = BrokerCordoned(id_)
            elif broker.full:
                self._added[id_] = broker.full

    @property
    def well(self) -> frozenset[int]:
        """Brokers that may be given replicas."""
        return frozenset(self._seen.brokers).difference(self._kept, self._added)

    @property
    def throttled(self) -> frozenset[int]:
        """Brokers whose rate others use, so that it is not ours to set."""
        return frozenset(self._throttled)

    def wrong(self, work: Work) -> CodedReason | None:
        """Why the row has to wait; None when it has not. A row that only reorders copies nothing."""
        if work.only_reorders:
            return None
        if why := self._wrong_with_brokers(work):
            return why
        partition = self._seen.partitions.get(work.key)
        if partition is None or not work.adding:
            return None
        if partition.leader is None:
            return NoLeader()
        if under(partition) and not repairs(work, partition):
            lagging = [b for b in partition.replicas if b not in partition.isr and b not in partition.offline]
            if lagging:
                return UnderMinIsr(tuple(lagging))
        return None

    def _wrong_with_brokers(self, work: Work) -> CodedReason | None:
        for broker in work.row.target:
            if broker not in self._seen.brokers:
                return BrokerNotRegistered(broker)
            if broker in self._kept:
                return self._kept[broker]
        for broker in work.adding:
            if broker in self._added:
                return self._added[broker]
        if self._throttled and work.adding:
            for broker in (*work.row.current, *work.adding):
                if broker in self._throttled:
                    return RateInUse(broker, self._throttled[broker])
        return None


def repairs(work: Work, partition: PartitionSeen) -> bool:
    """Whether the row replaces every missing replica of a partition that has one offline or too few in sync."""
    missing = {broker for broker in partition.replicas if broker not in partition.isr} | partition.offline
    if not missing or not work.adding:
        return False
    return missing <= work.removing and (bool(partition.offline) or under(partition))


def under(partition: PartitionSeen) -> bool:
    return partition.min_isr is not None and len(partition.isr) < partition.min_isr


class Plain:
    """Tells fast that nothing is the matter with a row of which nothing was sent, as with nearly all of a large plan.

    What it lets through, ``content`` and ``Health`` would let through; what it does not, they judge.
    """

    def __init__(self, seen: Observation, options: Options, health: Health) -> None:
        self._topics = {n: t.id for n, t in seen.topics.items() if seen.listing and n not in seen.unread}
        self._partitions, self._well, self._change_rf = seen.partitions, health.well, options.change_rf
        self._throttled = health.throttled

    def __call__(self, move: Move) -> bool:
        work = move.work
        row = work.row
        partition = self._partitions.get(work.key)
        return (
            partition is not None
            and partition.listed is None
            and partition.replicas == row.current
            and self._topics.get(row.topic) == row.topic_id
            and (self._change_rf or len(row.target) == len(row.current))
            and partition.leader is not None
            and (partition.min_isr is None or len(partition.isr) >= partition.min_isr)
            and self._well.issuperset(row.target)
            and (not self._throttled or self._throttled.isdisjoint((*row.current, *row.target)))
            and move.state is State.PENDING
            and move.hint is None
            and move.acted_at is None
        )


class Window:
    """The slots of one step: k per broker, in and out counted apart, N in the cluster, half of each topic."""

    def __init__(self, seen: Observation, options: Options, halved: frozenset[int]) -> None:
        self._seen, self._halved = seen, halved
        self._most = max(1, options.per_broker)
        self._free = max(1, options.per_cluster)
        self._in: Counter[int] = Counter()
        self._out: Counter[int] = Counter()
        self._topics: Counter[str] = Counter()
        self._full_in: set[int] = set()
        self._full_out: set[int] = set()
        self._full_topics: set[str] = set()

    @property
    def full(self) -> bool:
        return self._free <= 0

    def take(self, work: Work) -> None:
        """One that is in flight, or is being submitted."""
        self._free -= 1
        topic = work.row.topic
        self._topics[topic] += 1
        seen = self._seen.topics.get(topic)
        if self._topics[topic] >= (max(1, seen.partitions // 2) if seen else 1):
            self._full_topics.add(topic)
        if work.adding:
            leader = source(work, self._seen)
            self._out[leader] += 1
            if self._out[leader] >= self._limit(leader):
                self._full_out.add(leader)
            for broker in work.adding:
                self._in[broker] += 1
                if self._in[broker] >= self._limit(broker):
                    self._full_in.add(broker)

    def fits(self, work: Work) -> bool:
        if self.full or work.row.topic in self._full_topics:
            return False
        if not work.adding:
            return True
        return self._full_in.isdisjoint(work.adding) and source(work, self._seen) not in self._full_out

    def _limit(self, broker: int) -> int:
        return max(1, self._most // 2) if broker in self._halved else self._most


def source(work: Work, seen: Observation) -> int:
    """The broker that the copies come from: the leader, or the preferred one while there is none."""
    partition = seen.partitions.get(work.key)
    return partition.leader if partition is not None and partition.leader is not None else work.row.current[0]


def ordered(candidates: Iterable[Move], moves: Iterable[Move], seen: Observation) -> list[Move]:
    """Repairs first, then rows that mend the spread over racks, then largest first on the most loaded broker.

    Load is what is still to arrive at, or to leave, a broker by rows that have not ended, in bytes; a row whose size
    is not known counts as the largest that is, so that it does not come last by ignorance.
    """
    known = max((move.work.size_bytes or 0 for move in moves), default=0)
    arriving: Counter[int] = Counter()
    leaving: Counter[int] = Counter()
    for move in moves:
        work = move.work
        if work.adding and move.state not in ENDED:
            size = known if work.size_bytes is None else work.size_bytes
            leaving[source(work, seen)] += size * len(work.adding)
            for broker in work.adding:
                arriving[broker] += size
    return sorted(candidates, key=_rank(seen, arriving, leaving, known))


def _rank(
    seen: Observation, arriving: Counter[int], leaving: Counter[int], unknown: int
) -> Callable[[Move], tuple[int, int, int, Key]]:
    def rank(move: Move) -> tuple[int, int, int, Key]:
        work = move.work
        first = 0 if repairs(work, seen.partitions[work.key]) else 1 if work.mends_racks else 2
        if not work.adding:
            return first, 0, 0, work.key
        load = max(leaving[source(work, seen)], *(arriving[broker] for broker in work.adding))
        return first, -load, -(unknown if work.size_bytes is None else work.size_bytes), work.key

    return rank


def chosen(candidates: Sequence[Move], moves: Sequence[Move], window: Window, seen: Observation) -> list[Move]:
    """Those of the candidates that fit into the window together, in the order in which they are submitted."""
    if window.full:
        return []
    taken = []
    for move in ordered([m for m in candidates if window.fits(m.work)], moves, seen):
        if window.fits(move.work):
            window.take(move.work)
            taken.append(move)
    return taken
