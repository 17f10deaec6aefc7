"""A finished plan as rows: nothing is lost, the largest comes first, a new plan takes the place of the old."""

from __future__ import annotations

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.reassign.models import PlanTopic
from kafkadash.reassign.plan_store import first_exceptions_of, first_rows_of, rows_of, store_report
from tests.factories import GB
from tests.reassign.plans import counted, drained, planned, report_of, world

pytestmark = pytest.mark.django_db

WORLD = world(
    {
        "orders": [[3, 1, 2], [1, 2, 4], [2, 3, 1], [3, 5, 4], [4, 5, 3], [3, 4, 2], [2, 1, 3]],
        "clicks": [[3, 5], [1, 2]],
    }
)
ROWS = drained(WORLD, 3, instead=6)


def test_every_row_of_the_plan_is_in_its_topic_with_its_size_and_leader(cluster: Cluster) -> None:
    change = planned(cluster, WORLD, ROWS)
    stored = [row for topic in report_of(change).topics.all() for row in rows_of(topic)]
    assert {(r.topic, r.partition, r.current, r.target) for r in stored} == {
        (r.topic, r.partition, r.current, r.target) for r in ROWS
    }
    assert {r.copied_bytes for r in stored} == {3 * GB}
    assert all(r.leader == r.current[0] for r in stored)


def test_the_topic_that_copies_most_comes_first(cluster: Cluster) -> None:
    change = planned(cluster, WORLD, ROWS)
    assert [(t.ordinal, t.topic, t.topic_id) for t in report_of(change).topics.all()] == [
        (0, "orders", "id-of-orders"),
        (1, "clicks", "id-of-clicks"),
    ]


def test_what_is_an_exception_stands_first_in_the_fold_and_in_the_order_of_the_impact_on_the_page(
    cluster: Cluster,
) -> None:
    reasons = {("orders", 6): ("largest move",), ("clicks", 0): ("2 replicas only",)}
    report = report_of(planned(cluster, WORLD, ROWS, reasons=reasons))
    orders = report.topics.get(topic="orders")
    assert [row.partition for row in first_rows_of(orders)] == [6, 0, 2, 3, 4]
    assert orders.exceptions == 1
    assert report.exceptions == 2
    assert [(row.name, row.why) for row in first_exceptions_of(report)] == [
        ("orders-6", ("largest move",)),
        ("clicks-0", ("2 replicas only",)),
    ]


def test_a_size_that_nobody_knew_stays_unknown_but_no_copy_is_nothing(cluster: Cluster) -> None:
    unsized = world({"orders": [[3, 1, 2], [1, 2, 4]]}, size=None)
    moved, reordered = drained(unsized, 3, instead=6)[0], drained(unsized, 1, instead=5)[1]
    rows = (moved, type(reordered)("orders", "id-of-orders", 1, (1, 2, 4), (4, 2, 1)))
    report = report_of(planned(cluster, unsized, rows))
    assert [row.copied_bytes for row in rows_of(report.topics.get())] == [None, 0]
    assert report.impact["copied_bytes"] is None


def test_a_new_plan_takes_the_place_of_the_old(cluster: Cluster) -> None:
    change = planned(cluster, WORLD, ROWS)
    assert change.artifact
    store_report(change, change.artifact, ROWS[:1], counted(WORLD, ROWS[:1]), [["rule", True, "", []]], 1.5, WORLD)
    report = report_of(change)
    assert PlanTopic.objects.count() == 1
    assert report.took_s == 1.5
    assert report.rules == [["rule", True, "", []]]
