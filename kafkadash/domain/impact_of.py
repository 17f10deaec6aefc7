"""Reckons what a plan does to a cluster, in one pass over its rows and one over the cluster's partitions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kafkadash.domain.impact import BrokerImpact, Impact, RowException, TopicImpact
from kafkadash.domain.impact_watch import watch_list
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.topology import Partition, Topic, Topology
from kafkadash.domain.rack_spread import spread
from kafkadash.domain.wording import count

LARGE_SHARE_OF_DISK = 0.1
_LARGEST, _IN_DANGER, _FEWER, _RACK, _LARGE, _FEW, _INTERNAL, _MORE, _ORDER = range(9)


@dataclass(slots=True)
class Load:
    """A broker's replicas while they are counted. ``unsized`` replicas are missing in the bytes."""

    replicas: int = 0
    leaders: int = 0
    bytes: int = 0
    unsized: int = 0


@dataclass(slots=True)
class Sums:
    """What is added up over the rows."""

    moved: Counter[str] = field(default_factory=Counter)
    copied: Counter[str] = field(default_factory=Counter)
    unsized: Counter[str] = field(default_factory=Counter)
    leaders: Counter[str] = field(default_factory=Counter)
    leaving: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    arriving: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    factor: dict[str, int] = field(default_factory=dict)
    bytes_in: Counter[int] = field(default_factory=Counter)
    bytes_out: Counter[int] = field(default_factory=Counter)
    inbound: defaultdict[tuple[int, str], float] = field(default_factory=lambda: defaultdict(float))
    inbound_known: bool = True
    touched: set[int] = field(default_factory=set)
    only_reordered: int = 0
    rf_up: int = 0
    rf_down: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    min_isr_known: bool = True
    racks_lost: int = 0
    spread_worse: int = 0
    largest: int = 0
    exceptions: list[tuple[int, int, RowException]] = field(default_factory=list)


@dataclass(slots=True)
class WholeCluster:
    """What is added up over all partitions of the cluster. ``unsized`` partitions are missing in the bytes."""

    partitions: int = 0
    bytes: int = 0
    unsized: int = 0
    violations_before: int = 0
    violations_after: int = 0
    before: defaultdict[int, Load] = field(default_factory=lambda: defaultdict(Load))
    after: defaultdict[int, Load] = field(default_factory=lambda: defaultdict(Load))


def impact_of(
    rows: Sequence[Row], topology: Topology, *, disk_limit: float | None = None, elect_leaders: bool = True
) -> Impact:
    """What running ``rows`` does to ``topology``; rows of partitions that are not there count for nothing.

    ``disk_limit``: 0 to 1 of a disk. Afterwards a moved partition is led by the first replica of its target that is
    alive; without ``elect_leaders`` its leader stays where it is kept.
    """
    reckoning = _Reckoning(topology, elect_leaders)
    partitions = {
        topic: {p.partition: p for p in topology.topics[topic].partitions} for topic in _topics(rows, topology)
    }
    known = [
        (row, partitions[row.topic][row.partition]) for row in rows if row.partition in partitions.get(row.topic, ())
    ]
    for row, partition in known:
        reckoning.row(row, partition)
    reckoning.mark_largest(known)
    targets = {(row.topic, row.partition): row for row, _ in known}
    return reckoning.result(targets, disk_limit)


def leader_after(row: Row, partition: Partition, alive: frozenset[int], *, elect_leaders: bool) -> int | None:
    """Who leads the partition once the row is done and preferred leaders were elected, as far as can be told."""
    if not elect_leaders and partition.leader in row.target:
        return partition.leader
    return next((broker for broker in row.target if broker in alive), None)


def _topics(rows: Sequence[Row], topology: Topology) -> list[str]:
    return [topic for topic in dict.fromkeys(row.topic for row in rows) if topic in topology.topics]


