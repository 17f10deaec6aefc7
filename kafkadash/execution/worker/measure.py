"""The figures of a run: from what a step read of the cluster to the stored columns, and back for the pages.

``measure`` performs no queries; ``fresh_sizes`` reads what it needs of the stored rows before, in one statement.
``Execution.progress`` holds two zlib streams one after the other: the figures that are shown, and what the next
measurement has to remember. ``Execution.samples`` holds the history for the chart.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kafkadash.clusters.models import Cluster
from kafkadash.core.json_columns import pack_dataclass, unpack_format
from kafkadash.core.messages import choose_plural
from kafkadash.core.rows import without_search_for_cycles
from kafkadash.execution.engine.state import ClusterObservation, Key, RowState, RunRow
from kafkadash.execution.models import Execution
from kafkadash.execution.progress.copies import ReplicaReads, RowRead, RunMemory, Sizes
from kafkadash.execution.progress.figures import FlowDirection, RunNow
from kafkadash.execution.progress.measure import InForce, measure_moves
from kafkadash.execution.progress.stuck import ForeignThrottle
from kafkadash.execution.progress.throughput import ThroughputHistory, add_sample
from kafkadash.kafka.api import OffsetKind, OffsetQuery, ReplicaOffsets
from kafkadash.monitoring.models import BrokerWeights, TopicState

FORMAT = 3
"""Number that goes with the stored figures; figures with another number are not read."""

_NOT_A_REPLICA = frozenset({3, 6})
"""UNKNOWN_TOPIC_OR_PARTITION and NOT_LEADER_OR_FOLLOWER: the copy is not there yet, or is no longer."""


class FreshSizes:
    """Directories that were read since the last measurement, and why figures of some topics are estimates."""

    def __init__(self, sizes: Sizes, estimates: Mapping[str, str] | None, memory: RunMemory | None) -> None:
        self.sizes, self.estimates = sizes, estimates
        self.memory = memory
        """Memory that the last measurement left; the next one uses it up."""


def fresh_sizes(execution: Execution, moves: Sequence[RunRow]) -> FreshSizes:
    """Return what the collectors stored since the last measurement about the rows in flight. One statement, which finds
    nothing in most steps; in the first step of a run a second one.
    """
    memory = _read_memory(execution)
    estimates = None
    if memory is None or memory.estimates is None:
        estimates = _find_estimated_topics(execution.cluster, {move.work.row.topic for move in moves})
    flying = [move for move in moves if move.in_flight and move.work.adding]
    brokers = {broker for move in flying for broker in (*move.work.adding, *move.work.row.current)}
    if not brokers:
        return FreshSizes({}, estimates, memory)
    since = datetime.fromtimestamp(memory.sizes_at if memory else 0.0, UTC)
    topics = {move.work.row.topic for move in flying}
    rows = BrokerWeights.objects.filter(cluster=execution.cluster_id, broker_id__in=brokers, taken_at__gt=since)
    found = rows.values_list("broker_id", "taken_at", "data")
    return FreshSizes({b: (at.timestamp(), _unpack_sizes(data, topics)) for b, at, data in found}, estimates, memory)


@without_search_for_cycles()
def measure(
    execution: Execution,
    moves: Sequence[RunRow],
    seen: ClusterObservation,
    offsets: ReplicaOffsets,
    fresh: FreshSizes,
    now: datetime,
) -> RunNow:
    """The figures of all rows as the step left them, with ``fresh`` of the same step.

    Sets ``progress``, ``progress_at`` and ``samples`` of the execution, which the caller stores.

    ``offsets`` of the rows that are listed: local log start and end of the leader, the log end of each adding
    replica, and its local log start if the topic is tiered. After a worker was killed it goes on from what was stored
    last.
    """
    reads = ReplicaReads(
        _read_at(offsets, now, fresh.memory), _row_reads(moves, seen, offsets), fresh.sizes, fresh.estimates
    )
    run, memory = measure_moves(moves, seen, reads, in_force(execution), now, fresh.memory)
    memory.sizes_at = max([memory.sizes_at, *(at for at, _ in fresh.sizes.values())])
    rates = {lane: flow.latest for lane, flow in memory.flows.items()}
    history = add_sample(
        stored_samples(execution) or ThroughputHistory(), run, rates, memory.whole.latest if memory.whole else None
    )
    execution.progress = _zip_json(pack_dataclass(run, format_number=FORMAT)) + _zip_json(
        pack_dataclass(memory, format_number=FORMAT)
    )
    execution.progress_at = datetime.fromtimestamp(reads.at, UTC)
    execution.samples = _zip_json(pack_dataclass(history, format_number=FORMAT))
    return run


def in_force(execution: Execution) -> InForce:
    foreign = tuple(
        ForeignThrottle(str(one["resource"]), str(one["name"]), str(one["key"]), str(one["value"] or ""))
        for one in execution.foreign
    )
    return InForce(execution.throttle, execution.per_broker, execution.per_cluster, foreign)


def stored_progress(execution: Execution) -> RunNow | None:
    """The figures as the last step stored them; None before there were any, and for those of another version."""
    return unpack_format(RunNow, _unzip_json(execution.progress)[0], FORMAT)


def stored_samples(execution: Execution) -> ThroughputHistory | None:
    return unpack_format(ThroughputHistory, _unzip_json(execution.samples)[0], FORMAT)


def inbound_of(execution: Execution) -> tuple[float | None, str]:
    """Bytes per second that a throttle must be above so that what is in flight can finish, and where that comes from.

    It is what producers add to all that is copied to one broker, or from one, at the worst of them. None where it is
    not known, before a move has been watched for a quarter of a minute; then the words say so.
    """
    run = stored_progress(execution)
    known = [b for b in run.brokers if b.inbound] if run else []
    unknown = [row for row in run.rows if row.inbound is None and row.size_bytes != 0] if run else []
    if run is None or not run.rows:
        return None, "No moves are in flight, so the producers' write rate is unknown."
    if unknown:
        moves = choose_plural("# move|# moves", len(unknown))
        return None, f"The producers' write rate is not known yet for {moves} of {len(run.rows):,} in flight."
    if not known:
        return 0.0, "Producers write nothing to the partitions in flight."
    most = max(known, key=lambda b: b.inbound or 0.0)
    way = "to" if most.direction is FlowDirection.IN else "from"
    return most.inbound, (
        f"Producers write {(most.inbound or 0.0) / 1e6:,.2f} MB/s to the partitions copied {way} broker {most.broker},"
        " counted once per copy."
    )


def moved_at_end(before: RunNow | None, move: RunRow) -> int | None:
    """Bytes that had been copied of a row that has just ended, all copies together, by the figures of the step before.

    None where that is not known. One that is done has all of it.
    """
    if not move.work.adding:
        return 0
    row = next((r for r in before.rows if (r.topic, r.partition) == move.key), None) if before else None
    if move.state is RowState.DONE:
        if row is not None and row.size_bytes is not None:
            return row.size_bytes
        return None if move.work.size_bytes is None else move.work.size_bytes * len(move.work.adding)
    if row is None:
        return 0 if move.submitted_at is None else None
    return row.moved_bytes


def _read_memory(execution: Execution) -> RunMemory | None:
    """Return the measurement's memory, which is stored after the figures."""
    return unpack_format(RunMemory, _unzip_json(execution.progress)[1], FORMAT)


