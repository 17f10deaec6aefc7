"""Finished plans as rows, so that a page reads only what it shows, and the estimated cost of rolling a plan back.

A rollback of a complete run copies the replicas that left, from the leaders of that time.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.changes.plan import PartitionMove, ReplicaChange
from kafkadash.planning.impact import PlanImpact, TopicImpact
from kafkadash.planning.models import PlanReport, PlanTopic
from kafkadash.planning.topology import ClusterTopology


@dataclass(frozen=True, slots=True)
class RollbackCopies:
    """Bytes at the sizes of the plan; None where a size is not known. ``longest_bytes`` bounds the time: the most that
    one broker receives or sends, or the largest single copy.
    """

    partitions: int
    copied_bytes: int | None
    longest_bytes: int | None


def way_back_of(rows: Iterable[PartitionMove], topology: ClusterTopology) -> RollbackCopies:
    """Sizes are the leader's replicas in ``topology``; a partition that is not in it has no known size."""
    sizes = {(t.name, p.partition): p.size_bytes for t in topology.topics.values() for p in t.partitions}
    moved: Counter[tuple[str, int]] = Counter()
    partitions, copied, largest, unsized = 0, 0, 0, False
    for row in rows:
        partitions += 1
        if not row.removing:
            continue
        size = sizes.get((row.topic, row.partition))
        if size is None:
            unsized = True
            continue
        copied += size * len(row.removing)
        largest = max(largest, size)
        moved["out", row.target[0]] += size * len(row.removing)
        for broker in row.removing:
            moved["in", broker] += size
    if unsized:
        return RollbackCopies(partitions, None, None)
    return RollbackCopies(partitions, copied, max([largest, *moved.values()]))


REPORT_FORMAT = 1
FIRST_EXCEPTIONS = 9
"""Exceptions that stand on the review page itself."""
FIRST_OF_TOPIC = 5
"""Rows that stand in a topic's fold before the rest is asked for."""
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class MovedRow(ReplicaChange):
    """Row of one partition in a stored plan. ``copied_bytes``: of all newly placed replicas, None where the size was
    unknown when the plan was made. ``leader``: at that time, None without one. ``why``: reasons to be listed first.
    """

    topic: str
    partition: int
    current: tuple[int, ...]
    target: tuple[int, ...]
    copied_bytes: int | None
    leader: int | None
    why: tuple[str, ...]

    @property
    def packed(self) -> list[Any]:
        return [
            self.partition,
            list(self.current),
            list(self.target),
            self.copied_bytes,
            self.leader,
            list(self.why),
        ]

    @classmethod
    def unpacked(cls, topic: str, stored: Sequence[Any]) -> MovedRow:
        partition, current, target, copied, leader, why = stored
        return cls(topic, partition, tuple(current), tuple(target), copied, leader, tuple(why))


def store_report(
    change: ChangeRequest,
    artifact: PlanArtifact,
    rows: Iterable[PartitionMove],
    impact: PlanImpact,
    rules: Sequence[Mapping[str, Any]],
    took_s: float,
    topology: ClusterTopology,
    *,
    proof: Mapping[str, Any] | None = None,
    generate_bytes: int | None = None,
) -> PlanReport:
    """Replaces the report of the request, inside the caller's transaction.

    ``rules``: the checker's verdicts (``CheckedRule``). Sizes and leaders are those of
    ``topology``, the one the plan was made from. ``proof`` (``PlanProof``) and ``generate_bytes`` as the planner
    gave them.
    """
    PlanReport.objects.filter(request=change).delete()
    rows = list(rows)
    by_topic = _rows_by_topic(rows, impact, topology)
    listed = {(row.topic, row.partition): row for own in by_topic.values() for row in own if row.why}
    first = [listed[e.topic, e.partition] for e in impact.exceptions if (e.topic, e.partition) in listed]
    report = PlanReport.objects.create(
        request=change,
        artifact=artifact,
        format=REPORT_FORMAT,
        impact=impact.summary_json(),
        rules=[*rules],
        took_s=took_s,
        proof=proof,
        generate_bytes=generate_bytes,
        exceptions=len(listed),
        way_back=asdict(way_back_of(rows, topology)),
        first_exceptions=[[row.topic, *row.packed] for row in first[:FIRST_EXCEPTIONS]],
    )
    topics = [
        _plan_topic(report, ordinal, topic, by_topic[topic.topic], topology)
        for ordinal, topic in enumerate(_largest_first(impact.topics))
        if topic.topic in by_topic
    ]
    PlanTopic.objects.bulk_create(topics, batch_size=_AT_ONCE)
    return report


def rows_of(topic: PlanTopic) -> list[MovedRow]:
    """All rows of a topic, by partition."""
    return [MovedRow.unpacked(topic.topic, stored) for stored in json.loads(zlib.decompress(topic.rows))]


def first_rows_of(topic: PlanTopic) -> list[MovedRow]:
    """Return the rows shown in the topic's fold: rows with a reason to be listed first before the others."""
    return [MovedRow.unpacked(topic.topic, stored) for stored in topic.first]


def first_exceptions_of(report: PlanReport) -> list[MovedRow]:
    return [MovedRow.unpacked(topic, stored) for topic, *stored in report.first_exceptions]


def _rows_by_topic(
    rows: Iterable[PartitionMove], impact: PlanImpact, topology: ClusterTopology
) -> dict[str, list[MovedRow]]:
    why = {(e.topic, e.partition): e.why for e in impact.exceptions}
    by_topic: dict[str, list[MovedRow]] = {}
    for topic, of_topic in groupby(sorted(rows, key=lambda row: (row.topic, row.partition)), lambda row: row.topic):
        known = topology.topics.get(topic)
        partitions = {p.partition: p for p in known.partitions} if known else {}
        moved = []
        for row in of_topic:
            partition = partitions.get(row.partition)
            size = partition.size_bytes if partition else None
            moved.append(
                MovedRow(
                    topic=topic,
                    partition=row.partition,
                    current=row.current,
                    target=row.target,
                    copied_bytes=_count_copied_bytes(size, len(row.adding)),
                    leader=partition.leader if partition else None,
                    why=why.get((topic, row.partition), ()),
                )
            )
        by_topic[topic] = moved
    return by_topic


def _count_copied_bytes(size: int | None, replicas: int) -> int | None:
    """Nothing is copied where no replica is new, whatever its size."""
    if not replicas:
        return 0
    return None if size is None else size * replicas


def _plan_topic(
    report: PlanReport, ordinal: int, impact: TopicImpact, rows: Sequence[MovedRow], topology: ClusterTopology
) -> PlanTopic:
    known = topology.topics.get(impact.topic)
    return PlanTopic(
        report=report,
        ordinal=ordinal,
        topic=impact.topic,
        topic_id=known.id if known else "",
        summary=asdict(impact),
        exceptions=sum(bool(row.why) for row in rows),
        first=[row.packed for row in sorted(rows, key=lambda row: not row.why)[:FIRST_OF_TOPIC]],
        rows=zlib.compress(json.dumps([row.packed for row in rows], separators=(",", ":")).encode()),
    )


def _largest_first(topics: Iterable[TopicImpact]) -> list[TopicImpact]:
    """Unknown sizes before all others: nobody can say that they are small."""
    return sorted(topics, key=lambda t: (t.copied_bytes is not None, -(t.copied_bytes or 0), t.topic))
