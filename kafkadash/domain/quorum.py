"""How the controllers stand, from one DescribeQuorum answer (KIP-836).

Every time in that answer is on the clock of the leader, whose own entry carries the leader's now. Ages are therefore
differences inside one answer; the clock of this machine is never subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

LAGGING_MS = 2_000
"""Default of controller.quorum.fetch.timeout.ms: a voter that is this far behind is about to start an election."""

OFFLINE_FETCH_MS = 300_000
"""Kafka drops observers from the answer when they have not fetched for this long."""

SILENT_GRACE_S = 15.0
"""How long after a change of the leader a replica may stay unheard of before it counts as offline."""


class NodeStatus(StrEnum):
    LEADER = "Leader"
    IN_SYNC = "In sync"
    LAGGING = "Lagging"
    OFFLINE = "Offline"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class QuorumNode:
    """A voter or observer as the leader tells it; milliseconds on the leader's clock, None where unknown."""

    id: int
    directory_id: str
    voter: bool
    log_end_offset: int | None
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(frozen=True, slots=True)
class NodeStanding:
    """A node with what follows from the answer; ``lag_ms`` and the ages are None where the leader has no time."""

    node: QuorumNode
    status: NodeStatus
    lag_records: int | None
    lag_ms: int | None
    fetch_age_ms: int | None
    caught_up_age_ms: int | None


@dataclass(frozen=True, slots=True)
class Quorum:
    """Voters and observers, each sorted by id, and what the voters can still bear."""

    voters: tuple[NodeStanding, ...]
    observers: tuple[NodeStanding, ...]

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    @property
    def in_sync(self) -> int:
        """Voters that are known to be healthy; unknown is not healthy."""
        return sum(v.status in (NodeStatus.LEADER, NodeStatus.IN_SYNC) for v in self.voters)

    @property
    def failing(self) -> int:
        """Voters that are known not to be healthy."""
        return sum(v.status in (NodeStatus.LAGGING, NodeStatus.OFFLINE) for v in self.voters)

    @property
    def survives(self) -> int:
        """How many more voters may fail before the majority is gone; not below 0."""
        return max(0, self.in_sync - self.majority)


def quorum(nodes: Sequence[QuorumNode], leader_id: int, epoch_seen_s: float, missing: Sequence[int] = ()) -> Quorum:
    """Judges every node of one answer.

    ``epoch_seen_s``: for how many seconds this leader's epoch has been seen. ``missing``: registered brokers that the
    answer does not name; the leader forgets observers that stay away, so they are offline, not healthy.
    """
    leader = next((n for n in nodes if n.id == leader_id), None)
    gone = [
        QuorumNode(b, "", voter=False, log_end_offset=None, last_fetch_ms=None, last_caught_up_ms=None)
        for b in missing
        if all(n.id != b for n in nodes)
    ]
    standings = sorted(
        [_standing(n, leader, leader_id, epoch_seen_s) for n in nodes]
        + [NodeStanding(n, NodeStatus.OFFLINE, None, None, None, None) for n in gone],
        key=lambda s: (s.node.id, s.node.directory_id),
    )
    return Quorum(
        voters=tuple(s for s in standings if s.node.voter),
        observers=tuple(s for s in standings if not s.node.voter),
    )


def _standing(node: QuorumNode, leader: QuorumNode | None, leader_id: int, epoch_seen_s: float) -> NodeStanding:
    now_ms = leader.last_caught_up_ms if leader else None
    fetch_age = _since(now_ms, node.last_fetch_ms)
    lag_ms = _since(now_ms, node.last_caught_up_ms)
    records = None
    if leader and leader.log_end_offset is not None and node.log_end_offset is not None:
        records = max(0, leader.log_end_offset - node.log_end_offset)
    return NodeStanding(
        node=node,
        status=_status(node, leader_id, fetch_age, lag_ms, epoch_seen_s),
        lag_records=records,
        lag_ms=lag_ms,
        fetch_age_ms=fetch_age,
        caught_up_age_ms=lag_ms,
    )


def _status(
    node: QuorumNode, leader_id: int, fetch_age: int | None, lag_ms: int | None, epoch_seen_s: float
) -> NodeStatus:
    if node.id == leader_id:
        return NodeStatus.LEADER
    unheard = node.log_end_offset is None and node.last_fetch_ms is None
    if (fetch_age is not None and fetch_age > OFFLINE_FETCH_MS) or (unheard and epoch_seen_s > SILENT_GRACE_S):
        return NodeStatus.OFFLINE
    if lag_ms is None:
        return NodeStatus.UNKNOWN
    return NodeStatus.LAGGING if lag_ms >= LAGGING_MS else NodeStatus.IN_SYNC


def _since(now_ms: int | None, then_ms: int | None) -> int | None:
    return None if now_ms is None or then_ms is None else max(0, now_ms - then_ms)
