"""How much `make smoke` moves and how fast: enough to be judged, or as much as somebody would watch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SmokeExtent:
    """Bytes that Kafka's own tool moves, at so many per second; MB/s to which the drain's throttle is raised.

    ``pace`` is how often the demo looks: as many samples of a shorter move.
    """

    move_bytes: int
    move_rate: int
    raised_to: int
    pace: Mapping[str, str] = field(default_factory=dict)


FULL = SmokeExtent(move_bytes=420_000_000, move_rate=6_000_000, raised_to=6)
SHORT = SmokeExtent(
    move_bytes=200_000_000,
    move_rate=4_000_000,
    raised_to=10,
    pace={
        "INTERVAL_REASSIGNMENTS": "3",
        "INTERVAL_MOVING": "1",
        "INTERVAL_METADATA": "10",
        "INTERVAL_LOG_DIRS": "10",
        "INTERVAL_CONFIGS": "10",
        "EXECUTE_INTERVAL": "1",
    },
)
