"""What a look at the reassignments has for the pipeline: what moves, and how far the logs of it are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafkadash.domain.segments import SegmentKind
from kafkadash.observe.models import ReassignmentSnapshot
from kafkadash.observe.segments.encoding import Columns
from kafkadash.observe.segments.outbox import Facts

_Replica = tuple[str, int, int, int | None, int | None, bool, bool | None]
_REPLICA = ("topic", "partition", "broker", "log_end", "log_start", "is_leader", "in_isr")


def move_facts(running: Sequence[ReassignmentSnapshot]) -> list[Facts]:
    """Of the rows as they were just read. Where nothing moves, that is told; log ends were not read then."""
    facts = [Facts(SegmentKind.REASSIGNMENT, [_moves(running)])]
    if running:
        facts.append(Facts(SegmentKind.REPLICA, [_replicas(running)]))
    return facts


def _moves(running: Sequence[ReassignmentSnapshot]) -> Columns:
    return {
        "topic": [row.topic for row in running],
        "partition": [row.partition for row in running],
        "replicas": [row.replicas for row in running],
        "adding": [row.adding for row in running],
        "removing": [row.removing for row in running],
        "first_seen": [row.started_before for row in running],
        "move": [row.claimed_by or None for row in running],
    }


def _replicas(running: Sequence[ReassignmentSnapshot]) -> Columns:
    """Leader and adding replicas, as far as their log ends were read: what did not answer has no row."""
    rows = [replica for row in running for replica in _read(row)]
    columns = dict(zip(_REPLICA, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(_REPLICA, ())
    return {**columns, "directory": "", "is_future": False, "method": "exact"}


def _read(row: ReassignmentSnapshot) -> Iterator[_Replica]:
    if row.leader is not None and row.leader_log_end is not None:
        yield row.topic, row.partition, row.leader, row.leader_log_end, row.leader_log_start, True, True
    for replica in row.replicas_progress:
        if replica["log_end"] is not None and replica["broker"] != row.leader:
            end, in_isr = replica["log_end"], replica["in_isr"]
            yield row.topic, row.partition, replica["broker"], end, None, False, in_isr
