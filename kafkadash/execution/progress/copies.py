"""Progress of the copies of a run, measured from the log ends of its replicas, and the copy rate of each broker.

Records are counted exactly, by log ends. Bytes are those of the leader's log in proportion to the records, corrected by
the size of the copy's own directory whenever that is read.

The rate of a broker, in or out, is a mean of about the last minute, each minute weighing half as much as the next. Only
time in which something was copied counts: a broker that waits for its turn is not slow, and neither is one whose copies
share the throttle of the broker at their other end. So the rate that was due if only throttles held it back is measured
too, and the capacity of a broker follows from both. A quota is met in the mean of 11 s
(``replication.quota.window.num``): a new copy may take many seconds' worth at once and then stand still for as long.
The two belong together, so a copy is measured from its begin, with its burst.

``RunMemory`` is what a run remembers from one step to the next for its figures; each step overwrites the stored value.
Times are seconds since the epoch, offsets are records.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from kafkadash.execution.engine.admission import source_broker
from kafkadash.execution.engine.state import BEFORE, ClusterObservation, Key, RowState, RunRow
from kafkadash.execution.progress.figures import FlowDirection
from kafkadash.monitoring.reassignments.progress import (
    ANEW_AFTER_S,
    RATE_MIN_WINDOW_S,
    RateMeter,
    copied_percent,
    find_copy_start,
)

Lane = tuple[int, FlowDirection]
"""A broker and whether it is what arrives there or what it sends: each has a throttle of its own (KIP-73)."""

PAST_EVERY_S, PAST_KEPT = 15.0, 4
"""Log ends of the last minute are kept, to find out how long a copy was when its directory was read."""

WINDOW_S, WINDOWS_KEPT = 15.0, 40
"""Rates over quarter minutes, ten minutes of them."""


@dataclass(slots=True)
class CopyMemory:
    """Memory of one adding replica: its log end at the last read, and at ``RunMemory.past_at``. ``known``: (log end,
    bytes) when its directory was read last. ``uncounted``: records copied whose size in bytes was not known.
    ``begin``: start of its log on the disk, of tiered topics (KIP-1023).
    """

    stored_as_list: ClassVar = True

    end: int | None = None
    past: list[int | None] = field(default_factory=list)
    known: tuple[int, int] | None = None
    uncounted: int = 0
    begin: int | None = None

    def find_start(self, log_start: int) -> int:
        """Return the first offset that it gets of a leader's log that starts there."""
        return find_copy_start(log_start, self.begin)


@dataclass(slots=True)
class RowMemory:
    """A row in flight, ``log_start`` (on the disk) and ``log_end`` as its ``source``, the leader, told them last.

    ``record_bytes``: mean size of a record there. ``got``: records that all its copies got since it is measured;
    ``moved`` meters them, ``written`` those that producers add. ``grew_at``: when a copy grew last; ``losing_since``:
    since when producers are faster. ``copied_at``: since when no copy is behind. ``percent``, ``share`` (of its bytes,
    0 to 1), ``moved_bytes`` and ``size_bytes``: as told last.
    """

    stored_as_list: ClassVar = True

    begun_at: float
    copies: dict[int, CopyMemory]
    source: int | None = None
    log_start: int | None = None
    log_end: int | None = None
    log_past: list[int | None] = field(default_factory=list)
    record_bytes: float | None = None
    moved: RateMeter | None = None
    written: RateMeter | None = None
    grew_at: float | None = None
    losing_since: float | None = None
    copied_at: float | None = None
    percent: float | None = None
    share: float = 0.0
    size_bytes: int | None = None
    moved_bytes: int | None = None
    sampled_at: float | None = None
    refused: str = ""
    got: int = 0


