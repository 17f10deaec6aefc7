"""A broker that does not answer is said to be so on every page, although the controllers still have it alive."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import BrokerState
from tests.factories import NOW, judged, watched
from tests.pages.conftest import Page
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
        ("/", "demo has broker 2 that does not answer, and nobody has it."),
        ("/clusters/demo/", "demo has broker 2 that does not answer, and nobody has it."),
        ("/clusters/demo/brokers/", "Broker 2 does not answer; 2 brokers are up."),
        ("/clusters/demo/brokers/2/", "Broker 2 does not answer: the 79 partitions that it leads are not served."),
        ("/clusters/demo/topics/", "Cannot tell how all topics of demo are: broker 2 does not answer."),
        ("/clusters/demo/topics/orders/", "1 of 2 partitions of orders has a leader that does not answer."),
        ("/clusters/demo/topics/apart/", "The only partition of apart has all its replicas in sync."),
        ("/clusters/demo/racks/", "Cannot tell how all of demo lies over its racks: broker 2 does not answer."),
    ],
)
def test_title_says_it(demo: Cluster, get_page: GetPage, path: str, title: str) -> None:
    assert get_page(path).title == title


@pytest.mark.parametrize("path", ["drill/", "drill/?broker=1"])
def test_drill_says_that_its_answer_leaves_it_out(demo: Cluster, get_page: GetPage, path: str) -> None:
    assert "; but broker 2 does not answer" in get_page(f"/clusters/demo/{path}").title


def test_board_and_overview_count_the_brokers_that_are_up(demo: Cluster, get_page: GetPage) -> None:
    assert "2 of 3 brokers" in get_page("/").words("status-demo")
    assert "2 of 3 1 does not answer" in get_page("/clusters/demo/").words("figures-demo")


def test_partitions_of_a_topic_are_none_of_them_ok(demo: Cluster, get_page: GetPage) -> None:
    shown = get_page("/clusters/demo/topics/orders/")
    assert "Leader does not answer" in shown.text
    assert "Cannot tell" in shown.text
    assert 'data-state="ok"' not in shown.html[shown.html.index("<main") :]


def test_list_of_brokers_can_be_narrowed_to_it(demo: Cluster, get_page: GetPage) -> None:
    shown = get_page("/clusters/demo/brokers/?state=silent")
    assert "Silent 1" in shown.words("broker-list-demo")
    assert "Does not answer" in shown.words("broker-list-demo")
