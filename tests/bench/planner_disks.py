"""Disks within 5 % of the mean of their rack, against what no plan can beat, and the disk limit on 300 brokers."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from kafkadash.planning.solver.certificate import compute_bound, prices_of
from kafkadash.planning.solver.demand import Ints, PlacementDemand, SolverAnswer, TopologyColumns
from kafkadash.planning.solver.disk_balance import LACKS, STUCK, balance_disks
from kafkadash.planning.solver.modes import ModeAim, demand_of
from kafkadash.planning.solver.placement import place, within_room
from kafkadash.planning.solver.verification import disk_bound
from tests.bench.bars import Bar, at_most
from tests.bench.planner_clusters import BROKERS, cluster, even_racks, these, uneven_racks

EPS, OVER_BOUND, APART, CPU_S, WITHOUT_NEED_S, REPAIR_S = 0.05, 1.03, 1, 2.0, 0.5, 5.0


def demand(columns: TopologyColumns, leaving: int = 0, *, strict: bool = False) -> PlacementDemand:
    """Even counts for all. ``leaving``: the first so many brokers are emptied; ``strict``: nobody else gives any."""
    brokers = len(columns.ids)
    gone = these(np.arange(leaving), brokers)
    return demand_of(columns, ModeAim(gone, ~gone, np.zeros(brokers, np.int64), strict=strict))


def measure() -> list[Bar]:
    found = []
    for count in (10_000, 100_000):
        for name, columns, leaving in (
            ("natural skew", cluster(count, 3, even_racks(), one_topic_each=True), 0),
            ("racks of 40/33/27 %", cluster(count, 3, uneven_racks()), 0),
            ("add 30, rebalance", cluster(count, 3, even_racks(), empty=30), 0),
            ("drain 15, rebalance", cluster(count, 3, even_racks()), 15),
        ):
            found += _balanced(f"disks, {name}, {count:,}", demand(columns, leaving))
    return [*found, *_limited()]


def _balanced(name: str, asked: PlacementDemand) -> list[Bar]:
    answer, beside = place(asked), np.zeros(BROKERS, np.int64)
    prices = prices_of(asked, answer.stays, answer.new)
    flow_bound = 0 if prices is None else compute_bound(asked, prices)
    began = time.process_time()
    done = balance_disks(asked, answer, asked.bytes, beside, asked.receives, EPS)
    took = time.process_time() - began
    stuck = [done.those(why, BROKERS) for why in (STUCK, LACKS)]
    least = max(flow_bound, disk_bound(asked, asked.bytes, beside, asked.receives, EPS, *stuck))
    counts = done.answer.counts(asked)
    apart = max(int(np.ptp(counts[(asked.rack_of == rack) & asked.receives])) for rack in range(asked.racks))
    without_reason = int(np.sum(stuck))
    return [
        at_most(f"{name}: bytes moved", done.answer.moved(asked) / least, OVER_BOUND, "of bound"),
        at_most(f"{name}: replicas, most - fewest in a rack", apart, APART, "replicas"),
        at_most(f"{name}: not within eps", without_reason, 0, "brokers"),
        Bar(f"{name}: not within eps for a large partition", len(done.outside) - without_reason, "brokers"),
        at_most(f"{name}: planned again", _again(asked, done.answer), 0, "bytes"),
        at_most(f"{name}: time of the processor", took, CPU_S, "s"),
    ]


def carried_out(asked: PlacementDemand, answer: SolverAnswer) -> PlacementDemand:
    """The same request once the plan is done; nobody has to leave or to stay any more."""
    every = np.sort(np.concatenate([np.where(answer.stays, asked.held, -1), answer.new], axis=1), axis=1)
    held = every[:, ::-1][:, : int(asked.factors.max())].copy()
    return replace(asked, held=held, may_stay=held >= 0, must_stay=np.zeros_like(held, np.bool_))


def _again(asked: PlacementDemand, answer: SolverAnswer) -> int:
    """Bytes that the same request moves once more."""
    after, beside = carried_out(asked, answer), np.zeros(BROKERS, np.int64)
    return balance_disks(after, place(after), after.bytes, beside, after.receives, EPS).answer.moved(after)


def arriving(asked: PlacementDemand, answer: SolverAnswer) -> Ints:
    """B: bytes of new replicas."""
    coming = np.zeros(asked.brokers, np.int64)
    rows, columns = np.nonzero(answer.new >= 0)
    np.add.at(coming, answer.new[rows, columns], asked.bytes[rows])
    return coming


def _limited() -> list[Bar]:
    """15 brokers are drained onto others, of which every second one has half the room that it would need."""
    asked = demand(cluster(100_000, 3, even_racks()), 15, strict=True)
    answer, known = place(asked), np.ones(100_000, np.bool_)
    anywhere, coming = np.full(BROKERS, -1), arriving(asked, answer)
    found = []
    for name, room, limit in (
        ("nobody over", coming, WITHOUT_NEED_S),
        ("half of them over", np.where(np.arange(BROKERS) % 2, coming // 2, 3 * coming.max()), REPAIR_S),
    ):
        began = time.process_time()
        _, over = within_room(asked, answer, room, anywhere, known)
        found += [
            at_most(f"disk limit, {name}: time of the processor", time.process_time() - began, limit, "s"),
            at_most(f"disk limit, {name}: still over", int((over > 0).sum()), 0, "brokers"),
        ]
    return found