@dataclass(slots=True)
class FlowMemory:
    """Throughput into or out of a broker. ``total`` counts bytes since the run began to be measured.

    ``busy``: something was copied there at the last look; ``grew_at``: when it grew last. Until ``held_until`` the
    meter takes no sample: the throttle was changed, and a quota bursts then. ``windows``: bytes per second over
    quarter minutes, the newest last. ``due`` and ``dues``: the same of what it would have been had nothing but the
    throttle held it back; until the next look that is ``pace`` a second. ``blind``: something arrived of which nobody
    knows yet how many bytes it is; it is counted as soon as that is known.
    """

    total: int
    meter: RateMeter
    due: RateMeter
    pace: float = 0.0
    busy: bool = False
    held_until: float = 0.0
    windows: list[int] = field(default_factory=list)
    dues: list[int] = field(default_factory=list)
    window_at: float = 0.0
    window_total: int = 0
    window_due: int = 0
    grew_at: float = 0.0
    blind: bool = False

    @property
    def latest(self) -> float | None:
        """Bytes per second of the last measured quarter minute; 0 once nothing is copied, None where not known."""
        if self.blind:
            return None
        if not self.busy:
            return 0.0
        return float(self.windows[-1]) if self.windows else None


@dataclass(slots=True)
class RunMemory:
    """``learned``: bytes of one replica of rows whose size was not known when the run began, or of which each copy
    leaves out what is in tiered storage (KIP-1023). ``kept``: share of their
    weight, 0 to 1, that rows had copied that ended otherwise than done. ``led``: the source of rows that ended, where
    it was not their first replica. ``estimates``: topic → why its figures are estimates. ``sizes_at``: of the newest
    directory read that was used. ``at``: when offsets were read last; ``stepped_at``: of that step, by its own clock.
    """

    at: float
    throttle: int
    throttle_at: float
    rows: dict[Key, RowMemory] = field(default_factory=dict)
    flows: dict[Lane, FlowMemory] = field(default_factory=dict)
    whole: FlowMemory | None = None
    past_at: list[float] = field(default_factory=list)
    learned: dict[Key, int] = field(default_factory=dict)
    kept: dict[Key, float] = field(default_factory=dict)
    led: dict[Key, int] = field(default_factory=dict)
    estimates: dict[str, str] | None = None
    sizes_at: float = 0.0
    stepped_at: float = 0.0
    moved_bytes: int | None = None
    percent: float | None = None


Sizes = Mapping[int, tuple[float, Mapping[Key, int]]]
"""Broker → when its directories were read (seconds since the epoch), and bytes of its replicas."""


@dataclass(frozen=True, slots=True)
class RowRead:
    """Offsets of one row's replicas in one look: log start and end of the ``source``, log ends of its copies.

    ``ends`` lacks a copy whose broker did not answer; ``at`` is when the first of them answered, None if none did.
    ``begins``: where the logs of copies of a tiered topic start on the disk. ``refused``: Kafka's own words where it
    would not tell.
    """

    source: int | None = None
    log_start: int | None = None
    log_end: int | None = None
    ends: Mapping[int, int] | None = None
    at: float | None = None
    refused: str = ""
    begins: Mapping[int, int] = field(default_factory=dict)


NOTHING_READ = RowRead()


class CopyTimes:
    """When log ends were remembered, so that one in between can be told."""

    def __init__(self, past_at: Sequence[float], now: float) -> None:
        self._at = (*past_at, now)

    def end_at(self, at: float, past: Sequence[int | None], newest: int | None) -> int | None:
        """The log end at a time within the last minute, on a line between the two looks around it; None if unknown."""
        found = self._around(at, past, newest)
        if found is None:
            return None
        first, second, part = found
        return round(first + (second - first) * part)

    def end_nearest(self, at: float, past: Sequence[int | None], newest: int | None, expected: float) -> int | None:
        """The log end at a time within the last minute that is nearest to the expected one; None if unknown.

        It lies between the two looks around that time. A throttled copy gets its records in bursts (KIP-73), so the
        line between the two looks does not tell on which side of a burst that time was.
        """
        found = self._around(at, past, newest)
        if found is None:
            return None
        low, high = sorted(found[:2])
        return round(min(max(expected, low), high))

    def _around(self, at: float, past: Sequence[int | None], newest: int | None) -> tuple[int, int, float] | None:
        """Log ends at the looks before and after that time, and how far between them it lies, from 0 to 1."""
        ends = (*past, newest)
        after = bisect_right(self._at, at)
        if after == 0 or len(ends) != len(self._at):
            return None
        before, until = after - 1, min(after, len(self._at) - 1)
        first, second = ends[before], ends[until]
        if first is None or second is None:
            return None
        passed = self._at[until] - self._at[before]
        return first, second, (at - self._at[before]) / passed if passed else 1.0


