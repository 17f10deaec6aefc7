"""The page of the controllers: the margin as its title, every node with its ages, who led, how far all were behind.

Without a majority of the controllers brokers repeat what they last heard: no page may be green of that.
"""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.management import call_command

from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import coded, message_columns
from kafkadash.findings.services import judge
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring.models import Capabilities, CollectorKind, CollectorRun, QuorumSnapshot, ZooKeeperState
from tests.factories import NOW, BrokerFactory, QuorumFactory, failed_with, node, silent, watched
from tests.pages.conftest import Page, figures_of
from tests.pages.test_drill import topic
from tests.quorums import all_in_sync, answers, status_kept, steady
from tests.stored_messages import each_of_other_versions

pytestmark = pytest.mark.django_db

GetPage = Callable[[str], Page]
ADDRESS = "/clusters/demo/quorum/"
LAST = NOW - timedelta(seconds=3)
LOST = (
    "A broker answered, but could not get DescribeQuorum from the active controller (REQUEST_TIMED_OUT). "
    "The controllers may have no majority or no leader yet."
)


def chart(page: Page) -> dict[str, Any]:
    spec = re.search(r'data-chart="([^"]*)"', page.html)
    assert spec
    parsed: dict[str, Any] = json.loads(html.unescape(spec[1]))
    return parsed


def lines(page: Page) -> dict[str, list[float | None]]:
    return {series["label"]: series["y"] for series in chart(page)["series"]}


def set_run(cluster: Cluster, **fields: Any) -> None:
    cluster.collector_runs.filter(kind=CollectorKind.QUORUM).update(**fields)


LEVEL_20 = {"finalized": 20, "supported": [1, 20]}
UNKNOWN_LEVEL = {"finalized": None, "supported": [0, 1]}


