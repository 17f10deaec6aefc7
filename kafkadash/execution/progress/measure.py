"""Measurement of a run: from its rows and the state of their replicas to the figures that are stored and shown.

Each row weighs the bytes that its copies took when the run began, whatever its log does meanwhile; so the percentage of
the plan is the share of the work that is done, and is 100 only when all of it is. ``notes`` are the caveats that are
shown beside the figures.

The time left is that of the broker and direction that take longest. The expected speed is the throttle, times the share
of the throttle that was reached there when nothing else limited it; a broker with nothing in flight yet is taken to
reach the share that the others reach. The range comes from the last ten minutes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kafkadash.core.formatting import format_duration, format_size
from kafkadash.core.messages import choose_plural
from kafkadash.execution.engine.admission import source_broker
from kafkadash.execution.engine.state import BrokerSeen, ClusterObservation, RowState, RunRow
from kafkadash.execution.progress import copies as run_copies
from kafkadash.execution.progress import copies as run_flows
from kafkadash.execution.progress.copies import (
    FlowMemory,
    Lane,
    LogGrowth,
    ReplicaReads,
    RowMemory,
    RunMemory,
    estimate_replica_size,
    expect_throttle,
    take_in,
    throttle_reach,
    window_reaches,
)
from kafkadash.execution.progress.eta import NEVER, LaneLoad, PlanTotals, TimeLeft, time_left
from kafkadash.execution.progress.figures import NEARLY, BrokerNow, FlowDirection, RowMark, RowNow, RunNow
from kafkadash.execution.progress.stuck import (
    SLOW_AFTER_S,
    SLOW_BELOW,
    ForeignThrottle,
    RowSurroundings,
    mark_row,
    quiet_s,
    stuck_reason,
)


@dataclass(slots=True)
class LaneSums:
    """``total`` and ``done`` bytes by the sizes of the run's begin; ``unsized``: of some rows they are not known.

    ``rows`` that have not ended, of them ``stuck`` ones, which have not grown for long; ``left_out``: those that do not
    get on, or would wait for one that does not. ``remaining`` bytes, and the ``copies`` that are being made now, are of
    the others; ``pace``: bytes per second that these would go at if only the throttle held them back. ``inbound``:
    bytes per second that producers add to what is in flight; ``unmetered``: of some of that it is not known.
    """

    total: float = 0.0
    done: float = 0.0
    unsized: bool = False
    rows: int = 0
    stuck: int = 0
    left_out: int = 0
    busy: bool = False
    remaining: float = 0.0
    copies: int = 0
    pace: float = 0.0
    inbound: float = 0.0
    unmetered: bool = False


def _new_lane_sums() -> defaultdict[int, LaneSums]:
    return defaultdict(LaneSums)


@dataclass(slots=True)
class BrokerFlows:
    out: defaultdict[int, LaneSums] = field(default_factory=_new_lane_sums)
    into: defaultdict[int, LaneSums] = field(default_factory=_new_lane_sums)
    copies: list[tuple[int, int]] = field(default_factory=list)
    """From which broker to which, of all that are being made."""

    def add(self, leader: int, adding: Sequence[int], size: int | None, share: float) -> None:
        """Any row: each copy is sent once and taken once. ``share`` of it is there."""
        out = self.out[leader]
        for broker in adding:
            for sums in (out, self.into[broker]):
                if size is None:
                    sums.unsized = True
                else:
                    sums.total += size
                    sums.done += size * share

    def add_waiting(self, leader: int, adding: Sequence[int], size: int) -> None:
        out = self.out[leader]
        out.rows += 1
        out.remaining += size * len(adding)
        for broker in adding:
            into = self.into[broker]
            into.rows += 1
            into.remaining += size

    def add_flying(
        self, leader: int, left: Mapping[int, float], written: float | None, *, copying: bool, stuck: bool
    ) -> None:
        """``left``: broker → bytes that its copy still lacks. ``written``: what producers add, None if not known."""
        out = self.out[leader]
        out.rows += 1
        out.stuck += stuck
        out.left_out += stuck
        for broker, lacks in left.items():
            into = self.into[broker]
            into.rows += 1
            into.stuck += stuck
            into.left_out += stuck
            if copying and not stuck:
                self.copies.append((leader, broker))
            for sums in (out, into):
                sums.busy = sums.busy or copying
                sums.inbound += written or 0.0
                sums.unmetered = sums.unmetered or written is None
                if not stuck:
                    sums.remaining += lacks
                    sums.copies += copying

    def take_out(self, leader: int, left: Mapping[int, float]) -> None:
        """A row that would wait for ever; it was added as one that does not."""
        out = self.out[leader]
        out.left_out += 1
        for broker, lacks in left.items():
            out.remaining -= lacks
            self.into[broker].remaining -= lacks
            self.into[broker].left_out += 1

    def share_out(self, limit: Callable[[Lane], int]) -> None:
        """Sets the pace of each lane. A copy gets its part of what its source may send or of what its destination may
        take, whichever is less: brokers fetch from many at once and serve all alike.
        """
        limits: dict[Lane, int] = {lane: limit(lane) for lane, sums in self.each() if sums.copies}
        for leader, broker in self.copies:
            out, into = self.out[leader], self.into[broker]
            pace = min(limits[leader, FlowDirection.OUT] / out.copies, limits[broker, FlowDirection.IN] / into.copies)
            out.pace += pace
            into.pace += pace

    def each(self) -> Iterator[tuple[Lane, LaneSums]]:
        for broker in sorted({*self.out, *self.into}):
            if broker in self.into:
                yield (broker, FlowDirection.IN), self.into[broker]
            if broker in self.out:
                yield (broker, FlowDirection.OUT), self.out[broker]

    def blocked(
        self, brokers: Mapping[int, BrokerSeen], limit: Callable[[Lane], int], throttle: int, per_broker: int
    ) -> set[Lane]:
        """Return the lanes where waiting rows would wait for ever: the broker is away and should take something, its
        slots are taken by rows that do not get on, or somebody else's throttle stops it.
        """
        found = set()
        for lane, sums in self.each():
            if not sums.rows:
                continue
            state = brokers.get(lane[0])
            offline = lane[1] is FlowDirection.IN and (state is None or not state.alive or state.fenced)
            if offline or sums.stuck >= per_broker or limit(lane) < min(SLOW_BELOW, throttle):
                found.add(lane)
        return found

    def loads(self, flows: Mapping[Lane, FlowMemory], limit: Callable[[Lane], int]) -> dict[Lane, LaneLoad]:
        """Return what each lane still has to do and how fast it goes there, without the rows left out."""
        return {
            lane: LaneLoad(
                remaining=max(0.0, sums.remaining),
                rows=sums.rows - sums.left_out,
                limit=limit(lane),
                reach=throttle_reach(flows[lane]),
                reaches=window_reaches(flows[lane]),
                inbound=sums.inbound,
            )
            for lane, sums in self.each()
            if sums.rows > sums.left_out
        }


def usual_reach(flows: Iterable[FlowMemory]) -> float | None:
    """Which share of what was due was reached by all brokers of which it is known, together."""
    known = [(rate, due) for f in flows if (rate := f.meter.per_second()) is not None and (due := f.due.per_second())]
    all_due = sum(due for _, due in known)
    return min(1.0, sum(rate for rate, _ in known) / all_due) if all_due else None


def sum_arriving_bytes(loads: Mapping[Lane, LaneLoad]) -> float:
    """Bytes still to come, each copy once."""
    return sum(load.remaining for (_, way), load in loads.items() if way is FlowDirection.IN)


SAID_FOR_S = 60.0
"""So long after a change of the throttle its effect is expected more than measured."""

DRIFT_SHARE, DRIFT_BYTES = 0.01, 1_000_000


def collect_notes(
    *,
    copying: int,
    unsized: int,
    done: int,
    rows: int,
    drift: float,
    total: float,
    fell_back: bool,
    left_out: int,
    throttle_age: float | None,
    throttle: int,
) -> tuple[str, ...]:
    """``drift``: bytes by which the logs of what is in flight are larger than when the run began."""
    found = []
    if not copying:
        found.append("The plan copies no data; it only removes replicas or changes their order.")
    if unsized:
        found.append(
            f"The size of {choose_plural('# partition is|# partitions are', unsized)} unknown: the percentage excludes"
            f" {choose_plural('it|them', unsized)} and the time left is unknown. {done:,} of"
            f" {choose_plural('# move|# moves', rows)} completed."
        )
    elif abs(drift) > max(DRIFT_SHARE * total, DRIFT_BYTES):
        grown = "grown" if drift > 0 else "shrunk"
        found.append(
            f"Logs in flight have {grown} by {format_size(abs(drift))} since the start of the run. The percentage uses"
            " the sizes at the start, the time left the current sizes."
        )
    if fell_back:
        found.append("Some copies have fallen further behind their leader. The percentage stays until they catch up.")
    if left_out:
        found.append(
            f"The time left excludes {choose_plural('# move|# moves', left_out)} without progress or waiting for such a"
            " move."
        )
    if throttle_age is not None and throttle_age < SAID_FOR_S:
        found.append(
            f"The throttle was changed {format_duration(throttle_age)} ago. The time left assumes {throttle / 1e6:g}"
            " MB/s where the old throttle was the limit."
        )
    return tuple(found)


FELL_BACK = 0.001
"""Share of all bytes by which the copies must be further behind than they were for it to be said."""


@dataclass(frozen=True, slots=True)
class InForce:
    """How the run may go now; ``throttle`` in bytes per second, ``foreign``: those of others that differ from it."""

    throttle: int
    per_broker: int
    per_cluster: int
    foreign: tuple[ForeignThrottle, ...] = ()


def measure_moves(
    moves: Sequence[RunRow],
    seen: ClusterObservation,
    reads: ReplicaReads,
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
    return _RunMeasurement(moves, seen, reads.at, force, now, before).taken(grown)


class _RunMeasurement:
    def __init__(
        self,
        moves: Sequence[RunRow],
        seen: ClusterObservation,
        at: float,
        force: InForce,
        now: datetime,
        memory: RunMemory,
    ) -> None:
        self._moves, self._seen, self._at, self._force, self._now = moves, seen, at, force, now
        self._memory = memory
        self._foreign = {t.lane: t.rate for t in force.foreign if t.lane is not None and t.rate is not None}
        self._lanes = BrokerFlows()
        self._total, self._done, self._unsized, self._copying = 0.0, 0.0, 0, 0
        self._drift = 0.0

    def taken(self, grown: LogGrowth) -> tuple[RunNow, RunMemory]:
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
            rate=_current_rate(memory.whole) if memory.whole else None,
            eta_s=left.seconds,
            eta_low_s=left.low,
            eta_high_s=left.high,
            binding=left.binding,
            brokers=self._brokers(left.lanes or {}),
            counts={state.value: number for state, number in counts.items()},
            rows=self._rows(),
            notes=collect_notes(
                copying=self._copying,
                unsized=self._unsized,
                done=counts[RowState.DONE],
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
            size = estimate_replica_size(move, memory)
            row = memory.rows.get(move.key)
            share = 1.0 if move.state is RowState.DONE else row.share if row else memory.kept.get(move.key, 0.0)
            if size is None:
                self._unsized += 1
            else:
                self._total += size * len(adding)
                self._done += size * len(adding) * share
            leader = self._leader(move, row)
            lanes.add(leader, adding, size, share)
            if row is not None:
                copying = row.copied_at is None and move.state is not RowState.CANCELLING
                left, written = self._left(move, row, size), run_copies.inbound_rate(row)
                lanes.add_flying(leader, left, written, copying=copying, stuck=self._stuck(row))
                if size is not None and row.size_bytes is not None:
                    self._drift += row.size_bytes - size * len(adding)
            elif not move.ended:
                lanes.add_waiting(leader, adding, size or 0)

    def _leader(self, move: RunRow, row: RowMemory | None) -> int:
        """Return the broker that the row is, was or, as far as one can tell, will be copied from."""
        if row is not None and row.source is not None:
            return row.source
        if move.ended:
            return self._memory.led.get(move.key, move.work.row.current[0])
        return source_broker(move.work, self._seen)

    def _left(self, move: RunRow, row: RowMemory | None, size: int | None) -> Mapping[int, float]:
        """Broker → bytes that its copy lacks."""
        left = run_copies.missing_bytes(row) if row else {}
        if left:
            return left
        return dict.fromkeys(move.work.adding, 0.0 if row and row.copied_at else float(size or 0))

    def _stuck(self, row: RowMemory) -> bool:
        return row.copied_at is None and quiet_s(row, self._at) >= SLOW_AFTER_S

    def _flow(self, grown: LogGrowth) -> None:
        memory, any_busy = self._memory, False
        self._lanes.share_out(self._limit)
        for lane, sums in self._lanes.each():
            flow = memory.flows.get(lane)
            if flow is None:
                flow = memory.flows[lane] = run_flows.start_flow(self._at)
            run_flows.add_bytes(
                flow,
                self._at,
                grown.counted.get(lane, 0.0),
                busy=sums.busy,
                pace=sums.pace,
                blind=lane in grown.blind,
                lost=lane in grown.lost,
            )
            any_busy = any_busy or sums.busy
        whole = memory.whole = memory.whole or run_flows.start_flow(self._at)
        arrived, blind, lost = self._arrived(whole), bool(grown.blind), bool(grown.lost)
        run_flows.add_bytes(whole, self._at, arrived, busy=any_busy, blind=blind, lost=lost)

    def _arrived(self, whole: FlowMemory) -> float:
        """Bytes that came to all brokers together since the whole was counted last."""
        flows = self._memory.flows.items()
        return sum(flow.total for (_, way), flow in flows if way is FlowDirection.IN) - whole.total

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
        together = PlanTotals(sum_arriving_bytes(loads), rate, rows, force.per_broker, force.per_cluster, windows)
        left = time_left(loads, together, usual_reach(self._memory.flows.values()))
        return left, out

    def _take_out(self, blocked: set[Lane]) -> int:
        """Number of rows that do not get on, or wait for a broker that is blocked."""
        out = sum(self._stuck(row) for row in self._memory.rows.values())
        for move, row, leader in self._open() if blocked else ():
            if row is not None and self._stuck(row):
                continue
            if (leader, FlowDirection.OUT) in blocked or any(
                (b, FlowDirection.IN) in blocked for b in move.work.adding
            ):
                out += 1
                self._lanes.take_out(leader, self._left(move, row, estimate_replica_size(move, self._memory)))
        return out

    def _open(self) -> Iterator[tuple[RunRow, RowMemory | None, int]]:
        for move in self._moves:
            if move.work.adding and not move.ended:
                row = self._memory.rows.get(move.key)
                yield move, row, self._leader(move, row)

    def _percent(self) -> tuple[float | None, int | None]:
        """Never below what was told before; bytes likewise."""
        memory = self._memory
        all_done = all(move.state is RowState.DONE for move in self._moves)
        moved = None if self._unsized else round(max(self._done, memory.moved_bytes or 0))
        if all_done:
            return 100.0, moved
        if moved is None or self._total <= 0:
            return memory.percent, moved
        found = max(100.0 * moved / self._total, memory.percent or 0.0)
        return (100.0 if self._done >= self._total else min(found, NEARLY)), moved

    def _rows(self) -> tuple[RowNow, ...]:
        around = RowSurroundings(
            self._force.throttle,
            self._foreign,
            self._force.foreign,
            {lane: _current_rate(flow) or 0.0 for lane, flow in self._memory.flows.items()},
            {lane: sums.inbound for lane, sums in self._lanes.each()},
        )
        return tuple(self._row(move, around) for move in self._moves if move.in_flight)

    def _row(self, move: RunRow, around: RowSurroundings) -> RowNow:
        row = self._memory.rows.get(move.key)
        if row is None:  # it copies nothing
            since = move.since.timestamp() if move.since else self._at
            row = RowMemory(since, {}, source_broker(move.work, self._seen), copied_at=since)
        rate, written = run_copies.copy_rate(row), run_copies.inbound_rate(row)
        found = mark_row(row, rate, self._at)
        why = stuck_reason(move, row, self._seen, around, written, self._at) if found else None
        lacks = sum(run_copies.missing_bytes(row).values()) if row.record_bytes is not None else None
        partition = self._seen.partitions.get(move.key)
        return RowNow(
            topic=move.work.row.topic,
            partition=move.work.row.partition,
            source=row.source,
            percent=row.percent,
            size_bytes=row.size_bytes,
            moved_bytes=row.moved_bytes,
            rate=rate,
            eta_s=_estimate_row_eta(row, lacks, self._lasting(row, rate), written, found, quiet_s(row, self._at)),
            in_isr=partition is not None and partition.isr.issuperset(move.work.adding),
            grew_at=_to_datetime(row.grew_at),
            mark=found,
            why=why,
            estimate=(self._memory.estimates or {}).get(move.work.row.topic, ""),
            sampled_at=_to_datetime(row.sampled_at),
            inbound=written,
        )

    def _lasting(self, row: RowMemory, rate: float | None) -> float | None:
        """Return the rate without the part above the throttle: a burst does not last."""
        if rate is None:
            return None
        limits = [sum(self._limit((broker, FlowDirection.IN)) for broker in row.copies)]
        if row.source is not None:
            limits.append(self._limit((row.source, FlowDirection.OUT)))
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
                    rate=_current_rate(self._memory.flows[lane]),
                    eta_s=eta,
                    inbound=None if sums.unmetered else sums.inbound,
                )
            )
        return tuple(found)


def _current_rate(flow: FlowMemory) -> float | None:
    """Now: nothing is copied where nothing is left to be copied."""
    if flow.blind:
        return None
    rate = flow.meter.per_second()
    return rate if flow.busy or rate is None else 0.0


def _estimate_row_eta(
    row: RowMemory, lacks: float | None, rate: float | None, written: float | None, found: RowMark | None, quiet: float
) -> float | None:
    """Return one row's seconds to the end, NEVER or None: producers go on writing to every copy of the row."""
    if row.copied_at is not None:
        return None
    if found is RowMark.STUCK or quiet >= SLOW_AFTER_S:
        return NEVER
    if lacks is None or rate is None:
        return None
    net = rate - (written or 0.0) * len(row.copies)
    return lacks / net if net > 0 else NEVER


def _to_datetime(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
