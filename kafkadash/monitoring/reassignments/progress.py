"""Progress of a replica: the share copied, the rate and the time left.

Progress is counted in records: ListOffsets with replica_id −2 makes each broker answer for its own copy, so the figure
is the replica's true log end offset and not the leader's belief. Bytes are estimates made from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

RATE_HALF_LIFE_S = 60.0
"""Weight of a sample halves every minute: a broker's quota averages over about 11 s and bursts after a change."""

RATE_MIN_WINDOW_S = 15.0
RATE_MIN_SAMPLES = 3

ANEW_AFTER_S = 90.0
"""A copy that stood still for so long and goes on is measured anew: the pause tells nothing about its rate."""

EXPECTED_WEIGHT = 0.1
"""Weight of an expected rate: a quarter of a minute of samples outweighs it."""


def copied_percent(log_start: int, leader_end: int, replica_end: int) -> float:
    """Share of the leader's records the replica holds, 0 to 100.

    ``(replica end − log start) / (leader end − log start)``, with the start of what is copied: ``find_copy_start``. It
    may fall when producers outrun a slow copy: that is
    true. Offsets of two brokers are never read at the same instant, so the result is kept inside 0 to 100.
    """
    total = leader_end - log_start
    if total <= 0:
        return 100.0 if replica_end >= leader_end else 0.0
    return min(100.0, max(0.0, 100.0 * (replica_end - log_start) / total))


def find_copy_start(leader_start: int, own_start: int | None) -> int:
    """Return the first offset that a copy gets from its leader, by the starts of both logs on the brokers' disks.

    The log of a new replica begins where that of its leader does. With tiered storage (KIP-405) it may begin later:
    after what is in remote storage already (KIP-1023). ``own_start`` is None where it was not asked or not told, and
    before the first record came.
    """
    return leader_start if own_start is None else max(leader_start, own_start)


@dataclass(frozen=True, slots=True)
class RateMeter:
    """An exponentially weighted mean of a counter's growth per second.

    ``at`` is the time of the newest sample in seconds, ``value`` the counter then. ``weight`` is the total weight
    collected so far: dividing by it removes the pull towards zero that a young mean would have.
    """

    stored_as_list: ClassVar = True

    at: float
    value: int
    first_at: float
    samples: int = 1
    weighted: float = 0.0
    weight: float = 0.0

    @classmethod
    def start(cls, at: float, value: int) -> RateMeter:
        return cls(at=at, value=value, first_at=at)

    def add(self, at: float, value: int) -> RateMeter:
        """The meter after one more sample. A counter that fell back starts a new measurement."""
        if value < self.value:
            return RateMeter.start(at, value)
        elapsed = at - self.at
        if elapsed <= 0:
            return self
        keep = 0.5 ** (elapsed / RATE_HALF_LIFE_S)
        return RateMeter(
            at=at,
            value=value,
            first_at=self.first_at,
            samples=self.samples + 1,
            weighted=self.weighted * keep + (value - self.value) / elapsed * (1 - keep),
            weight=self.weight * keep + (1 - keep),
        )

    def rested(self, at: float, value: int) -> RateMeter:
        """Return the same rate from ``at`` and ``value`` on. The time since the last sample is not measured."""
        return replace(self, at=at, value=value, first_at=self.first_at + (at - self.at))

    def expecting(self, rate: float) -> RateMeter:
        """With another rate from now on, believed only until there are samples of it."""
        weight = min(self.weight, EXPECTED_WEIGHT)
        return replace(self, weighted=rate * weight, weight=weight)

    def per_second(self) -> float | None:
        """Growth per second; None before three samples that span a quarter of a minute."""
        if self.samples < RATE_MIN_SAMPLES or self.at - self.first_at < RATE_MIN_WINDOW_S or self.weight <= 0:
            return None
        return self.weighted / self.weight


def bytes_per_second(records_per_s: float | None, size_bytes: int | None, records: int) -> float | None:
    """The rate in bytes, by the mean size of a record in the leader's log: estimated, None where a part is unknown."""
    if records_per_s is None or size_bytes is None or records <= 0:
        return None
    return records_per_s * size_bytes / records


def seconds_left(size_bytes: int | None, percent: float | None, rate_bytes: float | None) -> float | None:
    """Time until the copy is complete at this rate; infinity when nothing moves, None where a part is unknown."""
    if size_bytes is None or percent is None or rate_bytes is None:
        return None
    remaining = size_bytes * (100.0 - percent) / 100.0
    if remaining <= 0:
        return 0.0
    return remaining / rate_bytes if rate_bytes > 0 else float("inf")
