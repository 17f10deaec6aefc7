"""Share groups (KIP-932) as stored: start offset, log end and lag of each share partition.

Members acknowledge records one by one and in any order, and many members read one partition. The start offset rests on
the first record that is not acknowledged while others behind it are read, so an offset that stays says nothing, and
the lag is what Kafka tells (KIP-1226): no verdict is drawn from either.
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
