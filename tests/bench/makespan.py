"""14,000 moves on 300 brokers of the model cluster, against what no order of them can beat."""

from __future__ import annotations

from kafkadash.changes.plan import RunOptions
from tests.bench.bars import Bar, at_most
from tests.execution.test_step_rules import MAKESPAN_RATE, bound, plan, run

MOVES, BROKERS, SEED = 14_000, 300, 7
OVER_BOUND, STEP_S = 1.05, 1.0


def measure() -> list[Bar]:
    rows, sizes = plan(MOVES, BROKERS, SEED)
    least = bound(rows, sizes)
    options = RunOptions(MAKESPAN_RATE, MAKESPAN_RATE, MAKESPAN_RATE, per_cluster=2000)
    took, slowest = run(rows, sizes, BROKERS, options, every=least / 150)
    return [
        at_most("makespan of 14,000 moves on 300 brokers", took / least, OVER_BOUND, "of bound"),
        Bar("bound of it", round(least), "s"),
        at_most("slowest pure step of it", slowest, STEP_S, "s"),
    ]
