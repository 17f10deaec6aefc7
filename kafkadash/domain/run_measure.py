"""One measurement of a run: from its rows and what was read of their replicas to the figures that are stored and shown.

Each row weighs the bytes that its copies took when the run began, whatever its log does meanwhile; so the plan's
percent says how much of the work is behind us, and is 100 only when all of it is (04-changes.md §6).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kafkadash.domain import run_copies, run_flows
from kafkadash.domain.executor_state import BEFORE, Key, Move, Observation, State
from kafkadash.domain.executor_window import source
from kafkadash.domain.run_copies import NOTHING_READ, RowRead, Sizes, Times
from kafkadash.domain.run_eta import NEVER, TimeLeft, Whole, time_left
from kafkadash.domain.run_lanes import Lanes, OpenRow, arriving, grown_into, without
from kafkadash.domain.run_memory import (
    PAST_EVERY_S,
    PAST_KEPT,
    CopyMemory,
    FlowMemory,
    Lane,
    RowMemory,
    RunMemory,
)
from kafkadash.domain.run_notes import notes
from kafkadash.domain.run_progress import BrokerNow, Direction, Mark, RowNow, RunNow
from kafkadash.domain.run_stuck import (
    SLOW_AFTER_S,
    ForeignThrottle,
    Surroundings,
    cause,
    mark,
    quiet_s,
)

NEARLY = 99.9
"""Shown until all is copied, however little is left."""


@dataclass(frozen=True, slots=True)
class Reads:
    """``at``: when the log ends were read, seconds since the epoch. ``sizes``: of directories read since the last
    measurement. ``estimates``: topic → why its figures are estimates, None where that was not asked this time.
    """

    at: float
    rows: Mapping[Key, RowRead] = field(default_factory=dict)
    sizes: Sizes = field(default_factory=dict)
    estimates: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class InForce:
    """How the run may go now; ``throttle`` in bytes per second, ``foreign``: those of others that differ from it."""

    throttle: int
    per_broker: int
    per_cluster: int
    foreign: tuple[ForeignThrottle, ...] = ()


def measured(
    moves: Sequence[Move],
    seen: Observation,
    reads: Reads,
    force: InForce,
    now: datetime,
    memory: RunMemory | None,
) -> tuple[RunNow, RunMemory]:
    """``moves`` are all rows of the run as the step left them. ``memory`` of the last measurement is used up: what is
    returned with the figures takes its place. Linear in the rows.
    """
    return _Measurement(moves, seen, reads, force, now, memory).taken()


class _Measurement:
    def __init__(
        self,
        moves: Sequence[Move],
        seen: Observation,
        reads: Reads,
        force: InForce,
        now: datetime,
        memory: RunMemory | None,
    ) -> None:
        self._moves, self._seen, self._reads, self._force, self._now = moves, seen, reads, force, now
        self._at = reads.at
        self._foreign = {t.lane: t.rate for t in force.foreign if t.lane is not None and t.rate is not None}
        self._known_before = memory is not None
        self._memory = memory or RunMemory(self._at, force.throttle, throttle_at=0.0)
        if reads.estimates is not None:
            self._memory.estimates = dict(reads.estimates)
        self._lanes = Lanes()
        self._total, self._done, self._unsized, self._copying = 0.0, 0.0, 0, 0
        self._drift = 0.0

    def taken(self) -> tuple[RunNow, RunMemory]:
        memory = self._memory
        self._throttle_changed()
        grown = self._read()
        self._sum_up()
        self._flow(grown)
        left, out = self._time_left()
        percent, moved = self._percent()
        rows = self._rows()
        fell_back = (
            percent is not None and self._total > 0 and self._done < (memory.moved_bytes or 0) - 0.001 * self._total
        )
        memory.percent, memory.moved_bytes = percent, moved
        memory.at, memory.stepped_at = self._at, self._now.timestamp()
        total = None if self._unsized else round(self._total)
        whole = memory.whole
        return RunNow(
            at=self._now,
            total_bytes=total,
            moved_bytes=moved if total is not None else None,
            percent=percent,
            rate=_rate(whole) if whole else None,
            eta_s=left.seconds,
            eta_low_s=left.low,
            eta_high_s=left.high,
            binding=left.binding,
            brokers=self._brokers(left),
            counts=Counter(move.state.value for move in self._moves),
            rows=rows,
            notes=notes(
                copying=self._copying,
                unsized=self._unsized,
                done=sum(move.state is State.DONE for move in self._moves),
                rows=len(self._moves),
                drift=self._drift,
                total=self._total,
                fell_back=fell_back,
                left_out=out,
                throttle_age=self._at - memory.throttle_at if memory.throttle_at > 0 else None,
                throttle=self._force.throttle,
            ),
            throttle=self._force.throttle,
            left_out=out,
        ), memory

    def _throttle_changed(self) -> None:
        memory, before, after = self._memory, self._memory.throttle, self._force.throttle
        if before == after:
            return
        held = {
            lane
            for lane, flow in memory.flows.items()
            if (flow.meter.per_second() or 0.0) >= run_flows.AT_THROTTLE * before
        }
        for row in memory.rows.values():
            rate = row.moved.per_second() if row.moved else None
            lanes = {(row.source, Direction.OUT), *((broker, Direction.IN) for broker in row.copies)}
            if row.moved and rate is not None and not held.isdisjoint(lanes):
                row.moved = row.moved.expecting(rate * after / before)
        for flow in (*memory.flows.values(), *([memory.whole] if memory.whole else [])):
            run_flows.throttle_changed(flow, self._at, before, after)
        memory.throttle, memory.throttle_at = after, self._at

    def _read(self) -> dict[Lane, float]:
        """Every row in flight as its replicas told, and what became of those that are no longer. Returns bytes."""
        memory, reads = self._memory, self._reads
        grown: defaultdict[Lane, float] = defaultdict(float)
        times = Times(memory.past_at, self._at)
        gone = dict(memory.rows)
        for move in self._moves:
            if not move.in_flight or not move.work.adding:
                continue
            key = move.key
            gone.pop(key, None)
            read = reads.rows.get(key, NOTHING_READ)
            row = memory.rows.get(key)
            if row is None:
                row = memory.rows[key] = self._new(move, read)
                memory.kept.pop(key, None)
                memory.led.pop(key, None)
            size = self._size(move)
            self._count(grown, row, run_copies.update(row, key, size, read, reads.sizes, times, self._at))
            if size is None and row.record_bytes is not None and row.size_bytes is not None:
                memory.learned[key] = round(row.size_bytes / len(row.copies))
        if gone:
            self._left(gone, grown)
        self._remember()
        return grown

    def _new(self, move: Move, read: RowRead) -> RowMemory:
        """A row that was in flight before anything was remembered of it begins to be measured where it is now."""
        past: list[int | None] = [None] * len(self._memory.past_at)
        ends = read.ends or {}
        ours = (
            self._known_before
            and move.submitted_at is not None
            and move.submitted_at.timestamp() >= self._memory.stepped_at
        )
        copies = {b: CopyMemory(None if ours else ends.get(b), list(past)) for b in move.work.adding}
        return RowMemory(self._at, copies, source(move.work, self._seen), log_past=list(past))

    def _left(self, gone: Mapping[Key, RowMemory], grown: defaultdict[Lane, float]) -> None:
        for move in self._moves:
            row = gone.get(move.key)
            if row is None:
                continue
            memory = self._memory
            del memory.rows[move.key]
            if move.state is State.DONE:
                self._count(grown, row, run_copies.rest(row, self._size(move)))
            elif move.state not in BEFORE and row.share > 0:
                memory.kept[move.key] = row.share
            if move.ended and row.source is not None and row.source != move.work.row.current[0]:
                memory.led[move.key] = row.source

    def _count(self, grown: defaultdict[Lane, float], row: RowMemory, by_broker: Mapping[int, float]) -> None:
        for broker, number in by_broker.items():
            grown[broker, Direction.IN] += number
            if row.source is not None:
                grown[row.source, Direction.OUT] += number

    def _remember(self) -> None:
        memory = self._memory
        if memory.past_at and self._at - memory.past_at[-1] < PAST_EVERY_S:
            return
        memory.past_at = [*memory.past_at, self._at][-PAST_KEPT:]
        for row in memory.rows.values():
            run_copies.remember(row, len(memory.past_at))

    def _size(self, move: Move) -> int | None:
        """Bytes of one replica that the row counts with."""
        size = move.work.size_bytes
        return self._memory.learned.get(move.key) if size is None else size

    def _sum_up(self) -> None:
        for move in self._moves:
            if not move.work.adding:
                continue
            self._copying += 1
            size = self._size(move)
            row = self._memory.rows.get(move.key)
            share = 1.0 if move.state is State.DONE else row.share if row else self._memory.kept.get(move.key, 0.0)
            if size is None:
                self._unsized += 1
            else:
                self._total += size * len(move.work.adding)
                self._done += size * len(move.work.adding) * share
            leader = self._leader(move, row)
            self._lanes.add(move, leader, size, share)
            if not move.ended:
                self._lanes.add_open(self._open(move, row, leader, size, share))

    def _open(self, move: Move, row: RowMemory | None, leader: int, size: int | None, share: float) -> OpenRow:
        if row is None:
            return OpenRow(move, None, leader, dict.fromkeys(move.work.adding, float(size or 0)))
        left = run_copies.missing(row)
        if not left:
            left = dict.fromkeys(row.copies, 0.0 if row.copied_at else (size or 0) * (1 - share))
        copying = row.copied_at is None and move.state is not State.SUBMITTING
        stuck = row.copied_at is None and quiet_s(row, self._at) >= SLOW_AFTER_S
        if size is not None and row.size_bytes is not None:
            self._drift += row.size_bytes - size * len(row.copies)
        return OpenRow(move, row, leader, left, stuck, copying, run_copies.inbound(row))

    def _leader(self, move: Move, row: RowMemory | None) -> int:
        """Where it is, or was, copied from; where it will be, as far as one can tell."""
        if row is not None and row.source is not None:
            return row.source
        if move.ended:
            return self._memory.led.get(move.key, move.work.row.current[0])
        return source(move.work, self._seen)

    def _flow(self, grown: Mapping[Lane, float]) -> None:
        memory = self._memory
        for lane in {*self._lanes.totals, *grown}:
            flow = memory.flows.get(lane)
            if flow is None:
                flow = memory.flows[lane] = run_flows.begun(self._at)
            run_flows.add(flow, self._at, grown.get(lane, 0.0), busy=self._lanes.now[lane].busy)
        whole = memory.whole = memory.whole or run_flows.begun(self._at)
        run_flows.add(whole, self._at, grown_into(grown), busy=any(row.copying for row in self._lanes.open))

    def _limit(self, lane: Lane) -> int:
        return self._foreign.get(lane, self._force.throttle)

    def _time_left(self) -> tuple[TimeLeft, int]:
        """With how many rows are left out of it, because they do not get on."""
        force, whole = self._force, self._memory.whole
        out = self._lanes.left_out(self._seen.brokers, self._limit, force.throttle, force.per_broker)
        if self._unsized:
            return TimeLeft(), len(out)
        if out and len(out) == len(self._lanes.open):
            return TimeLeft(NEVER, NEVER, NEVER), len(out)
        loads = self._lanes.loads(without(self._lanes.open, out), self._memory.flows, self._limit)
        rows = sum(not move.ended for move in self._moves) - len(out)
        rate, windows = (whole.meter.per_second(), whole.windows) if whole else (None, [])
        left = time_left(loads, Whole(arriving(loads), rate, rows, force.per_broker, force.per_cluster, windows))
        return left, len(out)

    def _percent(self) -> tuple[float | None, int | None]:
        """Never below what was told before; bytes likewise."""
        memory = self._memory
        all_done = all(move.state is State.DONE for move in self._moves)
        moved = None if self._unsized else round(max(self._done, memory.moved_bytes or 0))
        if all_done:
            return 100.0, moved
        if moved is None or self._total <= 0:
            return memory.percent, moved
        found = max(100.0 * moved / self._total, memory.percent or 0.0)
        return (100.0 if self._done >= self._total else min(found, NEARLY)), moved

    def _rows(self) -> tuple[RowNow, ...]:
        around = Surroundings(
            self._force.throttle,
            self._foreign,
            self._force.foreign,
            {lane: _rate(flow) or 0.0 for lane, flow in self._memory.flows.items()},
            {lane: sums.inbound for lane, sums in self._lanes.now.items()},
        )
        return tuple(self._row(move, around) for move in self._moves if move.in_flight)

    def _row(self, move: Move, around: Surroundings) -> RowNow:
        row = self._memory.rows.get(move.key)
        if row is None:  # it copies nothing
            since = move.since.timestamp() if move.since else self._at
            row = RowMemory(since, {}, source(move.work, self._seen), copied_at=since)
        rate, written = run_copies.rate(row), run_copies.inbound(row)
        found = mark(row, rate, self._at)
        why, words = cause(move, row, self._seen, around, written, self._at) if found else (None, "")
        lacks = sum(run_copies.missing(row).values()) if row.record_bytes is not None else None
        partition = self._seen.partitions.get(move.key)
        return RowNow(
            topic=move.work.row.topic,
            partition=move.work.row.partition,
            source=row.source,
            percent=row.percent,
            size_bytes=row.size_bytes,
            moved_bytes=row.moved_bytes,
            rate=rate,
            eta_s=_eta(row, lacks, rate, written, found, quiet_s(row, self._at)),
            in_isr=partition is not None and partition.isr.issuperset(move.work.adding),
            grew_at=_moment(row.grew_at),
            mark=found,
            cause=why,
            cause_words=words,
            estimate=(self._memory.estimates or {}).get(move.work.row.topic, ""),
            sampled_at=_moment(row.sampled_at),
            inbound=written,
        )

    def _brokers(self, left: TimeLeft) -> tuple[BrokerNow, ...]:
        return tuple(self._broker(lane, left.lanes or {}) for lane in sorted(self._lanes.totals))

    def _broker(self, lane: Lane, etas: Mapping[Lane, float]) -> BrokerNow:
        sums, now = self._lanes.totals[lane], self._lanes.now[lane]
        eta = etas.get(lane)
        if not now.rows or now.rows == now.stuck:
            eta = NEVER if now.rows else 0.0
        return BrokerNow(
            broker=lane[0],
            direction=lane[1],
            total_bytes=None if sums.unsized else round(sums.total),
            moved_bytes=None if sums.unsized else round(sums.done),
            rate=_rate(self._memory.flows[lane]),
            eta_s=eta,
            inbound=None if now.unmetered else now.inbound,
        )


def _rate(flow: FlowMemory) -> float | None:
    """Now: nothing is copied where nothing is left to be copied."""
    rate = flow.meter.per_second()
    return rate if flow.busy or rate is None else 0.0


def _eta(
    row: RowMemory, lacks: float | None, rate: float | None, written: float | None, found: Mark | None, quiet: float
) -> float | None:
    """Of one row: producers go on writing to every copy of it."""
    if row.copied_at is not None:
        return None
    if found is Mark.STUCK or quiet >= SLOW_AFTER_S:
        return NEVER
    if lacks is None or rate is None:
        return None
    net = rate - (written or 0.0) * len(row.copies)
    return lacks / net if net > 0 else NEVER


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
