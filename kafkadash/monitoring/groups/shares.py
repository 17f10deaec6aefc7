"""Share groups (KIP-932) as stored: start offset, log end and lag of each share partition.

Members acknowledge records one by one and in any order, and many members read one partition. The start offset rests on
the first record that is not acknowledged while others behind it are read, so an offset that stays says nothing, and
the lag is what Kafka tells (KIP-1226): no verdict is drawn from either.

How many records members hold is not known. Acquired records are in the memory of the partition's leader, and
DescribeShareGroupOffsets tells start offset and lag. All of them are in the lag.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from kafkadash.monitoring.groups.window import SampledMember
from kafkadash.monitoring.models import UnjudgedGroup


class SharePartition(NamedTuple):
    """Offsets and ``lag`` in records; None where Kafka does not tell."""

    topic: str
    partition: int
    start: int | None
    end: int | None
    lag: int | None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def most_completed(self) -> int | None:
        """Upper bound of records from the start offset on that are acknowledged or archived; None for unknown.

        Lag is the log end less the start offset and these (GroupCoordinatorService of Kafka 4.2). ``end`` is read
        after the lag, so that records of the time between count here: where none came, the bound is their number.
        """
        if self.start is None or self.end is None or self.lag is None or self.end - self.start < self.lag:
            return None
        return self.end - self.start - self.lag


def pack_partitions(partitions: Sequence[SharePartition]) -> bytes:
    """zlib of JSON [[topic, partition, start offset, log end, lag]]."""
    return zlib.compress(json.dumps(partitions, separators=(",", ":")).encode(), 1)


def read_partitions(row: UnjudgedGroup) -> list[SharePartition]:
    """Partitions of a stored share group, in order; none as long as they were never read."""
    return [SharePartition(*fields) for fields in _unpack_rows(bytes(row.offsets))]


def read_share_members(row: UnjudgedGroup) -> list[SampledMember]:
    return [SampledMember(*fields) for fields in _unpack_rows(bytes(row.member_rows))]


def _unpack_rows(packed: bytes) -> list[list[Any]]:
    rows: list[list[Any]] = json.loads(zlib.decompress(packed)) if packed else []
    return rows
