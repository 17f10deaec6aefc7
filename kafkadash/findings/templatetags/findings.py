"""Open findings of an object, for templates of apps below this one, whose code does not import findings."""

from __future__ import annotations

from django import template

from kafkadash.clusters.models import Cluster
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding

register = template.Library()

_OF_GROUPS = (FindingKind.CONSUMER_LAG, FindingKind.CONSUMER_LOSS)


@register.simple_tag
def finding_of_group(cluster: Cluster, key: str) -> Finding | None:
    """The most urgent open finding about a consumer group (``GroupState.key``). One query."""
    open_ones = Finding.objects.filter(
        cluster=cluster, kind__in=_OF_GROUPS, scope=key, opened_at__isnull=False, closed_at=None
    ).select_related("acknowledged_by")
    return min(open_ones, key=lambda finding: FindingKind(finding.kind).rank, default=None)
