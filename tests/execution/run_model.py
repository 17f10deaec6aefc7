"""A run on the model cluster with logs that grow and shrink, and what is measured of it as time goes by.

A record is ``RECORD`` bytes; offsets are those of a log from which retention may take the beginning.

Runs of a few rows of one topic on the model of ``run_model``, for tests of single figures.

The model cluster with Kafka's replication quota as it is: a burst, then a pause, and the throttle in the mean.

``org.apache.kafka.common.metrics.stats.SimpleRate`` over a ``SampledStat`` of 11 samples of 1 s
(``replication.quota.window.num``, ``…window.size.seconds``): what was recorded in the samples that are not older than
that, by the time since the oldest of them, at least one window. A broker fetches as long as that is not above the
throttle, and what is under way then arrives whole.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.execution.engine.state import (
    CallReply,
    CancelAction,
    CopyWork,
    ElectAction,
    Key,
    ReorderAction,
    RunMode,
    RunRow,
    SubmitAction,
)
from kafkadash.execution.engine.step import (
    ChangeLists,
    ClearRate,
    SetRate,
    StepThrottles,
    apply_reply,
    compute_wanted_throttles,
    plan_step,
)
from kafkadash.execution.progress.copies import ReplicaReads, RowRead, RunMemory, Sizes
from kafkadash.execution.progress.figures import RowNow, RunNow
from kafkadash.execution.progress.measure import InForce, measure_moves
from kafkadash.execution.progress.stuck import ForeignThrottle
from tests.execution.executor_cluster import START, Cluster, Partition

MB = 1_000_000
RECORD = 1000

Speed = Callable[[int, str, float], float]
"""Broker, "in" or "out", seconds since the start → bytes per second."""


class Logs(Cluster):
    """``inbound``: bytes per second that producers write to a partition. ``begins``: broker → byte at which the log of
    its copy starts, where what is before is in tiered storage.
    """

    def __init__(
        self, rows: Iterable[PartitionMove], sizes: dict[Key, float], brokers: Iterable[int], rate: float
    ) -> None:
        super().__init__(rows, sizes, brokers, rate)
        self.inbound: dict[Key, float] = {}
        self.removed: dict[Key, float] = {}
        self.begins: dict[int, float] = {}
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
        begins = {broker: int(at / RECORD) for broker, at in self.begins.items() if broker in ends}
        return RowRead(
            partition.leader, int(start / RECORD), int(end / RECORD), ends, self.now.timestamp(), begins=begins
        )

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
        self, cluster: Logs, rows: Sequence[PartitionMove], options: RunOptions, sizes: dict[Key, float] | None = None
    ) -> None:
        self.cluster, self.options = cluster, options
        known = {k: p.size for k, p in cluster.partitions.items()} if sizes is None else sizes
        self.moves = [
            RunRow(CopyWork(r, int(known[r.topic, r.partition]) if (r.topic, r.partition) in known else None))
            for r in rows
        ]
        self._place = {move.key: number for number, move in enumerate(self.moves)}
        self.ours = StepThrottles()
        self.mode = RunMode.EXECUTING
        self.foreign: tuple[ForeignThrottle, ...] = ()
        self.packed: dict[str, object] | None = None
        self.told: list[RunNow] = []
        self.over = False

    def tick(self, seconds: float = 2.0, *, sizes: bool = False, measure: bool = True) -> RunNow | None:
        """One step, what is measured in it, and time that passes after it."""
        cluster = self.cluster
        seen = cluster.look()
        taken = plan_step(self.moves, seen, self.options, cluster.now, self.mode, self.ours)
        for transition in taken.transitions:
            self.moves[self._place[transition.after.key]] = transition.after
        run = self._measure(seen_sizes=cluster.sizes() if sizes else {}) if measure else None
        for action in taken.actions:
            self._do(action)
        if any(isinstance(action, ChangeLists | SetRate | ClearRate) for action in taken.actions):
            self.ours = compute_wanted_throttles(self.moves, self.options.throttle)
        self.over = taken.over
        cluster.pass_time(seconds)
        return run

    def _measure(self, seen_sizes: Sizes) -> RunNow:
        cluster = self.cluster
        seen = cluster.look()
        flying = [m.key for m in self.moves if m.in_flight and m.key in cluster.moving]
        reads = ReplicaReads(cluster.now.timestamp(), {key: cluster.read(key) for key in flying}, seen_sizes)
        force = InForce(self.options.throttle, self.options.per_broker, self.options.per_cluster, self.foreign)
        memory = unpack_dataclass(RunMemory, self.packed) if self.packed else None
        run, memory = measure_moves(self.moves, seen, reads, force, cluster.now, memory)
        self.packed = pack_dataclass(memory)
        self.told.append(run)
        return run

    def _do(self, action: object) -> None:
        cluster = self.cluster
        if isinstance(action, SubmitAction):
            done = cluster.submit(action.key, action.replicas)
            place = self._place[action.key]
            reply = CallReply.ACCEPTED if done else CallReply.REFUSED
            self.moves[place] = apply_reply(self.moves[place], reply, cluster.now, "" if done else "No.")
        elif isinstance(action, CancelAction):
            cluster.cancel(action.key)
        elif isinstance(action, ReorderAction):
            cluster.submit(action.key, action.replicas)
        elif isinstance(action, ElectAction):
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


def one_replica_moves(
    number: int, brokers: int, seed: int, mean: int = 300 * MB
) -> tuple[list[PartitionMove], dict[Key, float]]:
    """One replica of each partition goes to another broker; few partitions hold most of the bytes."""
    chance = random.Random(seed)
    rows, sizes = [], {}
    for place in range(number):
        held = chance.sample(range(brokers), 4)
        row = PartitionMove(f"topic-{place // 20}", "id", place % 20, tuple(held[:3]), (held[0], held[1], held[3]))
        rows.append(row)
        sizes[row.topic, row.partition] = float(min(int(chance.lognormvariate(0, 0.8) * mean), 12 * mean))
    return rows, sizes


def error_at(told: Sequence[RunNow], took: float, part: float = 0.5) -> float:
    """By which share of what was really left the time left was wrong, at that part of the time."""
    run = min(told, key=lambda one: abs((one.at - START).total_seconds() - took * part))
    left = took - (run.at - START).total_seconds()
    assert run.eta_s is not None
    return (run.eta_s - left) / left


RATE = 60 * MB
KEY = ("orders", 0)


def options(rate: int = RATE, per_broker: int = 5, per_cluster: int = 50) -> RunOptions:
    return RunOptions(rate, 1, 10**12, per_broker, per_cluster)


def row(partition: int = 0, current: tuple[int, ...] = (1, 2), target: tuple[int, ...] = (1, 3)) -> PartitionMove:
    return PartitionMove("orders", "id", partition, current, target)


def running(
    *rows: PartitionMove, size: float = 6000 * MB, rate: int = RATE, sized: bool = True, **fields: int
) -> Running:
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


SAMPLES, WINDOW_S, SLICE_S = 11, 1.0, 0.1


class Quota:
    """``samples``: when each began, and bytes recorded in it; ``total``: bytes recorded ever."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, float]] = []
        self.total = 0.0

    def record(self, at: float, number: float) -> None:
        self.total += number
        if self.samples and at - self.samples[-1][0] < WINDOW_S:
            begun, before = self.samples[-1]
            self.samples[-1] = (begun, before + number)
        else:
            self.samples.append((at, number))

    def rate(self, at: float) -> float:
        self.samples = [(begun, number) for begun, number in self.samples if at - begun < SAMPLES * WINDOW_S]
        if not self.samples:
            return 0.0
        return sum(number for _, number in self.samples) / max(WINDOW_S, at - self.samples[0][0])


class Bursting(Logs):
    """``burst``: bytes that are under way at each broker before its quota holds anything back; ``line``: bytes per
    second that a broker can do without one.
    """

    def __init__(
        self, rows: Iterable[PartitionMove], sizes: dict[Key, float], brokers: Iterable[int], rate: float, burst: float
    ) -> None:
        super().__init__(rows, sizes, brokers, rate)
        self.burst, self.line = burst, max(12 * rate, burst)
        self.quotas: defaultdict[tuple[int, str], Quota] = defaultdict(Quota)

    def speed(self, broker: int, way: str) -> float:
        quota = self.quotas[broker, way]
        held = quota.total >= self.burst and quota.rate(self.elapsed) > self.rate
        return 0.0 if held else self.line

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / SLICE_S)):
            flying = [(p, p.leader, b, left) for p in self._flying() for b, left in p.left.items()]
            super().pass_time(SLICE_S)
            for partition, leader, broker, before in flying:
                got = before - partition.left.get(broker, 0.0)
                if got > 0 and leader is not None:
                    self.quotas[broker, "in"].record(self.elapsed, got)
                    self.quotas[leader, "out"].record(self.elapsed, got)

    def _flying(self) -> list[Partition]:
        return [self.partitions[key] for key in self.moving]
