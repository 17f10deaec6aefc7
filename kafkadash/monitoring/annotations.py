"""Events of a cluster as marks on its charts: controller changes, and events of the rooms above (findings, runs)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from django.db.models import Max, Min

from kafkadash.core.charts import ChartMark
from kafkadash.monitoring.models import QuorumSnapshot
from kafkadash.monitoring.quorum.rules import LeaderTerm, leader_changes

MarkSource = Callable[[int, datetime, datetime], Iterable[ChartMark]]
"""Primary key of a cluster, begin and end → marks from begin up to end; one query."""
MOST_MARKS = 16
"""Marks of one chart at most; older ones are left out."""
_sources: list[MarkSource] = []


def register_mark_source(source: MarkSource) -> None:
    if source not in _sources:
        _sources.append(source)


def read_marks(cluster_id: int, begin: datetime, end: datetime) -> list[ChartMark]:
    """Return the newest marks from ``begin`` up to ``end`` in order of time; one query for each source, and one."""
    found = _read_controller_changes(cluster_id, begin, end)
    for source in _sources:
        found += source(cluster_id, begin, end)
    return sorted(found, key=lambda mark: (mark.at, mark.label))[-MOST_MARKS:]


def _read_controller_changes(cluster_id: int, begin: datetime, end: datetime) -> list[ChartMark]:
    """Return a mark for each epoch that began after ``begin``; the first epoch in the time began before."""
    snapshots = QuorumSnapshot.objects.filter(cluster=cluster_id, taken_at__gte=begin, taken_at__lt=end)
    terms = snapshots.values_list("leader_id", "leader_epoch").annotate(first=Min("taken_at"), last=Max("taken_at"))
    return [
        ChartMark(
            change.at.timestamp(),
            f"Controller {change.before.leader_id} → {change.after.leader_id}, epoch {change.after.epoch}",
        )
        for change in leader_changes([LeaderTerm(*term) for term in terms])
    ]
