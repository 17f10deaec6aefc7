"""The model cluster with Kafka's replication quota as it is: a burst, then a pause, and the throttle in the mean.

``org.apache.kafka.common.metrics.stats.SimpleRate`` over a ``SampledStat`` of 11 samples of 1 s
(``replication.quota.window.num``, ``…window.size.seconds``): what was recorded in the samples that are not older than
that, by the time since the oldest of them, at least one window. A broker fetches as long as that is not above the
throttle, and what is under way then arrives whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kafkadash.domain.executor_state import Key
from kafkadash.domain.plan import Row
from tests.domain.executor_cluster import Partition
from tests.domain.run_model import Logs

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
        self, rows: Iterable[Row], sizes: dict[Key, float], brokers: Iterable[int], rate: float, burst: float
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
