"""Impact of a plan on a cluster: the moves, their bytes, brokers and duration, and items that deserve a look.

Everything here is an estimate from one topology; none of it is part of what is approved. Bytes are None if a size is
unknown; ``unsized`` counts the rows concerned. The computation takes one pass over the rows of the plan and one over
the partitions of the cluster.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafkadash.changes.plan import PartitionMove
from kafkadash.core.formatting import format_size, join_items, listed_shortly
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import choose_plural
from kafkadash.core.racks import judge_spread
from kafkadash.planning.solver.workload import WorkloadUsed
from kafkadash.planning.topology import ClusterTopology, PlannedPartition, PlannedTopic


@dataclass(frozen=True, slots=True)
class BrokerImpact:
    """A broker before and after; bytes of replicas are reckoned by the size of their leader's.

    ``peak_bytes``: in use on its disks at worst while it runs, old and new copies together; ``disk_bytes``: all of it;
    ``used_bytes``: in use when it was planned, by replicas and by others, None where the brokers do not tell.
    ``bytes_in`` and ``bytes_out``: copied to it and from it (from the leader), as far as sizes are known. ``alive``:
    registered, not away and not fenced.
    """

    id: int
    rack: str | None
    replicas_before: int
    replicas_after: int
    leaders_before: int
    leaders_after: int
    bytes_before: int | None
    bytes_after: int | None
    peak_bytes: int | None
    disk_bytes: int | None
    bytes_in: int
    bytes_out: int
    alive: bool = True
    used_bytes: int | None = None

    @property
    def other_bytes(self) -> int | None:
        """Bytes in use on its disks besides the replicas; None where that is unknown."""
        if self.used_bytes is None or self.bytes_before is None:
            return None
        return max(0, self.used_bytes - self.bytes_before)


@dataclass(frozen=True, slots=True)
class TopicImpact:
    """A topic with rows in the plan. ``copied_bytes``: of newly placed replicas, None where a size is not known."""

    topic: str
    internal: bool
    moved: int
    partitions: int
    copied_bytes: int | None
    leaving: tuple[int, ...]
    arriving: tuple[int, ...]
    leaders_moved: int
    exceptions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class ImpactWarning:
    """Point to look at before approval: ``state`` is ok, warning, critical or unknown; ``lead`` is shown in bold.

    ``code`` tells what it is about: one_broker_racks, internal_topics, few_replicas, replication, min_isr, disk,
    spread, sizes.
    """

    code: str
    state: str
    lead: str
    text: str


@dataclass(frozen=True, slots=True)
class RowException:
    """A row that is shown first, and why: "largest move", "changes rack a → b", "internal topic", ….

    ``bytes``: of the copies it makes, None where not known.
    """

    topic: str
    partition: int
    why: tuple[str, ...]
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PlanImpact:
    """Impact of a whole plan. Counts are partitions unless named otherwise; bytes are bytes.

    ``binding`` is the broker and direction ("in" or "out") that bounds the duration, with its bytes; durations are not
    stored: ``estimate_copy_seconds`` gives them. ``copied_bytes`` is None where a size is not known, ``known_bytes``
    what is known of it. ``under_min_isr`` and ``at_min_isr``: moved partitions that are so now (those with all replicas
    in sync are not). ``violations``: of the spread over racks in the whole cluster, None where racks are not judged;
    ``racks_lost``: partitions that are in fewer racks afterwards; ``spread_worse``: these and those that lie less
    evenly, whatever gets better elsewhere. ``inbound_bytes_per_s``: what producers write to all moved partitions of one
    broker and direction, at most: a throttle below it cannot be enough if all move at once. ``workload``: what that was
    reckoned from, None where nobody said.
    """

    partitions_moved: int
    partitions_total: int
    topics_moved: int
    topics_total: int
    internal_topics: tuple[str, ...]
    internal_partitions: int
    brokers_touched: int
    brokers_total: int
    emptied: tuple[int, ...]
    copied_bytes: int | None
    unsized: int
    total_bytes: int | None
    leaders_moved: int
    only_reordered: int
    rf_up: int
    rf_down: int
    under_min_isr: int | None
    at_min_isr: int | None
    violations_before: int | None
    violations_after: int | None
    racks_lost: int | None
    largest_bytes: int | None
    binding_broker: int | None
    binding_direction: str
    binding_bytes: int | None
    inbound_bytes_per_s: float | None
    brokers: tuple[BrokerImpact, ...]
    watch: tuple[ImpactWarning, ...]
    topics: tuple[TopicImpact, ...] = ()
    exceptions: tuple[RowException, ...] = ()
    known_bytes: int = 0
    disk_limit: float | None = None
    spread_worse: int | None = None
    workload: WorkloadUsed | None = None

    def summary_json(self) -> dict[str, Any]:
        """Without topics and exceptions, which are stored apart."""
        return pack_dataclass(replace(self, topics=(), exceptions=()))


START_AND_END_S = 12.0
"""Least time of a run besides copying: its throttles are set and heard of, the first moves are submitted, replicas that
have arrived are waited for until they are in sync, every row is read again and the throttles are removed. Runs of 2 to
50 s on a real cluster took 12 to 17 s for that, whatever they copied.
"""


def estimate_copy_seconds(impact: PlanImpact, rate_bytes_per_s: float) -> float | None:
    """How long copying takes at least under this throttle, in bytes per second per broker and direction; None where a
    size is not known.
    """
    busiest = busiest_bytes(impact)
    return None if busiest is None else busiest / rate_bytes_per_s


def busiest_bytes(impact: PlanImpact) -> int | None:
    """The most that one broker receives or sends, or the largest single move; None where a size is not known."""
    if impact.binding_bytes is None or impact.largest_bytes is None:
        return None
    return max(impact.binding_bytes, impact.largest_bytes)


def run_seconds(busiest: int | None, rate_bytes_per_s: float) -> float | None:
    """How long a run takes at least from its start to its end, where one broker receives or sends so many bytes."""
    return None if busiest is None else busiest / rate_bytes_per_s + START_AND_END_S


def rates_around(rate_bytes_per_s: int) -> tuple[int, int, int]:
    """Half of it, itself and half as much again, for the time at three throttles."""
    return max(1, rate_bytes_per_s // 2), rate_bytes_per_s, rate_bytes_per_s * 3 // 2


COORDINATORS = {
    "__consumer_offsets": "Group",
    "__transaction_state": "Transaction",
    "__share_group_state": "Share group",
}


def watch_list(
    impact: PlanImpact, targets: Mapping[tuple[str, int], PartitionMove], topology: ClusterTopology
) -> PlanImpact:
    """The impact with its ``watch``, in the order of the page."""
    found = [
        *_one_broker_racks(impact, targets, topology),
        *_watch_internal_topics(impact),
        *_watch_replication(impact),
        *_few_replicas(impact, targets, topology.racks),
        *_min_isr(impact),
        *_watch_sizes(impact),
        *_watch_disk(impact),
        *_watch_spread(impact),
    ]
    return replace(impact, watch=tuple(found))


def _one_broker_racks(
    impact: PlanImpact, targets: Mapping[tuple[str, int], PartitionMove], topology: ClusterTopology
) -> Iterator[ImpactWarning]:
    """Racks where several brokers held replicas and one is left: what its death would cost meanwhile."""
    before: defaultdict[str, list[BrokerImpact]] = defaultdict(list)
    for broker in impact.brokers:
        if broker.rack is not None and broker.replicas_before and broker.alive:
            before[broker.rack].append(broker)
    for rack, holding in sorted(before.items()):
        left = [broker for broker in impact.brokers if broker.rack == rack and broker.replicas_after and broker.alive]
        empty = [str(broker.id) for broker in holding if not broker.replicas_after]
        if len(holding) < 2 or len(left) != 1 or not empty:
            continue
        last = left[0].id
        kept = Counter(
            len(target)
            for name, topic in topology.topics.items()
            for p in topic.partitions
            if last in (target := targets[name, p.partition].target if (name, p.partition) in targets else p.replicas)
        )
        parts = [
            choose_plural("# partition keeps|# partitions keep" if first else "# keeps|# keep", number)
            + f" {factor - 1} of {factor} replicas"
            for first, (factor, number) in zip(
                [True, *[False] * len(kept)], sorted(kept.items(), reverse=True), strict=False
            )
        ]
        are = choose_plural("is|are", len(empty))
        text = f"If broker {last} fails while {join_items(empty)} {are} empty, {join_items(parts)}."
        yield ImpactWarning("one_broker_racks", "warning", f"Rack {rack} has a single broker left.", text)


def _watch_internal_topics(impact: PlanImpact) -> Iterator[ImpactWarning]:
    names = impact.internal_topics
    if not names:
        return
    moved = {topic.topic: topic.moved for topic in impact.topics}
    parts = [f"{name} {moved[name]:,}" for name in names]
    partitions = choose_plural("partition|partitions", impact.internal_partitions)
    coordinators = [COORDINATORS[name] for name in names if name in COORDINATORS]
    changes = f" {coordinators[0]} coordinators change." if coordinators else ""
    if len(coordinators) > 1:
        changes = f" {join_items([coordinators[0], *[word.lower() for word in coordinators[1:]]])} coordinators change."
    lead = choose_plural("# internal topic changes:|# internal topics change:", len(names))
    yield ImpactWarning("internal_topics", "warning", lead, f"{', '.join(parts)} {partitions}.{changes}")


def _watch_replication(impact: PlanImpact) -> Iterator[ImpactWarning]:
    if impact.rf_down:
        texts = "# partition gets fewer replicas.|# partitions get fewer replicas."
        lead = choose_plural(texts, impact.rf_down)
        yield ImpactWarning("replication", "warning", lead, "Their data is on fewer brokers afterwards.")
    if impact.rf_up:
        lead = choose_plural("# partition gets more replicas.|# partitions get more replicas.", impact.rf_up)
        yield ImpactWarning("replication", "warning", lead, "Disk usage grows permanently.")


def _few_replicas(
    impact: PlanImpact, targets: Mapping[tuple[str, int], PartitionMove], racks: Mapping[int, str]
) -> Iterator[ImpactWarning]:
    if not racks:
        return
    bytes_of: Counter[str] = Counter()
    order = {topic.topic: place for place, topic in enumerate(impact.topics)}
    for row in targets.values():
        if len(row.target) <= 2 and row.adding and _racks_of(row.current, racks) != _racks_of(row.target, racks):
            bytes_of[row.topic] += 1
    if not bytes_of:
        return
    number = bytes_of.total()
    names = sorted(bytes_of, key=lambda name: order[name])
    lead = choose_plural("# partition has only 2 replicas|# partitions have only 2 replicas", number)
    if not all(len(row.target) == 2 for row in targets.values() if row.topic in bytes_of):
        lead = f"{lead} or fewer"
    change = choose_plural("changes|change", number)
    yield ImpactWarning("few_replicas", "warning", lead, f"and {change} rack: {listed_shortly(names)}.")


def _racks_of(replicas: tuple[int, ...], racks: Mapping[int, str]) -> list[str]:
    return sorted(racks[broker] for broker in replicas if broker in racks)


def _min_isr(impact: PlanImpact) -> Iterator[ImpactWarning]:
    under, at = impact.under_min_isr, impact.at_min_isr
    if under is None or at is None:
        text = "min.insync.replicas of a moving topic was not read."
        yield ImpactWarning("min_isr", "unknown", "Min-ISR risk unknown:", text)
        return
    if under:
        lead = choose_plural("# moving partition is|# moving partitions are", under)
        text = choose_plural("It already rejects|They already reject", under)
        yield ImpactWarning("min_isr", "critical", f"{lead} under min-ISR.", f"{text} writes with acks=all.")
    if at:
        lead = choose_plural("# moving partition is|# moving partitions are", at)
        rejects = choose_plural("it rejects|they reject", at)
        text = f"If one more replica falls out of sync, {rejects} writes with acks=all."
        yield ImpactWarning("min_isr", "warning", f"{lead} at min-ISR.", text)


def _watch_sizes(impact: PlanImpact) -> Iterator[ImpactWarning]:
    if impact.unsized:
        partitions = choose_plural("# moving partition|# moving partitions", impact.unsized)
        text = f"so durations are unknown too. At least {format_size(impact.known_bytes)} is copied."
        yield ImpactWarning("sizes", "unknown", f"The size of {partitions} is unknown,", text)


def _watch_disk(impact: PlanImpact) -> Iterator[ImpactWarning]:
    receiving = [
        broker for broker in impact.brokers if broker.bytes_in or broker.replicas_after > broker.replicas_before
    ]
    if not receiving:
        return
    shares = [(b.peak_bytes / b.disk_bytes, b.id) for b in receiving if b.disk_bytes and b.peak_bytes is not None]
    unknown = sorted(str(b.id) for b in receiving if not b.disk_bytes or b.peak_bytes is None)
    limit = f", limit {100 * impact.disk_limit:.0f} %" if impact.disk_limit is not None else ""
    if shares:
        share, broker = max(shares, key=lambda one: (one[0], -one[1]))
        above = share > (1.0 if impact.disk_limit is None else impact.disk_limit)
        peak = f"{100 * share:.1f} %"
        if above:
            yield ImpactWarning("disk", "critical", f"Disk usage peaks at {peak}", f"(broker {broker}){limit}.")
        else:
            yield ImpactWarning("disk", "ok", "", f"Disk usage peaks at {peak} (broker {broker}){limit}.")
    if unknown:
        which = f"{choose_plural('broker|brokers', len(unknown))} {listed_shortly(unknown, 8)}"
        yield ImpactWarning("disk", "unknown", "Peak disk usage unknown", f"for {which}: sizes are missing.")


def _watch_spread(impact: PlanImpact) -> Iterator[ImpactWarning]:
    before, after = impact.violations_before, impact.violations_after
    if before is None or after is None:
        text = "some brokers have no rack, or there is only one rack."
        yield ImpactWarning("spread", "unknown", "Rack spread unknown:", text)
        return
    violations = choose_plural("# violation|# violations", before)
    if impact.spread_worse or after > before:
        # What gets better elsewhere does not make up for it.
        worse = impact.spread_worse or after - before
        partitions = choose_plural("# partition|# partitions", worse)
        text = f"{partitions} less evenly spread; {violations} before, {after:,} after."
        yield ImpactWarning("spread", "warning", "Rack spread gets worse:", text)
    elif after < before:
        yield ImpactWarning("spread", "ok", "", f"Rack spread gets better: {violations} before, {after:,} after.")
    elif before:
        yield ImpactWarning("spread", "ok", "", f"Rack spread unchanged: {violations} before, {after:,} after.")
    else:
        yield ImpactWarning("spread", "ok", "", "Rack spread unchanged: no violations.")


LARGE_SHARE_OF_DISK = 0.1
_LARGEST, _IN_DANGER, _FEWER, _RACK, _LARGE, _FEW, _INTERNAL, _MORE, _ORDER = range(9)


@dataclass(slots=True)
class ImpactLoad:
    """A broker's replicas while they are counted. ``unsized`` replicas are missing in the bytes."""

    replicas: int = 0
    leaders: int = 0
    bytes: int = 0
    unsized: int = 0


