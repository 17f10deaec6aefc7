"""The controllers of a cluster: what the quorum survives, every voter and observer, who led when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max, Min

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.quorum import NodeStanding, NodeStatus, Quorum
from kafkadash.domain.quorum_history import Change, Reign, changes, is_flapping, recent_changes
from kafkadash.domain.quorum_verdict import quorum_verdict
from kafkadash.observe.collectors.quorum import GONE
from kafkadash.observe.models import (
    BrokerState,
    Capabilities,
    Kind,
    QuorumReplicaState,
    QuorumSnapshot,
)
from kafkadash.observe.standing import QuorumSeen, Standing, refreshed, standing

GONE_SHOWN_FOR = timedelta(hours=24)
"""A node that is gone stays listed for so long; a registered broker stays until it is back."""

LEADERS_SHOWN = 8
_STATES = {
    NodeStatus.LEADER: "ok",
    NodeStatus.IN_SYNC: "ok",
    NodeStatus.LAGGING: "warning",
    NodeStatus.OFFLINE: "warning",
    NodeStatus.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node of the quorum as the page lists it. ``standing`` is None for one that is gone.

    ``since``: since when it has this status, as far as seen; None where no status was kept yet. ``broker`` is the
    broker of the same process, None for a controller of its own.
    """

    id: int
    directory_id: str
    voter: bool
    status: str
    state: str
    standing: NodeStanding | None
    since: datetime | None
    broker: BrokerState | None

    @property
    def role(self) -> str:
        """As KIP-836 names it."""
        if self.status == NodeStatus.LEADER:
            return "Leader"
        return "Follower" if self.voter else "Observer"


@dataclass(frozen=True, slots=True)
class MarginRow:
    """A voter in the strip of the margin: needed for a majority, may fail, or does not count now."""

    row: NodeRow
    place: str
    """``needed``, ``spare`` or ``out``"""
    first: bool
    """The first of its place says what the place is."""


def controllers_context(
    cluster: Cluster, now: datetime, known: Standing | None = None, reigns: Sequence[Reign] | None = None
) -> dict[str, Any]:
    """The answer, the margin and all nodes. ``sampled_at``: when the controllers last answered.

    ``known`` and ``reigns`` (``reigns_of``), here and below: read already, for a page that shows several panels.
    """
    read = known or standing(cluster, now)
    brokers = {b.broker_id: b for b in BrokerState.objects.filter(cluster=cluster)}
    kept = list(QuorumReplicaState.objects.filter(cluster=cluster).order_by("node_id", "directory_id"))
    gone = [_gone_row(k, brokers) for k in kept if k.status == GONE and _still_listed(k, brokers, now)]
    registered = {b.broker_id for b in brokers.values() if b.gone_at is None}
    seen = read.quorum.lacking(sorted(registered - {row.id for row in gone})) if read.quorum else None
    seen_changes = changes(reigns_of(cluster) if reigns is None else reigns)
    freshness = read.freshness_of(Kind.QUORUM)
    verdict = quorum_verdict(
        seen.quorum if seen else None,
        refreshed(read.runs.get(Kind.QUORUM)),
        refreshed(read.runs.get(Kind.METADATA)),
        recent_changes(seen_changes, now),
        now,
    )
    since = {(k.node_id, k.directory_id): k.changed_at for k in kept if k.status != GONE}
    rows = [_row(s, since, brokers) for s in (*seen.quorum.voters, *seen.quorum.observers)] if seen else []
    listed = sorted([*rows, *gone], key=lambda row: (row.id, row.directory_id))
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": seen.snapshot.taken_at if seen else None,
        "zookeeper": cluster.mode == Mode.ZOOKEEPER,
        "freshness": freshness,
        "run": read.runs.get(Kind.QUORUM),
        "seen": seen,
        "verdict": verdict,
        "certain": not freshness.stale and not verdict.lost,
        "led": _led(seen, seen_changes) if seen else None,
        "voters": [row for row in listed if row.voter],
        "observers": [row for row in listed if not row.voter],
        "margin": _margin(rows, seen.quorum) if seen else [],
        "voter_kind": _voter_kind(cluster),
        "recent_changes": recent_changes(seen_changes, now),
    }


