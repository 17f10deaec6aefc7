"""Judgement of canary probes: which partition stands for which broker, and what the samples of a broker add up to.

A broker is measured by the first partition of which it is the preferred leader, and only while it leads it: a record
that another broker took says nothing about this one. Which broker took it, the record's leader epoch says: each epoch
has one leader. Where nobody leads the partition, or no broker answers, clients cannot write either: that is a failure
of the broker. So is a record that did not come back from a partition that it led at first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile
from math import ceil
from typing import Any

from kafkadash.kafka.api import PartitionMetadata, PartitionProbe, ProbeFault

TOPIC = "kafkadash-canary"
RETENTION_MS, SEGMENT_MS = 2_700_000, 600_000
"""Together with Kafka's check every five minutes, records are gone after an hour."""
CONFIGS = {"cleanup.policy": "delete", "retention.ms": str(RETENTION_MS), "segment.ms": str(SEGMENT_MS)}
MOST_FACTOR = 3


class CanaryState(StrEnum):
    """Result of one probe of one broker; the values are stored."""

    MEASURED = "measured"
    FAILED = "failed"
    NOT_MEASURED = "not-measured"


class CanaryReason(StrEnum):
    """Codes of why a broker was not measured (no partition, led elsewhere, leader changed), or failed; stored."""

    NO_ANSWER = "canary-no-answer"
    NO_PARTITION = "canary-no-partition"
    LED_ELSEWHERE = "canary-led-elsewhere"
    LEADER_CHANGED = "canary-leader-changed"
    NO_LEADER = "canary-no-leader"
    NOT_READABLE = "canary-not-readable"
    NOT_WRITTEN = "canary-not-written"
    REFUSED = "canary-refused"
    NOT_CONSUMED = "canary-not-consumed"


_FAULTS = {
    ProbeFault.NO_LEADER: CanaryReason.NO_LEADER,
    ProbeFault.NOT_READABLE: CanaryReason.NOT_READABLE,
    ProbeFault.NOT_WRITTEN: CanaryReason.NOT_WRITTEN,
    ProbeFault.NOT_CONSUMED: CanaryReason.NOT_CONSUMED,
}


@dataclass(frozen=True, slots=True)
class CanaryReading:
    """Result of one probe of one broker. Milliseconds; None where it did not come to that.

    ``detail``: the leader, or librdkafka's name of an error.
    """

    state: CanaryState
    written_ms: float | None = None
    consumed_ms: float | None = None
    code: str = ""
    detail: str = ""

    def as_json(self) -> list[Any]:
        return [self.state.value, self.written_ms, self.consumed_ms, self.code, self.detail]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> CanaryReading:
        return cls(CanaryState(stored[0]), *stored[1:5])


def judge_probes(
    probes: Mapping[int, PartitionProbe], after: Mapping[int, PartitionMetadata], brokers: Iterable[int]
) -> dict[int, CanaryReading]:
    """Return a reading of each broker; ``after``: the partitions as metadata said after the probe."""
    own: dict[int, int] = {}
    for partition, probe in sorted(probes.items()):
        if probe.replicas:
            own.setdefault(probe.replicas[0], partition)
    return {
        broker: _judge_probe(broker, probes[own[broker]], after.get(own[broker])) if broker in own else _NO_PARTITION
        for broker in brokers
    }


def find_unled(assignment: Iterable[Sequence[int]], brokers: Iterable[int]) -> list[int]:
    """Return the brokers that are the preferred leader of no partition of the topic, so that no probe is theirs."""
    preferred = {replicas[0] for replicas in assignment if replicas}
    return sorted(broker for broker in brokers if broker not in preferred)


def judge_silence(name: str, brokers: Iterable[int]) -> dict[int, CanaryReading]:
    """Return a failure of each broker, from a probe that none answered; ``name`` is librdkafka's of the error."""
    failed = CanaryReading(CanaryState.FAILED, code=CanaryReason.NO_ANSWER.value, detail=name)
    return dict.fromkeys(brokers, failed)


_NO_PARTITION = CanaryReading(CanaryState.NOT_MEASURED, code=CanaryReason.NO_PARTITION.value)


def _judge_probe(broker: int, probe: PartitionProbe, after: PartitionMetadata | None) -> CanaryReading:
    if probe.leader is None:
        return CanaryReading(CanaryState.FAILED, code=CanaryReason.NO_LEADER.value)
    if probe.leader != broker:
        return CanaryReading(CanaryState.NOT_MEASURED, code=CanaryReason.LED_ELSEWHERE.value, detail=str(probe.leader))
    written, consumed = _as_ms(probe.written_s), _as_ms(probe.consumed_s)
    if probe.fault is not None:
        reason = CanaryReason.REFUSED if probe.refused else _FAULTS[probe.fault]
        return CanaryReading(CanaryState.FAILED, written, consumed, reason.value, probe.refused)
    if after is None or not _wrote_record(broker, probe, after):
        return CanaryReading(CanaryState.NOT_MEASURED, code=CanaryReason.LEADER_CHANGED.value)
    return CanaryReading(CanaryState.MEASURED, written, consumed)