@dataclass(slots=True)
class ImpactSums:
    """Sums over the rows of a plan."""

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
    """Sums over all partitions of the cluster. ``unsized`` partitions are not in the bytes."""

    partitions: int = 0
    bytes: int = 0
    unsized: int = 0
    violations_before: int = 0
    violations_after: int = 0
    before: defaultdict[int, ImpactLoad] = field(default_factory=lambda: defaultdict(ImpactLoad))
    after: defaultdict[int, ImpactLoad] = field(default_factory=lambda: defaultdict(ImpactLoad))


def impact_of(
    rows: Sequence[PartitionMove],
    topology: ClusterTopology,
    *,
    disk_limit: float | None = None,
    elect_leaders: bool = True,
) -> PlanImpact:
    """Return the impact of ``rows`` on ``topology``; rows of partitions that do not exist there are ignored.

    ``disk_limit``: 0 to 1 of a disk. Afterwards a moved partition is led by the first replica of its target that is
    alive; without ``elect_leaders`` its leader stays where it is kept.
    """
    reckoning = _ImpactTotals(topology, elect_leaders)
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


def leader_after(
    row: PartitionMove, partition: PlannedPartition, alive: frozenset[int], *, elect_leaders: bool
) -> int | None:
    """Return the partition's leader after the row is done and preferred leaders were elected; None if not known."""
    if not elect_leaders and partition.leader in row.target:
        return partition.leader
    return next((broker for broker in row.target if broker in alive), None)


