"""What a plan does to a cluster.

What the way back copies: what left comes back, from whoever leads then.

What a plan is made with of what the pipeline saw: what is known, what is not, and from when.

A report that is brought back: read as it was written, and nothing in it believed.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.changes.plan import PartitionMove
from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.planning.impact import (
    START_AND_END_S,
    ImpactWarning,
    PlanImpact,
    busiest_bytes,
    estimate_copy_seconds,
    impact_of,
    rates_around,
    run_seconds,
)
from kafkadash.planning.plan_store import RollbackCopies, way_back_of
from kafkadash.planning.solver.plan import plan
from kafkadash.planning.solver.report import BadReport, proof_in, report_of, request_in
from kafkadash.planning.solver.request import BALANCE, DRAIN, LEADERS, PlanProof, PlanRequest
from kafkadash.planning.solver.workload import FRESH, TopicWorkload, WorkloadBytes, WorkloadUsed, used_by, with_rates
from kafkadash.planning.topology import ClusterTopology, PlannedBroker, PlannedPartition, PlannedTopic
from tests.factories import GB
from tests.planning.plans import world
from tests.planning.topologies import broker, clusters, row, topology

pytestmark = pytest.mark.domain


def watch(impact: PlanImpact, code: str) -> list[str]:
    return [f"{one.state}: {one.lead} {one.text}".replace(":  ", ": ") for one in impact.watch if one.code == code]


def why(impact: PlanImpact) -> dict[str, tuple[str, ...]]:
    return {f"{one.topic}-{one.partition}": one.why for one in impact.exceptions}


CLUSTER = topology(
    {"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6]], "__consumer_offsets": [[3, 4, 5]]}, internal=["__consumer_offsets"]
)
DRAINED_ROWS = [
    row(CLUSTER, "t", 0, [1, 2, 6]),
    row(CLUSTER, "t", 1, [1, 6, 2]),
    row(CLUSTER, "__consumer_offsets", 0, [6, 4, 5]),
]


def test_a_drain__is_counted_by_partitions_topics_brokers_and_leaders() -> None:
    impact = impact_of(DRAINED_ROWS, CLUSTER, disk_limit=0.8)
    assert (impact.partitions_moved, impact.partitions_total) == (3, 4)
    assert (impact.topics_moved, impact.topics_total, impact.internal_partitions) == (2, 2, 1)
    assert (impact.copied_bytes, impact.total_bytes, impact.known_bytes, impact.unsized) == (30, 120, 30, 0)
    assert impact.emptied == (3,)
    assert impact.leaders_moved == 2
    assert (impact.brokers_touched, impact.brokers_total) == (3, 6)
    assert (impact.violations_before, impact.violations_after, impact.racks_lost) == (0, 0, 0)
    assert (impact.under_min_isr, impact.at_min_isr) == (0, 0)
    six = next(one for one in impact.brokers if one.id == 6)
    assert (six.replicas_before, six.replicas_after, six.leaders_before, six.leaders_after) == (1, 4, 0, 1)
    assert (six.bytes_before, six.bytes_after, six.bytes_in, six.bytes_out) == (10, 40, 30, 0)
    assert (six.peak_bytes, six.disk_bytes) == (130, 1000)
    assert (impact.binding_broker, impact.binding_direction, impact.binding_bytes) == (6, "in", 30)
    assert impact.inbound_bytes_per_s == 3.0


def test_durations__are_bound_by_the_broker_that_receives_or_sends_most() -> None:
    impact = impact_of(DRAINED_ROWS, CLUSTER)
    assert estimate_copy_seconds(impact, 10) == 3.0
    assert estimate_copy_seconds(replace(impact, largest_bytes=90), 10) == 9.0
    assert busiest_bytes(replace(impact, largest_bytes=90)) == 90
    assert run_seconds(30, 10) == 3.0 + START_AND_END_S, "start and end take their time, whatever is copied"
    assert run_seconds(None, 10) is None
    assert rates_around(60) == (30, 60, 90)


def test_a_size_that_is_not_known__leaves_sums_and_times_unknown_and_is_counted() -> None:
    cluster = topology({"t": [[1, 2], [1, 2]]}, size=None)
    impact = impact_of([row(cluster, "t", 0, [1, 5])], cluster)
    assert (impact.copied_bytes, impact.unsized, impact.total_bytes, impact.binding_bytes) == (None, 1, None, None)
    assert estimate_copy_seconds(impact, 10) is None
    five = next(one for one in impact.brokers if one.id == 5)
    assert (five.bytes_after, five.peak_bytes) == (None, None)
    assert watch(impact, "sizes") == [
        "unknown: The size of 1 moving partition is unknown, so durations are unknown too. At least 0 B is copied."
    ]
    assert watch(impact, "disk") == ["unknown: Peak disk usage unknown for broker 5: sizes are missing."]


def test_watch__a_rack_left_with_one_broker__says_what_its_death_would_cost() -> None:
    assert watch(impact_of(DRAINED_ROWS, CLUSTER), "one_broker_racks") == [
        (
            "warning: Rack c has a single broker left. If broker 6 fails while 3 is empty, 4 partitions keep 2 of 3 "
            "replicas."
        )
    ]


def test_watch__internal_topics__are_named_with_what_their_move_means() -> None:
    assert watch(impact_of(DRAINED_ROWS, CLUSTER), "internal_topics") == [
        "warning: 1 internal topic changes: __consumer_offsets 1 partition. Group coordinators change."
    ]


def test_watch__disk_and_spread__are_told_also_when_they_are_fine() -> None:
    impact = impact_of(DRAINED_ROWS, CLUSTER, disk_limit=0.8)
    assert watch(impact, "disk") == ["ok: Disk usage peaks at 13.0 % (broker 6), limit 80 %."]
    assert watch(impact, "spread") == ["ok: Rack spread unchanged: no violations."]
    full = topology({"t": [[1, 2]]}, [broker(1), broker(2), broker(5, used=795)])
    assert watch(impact_of([row(full, "t", 0, [1, 5])], full, disk_limit=0.8), "disk") == [
        "critical: Disk usage peaks at 80.5 % (broker 5), limit 80 %."
    ]


def test_watch__few_replicas_that_change_their_rack() -> None:
    cluster = topology({"t": [[3, 1]]})
    impact = impact_of([row(cluster, "t", 0, [2, 1])], cluster)
    assert watch(impact, "few_replicas") == ["warning: 1 partition has only 2 replicas and changes rack: t."]
    assert why(impact) == {"t-0": ("largest move", "changes rack c → b", "only 2 replicas")}


def test_watch__a_spread_that_gets_worse__is_counted() -> None:
    cluster = topology({"t": [[1, 2, 3]]})
    impact = impact_of([row(cluster, "t", 0, [1, 2, 4])], cluster)
    assert (impact.violations_before, impact.violations_after, impact.racks_lost) == (0, 1, 1)
    assert watch(impact, "spread") == [
        "warning: Rack spread gets worse: 1 partition less evenly spread; 0 violations before, 1 after."
    ]


def test_watch__a_spread_that_stays__is_only_called_the_same_if_it_is() -> None:
    cluster = topology({"t": [[1, 4, 2], [1, 2, 3]]})
    kept = impact_of([row(cluster, "t", 1, [1, 2, 6])], cluster)
    assert watch(kept, "spread") == ["ok: Rack spread unchanged: 1 violation before, 1 after."]
    swapped = impact_of([row(cluster, "t", 0, [1, 3, 2]), row(cluster, "t", 1, [1, 2, 4])], cluster)
    assert watch(swapped, "spread") == [
        "warning: Rack spread gets worse: 1 partition less evenly spread; 1 violation before, 1 after."
    ]


def test_brokers_that_are_gone_and_hold_nothing__are_not_counted() -> None:
    cluster = topology({"t": [[1, 2]]}, [broker(1), broker(2), broker(3), broker(7, "a", alive=False)])
    impact = impact_of([row(cluster, "t", 0, [1, 3])], cluster)
    assert impact.brokers_total == 3
    assert [one.id for one in impact.brokers] == [1, 2, 3]


def test_without_racks__spread_is_not_judged() -> None:
    cluster = topology({"t": [[1, 2]]}, [broker(n, "a") for n in (1, 2, 3)])
    impact = impact_of([row(cluster, "t", 0, [1, 3])], cluster)
    assert (impact.violations_before, impact.violations_after, impact.racks_lost) == (None, None, None)


def test_exceptions__come_by_rank_and_then_by_size() -> None:
    cluster = topology({"t": [[1, 2, 3]] * 5, "__x": [[1, 2, 3]]}, internal=["__x"], min_isr=2)
    sizes = [10, 20, 500, 15, 30]
    partitions = [replace(p, size_bytes=size) for p, size in zip(cluster.topics["t"].partitions, sizes, strict=True)]
    partitions[1] = replace(partitions[1], isr=(1,))
    partitions[3] = replace(partitions[3], isr=(1, 2))
    cluster = replace(
        cluster, topics={**cluster.topics, "t": replace(cluster.topics["t"], partitions=tuple(partitions))}
    )
    impact = impact_of(
        [
            row(cluster, "__x", 0, [1, 2, 6]),
            row(cluster, "t", 0, [1, 2]),
            row(cluster, "t", 1, [1, 2, 6]),
            row(cluster, "t", 2, [1, 2, 6]),
            row(cluster, "t", 3, [2, 1, 3]),
            row(cluster, "t", 4, [1, 2, 3, 6]),
        ],
        cluster,
    )
    assert list(why(impact).items()) == [
        ("t-2", ("largest move", "50 % of the disk of broker 6")),
        ("t-1", ("under min-ISR now",)),
        ("t-3", ("at min-ISR now", "order only")),
        ("t-0", ("from 3 to 2 replicas", "only 2 replicas")),
        ("__x-0", ("internal topic",)),
        ("t-4", ("from 3 replicas to 4",)),
    ]
    assert (impact.under_min_isr, impact.at_min_isr, impact.rf_up, impact.rf_down, impact.only_reordered) == (
        1,
        1,
        1,
        1,
        1,
    )
    assert {one.topic: one.exceptions for one in impact.topics} == {"t": 5, "__x": 1}


def test_leaders__stay_where_they_are_kept_when_none_are_elected() -> None:
    cluster = topology({"t": [[1, 2, 3]]})
    reorder = [row(cluster, "t", 0, [2, 1, 3])]
    assert impact_of(reorder, cluster).leaders_moved == 1
    assert impact_of(reorder, cluster, elect_leaders=False).leaders_moved == 0


@given(clusters(), st.data())
def test_json__there_and_back__is_the_same(cluster: ClusterTopology, data: st.DataObject) -> None:
    impact = impact_of(_random_rows(cluster, data), cluster, disk_limit=0.8)
    assert unpack_dataclass(PlanImpact, json.loads(json.dumps(pack_dataclass(impact)))) == impact
    assert unpack_dataclass(PlanImpact, json.loads(json.dumps(impact.summary_json()))) == replace(
        impact, topics=(), exceptions=()
    )


@given(clusters(), st.data())
def test_sums__of_brokers_and_topics__are_those_of_the_whole(cluster: ClusterTopology, data: st.DataObject) -> None:
    rows = _random_rows(cluster, data)
    impact = impact_of(rows, cluster)
    assert (
        sum(one.bytes_in for one in impact.brokers)
        == impact.copied_bytes
        == sum(one.bytes_out for one in impact.brokers)
    )
    assert sum(one.copied_bytes or 0 for one in impact.topics) == impact.copied_bytes
    grown = sum(len(one.target) - len(one.current) for one in rows)
    assert sum(one.replicas_after - one.replicas_before for one in impact.brokers) == grown
    assert sum(one.leaders_after for one in impact.brokers) == sum(one.leaders_before for one in impact.brokers)


def _random_rows(cluster: ClusterTopology, data: st.DataObject) -> list[PartitionMove]:
    rows = []
    for topic in cluster.topics.values():
        for p in topic.partitions:
            target = data.draw(st.permutations(sorted(cluster.brokers)))[: data.draw(st.integers(1, 4))]
            if tuple(target) != p.replicas:
                rows.append(PartitionMove(topic.name, topic.id, p.partition, p.replicas, tuple(target)))
    return rows


def test_fifty_thousand_rows__on_two_hundred_thousand_partitions__take_a_few_seconds() -> None:
    brokers = [broker(n, "abc"[n % 3], total=10**15) for n in range(60)]
    topics = {
        f"t{t}": PlannedTopic(
            f"t{t}",
            tuple(
                PlannedPartition(
                    n, (a := (t + n) % 60, (a + 1) % 60, (a + 2) % 60), (a, (a + 1) % 60, (a + 2) % 60), a, n * 1000
                )
                for n in range(100)
            ),
            f"id{t}",
            min_isr=2,
        )
        for t in range(2000)
    }
    cluster = ClusterTopology({b.id: b for b in brokers}, topics)
    rows = [
        PartitionMove(name, topic.id, p.partition, p.replicas, (*p.replicas[:2], (p.replicas[2] + 3) % 60))
        for name, topic in list(topics.items())[:500]
        for p in topic.partitions
    ]
    began = time.process_time()
    impact = impact_of(rows, cluster, disk_limit=0.8)
    assert time.process_time() - began < 3 * 2
    assert impact.partitions_moved == 50_000


def test_watch__is_said_in_whole_sentences() -> None:
    for one in impact_of(DRAINED_ROWS, CLUSTER, disk_limit=0.8).watch:
        assert isinstance(one, ImpactWarning)
        assert f"{one.lead} {one.text}".endswith(".")


WORLD = world({"orders": [[1, 2, 3], [3, 4, 5], [2, 1, 3]]})


def make_way_back_row(partition: int, current: tuple[int, ...], target: tuple[int, ...]) -> PartitionMove:
    return PartitionMove("orders", "id", partition, current, target)


def test_each_replica_that_left_is_copied_to_its_broker() -> None:
    rows = [
        make_way_back_row(0, (1, 2, 3), (1, 2, 6)),
        make_way_back_row(1, (3, 4, 5), (6, 4, 5)),
        make_way_back_row(2, (2, 1, 3), (2, 1, 6)),
    ]
    assert way_back_of(rows, WORLD) == RollbackCopies(partitions=3, copied_bytes=9 * GB, longest_bytes=9 * GB)


def test_what_leads_then_sends_all_copies_of_a_partition() -> None:
    assert way_back_of([make_way_back_row(0, (1, 2, 3), (4, 5, 6))], WORLD).longest_bytes == 9 * GB


def test_replicas_that_were_only_added_or_reordered_copy_nothing_on_the_way_back() -> None:
    rows = [make_way_back_row(0, (1, 2, 3), (1, 2, 3, 4)), make_way_back_row(1, (3, 4, 5), (4, 3, 5))]
    assert way_back_of(rows, WORLD) == RollbackCopies(partitions=2, copied_bytes=0, longest_bytes=0)


def test_an_unknown_size_makes_it_unknown() -> None:
    unsized = world({"orders": [[1, 2, 3]]}, size=None)
    assert way_back_of([make_way_back_row(0, (1, 2, 3), (1, 2, 6))], unsized) == RollbackCopies(1, None, None)
    assert way_back_of([make_way_back_row(7, (1, 2, 3), (1, 2, 6))], WORLD) == RollbackCopies(1, None, None)


TO = datetime(2026, 3, 9, 10, tzinfo=UTC)
FROM = TO - timedelta(days=7)
ORDERS = PlannedTopic("orders", tuple(PlannedPartition(n, (1, 2), (1, 2), 1, 1000) for n in range(3)))
WORKLOADS = {
    "orders": TopicWorkload(
        FROM,
        TO,
        {0: WorkloadBytes(2e6, 5e6, 1e9), 1: WorkloadBytes(0.0, None, None), 2: WorkloadBytes(None, None, 7.0)},
    ),
    "other": TopicWorkload(FROM - timedelta(days=1), TO, {0: WorkloadBytes(1e6, 1e6, -4e9)}),
}


def make_workload_row(partition: int, topic: str = "orders", target: tuple[int, ...] = (1, 3)) -> PartitionMove:
    return PartitionMove(topic, "", partition, (1, 2), target)


def test_rates_are_those_of_the_pipeline_and_the_rest_stays_unknown() -> None:
    rated = with_rates(ORDERS, WORKLOADS["orders"])
    assert [p.bytes_in_per_s for p in rated.partitions] == [2e6, 0.0, None]
    assert [p.size_bytes for p in rated.partitions] == [1000] * 3, "sizes are those that are seen live"
    assert with_rates(ORDERS, None) is ORDERS


def test_a_partition_that_was_made_since_has_no_rate() -> None:
    rated = with_rates(ORDERS, TopicWorkload(FROM, TO, {7: WorkloadBytes(1.0)}))
    assert [p.bytes_in_per_s for p in rated.partitions] == [None] * 3


def test_what_was_used_is_of_what_is_copied() -> None:
    rows = [
        make_workload_row(0),
        make_workload_row(1),
        make_workload_row(2),
        make_workload_row(0, "other"),
        make_workload_row(0, "unheard-of"),
        make_workload_row(1, target=(2, 1)),
    ]
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
    assert used_by([make_workload_row(2)], WORKLOADS) == WorkloadUsed(0, 1)
    assert used_by([make_workload_row(0, target=(2, 1))], WORKLOADS) == WorkloadUsed(0, 0), "nothing is copied"
    assert used_by([make_workload_row(1)], WORKLOADS).peak is None


@pytest.mark.parametrize(("age", "fresh"), [(timedelta(0), True), (FRESH, True), (FRESH + timedelta(seconds=1), False)])
def test_a_model_is_fresh_for_two_days(age: timedelta, fresh: bool) -> None:
    assert WORKLOADS["orders"].fresh(TO + age) is fresh


def test_one_unknown_partition_makes_the_floor_of_the_throttle_unknown() -> None:
    topology = ClusterTopology(
        {n: PlannedBroker(n) for n in (1, 2, 3)}, {"orders": with_rates(ORDERS, WORKLOADS["orders"])}
    )
    assert impact_of([make_workload_row(0), make_workload_row(1)], topology).inbound_bytes_per_s == 2e6
    assert impact_of([make_workload_row(0), make_workload_row(2)], topology).inbound_bytes_per_s is None


def test_it_is_stored_with_the_impact() -> None:
    impact = impact_of([make_workload_row(0)], ClusterTopology({1: PlannedBroker(1)}, {"orders": ORDERS}))
    assert unpack_dataclass(PlanImpact, pack_dataclass(impact)).workload is None
    used = used_by([make_workload_row(0)], WORKLOADS)
    assert unpack_dataclass(PlanImpact, pack_dataclass(replace(impact, workload=used))).workload == used


REPORTED_CLUSTER = topology({"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6]]})


def written(request: PlanRequest) -> tuple[dict[str, Any], PlanProof | None]:
    planned = plan(REPORTED_CLUSTER, request)
    report = report_of(REPORTED_CLUSTER, request, planned, impact_of(planned.rows, REPORTED_CLUSTER))
    return json.loads(json.dumps(report)), planned.proof


@pytest.mark.parametrize(
    "request_",
    [
        PlanRequest(DRAIN, (3,), targets=(6,), disk_limit=0.8, topics=("t",)),
        PlanRequest(BALANCE, eps=0.3, most_replicas=5, pattern="t", excluded="u"),
        PlanRequest(LEADERS),
    ],
    ids=lambda request: request.mode,
)
def test_what_was_written__is_read(request_: PlanRequest) -> None:
    report, proof = written(request_)
    assert (request_in(report), proof_in(report)) == (request_, proof)


@pytest.mark.parametrize("value", [None, -1, 1.5, "x", [[]], {"x": 1}, {"1": "x"}, 2**60])
def test_what_no_planner_writes__is_no_report(value: object) -> None:
    report, proof = written(PlanRequest(DRAIN, (3,)))
    assert proof is not None
    for name in ("moved", "prices", "widened", "outside"):
        if (name, value) not in (("moved", -1), ("outside", {"1": "x"})):
            with pytest.raises(BadReport):
                proof_in({**report, "certificate": {**report["certificate"], name: value}})
    for name in ("mode", "brokers", "pattern", "rebalance"):
        if (name, value) != ("pattern", "x"):
            with pytest.raises(BadReport):
                request_in({**report, "request": {**report["request"], name: value}})
    with pytest.raises(BadReport):
        request_in({**report, "request": {**report["request"], "colour": value}})
    for whole in (value, {**report, "format": value}):
        with pytest.raises(BadReport):
            request_in(whole)
        with pytest.raises(BadReport):
            proof_in(whole)
