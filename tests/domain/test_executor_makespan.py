"""How long a plan takes under the rolling window, against what no order can beat (05-planner.md §7)."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter

from kafkadash.domain.executor import step
from kafkadash.domain.executor_state import Cancel, Key, Move, Reorder, State, Submit, Work
from kafkadash.domain.executor_throttles import ChangeLists, ClearRate, SetRate, Throttles, wanted
from kafkadash.domain.plan import Options, Row
from tests.domain.executor_cluster import Cluster

MB = 1_000_000
RATE = 50 * MB


def plan(number: int, brokers: int, seed: int) -> tuple[list[Row], dict[Key, float]]:
    """One replica of each partition moves to a broker chosen at random; few partitions hold most of the bytes."""
    chance = random.Random(seed)
    rows, sizes = [], {}
    for place in range(number):
        held = chance.sample(range(brokers), 4)
        row = Row(f"topic-{place // 56}", "id", place % 56, tuple(held[:3]), (held[0], held[1], held[3]))
        rows.append(row)
        sizes[row.topic, row.partition] = min(chance.lognormvariate(5.6, 1.0), 4000) * MB
    return rows, sizes


def bound(rows: list[Row], sizes: dict[Key, float]) -> float:
    """Seconds that any order takes: the most loaded broker in either direction, and the largest move."""
    into: Counter[int] = Counter()
    out: Counter[int] = Counter()
    for row in rows:
        size = int(sizes[row.topic, row.partition])
        out[row.current[0]] += size * len(row.adding)
        for broker in row.adding:
            into[broker] += size
    return max(*into.values(), *out.values(), *(int(size) for size in sizes.values())) / RATE


def run(rows: list[Row], sizes: dict[Key, float], brokers: int, options: Options, every: float) -> tuple[float, float]:
    """Seconds of the clock of the cluster that the whole plan takes, and of the real one that a step takes at most."""
    cluster = Cluster(rows, sizes, range(brokers), RATE)
    moves = [Move(Work(row, int(sizes[row.topic, row.partition]))) for row in rows]
    place = {move.key: number for number, move in enumerate(moves)}
    ours, began, slowest = Throttles(), cluster.now, 0.0
    while True:
        seen = cluster.look()
        started = time.process_time()
        taken = step(moves, seen, options, cluster.now, throttles=ours)
        slowest = max(slowest, time.process_time() - started)
        for transition in taken.transitions:
            moves[place[transition.after.key]] = transition.after
        for action in taken.actions:
            assert not isinstance(action, Cancel | Reorder)
            if isinstance(action, Submit):
                assert cluster.submit(action.key, action.replicas)
        if any(isinstance(action, ChangeLists | SetRate | ClearRate) for action in taken.actions):
            ours = wanted(moves, options.throttle)
        if taken.over:
            break
        cluster.pass_time(every)
    assert {move.state for move in moves} == {State.DONE}
    assert all(cluster.partitions[move.key].replicas == move.work.row.target for move in moves)
    return (cluster.now - began).total_seconds(), slowest


def test_rolling_window__fourteen_thousand_moves_of_three_hundred_brokers__takes_what_the_busiest_broker_needs() -> (
    None
):
    rows, sizes = plan(14_000, 300, seed=7)
    least = bound(rows, sizes)

    took, slowest = run(rows, sizes, 300, Options(RATE, RATE, RATE, per_cluster=2000), every=least / 150)

    said = f"bound {least:.0f} s, took {took:.0f} s = {took / least:.3f}, slowest step {slowest * 1000:.0f} ms"
    sys.stdout.write(f"{said}\n")
    assert took <= 1.05 * least, said
    assert slowest < 1, said
