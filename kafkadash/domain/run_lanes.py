"""What each broker takes and sends in a run: all of it, what is there, what is to come, and what will not get on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kafkadash.domain.executor_state import BrokerSeen
from kafkadash.domain.run_eta import LaneLoad
from kafkadash.domain.run_flows import reach, reaches
from kafkadash.domain.run_memory import FlowMemory, Lane
from kafkadash.domain.run_progress import Direction
from kafkadash.domain.run_stuck import SLOW_BELOW


@dataclass(slots=True)
class LaneSums:
    """``total`` and ``done`` bytes by the sizes of the run's begin; ``unsized``: of some rows they are not known.

    ``rows`` that have not ended, of them ``stuck`` ones, which have not grown for long; ``left_out``: those that do not
    get on, or would wait for one that does not. ``remaining`` bytes, and the ``copies`` that are being made now, are of
    the others; ``pace``: bytes per second that these would go at if only the throttle held them back. ``inbound``:
    bytes per second that producers add to what is in flight; ``unmetered``: of some of that it is not known.
    """

    total: float = 0.0
    done: float = 0.0
    unsized: bool = False
    rows: int = 0
    stuck: int = 0
    left_out: int = 0
    busy: bool = False
    remaining: float = 0.0
    copies: int = 0
    pace: float = 0.0
    inbound: float = 0.0
    unmetered: bool = False


def _lanes() -> defaultdict[int, LaneSums]:
    return defaultdict(LaneSums)


@dataclass(slots=True)
class Lanes:
    out: defaultdict[int, LaneSums] = field(default_factory=_lanes)
    into: defaultdict[int, LaneSums] = field(default_factory=_lanes)
    copies: list[tuple[int, int]] = field(default_factory=list)
    """From which broker to which, of all that are being made."""

    def add(self, leader: int, adding: Sequence[int], size: int | None, share: float) -> None:
        """Any row: each copy is sent once and taken once. ``share`` of it is there."""
        out = self.out[leader]
        for broker in adding:
            for sums in (out, self.into[broker]):
                if size is None:
                    sums.unsized = True
                else:
                    sums.total += size
                    sums.done += size * share

    def add_waiting(self, leader: int, adding: Sequence[int], size: int) -> None:
        out = self.out[leader]
        out.rows += 1
        out.remaining += size * len(adding)
        for broker in adding:
            into = self.into[broker]
            into.rows += 1
            into.remaining += size

    def add_flying(
        self, leader: int, left: Mapping[int, float], written: float | None, *, copying: bool, stuck: bool
    ) -> None:
        """``left``: broker → bytes that its copy still lacks. ``written``: what producers add, None if not known."""
        out = self.out[leader]
        out.rows += 1
        out.stuck += stuck
        out.left_out += stuck
        for broker, lacks in left.items():
            into = self.into[broker]
            into.rows += 1
            into.stuck += stuck
            into.left_out += stuck
            if copying and not stuck:
                self.copies.append((leader, broker))
            for sums in (out, into):
                sums.busy = sums.busy or copying
                sums.inbound += written or 0.0
                sums.unmetered = sums.unmetered or written is None
                if not stuck:
                    sums.remaining += lacks
                    sums.copies += copying

    def take_out(self, leader: int, left: Mapping[int, float]) -> None:
        """A row that would wait for ever; it was added as one that does not."""
        out = self.out[leader]
        out.left_out += 1
        for broker, lacks in left.items():
            out.remaining -= lacks
            self.into[broker].remaining -= lacks
            self.into[broker].left_out += 1

    def share_out(self, limit: Callable[[Lane], int]) -> None:
        """Sets the pace of each lane. A copy gets its part of what its source may send or of what its destination may
        take, whichever is less: brokers fetch from many at once and serve all alike.
        """
        limits: dict[Lane, int] = {lane: limit(lane) for lane, sums in self.each() if sums.copies}
        for leader, broker in self.copies:
            out, into = self.out[leader], self.into[broker]
            pace = min(limits[leader, Direction.OUT] / out.copies, limits[broker, Direction.IN] / into.copies)
            out.pace += pace
            into.pace += pace

    def each(self) -> Iterator[tuple[Lane, LaneSums]]:
        for broker in sorted({*self.out, *self.into}):
            if broker in self.into:
                yield (broker, Direction.IN), self.into[broker]
            if broker in self.out:
                yield (broker, Direction.OUT), self.out[broker]

    def blocked(
        self, brokers: Mapping[int, BrokerSeen], limit: Callable[[Lane], int], throttle: int, per_broker: int
    ) -> set[Lane]:
        """Where what waits would wait for ever: the broker is away and should take something, its slots are taken by
        what does not get on, or somebody else's throttle stops it.
        """
        found = set()
        for lane, sums in self.each():
            if not sums.rows:
                continue
            state = brokers.get(lane[0])
            away = lane[1] is Direction.IN and (state is None or not state.alive or state.fenced)
            if away or sums.stuck >= per_broker or limit(lane) < min(SLOW_BELOW, throttle):
                found.add(lane)
        return found

    def loads(self, flows: Mapping[Lane, FlowMemory], limit: Callable[[Lane], int]) -> dict[Lane, LaneLoad]:
        """Of what is not left out, what each lane still has to do and how fast it goes there."""
        return {
            lane: LaneLoad(
                remaining=max(0.0, sums.remaining),
                rows=sums.rows - sums.left_out,
                limit=limit(lane),
                reach=reach(flows[lane]),
                reaches=reaches(flows[lane]),
                inbound=sums.inbound,
            )
            for lane, sums in self.each()
            if sums.rows > sums.left_out
        }


def usual_reach(flows: Iterable[FlowMemory]) -> float | None:
    """Which share of what was due was reached by all brokers of which it is known, together."""
    known = [(rate, due) for f in flows if (rate := f.meter.per_second()) is not None and (due := f.due.per_second())]
    all_due = sum(due for _, due in known)
    return min(1.0, sum(rate for rate, _ in known) / all_due) if all_due else None


def arriving(loads: Mapping[Lane, LaneLoad]) -> float:
    """Bytes still to come, each copy once."""
    return sum(load.remaining for (_, way), load in loads.items() if way is Direction.IN)