class TestTheAnswer:
    def test_the_title_says_what_may_still_fail(self, demo: Cluster, get_page: GetPage) -> None:
        page = get_page(ADDRESS)
        assert figures_of(page.title) == ["1"]
        assert page.states("#controllers-demo") == ["ok"]
        assert page.figures("#leader-demo") == ["102", "02:03:01", "47"]
        assert page.first("#leader-demo").has("data-at-least")

    def test_the_begin_of_a_reign_that_was_seen_is_exact(self, demo: Cluster, get_page: GetPage) -> None:
        answers(demo, LAST, timedelta(hours=1), leaders=((timedelta(0), 101, 46), (timedelta(minutes=30), 102, 47)))
        page = get_page(ADDRESS)
        assert page.figures("#leader-demo")[:2] == ["102", "01:33:01"]
        assert not page.first("#leader-demo").has("data-at-least")

    def test_the_strip_says_who_is_needed_and_who_may_fail(self, demo: Cluster, get_page: GetPage) -> None:
        part = get_page(ADDRESS).part(f"margin-{demo.slug}")
        assert re.findall(r'data-place="(\w+)"', part) == ["needed", "needed", "spare"]

    def test_a_voter_that_is_offline_does_not_count(self, demo: Cluster, get_page: GetPage) -> None:
        answers(demo, LAST, timedelta(minutes=10), behind=lambda n, i: 400_000 if n == 103 else steady(n, i))
        page = get_page(ADDRESS)
        assert page.context["controllers"]["verdict"].state == page.states("#controllers-demo")[0] == "warning"
        assert page.context["controllers"]["seen"].quorum.survives == 0
        assert re.findall(r'data-place="(\w+)"', page.part("margin-demo")) == ["needed", "needed", "out"]
        assert page.cells("node-demo-103-dir103AAAAAAAAAAAAAAAA")[1:3] == ["follower", "Offline"]

    def test_majority_lost_is_a_state_of_its_own_and_keeps_what_was_known(
        self, demo: Cluster, get_page: GetPage
    ) -> None:
        QuorumSnapshot.objects.update(taken_at=NOW - timedelta(seconds=95))
        set_run(
            demo,
            failures=3,
            last_failure=FailureKind.QUORUM_UNAVAILABLE,
            **failed_with(LOST),
            succeeded_at=NOW - timedelta(seconds=95),
        )
        page = get_page(ADDRESS)
        assert page.context["controllers"]["verdict"].lost
        assert page.figures("#controllers-demo .page-head p")[0] == "1 min 35 s"
        assert 'data-state="critical"' in page.start_tag("controllers-demo")
        assert "data-stale" in page.start_tag("nodes-demo")
        assert 'data-state="ok"' not in page.part("nodes-demo")

    def test_a_cluster_that_does_not_answer_is_unknown(self, demo: Cluster, get_page: GetPage) -> None:
        refused = "Broker 1 could not be connected: connection refused."
        silent(demo, NOW - timedelta(minutes=12), error=refused)
        page = get_page(ADDRESS)
        assert figures_of(page.title) == ["12 min"]
        assert page.states("#controllers-demo") == ["unknown"]
        assert refused in page.text
        assert 'data-state="ok"' not in page.part("nodes-demo")

    def test_a_missing_permission_is_named(self, demo: Cluster, get_page: GetPage) -> None:
        QuorumSnapshot.objects.all().delete()
        refused = "Kafka refused DescribeQuorum: the principal needs Describe on the cluster."
        set_run(demo, failures=4, last_failure=FailureKind.NOT_AUTHORIZED, **failed_with(refused), succeeded_at=None)
        page = get_page(ADDRESS)
        assert not figures_of(page.title)
        assert page.states("#controllers-demo") == ["unknown"]
        assert refused in page.text

    @each_of_other_versions
    def test_a_failure_of_another_version_is_shown_as_stored(
        self, demo: Cluster, get_page: GetPage, code: str, params: dict[str, Any]
    ) -> None:
        QuorumSnapshot.objects.all().delete()
        fields = {"last_error_code": code, "last_error_params": params}
        set_run(demo, failures=1, last_failure=FailureKind.OTHER, succeeded_at=None, **fields)
        assert code in get_page(ADDRESS).text

    def test_zookeeper_mode_is_named(self, demo: Cluster, get_page: GetPage) -> None:
        Cluster.objects.update(mode=ClusterMode.ZOOKEEPER)
        QuorumSnapshot.objects.all().delete()
        page = get_page(ADDRESS)
        assert page.context["controllers"]["zookeeper"]
        assert "demo" in page.title
        assert not page.has("lag-demo")

    def test_zookeeper__tells_the_controller_and_what_is_pending(self, demo: Cluster, get_page: GetPage) -> None:
        Cluster.objects.update(mode=ClusterMode.ZOOKEEPER, zookeeper="z:2181")
        state = ZooKeeperState.objects.create(
            cluster=demo,
            taken_at=LAST,
            controller_id=2,
            controller_epoch=9,
            elections=[["<b>orders", 1]],
            elections_count=1,
            deletions=["old"],
            deletions_count=70,
        )
        page = get_page(ADDRESS)
        assert page.title == "demo: broker 2 is the controller"
        panel = page.part("ensemble-demo")
        assert all(told in panel for told in ("&lt;b&gt;orders-1", "old", "of 70"))
        state.kraft_epoch, state.controller_id = 4, 3000
        state.save()
        assert "KRaft controller 3000" in get_page(ADDRESS).title
        why = coded(KafkaErrorCode.ZOOKEEPER_LOST, address="z:2181")
        ZooKeeperState.objects.update(taken_at=LAST - timedelta(minutes=5), **message_columns(why, "error"))
        page = get_page(ADDRESS)
        assert "last known" in page.title
        assert page.tells(KafkaErrorCode.ZOOKEEPER_LOST, "#ensemble-demo")

    @pytest.mark.parametrize(
        ("features", "words"),
        [
            ({"kraft.version": {"finalized": 1, "supported": [0, 1]}}, "KRaft, dynamic voters"),
            ({"kraft.version": UNKNOWN_LEVEL, "metadata.version": LEVEL_20}, "KRaft, static voters"),
            ({"kraft.version": UNKNOWN_LEVEL}, ""),
            ({"metadata.version": LEVEL_20}, "KRaft, static voters"),
            ({}, ""),
        ],
    )
    def test_the_kind_of_voters_is_said_where_it_is_known(
        self, demo: Cluster, get_page: GetPage, features: dict[str, Any], words: str
    ) -> None:
        Capabilities.objects.create(cluster=demo, features=features, changed_at=NOW)
        text = get_page(ADDRESS).text
        assert words in text
        assert words or "voters" not in text.split("Margin")[0]


