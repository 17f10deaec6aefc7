"""The request for a plan, from a page, a command or a stored draft, and the selection of topics by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

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
    ``change_rf``: rows that are brought may change the replication factor. Without ``internal``, internal topics are
    left alone unless ``topics`` names them.
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
    internal: bool = True


@dataclass(frozen=True, slots=True)
class PlanProof:
    """Proof that no plan for the same request moves fewer bytes than ``bound``; this plan moves ``moved``.

    ``prices``: broker → bytes, those that are not 0, the whole certificate (``planning.solver.certificate``).
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


class BadPattern(Exception):
    """``pattern`` is no regular expression; ``str()`` says why, as a part of a sentence."""

    def __init__(self, pattern: str, fault: str) -> None:
        super().__init__(fault)
        self.pattern = pattern


def choose_topics(request: PlanRequest, names: Iterable[str], internal: Collection[str]) -> list[str]:
    """Return the requested ``names``, sorted: named or matched, and not excluded. Raises BadPattern.

    ``internal`` are those of the names that are internal topics of Kafka.
    """
    pattern = compile_pattern(request.pattern) if request.pattern else None
    excluded = compile_pattern(request.excluded) if request.excluded else None
    listed = frozenset(request.topics)
    skipped = frozenset[str]() if request.internal else frozenset(internal) - listed
    return sorted(
        name
        for name in names
        if (not (listed or pattern) or name in listed or (pattern and pattern.fullmatch(name)))
        and not (excluded and excluded.fullmatch(name))
        and name not in skipped
    )


def limits_topics(request: PlanRequest) -> bool:
    """Return whether the request may leave out some topics."""
    return bool(request.topics or request.pattern or request.excluded or not request.internal)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Raises BadPattern."""
    try:
        return re.compile(pattern)
    except re.error as error:
        place = "" if error.pos is None else f" at character {error.pos + 1}"
        raise BadPattern(pattern, f"{error.msg}{place}") from error
    except (OverflowError, RecursionError) as error:
        raise BadPattern(pattern, "too large or too deeply nested") from error
