"""Kafka leaves topics that our principal may not describe out of every list: nothing is OK as long as there are any."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkadash.clusters.models import Cluster
from tests.factories import judged, watched
from tests.pages.conftest import Page
from tests.pages.test_drill import topic

pytestmark = pytest.mark.django_db
GetPage = Callable[[str], Page]


@pytest.fixture
def partly_seen(db: None) -> Cluster:
    cluster = watched("demo", hidden_topics=2, rack_violations=0)
    judged(cluster)
    return cluster


@pytest.mark.parametrize("path", ["/", "/clusters/demo/"])
def test_board_and_overview__topics_are_hidden__say_that_they_cannot_tell(
    partly_seen: Cluster, get_page: GetPage, path: str
) -> None:
    shown = get_page(path)
    assert shown.title == "Cannot tell about demo: some topics are hidden."
    assert 'data-state="ok"' not in shown.html[shown.html.index("<main") : shown.html.index("finding-row")]


def test_tally__topics_are_hidden__counts_the_cluster_as_unknown(partly_seen: Cluster, get_page: GetPage) -> None:
    assert "1 cluster unknown" in get_page("/").words("board-head")


def test_topics__none_is_shown__are_not_said_to_be_none(partly_seen: Cluster, get_page: GetPage) -> None:
    assert get_page("/clusters/demo/topics/").title == "demo shows no topics: at least 2 topics are hidden."


@pytest.mark.parametrize("path", ["topics/", "racks/", "drill/", "drill/?broker=1"])
def test_page_of_partitions__topics_are_hidden__is_not_green(
    partly_seen: Cluster, get_page: GetPage, path: str
) -> None:
    topic(partly_seen, "orders", [1, 2, 3], rack_violations=0)
    shown = get_page(f"/clusters/demo/{path}")
    assert "at least 2 topics are hidden" in shown.title
    assert 'data-state="ok"' not in shown.html[shown.html.index("<main") : shown.html.rindex("</h1>")]


def test_drill__topics_are_hidden__has_no_green_tile(partly_seen: Cluster, get_page: GetPage) -> None:
    topic(partly_seen, "orders", [1, 2, 3])
    shown = get_page("/clusters/demo/drill/?broker=1")
    assert 'data-state="ok"' not in shown.html[shown.html.index("<main") :]