def copied_bytes(log_start: int, log_end: int, own: int, size: float, known: tuple[int, int] | None) -> float:
    """Bytes of ``size``, the leader's log, that a copy with log end ``own`` holds.

    On lines through what is known: nothing at the log's start, ``known`` (log end, bytes) as its directory told, and
    everything at the leader's end.
    """
    if own >= log_end:
        return size
    if own <= log_start:
        return 0.0
    if known is not None and log_start < known[0] < log_end and known[1] <= size:
        if own >= known[0]:
            return known[1] + (size - known[1]) * (own - known[0]) / (log_end - known[0])
        return known[1] * (own - log_start) / (known[0] - log_start)
    return size * (own - log_start) / (log_end - log_start)


def update_row(
    row: RowMemory,
    key: Key,
    size_at_start: int | None,
    read: RowRead,
    sizes: Sizes,
    times: CopyTimes,
    now: float,
    *,
    held: bool = False,
) -> dict[int, float]:
    """Puts a look into the row. Returns broker → bytes that its copy got since the last one; what it got before anybody
    knew how large a record is, once that is known.

    What was not answered stays as it was, with the time when it was. ``held``: the throttle was changed less than a
    quarter of a minute ago, and nothing is judged.
    """
    if read.source is not None:
        row.source = read.source
    row.refused = read.refused
    if read.log_start is None or read.log_end is None or read.ends is None:
        return {}
    before = row.log_end
    row.log_start, row.log_end = read.log_start, max(read.log_start, read.log_end)
    for broker, begin in read.begins.items():
        row.copies[broker].begin = begin
    row.written = _add_sample(row.written, now, row.log_end)
    _learn_record_size(row, key, size_at_start, sizes, times)
    grown = {broker: _count_new_records(row, copy, read.ends.get(broker)) for broker, copy in row.copies.items()}
    for broker, copy in row.copies.items():
        _learn_own_size(row, copy, key, sizes.get(broker), times)
    records = sum(grown.values())
    row.got += records
    stood = row.grew_at is not None and row.moved is not None and row.moved.at - row.grew_at >= ANEW_AFTER_S
    if row.moved is None or (stood and records):
        row.moved = RateMeter.start(now, row.got)
    elif not held:
        row.moved = row.moved.add(now, row.got)
    if records or row.grew_at is None:
        row.grew_at = now
    ends = [copy.end for copy in row.copies.values()]
    caught_up = all(end is not None and end >= min(row.log_end, before or row.log_end) for end in ends)
    row.copied_at = (row.copied_at or now) if caught_up else None
    row.losing_since = (row.losing_since or now) if not caught_up and _is_falling_behind(row) else None
    if read.at is not None:
        _update_sample(row, read.at)
    return _count_new_bytes(row, grown)


def has_uncounted_bytes(row: RowMemory) -> bool:
    """Return whether the row's copies got records whose size in bytes is not known."""
    return any(copy.uncounted for copy in row.copies.values())


def remember_log_ends(row: RowMemory, most: int) -> None:
    """Log ends as they are now, beside those of the times that the run remembers."""
    row.log_past = [*row.log_past, row.log_end][-most:]
    for copy in row.copies.values():
        copy.past = [*copy.past, copy.end][-most:]