class _Reckoning:
    def __init__(self, topology: Topology, elect_leaders: bool) -> None:
        self._topology = topology
        self._elect = elect_leaders
        self._racks = topology.racks
        self._rack_count = len(set(self._racks.values()))
        self._alive = frozenset(b.id for b in topology.brokers.values() if b.up)
        self._sums = Sums()
        self._uneven: dict[tuple[str, ...], int] = {}

    def row(self, row: Row, partition: Partition) -> None:
        sums, adding, removing = self._sums, row.adding, row.removing
        topic = self._topology.topics[row.topic]
        size = partition.size_bytes
        sums.moved[row.topic] += 1
        sums.factor[row.topic] = max(sums.factor.get(row.topic, 0), len(row.current))
        sums.touched.update(adding, removing)
        sums.leaving[row.topic].update(removing)
        sums.arriving[row.topic].update(adding)
        sums.only_reordered += row.only_reorders
        sums.rf_up += len(row.target) > len(row.current)
        sums.rf_down += len(row.target) < len(row.current)
        then = leader_after(row, partition, self._alive, elect_leaders=self._elect)
        if then != partition.leader:
            sums.leaders[row.topic] += 1
            sums.touched.update(broker for broker in (then, partition.leader) if broker is not None)
        if adding:
            self._copies(row, partition, size)
        why = self._why(row, partition, topic, adding, removing, size)
        if why:
            copied = size * len(adding) if size is not None else None
            exception = RowException(row.topic, row.partition, tuple(words for _, words in why), copied)
            sums.exceptions.append((min(rank for rank, _ in why), -(copied or 0), exception))

    def _copies(self, row: Row, partition: Partition, size: int | None) -> None:
        sums, adding = self._sums, row.adding
        source = partition.leader if partition.leader is not None else row.current[0]
        if size is None:
            sums.unsized[row.topic] += 1
        else:
            sums.copied[row.topic] += size * len(adding)
            sums.largest = max(sums.largest, size)
            sums.bytes_out[source] += size * len(adding)
            for broker in adding:
                sums.bytes_in[broker] += size
        if partition.bytes_in_per_s is None:
            sums.inbound_known = False
        else:
            sums.inbound[source, "out"] += partition.bytes_in_per_s * len(adding)
            for broker in adding:
                sums.inbound[broker, "in"] += partition.bytes_in_per_s

    def _why(
        self,
        row: Row,
        partition: Partition,
        topic: Topic,
        adding: tuple[int, ...],
        removing: tuple[int, ...],
        size: int | None,
    ) -> list[tuple[int, str]]:
        """(rank, words) of what makes a row worth a look."""
        sums, why = self._sums, []
        if topic.min_isr is None:
            sums.min_isr_known = False
        elif len(partition.isr) < topic.min_isr:
            sums.under_min_isr += 1
            why.append((_IN_DANGER, "under min-ISR now"))
        elif len(partition.isr) == topic.min_isr and len(partition.isr) < len(partition.replicas):
            sums.at_min_isr += 1
            why.append((_IN_DANGER, "at min-ISR now"))
        if len(row.target) < len(row.current):
            why.append((_FEWER, f"goes from {len(row.current)} to {count(len(row.target), 'replica')}"))
        change = self._rack_change(row, adding, removing)
        if change:
            why.append((_RACK, change))
        for broker in adding:
            disk = self._topology.brokers[broker].disk_bytes if broker in self._topology.brokers else None
            if size is not None and disk and size > LARGE_SHARE_OF_DISK * disk:
                why.append((_LARGE, f"{100 * size / disk:.0f} % of the disk of broker {broker}"))
        if len(row.target) <= 2:
            why.append((_FEW, f"{count(len(row.target), 'replica')} only"))
        if topic.internal:
            why.append((_INTERNAL, "internal topic"))
        if len(row.target) > len(row.current):
            why.append((_MORE, f"goes from {count(len(row.current), 'replica')} to {len(row.target)}"))
        if row.only_reorders:
            why.append((_ORDER, "only the order changes"))
        return why

    def _rack_change(self, row: Row, adding: tuple[int, ...], removing: tuple[int, ...]) -> str:
        """ "changes rack a → b" where replicas leave racks for others."""
        racks = self._racks
        if not racks or not adding:
            return ""
        before = {racks[broker] for broker in row.current if broker in racks}
        after = {racks[broker] for broker in row.target if broker in racks}
        fewer = len(after) < len(before)
        self._sums.racks_lost += fewer
        self._sums.spread_worse += fewer or self._moves_to_even(row.target) > self._moves_to_even(row.current)
        left, reached = (
            Counter(racks[b] for b in removing if b in racks),
            Counter(racks[b] for b in adding if b in racks),
        )
        gone, new = sorted((left - reached).elements()), sorted((reached - left).elements())
        if not gone or not new:
            return ""
        return f"changes rack {', '.join(dict.fromkeys(gone))} → {', '.join(dict.fromkeys(new))}"

    def mark_largest(self, known: Sequence[tuple[Row, Partition]]) -> None:
        """The largest move comes first, whatever else there is to say about it."""
        sized = [(p.size_bytes, row) for row, p in known if p.size_bytes and row.adding]
        if not sized:
            return
        size, row = max(sized, key=lambda one: (one[0], one[1].topic, -one[1].partition))
        sums = self._sums
        why: tuple[str, ...] = ("largest move",)
        for index, (_, _, other) in enumerate(sums.exceptions):
            if (other.topic, other.partition) == (row.topic, row.partition):
                why += other.why
                del sums.exceptions[index]
                break
        copied = (size or 0) * len(row.adding)
        sums.exceptions.append((_LARGEST, -copied, RowException(row.topic, row.partition, why, copied)))

    def result(self, targets: Mapping[tuple[str, int], Row], disk_limit: float | None) -> Impact:
        """The impact of all rows that were counted; ``targets`` are the same rows."""
        sums, whole = self._sums, self._whole_cluster(targets)
        brokers = self._brokers(whole)
        unsized, copied = sum(sums.unsized.values()), sum(sums.copied.values())
        sized = not unsized
        binding_broker, binding_direction, binding_bytes = _binding(sums) if sized else (None, "", None)
        internal = tuple(sorted(name for name in sums.moved if self._topology.topics[name].internal))
        impact = Impact(
            partitions_moved=len(targets),
            partitions_total=whole.partitions,
            topics_moved=len(sums.moved),
            topics_total=len(self._topology.topics),
            internal_topics=internal,
            internal_partitions=sum(sums.moved[name] for name in internal),
            brokers_touched=len(sums.touched),
            brokers_total=len(brokers),
            emptied=tuple(b.id for b in brokers if b.replicas_before and not b.replicas_after),
            copied_bytes=copied if sized else None,
            unsized=unsized,
            total_bytes=None if whole.unsized else whole.bytes,
            leaders_moved=sum(sums.leaders.values()),
            only_reordered=sums.only_reordered,
            rf_up=sums.rf_up,
            rf_down=sums.rf_down,
            under_min_isr=sums.under_min_isr if sums.min_isr_known else None,
            at_min_isr=sums.at_min_isr if sums.min_isr_known else None,
            violations_before=whole.violations_before if self._racks else None,
            violations_after=whole.violations_after if self._racks else None,
            racks_lost=sums.racks_lost if self._racks else None,
            largest_bytes=sums.largest if sized else None,
            binding_broker=binding_broker,
            binding_direction=binding_direction,
            binding_bytes=binding_bytes,
            inbound_bytes_per_s=_inbound(sums),
            brokers=brokers,
            topics=self._topics(),
            exceptions=tuple(one for _, _, one in sorted(sums.exceptions, key=_by_rank)),
            watch=(),
            known_bytes=copied,
            disk_limit=disk_limit,
            spread_worse=sums.spread_worse if self._racks else None,
        )
        return watch_list(impact, targets, self._topology)

    def _whole_cluster(self, targets: Mapping[tuple[str, int], Row]) -> WholeCluster:
        """Where every partition of the cluster is now and will be, also of those that stay."""
        whole = WholeCluster()
        for name, topic in self._topology.topics.items():
            for p in topic.partitions:
                row = targets.get((name, p.partition))
                whole.partitions += 1
                if p.size_bytes is None:
                    whole.unsized += 1
                else:
                    whole.bytes += p.size_bytes * len(p.replicas)
                then, leader = p.replicas, p.leader
                if row is not None:
                    then, leader = row.target, leader_after(row, p, self._alive, elect_leaders=self._elect)
                _place(whole.before, p.replicas, p.size_bytes, p.leader)
                _place(whole.after, then, p.size_bytes, leader)
                if self._racks:
                    violates = self._moves_to_even(p.replicas) > 0
                    whole.violations_before += violates
                    whole.violations_after += violates if row is None else self._moves_to_even(then) > 0
        return whole

    def _brokers(self, whole: WholeCluster) -> tuple[BrokerImpact, ...]:
        """Every broker that is registered, or holds replicas before or afterwards."""
        registered = {id_ for id_, broker in self._topology.brokers.items() if broker.alive}
        ids = sorted({*whole.before, *whole.after, *registered})
        return tuple(self._broker(id_, whole.before[id_], whole.after[id_]) for id_ in ids)

    def _broker(self, id_: int, before: Load, after: Load) -> BrokerImpact:
        known = self._topology.brokers.get(id_)
        bytes_before = None if before.unsized else before.bytes
        bytes_in = self._sums.bytes_in[id_]
        used = known.used_bytes if known and known.used_bytes is not None else bytes_before
        arriving_unsized = after.unsized > before.unsized
        return BrokerImpact(
            id=id_,
            rack=known.rack if known else None,
            replicas_before=before.replicas,
            replicas_after=after.replicas,
            leaders_before=before.leaders,
            leaders_after=after.leaders,
            bytes_before=bytes_before,
            bytes_after=None if after.unsized else after.bytes,
            peak_bytes=None if used is None or arriving_unsized else used + bytes_in,
            disk_bytes=known.disk_bytes if known else None,
            bytes_in=bytes_in,
            bytes_out=self._sums.bytes_out[id_],
            alive=id_ in self._alive,
        )

    def _topics(self) -> tuple[TopicImpact, ...]:
        sums = self._sums
        exceptions = Counter(one.topic for _, _, one in sums.exceptions)
        topics = [
            TopicImpact(
                topic=name,
                internal=self._topology.topics[name].internal,
                moved=moved,
                partitions=len(self._topology.topics[name].partitions),
                copied_bytes=None if sums.unsized[name] else sums.copied[name],
                leaving=tuple(sorted(sums.leaving[name])),
                arriving=tuple(sorted(sums.arriving[name])),
                leaders_moved=sums.leaders[name],
                exceptions=exceptions[name],
                replication_factor=sums.factor[name],
            )
            for name, moved in sums.moved.items()
        ]
        return tuple(sorted(topics, key=lambda topic: (-sums.copied[topic.topic], -topic.moved, topic.topic)))

    def _moves_to_even(self, replicas: tuple[int, ...]) -> int:
        """0 is no violation. Remembered by the racks of the replicas, of which there are few combinations."""
        key = tuple(self._racks.get(broker, "\0") for broker in replicas)
        known = self._uneven.get(key)
        if known is None:
            known = self._uneven[key] = spread(replicas, self._racks, self._rack_count).moves
        return known


