"""The time left that is told at half-way, against what it then took, on the model cluster.

400 moves on 16 brokers take about an hour: with nothing else going on; beside clients who take up to half of what each
broker can do, something else every minute; on a cluster that becomes a third slower after a while; and with a throttle
that is raised, or lowered, on the way.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from kafkadash.changes.plan import RunOptions
from tests.bench.bars import Bar, at_most
from tests.execution.run_model import MB, Logs, Running, Speed, error_at, one_replica_moves

MOVES, BROKERS, MEAN, RATE = 400, 16, 4000 * MB, 60 * MB
SEEDS = (1, 2, 3)
EVERY_S = 10.0
OFF_PERCENT = 20.0
CHANGE_AT_S = 600.0


def measure() -> list[Bar]:
    cases: dict[str, tuple[int, int, Callable[[int], Speed]]] = {
        "steady load": (RATE, RATE, lambda _seed: _free),
        "changing load": (RATE, RATE, _clients),
        "a cluster that becomes slower": (RATE, RATE, lambda _seed: _slower),
        "a throttle that is raised": (RATE // 2, RATE, lambda _seed: _free),
        "a throttle that is lowered": (RATE, RATE // 2, lambda _seed: _free),
    }
    bars = []
    for name, (before, after, load) in cases.items():
        errors = [_error(seed, before, after, load(seed)) for seed in SEEDS]
        worst = max(errors, key=abs)
        bars.append(at_most(f"time left at half-way, {name}, worst of {len(SEEDS)}", abs(worst), OFF_PERCENT, "% off"))
    return bars


def _error(seed: int, before: int, after: int, load: Speed) -> float:
    """Percent of what was really left."""
    rows, sizes = one_replica_moves(MOVES, BROKERS, seed, MEAN)
    cluster = Logs(rows, sizes, range(BROKERS), before)
    cluster.can = load
    run = Running(cluster, rows, RunOptions(before, 1, RATE, per_broker=5, per_cluster=50))
    while not run.over:
        if cluster.elapsed >= CHANGE_AT_S and run.options.throttle != after:
            run.throttle(after)
        run.tick(EVERY_S)
    return 100 * error_at(run.told, cluster.elapsed)


def _free(_broker: int, _way: str, _at: float) -> float:
    return math.inf


def _clients(seed: int) -> Speed:
    def speed(broker: int, _way: str, at: float) -> float:
        return RATE * random.Random(f"{seed} {broker} {at // 60}").uniform(0.5, 1.0)

    return speed


def _slower(_broker: int, _way: str, at: float) -> float:
    return RATE if at < CHANGE_AT_S else RATE * 2 / 3