def leaders_context(
    cluster: Cluster, now: datetime, known: Standing | None = None, reigns: Sequence[Reign] | None = None
) -> dict[str, Any]:
    """Who led when, the newest first. Of leaders of long ago only the first answer is kept."""
    read = known or standing(cluster, now)
    reigns = reigns_of(cluster) if reigns is None else reigns
    seen = changes(reigns)
    before = {change.after: change for change in seen}
    after = {change.before: change for change in seen}
    newest = sorted(reigns, key=lambda reign: reign.epoch, reverse=True)
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": max((reign.last_seen for reign in reigns), default=None),
        "freshness": read.freshness_of(Kind.QUORUM),
        "reigns": [(reign, before.get(reign), after.get(reign)) for reign in newest[:LEADERS_SHOWN]],
        "more": len(newest) - LEADERS_SHOWN,
        "changes": len(seen),
        "watched_since": min((reign.first_seen for reign in reigns), default=None),
        "flapping": is_flapping(seen, now),
        "recent_changes": recent_changes(seen, now),
    }


@dataclass(frozen=True, slots=True)
class Led:
    """How long the leader has led: ``at_least`` where the begin of its reign was not seen."""

    since: datetime
    at_least: bool


def _led(seen: QuorumSeen, seen_changes: list[Change]) -> Led:
    begin = next((c.at for c in reversed(seen_changes) if c.after.epoch == seen.snapshot.leader_epoch), None)
    return Led(begin or seen.led_since, at_least=begin is None)


def reigns_of(cluster: Cluster) -> list[Reign]:
    """Every leader's epoch that is kept, in order. One query."""
    rows = (
        QuorumSnapshot.objects.filter(cluster=cluster)
        .values("leader_id", "leader_epoch")
        .annotate(first=Min("taken_at"), last=Max("taken_at"))
        .order_by("leader_epoch")
    )
    return [Reign(row["leader_id"], row["leader_epoch"], row["first"], row["last"]) for row in rows]


def _row(
    standing: NodeStanding, since: Mapping[tuple[int, str], datetime], brokers: Mapping[int, BrokerState]
) -> NodeRow:
    node = standing.node
    return NodeRow(
        id=node.id,
        directory_id=node.directory_id,
        voter=node.voter,
        status=standing.status.value,
        state=_STATES[standing.status],
        standing=standing,
        since=since.get((node.id, node.directory_id)),
        broker=brokers.get(node.id),
    )


def _gone_row(kept: QuorumReplicaState, brokers: Mapping[int, BrokerState]) -> NodeRow:
    return NodeRow(
        id=kept.node_id,
        directory_id=kept.directory_id,
        voter=kept.voter,
        status=GONE,
        state="warning",
        standing=None,
        since=kept.changed_at,
        broker=brokers.get(kept.node_id),
    )


def _still_listed(kept: QuorumReplicaState, brokers: Mapping[int, BrokerState], now: datetime) -> bool:
    broker = brokers.get(kept.node_id)
    return now - kept.changed_at <= GONE_SHOWN_FOR or (broker is not None and broker.gone_at is None)


def _margin(rows: list[NodeRow], quorum: Quorum) -> list[MarginRow]:
    """Voters in the order of their ids: any majority of the healthy ones is needed, so the first are called so."""
    healthy, places, result = 0, set(), []
    for row in rows:
        if not row.voter:
            continue
        place = "out"
        if row.status in (NodeStatus.LEADER, NodeStatus.IN_SYNC):
            healthy += 1
            place = "needed" if healthy <= quorum.majority else "spare"
        result.append(MarginRow(row, place, first=place not in places))
        places.add(place)
    return result


def _voter_kind(cluster: Cluster) -> str:
    """ "dynamic" (KIP-853: feature kraft.version 1 or above), "static", or "" where it is not known.

    Directory ids do not tell: a leader learns those of static voters from their fetches.
    """
    features = Capabilities.objects.filter(cluster=cluster).values_list("features", flat=True).first()
    if not features:
        return ""
    # Brokers do not report a level of 0 (KRaftMetadataCache.features); before 3.9 there was no other.
    level = (features.get("kraft.version") or {}).get("finalized")
    return "dynamic" if level else "static"