def remaining_bytes(row: RowMemory, size_at_start: int | None) -> dict[int, float]:
    """Broker → bytes that its copy still lacked at the last look, of a row that has been found done since."""
    if row.log_end is None or row.log_start is None or row.record_bytes is None:
        return dict.fromkeys(row.copies, float(size_at_start or 0))
    start, end, each = row.log_start, row.log_end, row.record_bytes
    return {b: max(0, end - max(copy.find_start(start), copy.end or 0)) * each for b, copy in row.copies.items()}


def copy_rate(row: RowMemory) -> float | None:
    """Bytes per second that all its copies get."""
    records = row.moved.per_second() if row.moved else None
    return None if records is None or row.record_bytes is None else records * row.record_bytes


def inbound_rate(row: RowMemory) -> float | None:
    """Bytes per second that producers add to the log."""
    records = row.written.per_second() if row.written else None
    return None if records is None or row.record_bytes is None else records * row.record_bytes


def missing_bytes(row: RowMemory) -> dict[int, float]:
    """Broker → bytes that its copy still lacks; empty where that is not known."""
    if row.log_start is None or row.log_end is None or row.record_bytes is None:
        return {}
    return {broker: size - copied for broker, (size, copied) in _weigh_copies(row, row.record_bytes).items()}


def _weigh_copies(row: RowMemory, record_bytes: float) -> dict[int, tuple[float, float]]:
    """Broker → bytes that its copy has in the end, and bytes that it has now."""
    start, end = row.log_start or 0, row.log_end or 0
    found = {}
    for broker, copy in row.copies.items():
        begin = copy.find_start(start)
        size = record_bytes * max(0, end - begin)
        found[broker] = size, copied_bytes(begin, end, copy.end or begin, size, copy.known)
    return found


def _add_sample(meter: RateMeter | None, now: float, value: int) -> RateMeter:
    return meter.add(now, value) if meter else RateMeter.start(now, value)


def _count_new_records(row: RowMemory, copy: CopyMemory, own: int | None) -> int:
    """Records that the copy got. The first answer of one whose row was in flight before counts from the log's start."""
    if own is None:
        return 0
    start = copy.find_start(row.log_start or 0)
    since = start if copy.end is None else max(start, copy.end)
    copy.end = own
    return max(0, own - since)


def _count_new_bytes(row: RowMemory, grown: Mapping[int, int]) -> dict[int, float]:
    found = {}
    for broker, copy in row.copies.items():
        copy.uncounted += grown[broker]
        if row.record_bytes is not None:
            found[broker], copy.uncounted = copy.uncounted * row.record_bytes, 0
    return found


def _learn_record_size(row: RowMemory, key: Key, size_at_start: int | None, sizes: Sizes, times: CopyTimes) -> None:
    if row.source is not None and row.source in sizes and row.log_start is not None:
        at, replicas = sizes[row.source]
        end = times.end_at(at, row.log_past, row.log_end)
        if key in replicas and end is not None and end > row.log_start:
            row.record_bytes = replicas[key] / (end - row.log_start)
            return
    if row.record_bytes is None and size_at_start is not None and row.log_end is not None:
        row.record_bytes = size_at_start / max(1, row.log_end - (row.log_start or 0))


def _learn_own_size(
    row: RowMemory, copy: CopyMemory, key: Key, read: tuple[float, Mapping[Key, int]] | None, times: CopyTimes
) -> None:
    """Remember how many bytes the copy's directory held, and the copy's log end at that time.

    The log end is the one at which records have the mean size, or the nearest to it that the looks allow.
    """
    if read is None or key not in read[1] or not row.record_bytes:
        return
    at, own_bytes = read[0], read[1][key]
    expected = copy.find_start(row.log_start or 0) + own_bytes / row.record_bytes
    end = times.end_nearest(at, copy.past, copy.end, expected)
    if end is not None:
        copy.known = (end, own_bytes)


