"""Write rates of partitions from a week of the pipeline's history, and the part of them that a plan was made with.

They are older than live data, so a topology gets from here only what is not observed live: rates. Sizes are those of
the last refresh of the log directories. An unknown partition stays unknown: it is counted, never taken as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kafkadash.changes.plan import PartitionMove
from kafkadash.planning.topology import PlannedTopic

FRESH = timedelta(hours=48)
"""A model is made once a day; an older one is of a time that is over."""
HOURS_OF_WEEK = 7 * 24


@dataclass(frozen=True, slots=True)
class WorkloadBytes:
    """Workload of a partition. ``typical``: bytes per second that its leader takes in, the median of an hour, as a mean
    over the week's hours; ``peak``: 95th percentile in its busiest hour; ``grows``: bytes a day. None: not known.
    """

    typical: float | None
    peak: float | None = None
    grows: float | None = None


@dataclass(frozen=True, slots=True)
class TopicWorkload:
    """Workloads of the partitions of one topic, observed from ``from_at`` to ``to_at``."""

    from_at: datetime
    to_at: datetime
    partitions: Mapping[int, WorkloadBytes]

    def fresh(self, now: datetime) -> bool:
        return now - self.to_at <= FRESH


Workloads = Mapping[str, TopicWorkload]
"""By topic."""


@dataclass(frozen=True, slots=True)
class WorkloadUsed:
    """Workload behind a plan, of the partitions that it copies; times as ISO text, rates in bytes per second.

    ``known`` of them have a rate, ``unknown`` have none. ``typical`` and ``peak`` are of the known together, ``peak``
    as if all had their busiest hour at once; ``grows``: bytes a day of those whose growth is known, None where of none.
    """

    known: int
    unknown: int
    from_at: str = ""
    to_at: str = ""
    typical: float | None = None
    peak: float | None = None
    grows: float | None = None


def with_rates(topic: PlannedTopic, workload: TopicWorkload | None) -> PlannedTopic:
    """``topic`` with what its partitions take in, as far as it is known."""
    known = {} if workload is None else workload.partitions
    if not known:
        return topic
    partitions = tuple(
        replace(p, bytes_in_per_s=known[p.partition].typical) if p.partition in known else p for p in topic.partitions
    )
    return replace(topic, partitions=partitions)


def used_by(rows: Iterable[PartitionMove], workloads: Workloads) -> WorkloadUsed:
    """Return the workload of the rows that copy something."""
    found: list[WorkloadBytes] = []
    topics: set[str] = set()
    unknown = 0
    for row in rows:
        if not row.adding:
            continue
        own = workloads.get(row.topic)
        taken = own.partitions.get(row.partition) if own is not None else None
        if taken is None or taken.typical is None:
            unknown += 1
        else:
            found.append(taken)
            topics.add(row.topic)
    if not found:
        return WorkloadUsed(0, unknown)
    used = [workloads[topic] for topic in topics]
    return WorkloadUsed(
        len(found),
        unknown,
        min(one.from_at for one in used).isoformat(),
        max(one.to_at for one in used).isoformat(),
        _sum_known([one.typical for one in found]),
        _sum_known([one.peak for one in found]),
        _sum_known([one.grows for one in found]),
    )


def _sum_known(figures: Sequence[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None
