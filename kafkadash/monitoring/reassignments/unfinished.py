"""Reassignments that ended before they reached their target, compared with the partition as stored now."""

from __future__ import annotations

from dataclasses import dataclass

from kafkadash.core.messages import CodedMessage, coded
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import MoveOutcome, ReassignmentSnapshot, TopicState

_MAY_BE_UNFINISHED = (MoveOutcome.CANCELLED, MoveOutcome.UNKNOWN)


@dataclass(frozen=True, slots=True)
class UnfinishedMove:
    """``replicas``: of the partition now. ``obstacle``: why nobody can propose the rest; None where it is possible."""

    snapshot: ReassignmentSnapshot
    replicas: tuple[int, ...] = ()
    obstacle: CodedMessage | None = None


def find_unfinished(snapshot: ReassignmentSnapshot) -> UnfinishedMove | None:
    """Return the rest of a reassignment that ended; None where there is none. At most two queries.

    A later reassignment of the partition replaces it: then there is no rest, whatever became of the later one.
    """
    if snapshot.outcome not in _MAY_BE_UNFINISHED:
        return None
    own = ReassignmentSnapshot.objects.filter(cluster=snapshot.cluster_id, topic_id=snapshot.topic_id)
    if own.filter(partition=snapshot.partition, pk__gt=snapshot.pk).exists():
        return None
    stored = TopicState.objects.filter(cluster=snapshot.cluster_id, name=snapshot.topic, format=1)
    by_id = dict(stored.values_list("topic_id", "partitions"))
    found = {number: tuple(replicas) for number, _, _, replicas, *_ in by_id.get(snapshot.topic_id, ())}
    if len(by_id) != 1 or snapshot.partition not in found:
        code = CollectionErrorCode.UNFINISHED_OTHER_TOPIC if by_id else CollectionErrorCode.UNFINISHED_TOPIC_GONE
        return UnfinishedMove(snapshot, obstacle=coded(code, topic=snapshot.topic))
    replicas = found[snapshot.partition]
    return None if replicas == tuple(snapshot.target) else UnfinishedMove(snapshot, replicas)