def _is_falling_behind(row: RowMemory) -> bool:
    """Return whether producers add at least as much to the log as the row's copies get."""
    moved = row.moved.per_second() if row.moved else None
    written = row.written.per_second() if row.written else None
    if moved is None or written is None or row.log_end is None:
        return False
    behind = sum((copy.end or 0) < row.log_end for copy in row.copies.values())
    return written > 0 and moved <= written * behind


def _update_sample(row: RowMemory, at: float) -> None:
    start, end = row.log_start or 0, row.log_end or 0
    known = [(copy.find_start(start), copy.end) for copy in row.copies.values() if copy.end is not None]
    row.sampled_at = at
    if len(known) < len(row.copies):
        return
    row.percent = min(copied_percent(begin, end, own) for begin, own in known)
    if row.record_bytes is None:
        return
    weighed = _weigh_copies(row, row.record_bytes).values()
    size, moved = sum(each for each, _ in weighed), sum(copied for _, copied in weighed)
    row.size_bytes, row.moved_bytes = round(size), round(moved)
    row.share = moved / size if size else row.percent / 100


AT_THROTTLE = 0.8
"""From this share of what is due on, the throttle is what holds it back: a quota is met in the mean only."""


def start_flow(at: float) -> FlowMemory:
    return FlowMemory(0, RateMeter.start(at, 0), RateMeter.start(at, 0), window_at=at, grew_at=at)


def add_bytes(
    flow: FlowMemory, at: float, grown: float, *, busy: bool, pace: float = 0.0, blind: bool = False, lost: bool = False
) -> None:
    """``grown`` bytes since the last look. ``busy``: whether anything is left to be copied by what is in flight, which
    would go at ``pace`` bytes per second if only the throttle held it back. ``blind``: nobody knows yet how many bytes
    a part of it is; the time until that is known is measured then, as a whole. ``lost``: nobody ever will.
    """
    flow.total += round(grown)
    due = flow.due.value + round(flow.pace * max(0.0, at - flow.due.at))
    stood = flow.meter.at - flow.grew_at
    if grown or not flow.busy:
        flow.grew_at = at
    flow.blind = blind
    if lost:
        _rest_meters(flow, at, due)
    elif blind:
        flow.grew_at = at
    elif grown and flow.busy and stood >= ANEW_AFTER_S:
        flow.meter, flow.due = RateMeter.start(at, flow.total), RateMeter.start(at, due)
        flow.windows, flow.dues = [], []
        _open_window(flow, at)
    elif not flow.busy and not grown:
        _rest_meters(flow, at, due)
    elif at >= flow.held_until:
        flow.meter, flow.due = flow.meter.add(at, flow.total), flow.due.add(at, due)
        _close_window(flow, at)
    flow.busy, flow.pace = busy, pace


def throttle_changed(flow: FlowMemory, at: float, before: int, after: int) -> None:
    """Expect what the throttle held back to follow its change, and what was slower for other reasons to stay as it was.
    For the first quarter of a minute, in which the quota bursts, nothing is judged; then samples replace what was
    expected.
    """
    rate, due = flow.meter.per_second(), flow.due.per_second()
    change = after / before
    if rate is not None:
        flow.meter = flow.meter.expecting(_expected_rate(rate, due or before, change))
    if due is not None:
        flow.due = flow.due.expecting(due * change)
    pairs = list(zip(flow.windows, flow.dues, strict=True))
    flow.windows = [round(_expected_rate(window, expected or before, change)) for window, expected in pairs]
    flow.dues = [round(expected * change) for expected in flow.dues]
    flow.pace *= change
    _rest_meters(flow, at, flow.due.value)
    flow.held_until = at + RATE_MIN_WINDOW_S