def _wrote_record(broker: int, probe: PartitionProbe, after: PartitionMetadata) -> bool:
    """Return whether this broker is known to have written the record; without epochs (before Kafka 2.1) by its lead."""
    same = probe.epoch is None or after.leader_epoch is None or probe.epoch == after.leader_epoch
    return after.leader == broker and same


def _as_ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


@dataclass(frozen=True, slots=True)
class CanarySample:
    """Readings of all brokers, from one refresh."""

    taken_at: datetime
    readings: Mapping[int, CanaryReading]


@dataclass(frozen=True, slots=True)
class BrokerCanary:
    """Samples of a broker over a time. ``availability``: measured of measured and failed, 0 to 1; None without any.

    Percentiles are of the end-to-end latency in milliseconds, by nearest rank; None where nothing was measured.
    """

    broker: int
    newest: CanaryReading | None
    measured: int
    failed: int
    not_measured: int
    median_ms: float | None
    high_ms: float | None

    @property
    def probes(self) -> int:
        """Count what availability is of."""
        return self.measured + self.failed

    @property
    def availability(self) -> float | None:
        return self.measured / self.probes if self.probes else None


def sum_samples(samples: Sequence[CanarySample], brokers: Collection[int]) -> list[BrokerCanary]:
    """Sum up samples, oldest first, of each of these brokers."""
    return [_sum_broker(broker, [each.readings.get(broker) for each in samples]) for broker in sorted(brokers)]


def _sum_broker(broker: int, readings: Sequence[CanaryReading | None]) -> BrokerCanary:
    known = [reading for reading in readings if reading is not None]
    latencies = sorted(
        each.consumed_ms for each in known if each.state is CanaryState.MEASURED and each.consumed_ms is not None
    )
    counts = {state: sum(each.state is state for each in known) for state in CanaryState}
    return BrokerCanary(
        broker,
        readings[-1] if readings else None,
        counts[CanaryState.MEASURED],
        counts[CanaryState.FAILED],
        counts[CanaryState.NOT_MEASURED],
        find_percentile(latencies, 0.5),
        find_percentile(latencies, 0.95),
    )


def find_percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value at this share of ordered values, by nearest rank; None of none."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else None


NEWEST = 10
"""Samples that are judged for findings."""
FAILED_IN_A_ROW, SLOW_MS, LEAST_MEASURED = 3, 1000, 5


@dataclass(frozen=True, slots=True)
class CanaryTrouble:
    """A broker that fails its canary (``reason``), or is slow (``median_ms``). ``since``: the first sample of it."""

    broker: int
    since: datetime
    probes: int
    reason: CanaryReason | None = None
    detail: str = ""
    median_ms: float | None = None


def find_trouble(samples: Sequence[CanarySample]) -> Iterator[CanaryTrouble]:
    """Yield brokers of the newest sample whose last three probes failed, or whose median latency is above a second.

    Samples in which the broker was not measured are left out: nothing is known from them.
    """
    for broker in sorted(samples[-1].readings) if samples else ():
        own = [
            (each.taken_at, reading)
            for each in samples
            if (reading := each.readings.get(broker)) and reading.state is not CanaryState.NOT_MEASURED
        ]
        failed = [*takewhile(lambda each: each[1].state is CanaryState.FAILED, reversed(own))]
        if len(failed) >= FAILED_IN_A_ROW:
            newest = failed[0][1]
            yield CanaryTrouble(broker, failed[-1][0], len(failed), CanaryReason(newest.code), newest.detail)
            continue
        latencies = [(at, reading.consumed_ms) for at, reading in own if reading.consumed_ms is not None]
        median = find_percentile(sorted(latency for _, latency in latencies), 0.5)
        if len(latencies) >= LEAST_MEASURED and median is not None and median > SLOW_MS:
            since = next(at for at, latency in latencies if latency > SLOW_MS)
            yield CanaryTrouble(broker, since, len(latencies), median_ms=median)


def find_unmeasured(samples: Sequence[CanarySample]) -> Iterator[int]:
    """Yield brokers of which the newest sample tells nothing: their findings neither open nor close."""
    for broker, reading in sorted(samples[-1].readings.items()) if samples else ():
        if reading.state is CanaryState.NOT_MEASURED:
            yield broker


def take_recent(samples: Sequence[CanarySample], longest_gap: timedelta) -> list[CanarySample]:
    """Return the newest samples, oldest first, back to the first gap in which nobody probed."""
    recent: list[CanarySample] = []
    for sample in reversed(samples):
        if recent and recent[-1].taken_at - sample.taken_at > longest_gap:
            break
        recent.append(sample)
    return recent[::-1]
