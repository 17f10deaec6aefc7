"""What a plan is asked for, whichever way it was asked: on a page, in a command, in a stored draft."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

ADD, DRAIN, REPLACE, REPAIR_RACKS = "add", "drain", "replace", "repair-racks"
SET_RF, BALANCE, LEADERS, EXPLICIT, FINISH = "set-rf", "balance", "leaders", "explicit", "finish"
PLANNED_MODES = (ADD, DRAIN, REPLACE, REPAIR_RACKS, SET_RF, BALANCE, LEADERS)
"""In which the planner chooses; the other two bring rows of their own."""
MODES = (*PLANNED_MODES, EXPLICIT, FINISH)
EPS = 0.05
"""How far a broker's disk may be from the mean of its rack after balancing, unless something else is asked for."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """``brokers``: those that are drained or replaced, or that were added and get replicas. ``replacements``: by whom.

    ``targets``: the only ones that may be given replicas; None for all that can. ``factor``: of ``set-rf``. Topics are
    those named in ``topics`` and those matched whole by the regular expression ``pattern`` (all where both are
    empty), without those that ``excluded``, another one, matches whole; ``balance`` and all other modes leave the rest
    alone. ``eps`` (0 to 1): disks are balanced to within this share of the mean of their rack; None for counts only.
    ``disk_limit`` (0 to 1 of each disk) holds also while both copies are there. ``most_replicas``: of a broker.
    ``rebalance`` lets others than those asked for move too. ``leaders``: preferred leaders are evened out as well.
    ``change_rf``: rows that are brought may change the replication factor.
    """

    mode: str
    brokers: tuple[int, ...] = ()
    replacements: tuple[int, ...] = ()
    targets: tuple[int, ...] | None = None
    factor: int | None = None
    topics: tuple[str, ...] = ()
    pattern: str = ""
    excluded: str = ""
    eps: float | None = None
    disk_limit: float | None = None
    most_replicas: int | None = None
    rebalance: bool = False
    ignore_racks: bool = False
    accept_fewer_racks: bool = False
    leaders: bool = True
    change_rf: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> PlanRequest:
        """What is not there is as by default; lists are tuples."""
        known: dict[str, Any] = {name: stored[name] for name in cls.__dataclass_fields__ if name in stored}
        known |= {name: tuple(value) for name, value in known.items() if isinstance(value, list)}
        return cls(**known)


@dataclass(frozen=True, slots=True)
class Proof:
    """That no plan for the same request moves fewer bytes than ``bound``; this one moves ``moved``.

    ``prices``: broker → bytes, those that are not 0, the whole certificate (``domain.planner.certificate``).
    ``widened``: broker → (least, most) replicas where the even counts cannot be had. ``disk_bound``: what balancing the
    disks takes at the least, where that was asked for. ``outside``: brokers that could not be brought within eps, and
    why (``disk_balance.Outside``). ``estimated``: partitions whose size is not known; they are
    reckoned with the median of their topic.
    """

    moved: int
    bound: int
    prices: Mapping[int, int]
    widened: Mapping[int, tuple[int, int]]
    disk_bound: int | None = None
    estimated: int = 0
    outside: Mapping[int, str] = field(default_factory=dict)

    @property
    def lowest(self) -> int:
        """Bytes that every plan for this request moves at the least."""
        return max(self.bound, self.disk_bound or 0)

    @property
    def exact(self) -> bool:
        """Proven: nothing moves less."""
        return self.moved == self.lowest and not self.estimated

    @property
    def ratio(self) -> float | None:
        """``moved`` by ``lowest``; None where nothing has to move and something does."""
        if self.moved == self.lowest:
            return 1.0
        return self.moved / self.lowest if self.lowest else None

    def as_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "prices": {str(broker): price for broker, price in self.prices.items()},
            "widened": {str(broker): list(bounds) for broker, bounds in self.widened.items()},
            "outside": {str(broker): why for broker, why in self.outside.items()},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Proof:
        prices = {int(broker): price for broker, price in stored["prices"].items()}
        widened = {int(broker): (low, high) for broker, (low, high) in stored["widened"].items()}
        outside = {int(broker): why for broker, why in stored["outside"].items()}
        return cls(
            stored["moved"], stored["bound"], prices, widened, stored["disk_bound"], stored["estimated"], outside
        )
