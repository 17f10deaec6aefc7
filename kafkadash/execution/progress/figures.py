"""Progress figures of a run, and their JSON, which each step stores and the pages show.

None means unknown; no figure is guessed. Bytes are those of the copies that the plan makes: a partition that gets two
new replicas counts twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from kafkadash.core.messages import CodedReason

NEARLY = 99.9
"""Shown until all is copied, however little is left."""


class RowMark(StrEnum):
    """On a row that moves: no growth for 90 s, or below 0.1 MB/s; no growth for five minutes."""

    SLOW = "slow"
    STUCK = "stuck"


class StuckCause(StrEnum):
    """Why a row does not get on, the first that matches in this order."""

    DESTINATION_AWAY = "destination_away"
    KEPT_REPLICA_AWAY = "kept_replica_away"
    NO_LEADER = "no_leader"
    BELOW_INBOUND = "below_inbound"
    DESTINATION_DISK = "destination_disk"
    SOURCE_AT_THROTTLE = "source_at_throttle"
    FOREIGN_THROTTLE = "foreign_throttle"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class FlowDirection(StrEnum):
    IN = "in"
    OUT = "out"


@dataclass(frozen=True, slots=True)
class RowNow:
    """Figures of a row in flight. ``percent`` counts records and may fall; ``rate`` is bytes per second; ``eta_s``
    infinite where nothing gets on. ``size_bytes`` and ``moved_bytes`` are of all its copies, by the leader's log as it
    is now; ``inbound`` is what producers add to that log, bytes per second, once. ``grew_at``: when the row last came
    nearer to the leader. ``source`` is the leader that is copied from. ``sampled_at``: when its replicas were asked.
    ``why``: why a row with a mark does not get on. ``estimate``: why its figures are estimates ("compacted"), '' where
    they are not.
    """

    stored_as_list: ClassVar = True

    topic: str
    partition: int
    source: int | None = None
    percent: float | None = None
    size_bytes: int | None = None
    moved_bytes: int | None = None
    rate: float | None = None
    eta_s: float | None = None
    in_isr: bool = False
    grew_at: datetime | None = None
    mark: RowMark | None = None
    why: CodedReason | None = None
    estimate: str = ""
    sampled_at: datetime | None = None
    inbound: float | None = None

    @property
    def remaining_bytes(self) -> int | None:
        if self.size_bytes is None or self.moved_bytes is None:
            return None
        return max(0, self.size_bytes - self.moved_bytes)


@dataclass(frozen=True, slots=True)
class BrokerNow:
    """Copies into, or out of, one broker in the whole run, by the sizes that were known when the run began.

    ``inbound``: what producers add, bytes per second, to what is copied there now; None where it is not known.
    """

    broker: int
    direction: FlowDirection
    total_bytes: int | None
    moved_bytes: int | None
    rate: float | None = None
    eta_s: float | None = None
    inbound: float | None = None


@dataclass(frozen=True, slots=True)
class RunNow:
    """The whole run. ``percent`` never falls in one run, and is 100 only when all is copied. Each row weighs what its
    copies took when the run began: ``total_bytes`` stays, ``moved_bytes`` is the share of it that is there. ``rate`` is
    of all copies together, ``throttle`` the one in force. ``eta_s`` with its range ``eta_low_s`` and ``eta_high_s``
    from the rates of the last ten minutes; infinite where nothing gets on, None before three samples. ``left_out``:
    rows that do not get on and are not in it. ``binding``: the broker and direction that take longest; None where it is
    the limit of moves in parallel. ``counts``: rows by ``executor_state.State``. ``notes``: sentences, such as
    that a log shrank.

    ``unsized``: rows whose size is not known. While there are any, the plan has no ``percent`` and no ``total_bytes``;
    ``known_bytes`` and ``known_moved`` are those of the other rows.
    """

    at: datetime
    total_bytes: int | None
    moved_bytes: int | None
    percent: float | None
    rate: float | None = None
    eta_s: float | None = None
    eta_low_s: float | None = None
    eta_high_s: float | None = None
    binding: tuple[int, FlowDirection] | None = None
    brokers: tuple[BrokerNow, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    rows: tuple[RowNow, ...] = ()
    notes: tuple[str, ...] = ()
    throttle: int | None = None
    left_out: int = 0
    unsized: int = 0
    known_bytes: int | None = None
    known_moved: int | None = None

    @property
    def known_percent(self) -> float | None:
        """Percent of the rows whose size is known, while there are others; never 100, as the others are not counted.
        The plan's percent may be less when the others get a size.
        """
        if not self.unsized or not self.known_bytes or self.known_moved is None:
            return None
        return min(NEARLY, 100.0 * self.known_moved / self.known_bytes)

    @property
    def slow(self) -> int:
        return sum(row.mark is RowMark.SLOW for row in self.rows)

    @property
    def stuck(self) -> int:
        return sum(row.mark is RowMark.STUCK for row in self.rows)