def throttle_reach(flow: FlowMemory) -> float | None:
    """Which share of what the throttle allows is reached, 0 to 1; None before there are three samples."""
    rate, due = flow.meter.per_second(), flow.due.per_second()
    return None if rate is None or not due else min(1.0, rate / due)


def window_reaches(flow: FlowMemory) -> list[float]:
    """The same of each quarter of a minute of the last ten."""
    return [min(1.0, window / due) for window, due in zip(flow.windows, flow.dues, strict=True) if due > 0]


def held_back(flow: FlowMemory) -> bool:
    """Return whether the throttle holds the flow back."""
    found = throttle_reach(flow)
    return found is not None and found >= AT_THROTTLE


def _rest_meters(flow: FlowMemory, at: float, due: int) -> None:
    flow.meter, flow.due = flow.meter.rested(at, flow.total), flow.due.rested(at, due)
    _open_window(flow, at)


def _open_window(flow: FlowMemory, at: float) -> None:
    flow.window_at, flow.window_total, flow.window_due = at, flow.total, flow.due.value


def _close_window(flow: FlowMemory, at: float) -> None:
    elapsed = at - flow.window_at
    if elapsed < WINDOW_S:
        return
    flow.windows.append(round((flow.total - flow.window_total) / elapsed))
    flow.dues.append(round((flow.due.value - flow.window_due) / elapsed))
    del flow.windows[:-WINDOWS_KEPT], flow.dues[:-WINDOWS_KEPT]
    _open_window(flow, at)


def _expected_rate(rate: float, due: float, change: float) -> float:
    return rate * change if rate >= AT_THROTTLE * due else min(rate, due * change)


@dataclass(frozen=True, slots=True)
class LogGrowth:
    """``counted``: bytes that came into a broker, or that it sent, since the last look. ``blind``: lanes where
    something came that cannot be counted yet, ``lost``: where something came that never will be.
    """

    counted: defaultdict[Lane, float] = field(default_factory=lambda: defaultdict(float))
    blind: set[Lane] = field(default_factory=set)
    lost: set[Lane] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ReplicaReads:
    """``at``: when the log ends were read, seconds since the epoch. ``sizes``: of directories read since the last
    measurement. ``estimates``: topic → why its figures are estimates, None where that was not asked this time.
    """

    at: float
    rows: Mapping[Key, RowRead] = field(default_factory=dict)
    sizes: Sizes = field(default_factory=dict)
    estimates: Mapping[str, str] | None = None


def estimate_replica_size(move: RunRow, memory: RunMemory) -> int | None:
    """Bytes of one replica that the row counts with."""
    return memory.learned.get(move.key, move.work.size_bytes)


def take_in(
    moves: Sequence[RunRow], seen: ClusterObservation, reads: ReplicaReads, memory: RunMemory, *, first: bool
) -> LogGrowth:
    """Every row in flight as its replicas told, and what became of those that no longer are.

    ``first``: nothing was remembered before this look.
    """
    grown = LogGrowth()
    held = reads.at < memory.throttle_at + RATE_MIN_WINDOW_S
    times = CopyTimes(memory.past_at, reads.at)
    gone = dict(memory.rows)
    for move in moves:
        if not move.in_flight or not move.work.adding:
            continue
        key = move.key
        gone.pop(key, None)
        read = reads.rows.get(key, NOTHING_READ)
        row = memory.rows.get(key)
        if row is None:
            row = memory.rows[key] = _start_row(move, read, seen, reads.at, memory, first=first)
            memory.kept.pop(key, None)
            memory.led.pop(key, None)
        size = estimate_replica_size(move, memory)
        before = _empty_copies(row)
        _count_by_broker(grown, row, update_row(row, key, size, read, reads.sizes, times, reads.at, held=held))
        if has_uncounted_bytes(row):
            grown.blind.update(_lanes(row))
        _learn_replica_size(move, row, before, memory)
    if gone:
        _drop_ended_rows(moves, gone, memory, grown)
    _remember_all_log_ends(memory, reads.at)
    return grown


