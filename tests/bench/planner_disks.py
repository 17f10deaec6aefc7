"""Disks within 5 % of the mean of their rack, against what no plan can beat, and the disk limit on 300 brokers.

Seeded clusters: topics with Pareto numbers of partitions, lognormal sizes (σ 1.8), RF 3 over three racks, brokers
chosen by chance, which leaves counts and disks as uneven as clusters are that nobody balances.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kafkadash.domain.planner.certificate import bound, prices_of
from kafkadash.domain.planner.decode import place
from kafkadash.domain.planner.demand import Answer, Demand, Ints
from kafkadash.domain.planner.disk_balance import LACKS, STUCK, balanced
from kafkadash.domain.planner.disk_bound import disk_bound
from kafkadash.domain.planner.disk_room import within_room
from kafkadash.domain.planner.water import broker_bounds, rack_bounds
from tests.bench.bars import Bar, at_most

BROKERS, EPS, SEED = 300, 0.05, 36
OVER_BOUND, APART, CPU_S, WITHOUT_NEED_S, REPAIR_S = 1.03, 1, {10_000: 2.0, 100_000: 2.0}, 0.5, 5.0
EQUAL, UNEQUAL = (100, 100, 100), (120, 99, 81)


@dataclass(frozen=True, slots=True)
class Cluster:
    """``sizes`` P, ``held`` P×3, ``rack_of`` B."""

    sizes: Ints
    held: Ints
    rack_of: Ints


def cluster(partitions: int, racks: Sequence[int] = EQUAL, empty: int = 0) -> Cluster:
    """``empty``: so many brokers, the last of each rack in turn, hold nothing."""
    chance = np.random.default_rng(SEED)
    many = np.minimum(np.ceil(3 * chance.pareto(1.2, partitions) + 1).astype(np.int64), 300)
    topic = np.repeat(np.arange(partitions), many)[:partitions]
    sizes = np.exp(np.log(2e9) + chance.normal(0, 1.6, partitions)[topic] + chance.normal(0, 0.8, partitions))
    held = np.empty((partitions, 3), np.int64)
    first = np.concatenate([[0], np.cumsum(racks)])
    for rack in range(3):
        held[:, rack] = chance.integers(first[rack], first[rack + 1] - empty // 3, partitions)
    rack_of = np.repeat(np.arange(3), racks)
    return Cluster(sizes.astype(np.int64), chance.permuted(held, axis=1), rack_of)


def demand_of(model: Cluster, leaving: int = 0, *, strict: bool = False) -> Demand:
    """Even counts for all. ``leaving``: so many brokers are emptied; ``strict``: and nobody else gives any."""
    count, brokers = len(model.sizes), len(model.rack_of)
    gone = np.zeros(brokers, np.bool_)
    for rack in range(3):
        gone[np.flatnonzero(model.rack_of == rack)[: leaving // 3]] = True
    may = ~gone[model.held]
    must = may.copy() if strict else np.zeros_like(may)
    stays = np.zeros((count, 3), np.int64)
    rows, columns = np.nonzero(must)
    np.add.at(stays, (rows, model.rack_of[model.held[rows, columns]]), 1)
    factors = np.full(count, 3, np.int64)
    room = np.broadcast_to(np.bincount(model.rack_of[~gone], minlength=3), (count, 3))
    low, high = rack_bounds(factors, stays, room)
    kept, most = np.bincount(model.held[must], minlength=brokers), np.where(gone, 0, count)
    least, most = broker_bounds(3 * count, kept, most, model.rack_of, low.sum(axis=0), high.sum(axis=0))
    return Demand(model.sizes, factors, model.held, may, must, model.rack_of, ~gone, least, most, low, high)


def bars() -> list[Bar]:
    found = []
    for count in (10_000, 100_000):
        for name, model, leaving in (
            ("natural skew", cluster(count), 0),
            ("racks of 120, 99, 81", cluster(count, UNEQUAL), 0),
            ("add 30", cluster(count, empty=30), 0),
            ("drain 15", cluster(count), 15),
        ):
            found += _balanced(f"{name}, {count:,}", model, demand_of(model, leaving), count)
    return [*found, *_limited()]


def _balanced(name: str, model: Cluster, demand: Demand, count: int) -> list[Bar]:
    answer, beside = place(demand), np.zeros(demand.brokers, np.int64)
    prices = prices_of(demand, answer.stays, answer.new)
    flow_bound = 0 if prices is None else bound(demand, prices)
    began = time.process_time()
    done = balanced(demand, answer, model.sizes, beside, demand.receives, EPS)
    took = time.process_time() - began
    stuck = [done.those(why, demand.brokers) for why in (STUCK, LACKS)]
    least = max(flow_bound, disk_bound(demand, model.sizes, beside, demand.receives, EPS, *stuck))
    again = _again(model, demand, done.answer)
    counts = done.answer.counts(demand)
    apart = max(int(np.ptp(counts[(demand.rack_of == rack) & demand.receives])) for rack in range(3))
    return [
        at_most(f"disks, {name}: bytes moved", done.answer.moved(demand) / least, OVER_BOUND, "of bound"),
        at_most(f"disks, {name}: counts in a rack, max - min", apart, APART, "replicas"),
        at_most(f"disks, {name}: outside for no reason", int(np.sum(stuck)), 0, "brokers"),
        Bar(f"disks, {name}: outside for a large partition", len(done.outside) - int(np.sum(stuck)), "brokers"),
        at_most(f"disks, {name}: planned again", again, 0, "bytes"),
        at_most(f"disks, {name}: processor", took, CPU_S[count], "s"),
    ]


def _again(model: Cluster, demand: Demand, answer: Answer) -> int:
    """Bytes that the same request moves once it is done."""
    held = np.where(answer.stays, model.held, -1)
    every = np.sort(np.concatenate([held, answer.new], axis=1), axis=1)[:, ::-1]
    after = Cluster(model.sizes, every[:, :3].copy(), model.rack_of)
    same = demand_of(after)
    same = Demand(
        same.bytes, same.factors, same.held, same.may_stay, same.must_stay, same.rack_of, demand.receives,
        demand.least, demand.most, demand.rack_least, demand.rack_most,
    )  # fmt: skip
    beside = np.zeros(demand.brokers, np.int64)
    done = balanced(same, place(same), model.sizes, beside, demand.receives, EPS)
    return done.answer.moved(same)


def _limited() -> list[Bar]:
    """15 brokers are drained onto others of which each second one is nearly full."""
    model = cluster(100_000)
    demand = demand_of(model, 15, strict=True)
    answer, known = place(demand), np.ones(100_000, np.bool_)
    anywhere, coming = np.full(demand.brokers, -1), np.zeros(demand.brokers, np.int64)
    rows, columns = np.nonzero(answer.new >= 0)
    np.add.at(coming, answer.new[rows, columns], demand.bytes[rows])
    found = []
    for name, room, limit in (
        ("nobody over", coming, WITHOUT_NEED_S),
        ("half of them over", np.where(np.arange(demand.brokers) % 2, coming // 2, 3 * coming.max()), REPAIR_S),
    ):
        began = time.process_time()
        _, over = within_room(demand, answer, room, anywhere, known)
        found += [
            at_most(f"disk limit, {name}: processor", time.process_time() - began, limit, "s"),
            at_most(f"disk limit, {name}: still over", int((over > 0).sum()), 0, "brokers"),
        ]
    return found
