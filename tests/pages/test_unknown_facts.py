"""A broker that does not answer is said to be so on every page, although the controllers still have it alive.

Kafka leaves topics that our principal may not describe out of every list: nothing is OK as long as there are any.

After the database's clock was set back, nobody can tell whether what was read before that is true still.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.models import BrokerState, CollectorKind, CollectorRun
from kafkadash.monitoring.partitions import PartitionTrouble
from tests.factories import NOW, judged, watched
from tests.pages.conftest import Page, figures_of
from tests.pages.test_drill import topic

pytestmark = pytest.mark.django_db
GetPage = Callable[[str], Page]


@pytest.fixture
def demo(db: None) -> Cluster:
    cluster = watched("demo", rack_violations=0)
    topic(cluster, "orders", [1, 2, 3], [2, 3, 1], rack_violations=0)
    topic(cluster, "apart", [1, 3], rack_violations=0)
    BrokerState.objects.filter(cluster=cluster, broker_id=2).update(silent_since=NOW - timedelta(seconds=4))
    judged(cluster)
    return cluster


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/", "Broker 2 is unreachable on demo (unacknowledged)"),
        ("/clusters/demo/", "Broker 2 is unreachable on demo (unacknowledged)"),
        ("/clusters/demo/brokers/", "demo: broker 2 unreachable; 2 up"),
        ("/clusters/demo/brokers/2/", "Broker 2 is unreachable, 79 partitions not served"),
        ("/clusters/demo/topics/", "demo: topic state unknown; broker 2 is unreachable"),
        ("/clusters/demo/topics/orders/", "orders: 1 of 2 partitions with unreachable leader"),
        ("/clusters/demo/topics/apart/", "apart: 1 of 1 partition in sync"),
        ("/clusters/demo/racks/", "demo: rack spread unknown, broker 2 is unreachable"),
    ],
)
def test_title_says_it(demo: Cluster, get_page: GetPage, path: str, title: str) -> None:
    assert get_page(path).title == title


@pytest.mark.parametrize("path", ["drill/", "drill/?broker=1"])
def test_drill_says_that_its_answer_leaves_it_out(demo: Cluster, get_page: GetPage, path: str) -> None:
    assert figures_of(get_page(f"/clusters/demo/{path}").title)[-1] == "2"


def test_board_and_overview_count_the_brokers_that_are_up(demo: Cluster, get_page: GetPage) -> None:
    assert get_page("/").figures("#status-demo .inline-facts")[1:3] == ["2", "3"]
    tile = get_page("/clusters/demo/").first("#figures-demo .stat-tile")
    assert tile.get("data-state") == "critical"
    assert figures_of(tile.text)[:3] == ["2", "3", "1"]


def test_partitions_of_a_topic_are_none_of_them_ok(demo: Cluster, get_page: GetPage) -> None:
    shown = get_page("/clusters/demo/topics/orders/")
    assert PartitionTrouble.LEADER_SILENT.value in shown.text
    assert PartitionTrouble.IN_DOUBT.value in shown.text
    assert 'data-state="ok"' not in shown.html[shown.html.index("<main") :]


def test_list_of_brokers_can_be_narrowed_to_it(demo: Cluster, get_page: GetPage) -> None:
    shown = get_page("/clusters/demo/brokers/?state=silent")
    assert "Unreachable 1" in shown.words("broker-list-demo")
    assert "Unreachable" in shown.words("broker-2")


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
    assert "demo" in shown.title
    assert "unknown" in shown.states("main [data-state]")
    assert 'data-state="ok"' not in shown.html[shown.html.index("<main") : shown.html.index("finding-row")]


def test_tally__topics_are_hidden__counts_the_cluster_as_unknown(partly_seen: Cluster, get_page: GetPage) -> None:
    assert "1 cluster unknown" in get_page("/").words("board-head")


def test_topics__none_is_shown__are_not_said_to_be_none(partly_seen: Cluster, get_page: GetPage) -> None:
    assert figures_of(get_page("/clusters/demo/topics/").title) == ["2"]


@pytest.mark.parametrize("path", ["topics/", "racks/", "drill/", "drill/?broker=1"])
def test_page_of_partitions__topics_are_hidden__is_not_green(
    partly_seen: Cluster, get_page: GetPage, path: str
) -> None:
    topic(partly_seen, "orders", [1, 2, 3], rack_violations=0)
    shown = get_page(f"/clusters/demo/{path}")
    assert "2" in figures_of(shown.title)
    assert 'data-state="ok"' not in shown.html[shown.html.index("<main") : shown.html.rindex("</h1>")]


def test_drill__topics_are_hidden__has_no_green_tile(partly_seen: Cluster, get_page: GetPage) -> None:
    topic(partly_seen, "orders", [1, 2, 3])
    shown = get_page("/clusters/demo/drill/?broker=1")
    assert 'data-state="ok"' not in shown.html[shown.html.index("<main") :]


@pytest.mark.parametrize("path", ["brokers/", "topics/", "topics/orders/", "racks/", "drill/"])
def test_page_of_metadata_from_the_future__is_not_green(get_page: Callable[[str], Page], path: str) -> None:
    cluster = watched("ahead")
    topic(cluster, "orders", [1, 2, 3])
    assert 'data-state="ok"' in get_page("/clusters/ahead/brokers/").html
    ahead = NOW + timedelta(hours=1)
    CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.METADATA).update(succeeded_at=ahead)

    shown = get_page(f"/clusters/ahead/{path}")

    assert 'data-state="ok"' not in shown.html[shown.html.index("<main") :]
