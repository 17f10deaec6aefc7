"""Findings as marks on the charts of a cluster."""

from __future__ import annotations

from datetime import datetime

from kafkadash.core.charts import ChartMark
from kafkadash.findings.kinds import FactSource, FindingKind
from kafkadash.findings.models import Finding

MOST_FINDINGS = 12
_SOURCES = frozenset({FactSource.ANSWERS, FactSource.METADATA, FactSource.QUORUM, FactSource.LOG_DIRS})
"""Findings about brokers, partitions and controllers; those of groups are bands on their own charts."""
_MARKED = [kind.value for kind in FindingKind if kind.about.source in _SOURCES]


def mark_findings(cluster_id: int, begin: datetime, end: datetime) -> list[ChartMark]:
    """Return a mark for each finding that was first seen from ``begin`` up to ``end``, at most the newest 12."""
    found = Finding.objects.filter(
        cluster=cluster_id, kind__in=_MARKED, opened_at__isnull=False, first_seen_at__gte=begin, first_seen_at__lt=end
    )
    newest = found.order_by("-first_seen_at")[:MOST_FINDINGS]
    return [ChartMark(row.first_seen_at.timestamp(), row.title) for row in newest]
