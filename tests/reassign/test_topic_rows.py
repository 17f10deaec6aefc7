"""All rows of one topic of a plan, at an address of their own."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.domain.impact_of import impact_of
from tests.factories import watched
from tests.pages.conftest import Page
from tests.reassign.plans import drained, planned, world

pytestmark = pytest.mark.django_db


@pytest.fixture
def demo() -> Cluster:
    return watched("demo")


@pytest.fixture
def get(viewer: User, client_of: Callable[[User], Client]) -> Callable[[str], Page]:
    client = client_of(viewer)

    def page(address: str) -> Page:
        response = client.get(address)
        assert response.status_code == 200
        return Page(response.content.decode())

    return page


def address(cluster: Cluster, partitions: int) -> str:
    topology = world({"orders": [[3, 1, 2], [1, 2, 3]] * (partitions // 2), "clicks": [[3, 5]]})
    rows = drained(topology, 3, instead=6)
    return f"/changes/{planned(cluster, topology, rows, impact=impact_of(rows, topology)).pk}/topics/orders/"


def test_a_plan_that_was_dropped_has_no_rows(demo: Cluster, viewer: User, client_of: Callable[[User], Client]) -> None:
    where = address(demo, 2)
    ChangeRequest.objects.update(artifact=None, digest="")
    assert client_of(viewer).get(where).status_code == 404


def test_a_name_that_no_topic_can_have_is_not_found(
    demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    where = address(demo, 2).replace("orders", "a%00b")
    assert client_of(viewer).get(where).status_code == 404
    assert client_of(viewer).get("/clusters/demo/topics/a%00b/").status_code == 404


def names(page: Page) -> list[str]:
    return re.findall(r'partition-name">(orders-\d+)</td>', page.html)


def test_the_title_says_how_many_move_and_every_row_is_on_one_of_its_pages(
    demo: Cluster, get: Callable[[str], Page]
) -> None:
    where = address(demo, 240)
    assert get(where).title == "orders : 240 of 240 partitions move, 720.0 GB."
    found = [name for number in (1, 2, 3) for name in names(get(f"{where}?page={number}"))]
    assert found == [f"orders-{n}" for n in range(240)]


def test_exceptions_and_brokers_filter_by_address(demo: Cluster, get: Callable[[str], Page]) -> None:
    where = address(demo, 4)
    assert names(get(f"{where}?rows=exceptions")) == ["orders-0"], "the largest move is the only exception"
    assert len(names(get(f"{where}?on=6"))) == 4
    nothing = get(f"{where}?on=5")
    assert names(nothing) == []
    assert "No row is like that." in nothing.text


def test_a_topic_that_is_not_in_the_plan_is_not_there(
    demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    where = address(demo, 4).replace("orders", "payments")
    assert client_of(viewer).get(where).status_code == 404


def test_more_rows_cost_no_more_queries(demo: Cluster, get: Callable[[str], Page]) -> None:
    counts = []
    for partitions in (4, 400):
        where = address(demo, partitions)
        with CaptureQueriesContext(connection) as queries:
            get(where)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 10
