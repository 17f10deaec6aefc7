"""Segments for tests and benches: the same for the same shape, through the encoder and the writer of the collectors.

``make(folder, Shape(…))`` needs no database. Offsets follow from the numbers alone: of ``GROUPS`` groups in turn, one
keeps up, one lags, one stands still with members, one has nobody and falls behind, one is empty, and one goes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kafkadash.export.encoding import Columns, pack_rows
from kafkadash.export.flusher import FlushSteps, OutboxSnapshot, PendingFlush, write_flush
from kafkadash.export.places import LocalFolder
from kafkadash.export.schema import SegmentKind

BEGIN = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
EPOCH = 1_795_000_000
GROUPS = ("ok", "lags", "stalls", "stopped", "empty", "rewinds")


@dataclass(frozen=True, slots=True)
class Shape:
    """``partitions`` of each group, in topics of 20; a flush for each ``per_flush`` snapshots of every cluster."""

    clusters: int = 1
    groups: int = 6
    partitions: int = 20
    snapshots: int = 3
    interval_s: float = 30
    per_flush: int = 1
    begin: datetime = BEGIN
    first_seq: int = 1
    """Of both the snapshots and the flushes: another call may go on where one ended."""

    @property
    def pairs(self) -> int:
        """(group, partition) in one snapshot of one cluster."""
        return self.groups * self.partitions


def make(folder: Path, shape: Shape) -> list[str]:
    """Writes them below ``folder`` as flushes do and returns the addresses of the manifests, oldest first."""
    place = LocalFolder(folder.as_uri(), folder)
    made = []
    for flush, snapshots in flushes(shape):
        write_flush(place, flush, snapshots, FlushSteps())
        made.append(flush.address(SegmentKind.MANIFEST))
    return made


def flushes(shape: Shape) -> Iterator[tuple[PendingFlush, list[OutboxSnapshot]]]:
    """Flush by flush with its snapshots, for who wants to write them at his own pace."""
    for number, start in enumerate(range(0, shape.snapshots, shape.per_flush)):
        steps = range(start, min(start + shape.per_flush, shape.snapshots))
        snapshots = [snapshot(shape, cluster, step) for step in steps for cluster in range(shape.clusters)]
        at = shape.begin + timedelta(seconds=shape.interval_s * steps[-1] + 1)
        seq = shape.first_seq + number
        yield PendingFlush(EPOCH, seq, at, f"{EPOCH:016x}{seq:016x}"), snapshots


def snapshot(shape: Shape, cluster: int, step: int) -> OutboxSnapshot:
    """``step`` counts from 0 at ``shape.begin``."""
    rows = pack_rows(SegmentKind.GROUP_OFFSET, [group_offsets(shape, step)])
    seq = shape.first_seq + step
    return OutboxSnapshot(
        id=seq * shape.clusters + cluster,
        cluster=f"cluster-{cluster}",
        kind=SegmentKind.GROUP_OFFSET,
        epoch=EPOCH,
        seq=seq,
        observed_at=shape.begin + timedelta(seconds=shape.interval_s * step),
        rows=rows.rows,
        data=lambda: rows.data,
        duration_ms=120,
    )


def group_offsets(shape: Shape, step: int) -> Columns:
    """One snapshot of all groups, as columns."""
    groups = [f"{GROUPS[n % len(GROUPS)]}-{n:05d}" for n in range(shape.groups)]
    now = list(_figures(shape, shape.first_seq - 1 + step))
    before = list(_figures(shape, shape.first_seq - 2 + step)) if shape.first_seq + step > 1 else None
    at = shape.begin + timedelta(seconds=shape.interval_s * (step - 1))
    each = range(shape.partitions)
    kinds = [GROUPS[n % len(GROUPS)] for n in range(shape.groups)]
    return {
        "group": [group for group in groups for _ in each],
        "topic": [f"topic-{n:04d}-{partition // 20:03d}" for n in range(shape.groups) for partition in each],
        "partition": [partition % 20 for _ in groups for partition in each],
        "committed": [committed for committed, _ in now],
        "log_start": [0 for _ in now],
        "log_end": [end for _, end in now],
        "lag": _lags(now),
        "group_state": ["Empty" if kind in ("stopped", "empty") else "Stable" for kind in kinds for _ in each],
        "members": [0 if kind in ("stopped", "empty") else 3 for kind in kinds for _ in each],
        "allowed_lag": 0,
        "previous_committed": [committed for committed, _ in before] if before else None,
        "previous_lag": _lags(before) if before else None,
        "previous_at": at if before else None,
        "verdict": "unknown",
    }


def _figures(shape: Shape, step: int) -> Iterator[tuple[int | None, int]]:
    """(committed or None, log end) of each pair at a step that counts from 0 whichever call it is of."""
    for number in range(shape.groups):
        kind = GROUPS[number % len(GROUPS)]
        for partition in range(shape.partitions):
            rate = 50 + 7 * (partition % 20) + number % 13
            end = 1_000 + rate * step
            match kind:
                case "ok":
                    yield end, end
                case "lags":
                    yield end - min(end, 400 + 20 * step), end
                case "stalls" | "stopped":
                    yield 900, end
                case "empty":
                    yield None, end
                case _:
                    yield (end if step % 8 else max(0, end - 700)), end


def _lags(figures: Iterable[tuple[int | None, int]]) -> list[int | None]:
    return [None if committed is None else end - committed for committed, end in figures]
