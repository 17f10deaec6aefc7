"""Charts of the canary: latency and availability over time, of all brokers or of one. What is unknown is a gap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor
from statistics import median

from kafkadash.core.charts import ChartLine, ChartPanel, ChartRange, ChartSpec, largest_rows, smallest_rows
from kafkadash.core.messages import choose_plural
from kafkadash.monitoring.canary.rules import CanarySample, CanaryState


@dataclass(frozen=True, slots=True)
class CanaryIntervals:
    """Samples of each interval of a chart, which begins at one of ``times`` and ends at ``end``."""

    times: Sequence[float]
    end: float
    samples: Sequence[Sequence[CanarySample]]

    def build_spec(self, lines: Sequence[ChartLine], unit: str, top: float) -> ChartSpec:
        return ChartSpec(self.times, self.times[0], self.end, lines, unit, top)


def build_panels(
    samples: Sequence[CanarySample], chosen: ChartRange, now: datetime, broker: int | None = None
) -> list[ChartPanel]:
    """Return the charts of latency and of availability; ``broker``: the one that they are about, None for all."""
    begin = now.timestamp() // chosen.step_s * chosen.step_s - chosen.length_s
    parts: list[list[CanarySample]] = [[] for _ in range(chosen.length_s // chosen.step_s + 1)]
    for sample in samples:
        place = int((sample.taken_at.timestamp() - begin) // chosen.step_s)
        if 0 <= place < len(parts):
            parts[place].append(sample)
    times = [begin + place * chosen.step_s for place in range(len(parts))]
    intervals = CanaryIntervals(times, now.timestamp(), parts)
    return [_build_latency(intervals, broker), _build_availability(intervals, broker)]


def _build_latency(intervals: CanaryIntervals, broker: int | None) -> ChartPanel:
    """Median and largest latency over the brokers, or both latencies of one; the largest of each interval."""
    high: list[float | None] = []
    low: list[float | None] = []
    for part in intervals.samples:
        pairs = [_read_latencies(sample, broker) for sample in part]
        high.append(max((highest for highest, _ in pairs if highest is not None), default=None))
        low.append(max((lower for _, lower in pairs if lower is not None), default=None))
    upper, lower = ("slowest broker", "median of brokers") if broker is None else ("end to end", "written")
    spec = intervals.build_spec([ChartLine(upper, 2, high, 2), ChartLine(lower, 1, low)], "ms", 10)
    known = [value for value in high if value is not None]
    return ChartPanel(
        "canary-latency",
        "End-to-end latency" if broker is None else f"Latency of broker {broker}",
        f"Slowest {max(known):,.0f} ms." if known else "No data in this time.",
        spec,
        largest_rows(spec, lambda value: f"{value:,.1f} ms"),
        "From sending a record until a consumer has it, acks=all. Failed probes are not in the lines.",
        "Nothing was measured in this time.",
    )


def _read_latencies(sample: CanarySample, broker: int | None) -> tuple[float | None, float | None]:
    """Return the highest latency of a sample and the median of its brokers, or both latencies of the broker."""
    measured = {number: each for number, each in sample.readings.items() if each.state is CanaryState.MEASURED}
    if broker is not None:
        own = measured.get(broker)
        return (own.consumed_ms, own.written_ms) if own else (None, None)
    latencies = [each.consumed_ms for each in measured.values() if each.consumed_ms is not None]
    return (max(latencies), median(latencies)) if latencies else (None, None)


def _build_availability(intervals: CanaryIntervals, broker: int | None) -> ChartPanel:
    """Percent of the probes of each interval that succeeded: of all brokers and of the lowest one, or of one."""
    whole: list[float | None] = []
    lowest: list[float | None] = []
    all_measured = all_probes = 0
    for part in intervals.samples:
        measured, probes = _count_probes(part, broker)
        whole.append(_to_percent(measured.total(), probes.total()))
        shares = [_to_percent(measured[number], count) for number, count in probes.items()]
        lowest.append(min((share for share in shares if share is not None), default=None))
        all_measured, all_probes = all_measured + measured.total(), all_probes + probes.total()
    if broker is None:
        lines = [ChartLine("lowest broker", 2, lowest, 2), ChartLine("all brokers", 1, whole)]
    else:
        lines = [ChartLine(f"broker {broker}", 1, whole, 2)]
    spec = intervals.build_spec(lines, "%", 100.0)
    percent = _to_percent(all_measured, all_probes)
    told = f"{percent} % of {choose_plural('# probe|# probes', all_probes)} succeeded."
    return ChartPanel(
        "canary-availability",
        "Availability" if broker is None else f"Availability of broker {broker}",
        "No data in this time." if percent is None else told,
        spec,
        smallest_rows(spec, lambda value: f"{value:.1f} %"),
        "Probes that succeeded, of those that succeeded or failed. Where nothing was probed, the lines have gaps.",
        "Nothing was probed in this time.",
        "smallest",
    )


def _count_probes(samples: Sequence[CanarySample], broker: int | None) -> tuple[Counter[int], Counter[int]]:
    """Count what was measured, and what was measured or failed, by broker."""
    measured: Counter[int] = Counter()
    probes: Counter[int] = Counter()
    for sample in samples:
        for number, reading in sample.readings.items():
            if broker in (None, number) and reading.state is not CanaryState.NOT_MEASURED:
                probes[number] += 1
                measured[number] += reading.state is CanaryState.MEASURED
    return measured, probes


def _to_percent(part: int, whole: int) -> float | None:
    """Rounded down to a tenth, so that 100 means that none failed; None of nothing."""
    return floor(1000 * part / whole) / 10 if whole else None
