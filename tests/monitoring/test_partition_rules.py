"""Counting offline and under-replicated partitions.

What API versions tell about a broker.
"""

from __future__ import annotations

import pytest

from kafkadash.clusters.metadata_mode import judge_mode
from kafkadash.clusters.models import ClusterMode
from kafkadash.core.messages import as_message
from kafkadash.kafka.api import ApiVersions, ItemError
from kafkadash.monitoring.brokers import mean_of, skew_percent
from kafkadash.monitoring.partitions import (
    AbsentBrokers,
    PartitionHealth,
    PartitionShape,
    PartitionTrouble,
    count_health,
    sum_health,
    trouble_of,
    two_digits,
)
from kafkadash.monitoring.version_collector import at_least, common_ranges

pytestmark = pytest.mark.domain

THREE = (1, 2, 3)


@pytest.mark.parametrize(
    ("leader", "isr", "adding", "min_isr", "trouble"),
    [
        (1, (1, 2, 3), (), 2, PartitionTrouble.NONE),
        (1, (1, 2, 3), (), 3, PartitionTrouble.NONE),
        (1, (1, 2), (), 2, PartitionTrouble.AT_MIN_ISR),
        (1, (1, 2), (), 1, PartitionTrouble.UNDER_REPLICATED),
        (1, (1, 2), (), None, PartitionTrouble.UNDER_REPLICATED),
        (1, (1,), (), 2, PartitionTrouble.UNDER_MIN_ISR),
        (1, (1,), (2, 3), 2, PartitionTrouble.UNDER_MIN_ISR),
        (1, (1, 2), (3,), 2, PartitionTrouble.CATCHING_UP),
        (1, (1, 3), (3,), 2, PartitionTrouble.AT_MIN_ISR),
        (None, (), (), 2, PartitionTrouble.OFFLINE),
        (None, (1,), (3,), None, PartitionTrouble.OFFLINE),
    ],
)
def test_the_worst_class_is_said(
    leader: int | None, isr: tuple[int, ...], adding: tuple[int, ...], min_isr: int | None, trouble: PartitionTrouble
) -> None:
    assert trouble_of(PartitionShape(leader, THREE, isr, frozenset(adding)), min_isr) is trouble


def test_only_what_refuses_clients_now_is_critical() -> None:
    critical = {trouble for trouble in PartitionTrouble if trouble.state == "critical"}
    assert critical == {PartitionTrouble.OFFLINE, PartitionTrouble.LEADER_SILENT, PartitionTrouble.UNDER_MIN_ISR}
    assert PartitionTrouble.OFFLINE.rank < PartitionTrouble.AT_MIN_ISR.rank < PartitionTrouble.NONE.rank


@pytest.mark.parametrize(
    ("leader", "trouble"),
    [(1, PartitionTrouble.LEADER_SILENT), (2, PartitionTrouble.IN_DOUBT)],
    ids=["leads", "follows"],
)
def test_a_broker_that_does_not_answer_makes_nothing_well(leader: int, trouble: PartitionTrouble) -> None:
    shape = PartitionShape(leader, THREE, THREE)
    assert trouble_of(shape, 2) is PartitionTrouble.NONE
    assert trouble_of(shape, 2, frozenset({1})) is trouble
    assert trouble.state != "ok"


def test_health__counts_each_partition_once_per_trouble() -> None:
    counts = count_health(
        [
            PartitionShape(1, (1, 2, 3), (1, 2, 3)),
            PartitionShape(1, (1, 2, 3), (1, 2)),
            PartitionShape(None, (1, 2), ()),
        ]
    )
    assert (counts.partitions, counts.offline, counts.under_replicated, counts.explained_by_move) == (3, 1, 2, 0)


def test_health__replica_being_added_is_not_in_sync_yet__is_explained_by_the_move() -> None:
    moving = PartitionShape(2, (4, 2, 3, 1), (1, 2, 3), adding=frozenset({4}))
    assert count_health([moving]).explained_by_move == 1


def test_health__an_old_replica_is_missing_too__the_move_explains_nothing() -> None:
    moving = PartitionShape(2, (4, 2, 3, 1), (1, 2), adding=frozenset({4}))
    counts = count_health([moving])
    assert (counts.under_replicated, counts.explained_by_move) == (1, 0)


def test_health__nothing__is_zero_of_zero() -> None:
    assert count_health([]).partitions == 0


@pytest.mark.parametrize(
    ("value", "rounded"), [(0, 0), (7, 7), (99, 99), (123, 120), (456_789_000, 460_000_000), (999, 1000)]
)
def test_two_digits__keeps_two_significant_digits(value: int, rounded: int) -> None:
    assert two_digits(value) == rounded


@pytest.mark.parametrize(
    ("leader", "isr", "min_isr", "under", "at"),
    [
        (1, (1, 2, 3), 2, 0, 0),
        (1, (1, 2), 2, 0, 1),
        (1, (1,), 2, 1, 0),
        (None, (3,), 1, 1, 1),
        (None, (1, 2), 1, 1, 0),
    ],
)
def test_health__min_insync_replicas__counts_as_kafka_topics_does(
    leader: int | None, isr: tuple[int, ...], min_isr: int, under: int, at: int
) -> None:
    """Under: no leader, or fewer in the ISR than asked for. At: exactly as many, with a leader or without."""
    counts = count_health([PartitionShape(leader, (1, 2, 3), isr)], min_isr)
    assert (counts.under_min_isr, counts.at_min_isr) == (under, at)


def test_health__min_insync_replicas_not_known__is_no_count() -> None:
    counts = count_health([PartitionShape(1, (1, 2), (1,))])
    assert (counts.under_min_isr, counts.at_min_isr, counts.at_min_isr_moving) == (None, None, None)


