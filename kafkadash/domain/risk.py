"""How risky a change is, as far as the server can tell by itself; a client cannot lower it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RiskFacts:
    """What the floor is reckoned from. Shares are 0 to 1, of the whole cluster; None is not known and never harmless.

    ``rf_decreases``: partitions that lose a replica for good. ``internal_topics``: those that move.
    ``spread_worse``: partitions whose rack spread gets worse. ``racks_on_one_broker``: racks left with one broker that
    holds replicas. ``irreversible``: sentences about what no rollback brings back.
    """

    bytes_share: float | None
    partitions_share: float | None
    rf_decreases: int = 0
    internal_topics: int = 0
    spread_worse: int | None = 0
    racks_on_one_broker: tuple[str, ...] = ()
    irreversible: tuple[str, ...] = ()
