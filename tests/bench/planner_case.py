"""``python -m tests.bench.planner_case CASE PARTITIONS OUT``: one request at one size, in a process of its own.

Every rule that the result has to keep is counted here with nothing of the planner's own code but its columns.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from kafkadash.planning.solver.certificate import compute_bound, prices_of
from kafkadash.planning.solver.demand import Ints, PlacementDemand, SolverAnswer, TopologyColumns
from kafkadash.planning.solver.modes import ModeAim, demand_of
from kafkadash.planning.solver.placement import repair_racks, solve_demand
from kafkadash.planning.solver.plan import HAS_IT, KEPT, NEW, choose_leaders
from tests.bench import planner_clusters as clusters
from tests.bench.planner_clusters import BROKERS

ADDED, DRAINED, VIOLATED = 30, 15, 0.1


@dataclass(frozen=True, slots=True)
class Case:
    """``evens``: whether counts inside a rack are to differ by one at most among ``of`` (all that receive)."""

    columns: TopologyColumns
    aim: ModeAim
    evens: bool
    repairs: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds on the clock and of the processor, of what a plan takes; bytes; counts of what a rule does not allow.

    The leaders are only evened out in the cases where the counts are.
    """

    took_s: float
    processor_s: float
    stages_s: dict[str, float]
    peak_mb: float
    moved: int
    bound: int
    again: int
    rack_violations: int
    uneven: int
    evens: bool
    broken: list[str]
    leaders_uneven: int | None
    leaders_s: float


def case(name: str, partitions: int) -> Case:
    return CASES[name](partitions)


def _add(partitions: int) -> Case:
    columns = clusters.cluster(partitions, 3, clusters.even_racks(), empty=ADDED)
    return Case(columns, _aim(receives=np.arange(BROKERS - ADDED, BROKERS), strict=False), evens=False)


def _drain(partitions: int) -> Case:
    columns = clusters.cluster(partitions, 3, clusters.even_racks())
    return Case(columns, _aim(leaving=np.arange(DRAINED)), evens=False)


def _drain_rebalance(partitions: int) -> Case:
    columns = clusters.cluster(partitions, 3, clusters.even_racks())
    return Case(columns, _aim(leaving=np.arange(DRAINED), strict=False), evens=True)


def _repair(partitions: int) -> Case:
    columns = clusters.violated(clusters.cluster(partitions, 3, clusters.even_racks()), VIOLATED)
    return Case(columns, _aim(), evens=False, repairs=True)


def _uneven_racks(partitions: int) -> Case:
    columns = clusters.cluster(partitions, 3, clusters.uneven_racks())
    return Case(columns, _aim(strict=False), evens=True)


def _set_rf(partitions: int) -> Case:
    columns = clusters.cluster(partitions, 2, clusters.even_racks())
    return Case(columns, _aim(factor=3), evens=False)


def _skew(partitions: int) -> Case:
    columns = clusters.cluster(partitions, 3, clusters.even_racks(), one_topic_each=True)
    return Case(columns, _aim(strict=False), evens=True)


CASES: dict[str, Callable[[int], Case]] = {
    "add 30": _add,
    "drain 15": _drain,
    "drain 15, rebalance": _drain_rebalance,
    "repair 10 % violations": _repair,
    "racks of 40/33/27 %": _uneven_racks,
    "RF 2 → 3": _set_rf,
    "natural skew": _skew,
}


def _aim(
    leaving: Ints | None = None, receives: Ints | None = None, *, strict: bool = True, factor: int | None = None
) -> ModeAim:
    left = clusters.these(np.zeros(0, np.int64) if leaving is None else leaving, BROKERS)
    given = ~left if receives is None else clusters.these(receives, BROKERS)
    return ModeAim(left, given, np.zeros(BROKERS, np.int64), strict=strict, factor=factor)


def planned(asked: Case) -> tuple[PlacementDemand, SolverAnswer]:
    if asked.repairs:
        return repair_racks(asked.columns, asked.aim)
    return solve_demand(demand_of(asked.columns, asked.aim))


