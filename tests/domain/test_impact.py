"""What a plan does to a cluster."""

from __future__ import annotations

import json
import time
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.impact import START_AND_END_S, Impact, Watch, busiest_bytes, rates_around, run_seconds, seconds
from kafkadash.domain.impact_of import impact_of
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.topology import Partition, Topic, Topology
from tests.domain.topologies import broker, clusters, row, topology


def watch(impact: Impact, code: str) -> list[str]:
    return [f"{one.state}: {one.lead} {one.text}".replace(":  ", ": ") for one in impact.watch if one.code == code]


def why(impact: Impact) -> dict[str, tuple[str, ...]]:
    return {f"{one.topic}-{one.partition}": one.why for one in impact.exceptions}


CLUSTER = topology(
    {"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6]], "__consumer_offsets": [[3, 4, 5]]}, internal=["__consumer_offsets"]
)
DRAIN = [
    row(CLUSTER, "t", 0, [1, 2, 6]),
    row(CLUSTER, "t", 1, [1, 6, 2]),
    row(CLUSTER, "__consumer_offsets", 0, [6, 4, 5]),
]


def test_a_drain__is_counted_by_partitions_topics_brokers_and_leaders() -> None:
    impact = impact_of(DRAIN, CLUSTER, disk_limit=0.8)
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
    impact = impact_of(DRAIN, CLUSTER)
    assert seconds(impact, 10) == 3.0
    assert seconds(replace(impact, largest_bytes=90), 10) == 9.0
    assert busiest_bytes(replace(impact, largest_bytes=90)) == 90
    assert run_seconds(30, 10) == 3.0 + START_AND_END_S, "start and end take their time, whatever is copied"
    assert run_seconds(None, 10) is None
    assert rates_around(60) == (30, 60, 90)


def test_a_size_that_is_not_known__leaves_sums_and_times_unknown_and_is_counted() -> None:
    cluster = topology({"t": [[1, 2], [1, 2]]}, size=None)
    impact = impact_of([row(cluster, "t", 0, [1, 5])], cluster)
    assert (impact.copied_bytes, impact.unsized, impact.total_bytes, impact.binding_bytes) == (None, 1, None, None)
    assert seconds(impact, 10) is None
    five = next(one for one in impact.brokers if one.id == 5)
    assert (five.bytes_after, five.peak_bytes) == (None, None)
    assert watch(impact, "sizes") == [
        "unknown: The size of 1 partition that moves is not known, so times are not either. At least 0 B are copied."
    ]
    assert watch(impact, "disk") == [
        "unknown: Cannot tell whether broker 5 would have enough disk: not all sizes are known."
    ]


def test_watch__a_rack_left_with_one_broker__says_what_its_death_would_cost() -> None:
    assert watch(impact_of(DRAIN, CLUSTER), "one_broker_racks") == [
        ("warning: c is left with one broker. If broker 6 dies while 3 is empty, 4 partitions keep 2 of 3 replicas.")
    ]


def test_watch__internal_topics__are_named_with_what_their_move_means() -> None:
    assert watch(impact_of(DRAIN, CLUSTER), "internal_topics") == [
        "warning: One internal topic moves: __consumer_offsets 1 partition. Group coordinators change."
    ]


def test_watch__disk_and_spread__are_told_also_when_they_are_fine() -> None:
    impact = impact_of(DRAIN, CLUSTER, disk_limit=0.8)
    assert watch(impact, "disk") == ["ok: Disk peaks at 13.0 % (broker 6), limit 80 %."]
    assert watch(impact, "spread") == ["ok: Rack spread stays: no violations before, none after."]
    full = topology({"t": [[1, 2]]}, [broker(1), broker(2), broker(5, used=795)])
    assert watch(impact_of([row(full, "t", 0, [1, 5])], full, disk_limit=0.8), "disk") == [
        "critical: Disk peaks at 80.5 % (broker 5), limit 80 %."
    ]


def test_watch__few_replicas_that_change_their_rack() -> None:
    cluster = topology({"t": [[3, 1]]})
    impact = impact_of([row(cluster, "t", 0, [2, 1])], cluster)
    assert watch(impact, "few_replicas") == ["warning: 1 partition has only 2 replicas and changes rack: t."]
    assert why(impact) == {"t-0": ("largest move", "changes rack c → b", "2 replicas only")}


def test_watch__a_spread_that_gets_worse__is_counted() -> None:
    cluster = topology({"t": [[1, 2, 3]]})
    impact = impact_of([row(cluster, "t", 0, [1, 2, 4])], cluster)
    assert (impact.violations_before, impact.violations_after, impact.racks_lost) == (0, 1, 1)
    assert watch(impact, "spread") == [
        "warning: Rack spread gets worse: 1 partition lies less evenly; 0 violations before, 1 after."
    ]


def test_watch__a_spread_that_stays__is_only_called_the_same_if_it_is() -> None:
    cluster = topology({"t": [[1, 4, 2], [1, 2, 3]]})
    kept = impact_of([row(cluster, "t", 1, [1, 2, 6])], cluster)
    assert watch(kept, "spread") == ["ok: Rack spread stays: 1 violation before, the same 1 after."]
    swapped = impact_of([row(cluster, "t", 0, [1, 3, 2]), row(cluster, "t", 1, [1, 2, 4])], cluster)
    assert watch(swapped, "spread") == [
        "warning: Rack spread gets worse: 1 partition lies less evenly; 1 violation before, 1 after."
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
        ("t-3", ("at min-ISR now", "only the order changes")),
        ("t-0", ("goes from 3 to 2 replicas", "2 replicas only")),
        ("__x-0", ("internal topic",)),
        ("t-4", ("goes from 3 replicas to 4",)),
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
def test_json__there_and_back__is_the_same(cluster: Topology, data: st.DataObject) -> None:
    impact = impact_of(_random_rows(cluster, data), cluster, disk_limit=0.8)
    assert Impact.from_json(json.loads(json.dumps(impact.as_json()))) == impact
    assert Impact.from_json(json.loads(json.dumps(impact.summary_json()))) == replace(impact, topics=(), exceptions=())


@given(clusters(), st.data())
def test_sums__of_brokers_and_topics__are_those_of_the_whole(cluster: Topology, data: st.DataObject) -> None:
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


def _random_rows(cluster: Topology, data: st.DataObject) -> list[Row]:
    rows = []
    for topic in cluster.topics.values():
        for p in topic.partitions:
            target = data.draw(st.permutations(sorted(cluster.brokers)))[: data.draw(st.integers(1, 4))]
            if tuple(target) != p.replicas:
                rows.append(Row(topic.name, topic.id, p.partition, p.replicas, tuple(target)))
    return rows


def test_fifty_thousand_rows__on_two_hundred_thousand_partitions__take_a_few_seconds() -> None:
    brokers = [broker(n, "abc"[n % 3], total=10**15) for n in range(60)]
    topics = {
        f"t{t}": Topic(
            f"t{t}",
            tuple(
                Partition(
                    n, (a := (t + n) % 60, (a + 1) % 60, (a + 2) % 60), (a, (a + 1) % 60, (a + 2) % 60), a, n * 1000
                )
                for n in range(100)
            ),
            f"id{t}",
            min_isr=2,
        )
        for t in range(2000)
    }
    cluster = Topology({b.id: b for b in brokers}, topics)
    rows = [
        Row(name, topic.id, p.partition, p.replicas, (*p.replicas[:2], (p.replicas[2] + 3) % 60))
        for name, topic in list(topics.items())[:500]
        for p in topic.partitions
    ]
    began = time.process_time()
    impact = impact_of(rows, cluster, disk_limit=0.8)
    assert time.process_time() - began < 3 * 2
    assert impact.partitions_moved == 50_000


def test_watch__is_said_in_whole_sentences() -> None:
    for one in impact_of(DRAIN, CLUSTER, disk_limit=0.8).watch:
        assert isinstance(one, Watch)
        assert f"{one.lead} {one.text}".endswith(".")
