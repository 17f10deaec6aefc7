"""Who would be sent what now: rows and cells by the rules of routes, and the table of the page."""

from __future__ import annotations

from datetime import UTC, datetime, time

import pytest

from kafkadash.clusters.models import Cluster, Role
from kafkadash.notifications.kinds import KnownKind
from kafkadash.notifications.models import NotificationTarget
from kafkadash.notifications.rules import (
    CoverageCell,
    CoverageRow,
    ReceiverFilters,
    RouteFilter,
    RouteHours,
    SentChanges,
    list_coverage,
)
from tests.conftest import new_user, signed_in
from tests.notifications.conftest import MakeTarget
from tests.pages.conftest import Page

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
KINDS = (
    KnownKind("offline", "Offline partitions", "critical"),
    KnownKind("broker-down", "Broker down", "critical"),
    KnownKind("unreachable", "Cluster unreachable", "unknown"),
    KnownKind("leader-skew", "Leader skew", "warning"),
    KnownKind("own-task", "Task overdue", "warning", own=True),
)
CLUSTERS = ((1, "audit"), (2, "billing"), (3, "carts"))


def cover(**filters: list[RouteFilter]) -> list[CoverageRow]:
    receivers = [ReceiverFilters(number, name, own) for number, (name, own) in enumerate(filters.items(), 1)]
    return list_coverage(receivers, CLUSTERS, KINDS, NOON)


def names(cell: CoverageCell) -> list[str]:
    return [f"{each.name}{'*' if each.some_kinds else ''}" for each in cell.receivers]


def test_clusters_with_the_same_receivers__are_one_row_and_uncovered_ones_come_first() -> None:
    uncovered, covered, own = cover(
        ops=[RouteFilter(cluster=1, severity="critical"), RouteFilter(cluster=3, severity="critical")]
    )
    assert (uncovered.clusters, covered.clusters, own.clusters) == (("billing",), ("audit", "carts"), ())
    assert (names(uncovered.critical), uncovered.critical.missed) == ([], 2)
    assert (names(covered.critical), covered.critical.missed) == (["ops"], 0)
    assert (names(covered.warning), covered.warning.missed) == ([], 1)
    assert (names(own.warning), own.warning.missed) == ([], 1)


def test_route_of_all_clusters__covers_kafkadash_itself() -> None:
    every, own = cover(ops=[RouteFilter()])
    assert every.clusters == ("audit", "billing", "carts")
    assert names(own.warning) == ["ops"]
    assert [cell.kinds for cell in (own.critical, own.unknown, own.waiting_changes, own.other_changes)] == [0] * 4


def test_some_kinds__are_marked_and_the_others_missed() -> None:
    kinds = [RouteFilter(kinds=frozenset({"offline", "leader-skew"}))]
    row, own = cover(ops=kinds)
    assert (names(row.critical), row.critical.missed) == (["ops*"], 1)
    assert (names(row.warning), row.warning.missed) == (["ops"], 0)
    assert (names(row.unknown), names(own.warning)) == ([], [])
    both, _ = cover(ops=[*kinds, RouteFilter(kinds=frozenset({"broker-down"}))])
    assert names(both.critical) == ["ops"]


def test_changes__that_wait_and_others() -> None:
    row, _ = cover(
        approvers=[RouteFilter(findings=False, changes=SentChanges.WAITING)],
        everybody=[RouteFilter(findings=False, changes=SentChanges.ALL)],
    )
    assert names(row.waiting_changes) == ["approvers", "everybody"]
    assert (names(row.other_changes), names(row.critical)) == (["everybody"], [])


def test_hours__count() -> None:
    row, _ = cover(
        days=[RouteFilter(hours=RouteHours(begins=time(8), ends=time(18)))],
        nights=[RouteFilter(hours=RouteHours(begins=time(18), ends=time(8)))],
    )
    assert names(row.critical) == ["days"]


@pytest.mark.django_db
def test_page__many_clusters_and_a_disabled_receiver(make_target: MakeTarget) -> None:
    clusters = [Cluster.objects.create(name=f"c{number:02}", slug=f"c{number:02}") for number in range(12)]
    make_target(cluster=clusters[5])
    make_target(changes="all")
    NotificationTarget.objects.filter(name="webhook 1").update(enabled=False)
    page = Page.read(signed_in(new_user("ada", Role.ADMIN)).get("/settings/notifications/"))
    uncovered, covered, own = (line.row for line in page.context["coverage"])
    assert (len(uncovered.clusters), covered.clusters, own.clusters) == (11, ("c05",), ())
    assert [names(row.critical) for row in (uncovered, covered, own)] == [[], ["webhook 0"], []]
    marked = page.find("[aria-labelledby=h-coverage] [data-state=critical]")
    assert len(marked) == 1, "the cell of the eleven; kafkadash itself has no critical findings"
