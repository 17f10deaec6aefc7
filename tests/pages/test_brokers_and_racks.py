"""All brokers, and one: what is known of them, what is not, and lists of a thousand.

The map of racks, the violations and what fixes them; racks that cannot be judged are said to be so.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.core.errors import RequestErrorCode
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import as_message, coded
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    Capabilities,
    ClusterState,
    Collection,
    CollectorKind,
)
from kafkadash.monitoring.offers import KafkaFeature
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
    failed_with,
    silent,
    watched,
)
from tests.pages.conftest import Page, figures_of, told_in
from tests.stored_messages import each_of_other_versions

GetPage = Callable[[str], Page]
URL = "/clusters/demo/brokers/"


def test_all_are_up(get_page: GetPage, demo: Cluster) -> None:
    page = get_page(URL)
    assert figures_of(page.title) == ["3", "3"]
    assert page.context["tally"].up == page.context["tally"].all == 3
    cells = page.cells("broker-2")
    assert cells[:8] == ["2", "Up", "eu-1c", "229", "0.0 %", "79", "0.0 %", "80"]
    assert page.texts("#broker-2 .directory .mono") == ["/var/lib/kafka/a"]
    assert figures_of(cells[8]) == ["2.0 TB", "33.3 %"]
    assert cells[10:12] == ["no", "4.3+"]  # not throttled, release


def test_what_is_fenced_or_gone_is_the_answer_and_stands_first(get_page: GetPage, demo: Cluster) -> None:
    BrokerState.objects.filter(broker_id=2).update(fenced=True)
    BrokerFactory.create(cluster=demo, broker_id=7, gone_at=NOW - timedelta(hours=1))
    BrokerFactory.create(cluster=demo, broker_id=8, gone_at=NOW - timedelta(days=3), replicas=0, leaders=0)
    page = get_page(URL)
    assert figures_of(page.title) == ["7", "2", "2"]
    assert page.order_of("broker-1", "broker-2", "broker-3", "broker-7")[-2:] == ["broker-1", "broker-3"]
    assert 'data-state="critical"' in page.part("broker-2")
    assert 'data-state="warning"' in page.part("broker-8")
    assert "not evaluated" in page.words("broker-2")


def test_what_is_gone__where_kafka_does_not_tell_who_is_fenced__is_called_not_listed(
    get_page: GetPage, demo: Cluster
) -> None:
    BrokerFactory.create(cluster=demo, broker_id=7, fenced=None, gone_at=NOW - timedelta(hours=1))
    assert get_page(URL).context["gone_word"] == "unregistered"
    ClusterState.objects.update(brokers_fenced=None, brokers_gone=1)
    for address, part in ((URL, "brokers"), ("/clusters/demo/", "figures-demo")):
        html = get_page(address).html.lower()
        assert "not listed" in html, part
        assert "unregistered" not in html, part
    apis = {"55": [0, 2], "60": [0, 1]}
    Capabilities.objects.create(cluster=demo, apis=apis, changed_at=NOW)
    page = get_page(URL)
    assert [each.get("data-lack") for each in page.find("[data-lack]")] == [KafkaFeature.FENCED_BROKERS]
    assert "fenced 0" not in page.html.lower(), "unknown is not none"


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
        assert page.find("[data-empty=filtered]")


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
    unknown, unsorted = page.texts(".notice")
    assert told_in(unknown, RequestErrorCode.CHOICE_UNKNOWN)
    assert "happy" in unknown
    assert told_in(unsorted, RequestErrorCode.COLUMN_UNKNOWN)
    assert "colour" in unsorted
    assert page.has("broker-1")


def test_a_thousand_are_paged_and_the_filter_survives(get_page: GetPage, demo: Cluster) -> None:
    BrokerState.objects.bulk_create(
        [BrokerFactory.build(cluster=demo, broker_id=n, rack="north hall") for n in range(100, 1100)]
    )
    page = get_page(URL + "?rack=north+hall&page=10")
    assert page.figures(".pager") == ["901", "1,000", "1,000"]
    assert page.has("broker-1099")
    assert not page.has("broker-100")
    assert 'href="?rack=north+hall&amp;page=9"' in page.html
    assert figures_of(page.title) == ["1,003", "1,003"]


@pytest.mark.parametrize(("partitions", "judged"), [(49, False), (50, True)])
def test_skew_is_judged_from_fifty_partitions(get_page: GetPage, partitions: int, judged: bool) -> None:
    demo = watched("demo", partitions=partitions)
    BrokerState.objects.filter(cluster=demo, broker_id=1).update(replicas=300, leaders=110)
    words = get_page(URL).words("broker-1")
    assert ("+18.7 % warn" in words) is judged  # 300 of a mean of 252.7
    assert ("+23.1 % attention" in words) is judged
    assert ("not evaluated" in words) is not judged


def test_every_directory_has_its_own_bar_and_its_own_mark(get_page: GetPage, demo: Cluster) -> None:
    BrokerWeights.objects.filter(broker_id=1).update(
        dirs=[
            directory("/a", usable=500 * GB),
            directory("/b", usable=400 * GB),
            directory("/c", usable=200 * GB, cordoned=True),
            directory("/d", total=None, usable=None, error="KAFKA_STORAGE_ERROR"),
        ]
    )
    page = get_page(URL)
    assert page.texts("#broker-1 .directory .mono") == ["/a", "/b", "/c", "/d"]
    assert page.texts("#broker-1 .directory .cell-meter") == ["75.0 %", "80.0 %", "90.0 %"]
    assert [figures_of(flags) for flags in page.texts("#broker-1 .directory-flags .status-mark")] == [
        ["80 %"],
        ["90 %"],
    ]
    assert page.texts("#broker-1 .directory .badge") == ["cordoned"]
    assert page.texts("#broker-1 .directory-wide") == ["KAFKA_STORAGE_ERROR"]


def test_a_throttle_in_force_is_the_brokers_own_or_that_of_all(get_page: GetPage, demo: Cluster) -> None:
    ThrottleFactory.create(cluster=demo, name="1", value="1000000")
    ThrottleFactory.create(cluster=demo, resource="cluster", name="", value="50000000")
    page = get_page(URL)
    assert "1.0 MB/s outbound" in page.words("broker-1")
    assert "50.0 MB/s" not in page.words("broker-1")
    assert "50.0 MB/s outbound" in page.words("broker-2")


def test_what_was_never_read_is_not_zero(get_page: GetPage) -> None:
    demo = watched("demo")
    demo.collector_runs.filter(kind=CollectorKind.CONFIGS).update(succeeded_at=None)
    BrokerWeights.objects.all().delete()
    BrokerState.objects.update(preferred=None, release="")
    words = get_page(URL).words("broker-1")
    assert "unknown not read yet" in words  # preferred, directories
    assert words.count("not read yet") == 2
    assert "0 %" not in words.replace("0.0 %", "")


def test_a_missing_permission_is_named(get_page: GetPage, demo: Cluster) -> None:
    demo.collector_runs.filter(kind=CollectorKind.CONFIGS).update(
        failures=2,
        last_failure=FailureKind.NOT_AUTHORIZED,
        **failed_with("kafkadash lacks DescribeConfigs on CLUSTER."),
        succeeded_at=None,
    )
    for address in (URL, URL + "1/"):
        page = get_page(address)
        assert page.tells(CollectionErrorCode.NEVER_ALLOWED, "#not-read-configs")
        assert "kafkadash lacks DescribeConfigs on CLUSTER." in page.first("#not-read-configs").text


def test_one_cause_is_said_once(get_page: GetPage, demo: Cluster) -> None:
    silent(demo, NOW - timedelta(minutes=12), error="No broker answers.")
    page = get_page(URL)
    notice = "#not-read-metadata-log_dirs-configs-catch_up"
    assert page.tells(CollectionErrorCode.REFRESH_FAILED, notice)
    assert "No broker answers." in page.first(notice).text
    assert page.text.count("No broker answers.") == 1


def test_what_was_read_in_part_says_what_is_missing(get_page: GetPage, demo: Cluster) -> None:
    denied = as_message("It lacks DescribeConfigs.")
    stored = [coded(CollectionErrorCode.TOPIC_NOT_READ, topic="t", why=denied).as_json(), denied.as_json()]
    Collection.objects.filter(kind=CollectorKind.CONFIGS).update(errors=stored)
    CollectionFactory.create(
        cluster=demo,
        kind=CollectorKind.LOG_DIRS,
        errors=[as_message("from long ago").as_json()],
        started_at=NOW - timedelta(days=1),
    )
    page = get_page(URL)
    assert page.tells(CollectionErrorCode.READ_IN_PART, "#not-read-configs")
    assert "It lacks DescribeConfigs." in page.first("#not-read-configs").text
    assert CollectionErrorCode.TOPIC_NOT_READ in page.first("#not-read-configs").text
    assert page.figures("#not-read-configs") == ["1"]
    assert "from long ago" not in page.text


def test_fenced_broker__missing_in_two_kinds_of_data__is_one_line(get_page: GetPage, demo: Cluster) -> None:
    stored = [coded(CollectionErrorCode.BROKER_FENCED, broker=2).as_json()]
    Collection.objects.filter(kind__in=[CollectorKind.CONFIGS, CollectorKind.LOG_DIRS]).update(errors=stored)
    page = get_page(URL)
    [notice] = page.find(".notice")
    assert notice.get("id") == "not-read-configs-log_dirs"
    assert notice.text.startswith("Partial data: broker 2 is offline.")


@each_of_other_versions
def test_a_failure_of_another_version_is_shown_as_stored(
    get_page: GetPage, demo: Cluster, code: str, params: dict[str, Any]
) -> None:
    Collection.objects.filter(kind=CollectorKind.LOG_DIRS).update(errors=[{"code": code, "params": params}])
    runs = demo.collector_runs.filter(kind__in=[CollectorKind.CONFIGS, CollectorKind.METADATA])
    runs.update(failures=2, last_failure=FailureKind.OTHER, last_error_code=code, last_error_params=params)
    words = get_page(URL).words
    assert code in words("not-read-metadata-configs"), "both have one cause"
    assert code in words("not-read-log_dirs")


def test_old_data_is_not_called_up(get_page: GetPage, demo: Cluster) -> None:
    silent(demo, NOW - timedelta(minutes=12), error="refused")
    page = get_page(URL)
    assert figures_of(page.title) == ["3", "12 min"]
    assert "data-stale" in page.start_tag("broker-list-demo")
    assert "Was up" in page.words("broker-1")
    assert figures_of(get_page(URL + "1/").title) == ["1", "12 min"]
    BrokerState.objects.filter(broker_id=2).update(fenced=True)
    BrokerState.objects.filter(broker_id=3).update(gone_at=NOW - timedelta(hours=1))
    assert "Was fenced" in get_page(URL).words("broker-2")
    assert figures_of(get_page(URL + "2/").title) == ["2", "12 min"]
    assert figures_of(get_page(URL + "3/").title) == ["3", "12 min"]
    assert [get_page(f"{URL}{n}/").states(".page-actions .status-pill") for n in (1, 2, 3)] == [["unknown"]] * 3


def test_before_the_first_refresh_it_says_so(get_page: GetPage) -> None:
    ClusterFactory.create(name="demo")
    page = get_page(URL)
    assert not figures_of(page.title)
    assert "kafka-1.internal:9092" in page.first("[data-empty=unread]").text


def test_a_broker_that_is_up(get_page: GetPage, demo: Cluster) -> None:
    page = get_page(URL + "2/")
    assert figures_of(page.title) == ["2", "79"]
    assert page.states(".page-actions .status-pill") == ["ok"]
    assert page.texts("[id=config-log.retention.hours] td")[0] == "72"
    assert page.figures("#broker-disks-demo .directory") == ["667.0 GB", "2.0 TB", "33.3 %"]
    assert page.find("#broker-trouble-demo [data-empty=none]")


def test_a_secret_stays_one_and_an_empty_value_is_not_missing(get_page: GetPage, demo: Cluster) -> None:
    config = {"ssl.keystore.password": [None, "static"], "listeners.extra": ["", "broker"]}
    BrokerState.objects.filter(broker_id=2).update(config=config)
    page = get_page(URL + "2/")
    assert page.find("[id=config-ssl.keystore.password] [data-secret]")
    assert page.order_of("config-listeners.extra", "config-ssl.keystore.password")[0] == "config-listeners.extra"
    assert page.find("[id=config-listeners.extra] [data-empty=value]")


def test_brokers_that_hold_replicas_and_were_never_seen_are_not_forgotten(get_page: GetPage, demo: Cluster) -> None:
    BrokerFactory.create(cluster=demo, broker_id=7, gone_at=NOW - timedelta(hours=1))
    ClusterState.objects.update(brokers_gone=1)
    assert figures_of(get_page(URL).title) == ["7", "3"]
    ClusterState.objects.update(brokers_gone=2)
    assert figures_of(get_page(URL).title) == ["7", "1", "3"]


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"fenced": True}, "Broker 2 is fenced, 229 replicas out of service"),
        ({"fenced": True, "replicas": 1}, "Broker 2 is fenced, 1 replica out of service"),
        ({"fenced": True, "replicas": 0}, "Broker 2 is fenced, hosts no replicas"),
        ({"gone_at": NOW - timedelta(hours=1)}, "Broker 2 is unregistered, 229 replicas assigned"),
        ({"gone_at": NOW, "fenced": None}, "Broker 2 is not listed, 229 replicas assigned"),
        ({"gone_at": NOW - timedelta(days=3), "replicas": 0}, "Broker 2 is unregistered, no replicas assigned"),
    ],
)
def test_a_broker_that_is_away_keeps_its_page(
    get_page: GetPage, demo: Cluster, fields: dict[str, object], title: str
) -> None:
    BrokerState.objects.filter(broker_id=2).update(**fields)
    assert get_page(URL + "2/").title == title


def test_page_of_an_unregistered_broker__says_since_when(get_page: GetPage, demo: Cluster) -> None:
    BrokerState.objects.filter(broker_id=2).update(gone_at=NOW - timedelta(days=3))
    assert "unregistered since 18 Nov 02:03:04" in get_page(URL + "2/").text


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
    assert page.cells("r-in")[1] == "in"


def test_topics_it_hosts_come_largest_first_and_paged(get_page: GetPage, demo: Cluster) -> None:
    sizes = {f"t{n:02}": {"0": n * GB, "1": 1} for n in range(30)} | {"deleted": {"0": 99 * GB}}
    BrokerWeights.objects.filter(broker_id=2).update(data=zlib.compress(json.dumps(sizes).encode()))
    TopicFactory.create(
        cluster=demo, name="t29", partitions=[[0, 2, 5, [2, 1], [2, 1], []], [1, 1, 5, [1, 2], [1, 2], []]]
    )
    page = get_page(URL + "2/")
    assert page.find("#hosted-1 [data-gone]")
    assert page.cells("hosted-1")[1:] == ["99.0 GB", "unknown", "unknown", "unknown"]
    assert page.cells("hosted-2") == ["t29", "29.0 GB", "2", "1", "2"]
    assert figures_of(page.first("#broker-topics-demo .pager").text)[-1] == "31"
    assert get_page(URL + "2/?page=2").texts("#broker-topics-demo tbody tr")[-1].startswith("t00")


def test_without_sizes_its_topics_come_from_metadata(get_page: GetPage, demo: Cluster) -> None:
    BrokerWeights.objects.all().delete()
    TopicFactory.create(cluster=demo, name="here", topic_id="h", partitions=[[0, 1, 5, [1, 2], [1, 2], []]])
    TopicFactory.create(cluster=demo, name="elsewhere", topic_id="e", partitions=[[2, 1, 2, [1, 3], [1, 3], [1]]])
    page = get_page(URL + "2/")
    assert [row.split()[0] for row in page.texts("#broker-topics-demo tbody tr")] == ["here"]
    assert page.cells("hosted-1") == ["here", "unknown", "1", "0", "1"]
    assert page.find("#broker-topics-demo [data-unsized]")


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
    tile = page.first("#broker-facts-demo [data-throttles]")
    assert tile.get("data-throttles") == "unknown"


RACKS_URL = "/clusters/demo/racks/"


@pytest.fixture
def demo_in_racks(db: None) -> Cluster:
    """Brokers 1, 2, 3 in racks b, c, a; broker 4 in rack b too."""
    demo = watched("demo", rack_violations=0, partitions=478)
    BrokerFactory.create(cluster=demo, broker_id=4, rack="eu-1b")
    return demo


def test_all_are_spread(get_page: GetPage, demo_in_racks: Cluster) -> None:
    page = get_page(RACKS_URL)
    assert page.title == "demo: racks balanced"
    assert page.find("#rack-violations-demo [data-empty=none]")
    assert page.texts("#rack-2 .rack-name") == ["eu-1b"]
    assert page.figures("#rack-2 .rack-head") == ["2", "458"]
    assert page.figures("#cell-1") == ["1", "229", "79", "667.0 GB", "33.3 %"]
    assert page.first("#cell-1").get("href") == "/clusters/demo/brokers/1/"
    assert page.states("#cell-1 .status-mark") == ["ok"]
    assert page.states("#rack-2 .rack-verdict .status-mark") == ["ok"]
    assert not page.links("#rack-2 .rack-verdict")
    assert page.order_of("cell-1", "cell-2", "cell-3", "cell-4") == ["cell-3", "cell-1", "cell-4", "cell-2"]


def test_all_are_spread__a_broker_is_fenced__title_says_so(get_page: GetPage, demo_in_racks: Cluster) -> None:
    ClusterState.objects.update(brokers_fenced=1)
    assert get_page(RACKS_URL).title == "demo: racks balanced, 1 broker offline"


def test_violations_by_topic_with_what_fixes_them(get_page: GetPage, demo_in_racks: Cluster) -> None:
    TopicFactory.create(
        cluster=demo_in_racks,
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
    page = get_page(RACKS_URL)
    assert figures_of(page.title) == ["2", "478"]
    assert page.figures("#violating-clicks") == ["2", "3", "2"]
    assert page.texts("#violation-clicks-1 .replica small") == ["b", "b"]
    assert page.texts("#violation-clicks-1 .replica[data-leader] small") == ["b"]
    assert [figures_of(cell) for cell in page.cells("violation-clicks-1")[2:]] == [["1", "2"], ["1"]]
    assert [figures_of(cell) for cell in page.cells("violation-clicks-2")[2:]] == [["2", "3"], ["1"]]
    assert not page.has("violation-clicks-0")
    assert "2 violations" in page.words("cell-1")
    assert 'data-state="warning"' in page.start_tag("cell-4")
    assert "violation" not in page.words("cell-2")


def test_a_crowded_rack_is_named(get_page: GetPage, demo_in_racks: Cluster) -> None:
    BrokerFactory.create(cluster=demo_in_racks, broker_id=5, rack="eu-1b")
    TopicFactory.create(
        cluster=demo_in_racks,
        name="wide",
        topic_id="wide",
        rack_violations=1,
        partitions=[[0, 1, 5, [1, 4, 5, 2, 3], [1, 4, 5, 2, 3], []]],
    )
    racks, fix = get_page(RACKS_URL).cells("violation-wide-0")[2:]
    assert racks.endswith("eu-1b")
    assert figures_of(fix) == ["1"]


def crowd(cluster: Cluster, name: str, *partitions: list[int]) -> None:
    """A topic with these partitions, all of them violations."""
    rows = [[number, held[0], 5, held, held, []] for number, held in enumerate(partitions)]
    TopicFactory.create(cluster=cluster, name=name, topic_id=name, rack_violations=len(rows), partitions=rows)


def test_a_racks_violations__are_counted_and_lead_to_the_list_of_that_rack(
    get_page: GetPage, demo_in_racks: Cluster
) -> None:
    BrokerFactory.create(cluster=demo_in_racks, broker_id=5, rack="eu-1c")
    crowd(demo_in_racks, "in-b", [1, 4], [4, 1])
    crowd(demo_in_racks, "in-c", [2, 5])
    crowd(demo_in_racks, "in-both", [1, 4], [2, 5])
    page = get_page(RACKS_URL)
    assert [page.figures(f"#rack-verdict-{n}") for n in (1, 2, 3)] == [[], ["3"], ["2"]]
    assert page.states(".rack-verdict .status-mark") == ["ok", "warning", "warning"]
    (address,) = page.links("#rack-2 .rack-verdict")
    assert address == "?rack=eu-1b#rack-violations-demo"
    assert page.texts("#filter-rack option") == ["All racks", "eu-1b", "eu-1c"]
    filtered = get_page(RACKS_URL + address.partition("#")[0])
    assert all(filtered.has(id_) for id_ in ("violation-in-b-0", "violation-in-b-1", "violation-in-both-0"))
    assert not filtered.has("violating-in-c")
    assert not filtered.has("violation-in-both-1")
    assert filtered.first("#rack-2 .rack-verdict a").get("aria-current") == "true"
    assert filtered.figures("#rack-verdict-3") == ["2"], "the other racks keep their counts"
    assert filtered.first("#filter-rack option[selected]").text == "eu-1b"
    assert get_page(RACKS_URL + "?rack=eu-1b&q=both").texts(".violations .table-group .mono") == ["in-both"]


def test_a_rack_that_has_no_violation__or_is_not_there__leaves_none(get_page: GetPage, demo_in_racks: Cluster) -> None:
    crowd(demo_in_racks, "in-b", [1, 4])
    for rack in ("eu-1a", "eu-9"):
        page = get_page(RACKS_URL + f"?rack={rack}")
        assert page.find("[data-empty=filtered]")
        assert not page.find(".violations")


def test_the_empty_name_of_a_rack__has_a_count_without_a_link(get_page: GetPage, demo_in_racks: Cluster) -> None:
    BrokerState.objects.filter(broker_id__in=(1, 4)).update(rack="")
    crowd(demo_in_racks, "in-b", [1, 4])
    page = get_page(RACKS_URL)
    assert page.figures("#rack-verdict-1") == ["1"]
    assert page.states("#rack-1 .rack-verdict .status-mark") == ["warning"]
    assert not page.links("#rack-1 .rack-verdict")


def test_too_many_violations__are_not_counted_by_rack_and_not_filtered(
    get_page: GetPage, demo_in_racks: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkadash.monitoring.racks.MOST_COUNTED", 1)
    crowd(demo_in_racks, "in-b", [1, 4], [4, 1])
    page = get_page(RACKS_URL + "?rack=eu-1a")
    assert page.tells(CollectionErrorCode.RACKS_NOT_COUNTED, ".notice")
    assert page.has("violating-in-b")
    assert not page.has("filter-rack")
    assert not page.find(".rack-verdict .status-mark"), "neither a number nor ok"


def test_racks_without_violation__are_not_ok_while_data_is_old_or_in_doubt(
    get_page: GetPage, demo_in_racks: Cluster
) -> None:
    ClusterState.objects.update(hidden_topics=2)
    assert set(get_page(RACKS_URL).states(".rack-verdict .status-mark")) == {"unknown"}
    ClusterState.objects.update(hidden_topics=0, rack_violations=None)
    assert not get_page(RACKS_URL).find(".rack-verdict .status-mark")
    ClusterState.objects.update(rack_violations=0)
    silent(demo_in_racks, NOW - timedelta(minutes=12), error="refused")
    page = get_page(RACKS_URL)
    assert set(page.states(".rack-verdict .status-mark")) == {"unknown"}
    assert set(page.states(".rack-cell .status-mark")) == {"unknown"}


def test_a_moving_partition_is_judged_by_where_it_goes(get_page: GetPage, demo_in_racks: Cluster) -> None:
    """Leaving the second replica of a rack is the repair, going there is a violation to come."""
    TopicFactory.create(
        cluster=demo_in_racks,
        name="t",
        topic_id="t",
        rack_violations=1,
        partitions=[[0, 1, 5, [1, 2, 4], [1, 4], []], [1, 1, 5, [1, 4, 3], [1, 3], []]],
    )
    ReassignmentFactory.create(cluster=demo_in_racks, topic="t", topic_id="t", partition=0, adding=[2], removing=[4])
    ReassignmentFactory.create(cluster=demo_in_racks, topic="t", topic_id="t", partition=1, adding=[4], removing=[3])
    page = get_page(RACKS_URL)
    assert not page.has("violation-t-0")
    assert page.has("violation-t-1")


@pytest.mark.parametrize(
    ("racks", "why", "named"),
    [
        ((None, None, None), "unnamed", []),
        (("a", None, "b"), "unnamed", ["2"]),
        ((None, None, "b"), "unnamed", ["1", "2"]),
        (("a", "a", "a"), "one-rack", []),
    ],
)
def test_racks_that_cannot_be_judged(
    get_page: GetPage, racks: tuple[str | None, ...], why: str, named: list[str]
) -> None:
    demo = watched("demo", rack_violations=None)
    for number, rack in enumerate(racks, 1):
        BrokerState.objects.filter(cluster=demo, broker_id=number).update(rack=rack)
    TopicFactory.create(cluster=demo, rack_violations=None)
    page = get_page(RACKS_URL)
    assert figures_of(page.title) == named
    assert page.first("[data-unjudged]").get("data-unjudged") == why
    assert not page.has("rack-violations-demo")
    assert all(page.has(f"cell-{n}") for n in (1, 2, 3))


def test_names_with_spaces_and_of_any_script(get_page: GetPage, demo_in_racks: Cluster) -> None:
    for broker, rack in ((1, "Halle Süd, Reihe 4"), (2, "機架 二"), (3, ""), (4, "<b>&")):
        BrokerState.objects.filter(broker_id=broker).update(rack=rack)
    page = get_page(RACKS_URL)
    assert "Halle Süd, Reihe 4" in page.texts(".rack-name")
    assert "機架 二" in page.text
    names = page.texts(".rack-name")
    assert any(name.startswith("“”") for name in names)
    assert "<b>&" in names


def test_a_broker_that_is_away_is_marked_and_the_fullest_directory_shown(
    get_page: GetPage, demo_in_racks: Cluster
) -> None:
    BrokerState.objects.filter(broker_id=2).update(fenced=True)
    BrokerWeights.objects.filter(broker_id=1).update(
        dirs=[directory(usable=1900 * GB), directory(usable=100 * GB), directory(total=None, usable=None)]
    )
    page = get_page(RACKS_URL)
    assert "Fenced" in page.words("cell-2")
    assert page.states("#cell-2 .status-mark") == ["critical"]
    assert 'data-state="critical"' in page.start_tag("cell-2")
    assert 'aria-label="95.0 percent"' in page.part("cell-1")
    assert "95.0 %" in page.words("cell-1")
    assert "size not read" in page.words("cell-4")


def test_of_very_many_brokers_only_those_that_matter_have_cells(get_page: GetPage, demo_in_racks: Cluster) -> None:
    BrokerState.objects.bulk_create(BrokerFactory.build(cluster=demo_in_racks, broker_id=n) for n in range(100, 400))
    TopicFactory.create(cluster=demo_in_racks, rack_violations=1, partitions=[[0, 1, 5, [1, 4], [1, 4], []]])
    page = get_page(RACKS_URL)
    assert page.has("cell-1")
    assert not page.has("cell-100")
    assert page.figures("#rack-2 .rack-rest") == ["100"]
    assert page.links("#rack-2 .rack-rest") == ["/clusters/demo/brokers/?rack=eu-1b"]


def test_topics_are_filtered_and_paged_by_address(get_page: GetPage, demo_in_racks: Cluster) -> None:
    for n in range(25):
        TopicFactory.create(
            cluster=demo_in_racks,
            name=f"t{n:02}",
            topic_id=f"t{n}",
            rack_violations=1,
            partitions=[[0, 1, 5, [1, 4], [1, 4], []]],
        )
    page = get_page(RACKS_URL + "?page=2")
    assert "21–25 of 25" in page.text
    assert page.has("violating-t24")
    page = get_page(RACKS_URL + "?q=t07")
    assert page.has("violating-t7")
    assert not page.has("violating-t8")
    assert get_page(RACKS_URL + "?q=nowhere").find("[data-empty=filtered]")


def test_old_and_never(get_page: GetPage, demo_in_racks: Cluster) -> None:
    silent(demo_in_racks, NOW - timedelta(minutes=12), error="refused")
    page = get_page(RACKS_URL)
    assert figures_of(page.title) == ["12 min"]
    assert "data-stale" in page.start_tag("rack-map-demo")
    assert "Was up" in page.words("cell-1")
    ClusterFactory.create(name="never")
    page = get_page("/clusters/never/racks/")
    assert not figures_of(page.title)
    assert page.find("[data-empty=unread]")
