"""What is throttled, by whom as far as is known, and what needs it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.observe.models import BrokerWeights, Kind, ThrottleState
from tests.factories import NOW, ClusterFactory, ReassignmentFactory, ThrottleFactory, directory, silent, watched
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]
URL = "/clusters/demo/throttles/"
LEADER_LIST = "leader.replication.throttled.replicas"
FOLLOWER_RATE = "follower.replication.throttled.rate"
DISK_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture
def demo(db: None) -> Cluster:
    return watched("demo")


def a_list(demo: Cluster, name: str, value: str, **fields: object) -> ThrottleState:
    return ThrottleFactory.create(cluster=demo, resource="topic", name=name, key=LEADER_LIST, value=value, **fields)


def words(page: Page, row: ThrottleState) -> str:
    return page.words(f"throttle-{row.pk}")


def test_nothing_is_throttled(get_page: GetPage, demo: Cluster) -> None:
    page = get_page(URL)
    assert page.title == "Nothing is throttled in demo."
    assert "appear here within 30 s" in page.text
    assert not page.has("throttle-list-demo")


def test_the_same_rate_is_one_line_and_every_throttle_a_row(get_page: GetPage, demo: Cluster) -> None:
    rows = [ThrottleFactory.create(cluster=demo, name=str(n)) for n in (10, 9, 1)]
    a_list(demo, "orders", "0:1,0:2,1:3")
    page = get_page(URL)
    assert page.title == "Rates are set on 3 brokers of demo, the lowest is 10.0 MB/s."
    assert page.words("throttled-demo-1") == "brokers 1, 9, 10 sending as leader 10.0 MB/s 10,000,000 by nothing now"
    assert page.words("throttled-demo-2").startswith("1 topic replicas throttled as leaders a list")
    assert words(page, rows[1]) == (
        "broker 9 sending as leader leader.replication.throttled.rate 10.0 MB/s 10,000,000 bytes/s broker 01:43:04"
        " data 6 s old unknown nothing now"
    )
    ids = [f"throttle-{row.pk}" for row in (rows[2], rows[1], rows[0])]
    assert page.order_of(*ids) == ids  # 1, 9, 10


def test_a_rate_without_a_list_slows_nothing_and_a_list_without_a_rate_neither(
    get_page: GetPage, demo: Cluster
) -> None:
    row = ThrottleFactory.create(cluster=demo)
    assert get_page(URL).title == (
        "Rates are set on 1 broker of demo, the lowest is 10.0 MB/s;"
        " no topic lists a replica, so nothing is slowed down."
    )
    row.delete()
    a_list(demo, "orders", "*")
    assert get_page(URL).title == "No rate is set in demo: its lists of throttled replicas slow nothing down."


def test_a_cluster_default_is_for_all(get_page: GetPage, demo: Cluster) -> None:
    row = ThrottleFactory.create(cluster=demo, resource="cluster", name="", value="50000000")
    a_list(demo, "orders", "*")
    page = get_page(URL)
    assert page.title == "Rates are set on all brokers of demo, the lowest is 50.0 MB/s."
    assert "all brokers without a rate of their own" in page.words("throttled-demo-1")
    assert words(page, row).startswith("cluster default sending as leader")


def test_very_many_brokers_are_summed_up(get_page: GetPage, demo: Cluster) -> None:
    for n in range(120):
        ThrottleFactory.create(cluster=demo, name=str(n))
    page = get_page(URL + "?page=2")
    assert "brokers 0, 1, 2, 3, 4, 5, 6, 7 and 112 more" in page.words("throttled-demo-1")
    assert "101–120 of 120" in page.text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("*", "all replicas"),
        ("0:1,0:2,1:3", "3 replicas of 2 partitions"),
        ("", "none: the list is set, but empty"),
        ("0:x", "“0:x” is no pair of partition and broker"),
    ],
)
def test_lists_are_summarised(get_page: GetPage, demo: Cluster, value: str, shown: str) -> None:
    row = a_list(demo, "orders", value)
    assert shown in words(get_page(URL), row)


def test_what_needs_it(get_page: GetPage, demo: Cluster) -> None:
    ReassignmentFactory.create(cluster=demo, topic="orders", partition=0, replicas=[6, 2, 1, 3])
    ReassignmentFactory.create(cluster=demo, topic="orders", partition=1, replicas=[4, 2, 1])
    broker = ThrottleFactory.create(cluster=demo, name="6")
    everywhere = ThrottleFactory.create(cluster=demo, resource="cluster", name="", key=FOLLOWER_RATE)
    whole, part, other = a_list(demo, "orders", "*"), a_list(demo, "a", "0:1"), a_list(demo, "orders.2", "*")
    listed = ThrottleFactory.create(
        cluster=demo, resource="topic", name="orders", key="follower.replication.throttled.replicas", value="1:4,7:4"
    )
    page = get_page(URL)
    assert words(page, broker).endswith("1 move")
    assert 'href="/clusters/demo/reassignments/?running=all&amp;broker=6#list"' in page.part(f"throttle-{broker.pk}")
    assert words(page, everywhere).endswith("2 moves")
    assert words(page, whole).endswith("2 moves")
    assert words(page, listed).endswith("1 move")
    assert words(page, part).endswith("nothing now")
    assert words(page, other).endswith("nothing now")


def test_copies_between_disks_need_the_disk_rate(get_page: GetPage, demo: Cluster) -> None:
    BrokerWeights.objects.filter(broker_id=1).update(dirs=[directory(copies=2), directory(copies=1)])
    BrokerWeights.objects.filter(broker_id=2).update(dirs=[directory(copies=None)])
    one = ThrottleFactory.create(cluster=demo, name="1", key=DISK_RATE)
    two = ThrottleFactory.create(cluster=demo, name="2", key=DISK_RATE)
    page = get_page(URL)
    assert words(page, one).endswith("3 copies")
    assert words(page, two).endswith("unknown")


def test_an_orphan_says_what_to_look_at(get_page: GetPage, demo: Cluster) -> None:
    orphan = a_list(demo, "orders", "*", orphan=True, unneeded_since=NOW - timedelta(minutes=9))
    ThrottleFactory.create(cluster=demo)
    page = get_page(URL)
    assert page.title == "1 throttle of demo is needed by nothing in flight."
    assert "1 needed by nothing" in page.words("throttled-demo-2")
    assert "nothing since 01:54:04" in words(page, orphan)
    assert (
        "kafka-configs --bootstrap-server kafka-1.internal:9092 --describe --entity-type topics --entity-name orders"
        in page.words(f"throttle-look-{orphan.pk}")
    )


def test_ours_and_foreign(get_page: GetPage, demo: Cluster) -> None:
    ours = ThrottleFactory.create(cluster=demo, name="1", claimed_by="change 42", claim_url="/changes/42/")
    foreign = ThrottleFactory.create(cluster=demo, name="2")
    page = get_page(URL)
    assert "ours: change 42" in words(page, ours)
    assert 'href="/changes/42/"' in page.part(f"throttle-{ours.pk}")
    assert " unknown " in words(page, foreign)


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("?on=cluster", ["cluster"]),
        ("?on=topic", ["topic"]),
        ("?need=ours", ["ours"]),
        ("?need=orphan", ["topic"]),
        ("?need=foreign", ["cluster", "topic"]),
        ("?q=order", ["topic"]),
        ("?q=follower", ["cluster"]),
        ("?q=nowhere", []),
        ("?sort=-since", ["ours", "cluster", "topic"]),
    ],
)
def test_filters_are_addresses(get_page: GetPage, demo: Cluster, query: str, kept: list[str]) -> None:
    rows = {
        "topic": a_list(demo, "orders", "*", orphan=True, first_seen_at=NOW - timedelta(days=3)),
        "cluster": ThrottleFactory.create(cluster=demo, resource="cluster", name="", key=FOLLOWER_RATE),
        "ours": ThrottleFactory.create(cluster=demo, claimed_by="change 42", first_seen_at=NOW),
    }
    page = get_page(URL + query)
    order = page.order_of(*(f"throttle-{row.pk}" for row in rows.values()))
    expected = [f"throttle-{rows[name].pk}" for name in kept]
    assert (order if "sort" in query else sorted(order)) == (expected if "sort" in query else sorted(expected))
    assert ("No throttle is like that." in page.text) == (not kept)


def test_one_that_could_not_be_read_again_keeps_its_age(get_page: GetPage, demo: Cluster) -> None:
    row = ThrottleFactory.create(cluster=demo, read_at=NOW - timedelta(minutes=12))
    page = get_page(URL)
    assert "12 min" in words(page, row)
    assert 'data-fresh="stale"' in page.part(f"throttle-{row.pk}")


def test_not_read_stale_and_not_permitted(get_page: GetPage, demo: Cluster) -> None:
    ThrottleFactory.create(cluster=demo)
    silent(demo, NOW - timedelta(minutes=12), error="refused")
    page = get_page(URL)
    assert page.title == "Cannot tell what is throttled in demo: 1 throttle was set 12 min ago."
    assert "data-stale" in page.start_tag("throttled-demo")
    ClusterFactory.create(name="never")
    never = get_page("/clusters/never/throttles/")
    assert never.title == "Cannot tell what is throttled in never: configs were not read yet."
    denied = watched("denied")
    denied.collector_runs.filter(kind=Kind.CONFIGS).update(
        failures=1,
        succeeded_at=None,
        last_failure=FailureKind.NOT_AUTHORIZED,
        last_error="It lacks DescribeConfigs on CLUSTER.",
    )
    page = get_page("/clusters/denied/throttles/")
    assert "It lacks DescribeConfigs on CLUSTER." in page.words("not-read-configs")
    assert "Nothing is throttled" not in page.text


def test_unknown_moves_are_not_no_moves(get_page: GetPage, demo: Cluster) -> None:
    demo.collector_runs.filter(kind=Kind.REASSIGNMENTS).update(succeeded_at=None)
    row = ThrottleFactory.create(cluster=demo)
    assert words(get_page(URL), row).endswith("unknown unknown")


def test_what_a_run_removed_is_said_to_be_removed_and_is_not_in_force(get_page: GetPage, demo: Cluster) -> None:
    row = ThrottleFactory.create(
        cluster=demo, name="1", claimed_by="#7", claim_url="/changes/7/", removed_at=NOW - timedelta(seconds=2)
    )
    page = get_page(URL)
    assert page.title == "Nothing is throttled in demo."
    assert "removed by #7 , not read again since" in words(page, row)
    assert "unknown" not in words(page, row)
    assert not get_page(f"{URL}?need=foreign").has(f"throttle-{row.pk}")


def test_whose_it_is_is_not_called_unknown_before_it_was_looked_up(get_page: GetPage, demo: Cluster) -> None:
    row = ThrottleFactory.create(cluster=demo, name="1", first_seen_at=NOW - timedelta(seconds=2))
    assert "just found" in words(get_page(URL), row)


def test_how_many_of_a_rates_brokers_a_move_needs_is_said(get_page: GetPage, demo: Cluster) -> None:
    for name in ("1", "9"):
        ThrottleFactory.create(cluster=demo, name=name)
    ReassignmentFactory.create(cluster=demo, replicas=[1, 2], adding=[2], removing=[])
    assert get_page(URL).words("throttled-demo-1").endswith("10,000,000 1 of 2")
