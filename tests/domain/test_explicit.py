"""A plan brought as Kafka's JSON, compared with the cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.checker import Asked, check
from kafkadash.domain.impact_of import impact_of
from kafkadash.domain.kafka_json import plan_json, read_reassignment
from kafkadash.domain.plan import way_back
from kafkadash.domain.planner.explicit import explicit
from kafkadash.domain.planner.planned import Planned
from kafkadash.domain.planner.request import EXPLICIT, PlanRequest
from kafkadash.domain.planner.topology import Topology
from tests.domain.topologies import broker, clusters, topology

OWN = [*(broker(n) for n in (1, 2, 3, 4, 5)), broker(6, fenced=True), broker(7, "a", alive=False)]
CLUSTER = topology({"t": [[1, 2, 3], [2, 3, 1], [7, 1, 2]]}, OWN)


def plan(entries: list[dict[str, Any]], cluster: Topology = CLUSTER, **how: Any) -> Planned:
    """Of a file with one entry a line, from line 2 on."""
    lines = ",\n".join(json.dumps({"topic": "t", "partition": 0} | one) for one in entries)
    return explicit(read_reassignment(f'{{"version":1,"partitions":[\n{lines}\n]}}'), cluster, **how)


def test_explicit__rows_know_the_topic_id_and_what_is_now_and_those_as_asked_are_left_out() -> None:
    planned = plan([{"replicas": [4, 2, 3]}, {"partition": 1, "replicas": [2, 3, 1], "log_dirs": ["any"] * 3}])
    assert [(r.name, r.topic_id, r.current, r.target, r.log_dirs) for r in planned.rows] == [
        ("t-0", "id-t", (1, 2, 3), (4, 2, 3), ())
    ]
    assert [str(n) for n in planned.notices] == [
        "1 partition of the file is as asked already. Only the others are planned."
    ]


@pytest.mark.parametrize(
    ("entries", "sentences"),
    [
        (
            [{"topic": "x", "replicas": [1]}],
            ["Line 2: There is no topic x in this cluster. Correct it in the file, or take it out."],
        ),
        (
            [{"topic": "x", "replicas": [1]}, {"topic": "x", "partition": 1, "replicas": [1]}],
            [
                (
                    "Line 2: There is no topic x in this cluster (the first of 2 entries). "
                    "Correct it in the file, or take it out."
                )
            ],
        ),
        (
            [{"partition": 9, "replicas": [1, 2, 3]}],
            ["Line 2: There is no partition t-9: t has 3 partitions, 0 to 2. Correct it in the file, or take it out."],
        ),
        (
            [{"replicas": [1, 2, 9]}],
            ["Line 2: There is no broker 9 in this cluster. Name brokers of the cluster only."],
        ),
        (
            [{"replicas": [1, 2, 6]}],
            ["Line 2: Broker 6 is fenced and can be given no replicas now. Name another one, or wait until it can."],
        ),
        (
            [{"replicas": [1, 2, 7]}],
            ["Line 2: Broker 7 is away and can be given no replicas now. Name another one, or wait until it can."],
        ),
        (
            [{"replicas": [1, 2]}],
            [
                (
                    "Line 2: t-0 has 3 replicas and would have 2. "
                    "If that is meant, allow the replication factor to change."
                )
            ],
        ),
        (
            [{"replicas": [1, 2, 3, 4]}],
            [
                (
                    "Line 2: t-0 has 3 replicas and would have 4. "
                    "If that is meant, allow the replication factor to change."
                )
            ],
        ),
        (
            [{"replicas": [1, 2, 3]}],
            [
                (
                    "The only partition of the file is as asked already; nothing would move. "
                    "Nothing is left to do for this file."
                )
            ],
        ),
        (
            [{"replicas": [1, 2, 3], "log_dirs": ["/d", "any", "any"]}],
            [
                (
                    "Line 2: t-0 keeps its brokers and only asks for other log directories; only moves between "
                    "brokers are planned here. Move it between disks with Kafka's own tool, kafka-reassign-partitions."
                )
            ],
        ),
        (
            [{"replicas": [1, 2, 4], "log_dirs": ["any", "/d", "/d"]}],
            [
                (
                    "Line 2: t-0: broker 2 keeps its replica, and the file names the directory /d for it. "
                    'Only new replicas are put into a directory here: write "any" for one that stays.'
                )
            ],
        ),
        (
            [{"replicas": [1, 2, 4], "log_dirs": ["any", "any", "/x"]}],
            ['Line 2: t-0: broker 4 has no log directory /x; it has /d. Name one that it has, or "any".'],
        ),
        (
            [{"replicas": []}, {"partition": 1, "replicas": [9, 2, 3]}],
            [
                "Line 2: t-0 has an empty list of replicas. Name the brokers that are to have them.",
                "Line 3: There is no broker 9 in this cluster. Name brokers of the cluster only.",
            ],
        ),
    ],
)
def test_explicit__what_cannot_be_done__says_why_and_names_its_line(
    entries: list[dict[str, Any]], sentences: list[str]
) -> None:
    planned = plan(entries)
    assert [str(problem) for problem in planned.problems] == sentences
    assert planned.rows == ()


def test_explicit__a_replication_factor_that_may_change__does() -> None:
    assert [row.target for row in plan([{"replicas": [1, 2]}], change_rf=True).rows] == [(1, 2)]


def test_explicit__somebody_moves_the_partition_already() -> None:
    topic = CLUSTER.topics["t"]
    moving = replace(topic, partitions=(replace(topic.partitions[0], moving=True), *topic.partitions[1:]))
    planned = plan([{"replicas": [1, 2, 4]}], replace(CLUSTER, topics={"t": moving}))
    assert [str(p) for p in planned.problems] == [
        "Line 2: t-0 is being reassigned already. Wait until that is done, or cancel it."
    ]


def test_explicit__a_replica_that_stays_on_a_broker_that_is_away__is_noticed() -> None:
    planned = plan([{"partition": 2, "replicas": [7, 1, 3]}])
    assert len(planned.rows) == 1
    assert [str(n) for n in planned.notices] == [
        (
            "1 partition keeps a replica on broker 7, which is away: what moves may stay listed as moving until it "
            "is back. Bring it back first, or plan these replicas elsewhere too."
        )
    ]


def test_explicit__a_disk_that_would_overflow__names_broker_numbers_and_limit() -> None:
    cluster = topology({"t": [[1, 2, 3]]}, [broker(1), broker(2), broker(3), broker(4, used=795)])
    assert [str(p) for p in plan([{"replicas": [1, 2, 4]}], cluster, disk_limit=0.8).problems] == [
        (
            "Broker 4 would come to 80.5 % of its disk: 795 B in use and 10 B more, of 1.0 kB. "
            "The limit is 80 %, which leaves room for 5 B. "
            "Make room on it, move less at once, or allow more under Limits."
        )
    ]


@given(clusters(), st.data())
def test_explicit__of_any_cluster__every_entry_is_a_row_or_left_out_or_a_problem_and_rows_pass_the_checker(
    cluster: Topology, data: st.DataObject
) -> None:
    names = [(topic.name, p.partition) for topic in cluster.topics.values() for p in topic.partitions]
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    change_rf = data.draw(st.booleans())
    asked = {
        key: tuple(data.draw(st.permutations(sorted(cluster.brokers)))[: data.draw(st.integers(1, 4))])
        for key in chosen
    }
    entries = [{"topic": t, "partition": n, "replicas": list(replicas)} for (t, n), replicas in asked.items()]
    planned = plan(entries, cluster, change_rf=change_rf)
    live = {(topic.name, p.partition): p.replicas for topic in cluster.topics.values() for p in topic.partitions}
    if planned.problems:
        wrong = [key for key, replicas in asked.items() if len(replicas) != len(live[key]) and not change_rf]
        assert len(planned.problems) == (len(wrong) or 1)
        return
    assert {(r.topic, r.partition): r.target for r in planned.rows} == {
        key: replicas for key, replicas in asked.items() if replicas != live[key]
    }
    rules = check(
        planned.rows,
        cluster,
        Asked.of_request(PlanRequest(EXPLICIT, change_rf=change_rf)),
        impact_of(planned.rows, cluster),
    )
    assert [rule for rule in rules if not rule.passed] == []
    # The way back of the plan brings everything to where it was.
    moved = {
        name: replace(
            t, partitions=tuple(replace(p, replicas=asked.get((name, p.partition), p.replicas)) for p in t.partitions)
        )
        for name, t in cluster.topics.items()
    }
    back = explicit(
        read_reassignment(plan_json(way_back(planned.rows))), replace(cluster, topics=moved), change_rf=change_rf
    )
    assert {(r.topic, r.partition): (r.current, r.target) for r in back.rows} == {
        (r.topic, r.partition): (r.target, r.current) for r in planned.rows
    }
