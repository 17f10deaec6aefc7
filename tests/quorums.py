"""Answers of controllers over time, as their collector leaves them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.models import QuorumReplicaState, QuorumSnapshot
from kafkadash.monitoring.quorum.rules import NodeStatus
from tests.factories import directory_id, node

VOTERS, OBSERVERS = (101, 102, 103), (1, 2, 3)

Behind = Callable[[int, int], int | None]
"""(node, index of the answer) → ms behind the leader; None: the leader has no time of it."""


def steady(node_id: int, index: int) -> int:
    """A healthy cluster that is idle: between 150 and 400 ms."""
    return 150 + (node_id * 37 + index * 53) % 250


def answers(
    cluster: Cluster,
    until: datetime,
    length: timedelta,
    step: timedelta = timedelta(seconds=10),
    *,
    leaders: Sequence[tuple[timedelta, int, int]] = ((timedelta(0), 102, 47),),
    behind: Behind = steady,
    silent: Callable[[datetime], bool] = lambda _: False,
    voters: Sequence[int] = VOTERS,
    observers: Sequence[int] = OBSERVERS,
) -> None:
    """Replaces what is stored by one answer for each step of ``length``, the last at ``until``.

    ``leaders``: (since the begin, leader, epoch), in order. ``silent``: when nobody answered.
    """
    QuorumSnapshot.objects.filter(cluster=cluster).delete()
    begin, rows = until - length, []
    for index in range(int(length / step) + 1):
        at = until - length + index * step
        if silent(at):
            continue
        _, leader, epoch = [lead for lead in leaders if begin + lead[0] <= at][-1]
        now_ms = int(at.timestamp() * 1000)
        replicas = [
            node(
                id_,
                voter=id_ in voters,
                caught_up_ago=0 if id_ == leader else behind(id_, index),
                now_ms=now_ms,
            )
            for id_ in (*voters, *observers)
        ]
        rows.append(
            QuorumSnapshot(
                cluster=cluster,
                taken_at=at,
                leader_id=leader,
                leader_epoch=epoch,
                high_watermark=8_412_907,
                replicas=replicas,
                epoch=9,
                seq=index,
            )
        )
    QuorumSnapshot.objects.bulk_create(rows, batch_size=2000)


def status_kept(cluster: Cluster, node_id: int, status: str, since: datetime, *, voter: bool = True) -> None:
    """The status of a node as its collector keeps it."""
    QuorumReplicaState.objects.create(
        cluster=cluster,
        node_id=node_id,
        directory_id=directory_id(node_id),
        voter=voter,
        status=status,
        first_seen_at=since - timedelta(days=2),
        changed_at=since,
    )


def all_in_sync(cluster: Cluster, since: datetime) -> None:
    for node_id in (*VOTERS, *OBSERVERS):
        status = NodeStatus.LEADER if node_id == 102 else NodeStatus.IN_SYNC
        status_kept(cluster, node_id, status.value, since, voter=node_id in VOTERS)
