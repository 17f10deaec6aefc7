"""The controller quorum (KIP-836): who leads it and how far every voter and observer is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db.models import Min

from kafkadash.clusters.models import Cluster
from kafkadash.core.leases import WriteStamp
from kafkadash.core.rows import update_rows
from kafkadash.export.encoding import Columns
from kafkadash.export.outbox import OutboxFacts
from kafkadash.export.schema import SegmentKind
from kafkadash.kafka.api import QuorumDescription, QuorumReplica
from kafkadash.monitoring.cluster_events.rules import EventDraft, describe_controller
from kafkadash.monitoring.cluster_events.store import store_events
from kafkadash.monitoring.collectors import CollectContext, CollectedFacts, to_utc
from kafkadash.monitoring.models import CollectorKind, QuorumReplicaState, QuorumSnapshot
from kafkadash.monitoring.quorum.rules import NodeStanding, QuorumNode
from kafkadash.monitoring.quorum.rules import judge_quorum as judge

GONE = "Gone"
"""Status of a node that the answer no longer lists: the leader forgets observers that stay away for five minutes."""

TRY_S = 2.5
"""The controllers answer within milliseconds; an election takes seconds, and is why they are asked twice in a row."""

_CHANGING = ("directory_id", "voter", "status", "changed_at")


def read(asking: CollectContext) -> CollectedFacts:
    asking.step()
    quorum = asking.admin.quorum(deadline=min(TRY_S, asking.deadline))
    replicas = _pack_replicas(quorum.voters, voter=True) + _pack_replicas(quorum.observers, voter=False)
    snapshot = QuorumSnapshot(
        cluster=asking.cluster,
        taken_at=to_utc(quorum.taken_at),
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        replicas=replicas,
    )
    led_since = _led_since(asking.cluster, quorum)
    standings = _judge_nodes(quorum, snapshot, led_since or snapshot.taken_at)
    new, changed = _compare_nodes(asking.cluster, standings, snapshot.taken_at)
    events = _find_election(asking.cluster, quorum) if led_since is None else []

    def write(stamp: WriteStamp) -> None:
        snapshot.epoch, snapshot.seq = stamp.epoch, stamp.seq
        snapshot.save(force_insert=True)
        store_events(asking.cluster.pk, events, snapshot.taken_at, asking.succeeded_at)
        QuorumReplicaState.objects.bulk_create(new)
        update_rows(
            QuorumReplicaState,
            {row.pk: {name: getattr(row, name) for name in _CHANGING} for row in changed},
        )

    return CollectedFacts(
        taken_at=snapshot.taken_at,
        rows=len(replicas),
        write=write,
        facts=[_facts(quorum)],
        # An election, and a broker that falls behind the controllers, come before leaders and ISR change.
        doubts=[CollectorKind.METADATA] if led_since is None or new or changed else [],
    )


def _led_since(cluster: Cluster, quorum: QuorumDescription) -> datetime | None:
    """When this leader was first seen to lead in this epoch, on our clock; None if that is now."""
    seen = QuorumSnapshot.objects.filter(cluster=cluster, leader_epoch=quorum.leader_epoch)
    first: datetime | None = seen.aggregate(first=Min("taken_at"))["first"]
    return first


def _find_election(cluster: Cluster, quorum: QuorumDescription) -> list[EventDraft]:
    """Return the event of an epoch that was not seen before; none if no epoch was ever seen."""
    before = QuorumSnapshot.objects.filter(cluster=cluster).order_by("-taken_at").first()
    if before is None or before.leader_epoch >= quorum.leader_epoch:
        return []
    return [
        describe_controller((before.leader_id, before.leader_epoch), (quorum.leader_id, quorum.leader_epoch)),
    ]


def _judge_nodes(quorum: QuorumDescription, snapshot: QuorumSnapshot, since: datetime) -> Iterable[NodeStanding]:
    """Every listed node, judged."""
    nodes = [QuorumNode(**node) for node in snapshot.replicas]
    judged = judge(nodes, quorum.leader_id, (snapshot.taken_at - since).total_seconds())
    return (*judged.voters, *judged.observers)


def _compare_nodes(
    cluster: Cluster, standings: Iterable[NodeStanding], taken_at: datetime
) -> tuple[list[QuorumReplicaState], list[QuorumReplicaState]]:
    """Rows of nodes that are new, and of those whose status changed or that are not listed any more."""
    known = {(row.node_id, row.directory_id): row for row in QuorumReplicaState.objects.filter(cluster=cluster)}
    listed = list(standings)
    keys = {(standing.node.id, standing.node.directory_id) for standing in listed}
    new, changed = [], []
    for standing in listed:
        node, status = standing.node, str(standing.status)
        row = known.pop((node.id, node.directory_id), None) or _told_otherwise(known, keys, node)
        if row is None:
            new.append(
                QuorumReplicaState(
                    cluster=cluster,
                    node_id=node.id,
                    directory_id=node.directory_id,
                    voter=node.voter,
                    status=status,
                    first_seen_at=taken_at,
                    changed_at=taken_at,
                )
            )
        elif (row.voter, row.status, row.directory_id) != (node.voter, status, node.directory_id):
            row.changed_at = row.changed_at if row.status == status else taken_at
            row.voter, row.status, row.directory_id = node.voter, status, node.directory_id
            changed.append(row)
    for row in known.values():
        if row.status != GONE:
            row.status, row.changed_at = GONE, taken_at
            changed.append(row)
    return new, changed


def _told_otherwise(
    known: dict[tuple[int, str], QuorumReplicaState], listed: set[tuple[int, str]], node: QuorumNode
) -> QuorumReplicaState | None:
    """Takes the row of the same node whose directory id was not told then, or is not told now.

    A new leader learns the directory ids of static voters from their fetches only
    (org.apache.kafka.raft.LeaderState): without this, each change of the leader would leave voters behind as gone.
    """
    for key in known:
        if key[0] == node.id and key not in listed and not (key[1] and node.directory_id):
            return known.pop(key)
    return None


def _facts(quorum: QuorumDescription) -> OutboxFacts:
    """For the pipeline; times stay those of the leader's clock."""
    voters = [("leader" if each.id == quorum.leader_id else "follower", each) for each in quorum.voters]
    rows = [*voters, *(("observer", each) for each in quorum.observers)]
    columns: Columns = {
        "replica": [each.id for _, each in rows],
        "directory_id": [each.directory_id for _, each in rows],
        "leader": quorum.leader_id,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "log_end": [each.log_end_offset for _, each in rows],
        "last_fetch_ts": [_microseconds(each.last_fetch_ms) for _, each in rows],
        "last_caught_up_ts": [_microseconds(each.last_caught_up_ms) for _, each in rows],
        "role": [role for role, _ in rows],
    }
    return OutboxFacts(SegmentKind.QUORUM, [columns])


def _microseconds(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds * 1000


def _pack_replicas(replicas: Sequence[QuorumReplica], *, voter: bool) -> list[dict[str, object]]:
    return [
        {
            "id": r.id,
            "directory_id": r.directory_id,
            "voter": voter,
            "log_end_offset": r.log_end_offset,
            "last_fetch_ms": r.last_fetch_ms,
            "last_caught_up_ms": r.last_caught_up_ms,
        }
        for r in sorted(replicas, key=lambda r: (r.id, r.directory_id))
    ]
