"""Leaders of a topic by broker: counts, sizes that may be unknown, and the text about their skew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kafkadash.monitoring import topic_leaders
from kafkadash.monitoring.models import TopicState
from kafkadash.monitoring.partitions import PartitionLine
from kafkadash.monitoring.topic_leaders import TopicLeaders, count_leaders
from tests.pages.conftest import figures_of

TOPIC = TopicState(name="orders")


def lines(*placed: tuple[int | None, Sequence[int]]) -> list[PartitionLine]:
    """Partitions, each with its leader and its replicas."""
    return [
        PartitionLine(TOPIC, number, leader, 5, replicas, replicas, [])
        for number, (leader, replicas) in enumerate(placed)
    ]


def counted(found: TopicLeaders) -> Mapping[int, tuple[int, int, int]]:
    return {row.broker: (row.leaders, row.preferred, row.replicas) for row in found.rows}


def test_leaders__by_broker_with_replicas__also_where_none_is_led() -> None:
    found = count_leaders(lines((1, [1, 2]), (1, [2, 1]), (3, [3, 2])), {})
    assert counted(found) == {1: (2, 1, 2), 2: (0, 1, 3), 3: (1, 1, 1)}
    assert [row.leaders_percent for row in found.rows] == [100.0, 0.0, 50.0]
    assert found.more == 0


def test_led_bytes__an_unknown_size__makes_its_leader_unknown_only() -> None:
    found = count_leaders(lines((1, [1, 2]), (1, [1, 2]), (2, [2, 1]), (3, [3])), {0: 10, 2: 40, 3: 20})
    assert {row.broker: row.led_bytes for row in found.rows} == {1: None, 2: 40, 3: 20}
    assert {row.broker: row.bytes_percent for row in found.rows} == {1: None, 2: 100.0, 3: 50.0}


def test_led_bytes__nothing_led__is_zero_and_not_unknown() -> None:
    found = count_leaders(lines((1, [1, 2])), {0: 10})
    assert [(row.broker, row.led_bytes) for row in found.rows] == [(1, 10), (2, 0)]


@pytest.mark.parametrize(
    ("placed", "figures"),
    [
        ([(1, [1, 2]), (2, [2, 1])], ["1"]),
        ([(1, [1, 2]), (2, [2, 1]), (1, [1, 2])], ["1", "2"]),
        ([(1, [1, 2, 3])] * 8 + [(2, [2, 1, 3])] * 2 + [(3, [3, 1, 2])] * 2, ["1", "8", "12", "2.0"]),
        ([(1, [1, 2, 3])] * 4, ["1", "4", "4", "3.0", "2"]),
        ([(1, [1, 2]), (2, [2, 1]), (None, [1, 2])], ["1", "1"]),
        ([(None, [1, 2])], []),
    ],
    ids=["even", "even by one", "skewed", "two lead none", "one without leader", "none led"],
)
def test_skew__in_a_sentence(placed: Sequence[tuple[int | None, Sequence[int]]], figures: list[str]) -> None:
    assert figures_of(count_leaders(lines(*placed), {}).skew) == figures


def test_many_brokers__those_that_lead_most_are_listed_by_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_leaders, "MOST_BROKERS", 2)
    found = count_leaders(lines((9, [9, 1]), (9, [9, 2]), (4, [4, 1]), (4, [4, 3]), (2, [2, 1])), {})
    assert [row.broker for row in found.rows] == [4, 9]
    assert found.more == 3
