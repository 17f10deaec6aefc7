"""Rates of what is written, from the ends of logs. Records are counted; bytes are estimated from what a log keeps."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafkadash.kafka.api import LogSpan
from kafkadash.monitoring.tiers.rules import is_tiered

SLOT_S, SLOTS = 1800, 48
"""Seconds of a slot of a cluster's trend, and how many slots it has: 24 hours."""
SHARDS = 64
"""Topics are spread over so many rows by their name: reading the rates of one topic reads a 64th of all."""
MOST_INTERVALS = 3
"""A rate over a longer gap is unknown: it would spread a peak over time in which nothing was read."""
_COMPACT = "compact"


def shard_of(topic: str) -> int:
    """Return the shard that stores a topic's rates."""
    return zlib.crc32(topic.encode()) % SHARDS


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Log ends of a topic's partitions at the refresh before: partition → (end, seconds since the epoch)."""

    topic_id: str
    ends: Mapping[int, tuple[int, float]]


@dataclass(frozen=True, slots=True)
class PartitionRate:
    """Records per second written to a partition, and bytes per second; None is unknown."""

    partition: int
    leader: int | None
    records: float | None
    bytes: float | None


@dataclass(frozen=True, slots=True)
class TrafficRate:
    """Sum over partitions. ``records`` and ``bytes`` are per second, None where no partition is known.

    ``unknown``: partitions whose records are unknown; ``without_bytes``: partitions with records whose bytes are.
    """

    records: float | None
    bytes: float | None
    unknown: int = 0
    without_bytes: int = 0


def record_rate(before: tuple[int, float] | None, span: LogSpan | None, interval_s: float) -> float | None:
    """Return records per second since the refresh before.

    None without both ends, after too long a gap, and where the end is smaller: after an unclean election the leader's
    log is shorter, so how much was written is unknown.
    """
    if before is None or span is None:
        return None
    end, at = before
    seconds = span.taken_at - at
    if not 0 < seconds <= MOST_INTERVALS * interval_s or span.end < end:
        return None
    return (span.end - end) / seconds


def keeps_all_bytes(config: Mapping[str, tuple[str | None, str]] | None) -> bool:
    """Return whether the log on disk has all records between its start and its end.

    A compacted log has fewer, and the log of a tiered topic (KIP-405) has the older ones elsewhere, so bytes per record
    cannot be told from their sizes. An unread config is no promise either.
    """
    if config is None:
        return False
    policy = (config.get("cleanup.policy") or ("delete", ""))[0] or ""
    return _COMPACT not in policy and not is_tiered(config)


def byte_rate(records: float | None, span: LogSpan | None, size_bytes: int | None) -> float | None:
    """Return bytes per second: new records × the bytes per record that the leader's log keeps."""
    if records == 0:
        return 0.0
    if records is None or span is None or size_bytes is None or span.end <= span.start or size_bytes <= 0:
        return None
    return records * size_bytes / (span.end - span.start)


def partition_rates(
    before: LogEnds | None,
    topic_id: str,
    leaders: Mapping[int, int | None],
    spans: Mapping[int, LogSpan],
    sizes: Mapping[int, int] | None,
    interval_s: float,
) -> list[PartitionRate]:
    """Return one rate for each partition in ``leaders``. ``sizes``: bytes of leaders' logs, None where unusable.

    A topic that was deleted and created again has another id, and begins anew.
    """
    ends = before.ends if before is not None and before.topic_id == topic_id else {}
    rates = []
    for partition, leader in leaders.items():
        span = spans.get(partition)
        records = record_rate(ends.get(partition), span, interval_s)
        size = None if sizes is None else sizes.get(partition)
        rates.append(PartitionRate(partition, leader, records, byte_rate(records, span, size)))
    return rates


def sum_rates(rates: Iterable[PartitionRate]) -> TrafficRate:
    """Return the sum; bytes are None where none of the partitions with records tells them."""
    records = octets = None
    unknown = without_bytes = 0
    for rate in rates:
        if rate.records is None:
            unknown += 1
            continue
        records = (records or 0.0) + rate.records
        if rate.bytes is None:
            without_bytes += 1
        else:
            octets = (octets or 0.0) + rate.bytes
    return TrafficRate(records, octets, unknown, without_bytes)


def advance_slots(slots: Sequence[float | None], moved: int, rate: float | None) -> list[float | None]:
    """Return the slots of a trend with a rate in the newest one, ``moved`` slots after the newest one of before."""
    kept = [*slots, *([None] * min(moved, SLOTS))] or [None]
    newest = [value for value in (kept[-1], rate) if value is not None]
    return [*kept[:-1], max(newest, default=None)][-SLOTS:]
