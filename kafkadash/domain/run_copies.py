"""How far the copies of one row are, by what each replica says of its own log (04-changes.md §6).

Records are counted exactly, by log ends; bytes are those of the leader's log, shared out by records, and corrected by
the size of the copy's own directory whenever that is read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkadash.domain.executor_state import Key
from kafkadash.domain.progress import ANEW_AFTER_S, RateMeter, copied_percent
from kafkadash.domain.run_memory import CopyMemory, RowMemory

Sizes = Mapping[int, tuple[float, Mapping[Key, int]]]
"""Broker → when its directories were read (seconds since the epoch), and bytes of its replicas."""


@dataclass(frozen=True, slots=True)
class RowRead:
    """What the replicas of one row told in one look: log start and end of the ``source``, log ends of its copies.

    ``ends`` lacks a copy whose broker did not answer; ``at`` is when the first of them answered, None if none did.
    ``refused``: Kafka's own words where it would not tell.
    """

    source: int | None = None
    log_start: int | None = None
    log_end: int | None = None
    ends: Mapping[int, int] | None = None
    at: float | None = None
    refused: str = ""


NOTHING_READ = RowRead()


class Times:
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


def update(
    row: RowMemory,
    key: Key,
    size_at_start: int | None,
    read: RowRead,
    sizes: Sizes,
    times: Times,
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
    row.written = _metered(row.written, now, row.log_end)
    _learn_record_size(row, key, size_at_start, sizes, times)
    grown = {broker: _grown(row, copy, read.ends.get(broker)) for broker, copy in row.copies.items()}
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
    row.losing_since = (row.losing_since or now) if not caught_up and _losing(row) else None
    if read.at is not None:
        _tell(row, read.at)
    return _counted(row, grown)


def blind(row: RowMemory) -> bool:
    """Whether its copies got something of which nobody knows how many bytes it is."""
    return any(copy.uncounted for copy in row.copies.values())


def remember(row: RowMemory, most: int) -> None:
    """Log ends as they are now, beside those of the times that the run remembers."""
    row.log_past = [*row.log_past, row.log_end][-most:]
    for copy in row.copies.values():
        copy.past = [*copy.past, copy.end][-most:]


def rest(row: RowMemory, size_at_start: int | None) -> dict[int, float]:
    """Broker → bytes that its copy still lacked at the last look, of a row that has been found done since."""
    if row.log_end is None or row.log_start is None or row.record_bytes is None:
        return dict.fromkeys(row.copies, float(size_at_start or 0))
    start, end, each = row.log_start, row.log_end, row.record_bytes
    return {b: max(0, end - max(start, copy.end or 0)) * each for b, copy in row.copies.items()}


def rate(row: RowMemory) -> float | None:
    """Bytes per second that all its copies get."""
    records = row.moved.per_second() if row.moved else None
    return None if records is None or row.record_bytes is None else records * row.record_bytes


def inbound(row: RowMemory) -> float | None:
    """Bytes per second that producers add to the log."""
    records = row.written.per_second() if row.written else None
    return None if records is None or row.record_bytes is None else records * row.record_bytes


def missing(row: RowMemory) -> dict[int, float]:
    """Broker → bytes that its copy still lacks; empty where that is not known."""
    if row.log_start is None or row.log_end is None or row.record_bytes is None:
        return {}
    size = row.record_bytes * (row.log_end - row.log_start)
    return {
        broker: size - copied_bytes(row.log_start, row.log_end, copy.end or row.log_start, size, copy.known)
        for broker, copy in row.copies.items()
    }


def _metered(meter: RateMeter | None, now: float, value: int) -> RateMeter:
    return meter.add(now, value) if meter else RateMeter.start(now, value)


def _grown(row: RowMemory, copy: CopyMemory, own: int | None) -> int:
    """Records that the copy got. The first answer of one whose row was in flight before counts from the log's start."""
    if own is None:
        return 0
    start = row.log_start or 0
    since = start if copy.end is None else max(start, copy.end)
    copy.end = own
    return max(0, own - since)


def _counted(row: RowMemory, grown: Mapping[int, int]) -> dict[int, float]:
    found = {}
    for broker, copy in row.copies.items():
        copy.uncounted += grown[broker]
        if row.record_bytes is not None:
            found[broker], copy.uncounted = copy.uncounted * row.record_bytes, 0
    return found


def _learn_record_size(row: RowMemory, key: Key, size_at_start: int | None, sizes: Sizes, times: Times) -> None:
    if row.source is not None and row.source in sizes and row.log_start is not None:
        at, replicas = sizes[row.source]
        end = times.end_at(at, row.log_past, row.log_end)
        if key in replicas and end is not None and end > row.log_start:
            row.record_bytes = replicas[key] / (end - row.log_start)
            return
    if row.record_bytes is None and size_at_start is not None and row.log_end is not None:
        row.record_bytes = size_at_start / max(1, row.log_end - (row.log_start or 0))


def _learn_own_size(
    row: RowMemory, copy: CopyMemory, key: Key, read: tuple[float, Mapping[Key, int]] | None, times: Times
) -> None:
    """Remember how many bytes the copy's directory held, and the copy's log end at that time.

    The log end is the one at which records have the mean size, or the nearest to it that the looks allow.
    """
    if read is None or key not in read[1] or not row.record_bytes:
        return
    at, own_bytes = read[0], read[1][key]
    expected = (row.log_start or 0) + own_bytes / row.record_bytes
    end = times.end_nearest(at, copy.past, copy.end, expected)
    if end is not None:
        copy.known = (end, own_bytes)


def _losing(row: RowMemory) -> bool:
    """Whether producers add at least as much to the log as its copies get."""
    moved = row.moved.per_second() if row.moved else None
    written = row.written.per_second() if row.written else None
    if moved is None or written is None or row.log_end is None:
        return False
    behind = sum((copy.end or 0) < row.log_end for copy in row.copies.values())
    return written > 0 and moved <= written * behind


def _tell(row: RowMemory, at: float) -> None:
    start, end = row.log_start or 0, row.log_end or 0
    ends = [copy.end for copy in row.copies.values()]
    known = [own for own in ends if own is not None]
    row.sampled_at = at
    if len(known) < len(ends):
        return
    row.percent = min(copied_percent(start, end, own) for own in known)
    if row.record_bytes is None:
        return
    size = row.record_bytes * (end - start)
    moved = sum(copied_bytes(start, end, copy.end or 0, size, copy.known) for copy in row.copies.values())
    row.size_bytes, row.moved_bytes = round(size * len(ends)), round(moved)
    row.share = moved / (size * len(ends)) if size else row.percent / 100