class TestTheNodes:
    def test_every_column_of_the_kip_is_there(self, demo: Cluster, get_page: GetPage) -> None:
        all_in_sync(demo, NOW - timedelta(hours=2))
        cells = get_page(ADDRESS).cells("node-demo-103-dir103AAAAAAAAAAAAAAAA")
        assert cells[:7] == ["103", "follower", "In sync", "controller only", "8,412,905", "2", "340"]
        assert cells[7:] == ["0.3 s 01:46:39.660", "0.3 s 01:46:39.660", "00:03:04", "dir103AA…"]

    def test_times_the_leader_does_not_tell_are_unknown_and_not_zero(self, demo: Cluster, get_page: GetPage) -> None:
        QuorumSnapshot.objects.all().delete()
        replicas = [node(101, caught_up_ago=0), node(102, caught_up_ago=None, log_end=None)]
        QuorumFactory.create(cluster=demo, leader_id=101, taken_at=LAST, replicas=replicas)
        words = get_page(ADDRESS).words("node-demo-102-dir102AAAAAAAAAAAAAAAA")
        assert words.count("unknown") == 6  # since when it is its status, too

    def test_an_observer_that_vanished_is_gone_since_when(self, demo: Cluster, get_page: GetPage) -> None:
        BrokerFactory.create(cluster=demo, broker_id=7)
        status_kept(demo, 7, "Gone", NOW - timedelta(minutes=4), voter=False)
        page = get_page(ADDRESS)
        [gone] = [row.texts("th") + row.texts("td") for row in page.find("#nodes-demo [data-node-status=Gone]")]
        assert gone[:5] == ["7", "observer", "Not listed", "eu-1b", "not listed"]
        assert gone[9] == "01:59:04"
        assert page.words("nodes-demo").count("7 observer") == 1

    def test_a_registered_broker_that_nothing_is_known_of_is_offline(self, demo: Cluster, get_page: GetPage) -> None:
        BrokerFactory.create(cluster=demo, broker_id=8)
        assert "8 observer Offline" in get_page(ADDRESS).words("nodes-demo")

    def test_who_left_long_ago_is_forgotten_unless_it_is_a_registered_broker(
        self, demo: Cluster, get_page: GetPage
    ) -> None:
        BrokerFactory.create(cluster=demo, broker_id=7)
        BrokerFactory.create(cluster=demo, broker_id=8, gone_at=NOW - timedelta(days=2))
        for node_id in (7, 8, 9):
            status_kept(demo, node_id, "Gone", NOW - timedelta(days=2), voter=False)
        words = get_page(ADDRESS).words("nodes-demo")
        assert "7 observer Not listed" in words
        assert "8 observer" not in words
        assert "9 observer" not in words


class TestTheLeaders:
    def test_they_are_listed_with_what_was_not_seen(self, demo: Cluster, get_page: GetPage) -> None:
        leaders = ((timedelta(0), 101, 40), (timedelta(minutes=20), 103, 43), (timedelta(minutes=40), 102, 44))
        answers(demo, LAST, timedelta(hours=1), leaders=leaders)
        page = get_page(ADDRESS)
        assert page.order_of("reign-demo-40", "reign-demo-43", "reign-demo-44") == [
            "reign-demo-44",
            "reign-demo-43",
            "reign-demo-40",
        ]
        assert page.figures("#reign-demo-43 div") == ["103", "20 min", "43", "101", "2"]
        assert page.first("#reign-demo-40 [data-reign]").get("data-reign") == "since-before"
        assert page.figures("#leaders-demo .panel-foot")[:2] == ["2", "01:03:01"]

    def test_flapping_is_named(self, demo: Cluster, get_page: GetPage) -> None:
        leaders = [(timedelta(minutes=2 * n), 101 + n % 3, 40 + n) for n in range(5)]
        answers(demo, LAST, timedelta(minutes=9), leaders=leaders)
        page = get_page(ADDRESS)
        assert figures_of(page.title) == ["4", "10 min"]
        assert page.figures("#controllers-demo .page-head p") == ["1"]
        assert page.states("#leaders-demo .status-pill") == ["warning"]