def measured(asked: Case) -> Measured:
    times = [(time.perf_counter(), time.process_time())]

    def lap() -> None:
        times.append((time.perf_counter(), time.process_time()))

    demand, answer = planned(asked)
    lap()
    prices = prices_of(demand, answer.stays, answer.new)
    lap()
    least = -1 if prices is None else compute_bound(demand, prices)
    lap()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    after = clusters.result(asked.columns, answer)
    _, same = planned(Case(after, asked.aim, asked.evens, asked.repairs))
    begun = time.perf_counter()
    led = _leaders_uneven(asked, answer, after) if asked.evens else None
    names = ("plan", "certificate", "verification")
    return Measured(
        took_s=times[-1][0] - times[0][0],
        processor_s=times[-1][1] - times[0][1],
        stages_s={name: times[i + 1][0] - times[i][0] for i, name in enumerate(names)},
        peak_mb=peak,
        moved=answer.moved(demand),
        bound=least,
        again=int(((same.new >= 0).sum(axis=1) * after.sizes).sum()),
        rack_violations=_rack_violations(demand, after),
        uneven=_uneven(asked, after),
        evens=asked.evens,
        broken=_broken(asked, demand, answer, after),
        leaders_uneven=led,
        leaders_s=time.perf_counter() - begun,
    )


def _rack_violations(demand: PlacementDemand, after: TopologyColumns) -> int:
    """Partitions with two replicas in a rack although there are as many racks; all have three."""
    racks = np.sort(np.where(after.held >= 0, after.rack_of[after.held], -1 - np.arange(after.held.shape[1])), axis=1)
    return int((np.diff(racks, axis=1) == 0).any(axis=1).sum())


def _uneven(asked: Case, after: TopologyColumns) -> int:
    """Largest difference of counts inside a rack, of brokers that take part."""
    counts = np.bincount(after.held[after.held >= 0], minlength=BROKERS)
    differences = []
    for rack in range(clusters.RACKS):
        part = counts[(after.rack_of == rack) & asked.aim.receives]
        differences.append(int(part.max() - part.min()))
    return max(differences)


def _broken(asked: Case, demand: PlacementDemand, answer: SolverAnswer, after: TopologyColumns) -> list[str]:
    """Names of the rules that some partition or broker does not keep."""
    before, aim = asked.columns, asked.aim
    present = after.held[after.held >= 0]
    ordered = np.sort(after.held, axis=1)
    wanted = (before.held >= 0).sum(axis=1) if aim.factor is None else aim.factor
    counts = np.bincount(present, minlength=BROKERS)
    rules = {
        "factor": (after.held >= 0).sum(axis=1) != wanted,
        "distinct": (np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] >= 0),
        "eligible": ~aim.receives[answer.new[answer.new >= 0]],
        "left": aim.leaving[present],
        "strict": answer.stays != demand.may_stay if aim.strict and not asked.repairs else np.zeros(0, np.bool_),
        "counts": (counts < demand.least) | (counts > demand.most),
    }
    return [rule for rule, broken in rules.items() if broken.any()]


def _leaders_uneven(asked: Case, answer: SolverAnswer, after: TopologyColumns) -> int:
    """Most less fewest leaders, of the brokers that take part, after the second flow."""
    new = np.concatenate([np.zeros_like(answer.stays), answer.new >= 0], axis=1)
    has = np.concatenate([answer.stays, answer.new >= 0], axis=1)
    order = np.argsort(~has, axis=1, kind="stable")[:, : after.held.shape[1]]
    costs = np.where(np.take_along_axis(new, order, axis=1), NEW, HAS_IT)
    costs[answer.stays[:, 0], 0] = KEPT
    column = choose_leaders(after.held, costs, np.zeros(BROKERS, np.int64), ~asked.aim.leaving)
    led = np.bincount(after.held[np.arange(len(column)), column], minlength=BROKERS)[~asked.aim.leaving]
    return int(led.max() - led.min())


if __name__ == "__main__":
    _, chosen, size, out = sys.argv
    Path(out).write_text(json.dumps(asdict(measured(case(chosen, int(size))))), encoding="utf-8")
