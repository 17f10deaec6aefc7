"""A finished plan as rows: what a page shows of it is read without unpacking what it does not show."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.domain.impact import Impact, TopicImpact
from kafkadash.domain.plan import Replaced, Row
from kafkadash.domain.planner.topology import Topology
from kafkadash.domain.way_back import way_back_of
from kafkadash.reassign.models import PlanReport, PlanTopic

REPORT_FORMAT = 1
FIRST_EXCEPTIONS = 9
"""Exceptions that stand on the review page itself."""
FIRST_OF_TOPIC = 5
"""Rows that stand in a topic's fold before the rest is asked for."""
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class MovedRow(Replaced):
    """One partition of a stored plan. ``copied_bytes``: of all newly placed replicas, None where the size was unknown
    when the plan was made. ``leader`` is who led it then, None without one. ``why`` it is listed first, or nothing.
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
    rows: Iterable[Row],
    impact: Impact,
    rules: Sequence[Sequence[Any]],
    took_s: float,
    topology: Topology,
    *,
    proof: Mapping[str, Any] | None = None,
    generate_bytes: int | None = None,
) -> PlanReport:
    """Replaces the report of the request, inside the caller's transaction.

    ``rules``: the checker's verdicts, each [rule, passed, figure, problems]. Sizes and leaders are those of
    ``topology``, the one the plan was made from. ``proof`` (``Proof.as_json``) and ``generate_bytes`` as the planner
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
        rules=[list(rule) for rule in rules],
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
    """Those that stand in its fold: with a reason to be listed first before the others."""
    return [MovedRow.unpacked(topic.topic, stored) for stored in topic.first]


def first_exceptions_of(report: PlanReport) -> list[MovedRow]:
    return [MovedRow.unpacked(topic, stored) for topic, *stored in report.first_exceptions]


def _rows_by_topic(rows: Iterable[Row], impact: Impact, topology: Topology) -> dict[str, list[MovedRow]]:
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
                    copied_bytes=_copied(size, len(row.adding)),
                    leader=partition.leader if partition else None,
                    why=why.get((topic, row.partition), ()),
                )
            )
        by_topic[topic] = moved
    return by_topic


def _copied(size: int | None, replicas: int) -> int | None:
    """Nothing is copied where no replica is new, whatever its size."""
    if not replicas:
        return 0
    return None if size is None else size * replicas


def _plan_topic(
    report: PlanReport, ordinal: int, impact: TopicImpact, rows: Sequence[MovedRow], topology: Topology
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
