"""Runs of a few rows of one topic on the model of ``run_model``, for tests of single figures."""

from __future__ import annotations

import math

from kafkadash.domain.plan import Options, Row
from kafkadash.domain.run_progress import RowNow, RunNow
from tests.domain.run_model import MB, Logs, Running, Speed

RATE = 60 * MB
KEY = ("orders", 0)


def options(rate: int = RATE, per_broker: int = 5, per_cluster: int = 50) -> Options:
    return Options(rate, 1, 10**12, per_broker, per_cluster)


def row(partition: int = 0, current: tuple[int, ...] = (1, 2), target: tuple[int, ...] = (1, 3)) -> Row:
    return Row("orders", "id", partition, current, target)


def running(*rows: Row, size: float = 6000 * MB, rate: int = RATE, sized: bool = True, **fields: int) -> Running:
    sizes = {(r.topic, r.partition): size for r in rows}
    cluster = Logs(rows, sizes, range(1, 7), rate)
    cluster.number["orders"] = 2 * len(rows)
    return Running(cluster, rows, options(rate, **fields), None if sized else {})


def after(run: Running, seconds: float, every: float = 2.0) -> RunNow:
    for _ in range(round(seconds / every)):
        run.tick(every)
    return run.told[-1]


def only(now: RunNow) -> RowNow:
    assert len(now.rows) == 1
    return now.rows[0]


def stalled(*brokers: int) -> Speed:
    return lambda broker, _way, _at: 0.0 if broker in brokers else math.inf
