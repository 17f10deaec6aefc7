"""Samples of one broker's replicas as ``BrokerCatchUp.data`` holds them, worst first."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.monitoring.catch_up.rules import FollowerSample
from kafkadash.monitoring.models import BrokerCatchUp


@dataclass(frozen=True, slots=True)
class FollowerList:
    """Replicas of one broker, worst first."""

    samples: Sequence[FollowerSample]


def pack_followers(samples: Sequence[FollowerSample]) -> bytes:
    return zlib.compress(json.dumps(pack_dataclass(FollowerList(samples)), separators=(",", ":")).encode(), 1)


def unpack_followers(
    row: BrokerCatchUp, *, topic: str | None = None, most: int | None = None
) -> Sequence[FollowerSample]:
    """Return the first ``most``, of one topic or of all; none where they are stored in another format."""
    if row.format != 1:
        return []
    stored = json.loads(zlib.decompress(bytes(row.data)))["samples"]
    if topic is not None:
        stored = [each for each in stored if each[0] == topic]
    return unpack_dataclass(FollowerList, {"samples": stored[:most]}).samples
