"""The page of the controllers: the margin as its title, every node with its ages, who led, how far all were behind."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.observe.models import Capabilities, Kind, QuorumSnapshot
from tests.factories import NOW, BrokerFactory, QuorumFactory, node, silent, watched
from tests.pages.conftest import Page
from tests.quorums import all_in_sync, answers, status_kept, steady

pytestmark = pytest.mark.django_db

GetPage = Callable[[str], Page]
ADDRESS = "/clusters/demo/quorum/"
LAST = NOW - timedelta(seconds=3)
LOST = (
    "A broker answered, but could not get DescribeQuorum from the active controller (REQUEST_TIMED_OUT). "
    "The controllers may have no majority or no leader yet."
)


@pytest.fixture
def demo() -> Cluster:
    return watched("demo")


def chart(page: Page) -> dict[str, Any]:
    spec = re.search(r'data-chart="([^"]*)"', page.html)
    assert spec
    parsed: dict[str, Any] = json.loads(html.unescape(spec[1]))
    return parsed


def lines(page: Page) -> dict[str, list[float | None]]:
    return {series["label"]: series["y"] for series in chart(page)["series"]}


def set_run(cluster: Cluster, **fields: Any) -> None:
    cluster.collector_runs.filter(kind=Kind.QUORUM).update(**fields)


class TestTheAnswer:
    def test_the_title_says_what_may_still_fail(self, demo: Cluster, get_page: GetPage) -> None:
        page = get_page(ADDRESS)
        assert page.title == "The quorum survives 1 more failure."
        assert "Controller 102 has led since 02:03:01 or longer, epoch 47." in page.text

    def test_the_begin_of_a_reign_that_was_seen_is_exact(self, demo: Cluster, get_page: GetPage) -> None:
        answers(demo, LAST, timedelta(hours=1), leaders=((timedelta(0), 101, 46), (timedelta(minutes=30), 102, 47)))
        text = get_page(ADDRESS).text
        assert "Controller 102 has led since 01:33:01" in text
        assert "or longer" not in text

    def test_the_strip_says_who_is_needed_and_who_may_fail(self, demo: Cluster, get_page: GetPage) -> None:
        part = get_page(ADDRESS).part(f"margin-{demo.slug}")
        assert re.findall(r'data-place="(\w+)"', part) == ["needed", "needed", "spare"]

    def test_a_voter_that_is_offline_does_not_count(self, demo: Cluster, get_page: GetPage) -> None:
        answers(demo, LAST, timedelta(minutes=10), behind=lambda n, i: 400_000 if n == 103 else steady(n, i))
        page = get_page(ADDRESS)
        assert page.title == "The quorum survives no further failure."
        assert re.findall(r'data-place="(\w+)"', page.part("margin-demo")) == ["needed", "needed", "out"]
        assert "103 follower Offline" in page.words("nodes-demo")

    def test_majority_lost_is_a_state_of_its_own_and_keeps_what_was_known(
        self, demo: Cluster, get_page: GetPage
    ) -> None:
        QuorumSnapshot.objects.update(taken_at=NOW - timedelta(seconds=95))
        set_run(
            demo,
            failures=3,
            last_failure=FailureKind.QUORUM_UNAVAILABLE,
            last_error=LOST,
            succeeded_at=NOW - timedelta(seconds=95),
        )
        page = get_page(ADDRESS)
        assert page.title == "The quorum is lost: no leader can be elected and nothing can be changed."
        assert "What is shown here is as it was 1 min 35 s ago." in page.text
        assert 'data-state="critical"' in page.start_tag("controllers-demo")
        assert "led when last heard of" in page.text
        assert "data-stale" in page.start_tag("nodes-demo")
        assert 'data-state="ok"' not in page.part("nodes-demo")

    def test_a_cluster_that_does_not_answer_is_unknown(self, demo: Cluster, get_page: GetPage) -> None:
        silent(demo, NOW - timedelta(minutes=12), error="Broker 1 could not be connected: connection refused.")
        page = get_page(ADDRESS)
        assert page.title == "Cannot tell how the quorum stands: it was last heard of 12 min ago."
        assert "connection refused" in page.text
        assert 'data-state="ok"' not in page.part("nodes-demo")

    def test_a_missing_permission_is_named(self, demo: Cluster, get_page: GetPage) -> None:
        QuorumSnapshot.objects.all().delete()
        refused = "Kafka refused DescribeQuorum: the principal needs Describe on the cluster."
        set_run(demo, failures=4, last_failure=FailureKind.NOT_AUTHORIZED, last_error=refused, succeeded_at=None)
        page = get_page(ADDRESS)
        assert page.title == "Cannot tell how the quorum stands: kafkadash may not ask for it."
        assert refused in page.text

    def test_zookeeper_mode_is_named(self, demo: Cluster, get_page: GetPage) -> None:
        Cluster.objects.update(mode=Mode.ZOOKEEPER)
        QuorumSnapshot.objects.all().delete()
        page = get_page(ADDRESS)
        assert page.title == "demo elects its controller through ZooKeeper."
        assert not page.has("lag-demo")

    @pytest.mark.parametrize(
        ("features", "words"),
        [
            ({"kraft.version": {"finalized": 1, "supported": [0, 1]}}, "KRaft, dynamic voters"),
            ({"kraft.version": {"finalized": None, "supported": [0, 1]}}, "KRaft, static voters"),
            ({"metadata.version": {"finalized": 20, "supported": [1, 20]}}, "KRaft, static voters"),
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
        row = get_page(ADDRESS).words("node-demo-103-dir103AAAAAAAAAAAAAAAA")
        assert row == "103 follower In sync controller only 8,412,905 2 340 0.3 s 0.3 s 00:03:04 dir103AA…"

    def test_times_the_leader_does_not_tell_are_unknown_and_not_zero(self, demo: Cluster, get_page: GetPage) -> None:
        QuorumSnapshot.objects.all().delete()
        replicas = [node(101, caught_up_ago=0), node(102, caught_up_ago=None, log_end=None)]
        QuorumFactory.create(cluster=demo, leader_id=101, taken_at=LAST, replicas=replicas)
        words = get_page(ADDRESS).words("node-demo-102-dir102AAAAAAAAAAAAAAAA")
        assert words.count("unknown") == 5

    def test_an_observer_that_vanished_is_gone_since_when(self, demo: Cluster, get_page: GetPage) -> None:
        BrokerFactory.create(cluster=demo, broker_id=7)
        status_kept(demo, 7, "Gone", NOW - timedelta(minutes=4), voter=False)
        words = get_page(ADDRESS).words("nodes-demo")
        assert "7 observer Gone eu-1b not listed" in words
        assert "01:59:04" in words
        assert words.count("7 observer") == 1

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
        assert "7 observer Gone" in words
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
        assert "103 led 20 min, epoch 43 after 101; 2 epochs in between not seen" in page.words("reign-demo-43")
        assert "already leader when first seen" in page.words("reign-demo-40")
        assert "2 changes seen since 01:03:01" in page.words("leaders-demo")

    def test_flapping_is_named(self, demo: Cluster, get_page: GetPage) -> None:
        leaders = [(timedelta(minutes=2 * n), 101 + n % 3, 40 + n) for n in range(5)]
        answers(demo, LAST, timedelta(minutes=9), leaders=leaders)
        page = get_page(ADDRESS)
        assert page.title == "The leader of the quorum keeps changing: 4 changes in 10 minutes."
        assert "The quorum survives 1 more failure." in page.text
        assert "Flapping" in page.words("leaders-demo")


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
        assert "but for broker 3: up to 2.4 s, 13:42 to 13:48." in page.words("lag-demo")
        assert "2,400" in page.words("lag-table-demo")

    def test_silence_is_a_gap_and_not_zero(self, demo: Cluster, get_page: GetPage) -> None:
        begin, end = NOW - timedelta(minutes=40), NOW - timedelta(minutes=30)
        answers(demo, LAST, timedelta(hours=2), silent=lambda at: begin <= at < end)
        page = get_page(f"{ADDRESS}?range=1h")
        assert lines(page)["voter 101"].count(None) == 19
        assert "In 19 of 120 intervals the controllers did not answer." in page.words("lag-demo")

    def test_what_was_before_the_first_answer_was_not_silence(self, demo: Cluster, get_page: GetPage) -> None:
        answers(demo, LAST, timedelta(minutes=20))
        page = get_page(f"{ADDRESS}?range=1h")
        assert "did not answer" not in page.words("lag-demo")
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
        assert mark == {"x": (LAST - timedelta(minutes=30)).timestamp(), "label": "101 → 102, epoch 47"}
        assert "101 → 102, epoch 47" in page.words("lag-table-demo")

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
        assert "worst of 21 others" in drawn

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
        assert "Lag behind the leader, 1 h" in get_page(f"{ADDRESS}?range=2y").text