def _empty_copies(row: RowMemory) -> dict[int, int | None]:
    """Broker → where the log of its copy starts, of copies without records."""
    start = row.log_start or 0
    return {b: copy.begin for b, copy in row.copies.items() if copy.end is None or copy.end <= copy.find_start(start)}


def _learn_replica_size(move: RunRow, row: RowMemory, before: Mapping[int, int | None], memory: RunMemory) -> None:
    """Learn the size by where the copies begin; again where one that was empty ``before`` this look begins elsewhere.

    Retention moves the starts of copies that have records, which had what is deleted there.
    """
    if row.record_bytes is None or row.size_bytes is None:
        return
    unknown = move.work.size_bytes is None
    anew = any(row.copies[broker].begin != begin for broker, begin in before.items())
    if (unknown and (anew or move.key not in memory.learned)) or (anew and _leaves_out_tiered(row)):
        memory.learned[move.key] = round(row.size_bytes / len(row.copies))


def _leaves_out_tiered(row: RowMemory) -> bool:
    """Return whether each copy begins after the start of the leader's log on the disk."""
    start = row.log_start
    return start is not None and all(copy.find_start(start) > start for copy in row.copies.values())


def expect_throttle(memory: RunMemory, throttle: int, at: float) -> None:
    """Apply a changed throttle: what the old one held back is expected to go as fast as the new one lets it."""
    before = memory.throttle
    if before == throttle:
        return
    held = {lane for lane, flow in memory.flows.items() if held_back(flow)}
    for row in memory.rows.values():
        if row.moved is None:
            continue
        rate = row.moved.per_second()
        row.moved = row.moved.rested(at, row.got)
        if rate is not None and not held.isdisjoint(_lanes(row)):
            row.moved = row.moved.expecting(rate * throttle / before)
    for flow in (*memory.flows.values(), *([memory.whole] if memory.whole else [])):
        throttle_changed(flow, at, before, throttle)
    memory.throttle, memory.throttle_at = throttle, at


def _start_row(
    move: RunRow, read: RowRead, seen: ClusterObservation, at: float, memory: RunMemory, *, first: bool
) -> RowMemory:
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
    return RowMemory(at, copies, source_broker(move.work, seen), log_past=list(past), moved=moved)


def _drop_ended_rows(
    moves: Sequence[RunRow], gone: Mapping[Key, RowMemory], memory: RunMemory, grown: LogGrowth
) -> None:
    for move in moves:
        row = gone.get(move.key)
        if row is None:
            continue
        del memory.rows[move.key]
        if has_uncounted_bytes(row):
            grown.lost.update(_lanes(row))
        if move.state is RowState.DONE:
            _count_by_broker(grown, row, remaining_bytes(row, estimate_replica_size(move, memory)))
        elif move.state not in BEFORE and row.share > 0:
            memory.kept[move.key] = row.share
        if move.ended and row.source is not None and row.source != move.work.row.current[0]:
            memory.led[move.key] = row.source


def _count_by_broker(grown: LogGrowth, row: RowMemory, by_broker: Mapping[int, float]) -> None:
    for broker, number in by_broker.items():
        grown.counted[broker, FlowDirection.IN] += number
        if row.source is not None:
            grown.counted[row.source, FlowDirection.OUT] += number


def _lanes(row: RowMemory) -> set[Lane]:
    found = {(broker, FlowDirection.IN) for broker in row.copies}
    return found if row.source is None else {*found, (row.source, FlowDirection.OUT)}


def _remember_all_log_ends(memory: RunMemory, at: float) -> None:
    if memory.past_at and at - memory.past_at[-1] < PAST_EVERY_S:
        return
    memory.past_at = [*memory.past_at, at][-PAST_KEPT:]
    for row in memory.rows.values():
        remember_log_ends(row, len(memory.past_at))
