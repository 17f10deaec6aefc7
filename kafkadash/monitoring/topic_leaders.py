"""Leaders of a topic by broker, with the sizes of the partitions that each broker leads, and their skew as a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkadash.core.messages import choose_plural
from kafkadash.monitoring.partitions import PartitionLine

MOST_BROKERS = 24
"""Brokers that are listed; of more, those that lead most."""


@dataclass(frozen=True, slots=True)
class TopicLeaderRow:
    """A broker with replicas of the topic; the counts are partitions.

    ``led_bytes``: of the leader replicas here, None where a size is unknown. The percents are of the largest value of
    any broker.
    """

    broker: int
    leaders: int
    preferred: int
    replicas: int
    led_bytes: int | None
    leaders_percent: float
    bytes_percent: float | None


@dataclass(frozen=True, slots=True)
class TopicLeaders:
    """``rows`` are by broker id; ``more`` counts brokers with replicas that are not listed."""

    rows: Sequence[TopicLeaderRow]
    more: int
    skew: str


def count_leaders(lines: Sequence[PartitionLine], sizes: Mapping[int, int]) -> TopicLeaders:
    """Return the leaders of one topic. ``lines``: all its partitions; ``sizes``: partition → bytes where known."""
    leaders = Counter(line.leader for line in lines if line.leader is not None)
    replicas = Counter(broker for line in lines for broker in line.replicas)
    preferred = Counter(line.replicas[0] for line in lines if line.replicas)
    led_bytes: dict[int, int | None] = {}
    for line in lines:
        if line.leader is not None:
            size, so_far = sizes.get(line.number), led_bytes.get(line.leader, 0)
            led_bytes[line.leader] = None if size is None or so_far is None else so_far + size
    brokers = {*leaders, *replicas}
    most = max(leaders.values(), default=0)
    largest = max((size for size in led_bytes.values() if size is not None), default=0)
    shown = sorted(brokers, key=lambda broker: (-leaders[broker], broker))[:MOST_BROKERS]
    rows = []
    for broker in sorted(shown):
        size = led_bytes.get(broker, 0)
        rows.append(
            TopicLeaderRow(
                broker=broker,
                leaders=leaders[broker],
                preferred=preferred[broker],
                replicas=replicas[broker],
                led_bytes=size,
                leaders_percent=100.0 * leaders[broker] / most if most else 0.0,
                bytes_percent=100.0 * size / largest if size is not None and largest else None,
            )
        )
    return TopicLeaders(rows, len(brokers) - len(rows), _describe_skew(leaders, brokers, len(lines)))


def _describe_skew(leaders: Mapping[int, int], brokers: set[int], partitions: int) -> str:
    """Return a text such as "Broker 3 leads 8 of 12 partitions, 2.0 × the mean."; the mean is of all ``brokers``."""
    led = sum(leaders.values())
    if not led:
        return "No partition has a leader."
    counts = {broker: leaders.get(broker, 0) for broker in brokers}
    most, least = max(counts.values()), min(counts.values())
    if most - least <= 1:
        held = choose_plural("# leader|# leaders", most) if most == least else f"{least:,} or {most:,} leaders"
        text = f"Even: {held} per broker."
    else:
        broker = min(broker for broker, number in counts.items() if number == most)
        of = choose_plural("# partition|# partitions", partitions)
        text = f"Broker {broker} leads {most:,} of {of}, {most * len(counts) / led:,.1f} × the mean."
        none = sum(not number for number in counts.values())
        if none:
            text += f" {choose_plural('# broker with replicas leads none.|# brokers with replicas lead none.', none)}"
    without = partitions - led
    if without:
        text += f" {choose_plural('# partition has no leader.|# partitions have no leader.', without)}"
    return text