def _topics(rows: Sequence[PartitionMove], topology: ClusterTopology) -> list[str]:
    return [topic for topic in dict.fromkeys(row.topic for row in rows) if topic in topology.topics]


class _ImpactTotals:
    def __init__(self, topology: ClusterTopology, elect_leaders: bool) -> None:
        self._topology = topology
        self._elect = elect_leaders
        self._racks = topology.racks
        self._rack_count = len(set(self._racks.values()))
        self._alive = frozenset(b.id for b in topology.brokers.values() if b.up)
        self._sums = ImpactSums()
        self._uneven: dict[tuple[str, ...], int] = {}

    def row(self, row: PartitionMove, partition: PlannedPartition) -> None:
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

    def _copies(self, row: PartitionMove, partition: PlannedPartition, size: int | None) -> None:
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
        row: PartitionMove,
        partition: PlannedPartition,
        topic: PlannedTopic,
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
            fewer = choose_plural("# replica|# replicas", len(row.target))
            why.append((_FEWER, f"from {len(row.current)} to {fewer}"))
        change = self._rack_change(row, adding, removing)
        if change:
            why.append((_RACK, change))
        for broker in adding:
            disk = self._topology.brokers[broker].disk_bytes if broker in self._topology.brokers else None
            if size is not None and disk and size > LARGE_SHARE_OF_DISK * disk:
                why.append((_LARGE, f"{100 * size / disk:.0f} % of the disk of broker {broker}"))
        if len(row.target) <= 2:
            why.append((_FEW, choose_plural("only # replica|only # replicas", len(row.target))))
        if topic.internal:
            why.append((_INTERNAL, "internal topic"))
        if len(row.target) > len(row.current):
            replicas = choose_plural("# replica|# replicas", len(row.current))
            why.append((_MORE, f"from {replicas} to {len(row.target)}"))
        if row.only_reorders:
            why.append((_ORDER, "order only"))
        return why

    def _rack_change(self, row: PartitionMove, adding: tuple[int, ...], removing: tuple[int, ...]) -> str:
        """Return a text such as "changes rack a → b" where replicas leave racks for others."""
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

    def mark_largest(self, known: Sequence[tuple[PartitionMove, PlannedPartition]]) -> None:
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

    def result(self, targets: Mapping[tuple[str, int], PartitionMove], disk_limit: float | None) -> PlanImpact:
        """The impact of all rows that were counted; ``targets`` are the same rows."""
        sums, whole = self._sums, self._whole_cluster(targets)
        brokers = self._brokers(whole)
        unsized, copied = sum(sums.unsized.values()), sum(sums.copied.values())
        sized = not unsized
        binding_broker, binding_direction, binding_bytes = _find_bottleneck(sums) if sized else (None, "", None)
        internal = tuple(sorted(name for name in sums.moved if self._topology.topics[name].internal))
        impact = PlanImpact(
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
            inbound_bytes_per_s=_find_worst_inbound(sums),
            brokers=brokers,
            topics=self._topics(),
            exceptions=tuple(one for _, _, one in sorted(sums.exceptions, key=_by_rank)),
            watch=(),
            known_bytes=copied,
            disk_limit=disk_limit,
            spread_worse=sums.spread_worse if self._racks else None,
        )
        return watch_list(impact, targets, self._topology)

    def _whole_cluster(self, targets: Mapping[tuple[str, int], PartitionMove]) -> WholeCluster:
        """Return the sums over all partitions of the cluster, now and after the plan, also of those that stay."""
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
                _add_load(whole.before, p.replicas, p.size_bytes, p.leader)
                _add_load(whole.after, then, p.size_bytes, leader)
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

    def _broker(self, id_: int, before: ImpactLoad, after: ImpactLoad) -> BrokerImpact:
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
            used_bytes=known.used_bytes if known else None,
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
            known = self._uneven[key] = judge_spread(replicas, self._racks, self._rack_count).moves
        return known


