"""All topics, and one: filters, orders and pages by address, and states in the words of Kafka's own tools."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.observe.models import BrokerState, BrokerWeights, Kind, TopicState
from tests.factories import (
    GB,
    NOW,
    ClusterFactory,
    ReassignmentFactory,
    ThrottleFactory,
    TopicFactory,
    silent,
    watched,
)
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]
URL = "/clusters/demo/topics/"
WELL = [1, 2, 3]


@pytest.fixture
def demo(db: None) -> Cluster:
    return watched("demo")


@pytest.fixture
def some(demo: Cluster) -> Cluster:
    """One topic of each kind; their ids say which."""
    for id_, partitions, fields in (
        ("well", [[0, 1, 5, WELL, WELL, []]], {"name": "a.well", "size_bytes": 3 * GB}),
        ("offline", [[0, None, 5, [2], [2], [2]]], {"name": "b.offline", "size_bytes": None, "replication_factor": 1}),
        ("under", [[0, 1, 5, WELL, [1], []], [1, 1, 5, WELL, [1], []]], {"name": "c.under", "size_bytes": 9 * GB}),
        ("at", [[0, 1, 5, WELL, [1, 2], []]], {"name": "d.at"}),
        ("rack", [[0, 1, 5, WELL, WELL, []]], {"name": "e.rack", "rack_violations": 1}),
        ("own", [[0, 1, 5, WELL, WELL, []]], {"name": "__own", "internal": True, "size_bytes": 1}),
    ):
        TopicFactory.create(cluster=demo, topic_id=id_, partitions=partitions, **fields)
    ReassignmentFactory.create(cluster=demo, topic="a.well", partition=0)
    return demo


IDS = ["well", "offline", "under", "at", "rack", "own"]


def shown(page: Page) -> list[str]:
    return [i.removeprefix("topic-") for i in page.order_of(*(f"topic-{i}" for i in IDS))]


def test_all_are_well(get_page: GetPage, demo: Cluster) -> None:
    TopicFactory.create(cluster=demo, name="orders")
    TopicFactory.create(cluster=demo, name="clicks")
    assert get_page(URL).title == "All 2 topics of demo have all their replicas in sync."


def test_what_is_wrong_is_the_answer(get_page: GetPage, some: Cluster) -> None:
    page = get_page(URL)
    assert page.title == "Of 6 topics, 1 has offline partitions and 2 are under min-ISR."
    assert page.words("topic-offline") == "b.offline 1 offline 1 under min-ISR 1 1 2 0.0 % unknown 01:56:04"
    assert page.words("topic-under") == "c.under 2 under min-ISR 2 under-replicated 2 3 2 100.0 % 9.0 GB 01:56:04"
    assert "in sync 1 moving" in page.words("topic-well")
    assert "All 6 Offline 1 Under min-ISR 2 At min-ISR 1 Under-replicated 2 Rack violation 1 Moving 1" in page.text


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", ["own", "well", "offline", "under", "at", "rack"]),
        ("?state=offline", ["offline"]),
        ("?state=under-min-isr", ["offline", "under"]),
        ("?state=at-min-isr", ["at"]),
        ("?state=under-replicated", ["under", "at"]),
        ("?state=racks", ["rack"]),
        ("?state=moving", ["well"]),
        ("?internal=only", ["own"]),
        ("?internal=hide&q=a", ["well", "at", "rack"]),
        ("?q=UNDER", ["under"]),
        ("?q=%25", []),
        ("?q=_", ["own"]),
        ("?sort=-name", ["rack", "at", "under", "offline", "well", "own"]),
        ("?sort=-size&q=.", ["at", "rack", "under", "well", "offline"]),
        ("?sort=size&internal=only", ["own"]),
        ("?sort=-partitions&state=under-min-isr", ["under", "offline"]),
        ("?sort=rf&state=under-min-isr", ["offline", "under"]),
    ],
)
def test_filters_and_orders_are_addresses(get_page: GetPage, some: Cluster, query: str, ids: list[str]) -> None:
    assert sorted(shown(get_page(URL + query)), key=IDS.index) == sorted(ids, key=IDS.index)
    if "sort" in query:
        assert shown(get_page(URL + query)) == ids


def test_what_was_built_at_min_isr_is_found_and_is_no_warning(get_page: GetPage, demo: Cluster) -> None:
    TopicFactory.create(cluster=demo, topic_id="tight", name="tight", min_isr=3)
    TopicFactory.create(cluster=demo, topic_id="loose", name="loose", partitions=[[0, 1, 5, WELL, [1, 2], []]])
    page = get_page(URL + "?state=at-min-isr")
    assert page.words("topic-tight").startswith("tight in sync 1")
    assert page.words("topic-loose").startswith("loose 1 at min-ISR 1 under-replicated")


def test_replicas_that_a_move_copies_are_expected(get_page: GetPage) -> None:
    demo = watched("demo", under_replicated=2, under_replicated_moving=2)
    moving = [[0, 1, 5, [1, 2, 3], [1, 2], []], [1, 1, 5, [1, 2, 3], [1, 2], []]]
    TopicFactory.create(cluster=demo, topic_id="t", name="t", partitions=moving, min_isr=1)
    for partition in (0, 1):
        ReassignmentFactory.create(cluster=demo, topic="t", partition=partition, adding=[3], removing=[])
    page = get_page(URL)
    assert page.title == "Of 1 topic, 1 is under-replicated, waiting for moves."
    assert page.words("topic-t").startswith("t 2 catching up 2 moving")
    lost = [[0, 1, 5, [1, 2, 3], [1, 2], []], [1, 1, 5, [1, 2, 3], [1, 3], []]]  # the second misses another replica
    TopicState.objects.update(partitions=lost)
    demo.state.under_replicated_moving = 1
    demo.state.save()
    page = get_page(URL)
    assert page.title == "Of 1 topic, 1 is under-replicated."
    assert page.words("topic-t").startswith("t 1 under-replicated 2 moving")


def test_an_unknown_size_comes_last_whichever_way(get_page: GetPage, some: Cluster) -> None:
    assert shown(get_page(URL + "?sort=size"))[-1] == "offline"
    assert shown(get_page(URL + "?sort=-size"))[-1] == "offline"


def test_the_head_of_the_sorted_column_turns_the_order(get_page: GetPage, some: Cluster) -> None:
    html = get_page(URL + "?sort=-size&q=a").html
    assert 'aria-sort="descending"><a href="?q=a&amp;sort=size">Size</a>' in html
    assert '<a href="?q=a&amp;sort=-partitions">Partitions</a>' in html


def test_a_filter_that_leaves_nothing_says_so(get_page: GetPage, some: Cluster) -> None:
    assert "No topic is like that. demo has 6 topics" in get_page(URL + "?q=nowhere").text


def test_min_isr_that_was_not_read_is_not_zero(get_page: GetPage, demo: Cluster) -> None:
    unread = {"min_isr": None, "under_min_isr": None, "at_min_isr": None, "config": None, "rack_violations": None}
    TopicFactory.create(cluster=demo, topic_id="own", name="orders", preferred_leaders=None, size_bytes=None, **unread)
    demo.collector_runs.filter(kind=Kind.CONFIGS).update(
        failures=1,
        last_failure=FailureKind.NOT_AUTHORIZED,
        last_error="kafkadash lacks DescribeConfigs on TOPIC.",
        succeeded_at=None,
    )
    page = get_page(URL)
    assert "Under min-ISR unknown At min-ISR unknown" in page.text
    assert "Rack violation unknown" in page.text
    assert page.words("topic-own") == "orders in sync 1 3 not read unknown unknown 01:56:04"
    assert "lacks DescribeConfigs on TOPIC." in page.words("not-read-configs")
    one = get_page(URL + "orders/")
    assert "Its configs were not read yet." in one.text
    assert "Throttle lists were not read yet." in one.text
    assert "min.insync.replicas unknown" in one.text


def test_no_topics_stale_and_never(get_page: GetPage, demo: Cluster) -> None:
    page = get_page(URL)
    assert page.title == "demo has no topics."
    assert "appears here within 30 s" in page.text
    silent(demo, NOW - timedelta(minutes=12), error="refused")
    page = get_page(URL)
    assert page.title == "Cannot tell how the topics of demo are: 0 topics were there 12 min ago."
    assert "data-stale" in page.start_tag("topic-list-demo")
    ClusterFactory.create(name="never")
    page = get_page("/clusters/never/topics/")
    assert page.title == "Cannot tell which topics never has: nothing was collected yet."
    assert "No topic was seen yet." in page.text


def test_nothing_stale_is_called_in_sync(get_page: GetPage, some: Cluster) -> None:
    silent(some, NOW - timedelta(minutes=12))
    assert "was in sync" in get_page(URL).words("topic-own")
    assert 'data-state="ok"' not in get_page(URL).part("topic-list-demo")


def test_ten_thousand_are_paged(get_page: GetPage, demo: Cluster) -> None:
    TopicState.objects.bulk_create(
        TopicFactory.build(cluster=demo, topic_id=f"id-{n}", name=f"topic.{n:05}") for n in range(10_000)
    )
    page = get_page(URL + "?page=100&sort=name")
    assert "9,901–10,000 of 10,000" in page.text
    assert "topic.09999" in page.text


@pytest.mark.parametrize("name", ["a" * 249, "a.b_c-D", "...", ".a", "0", "x" * 120 + ".." + "y" * 127])
def test_every_legal_name_has_a_page(get_page: GetPage, demo: Cluster, name: str) -> None:
    TopicFactory.create(cluster=demo, name=name)
    listed = get_page(URL)
    assert f'href="{URL}{quote(name)}/"' in listed.html
    assert get_page(f"{URL}{quote(name)}/").title == f"The only partition of {name} has all its replicas in sync."


def test_a_topic_that_is_not_there_is_not_found(
    demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    assert client_of(viewer).get(URL + "nowhere/").status_code == 404


PARTITIONS = [
    [0, 1, 5, [1, 2, 3], [1, 2, 3], []],
    [1, 3, 6, [2, 3, 1], [2, 3, 1], []],  # not led as preferred
    [2, 1, 7, [1, 2, 3], [1], [2]],  # under min-ISR
    [3, None, 8, [2], [2], [2]],  # offline
    [4, 1, 9, [1, 3], [1, 3], []],  # at min-ISR by Kafka's count, all in sync
    [5, 2, 9, [2, 1], [2], []],  # moving to 1; under min-ISR
]


@pytest.fixture
def ledger(demo: Cluster) -> TopicState:
    ReassignmentFactory.create(cluster=demo, topic="ledger", partition=5, adding=[1], removing=[], public_id="r-5")
    for broker in (1, 2):
        sizes = {"ledger": {str(n): (10 + n) * GB for n in range(5)}, "ledger.copy": {"0": 1}}
        BrokerWeights.objects.filter(broker_id=broker).update(data=zlib.compress(json.dumps(sizes).encode()))
    return TopicFactory.create(cluster=demo, name="ledger", partitions=PARTITIONS)


def test_partitions_with_all_that_is_known(get_page: GetPage, ledger: TopicState) -> None:
    page = get_page(URL + "ledger/")
    assert page.title == "1 of 6 partitions of ledger is offline."
    broker_1, broker_2, broker_3 = "1 b broker 1", "2 c broker 2", "3 a broker 3"
    assert page.words("partition-0") == f"0 OK 1 {broker_1}, leader {broker_2} {broker_3} 1, 2, 3 none 5 10.0 GB even"
    assert "3 not preferred" in page.words("partition-1")
    assert "Under min-ISR" in page.words("partition-2")
    assert "broker 2, not in sync, offline" in page.words("partition-2")
    assert "3 Offline none" in page.words("partition-3")
    assert page.words("partition-4").startswith("4 OK")
    assert "broker 1, being added, not in sync" in page.words("partition-5")
    assert "unknown" in page.words("partition-3")  # size: nobody leads it
    assert "set by the topic" in page.text


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("?state=offline", [3]),
        ("?state=under-min-isr", [2, 3, 5]),
        ("?state=at-min-isr", [4]),
        ("?state=under-replicated", [2, 5]),
        ("?state=moving", [5]),
        ("?state=not-preferred", [1]),
        ("?broker=3", [0, 1, 2, 4]),
        ("?broker=77", []),
        ("?sort=-partition", [5, 4, 3, 2, 1, 0]),
        ("?sort=-size", [4, 2, 0, 1, 3, 5]),
        ("?sort=state", [3, 2, 5, 0, 1, 4]),
    ],
)
def test_partitions_are_filtered_and_sorted(
    get_page: GetPage, ledger: TopicState, query: str, numbers: list[int]
) -> None:
    page = get_page(URL + "ledger/" + query)
    assert page.order_of(*(f"partition-{n}" for n in range(6))) == [f"partition-{n}" for n in numbers]


def test_a_broker_that_is_no_number_is_said(get_page: GetPage, ledger: TopicState) -> None:
    page = get_page(URL + "ledger/?broker=three")
    assert "“three” is no broker id; partitions of all brokers are shown." in page.text
    assert page.has("partition-0")


def test_thousands_of_partitions_are_paged(get_page: GetPage, demo: Cluster) -> None:
    TopicFactory.create(cluster=demo, name="wide", partitions=[[n, 1, 5, WELL, WELL, []] for n in range(3000)])
    page = get_page(URL + "wide/?page=30")
    assert "2,901–3,000 of 3,000" in page.text
    assert page.has("partition-2999")


def test_rack_spread_is_judged_where_racks_are_known(get_page: GetPage, demo: Cluster) -> None:
    TopicFactory.create(cluster=demo, name="t", partitions=[[0, 1, 5, [1, 4], [1, 4], []], [1, 1, 5, WELL, WELL, []]])
    BrokerState.objects.create(
        cluster=demo, broker_id=4, host="k", port=1, rack="eu-1b", first_seen_at=NOW, changed_at=NOW
    )
    page = get_page(URL + "t/?state=racks")
    assert "needs one more rack" in page.words("partition-0")
    assert not page.has("partition-1")
    BrokerState.objects.filter(broker_id=4).update(rack=None)
    page = get_page(URL + "t/")
    assert "not judged broker 4 names no rack" in page.text
    assert "Rack violation unknown" in page.text
    BrokerState.objects.update(rack=None)
    assert "not judged no broker names its rack" in get_page(URL + "t/").text
    BrokerState.objects.update(rack="hall")
    assert "not judged all brokers are in one rack" in get_page(URL + "t/").text


def test_configs_throttles_and_moves_of_a_topic(get_page: GetPage, ledger: TopicState, demo: Cluster) -> None:
    config = {"min.insync.replicas": ["2", "cluster_default"], "cleanup.policy": ["compact", "topic"]}
    TopicState.objects.update(config=config)
    for key, value in (
        ("leader.replication.throttled.replicas", "*"),
        ("follower.replication.throttled.replicas", "5:1,4:1"),
    ):
        ThrottleFactory.create(cluster=demo, resource="topic", name="ledger", key=key, value=value)
    ThrottleFactory.create(cluster=demo, resource="topic", name="other", key="leader.replication.throttled.replicas")
    page = get_page(URL + "ledger/")
    words = page.words("topic-configs-demo")
    assert "cleanup.policy compact topic min.insync.replicas 2 cluster default" in words
    assert "leader.replication.throttled.replicas all replicas" in words
    assert "follower.replication.throttled.replicas 2 replicas of 2 partitions" in words
    assert "ledger-5" in page.words("r-5")
    TopicState.objects.update(config={})
    page = get_page(URL + "ledger/")
    assert "All its configs have Kafka’s defaults." in page.text
    assert "Kafka’s default" in page.words("topic-facts-demo")


@pytest.mark.parametrize(
    ("partitions", "title"),
    [
        ([[0, 1, 5, WELL, [1, 2], []]], "1 of 1 partition of t is at min-ISR."),
        ([[0, 1, 5, WELL, [1], []]], "1 of 1 partition of t refuses writes: under min-ISR."),
        ([[n, 1, 5, WELL, WELL, []] for n in range(4)], "All 4 partitions of t have all their replicas in sync."),
        ([[0, 1, 5, [1, 2, 3, 4], WELL, []]], "1 of 1 partition of t is under-replicated."),
    ],
)
def test_its_title_is_the_worst(get_page: GetPage, demo: Cluster, partitions: list[object], title: str) -> None:
    TopicFactory.create(cluster=demo, name="t", partitions=partitions)
    assert get_page(URL + "t/").title == title


def test_an_old_topic_is_not_called_well(get_page: GetPage, ledger: TopicState, demo: Cluster) -> None:
    silent(demo, NOW - timedelta(minutes=12), error="refused")
    page = get_page(URL + "ledger/")
    assert page.title == "Cannot tell how ledger is: it had 6 partitions 12 min ago."
    assert 'data-state="ok"' not in page.part("topic-partitions-demo")
