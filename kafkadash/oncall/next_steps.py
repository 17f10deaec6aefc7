"""Where to go from a finding: the page that shows what it speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from django.urls import NoReverseMatch, reverse

from kafkadash.clusters.models import Cluster
from kafkadash.domain.finding_kinds import FindingKind


@dataclass(frozen=True, slots=True)
class NextStep:
    label: str
    url: str


@dataclass(frozen=True, slots=True)
class _Way:
    """``scoped``: the page takes the broker of the scope as well. ``after``: query or fragment with ``{slug}``."""

    label: str
    page: str
    after: str = ""
    scoped: bool = False


_PARTITIONS = _Way("See the partitions", "oncall:overview", "#partitions-{slug}")
_QUORUM = _Way("See the quorum", "oncall:overview", "#quorum-{slug}")
_BROKERS = _Way("See the brokers", "oncall:overview", "#brokers-{slug}")
_COLLECTION = _Way("See the collection", "oncall:overview", "#collection-{slug}")

_WAYS: Mapping[FindingKind, _Way] = {
    FindingKind.OFFLINE: _PARTITIONS,
    FindingKind.QUORUM_LOST: _QUORUM,
    FindingKind.QUORUM_MARGIN: _QUORUM,
    FindingKind.UNDER_MIN_ISR: _PARTITIONS,
    FindingKind.BROKER_DOWN: _BROKERS,
    FindingKind.FAILED_DIRECTORY: _BROKERS,
    FindingKind.AT_MIN_ISR: _PARTITIONS,
    FindingKind.UNDER_REPLICATED: _PARTITIONS,
    FindingKind.DISK_FULL: _BROKERS,
    FindingKind.QUORUM_FLAPPING: _QUORUM,
    FindingKind.ORPHAN_THROTTLE: _Way("See the throttles", "observe:throttles"),
    FindingKind.ZOMBIE_REASSIGNMENT: _Way("See the reassignments", "observe:reassignments"),
    FindingKind.RACK_VIOLATION: _Way("See the racks", "observe:racks"),
    FindingKind.LEADER_SKEW: _BROKERS,
    FindingKind.MIXED_VERSIONS: _BROKERS,
    FindingKind.BROKER_AWAY: _BROKERS,
    FindingKind.ANOTHER_CLUSTER: _COLLECTION,
    FindingKind.UNREACHABLE: _COLLECTION,
    FindingKind.STALE: _COLLECTION,
    FindingKind.ZOOKEEPER: _COLLECTION,
    FindingKind.DISABLED: _COLLECTION,
}


def next_step(cluster: Cluster, kind: FindingKind, scope: str) -> NextStep | None:
    """None where there is no page for it."""
    way = _WAYS[kind]
    broker = scope.partition(":")[0]
    if way.scoped and not broker.isdigit():
        return None
    url = _address(way.page, cluster.slug, broker if way.scoped else "")
    label = way.label.format(broker=broker)
    return NextStep(label, url + way.after.format(slug=cluster.slug)) if url else None


@cache
def _address(page: str, slug: str, broker: str) -> str:
    try:
        return reverse(page, args=[slug, broker] if broker else [slug])
    except NoReverseMatch:
        return ""
