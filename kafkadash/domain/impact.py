"""What a plan does to a cluster: what moves, how much, where to, for how long, and what deserves a look.

Everything here is an estimate from one topology; none of it is part of what is approved. Bytes are None where a size
is not known; ``unsized`` says how many rows that concerns.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrokerImpact:
    """A broker before and after. ``peak_bytes``: in use at worst while it runs, old and new copies together."""

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
class Watch:
    """One thing worth a look before approval: ``state`` is ok, warning or critical; ``lead`` is said in bold."""

    code: str
    state: str
    lead: str
    text: str


@dataclass(frozen=True, slots=True)
class RowException:
    """A row that is shown first, and why: "largest move", "changes rack a → b", "internal topic", …."""

    topic: str
    partition: int
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Impact:
    """Of a whole plan. Counts are partitions unless named otherwise; bytes are bytes.

    ``binding`` is the broker and direction ("in" or "out") that bounds the duration, with its bytes.
    ``durations`` are not stored: ``seconds(impact, rate)`` gives them.
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
    topics: tuple[TopicImpact, ...]
    exceptions: tuple[RowException, ...]
    watch: tuple[Watch, ...]