def _place(loads: defaultdict[int, Load], replicas: tuple[int, ...], size: int | None, leader: int | None) -> None:
    for broker in replicas:
        load = loads[broker]
        load.replicas += 1
        if size is None:
            load.unsized += 1
        else:
            load.bytes += size
    if leader is not None:
        loads[leader].leaders += 1


def _binding(sums: Sums) -> tuple[int | None, str, int]:
    """The broker and direction through which most is copied, with its bytes; no broker where nothing is copied."""
    amounts = [(amount, "in", id_) for id_, amount in sums.bytes_in.items()]
    amounts += [(amount, "out", id_) for id_, amount in sums.bytes_out.items()]
    if not amounts:
        return None, "", 0
    amount, direction, broker = max(amounts, key=lambda one: (one[0], one[1] == "in", -one[2]))
    return broker, direction, amount


def _inbound(sums: Sums) -> float | None:
    """What producers add to all that is copied through one broker at the worst of them; None where not known."""
    if not sums.inbound_known:
        return None
    copies = bool(sums.copied) or any(sums.unsized.values())
    return max(sums.inbound.values(), default=0) if copies else 0


def _by_rank(one: tuple[int, int, RowException]) -> tuple[int, int, str, int]:
    rank, size, exception = one
    return rank, size, exception.topic, exception.partition
