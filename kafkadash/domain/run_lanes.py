"""What each broker takes and sends in a run: all of it, what is there, what is to come, and what will not get on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kafkadash.domain.executor_state import BrokerSeen, Move
from kafkadash.domain.run_eta import LaneLoad
from kafkadash.domain.run_memory import FlowMemory, Lane, RowMemory
from kafkadash.domain.run_progress import Direction
from kafkadash.domain.run_stuck import SLOW_BELOW


@dataclass(slots=True)
class OpenRow:
    """A row that copies something and has not ended. ``row`` is None while it waits. ``left``: broker → bytes that its
    copy still lacks. ``stuck``: it has not grown for long. ``copying``: it is in flight and a copy of it is behind.
    ``written``: bytes per second that producers add to its log, None where that is not known.
    """

    move: Move
    row: RowMemory | None
    leader: int
    left: Mapping[int, float]
    stuck: bool = False
    copying: bool = False
    written: float | None = None

    @property
    def lanes(self) -> tuple[Lane, ...]:
        return ((self.leader, Direction.OUT), *((broker, Direction.IN) for broker in self.move.work.adding))


@dataclass(slots=True)
class LaneTotal:
    """Bytes by the sizes of the run's begin; ``unsized``: of some rows they are not known."""

    total: float = 0.0
    done: float = 0.0
    unsized: bool = False


@dataclass(slots=True)
class LaneNow:
    """``rows`` that have not ended; of them ``stuck`` ones. ``busy``: something is copied. ``inbound``: bytes a
    second that producers add to what is copied there, ``unmetered``: of some rows that is not known.
    """

    rows: int = 0
    stuck: int = 0
    busy: bool = False
    inbound: float = 0.0
    unmetered: bool = False


@dataclass(slots=True)
class Lanes:
    totals: defaultdict[Lane, LaneTotal] = field(default_factory=lambda: defaultdict(LaneTotal))
    now: defaultdict[Lane, LaneNow] = field(default_factory=lambda: defaultdict(LaneNow))
    open: list[OpenRow] = field(default_factory=list)

    def add(self, move: Move, leader: int, size: int | None, share: float) -> None:
        """Any row: each copy is sent once and taken once. ``share`` of it is there."""
        out = self.totals[leader, Direction.OUT]
        for broker in move.work.adding:
            for sums in (out, self.totals[broker, Direction.IN]):
                if size is None:
                    sums.unsized = True
                else:
                    sums.total += size
                    sums.done += size * share

    def add_open(self, row: OpenRow) -> None:
        self.open.append(row)
        copies = len(row.move.work.adding)
        for lane in row.lanes:
            times = copies if lane[1] is Direction.OUT else 1
            sums = self.now[lane]
            sums.rows += 1
            sums.stuck += row.stuck
            sums.busy = sums.busy or row.copying
            sums.inbound += (row.written or 0.0) * times
            sums.unmetered = sums.unmetered or (row.row is not None and row.written is None)

    def left_out(
        self, brokers: Mapping[int, BrokerSeen], limit: Callable[[Lane], int], throttle: int, per_broker: int
    ) -> list[OpenRow]:
        """Rows that do not get on, and those that would wait for ever: their destination is away, the slots of one of
        their brokers are taken by what does not get on, or somebody else's throttle stops it.
        """
        blocked = set()
        for lane, sums in self.now.items():
            state = brokers.get(lane[0])
            away = lane[1] is Direction.IN and (state is None or not state.alive or state.fenced)
            if away or sums.stuck >= per_broker or limit(lane) < min(SLOW_BELOW, throttle):
                blocked.add(lane)
        return [row for row in self.open if row.stuck or (blocked and not blocked.isdisjoint(row.lanes))]

    def loads(
        self, rows: Iterable[OpenRow], flows: Mapping[Lane, FlowMemory], limit: Callable[[Lane], int]
    ) -> dict[Lane, LaneLoad]:
        """Of these rows, what each lane still has to do and how fast it goes there."""
        sums: defaultdict[Lane, _Load] = defaultdict(_Load)
        for row in rows:
            out = (row.leader, Direction.OUT)
            for broker, left in row.left.items():
                into = (broker, Direction.IN)
                for lane, other in ((out, into), (into, out)):
                    load = sums[lane]
                    load.remaining += left
                    load.inbound += row.written or 0.0
                    if row.copying:
                        load.ends.add(other)
            for lane in row.lanes:
                sums[lane].rows += 1
        return {lane: load.at(flows[lane], limit(lane)) for lane, load in sums.items()}


@dataclass(slots=True)
class _Load:
    remaining: float = 0.0
    inbound: float = 0.0
    rows: int = 0
    ends: set[Lane] = field(default_factory=set)

    def at(self, flow: FlowMemory, limit: int) -> LaneLoad:
        return LaneLoad(
            remaining=self.remaining,
            rate=flow.meter.per_second(),
            limit=limit,
            busy=bool(self.ends),
            ends=frozenset(self.ends),
            inbound=self.inbound,
            rows=self.rows,
            windows=flow.windows,
        )


def arriving(loads: Mapping[Lane, LaneLoad]) -> float:
    """Bytes still to come, each copy once."""
    return sum(load.remaining for (_, way), load in loads.items() if way is Direction.IN)


def grown_into(grown: Mapping[Lane, float]) -> float:
    return sum(number for (_, way), number in grown.items() if way is Direction.IN)


def without(rows: Sequence[OpenRow], out: Collection[OpenRow]) -> list[OpenRow]:
    gone = {id(row) for row in out}
    return [row for row in rows if id(row) not in gone] if gone else list(rows)
