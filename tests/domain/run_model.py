"""A run on the model cluster with logs that grow and shrink, and what is measured of it as time goes by.

A record is ``RECORD`` bytes; offsets are those of a log from which retention may take the beginning.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from kafkadash.domain.executor import replied, step
from kafkadash.domain.executor_state import Cancel, Elect, Key, Mode, Move, Reorder, Reply, Submit, Work
from kafkadash.domain.executor_throttles import ChangeLists, ClearRate, SetRate, Throttles, wanted
from kafkadash.domain.plan import Options, Row
from kafkadash.domain.run_copies import RowRead, Sizes
from kafkadash.domain.run_measure import InForce, measured
from kafkadash.domain.run_memory import RunMemory
from kafkadash.domain.run_progress import RunNow
from kafkadash.domain.run_reading import Reads
from kafkadash.domain.run_stuck import ForeignThrottle
from tests.domain.executor_cluster import START, Cluster

MB = 1_000_000
RECORD = 1000

Speed = Callable[[int, str, float], float]
"""Broker, "in" or "out", seconds since the start → bytes per second."""


class Logs(Cluster):
    """``inbound``: bytes per second that producers write to a partition."""

    def __init__(self, rows: Iterable[Row], sizes: dict[Key, float], brokers: Iterable[int], rate: float) -> None:
        super().__init__(rows, sizes, brokers, rate)
        self.inbound: dict[Key, float] = {}
        self.removed: dict[Key, float] = {}
        self.can: Speed = lambda _broker, _way, _at: float("inf")

    @property
    def elapsed(self) -> float:
        return (self.now - START).total_seconds()

    def speed(self, broker: int, way: str) -> float:
        return min(self.rate, self.can(broker, way, self.elapsed))

    def pass_time(self, seconds: float) -> None:
        for key, written in self.inbound.items():
            if partition := self.partitions.get(key):
                partition.size += written * seconds
                for broker in partition.left:
                    partition.left[broker] += written * seconds
        super().pass_time(seconds)

    def shrink(self, key: Key, by: float) -> None:
        """Retention takes the oldest bytes, on every replica that has them."""
        partition = self.partitions[key]
        by = min(by, partition.size)
        partition.size -= by
        self.removed[key] = self.removed.get(key, 0.0) + by
        partition.left = {broker: min(left, partition.size) for broker, left in partition.left.items()}

    def read(self, key: Key) -> RowRead:
        partition = self.partitions.get(key)
        if partition is None or partition.leader is None or not self.brokers[partition.leader]:
            return RowRead()
        start = self.removed.get(key, 0.0)
        end = start + partition.size
        ends = {b: int((end - left) / RECORD) for b, left in partition.left.items() if self.brokers[b]}
        return RowRead(partition.leader, int(start / RECORD), int(end / RECORD), ends, self.now.timestamp())

    def sizes(self) -> Sizes:
        """As directories would be read now."""
        at, found = self.now.timestamp(), {b: dict[Key, int]() for b, alive in self.brokers.items() if alive}
        for key, partition in self.partitions.items():
            for broker in partition.replicas:
                if broker in found:
                    found[broker][key] = int(partition.size - partition.left.get(broker, 0.0))
        return {broker: (at, own) for broker, own in found.items()}


class Running:
    """Steps and measures as the executor does; ``told`` are all figures, ``memory`` goes through JSON each time."""

    def __init__(
        self, cluster: Logs, rows: Sequence[Row], options: Options, sizes: dict[Key, float] | None = None
    ) -> None:
        self.cluster, self.options = cluster, options
        known = {k: p.size for k, p in cluster.partitions.items()} if sizes is None else sizes
        self.moves = [
            Move(Work(r, int(known[r.topic, r.partition]) if (r.topic, r.partition) in known else None)) for r in rows
        ]
        self._place = {move.key: number for number, move in enumerate(self.moves)}
        self.ours = Throttles()
        self.mode = Mode.EXECUTING
        self.foreign: tuple[ForeignThrottle, ...] = ()
        self.packed: dict[str, object] | None = None
        self.told: list[RunNow] = []
        self.over = False

    def tick(self, seconds: float = 2.0, *, sizes: bool = False, measure: bool = True) -> RunNow | None:
        """One step, what is measured in it, and time that passes after it."""
        cluster = self.cluster
        seen = cluster.look()
        taken = step(self.moves, seen, self.options, cluster.now, self.mode, self.ours)
        for transition in taken.transitions:
            self.moves[self._place[transition.after.key]] = transition.after
        run = self._measure(seen_sizes=cluster.sizes() if sizes else {}) if measure else None
        for action in taken.actions:
            self._do(action)
        if any(isinstance(action, ChangeLists | SetRate | ClearRate) for action in taken.actions):
            self.ours = wanted(self.moves, self.options.throttle)
        self.over = taken.over
        cluster.pass_time(seconds)
        return run

    def _measure(self, seen_sizes: Sizes) -> RunNow:
        cluster = self.cluster
        seen = cluster.look()
        flying = [m.key for m in self.moves if m.in_flight and m.key in cluster.moving]
        reads = Reads(cluster.now.timestamp(), {key: cluster.read(key) for key in flying}, seen_sizes)
        force = InForce(self.options.throttle, self.options.per_broker, self.options.per_cluster, self.foreign)
        memory = RunMemory.from_json(self.packed) if self.packed else None
        run, memory = measured(self.moves, seen, reads, force, cluster.now, memory)
        self.packed = memory.as_json()
        self.told.append(run)
        return run

    def _do(self, action: object) -> None:
        cluster = self.cluster
        if isinstance(action, Submit):
            done = cluster.submit(action.key, action.replicas)
            place = self._place[action.key]
            reply = Reply.ACCEPTED if done else Reply.REFUSED
            self.moves[place] = replied(self.moves[place], reply, cluster.now, "" if done else "No.")
        elif isinstance(action, Cancel):
            cluster.cancel(action.key)
        elif isinstance(action, Reorder):
            cluster.submit(action.key, action.replicas)
        elif isinstance(action, Elect):
            cluster.elect(action.key)

    def until_over(self, every: float = 2.0, most: int = 5000) -> float:
        """Seconds that it took in all."""
        for _ in range(most):
            self.tick(every)
            if self.over:
                return self.cluster.elapsed
        raise AssertionError(f"not over: {[(m.key, m.state, m.reason) for m in self.moves if not m.ended][:5]}")

    def throttle(self, rate: int) -> None:
        self.options = replace(self.options, throttle=rate)
        self.cluster.rate = rate


def one_replica_moves(number: int, brokers: int, seed: int, mean: int = 300 * MB) -> tuple[list[Row], dict[Key, float]]:
    """One replica of each partition goes to another broker; few partitions hold most of the bytes."""
    chance = random.Random(seed)
    rows, sizes = [], {}
    for place in range(number):
        held = chance.sample(range(brokers), 4)
        row = Row(f"topic-{place // 20}", "id", place % 20, tuple(held[:3]), (held[0], held[1], held[3]))
        rows.append(row)
        sizes[row.topic, row.partition] = float(min(int(chance.lognormvariate(0, 0.8) * mean), 12 * mean))
    return rows, sizes


def error_at(told: Sequence[RunNow], took: float, part: float = 0.5) -> float:
    """By which share of what was really left the time left was wrong, at that part of the time."""
    run = min(told, key=lambda one: abs((one.at - START).total_seconds() - took * part))
    left = took - (run.at - START).total_seconds()
    assert run.eta_s is not None
    return (run.eta_s - left) / left
