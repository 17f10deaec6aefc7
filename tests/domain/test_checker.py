"""The checker passes what is right, and every rule finds what it is there for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kafkadash.domain.checker import Asked, check
from kafkadash.domain.impact_of import impact_of
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.request import DRAIN, PlanRequest
from kafkadash.domain.planner.topology import Directory, Topology
from kafkadash.domain.rule import Rule
from tests.domain.topologies import broker, clusters, topology

OWN = [*(broker(n) for n in range(1, 7)), broker(8, "c", fenced=True), broker(9, "c", used=795)]
CLUSTER = topology({"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6], [1, 5, 3]]}, OWN)
ASKED = Asked("drain", frozenset({3}), disk_limit=0.8)
PLAN = plan(CLUSTER, PlanRequest(DRAIN, (3,), disk_limit=0.8)).rows


def failed(rows: Sequence[Row], cluster: Topology = CLUSTER, asked: Asked = ASKED) -> dict[str, str]:
    return {rule.name: rule.problems[0] for rule in check(rows, cluster, asked) if rule.passed is False}


def test_a_plan_as_it_should_be__passes_every_rule() -> None:
    rules = check(PLAN, CLUSTER, ASKED, impact_of(PLAN, CLUSTER))
    assert [(rule.name, rule.passed) for rule in rules] == [
        ("current assignment", True),
        ("replication factor", True),
        ("distinct brokers", True),
        ("eligible brokers", True),
        ("only what was asked", True),
        ("spread over racks", True),
        ("counts", True),
        ("disk", True),
        ("totals", True),
    ]
    assert rules[0].figure == "3 of 3"
    assert Rule.from_json(rules[0].as_json()) == rules[0]


Mutant = Callable[[list[Row]], list[Row]]


def first(**changes: object) -> Mutant:
    """The plan with another first row: of t-0, on 1, 2 and 3."""
    return lambda rows: [replace(rows[0], **changes), *rows[1:]]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mutant", "rule", "sentence"),
    [
        (lambda rows: [*rows, rows[0]], "current assignment", "t-0 is in the plan twice."),
        (first(partition=77), "current assignment", "There is no partition t-77."),
        (first(topic_id="other"), "current assignment", "t-0 is of another topic of that name."),
        (first(current=(1, 3, 2)), "current assignment", "t-0 is on 1, 2, 3; the plan expects 1, 3, 2."),
        (first(target=(1, 2, 3)), "current assignment", "t-0 changes nothing."),
        (
            first(log_dirs=("/a", "any", "any")),
            "current assignment",
            "t-0 would stay on broker 1 and move to /a; disk moves are not run here.",
        ),
        (first(target=(1, 2)), "replication factor", "t-0 would have 2 replicas instead of 3."),
        (first(target=()), "distinct brokers", "t-0 would have no replicas."),
        (first(target=(1, 2, 2)), "distinct brokers", "t-0 would have two replicas on one broker: 1, 2, 2."),
        (
            first(target=(1, 2, 8)),
            "eligible brokers",
            "t-0 would get a replica on broker 8, which cannot be given any.",
        ),
        (
            first(target=(1, 2, 99)),
            "eligible brokers",
            "t-0 would get a replica on broker 99, which cannot be given any.",
        ),
        (first(target=(1, 5, 6)), "only what was asked", "t-0 would leave 2, which is not drained."),
        (first(target=(2, 1, 6)), "only what was asked", "t-0 would change the order of the replicas that stay."),
        (first(target=(3, 1, 2)), "only what was asked", "t-0 would be on 3, which is drained."),
        (first(target=(1, 2, 4)), "spread over racks", "t-0 would be in 2 racks instead of 3."),
        (lambda rows: rows[1:], "counts", "Broker 3 would keep 1 replica."),
        (
            first(target=(1, 2, 9)),
            "disk",
            "Broker 9 would hold 805 B of 1.0 kB at its peak; the limit is 80 %.",
        ),
    ],
)
def test_a_plan_with_a_fault__fails_the_rule_for_it(mutant: Mutant, rule: str, sentence: str) -> None:
    assert failed(mutant(list(PLAN)))[rule] == sentence


def test_a_row_that_moves_already__is_found() -> None:
    topic = CLUSTER.topics["t"]
    moving = replace(topic, partitions=(replace(topic.partitions[0], moving=True), *topic.partitions[1:]))
    sentence = failed(PLAN, replace(CLUSTER, topics={"t": moving}))["current assignment"]
    assert sentence == "t-0 is being reassigned already."


def test_a_broker_that_was_left_out__is_found() -> None:
    asked = replace(ASKED, targets=frozenset({1, 2}))
    assert failed(PLAN, asked=asked)["only what was asked"] == "t-0 would go to 6, which is left out."


def test_rows_that_nobody_asked_for__are_found() -> None:
    extra = Row("t", "id-t", 2, (4, 5, 6), (5, 4, 6))
    assert failed([*PLAN, extra])["only what was asked"] == "t-2 has no replica on a drained broker."


def test_a_rack_with_more_than_its_share__is_found() -> None:
    cluster = topology({"t": [[1, 4, 2, 3, 6]]}, [broker(n) for n in range(1, 7)])
    rows = [Row("t", "id-t", 0, (1, 4, 2, 3, 6), (1, 4, 2, 5, 6))]
    asked = Asked("drain", frozenset({3}))
    assert "spread over racks" not in failed(rows, cluster, asked)
    cluster = topology({"t": [[1, 4, 2, 3]]}, [*OWN, broker(10, "a")])
    rows = [Row("t", "id-t", 0, (1, 4, 2, 3), (1, 4, 2, 10))]
    asked = Asked("drain", frozenset({3}), fewer_racks=True)
    assert failed(rows, cluster, asked)["spread over racks"] == "t-0 would have 3 replicas in rack a and 0 in c."


def test_a_replica_larger_than_any_directory__is_found() -> None:
    two = replace(broker(6), dirs=(Directory("/a", 1000, 790), Directory("/b", 1000, 785)))
    cluster = topology({"t": [[1, 2, 3]]}, [broker(1), broker(2), broker(3), two], size=20)
    rows = [Row("t", "id-t", 0, (1, 2, 3), (1, 2, 6))]
    assert failed(rows, cluster)["disk"] == "No directory of broker 6 has room for a replica of 20 B."


def test_totals_of_another_plan__are_found() -> None:
    rules = check(PLAN, CLUSTER, ASKED, impact_of(PLAN[1:], CLUSTER))
    assert rules[-1].passed is False
    assert rules[-1].problems == (
        "The rows copy 30 B; the report says 20 B.",
        "There are 3 rows; the report says 2.",
        "Broker 6 gets 30 B; the report says 20 B.",
    )


def test_what_cannot_be_judged__is_neither_passed_nor_failed() -> None:
    own = [broker(1), broker(2), broker(3), broker(6, used=None), replace(broker(4), rack=None)]
    cluster = topology({"t": [[1, 2, 3]]}, own)
    rules = {r.name: r for r in check([Row("t", "id-t", 0, (1, 2, 3), (1, 2, 6))], cluster, ASKED)}
    assert (rules["disk"].passed, rules["disk"].problems) == (
        None,
        ("The disk of broker 6 is not known. See on the broker's page why it is not read.",),
    )
    assert (rules["spread over racks"].passed, rules["spread over racks"].problems) == (
        None,
        ("Brokers without a rack: 4. Set broker.rack there, or look at the spread yourself.",),
    )


def test_many_problems__are_counted_where_they_are_not_listed() -> None:
    cluster = topology({"t": [[1, 2, 3]] * 150}, OWN)
    rows = [Row("t", "id-t", n, (1, 2, 3), (1, 2)) for n in range(150)]
    rule = check(rows, cluster, ASKED)[1]
    assert (len(rule.problems), rule.problems[-1], rule.figure) == (101, "And 50 more.", "0 of 150")


@given(clusters(), st.data())
def test_every_drain_of_any_cluster__passes(cluster: Topology, data: st.DataObject) -> None:
    leaving = tuple(sorted(data.draw(st.sets(st.sampled_from(sorted(cluster.brokers)), min_size=1, max_size=3))))
    accept = data.draw(st.booleans())
    request = PlanRequest(DRAIN, leaving, disk_limit=0.9, accept_fewer_racks=accept)
    planned = plan(cluster, request)
    assume(not planned.problems)
    asked = Asked("drain", frozenset(leaving), disk_limit=0.9, fewer_racks=accept)
    rules = check(planned.rows, cluster, asked, impact_of(planned.rows, cluster))
    assert [rule for rule in rules if not rule.passed] == []


@given(clusters(racks=True), st.data())
def test_a_drain_with_one_target_changed_to_something_else_that_stays__never_passes(
    cluster: Topology, data: st.DataObject
) -> None:
    planned = plan(cluster, PlanRequest(DRAIN, (1,), accept_fewer_racks=True))
    assume(planned.rows)
    index = data.draw(st.integers(0, len(planned.rows) - 1))
    row = planned.rows[index]
    kept = [b for b in row.current if b != 1]
    assume(kept)
    gone = data.draw(st.sampled_from(kept))
    free = [b for b in sorted(cluster.brokers) if b not in row.target and b not in row.current]
    assume(free)
    target = tuple(free[0] if b == gone else b for b in row.target)
    rows = [*planned.rows[:index], replace(row, target=target), *planned.rows[index + 1 :]]
    assert "only what was asked" in failed(rows, cluster, Asked("drain", frozenset({1}), fewer_racks=True))