class TestTheLagHistory:
    def test_a_short_spike_is_kept_in_the_longest_range(self, demo: Cluster, get_page: GetPage) -> None:
        answers(
            demo,
            LAST,
            timedelta(hours=24),
            timedelta(seconds=60),
            behind=lambda n, i: 2_400 if (n, i) == (3, 700) else steady(n, i),
        )
        page = get_page(f"{ADDRESS}?range=24h")
        drawn = lines(page)
        assert [v for v in drawn["broker 3"] if v is not None and v > 400] == [2400]
        assert len(chart(page)["x"]) == len(drawn["broker 3"]) == 240
        assert figures_of(page.first("#lag-demo .chart-summary").text)[-4:] == ["3", "2.4 s", "13:42", "13:48"]
        assert "2,400" in page.words("lag-table-demo")

    def test_silence_is_a_gap_and_not_zero(self, demo: Cluster, get_page: GetPage) -> None:
        begin, end = NOW - timedelta(minutes=40), NOW - timedelta(minutes=30)
        answers(demo, LAST, timedelta(hours=2), silent=lambda at: begin <= at < end)
        page = get_page(f"{ADDRESS}?range=1h")
        assert lines(page)["voter 101"].count(None) == 19
        assert page.figures("#lag-demo .chart-summary")[-2:] == ["19", "120"]

    def test_what_was_before_the_first_answer_was_not_silence(self, demo: Cluster, get_page: GetPage) -> None:
        answers(demo, LAST, timedelta(minutes=20))
        page = get_page(f"{ADDRESS}?range=1h")
        assert "No response" not in page.words("lag-demo")
        assert 75 <= lines(page)["voter 101"].count(None) <= 81

    def test_a_leader_has_no_lag_of_its_own_and_its_change_is_marked(self, demo: Cluster, get_page: GetPage) -> None:
        leaders = ((timedelta(0), 101, 46), (timedelta(minutes=30), 102, 47))
        answers(demo, LAST, timedelta(hours=1), leaders=leaders)
        page = get_page(f"{ADDRESS}?range=1h")
        drawn = lines(page)
        assert drawn["voter 101"][5] is None
        assert drawn["voter 102"][5] is not None
        assert drawn["voter 102"][-5] is None
        [mark] = chart(page)["marks"]
        assert mark["x"] == (LAST - timedelta(minutes=30)).timestamp()
        assert figures_of(mark["label"]) == ["101", "102", "47"]
        assert mark["label"] in page.texts("#lag-table-demo td")

    def test_many_observers_share_a_line_but_for_the_worst(self, demo: Cluster, get_page: GetPage) -> None:
        answers(
            demo,
            LAST,
            timedelta(minutes=14),
            observers=range(1, 31),
            behind=lambda n, i: 3_000 if n == 29 else steady(n, i),
        )
        drawn = lines(get_page(f"{ADDRESS}?range=15m"))
        assert len(drawn) == 12
        assert "broker 29" in drawn
        assert "highest of 21 others" in drawn

    def test_a_lag_of_minutes_is_drawn_in_seconds(self, demo: Cluster, get_page: GetPage) -> None:
        answers(demo, LAST, timedelta(minutes=14), behind=lambda n, i: 120_500 if n == 103 else steady(n, i))
        spec = chart(get_page(f"{ADDRESS}?range=15m"))
        assert spec["unit"] == "s"
        assert spec["limits"][0]["y"] == 2
        assert max(v for series in spec["series"] for v in series["y"] if v is not None) == 120.5

    def test_the_fragment_is_the_part_of_the_page(self, demo: Cluster, get_page: GetPage) -> None:
        answers(demo, LAST, timedelta(hours=1))
        page = get_page(f"{ADDRESS}?range=6h")
        assert get_page(f"{ADDRESS}lag/?range=6h").html.strip() == page.part("lag-demo")

    def test_a_range_that_is_none_gives_the_usual_one(self, demo: Cluster, get_page: GetPage) -> None:
        assert get_page(f"{ADDRESS}?range=2y").texts("#lag-demo [aria-current]") == ["1 h"]


