"""The map of racks, the violations and what fixes them; racks that cannot be judged are said to be so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import BrokerState, BrokerWeights, ClusterState
from tests.factories import (
    GB,
    NOW,
    BrokerFactory,
    ClusterFactory,
    ReassignmentFactory,
    TopicFactory,
    directory,
    silent,
    watched,
)
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]
URL = "/clusters/demo/racks/"


@pytest.fixture
def demo(db: None) -> Cluster:
    """Brokers 1, 2, 3 in racks b, c, a; broker 4 in rack b too."""
    demo = watched("demo", rack_violations=0, partitions=478)
    BrokerFactory.create(cluster=demo, broker_id=4, rack="eu-1b")
    return demo


def test_all_are_spread(get_page: GetPage, demo: Cluster) -> None:
    page = get_page(URL)
    assert page.title == "All 478 partitions of demo are spread over 3 racks as evenly as they can be."
    assert "None: no rack holds more than its share" in page.words("rack-violations-demo")
    assert page.words("rack-2").startswith("eu-1b 2 brokers, 458 replicas broker 1 229 replicas 79 leaders 667.0 GB")
    assert page.order_of("cell-1", "cell-2", "cell-3", "cell-4") == ["cell-3", "cell-1", "cell-4", "cell-2"]


def test_violations_by_topic_with_what_fixes_them(get_page: GetPage, demo: Cluster) -> None:
    TopicFactory.create(
        cluster=demo,
        name="clicks",
        topic_id="clicks",
        rack_violations=2,
        partitions=[
            [0, 1, 5, [1, 2, 3], [1, 2, 3], []],  # even
            [1, 1, 5, [1, 4], [1, 4], []],  # one rack instead of two
            [2, 1, 5, [1, 4, 2], [1, 4, 2], []],  # two racks instead of three
        ],
    )
    ClusterState.objects.update(rack_violations=2)
    page = get_page(URL)
    assert page.title == "2 of 478 partitions are not spread over 3 racks as evenly as could be."
    assert page.words("violating-clicks") == "clicks 2 of 3 partitions 2 moves fix them"
    assert page.words("violation-clicks-1").startswith("clicks-1 1 b broker 1, leader 4 b broker 4")
    assert page.words("violation-clicks-1").endswith("1 of 2 possible needs one more rack")
    assert page.words("violation-clicks-2").endswith("2 of 3 possible needs one more rack")
    assert not page.has("violation-clicks-0")
    assert "2 violations" in page.words("cell-1")
    assert 'data-state="warning"' in page.start_tag("cell-4")
    assert "violation" not in page.words("cell-2")


def test_a_crowded_rack_is_named(get_page: GetPage, demo: Cluster) -> None:
    BrokerFactory.create(cluster=demo, broker_id=5, rack="eu-1b")
    TopicFactory.create(
        cluster=demo,
        name="wide",
        topic_id="wide",
        rack_violations=1,
        partitions=[[0, 1, 5, [1, 4, 5, 2, 3], [1, 4, 5, 2, 3], []]],
    )
    words = get_page(URL).words("violation-wide-0")
    assert words.endswith("crowded: eu-1b 1 move fixes it")


def test_a_moving_partition_is_judged_by_where_it_goes(get_page: GetPage, demo: Cluster) -> None:
    """Leaving the second replica of a rack is the repair, going there is a violation to come."""
    TopicFactory.create(
        cluster=demo,
        name="t",
        topic_id="t",
        rack_violations=1,
        partitions=[[0, 1, 5, [1, 2, 4], [1, 4], []], [1, 1, 5, [1, 4, 3], [1, 3], []]],
    )
    ReassignmentFactory.create(cluster=demo, topic="t", topic_id="t", partition=0, adding=[2], removing=[4])
    ReassignmentFactory.create(cluster=demo, topic="t", topic_id="t", partition=1, adding=[4], removing=[3])
    page = get_page(URL)
    assert not page.has("violation-t-0")
    assert page.has("violation-t-1")


@pytest.mark.parametrize(
    ("racks", "title", "advice"),
    [
        ((None, None, None), "Racks of demo cannot be judged: no broker names its rack.", "broker.rack"),
        (("a", None, "b"), "Racks of demo cannot be judged: broker 2 names no rack.", "broker.rack"),
        ((None, None, "b"), "Racks of demo cannot be judged: brokers 1 and 2 name no rack.", "broker.rack"),
        (("a", "a", "a"), "All brokers of demo are in one rack: losing it loses the cluster.", "With a second rack"),
    ],
)
def test_racks_that_cannot_be_judged(get_page: GetPage, racks: tuple[str | None, ...], title: str, advice: str) -> None:
    demo = watched("demo", rack_violations=None)
    for number, rack in enumerate(racks, 1):
        BrokerState.objects.filter(cluster=demo, broker_id=number).update(rack=rack)
    TopicFactory.create(cluster=demo, rack_violations=None)
    page = get_page(URL)
    assert page.title == title
    assert advice in page.text
    assert not page.has("rack-violations-demo")
    assert all(page.has(f"cell-{n}") for n in (1, 2, 3))


def test_names_with_spaces_and_of_any_script(get_page: GetPage, demo: Cluster) -> None:
    for broker, rack in ((1, "Halle Süd, Reihe 4"), (2, "機架 二"), (3, ""), (4, "<b>&")):
        BrokerState.objects.filter(broker_id=broker).update(rack=rack)
    page = get_page(URL)
    assert "Halle Süd, Reihe 4 1 broker" in page.text
    assert "機架 二" in page.text
    assert "“” (an empty name)" in page.text
    assert "<b>&" in page.text


def test_a_broker_that_is_away_is_marked_and_the_fullest_directory_shown(get_page: GetPage, demo: Cluster) -> None:
    BrokerState.objects.filter(broker_id=2).update(fenced=True)
    BrokerWeights.objects.filter(broker_id=1).update(
        dirs=[directory(usable=1900 * GB), directory(usable=100 * GB), directory(total=None, usable=None)]
    )
    page = get_page(URL)
    assert "Fenced" in page.words("cell-2")
    assert 'data-state="critical"' in page.start_tag("cell-2")
    assert 'aria-label="95.0 percent"' in page.part("cell-1")
    assert "size not read" in page.words("cell-4")


def test_of_very_many_brokers_only_those_that_matter_have_cells(get_page: GetPage, demo: Cluster) -> None:
    BrokerState.objects.bulk_create(BrokerFactory.build(cluster=demo, broker_id=n) for n in range(100, 400))
    TopicFactory.create(cluster=demo, rack_violations=1, partitions=[[0, 1, 5, [1, 4], [1, 4], []]])
    page = get_page(URL)
    assert page.has("cell-1")
    assert not page.has("cell-100")
    assert "and 100 more without a violation: list" in page.words("rack-2")
    assert 'href="/clusters/demo/brokers/?rack=eu-1b"' in page.part("rack-2")


def test_topics_are_filtered_and_paged_by_address(get_page: GetPage, demo: Cluster) -> None:
    for n in range(25):
        TopicFactory.create(
            cluster=demo,
            name=f"t{n:02}",
            topic_id=f"t{n}",
            rack_violations=1,
            partitions=[[0, 1, 5, [1, 4], [1, 4], []]],
        )
    page = get_page(URL + "?page=2")
    assert "21–25 of 25" in page.text
    assert page.has("violating-t24")
    page = get_page(URL + "?q=t07")
    assert page.has("violating-t7")
    assert not page.has("violating-t8")
    assert "No violating topic is called like that." in get_page(URL + "?q=nowhere").text


def test_old_and_never(get_page: GetPage, demo: Cluster) -> None:
    silent(demo, NOW - timedelta(minutes=12), error="refused")
    page = get_page(URL)
    assert page.title == "Cannot tell how demo lies over its racks: it was last seen 12 min ago."
    assert "data-stale" in page.start_tag("rack-map-demo")
    assert "Was up" in page.words("cell-1")
    ClusterFactory.create(name="never")
    page = get_page("/clusters/never/racks/")
    assert page.title == "Cannot tell how never lies over its racks: nothing was collected yet."
    assert "No broker was seen yet." in page.text
