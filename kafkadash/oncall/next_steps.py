"""Where to go from a finding: the page that shows what it speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from django.urls import NoReverseMatch, reverse

from kafkadash.clusters.models import Cluster
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.judges.groups import MORE


@dataclass(frozen=True, slots=True)
class NextStep:
    label: str
    url: str


@dataclass(frozen=True, slots=True)
class _Way:
    """``scoped``: the page takes the broker of the scope as well, ``of_group``: the group that is its scope,
    ``of_all``: the page is of no cluster. ``after``: query or fragment with ``{slug}``.
    """

    label: str
    page: str
    after: str = ""
    scoped: bool = False
    of_group: bool = False
    of_all: bool = False


_QUORUM = _Way("See the quorum", "observe:quorum")
_BROKER = _Way("Open broker {broker}", "observe:broker", scoped=True)
_BROKERS = _Way("See the brokers", "observe:brokers")
_GROUP = _Way("Open the group", "observe:group", of_group=True)
_GROUPS = _Way("See the groups", "observe:groups")
_PIPELINE = _Way("See the pipeline", "observe:pipeline", of_all=True)
_COLLECTION = _Way("See the collection", "oncall:overview", "#collection-{slug}")


def _topics(state: str) -> _Way:
    return _Way("See the topics", "observe:topics", f"?state={state}")


# The first whose page is there and whose scope fits is taken.
_WAYS: Mapping[FindingKind, tuple[_Way, ...]] = {
    FindingKind.OFFLINE: (_topics("offline"),),
    FindingKind.QUORUM_LOST: (_QUORUM,),
    FindingKind.QUORUM_MARGIN: (_QUORUM,),
    FindingKind.UNDER_MIN_ISR: (_topics("under-min-isr"),),
    FindingKind.BROKER_DOWN: (_BROKER, _BROKERS),
    FindingKind.FAILED_DIRECTORY: (_BROKER,),
    FindingKind.AT_MIN_ISR: (_topics("at-min-isr"),),
    FindingKind.UNDER_REPLICATED: (_topics("under-replicated"),),
    FindingKind.DISK_SOON: (_BROKER,),
    FindingKind.DISK_FULL: (_BROKER,),
    FindingKind.QUORUM_FLAPPING: (_QUORUM,),
    FindingKind.CONSUMER_LAG: (_GROUP, _GROUPS),
    FindingKind.CONSUMER_LOSS: (_GROUP, _GROUPS),
    FindingKind.ORPHAN_THROTTLE: (_Way("See the throttles", "observe:throttles"),),
    FindingKind.ZOMBIE_REASSIGNMENT: (_Way("See the reassignments", "observe:reassignments"),),
    FindingKind.RACK_VIOLATION: (_Way("See the racks", "observe:racks"), _topics("racks")),
    FindingKind.LEADER_SKEW: (_BROKERS,),
    FindingKind.MIXED_VERSIONS: (_BROKERS,),
    FindingKind.BROKER_AWAY: (_BROKER,),
    FindingKind.SEGMENT_SET_ASIDE: (_PIPELINE,),
    FindingKind.PIPELINE_STILL: (_PIPELINE,),
    FindingKind.TOPICS_HIDDEN: (_COLLECTION,),
    FindingKind.ANOTHER_CLUSTER: (_COLLECTION,),
    FindingKind.REGISTERED_TWICE: (_COLLECTION,),
    FindingKind.UNREACHABLE: (_COLLECTION,),
    FindingKind.STALE: (_COLLECTION,),
    FindingKind.ZOOKEEPER: (_COLLECTION,),
    FindingKind.DISABLED: (_COLLECTION,),
}


def next_step(cluster: Cluster, kind: FindingKind, scope: str) -> NextStep | None:
    """None where there is no page for it."""
    broker = scope.partition(":")[0]
    for way in _WAYS[kind]:
        if (way.scoped and not broker.isdigit()) or (way.of_group and scope == MORE):
            continue
        item = broker if way.scoped else f"~{scope}" if way.of_group else ""
        if url := _address(way.page, "" if way.of_all else cluster.slug, item):
            return NextStep(way.label.format(broker=broker), url + way.after.format(slug=cluster.slug))
    return None


@cache
def _address(page: str, slug: str, item: str) -> str:
    try:
        return reverse(page, args=[part for part in (slug, item) if part])
    except NoReverseMatch:
        return ""