def _add_load(
    loads: defaultdict[int, ImpactLoad], replicas: tuple[int, ...], size: int | None, leader: int | None
) -> None:
    for broker in replicas:
        load = loads[broker]
        load.replicas += 1
        if size is None:
            load.unsized += 1
        else:
            load.bytes += size
    if leader is not None:
        loads[leader].leaders += 1


def _find_bottleneck(sums: ImpactSums) -> tuple[int | None, str, int]:
    """The broker and direction through which most is copied, with its bytes; no broker where nothing is copied."""
    amounts = [(amount, "in", id_) for id_, amount in sums.bytes_in.items()]
    amounts += [(amount, "out", id_) for id_, amount in sums.bytes_out.items()]
    if not amounts:
        return None, "", 0
    amount, direction, broker = max(amounts, key=lambda one: (one[0], one[1] == "in", -one[2]))
    return broker, direction, amount


def _find_worst_inbound(sums: ImpactSums) -> float | None:
    """Return what producers write, at most, to all partitions copied through one broker; None where not known."""
    if not sums.inbound_known:
        return None
    copies = bool(sums.copied) or any(sums.unsized.values())
    return max(sums.inbound.values(), default=0) if copies else 0


def _by_rank(one: tuple[int, int, RowException]) -> tuple[int, int, str, int]:
    rank, size, exception = one
    return rank, size, exception.topic, exception.partition
