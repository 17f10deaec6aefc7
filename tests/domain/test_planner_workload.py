"""What a plan is made with of what the pipeline saw: what is known, what is not, and from when."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kafkadash.domain.impact import Impact
from kafkadash.domain.impact_of import impact_of
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.topology import Broker, Partition, Topic, Topology
from kafkadash.domain.planner.workload import FRESH, Taken, TopicWorkload, WorkloadUsed, used_by, with_rates

TO = datetime(2026, 3, 9, 10, tzinfo=UTC)
FROM = TO - timedelta(days=7)
ORDERS = Topic("orders", tuple(Partition(n, (1, 2), (1, 2), 1, 1000) for n in range(3)))
WORKLOADS = {
    "orders": TopicWorkload(FROM, TO, {0: Taken(2e6, 5e6, 1e9), 1: Taken(0.0, None, None), 2: Taken(None, None, 7.0)}),
    "other": TopicWorkload(FROM - timedelta(days=1), TO, {0: Taken(1e6, 1e6, -4e9)}),
}


def row(partition: int, topic: str = "orders", target: tuple[int, ...] = (1, 3)) -> Row:
    return Row(topic, "", partition, (1, 2), target)


def test_rates_are_those_of_the_pipeline_and_the_rest_stays_unknown() -> None:
    rated = with_rates(ORDERS, WORKLOADS["orders"])
    assert [p.bytes_in_per_s for p in rated.partitions] == [2e6, 0.0, None]
    assert [p.size_bytes for p in rated.partitions] == [1000] * 3, "sizes are those that are seen live"
    assert with_rates(ORDERS, None) is ORDERS


def test_a_partition_that_was_made_since_has_no_rate() -> None:
    rated = with_rates(ORDERS, TopicWorkload(FROM, TO, {7: Taken(1.0)}))
    assert [p.bytes_in_per_s for p in rated.partitions] == [None] * 3


def test_what_was_used_is_of_what_is_copied() -> None:
    rows = [row(0), row(1), row(2), row(0, "other"), row(0, "unheard-of"), row(1, target=(2, 1))]
    assert used_by(rows, WORKLOADS) == WorkloadUsed(
        known=3,
        unknown=2,
        from_at=(FROM - timedelta(days=1)).isoformat(),
        to_at=TO.isoformat(),
        typical=3e6,
        peak=6e6,
        grows=-3e9,
    )


def test_of_nothing_known_nothing_is_summed() -> None:
    assert used_by([row(2)], WORKLOADS) == WorkloadUsed(0, 1)
    assert used_by([row(0, target=(2, 1))], WORKLOADS) == WorkloadUsed(0, 0), "nothing is copied"
    assert used_by([row(1)], WORKLOADS).peak is None


@pytest.mark.parametrize(("age", "fresh"), [(timedelta(0), True), (FRESH, True), (FRESH + timedelta(seconds=1), False)])
def test_a_model_is_fresh_for_two_days(age: timedelta, fresh: bool) -> None:
    assert WORKLOADS["orders"].fresh(TO + age) is fresh


def test_one_unknown_partition_makes_the_floor_of_the_throttle_unknown() -> None:
    topology = Topology({n: Broker(n) for n in (1, 2, 3)}, {"orders": with_rates(ORDERS, WORKLOADS["orders"])})
    assert impact_of([row(0), row(1)], topology).inbound_bytes_per_s == 2e6
    assert impact_of([row(0), row(2)], topology).inbound_bytes_per_s is None


def test_it_is_stored_with_the_impact() -> None:
    impact = impact_of([row(0)], Topology({1: Broker(1)}, {"orders": ORDERS}))
    assert Impact.from_json(impact.as_json()).workload is None
    used = used_by([row(0)], WORKLOADS)
    assert Impact.from_json(replace(impact, workload=used).as_json()).workload == used
