"""One measurement of a run: from its rows and what was read of their replicas to the figures that are stored and shown.

Each row weighs the bytes that its copies took when the run began, whatever its log does meanwhile; so the plan's
percent says how much of the work is behind us, and is 100 only when all of it is (04-changes.md §6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kafkadash.domain import run_copies, run_flows
from kafkadash.domain.executor_state import Move, Observation, State
from kafkadash.domain.executor_window import source
from kafkadash.domain.run_eta import NEVER, TimeLeft, Whole, time_left
from kafkadash.domain.run_lanes import Lanes, arriving, usual_reach
from kafkadash.domain.run_memory import FlowMemory, Lane, RowMemory, RunMemory
from kafkadash.domain.run_notes import notes
from kafkadash.domain.run_progress import NEARLY, BrokerNow, Direction, Mark, RowNow, RunNow
from kafkadash.domain.run_reading import Grown, Reads, expect_throttle, take_in, weighed
from kafkadash.domain.run_stuck import SLOW_AFTER_S, ForeignThrottle, Surroundings, mark, quiet_s, stuck_reason

FELL_BACK = 0.001
"""Share of all bytes by which the copies must be further behind than they were for it to be said."""


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
    before = memory or RunMemory(reads.at, force.throttle, throttle_at=0.0)
    if reads.estimates is not None:
        before.estimates = dict(reads.estimates)
    grown = take_in(moves, seen, reads, before, first=memory is None)
    return _Measurement(moves, seen, reads.at, force, now, before).taken(grown)


class _Measurement:
    def __init__(
        self, moves: Sequence[Move], seen: Observation, at: float, force: InForce, now: datetime, memory: RunMemory
    ) -> None:
        self._moves, self._seen, self._at, self._force, self._now = moves, seen, at, force, now
        self._memory = memory
        self._foreign = {t.lane: t.rate for t in force.foreign if t.lane is not None and t.rate is not None}
        self._lanes = Lanes()
        self._total, self._done, self._unsized, self._copying = 0.0, 0.0, 0, 0
        self._drift = 0.0

    def taken(self, grown: Grown) -> tuple[RunNow, RunMemory]:
        memory = self._memory
        self._sum_up()
        self._flow(grown)
        expect_throttle(memory, self._force.throttle, self._at)  # the time until now was still under the old one
        left, out = self._time_left()
        percent, moved = self._percent()
        fell_back = percent is not None and self._done < (memory.moved_bytes or 0) - FELL_BACK * self._total
        memory.percent, memory.moved_bytes = percent, moved
        memory.at, memory.stepped_at = self._at, self._now.timestamp()
        counts = Counter(move.state for move in self._moves)
        return RunNow(
            at=self._now,
            total_bytes=None if self._unsized else round(self._total),
            moved_bytes=moved,
            percent=percent,
            rate=_rate(memory.whole) if memory.whole else None,
            eta_s=left.seconds,
            eta_low_s=left.low,
            eta_high_s=left.high,
            binding=left.binding,
            brokers=self._brokers(left.lanes or {}),
            counts={state.value: number for state, number in counts.items()},
            rows=self._rows(),
            notes=notes(
                copying=self._copying,
                unsized=self._unsized,
                done=counts[State.DONE],
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
            unsized=self._unsized,
            known_bytes=round(self._total) if self._unsized else None,
            known_moved=round(self._done) if self._unsized else None,
        ), memory

    def _sum_up(self) -> None:
        """All rows that copy something: what they weigh, and what is left of them."""
        memory, lanes = self._memory, self._lanes
        for move in self._moves:
            adding = move.work.adding
            if not adding:
                continue
            self._copying += 1
            size = weighed(move, memory)
            row = memory.rows.get(move.key)
            share = 1.0 if move.state is State.DONE else row.share if row else memory.kept.get(move.key, 0.0)
            if size is None:
                self._unsized += 1
            else:
                self._total += size * len(adding)
                self._done += size * len(adding) * share
            leader = self._leader(move, row)
            lanes.add(leader, adding, size, share)
            if row is not None:
                copying = row.copied_at is None and move.state is not State.CANCELLING
                left, written = self._left(move, row, size), run_copies.inbound(row)
                lanes.add_flying(leader, left, written, copying=copying, stuck=self._stuck(row))
                if size is not None and row.size_bytes is not None:
                    self._drift += row.size_bytes - size * len(adding)
            elif not move.ended:
                lanes.add_waiting(leader, adding, size or 0)

    def _leader(self, move: Move, row: RowMemory | None) -> int:
        """Where it is, or was, copied from; where it will be, as far as one can tell."""
        if row is not None and row.source is not None:
            return row.source
        if move.ended:
            return self._memory.led.get(move.key, move.work.row.current[0])
        return source(move.work, self._seen)

    def _left(self, move: Move, row: RowMemory | None, size: int | None) -> Mapping[int, float]:
        """Broker → bytes that its copy lacks."""
        left = run_copies.missing(row) if row else {}
        if left:
            return left
        return dict.fromkeys(move.work.adding, 0.0 if row and row.copied_at else float(size or 0))

    def _stuck(self, row: RowMemory) -> bool:
        return row.copied_at is None and quiet_s(row, self._at) >= SLOW_AFTER_S

    def _flow(self, grown: Grown) -> None:
        memory, any_busy = self._memory, False
        self._lanes.share_out(self._limit)
        for lane, sums in self._lanes.each():
            flow = memory.flows.get(lane)
            if flow is None:
                flow = memory.flows[lane] = run_flows.begun(self._at)
            run_flows.add(
                flow,
                self._at,
                grown.counted.get(lane, 0.0),
                busy=sums.busy,
                pace=sums.pace,
                blind=lane in grown.blind,
                lost=lane in grown.lost,
            )
            any_busy = any_busy or sums.busy
        whole = memory.whole = memory.whole or run_flows.begun(self._at)
        arrived, blind, lost = self._arrived(whole), bool(grown.blind), bool(grown.lost)
        run_flows.add(whole, self._at, arrived, busy=any_busy, blind=blind, lost=lost)

    def _arrived(self, whole: FlowMemory) -> float:
        """Bytes that came to all brokers together since the whole was counted last."""
        flows = self._memory.flows.items()
        return sum(flow.total for (_, way), flow in flows if way is Direction.IN) - whole.total

    def _limit(self, lane: Lane) -> int:
        return self._foreign.get(lane, self._force.throttle)

    def _time_left(self) -> tuple[TimeLeft, int]:
        """With how many rows are left out of it, because they do not get on."""
        force, whole, lanes = self._force, self._memory.whole, self._lanes
        blocked = lanes.blocked(self._seen.brokers, self._limit, force.throttle, force.per_broker)
        out = self._take_out(blocked)
        if self._unsized:
            return TimeLeft(), out
        loads = lanes.loads(self._memory.flows, self._limit)
        if out and not loads:
            return TimeLeft(NEVER, NEVER, NEVER), out
        rows = sum(not move.ended for move in self._moves) - out
        rate, windows = (whole.meter.per_second(), whole.windows) if whole else (None, [])
        together = Whole(arriving(loads), rate, rows, force.per_broker, force.per_cluster, windows)
        left = time_left(loads, together, usual_reach(self._memory.flows.values()))
        return left, out

    def _take_out(self, blocked: set[Lane]) -> int:
        """Number of rows that do not get on, or wait for a broker that is blocked."""
        out = sum(self._stuck(row) for row in self._memory.rows.values())
        for move, row, leader in self._open() if blocked else ():
            if row is not None and self._stuck(row):
                continue
            if (leader, Direction.OUT) in blocked or any((b, Direction.IN) in blocked for b in move.work.adding):
                out += 1
                self._lanes.take_out(leader, self._left(move, row, weighed(move, self._memory)))
        return out

    def _open(self) -> Iterator[tuple[Move, RowMemory | None, int]]:
        for move in self._moves:
            if move.work.adding and not move.ended:
                row = self._memory.rows.get(move.key)
                yield move, row, self._leader(move, row)

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
            {lane: sums.inbound for lane, sums in self._lanes.each()},
        )
        return tuple(self._row(move, around) for move in self._moves if move.in_flight)

    def _row(self, move: Move, around: Surroundings) -> RowNow:
        row = self._memory.rows.get(move.key)
        if row is None:  # it copies nothing
            since = move.since.timestamp() if move.since else self._at
            row = RowMemory(since, {}, source(move.work, self._seen), copied_at=since)
        rate, written = run_copies.rate(row), run_copies.inbound(row)
        found = mark(row, rate, self._at)
        why = stuck_reason(move, row, self._seen, around, written, self._at) if found else None
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
            eta_s=_eta(row, lacks, self._lasting(row, rate), written, found, quiet_s(row, self._at)),
            in_isr=partition is not None and partition.isr.issuperset(move.work.adding),
            grew_at=_moment(row.grew_at),
            mark=found,
            why=why,
            estimate=(self._memory.estimates or {}).get(move.work.row.topic, ""),
            sampled_at=_moment(row.sampled_at),
            inbound=written,
        )

    def _lasting(self, row: RowMemory, rate: float | None) -> float | None:
        """What a burst had above the throttle does not last."""
        if rate is None:
            return None
        limits = [sum(self._limit((broker, Direction.IN)) for broker in row.copies)]
        if row.source is not None:
            limits.append(self._limit((row.source, Direction.OUT)))
        return min(rate, *limits)

    def _brokers(self, etas: Mapping[Lane, float]) -> tuple[BrokerNow, ...]:
        found = []
        for lane, sums in self._lanes.each():
            eta = etas.get(lane)
            if sums.rows == sums.left_out:
                eta = NEVER if sums.rows else 0.0
            found.append(
                BrokerNow(
                    broker=lane[0],
                    direction=lane[1],
                    total_bytes=None if sums.unsized else round(sums.total),
                    moved_bytes=None if sums.unsized else round(sums.done),
                    rate=_rate(self._memory.flows[lane]),
                    eta_s=eta,
                    inbound=None if sums.unmetered else sums.inbound,
                )
            )
        return tuple(found)


def _rate(flow: FlowMemory) -> float | None:
    """Now: nothing is copied where nothing is left to be copied."""
    if flow.blind:
        return None
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