def test_health__at_min_isr_only_because_of_a_move__is_told_apart() -> None:
    moving = PartitionShape(1, (4, 1, 2), (1, 2), frozenset({4}))
    counts = count_health([moving, PartitionShape(1, (1, 2, 3), (1, 2))], 2)
    assert (counts.at_min_isr, counts.at_min_isr_moving) == (2, 1)


def test_health__offline_replicas_and_preferred_leaders__are_counted() -> None:
    counts = count_health([PartitionShape(1, (1, 2), (1,), offline_replicas=(2,)), PartitionShape(2, (1, 2), (1, 2))])
    assert (counts.offline_replicas, counts.preferred_leaders) == (1, 1)


def test_together__what_only_some_know__is_the_sum_over_these() -> None:
    known = count_health([PartitionShape(1, (1, 2), (1,))], 2)
    unknown = count_health([PartitionShape(1, (1, 2), (1,))])
    assert sum_health([known, unknown]).under_min_isr == 1
    assert sum_health([unknown, unknown]).under_min_isr is None
    assert sum_health([known, unknown]).under_replicated == 2


def test_together__nothing__is_zero_and_known() -> None:
    assert sum_health([]) == PartitionHealth(under_min_isr=0, at_min_isr=0, at_min_isr_moving=0)


@pytest.mark.parametrize(
    ("value", "mean", "percent"), [(110, 100.0, 10.0), (80, 100.0, -20.0), (100, 100.0, 0.0), (0, 100.0, -100.0)]
)
def test_it_is_the_distance_from_the_mean(value: int, mean: float, percent: float) -> None:
    assert skew_percent(value, mean, 50) == pytest.approx(percent)


@pytest.mark.parametrize(("mean", "partitions"), [(100.0, 49), (100.0, None), (0.0, 500), (None, 500)])
def test_it_is_not_known_where_it_would_say_nothing(mean: float | None, partitions: int | None) -> None:
    assert skew_percent(10, mean, partitions) is None


def test_no_broker_has_no_mean() -> None:
    assert mean_of([]) is None
    assert mean_of([1, 2]) == 1.5


KAFKA_4_3 = {35: (1, 5), 45: (0, 1), 55: (0, 2), 60: (0, 2)}
KAFKA_3_9_ZOOKEEPER = {35: (0, 4), 45: (0, 0), 60: (0, 1), 69: (0, 0)}


@pytest.mark.parametrize(
    ("offered", "release"),
    [
        (KAFKA_4_3, "4.3"),
        ({35: (1, 4), 45: (0, 1), 55: (0, 2), 60: (0, 2)}, "4.1"),
        ({35: (1, 4), 45: (0, 0), 55: (0, 2), 60: (0, 2)}, "4.0"),
        ({35: (0, 4), 45: (0, 0), 55: (0, 1), 60: (0, 0)}, "3.3"),
        (KAFKA_3_9_ZOOKEEPER, "3.7"),
        ({3: (0, 5)}, ""),
    ],
)
def test_at_least__names_the_newest_release_that_is_sure(offered: dict[int, tuple[int, int]], release: str) -> None:
    assert at_least(offered) == release


@pytest.mark.parametrize(
    ("before", "answered", "silent", "mode"),
    [
        ("zookeeper", [KAFKA_4_3, KAFKA_4_3], 1, "zookeeper"),
        ("kraft", [KAFKA_4_3, KAFKA_4_3], 1, "kraft"),
        ("unknown", [KAFKA_4_3, KAFKA_4_3], 1, "kraft"),
        ("zookeeper", [KAFKA_4_3, KAFKA_4_3], 0, "kraft"),
        ("kraft", [KAFKA_4_3, KAFKA_3_9_ZOOKEEPER], 0, "zookeeper"),
        ("kraft", [], 1, "kraft"),
    ],
)
def test_mode__of_a_cluster__is_zookeeper_while_one_broker_may_be(
    before: str, answered: list[dict[int, tuple[int, int]]], silent: int, mode: str
) -> None:
    errors = {broker: ItemError(as_message("no answer within 8 s")) for broker in range(10, 10 + silent)}
    assert judge_mode(ApiVersions(dict(enumerate(answered)), errors, 0), ClusterMode(before)) == ClusterMode(mode)


def test_common_ranges__are_what_every_broker_offers() -> None:
    new, old = {"1": [4, 17], "3": [0, 13], "55": [0, 2], "80": [1, 1]}, {"1": [0, 11], "3": [0, 9], "80": [0, 0]}
    assert common_ranges([new, old]) == {"1": [4, 11], "3": [0, 9]}
    assert common_ranges([new]) == new
    assert common_ranges([]) == {}


def test_absent_brokers__of_partitions__are_those_whose_replicas_they_lack() -> None:
    found = AbsentBrokers()
    for shape, min_isr in (
        (PartitionShape(None, (1, 2), (2,)), 1),
        (PartitionShape(1, (1, 3, 4), (1,)), 2),
        (PartitionShape(1, (1, 5, 6), (1, 6)), 2),
        (PartitionShape(1, (1, 7), (1,)), None),
        (PartitionShape(1, (1, 8), (1,), adding=frozenset({8})), 2),
        (PartitionShape(1, (1, 2), (1, 2)), 2),
    ):
        found.add(shape, min_isr)
    assert found.as_json() == {
        "offline": [2],
        "under_min_isr": [3, 4, 8],
        "at_min_isr": [1, 5],
        "under_replicated": [1, 3, 4, 5, 7],
    }
