"""Canary: which partition speaks for which broker, and what samples add up to."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kafkadash.kafka.api import PartitionMetadata, PartitionProbe, ProbeFault
from kafkadash.monitoring.canary.rules import (
    CanaryReading,
    CanaryReason,
    CanarySample,
    CanaryState,
    find_trouble,
    find_unmeasured,
    judge_probes,
    sum_samples,
    take_recent,
)
from tests.factories import NOW

OK = CanaryReading(CanaryState.MEASURED, 4.0, 5.0)
FAILED = CanaryReading(CanaryState.FAILED, code=CanaryReason.NOT_WRITTEN)


@pytest.mark.parametrize(
    ("probe", "state", "code"),
    [
        (PartitionProbe(1, (1, 2), 0.004, 0.005), CanaryState.MEASURED, ""),
        (PartitionProbe(2, (1, 2), 0.004, 0.005), CanaryState.NOT_MEASURED, CanaryReason.LED_ELSEWHERE),
        (PartitionProbe(None, (1,), fault=ProbeFault.NO_LEADER), CanaryState.FAILED, CanaryReason.NO_LEADER),
        (PartitionProbe(2, (2, 1), 0.004, 0.005), CanaryState.NOT_MEASURED, CanaryReason.NO_PARTITION),
        (PartitionProbe(1, (1,), fault=ProbeFault.NOT_READABLE), CanaryState.FAILED, CanaryReason.NOT_READABLE),
        (PartitionProbe(1, (1,), fault=ProbeFault.NOT_WRITTEN), CanaryState.FAILED, CanaryReason.NOT_WRITTEN),
        (
            PartitionProbe(1, (1,), fault=ProbeFault.NOT_WRITTEN, refused="NOT_ENOUGH_REPLICAS"),
            *(CanaryState.FAILED, CanaryReason.REFUSED),
        ),
        (PartitionProbe(1, (1,), 0.004, fault=ProbeFault.NOT_CONSUMED), CanaryState.FAILED, CanaryReason.NOT_CONSUMED),
    ],
)
def test_probe__speaks_for_the_broker_that_leads_its_own_partition(
    probe: PartitionProbe, state: CanaryState, code: str
) -> None:
    after = {0: PartitionMetadata(0, probe.leader, 7, (1, 2), (1, 2), ())}
    reading = judge_probes({0: probe}, after, [1])[1]
    assert (reading.state, reading.code) == (state, code)
    assert CanaryReading.from_json(reading.as_json()) == reading


@pytest.mark.parametrize(
    ("record_epoch", "leader", "leader_epoch", "is_measured"),
    [
        (7, 1, 7, True),
        (8, 1, 7, False),  # metadata is older than the record
        (7, 1, 9, False),  # another led in between
        (7, 2, 7, False),
        (None, 1, None, True),
        (None, 2, None, False),
    ],
)
def test_probe_that_came_back__is_of_who_led_in_its_epoch(
    record_epoch: int | None, leader: int, leader_epoch: int | None, is_measured: bool
) -> None:
    probe = PartitionProbe(1, (1, 2), 0.004, 0.005, epoch=record_epoch)
    after = {0: PartitionMetadata(0, leader, leader_epoch, (1, 2), (1, 2), ())}
    reading = judge_probes({0: probe}, after, [1])[1]
    changed = CanaryReading(CanaryState.NOT_MEASURED, code=CanaryReason.LEADER_CHANGED)
    assert reading == (CanaryReading(CanaryState.MEASURED, 4.0, 5.0) if is_measured else changed)
    assert judge_probes({0: probe}, {}, [1])[1] == changed


def test_sums__what_was_not_measured_is_neither_available_nor_not() -> None:
    away = CanaryReading(CanaryState.NOT_MEASURED, code=CanaryReason.LED_ELSEWHERE)
    slow = CanaryReading(CanaryState.MEASURED, 90.0, 100.0)
    samples = [CanarySample(NOW, {1: each, 2: away}) for each in (OK, OK, FAILED, slow)]
    one, two = sum_samples(samples, {1, 2})
    assert (one.measured, one.failed, one.availability, one.median_ms, one.high_ms) == (3, 1, 0.75, 5.0, 100.0)
    assert (two.not_measured, two.availability, two.median_ms, two.newest) == (4, None, None, away)


SLOW = CanaryReading(CanaryState.MEASURED, 1400.0, 1500.0)
AWAY = CanaryReading(CanaryState.NOT_MEASURED, code=CanaryReason.LED_ELSEWHERE)


@pytest.mark.parametrize(
    ("readings", "since"),
    [
        ([OK, FAILED, FAILED], None),
        ([OK, FAILED, FAILED, FAILED], 1),
        ([FAILED, FAILED, FAILED, AWAY], 0),
        ([FAILED, FAILED, FAILED, AWAY, OK], None),
        ([SLOW] * 4, None),
        ([OK, SLOW, SLOW, SLOW, OK], 1),
        ([OK, OK, SLOW, SLOW, OK], None),
    ],
    ids=["failed twice", "failed three times", "led elsewhere since", "mended", "too few", "slow", "slow at times"],
)
def test_trouble__needs_several_probes(readings: list[CanaryReading], since: int | None) -> None:
    samples = [CanarySample(NOW + timedelta(seconds=30 * n), {1: each}) for n, each in enumerate(readings)]
    found = [*find_trouble(samples)]
    assert [each.since for each in found] == ([] if since is None else [samples[since].taken_at])


def test_recent__ends_where_nobody_probed() -> None:
    samples = [CanarySample(NOW + timedelta(seconds=at), {1: OK, 2: AWAY}) for at in (0, 30, 600, 630)]
    assert take_recent(samples, timedelta(minutes=2)) == samples[2:]
    assert [*find_unmeasured(samples)] == [2]
