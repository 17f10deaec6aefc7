"""All topics, and one: filters, orders and pages by address, and states in the words of Kafka's own tools."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils import timezone

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.core.failures import FailureKind
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import BrokerState, BrokerWeights, CollectorKind, CollectorRun, TierState, TopicState
from tests.factories import (
    GB,
    NOW,
    ClusterFactory,
    ReassignmentFactory,
    ThrottleFactory,
    TopicFactory,
    failed_with,
    silent,
    watched,
)
from tests.pages.conftest import Page, figures_of

GetPage = Callable[[str], Page]
URL = "/clusters/demo/topics/"
WELL = [1, 2, 3]
SIZES = re.compile(r"\d[\d.,]*(?: [kMG]B)?")


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
    page = get_page(URL)
    assert figures_of(page.title) == ["2", "2"]
    assert page.states("#topic-list-demo .marks .status-mark") == ["ok", "ok"]


def test_what_is_wrong_is_the_answer(get_page: GetPage, some: Cluster) -> None:
    page = get_page(URL)
    assert figures_of(page.title) == ["1", "6"]
    marks = ["1 offline", "1 under min-ISR"]
    assert page.texts("#topic-offline .status-mark") == marks
    assert page.cells("topic-offline")[2:] == ["1", "1", "2", "0.0 %", "unknown", "01:56:04"]
    assert page.texts("#topic-under .status-mark") == ["2 under min-ISR", "2 under-replicated"]
    assert page.cells("topic-under")[2:] == ["2", "3", "2", "100.0 %", "9.0 GB", "01:56:04"]
    assert page.states("#topic-well .status-mark") == ["ok"]
    assert page.figures("#topic-well .badge") == ["1"]
    assert page.figures("#topic-list-demo .segments") == ["6", "1", "2", "1", "2", "1", "1"]


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
    assert page.states("#topic-tight .status-mark") == ["ok"]
    assert page.texts("#topic-loose .status-mark") == ["1 at min-ISR", "1 under-replicated"]


def test_replicas_that_a_move_copies_are_expected(get_page: GetPage) -> None:
    demo = watched("demo", under_replicated=2, under_replicated_moving=2)
    moving = [[0, 1, 5, [1, 2, 3], [1, 2], []], [1, 1, 5, [1, 2, 3], [1, 2], []]]
    TopicFactory.create(cluster=demo, topic_id="t", name="t", partitions=moving, min_isr=1)
    for partition in (0, 1):
        ReassignmentFactory.create(cluster=demo, topic="t", partition=partition, adding=[3], removing=[])
    page = get_page(URL)
    assert figures_of(page.title) == ["1", "1"]
    assert page.states("#topic-t .status-mark") == ["ok"]
    assert page.figures("#topic-t .marks") == ["2", "2"]
    lost = [[0, 1, 5, [1, 2, 3], [1, 2], []], [1, 1, 5, [1, 2, 3], [1, 3], []]]  # the second misses another replica
    TopicState.objects.update(partitions=lost)
    demo.state.under_replicated_moving = 1
    demo.state.save()
    page = get_page(URL)
    assert figures_of(page.title) == ["1", "1"]
    assert page.states("#topic-t .status-mark") == ["warning"]
    assert page.figures("#topic-t .marks") == ["1", "2"]


def test_an_unknown_size_comes_last_whichever_way(get_page: GetPage, some: Cluster) -> None:
    assert shown(get_page(URL + "?sort=size"))[-1] == "offline"
    assert shown(get_page(URL + "?sort=-size"))[-1] == "offline"


def test_the_head_of_the_sorted_column_turns_the_order(get_page: GetPage, some: Cluster) -> None:
    html = get_page(URL + "?sort=-size&q=a").html
    assert 'aria-sort="descending"><a href="?q=a&amp;sort=size">Size</a>' in html
    assert '<a href="?q=a&amp;sort=-partitions">Partitions</a>' in html


def test_a_filter_that_leaves_nothing_says_so(get_page: GetPage, some: Cluster) -> None:
    page = get_page(URL + "?q=nowhere")
    assert page.figures("[data-empty=filtered] p") == ["6"]


def test_min_isr_that_was_not_read_is_not_zero(get_page: GetPage, demo: Cluster) -> None:
    unread = {"min_isr": None, "under_min_isr": None, "at_min_isr": None, "config": None, "rack_violations": None}
    TopicFactory.create(cluster=demo, topic_id="own", name="orders", preferred_leaders=None, size_bytes=None, **unread)
    error = "kafkadash lacks DescribeConfigs on TOPIC."
    demo.collector_runs.filter(kind=CollectorKind.CONFIGS).update(
        failures=1, last_failure=FailureKind.NOT_AUTHORIZED, **failed_with(error), succeeded_at=None
    )
    page = get_page(URL)
    segments = page.texts("#topic-list-demo .segments a")
    assert [segment for segment in segments if not figures_of(segment)] == [
        "Under min-ISR unknown",
        "At min-ISR unknown",
        "Rack violation unknown",
    ]
    assert page.cells("topic-own")[2:] == ["1", "3", "not read", "unknown", "unknown", "01:56:04"]
    assert error in page.words("not-read-configs")
    one = get_page(URL + "orders/")
    assert one.find("#topic-configs-demo .empty[data-empty=unread]")
    assert one.find("#topic-configs-demo .panel-foot [data-empty=unread]")
    assert not figures_of(one.facts("#topic-facts-demo")["min.insync.replicas"])


def test_no_topics_stale_and_never(get_page: GetPage, demo: Cluster) -> None:
    page = get_page(URL)
    assert not figures_of(page.title)
    assert page.figures("[data-empty=none] p") == ["30 s"]
    silent(demo, NOW - timedelta(minutes=12), error="refused")
    page = get_page(URL)
    assert figures_of(page.title) == ["0", "12 min"]
    assert "data-stale" in page.start_tag("topic-list-demo")
    ClusterFactory.create(name="never")
    page = get_page("/clusters/never/topics/")
    assert page.title.count("never") == 1
    assert page.find("[data-empty=unread]")


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
    page = get_page(f"{URL}{quote(name)}/")
    assert name in page.title
    assert page.states("#partition-0 .status-mark") == ["ok"]


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
    assert "ledger" in page.title
    assert figures_of(page.title) == ["1", "6"]
    chips = page.first("#partition-0").find(".replica")
    assert [chip.text.split()[:2] for chip in chips] == [["1", "b"], ["2", "c"], ["3", "a"]]
    assert [chip.has("data-leader") for chip in chips] == [True, False, False]
    cells = page.cells("partition-0")
    assert (cells[:3], cells[4:]) == (["0", "OK", "1"], ["1, 2, 3", "none", "5", "10.0 GB", "even"])
    assert page.cells("partition-1")[2] == "3 not preferred"
    assert page.cells("partition-2")[1] == "Under min-ISR"
    assert [chip.has("data-offline") for chip in page.find("#partition-2 .replica")] == [False, True, False]
    assert page.cells("partition-3")[1:3] == ["Offline", "none"]
    assert page.cells("partition-4")[1] == "OK"
    added = page.first("#partition-5 .replica[data-change=in]")
    assert (added.text.split()[0], added.has("data-behind")) == ("1", True)
    assert page.cells("partition-3")[7] == "unknown"  # nobody leads it
    assert page.find("#topic-facts-demo [data-source=topic]")


@pytest.mark.parametrize(
    ("read", "figures"),
    [
        ([0, 1_232, 1_429, 1_500, 2_680_000], [["2.7 MB"], ["14.3 MB", "1,430"], ["700.0 kB", "70"]]),
        ([0, 1_232, None, 1_500, 2_680_000], [["2.7 MB"], [], []]),  # before Kafka 3.9
        (None, [[], [], []]),
    ],
    ids=["known", "broker cannot tell", "not read"],
)
def test_tiered_topic__bytes_on_disks_and_in_remote_storage_are_apart(
    get_page: GetPage, demo: Cluster, read: list[int | None] | None, figures: list[list[str]]
) -> None:
    partitions = [[0, 1, 5, WELL, WELL, []]]
    config = {"remote.storage.enable": ["true", "topic"]}
    topic = TopicFactory.create(cluster=demo, name="events", partitions=partitions, partition_count=1, config=config)
    if read is not None:
        known = {"cluster": demo, "topic_id": topic.topic_id, "taken_at": timezone.now()}
        TierState.objects.create(partitions={"0": read}, **known)

    page = get_page(URL + "events/")

    tiles = [page.first(f"#topic-tiers-demo [data-fact={name}]").text for name in ("local", "remote", "pending")]
    assert [SIZES.findall(tile) for tile in tiles] == figures
    remote = page.first("#partition-0 [data-fact=remote]").text
    assert SIZES.findall(remote) == figures[1][:1]


def test_tiers_were_read_long_ago__panel_is_stale_though_directories_were_read_now(
    get_page: GetPage, demo: Cluster
) -> None:
    config = {"remote.storage.enable": ["true", "topic"]}
    topic = TopicFactory.create(cluster=demo, name="events", config=config)
    tiers = TierState.objects.create(cluster=demo, topic_id=topic.topic_id, partitions={}, taken_at=timezone.now())
    read = {"interval_s": 60, "succeeded_at": tiers.taken_at}
    CollectorRun.objects.update_or_create(cluster=demo, kind=CollectorKind.LOG_DIRS, defaults=read)
    stale = []
    for age in (timedelta(0), timedelta(days=1)):
        TierState.objects.update(taken_at=tiers.taken_at - age)
        stale.append("data-stale" in get_page(URL + "events/").start_tag("topic-tiers-demo"))

    assert stale == [False, True]


def test_topic_without_remote_storage__has_no_tiers(get_page: GetPage, ledger: TopicState) -> None:
    page = get_page(URL + "ledger/")

    assert not page.find("#topic-tiers-demo")
    assert not page.find("#partition-0 [data-fact=remote]")


def test_leaders_by_broker__beside_the_sizes_they_lead(get_page: GetPage, ledger: TopicState) -> None:
    page = get_page(URL + "ledger/")
    # Led by 1: partitions 0, 2 and 4 (10, 12 and 14 GB); by 2: partition 5 (no size); by 3: partition 1 (not read).
    assert page.cells("topic-leader-1") == ["broker 1", "3", "36.0 GB", "3", "5"]
    assert page.cells("topic-leader-2") == ["broker 2", "1", "unknown", "3", "5"]
    assert len(page.find("[id=topic-leader-1] .meter")) == 2
    assert len(page.find("[id=topic-leader-2] .meter")) == 1
    assert page.links("[id=topic-leader-3]") == ["/clusters/demo/brokers/3/"]
    assert page.figures("#leader-skew") == ["1", "3", "6", "1.8", "1"]
    assert get_page(URL + "ledger/?broker=3&state=offline").cells("topic-leader-1")[1] == "3", "of all partitions"


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
    assert page.tells(CollectionErrorCode.PARTITIONS_NO_BROKER, ".notice")
    assert "three" in page.first(".notice").text
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
    assert page.states("#partition-0 .status-mark")[-1] == "warning"
    assert not page.has("partition-1")
    BrokerState.objects.filter(broker_id=4).update(rack=None)
    told = []
    page = get_page(URL + "t/")
    told.append(page.facts("#topic-facts-demo")["Rack violations"])
    assert figures_of(told[0]) == ["4"]
    assert "Rack violation unknown" in page.texts("#topic-partitions-demo .segments a")
    BrokerState.objects.update(rack=None)
    told.append(get_page(URL + "t/").facts("#topic-facts-demo")["Rack violations"])
    BrokerState.objects.update(rack="hall")
    told.append(get_page(URL + "t/").facts("#topic-facts-demo")["Rack violations"])
    assert len(set(told)) == 3, "each has another cause"


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
    rows = page.find("#topic-configs-demo tbody tr")
    assert [row.texts("td") for row in rows] == [["compact", "topic"], ["2", "cluster default"]]
    assert [row.first("th").text for row in rows] == ["cleanup.policy", "min.insync.replicas"]
    followers, leaders = page.texts("#topic-configs-demo .throttle-list")
    assert leaders == "leader.replication.throttled.replicas all replicas"
    assert followers.startswith("follower.replication.throttled.replicas")
    assert figures_of(followers) == ["2", "2"]
    assert "ledger-5" in page.words("r-5")
    TopicState.objects.update(config={})
    page = get_page(URL + "ledger/")
    assert page.find("#topic-configs-demo [data-empty=none]")
    assert page.find("#topic-facts-demo [data-source=default]")


@pytest.mark.parametrize(
    ("partitions", "title"),
    [
        ([[0, 1, 5, WELL, [1, 2], []]], "t: 1 of 1 partition at min-ISR"),
        ([[0, 1, 5, WELL, [1], []]], "t: 1 of 1 partition under min-ISR"),
        ([[n, 1, 5, WELL, WELL, []] for n in range(4)], "t: 4 of 4 partitions in sync"),
        ([[0, 1, 5, [1, 2, 3, 4], WELL, []]], "t: 1 of 1 partition under-replicated"),
    ],
)
def test_its_title_is_the_worst(get_page: GetPage, demo: Cluster, partitions: list[object], title: str) -> None:
    TopicFactory.create(cluster=demo, name="t", partitions=partitions)
    assert get_page(URL + "t/").title == title


def test_an_old_topic_is_not_called_well(get_page: GetPage, ledger: TopicState, demo: Cluster) -> None:
    silent(demo, NOW - timedelta(minutes=12), error="refused")
    page = get_page(URL + "ledger/")
    assert "ledger" in page.title
    assert figures_of(page.title) == ["6", "12 min"]
    assert 'data-state="ok"' not in page.part("topic-partitions-demo")