def _unzip_json(packed: bytes | memoryview) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the content of one stream, or of two that follow each other; empty where there is none.

    Also where another version laid it out in a way that is not known here: then it is of no format either.
    """
    first = zlib.decompressobj()
    try:
        content = first.decompress(bytes(packed))
        second = zlib.decompress(first.unused_data) if first.unused_data else b""
        return json.loads(content or b"{}"), json.loads(second or b"{}")
    except (zlib.error, ValueError):
        return {}, {}


def _zip_json(content: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 1)


def _read_at(offsets: ReplicaOffsets, now: datetime, memory: RunMemory | None) -> float:
    """The middle of the answers, so that a broker that answers late does not put the others off.

    It is on the database's clock as this worker counts it on (``core.clock``), and ``now`` is what the database said:
    without answers, so much later than the last time as has passed there. It never goes back, whatever another worker
    counts.
    """
    times = sorted(found.taken_at for found in offsets.offsets.values())
    if memory is None:
        return round(times[len(times) // 2] if times else now.timestamp(), 3)
    passed = max(0.0, now.timestamp() - memory.stepped_at)
    return round(max(memory.at, times[len(times) // 2] if times else memory.at + passed), 3)


def _row_reads(moves: Sequence[RunRow], seen: ClusterObservation, offsets: ReplicaOffsets) -> dict[Key, RowRead]:
    found = {}
    for move in moves:
        if move.in_flight and move.work.adding:
            partition = seen.partitions.get(move.key)
            found[move.key] = _row_read(move, partition.leader if partition else None, offsets)
    return found


def _row_read(move: RunRow, leader: int | None, offsets: ReplicaOffsets) -> RowRead:
    topic, number = move.key
    ends, begins, times, refused = {}, {}, [], ""
    for broker in move.work.adding:
        query = OffsetQuery(broker, topic, number, OffsetKind.LATEST)
        own = offsets.offsets.get(query)
        if own is not None:
            ends[broker] = own.offset
            times.append(own.taken_at)
            if begin := offsets.offsets.get(OffsetQuery(broker, topic, number, OffsetKind.EARLIEST_LOCAL)):
                begins[broker] = begin.offset
        elif (error := offsets.errors.get(query)) and error.code is not None and error.code not in _NOT_A_REPLICA:
            refused = error.text
    if leader is None:
        return RowRead(ends=ends, refused=refused)
    end = offsets.offsets.get(OffsetQuery(leader, topic, number, OffsetKind.LATEST))
    start = offsets.offsets.get(OffsetQuery(leader, topic, number, OffsetKind.EARLIEST_LOCAL))
    return RowRead(
        leader,
        start.offset if start else None,
        end.offset if end else None,
        ends,
        min(times) if times else None,
        refused,
        begins,
    )


def _unpack_sizes(data: bytes | memoryview, topics: Collection[str]) -> dict[Key, int]:
    packed: Mapping[str, Mapping[str, int]] = json.loads(zlib.decompress(bytes(data)))
    return {(topic, int(number)): size for topic in topics for number, size in packed.get(topic, {}).items()}


def _find_estimated_topics(cluster: Cluster, topics: Collection[str]) -> dict[str, str]:
    """Compaction changes how many records there are."""
    found = {}
    for name, config in TopicState.objects.filter(cluster=cluster, name__in=topics).values_list("name", "config"):
        values = {key: value for key, (value, _) in (config or {}).items()}
        if "compact" in (values.get("cleanup.policy") or ""):
            found[name] = "compacted"
    return found
