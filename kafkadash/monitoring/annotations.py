"""Events of a cluster as marks on its charts: controller changes, and events of the rooms above (findings, runs)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import pairwise

from django.db.models import Min

from kafkadash.core.charts import ChartMark
from kafkadash.monitoring.models import QuorumSnapshot

MarkSource = Callable[[int, datetime, datetime], Iterable[ChartMark]]
"""Primary key of a cluster, begin and end → marks from begin up to end; one query."""
MOST_MARKS = 16
"""Of one chart: the newest ones."""
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
    terms = snapshots.values_list("leader_epoch", "leader_id").annotate(first=Min("taken_at")).order_by("leader_epoch")
    return [
        ChartMark(first.timestamp(), f"Controller {before} → {leader}")
        for (_, before, _), (_, leader, first) in pairwise(terms)
    ]