PAGES = (
    "reassignments/",
    "brokers/",
    "brokers/1/",
    "topics/",
    "topics/orders/",
    "racks/",
    "drill/",
    "drill/?broker=1",
    "",
)


@pytest.fixture
def quorumless(db: None) -> Cluster:
    """Metadata was read a moment ago, the controllers last answered 25 s ago and then failed twice."""
    cluster = watched("demo")
    topic(cluster, "orders", [1, 2, 3])
    runs = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.QUORUM)
    runs.update(
        succeeded_at=NOW - timedelta(seconds=25),
        failures=2,
        last_failure=FailureKind.QUORUM_UNAVAILABLE,
        **failed_with("No."),
    )
    for seconds in (10, 0):
        judge(cluster.pk, NOW - timedelta(seconds=seconds))
    return cluster


def test_a_read_of_metadata_that_fails_as_well_makes_nothing_green(
    quorumless: Cluster, get_page: Callable[[str], Page]
) -> None:
    """As when a broker dies after the controllers: what was read before is not stale yet."""
    CollectorRun.objects.filter(cluster=quorumless, kind=CollectorKind.METADATA).update(
        failures=1, last_failure=FailureKind.UNREACHABLE
    )
    shown = get_page("/clusters/demo/brokers/")
    assert shown.start_tag("broker-list-demo").count("data-stale") == 1
    assert 'data-state="ok"' not in shown.html[shown.html.index("<main") :]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("failure", [FailureKind.QUORUM_UNAVAILABLE, FailureKind.UNREACHABLE])
def test_no_page_is_green(quorumless: Cluster, get_page: Callable[[str], Page], path: str, failure: str) -> None:
    """However the questions to the controllers fail: a connection may break while it waits for their answer."""
    CollectorRun.objects.filter(cluster=quorumless, kind=CollectorKind.QUORUM).update(last_failure=failure)
    shown = get_page(f"/clusters/demo/{path}")
    main = shown.html[shown.html.index("<main") :]
    listed_at = "02:03:01" if path == "reassignments/" else "02:02:39"  # controllers answered this later than that
    assert listed_at in figures_of(shown.first("main").text)
    assert 'data-state="ok"' not in main


def run_quorum(*options: str) -> list[str]:
    out = io.StringIO()
    call_command("quorum", "--cluster", "demo", *options, stdout=out)
    return out.getvalue().splitlines()


def test_command__has_the_columns_of_kafkas_tool_and_minus_one_for_unknown(db: None) -> None:
    cluster = watched("demo")
    QuorumSnapshot.objects.filter(cluster=cluster).update(high_watermark=None)
    snapshot = QuorumSnapshot.objects.filter(cluster=cluster).latest("taken_at")
    with time_machine.travel(NOW, tick=False):
        status, rows = run_quorum("--status"), run_quorum("--replication")
        told = json.loads("\n".join(run_quorum("--json")))
    assert f"LeaderId:               {snapshot.leader_id}" in status
    assert "HighWatermark:          -1" in status
    assert rows[1].split() == [
        *("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")
    ]
    leader, *others = (row.split() for row in rows[2:])
    assert (leader[0], leader[-1]) == (str(snapshot.leader_id), "Leader")
    assert {other[-1] for other in others} == {"Follower", "Observer"}
    stored = {str(replica["id"]): replica["last_caught_up_ms"] for replica in snapshot.replicas}
    assert {row[0]: int(row[5]) for row in (leader, *others)} == stored
    assert (told["high_watermark"], told["leader_epoch"]) == (None, snapshot.leader_epoch)
