"""Tiered topics (KIP-405): older records are in remote storage, and the disks of brokers hold the newer ones.

Brokers tell the bytes of their disks (DescribeLogDirs), and of remote storage only which offsets it has (KIP-1005). Its
bytes are estimated by the mean size of a record on the leader's disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafkadash.kafka.config_values import COPY_UNTIERED_ONLY, REMOTE_STORAGE

Config = Mapping[str, tuple[str | None, str]]


def is_tiered(config: Config | None) -> bool:
    """Return whether segments of the topic go to remote storage; False where its configs were not read."""
    return _is_set(config, REMOTE_STORAGE)


def may_be_tiered(config: Config | None) -> bool:
    """Return whether segments of the topic may be in remote storage: True also where its configs were not read."""
    return config is None or is_tiered(config)


def copies_untiered_only(config: Config | None) -> bool:
    """Return whether new replicas on a broker with these configs leave out what is in remote storage (KIP-1023)."""
    return _is_set(config, COPY_UNTIERED_ONLY)


def _is_set(config: Config | None, key: str) -> bool:
    return ((config or {}).get(key) or ("false", ""))[0] == "true"


@dataclass(frozen=True, slots=True)
class PartitionTiers:
    """Offsets of a partition as its leader told them, and bytes of the leader's replica; None where it did not.

    ``last_tiered`` is −1 where nothing is in remote storage, and where the leader does not know: after a restart until
    it looked there, and as long as ``remote.log.copy.disable`` keeps it from that. Records before ``local_start`` are
    there only.
    """

    log_start: int | None
    local_start: int | None
    last_tiered: int | None
    log_end: int | None
    local_bytes: int | None

    @property
    def tiered_end(self) -> int | None:
        """Offset up to which remote storage has all, at least the log's start; None where that is not known."""
        if self.log_start is None:
            return None
        if self.log_end == self.log_start:
            return self.log_start
        if self.last_tiered is None or self.last_tiered < 0 or self.local_start is None:
            return None
        end = max(self.log_start, self.last_tiered + 1)
        return None if end < self.local_start else end

    @property
    def remote_records(self) -> int | None:
        if self.log_start is None or self.tiered_end is None:
            return None
        return self.tiered_end - self.log_start

    @property
    def remote_only_records(self) -> int | None:
        """Records that no disk has, by the leader's."""
        if self.log_start is None or self.local_start is None:
            return None
        return max(0, self.local_start - self.log_start)

    @property
    def pending_records(self) -> int | None:
        """Records that are on disks only."""
        if self.tiered_end is None or self.log_end is None:
            return None
        return max(0, self.log_end - self.tiered_end)

    @property
    def record_bytes(self) -> float | None:
        """Mean bytes of a record on the leader's disk."""
        if self.local_bytes is None or self.local_start is None or self.log_end is None:
            return None
        records = self.log_end - self.local_start
        return self.local_bytes / records if records > 0 else None

    @property
    def remote_bytes(self) -> int | None:
        """Return an estimate."""
        return self._weigh(self.remote_records)

    @property
    def remote_only_bytes(self) -> int | None:
        """Return an estimate of what a new replica does not copy."""
        return self._weigh(self.remote_only_records)

    @property
    def pending_bytes(self) -> int | None:
        """Return an estimate of what a new replica copies that leaves out what is in remote storage (KIP-1023)."""
        return self._weigh(self.pending_records)

    def _weigh(self, records: int | None) -> int | None:
        if not records:
            return records
        each = self.record_bytes
        return None if each is None else round(records * each)


@dataclass(frozen=True, slots=True)
class TopicTiers:
    """Sums over partitions; a sum is None where it is not known of one of them."""

    partitions: int
    local_bytes: int | None
    remote_records: int | None
    remote_bytes: int | None
    pending_records: int | None
    pending_bytes: int | None


def sum_tiers(partitions: Iterable[PartitionTiers]) -> TopicTiers:
    found = list(partitions)
    return TopicTiers(
        len(found),
        _sum_known(p.local_bytes for p in found),
        _sum_known(p.remote_records for p in found),
        _sum_known(p.remote_bytes for p in found),
        _sum_known(p.pending_records for p in found),
        _sum_known(p.pending_bytes for p in found),
    )


def _sum_known(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
