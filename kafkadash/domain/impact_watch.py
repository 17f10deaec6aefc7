"""What a plan's author and approver should look at, in sentences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kafkadash.domain.impact import BrokerImpact, Impact, Watch
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.topology import Topology
from kafkadash.domain.wording import count, count_in_words, listed, listed_shortly, size

COORDINATORS = {
    "__consumer_offsets": "Group",
    "__transaction_state": "Transaction",
    "__share_group_state": "Share group",
}


def watch_list(impact: Impact, targets: Mapping[tuple[str, int], Row], topology: Topology) -> Impact:
    """The impact with its ``watch``, in the order of the page."""
    found = [
        *_one_broker_racks(impact, targets, topology),
        *_internal(impact),
        *_replication(impact),
        *_few_replicas(impact, targets, topology.racks),
        *_min_isr(impact),
        *_sizes(impact),
        *_disk(impact),
        *_spread(impact),
    ]
    return replace(impact, watch=tuple(found))


def _one_broker_racks(impact: Impact, targets: Mapping[tuple[str, int], Row], topology: Topology) -> Iterator[Watch]:
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
            f"{count(number, 'partition') if first else f'{number:,}'} {'keeps' if number == 1 else 'keep'} "
            f"{factor - 1} of {factor} replicas"
            for first, (factor, number) in zip(
                [True, *[False] * len(kept)], sorted(kept.items(), reverse=True), strict=False
            )
        ]
        while_ = f"{listed(empty)} {'is' if len(empty) == 1 else 'are'}"
        text = f"If broker {last} dies while {while_} empty, {listed(parts)}."
        yield Watch("one_broker_racks", "warning", f"{rack} is left with one broker.", text)


def _internal(impact: Impact) -> Iterator[Watch]:
    names = impact.internal_topics
    if not names:
        return
    moved = {topic.topic: topic.moved for topic in impact.topics}
    parts = [f"{name} {moved[name]:,}" for name in names]
    noun = "partition" if impact.internal_partitions == 1 else "partitions"
    coordinators = [COORDINATORS[name] for name in names if name in COORDINATORS]
    changes = f" {coordinators[0]} coordinators change." if coordinators else ""
    if len(coordinators) > 1:
        changes = f" {listed([coordinators[0], *[word.lower() for word in coordinators[1:]]])} coordinators change."
    verb = "moves" if len(names) == 1 else "move"
    lead = f"{count_in_words(len(names), 'internal topic')} {verb}:"
    yield Watch("internal_topics", "warning", lead, f"{', '.join(parts)} {noun}.{changes}")


def _replication(impact: Impact) -> Iterator[Watch]:
    if impact.rf_down:
        verb = "loses" if impact.rf_down == 1 else "lose"
        text = "The data is on fewer brokers afterwards."
        yield Watch("replication", "warning", f"{count(impact.rf_down, 'partition')} {verb} a replica for good.", text)
    if impact.rf_up:
        verb = "gets" if impact.rf_up == 1 else "get"
        lead = f"{count(impact.rf_up, 'partition')} {verb} more replicas"
        yield Watch("replication", "warning", lead, "and need more disk from then on.")


def _few_replicas(impact: Impact, targets: Mapping[tuple[str, int], Row], racks: Mapping[int, str]) -> Iterator[Watch]:
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
    has, changes = ("has", "changes") if number == 1 else ("have", "change")
    lead = f"{count(number, 'partition')} {has} only 2 replicas or fewer"
    if all(len(row.target) == 2 for row in targets.values() if row.topic in bytes_of):
        lead = f"{count(number, 'partition')} {has} only 2 replicas"
    yield Watch("few_replicas", "warning", lead, f"and {changes} rack: {listed_shortly(names)}.")


def _racks_of(replicas: tuple[int, ...], racks: Mapping[int, str]) -> list[str]:
    return sorted(racks[broker] for broker in replicas if broker in racks)


def _min_isr(impact: Impact) -> Iterator[Watch]:
    under, at = impact.under_min_isr, impact.at_min_isr
    if under is None or at is None:
        text = "min.insync.replicas of a topic that moves was not read."
        yield Watch("min_isr", "unknown", "Whether partitions at or under min-ISR move is not known:", text)
        return
    if under:
        verb = "is" if under == 1 else "are"
        text = f"{'It refuses' if under == 1 else 'They refuse'} writes with acks=all already."
        yield Watch(
            "min_isr", "critical", f"{count(under, 'partition')} that {_move(under)} {verb} under min-ISR.", text
        )
    if at:
        verb = "is" if at == 1 else "are"
        text = f"One more replica out of sync, and {'it refuses' if at == 1 else 'they refuse'} writes."
        yield Watch("min_isr", "warning", f"{count(at, 'partition')} that {_move(at)} {verb} at min-ISR.", text)


def _move(number: int) -> str:
    return "moves" if number == 1 else "move"


def _sizes(impact: Impact) -> Iterator[Watch]:
    if impact.unsized:
        lead = f"The size of {count(impact.unsized, 'partition')} that {_move(impact.unsized)} is not known,"
        yield Watch(
            "sizes", "unknown", lead, f"so times are not either. At least {size(impact.known_bytes)} are copied."
        )


def _disk(impact: Impact) -> Iterator[Watch]:
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
            yield Watch("disk", "critical", f"Disk peaks at {peak}", f"(broker {broker}){limit}.")
        else:
            yield Watch("disk", "ok", "", f"Disk peaks at {peak} (broker {broker}){limit}.")
    if unknown:
        which = f"broker {unknown[0]}" if len(unknown) == 1 else f"brokers {listed_shortly(unknown, 8)}"
        text = f"{which} would have enough disk: not all sizes are known."
        yield Watch("disk", "unknown", "Cannot tell whether", text)


def _spread(impact: Impact) -> Iterator[Watch]:
    before, after = impact.violations_before, impact.violations_after
    if before is None or after is None:
        text = "not every broker names a rack, or there is only one."
        yield Watch("spread", "unknown", "Rack spread cannot be judged:", text)
    elif impact.spread_worse or after > before:
        # What gets better elsewhere does not make up for it.
        worse = impact.spread_worse or after - before
        lies = f"{count(worse, 'partition')} {'lies' if worse == 1 else 'lie'} less evenly"
        text = f"{lies}; {count(before, 'violation')} before, {after:,} after."
        yield Watch("spread", "warning", "Rack spread gets worse:", text)
    elif after < before:
        yield Watch(
            "spread", "ok", "", f"Rack spread gets better: {count(before, 'violation')} before, {after:,} after."
        )
    elif before:
        same = f"{count(before, 'violation')} before, the same {after:,} after"
        yield Watch("spread", "ok", "", f"Rack spread stays: {same}.")
    else:
        yield Watch("spread", "ok", "", "Rack spread stays: no violations before, none after.")
