"""Between how many bytes a broker is balanced: within eps of the mean of its rack.

A single partition may be larger than that. Its broker then may hold eps of the mean beside it, and the others need no
more than they can have without it, a little less than their even share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OF_SHARE = 0.2
"""Where large partitions leave the other brokers less than the mean, they are to be within so much of eps of that."""


@dataclass(frozen=True, slots=True)
class Target:
    """Bytes of a broker of one rack: ``least`` to ``most``; ``mean`` and ``slack`` (eps of it)."""

    mean: float
    least: int
    most: int
    slack: int

    def most_with(self, largest: int) -> int:
        """Of a broker whose largest partition has so many bytes."""
        return largest + self.slack if largest > self.most else self.most


def target_of(total: int, brokers: int, largest: Sequence[int], eps: float) -> Target:
    """``total`` bytes on ``brokers``. ``largest``: bytes of the rack's replicas, at least all that may be above
    ``most``.
    """
    mean = total / brokers if brokers else 0.0
    most = int((1 + eps) * mean)
    giants = [size for size in largest if size > most]
    others = brokers - len(giants)
    share = (total - sum(giants)) / others if others > 0 else 0.0
    least = min((1 - eps) * mean, (1 - eps * OF_SHARE) * share)
    return Target(mean, max(0, int(least)), most, int(eps * mean))
