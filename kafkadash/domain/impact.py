"""What a plan does to a cluster: what moves, how much, where to, for how long, and what deserves a look.

Everything here is an estimate from one topology; none of it is part of what is approved. Bytes are None where a size
is not known; ``unsized`` says how many rows that concerns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from kafkadash.domain.planner.workload import WorkloadUsed


@dataclass(frozen=True, slots=True)
class BrokerImpact:
    """A broker before and after; bytes of replicas are reckoned by the size of their leader's.

    ``peak_bytes``: in use on its disks at worst while it runs, old and new copies together; ``disk_bytes``: all of it.
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

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> TopicImpact:
        return cls(**{**stored, "leaving": tuple(stored["leaving"]), "arriving": tuple(stored["arriving"])})


@dataclass(frozen=True, slots=True)
class Watch:
    """One thing worth a look before approval: ``state`` is ok, warning, critical or unknown; ``lead`` is said in bold.

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
class Impact:
    """Of a whole plan. Counts are partitions unless named otherwise; bytes are bytes.

    ``binding`` is the broker and direction ("in" or "out") that bounds the duration, with its bytes; durations are not
    stored: ``seconds`` gives them. ``copied_bytes`` is None where a size is not known, ``known_bytes`` what is known of
    it. ``under_min_isr`` and ``at_min_isr``: moved partitions that are so now (those with all replicas in sync are
    not). ``violations``: of the spread over racks in the whole cluster, None where racks are not judged;
    ``racks_lost``: partitions that are in fewer racks afterwards; ``spread_worse``: these and those that lie less
    evenly, whatever gets better elsewhere. ``inbound_bytes_per_s``: what producers write to all
    moved partitions of one broker and direction, at most: a throttle below it cannot be enough if all move at once.
    ``workload``: what that was reckoned from, None where nobody said.
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
    known_bytes: int = 0
    disk_limit: float | None = None
    spread_worse: int | None = None
    workload: WorkloadUsed | None = None

    def as_json(self) -> dict[str, Any]:
        """All of it; what is None is null."""
        return asdict(self)

    def summary_json(self) -> dict[str, Any]:
        """Without topics and exceptions, which are stored apart."""
        return asdict(replace(self, topics=(), exceptions=()))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Impact:
        """Of either of them, or of a stored one without the two lists."""
        fields = dict(stored)
        fields["internal_topics"] = tuple(stored["internal_topics"])
        fields["emptied"] = tuple(stored["emptied"])
        fields["brokers"] = tuple(BrokerImpact(**broker) for broker in stored["brokers"])
        fields["topics"] = tuple(TopicImpact.from_json(topic) for topic in stored.get("topics", ()))
        fields["exceptions"] = tuple(
            RowException(one["topic"], one["partition"], tuple(one["why"]), one["bytes"])
            for one in stored.get("exceptions", ())
        )
        fields["watch"] = tuple(Watch(**watch) for watch in stored["watch"])
        if stored.get("workload") is not None:
            fields["workload"] = WorkloadUsed.from_json(stored["workload"])
        return cls(**fields)


START_AND_END_S = 12.0
"""What a run takes at least besides copying: its throttles are set and heard of, the first moves are submitted, what
has arrived is waited for until it is in sync, every row is read again and the throttles are taken away. Of runs of 2 to
50 s on a real cluster that was 12 to 17 s, whatever they copied.
"""


def seconds(impact: Impact, rate_bytes_per_s: float) -> float | None:
    """How long copying takes at least under this throttle, in bytes per second per broker and direction; None where a
    size is not known.
    """
    busiest = busiest_bytes(impact)
    return None if busiest is None else busiest / rate_bytes_per_s


def busiest_bytes(impact: Impact) -> int | None:
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
