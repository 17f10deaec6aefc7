"""All brokers, and one: what is known of them, what is not, and lists of a thousand."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.observe.models import BrokerState, BrokerWeights, ClusterState, Collection, Kind
from tests.factories import (
    GB,
    NOW,
    BrokerFactory,
    BrokerWeightsFactory,
    ClusterFactory,
    CollectionFactory,
    ReassignmentFactory,
    ThrottleFactory,
    TopicFactory,
    directory,
    silent,
    watched,
)
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]
URL = "/clusters/demo/brokers/"


@pytest.fixture
def demo(db: None) -> Cluster:
    return watched("demo")


def test_all_are_up(get_page: GetPage, demo: Cluster) -> None:
    page = get_page(URL)
    assert page.title == "All 3 brokers of demo are up."
    words = page.words("broker-2")
    assert words.startswith("2 Up eu-1c 229 0.0 % 79 0.0 % 80 /var/lib/kafka/a of 2.0 TB 33.3 %")
    assert "no 4.3+" in words  # not throttled, release


def test_what_is_fenced_or_gone_is_the_answer_and_stands_first(get_page: GetPage, demo: Cluster) -> None:
    BrokerState.objects.filter(broker_id=2).update(fenced=True)
    BrokerFactory.create(cluster=demo, broker_id=7, gone_at=NOW - timedelta(hours=1))
    BrokerFactory.create(cluster=demo, broker_id=8, gone_at=NOW - timedelta(days=3), replicas=0, leaders=0)
    page = get_page(URL)
    assert page.title == "Broker 7 is gone and still assigned replicas and broker 2 is fenced; 2 brokers are up."
    assert page.order_of("broker-1", "broker-2", "broker-3", "broker-7")[-2:] == ["broker-1", "broker-3"]
    assert 'data-state="critical"' in page.part("broker-2")
    assert 'data-state="warning"' in page.part("broker-8")
    assert "not judged" in page.words("broker-2")


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("?state=up", [1, 3, 8]),
        ("?state=fenced", [2]),
        ("?state=gone", [7]),
        ("?rack=eu-1b", [1]),
        ("?rack=(none)", [7]),
        ("?rack=+hall++2", [8]),
        ("?q=kafka-3", [3]),
        ("?q=3", [3]),
        ("?q=EU-1A", [3]),
        ("?q=eu-1a&state=fenced", []),
    ],
)
def test_filters_are_addresses(get_page: GetPage, demo: Cluster, query: str, ids: list[int]) -> None:
    BrokerState.objects.filter(broker_id=2).update(fenced=True)
    BrokerFactory.create(cluster=demo, broker_id=7, gone_at=NOW, rack=None)
    BrokerFactory.create(cluster=demo, broker_id=8, rack=" hall  2")
    page = get_page(URL + query)
    assert 'value=" hall  2"' in page.html
    assert [n for n in (1, 2, 3, 7, 8) if page.has(f"broker-{n}")] == ids
    if not ids:
        assert "No broker is like that." in page.text


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("replicas", ["broker-3", "broker-2", "broker-1"]),
        ("-replicas", ["broker-1", "broker-2", "broker-3"]),
        ("-disk", ["broker-2", "broker-3", "broker-1"]),
        ("id", ["broker-1", "broker-2", "broker-3"]),
        ("-id", ["broker-3", "broker-2", "broker-1"]),
    ],
)
def test_it_is_sorted_as_the_address_says(get_page: GetPage, demo: Cluster, sort: str, order: list[str]) -> None:
    for n in (1, 2, 3):
        BrokerState.objects.filter(broker_id=n).update(replicas=100 - n)
    BrokerWeights.objects.filter(broker_id=1).update(dirs=[directory(total=None, usable=None)])
    BrokerWeights.objects.filter(broker_id=2).update(
        dirs=[directory(usable=1900 * GB), directory("/b", usable=10 * GB)]
    )
    page = get_page(f"{URL}?sort={sort}")
    assert page.order_of("broker-1", "broker-2", "broker-3") == order


def test_what_an_address_asks_and_nobody_knows_is_said(get_page: GetPage, demo: Cluster) -> None:
    page = get_page(URL + "?state=happy&sort=colour")
    assert "There is no state “happy”; it is left out." in page.text
    assert "The list cannot be sorted by “colour”" in page.text
    assert page.has("broker-1")


def test_a_thousand_are_paged_and_the_filter_survives(get_page: GetPage, demo: Cluster) -> None:
    BrokerState.objects.bulk_create(
        [BrokerFactory.build(cluster=demo, broker_id=n, rack="north hall") for n in range(100, 1100)]
    )
    page = get_page(URL + "?rack=north+hall&page=10")
    assert "901–1,000 of 1,000" in page.text
    assert page.has("broker-1099")
    assert not page.has("broker-100")
    assert 'href="?rack=north+hall&amp;page=9"' in page.html
    assert page.title == "All 1,003 brokers of demo are up."


@pytest.mark.parametrize(("partitions", "judged"), [(49, False), (50, True)])
def test_skew_is_judged_from_fifty_partitions(get_page: GetPage, partitions: int, judged: bool) -> None:
    demo = watched("demo", partitions=partitions)
    BrokerState.objects.filter(cluster=demo, broker_id=1).update(replicas=300, leaders=110)
    words = get_page(URL).words("broker-1")
    assert ("+18.7 % warn" in words) is judged  # 300 of a mean of 252.7
    assert ("+23.1 % attention" in words) is judged
    assert ("not judged" in words) is not judged


def test_every_directory_has_its_own_bar_and_its_own_mark(get_page: GetPage, demo: Cluster) -> None:
    BrokerWeights.objects.filter(broker_id=1).update(
        dirs=[
            directory("/a", usable=500 * GB),
            directory("/b", usable=400 * GB),
            directory("/c", usable=200 * GB, cordoned=True),
            directory("/d", total=None, usable=None, error="KAFKA_STORAGE_ERROR"),
        ]
    )
    words = get_page(URL).words("broker-1")
    assert "/a of 2.0 TB 75.0 % /b of 2.0 TB 80.0 % over 80 % /c of 2.0 TB 90.0 % over 90 % cordoned" in words
    assert "/d KAFKA_STORAGE_ERROR" in words


def test_a_throttle_in_force_is_the_brokers_own_or_that_of_all(get_page: GetPage, demo: Cluster) -> None:
    ThrottleFactory.create(cluster=demo, name="1", value="1000000")
    ThrottleFactory.create(cluster=demo, resource="cluster", name="", value="50000000")
    page = get_page(URL)
    assert "1.0 MB/s sending" in page.words("broker-1")
    assert "50.0 MB/s" not in page.words("broker-1")
    assert "50.0 MB/s sending" in page.words("broker-2")


def test_what_was_never_read_is_not_zero(get_page: GetPage) -> None:
    demo = watched("demo")
    demo.collector_runs.filter(kind=Kind.CONFIGS).update(succeeded_at=None)
    BrokerWeights.objects.all().delete()
    BrokerState.objects.update(preferred=None, release="")
    words = get_page(URL).words("broker-1")
    assert "unknown not read yet" in words  # preferred, directories
    assert words.count("not read yet") == 2
    assert "0 %" not in words.replace("0.0 %", "")


def test_a_missing_permission_is_named(get_page: GetPage, demo: Cluster) -> None:
    demo.collector_runs.filter(kind=Kind.CONFIGS).update(
        failures=2,
        last_failure=FailureKind.NOT_AUTHORIZED,
        last_error="kafkadash lacks DescribeConfigs on CLUSTER.",
        succeeded_at=None,
    )
    for address in (URL, URL + "1/"):
        words = get_page(address).words("not-read-configs")
        assert "Kafka does not let kafkadash read configs and throttles." in words
        assert "kafkadash lacks DescribeConfigs on CLUSTER." in words


def test_one_cause_is_said_once(get_page: GetPage, demo: Cluster) -> None:
    silent(demo, NOW - timedelta(minutes=12), error="No broker answers.")
    page = get_page(URL)
    words = page.words("not-read-metadata-log_dirs-configs")
    assert words.startswith("The last refresh of topics and brokers, log directories and configs and throttles failed.")
    assert "No broker answers. What is shown of it is from before" in words
    assert page.text.count("No broker answers.") == 1


def test_what_was_read_in_part_says_what_is_missing(get_page: GetPage, demo: Cluster) -> None:
    Collection.objects.filter(kind=Kind.CONFIGS).update(errors=["topic t: it lacks DescribeConfigs", "another"])
    CollectionFactory.create(
        cluster=demo, kind=Kind.LOG_DIRS, errors=["from long ago"], started_at=NOW - timedelta(days=1)
    )
    page = get_page(URL)
    assert page.words("not-read-configs") == (
        "Configs and throttles were read, but not completely. topic t: it lacks DescribeConfigs."
        " And 1 more. The overview lists how each kind is read."
    )
    assert "from long ago" not in page.text


def test_old_data_is_not_called_up(get_page: GetPage, demo: Cluster) -> None:
    silent(demo, NOW - timedelta(minutes=12), error="refused")
    page = get_page(URL)
    assert page.title == "Cannot tell how the brokers of demo are: 3 brokers were up 12 min ago."
    assert "data-stale" in page.start_tag("broker-list-demo")
    assert "Was up" in page.words("broker-1")
    assert get_page(URL + "1/").title == "Cannot tell how broker 1 is: it was up 12 min ago."
    BrokerState.objects.filter(broker_id=2).update(fenced=True)
    BrokerState.objects.filter(broker_id=3).update(gone_at=NOW - timedelta(hours=1))
    assert "Was fenced" in get_page(URL).words("broker-2")
    assert get_page(URL + "2/").title == "Cannot tell how broker 2 is: it was fenced 12 min ago."
    assert get_page(URL + "3/").title == "Cannot tell how broker 3 is: it was gone 12 min ago."


def test_before_the_first_refresh_it_says_so(get_page: GetPage) -> None:
    ClusterFactory.create(name="demo")
    page = get_page(URL)
    assert page.title == "Cannot tell how the brokers of demo are: nothing was collected yet."
    assert "They are listed as soon as one of kafka-1.internal:9092" in page.text


def test_a_broker_that_is_up(get_page: GetPage, demo: Cluster) -> None:
    page = get_page(URL + "2/")
    assert page.title == "Broker 2 is up and leads 79 partitions."
    assert "log.retention.hours 72 static broker config" in page.words("broker-configs-demo")
    assert "667.0 GB of 2.0 TB 33.3 %" in page.words("broker-disks-demo")
    assert "None: every partition with a replica here" in page.words("broker-trouble-demo")


def test_a_secret_stays_one_and_an_empty_value_is_not_missing(get_page: GetPage, demo: Cluster) -> None:
    config = {"ssl.keystore.password": [None, "static"], "listeners.extra": ["", "broker"]}
    BrokerState.objects.filter(broker_id=2).update(config=config)
    page = get_page(URL + "2/")
    assert "ssl.keystore.password kept secret by Kafka static" in page.words("broker-configs-demo")
    assert page.order_of("config-listeners.extra", "config-ssl.keystore.password")[0] == "config-listeners.extra"
    assert "listeners.extra empty broker" in page.words("broker-configs-demo")


def test_brokers_that_hold_replicas_and_were_never_seen_are_not_forgotten(get_page: GetPage, demo: Cluster) -> None:
    BrokerFactory.create(cluster=demo, broker_id=7, gone_at=NOW - timedelta(hours=1))
    ClusterState.objects.update(brokers_gone=1)
    assert get_page(URL).title == "Broker 7 is gone and still assigned replicas; 3 brokers are up."
    ClusterState.objects.update(brokers_gone=2)
    assert get_page(URL).title == (
        "Broker 7 is gone and still assigned replicas and 1 broker that was never seen up is assigned replicas;"
        " 3 brokers are up."
    )


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"fenced": True}, "Broker 2 is fenced: 229 replicas are out of service."),
        ({"fenced": True, "replicas": 1}, "Broker 2 is fenced: 1 replica is out of service."),
        ({"fenced": True, "replicas": 0}, "Broker 2 is fenced: it hosts no replica."),
        (
            {"gone_at": NOW - timedelta(hours=1)},
            "Broker 2 is gone since 01:03 UTC; 229 replicas are still assigned to it.",
        ),
        (
            {"gone_at": NOW - timedelta(days=3), "replicas": 0},
            "Broker 2 is gone since 18 Nov 02:03 UTC; nothing is assigned to it.",
        ),
    ],
)
def test_a_broker_that_is_away_keeps_its_page(
    get_page: GetPage, demo: Cluster, fields: dict[str, object], title: str
) -> None:
    BrokerState.objects.filter(broker_id=2).update(**fields)
    assert get_page(URL + "2/").title == title


def test_its_troubled_partitions_are_listed_worst_first(get_page: GetPage, demo: Cluster) -> None:
    TopicFactory.create(
        cluster=demo,
        name="a",
        topic_id="a",
        partitions=[
            [0, 1, 5, [1, 2, 3], [1, 3], [2]],  # at min-ISR
            [1, 1, 5, [1, 3], [1], [3]],  # not on broker 2
            [2, 2, 5, [2, 1, 3], [2], []],  # under min-ISR
            [3, 1, 5, [1, 2], [1, 2], []],  # well
            [4, 1, 5, [1, 3, 2], [1, 3], []],  # waits for its move
        ],
    )
    TopicFactory.create(cluster=demo, name="b", topic_id="b", partitions=[[0, None, 5, [2], [2], [2]]])
    TopicFactory.create(cluster=demo, name="c", topic_id="c", partitions=[[0, None, 5, [3, 22], [3], [3]]])
    ReassignmentFactory.create(cluster=demo, topic="a", partition=4, adding=[2], removing=[], public_id="r-in")
    page = get_page(URL + "2/")
    rows = ["partition-b-0", "partition-a-2", "partition-a-0"]
    assert page.order_of("partition-a-0", "partition-a-1", "partition-a-2", "partition-a-3", "partition-a-4",
                         "partition-b-0", "partition-c-0") == rows  # fmt: skip
    assert "Under min-ISR" in page.words("partition-a-2")
    assert "moves in" in page.words("r-in")


def test_topics_it_hosts_come_largest_first_and_paged(get_page: GetPage, demo: Cluster) -> None:
    sizes = {f"t{n:02}": {"0": n * GB, "1": 1} for n in range(30)} | {"deleted": {"0": 99 * GB}}
    BrokerWeights.objects.filter(broker_id=2).update(data=zlib.compress(json.dumps(sizes).encode()))
    TopicFactory.create(
        cluster=demo, name="t29", partitions=[[0, 2, 5, [2, 1], [2, 1], []], [1, 1, 5, [1, 2], [1, 2], []]]
    )
    page = get_page(URL + "2/")
    assert page.words("hosted-1") == "deleted not in metadata any more 99.0 GB unknown unknown unknown"
    assert page.words("hosted-2") == "t29 29.0 GB 2 1 2"
    assert "1–25 of 31" in page.words("broker-topics-demo")
    assert "t00 not in metadata any more 1 B" in get_page(URL + "2/?page=2").words("broker-topics-demo")


def test_without_sizes_its_topics_come_from_metadata(get_page: GetPage, demo: Cluster) -> None:
    BrokerWeights.objects.all().delete()
    TopicFactory.create(cluster=demo, name="here", topic_id="h", partitions=[[0, 1, 5, [1, 2], [1, 2], []]])
    TopicFactory.create(cluster=demo, name="elsewhere", topic_id="e", partitions=[[2, 1, 2, [1, 3], [1, 3], [1]]])
    words = get_page(URL + "2/").words("broker-topics-demo")
    assert "here unknown 1 0 1" in words
    assert "elsewhere" not in words
    assert "sizes were not read yet" in words


def test_stale_sizes_are_said_to_be_stale(get_page: GetPage, demo: Cluster) -> None:
    BrokerWeights.objects.filter(broker_id=2).delete()
    BrokerWeightsFactory.create(cluster=demo, broker_id=2, taken_at=NOW - timedelta(minutes=10))
    page = get_page(URL + "2/")
    assert "data-stale" in page.start_tag("broker-disks-demo")
    assert "data-stale" not in page.start_tag("broker-facts-demo")


@pytest.mark.parametrize("broker", ["4", "99999999999999999999"])
def test_one_that_was_never_seen_is_not_found(
    broker: str, demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    assert client_of(viewer).get(f"{URL}{broker}/").status_code == 404


def test_the_pages_fetch_themselves_again_when_facts_were_read(get_page: GetPage, demo: Cluster) -> None:
    assert "key=metadata-read:demo&amp;key=log-dirs-read:demo&amp;key=configs-read:demo" in get_page(URL).html
    assert "key=reassignments-read:demo" in get_page(URL + "1/").html


def test_a_broker_that_is_away_is_not_called_unthrottled(get_page: Callable[[str], Page]) -> None:
    demo = watched("demo")
    BrokerFactory.create(cluster=demo, broker_id=7, fenced=True, config_at=None)
    assert "not read yet" in get_page("/clusters/demo/brokers/").words("broker-7")
    page = get_page("/clusters/demo/brokers/7/")
    assert "its throttles were not read" in page.text
    assert "no rate is set" not in page.text
