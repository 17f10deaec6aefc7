"""What one look tells of the copies in flight, put into what a run remembers (04-changes.md §6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kafkadash.domain import run_copies, run_flows
from kafkadash.domain.executor_state import BEFORE, Key, Move, Observation, State
from kafkadash.domain.executor_window import source
from kafkadash.domain.progress import RATE_MIN_WINDOW_S, RateMeter
from kafkadash.domain.run_copies import NOTHING_READ, RowRead, Sizes, Times
from kafkadash.domain.run_memory import PAST_EVERY_S, PAST_KEPT, CopyMemory, Lane, RowMemory, RunMemory
from kafkadash.domain.run_progress import Direction


@dataclass(frozen=True, slots=True)
class Grown:
    """``counted``: bytes that came into a broker, or that it sent, since the last look. ``blind``: lanes where
    something came that cannot be counted yet, ``lost``: where something came that never will be.
    """

    counted: defaultdict[Lane, float] = field(default_factory=lambda: defaultdict(float))
    blind: set[Lane] = field(default_factory=set)
    lost: set[Lane] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Reads:
    """``at``: when the log ends were read, seconds since the epoch. ``sizes``: of directories read since the last
    measurement. ``estimates``: topic → why its figures are estimates, None where that was not asked this time.
    """

    at: float
    rows: Mapping[Key, RowRead] = field(default_factory=dict)
    sizes: Sizes = field(default_factory=dict)
    estimates: Mapping[str, str] | None = None


def weighed(move: Move, memory: RunMemory) -> int | None:
    """Bytes of one replica that the row counts with."""
    size = move.work.size_bytes
    return memory.learned.get(move.key) if size is None else size


def take_in(moves: Sequence[Move], seen: Observation, reads: Reads, memory: RunMemory, *, first: bool) -> Grown:
    """Every row in flight as its replicas told, and what became of those that no longer are.

    ``first``: nothing was remembered before this look.
    """
    grown = Grown()
    held = reads.at < memory.throttle_at + RATE_MIN_WINDOW_S
    times = Times(memory.past_at, reads.at)
    gone = dict(memory.rows)
    for move in moves:
        if not move.in_flight or not move.work.adding:
            continue
        key = move.key
        gone.pop(key, None)
        read = reads.rows.get(key, NOTHING_READ)
        row = memory.rows.get(key)
        if row is None:
            row = memory.rows[key] = _new(move, read, seen, reads.at, memory, first=first)
            memory.kept.pop(key, None)
            memory.led.pop(key, None)
        size = weighed(move, memory)
        _count(grown, row, run_copies.update(row, key, size, read, reads.sizes, times, reads.at, held=held))
        if run_copies.blind(row):
            grown.blind.update(_lanes(row))
        if size is None and row.record_bytes is not None and row.size_bytes is not None:
            memory.learned[key] = round(row.size_bytes / len(row.copies))
    if gone:
        _leave(moves, gone, memory, grown)
    _remember(memory, reads.at)
    return grown


def expect_throttle(memory: RunMemory, throttle: int, at: float) -> None:
    """Of a throttle that was changed: what the old one held back is expected to go as fast as the new one lets it."""
    before = memory.throttle
    if before == throttle:
        return
    held = {lane for lane, flow in memory.flows.items() if run_flows.held_back(flow)}
    for row in memory.rows.values():
        if row.moved is None:
            continue
        rate = row.moved.per_second()
        row.moved = row.moved.rested(at, row.got)
        if rate is not None and not held.isdisjoint(_lanes(row)):
            row.moved = row.moved.expecting(rate * throttle / before)
    for flow in (*memory.flows.values(), *([memory.whole] if memory.whole else [])):
        run_flows.throttle_changed(flow, at, before, throttle)
    memory.throttle, memory.throttle_at = throttle, at


def _new(move: Move, read: RowRead, seen: Observation, at: float, memory: RunMemory, *, first: bool) -> RowMemory:
    """A row that was in flight before anything was remembered of it begins to be measured where it is now; one of ours
    at the last look at which it had nothing, so that the burst at its begin counts like the pause after it.
    """
    past: list[int | None] = [None] * len(memory.past_at)
    ends = read.ends or {}
    since = move.submitted_at.timestamp() if move.submitted_at else None
    ours = since is not None and since >= (seen.at.timestamp() if first else memory.stepped_at)
    copies = {b: CopyMemory(None if ours else ends.get(b), list(past)) for b in move.work.adding}
    begun = memory.at if ends else at
    moved = RateMeter.start(begun, 0) if ours else None
    return RowMemory(at, copies, source(move.work, seen), log_past=list(past), moved=moved)


def _leave(moves: Sequence[Move], gone: Mapping[Key, RowMemory], memory: RunMemory, grown: Grown) -> None:
    for move in moves:
        row = gone.get(move.key)
        if row is None:
            continue
        del memory.rows[move.key]
        if run_copies.blind(row):
            grown.lost.update(_lanes(row))
        if move.state is State.DONE:
            _count(grown, row, run_copies.rest(row, weighed(move, memory)))
        elif move.state not in BEFORE and row.share > 0:
            memory.kept[move.key] = row.share
        if move.ended and row.source is not None and row.source != move.work.row.current[0]:
            memory.led[move.key] = row.source


def _count(grown: Grown, row: RowMemory, by_broker: Mapping[int, float]) -> None:
    for broker, number in by_broker.items():
        grown.counted[broker, Direction.IN] += number
        if row.source is not None:
            grown.counted[row.source, Direction.OUT] += number


def _lanes(row: RowMemory) -> set[Lane]:
    found = {(broker, Direction.IN) for broker in row.copies}
    return found if row.source is None else {*found, (row.source, Direction.OUT)}


def _remember(memory: RunMemory, at: float) -> None:
    if memory.past_at and at - memory.past_at[-1] < PAST_EVERY_S:
        return
    memory.past_at = [*memory.past_at, at][-PAST_KEPT:]
    for row in memory.rows.values():
        run_copies.remember(row, len(memory.past_at))
