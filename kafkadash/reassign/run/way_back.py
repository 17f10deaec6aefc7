"""The way back from a run: from its rows as they ended to the original replicas, of what is still as it left it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kafkadash.changes.refusals import Refused
from kafkadash.clusters.models import Cluster
from kafkadash.domain.executor_state import State
from kafkadash.domain.messages import reason_cause
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.topology import Partition, Topology
from kafkadash.domain.problem import Problem, ProblemCode
from kafkadash.observe.models import CollectorRun, Kind
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Move


@dataclass(frozen=True, slots=True)
class WayBack:
    """``rows`` have the original replicas in order as targets; ``left_out`` says of each other row of the run why."""

    rows: Sequence[Row]
    left_out: Sequence[Problem]


def way_back(number: int, topology: Topology) -> WayBack:
    """Of the run of request ``number``, compared with the cluster as ``topology`` has it. One query."""
    partitions: dict[str, dict[int, Partition]] = {}
    rows, left_out = [], []
    for move in Move.objects.filter(execution__request=number).order_by("topic", "partition"):
        if move.topic not in partitions:
            topic = topology.topics.get(move.topic)
            partitions[move.topic] = {p.partition: p for p in topic.partitions} if topic else {}
        why = _why_not(move, topology, partitions[move.topic].get(move.partition))
        if why:
            left_out.append(Problem(ProblemCode.LEFT_OUT, f"{move} is left out: {why}"))
        else:
            current, original = tuple(move.target), tuple(move.current)
            rows.append(Row(move.topic, move.topic_id, move.partition, current, original))
    return WayBack(rows, left_out)


def refuse_facts_before_the_end(cluster: Cluster, since: str) -> None:
    """Unless the cluster was read again after the run had ended; ``since`` as in ``Asked``. Raises Refused."""
    if not since:
        return
    read = CollectorRun.objects.filter(cluster=cluster, kind=Kind.METADATA).first()
    if read is None or read.succeeded_at is None or read.succeeded_at <= datetime.fromisoformat(since):
        raise Refused(ReassignmentErrorCode.NOT_READ_SINCE, cluster=cluster.name)


def _why_not(move: Move, topology: Topology, now: Partition | None) -> str:
    if move.state != State.DONE:
        ended = f"it was not moved ({move.get_state_display()})"
        return f"{ended}: {reason_cause(move.reason)}" if move.reason else f"{ended}."
    topic = topology.topics.get(move.topic)
    if topic is None or now is None:
        return "it is not in the cluster any more."
    if move.topic_id and topic.id and topic.id != move.topic_id:
        return "its topic was deleted and created again since."
    if now.replicas == tuple(move.current):
        return "it has its original replicas again already."
    if now.replicas != tuple(move.target):
        return f"its replicas are {_ids(now.replicas)} by now, not the {_ids(move.target)} that the run left it with."
    return ""


def _ids(replicas: Sequence[int]) -> str:
    return ", ".join(map(str, replicas))
