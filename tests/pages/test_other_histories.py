"""The history of a topic, a broker and the quorum's nodes: from the pipeline's rollups, gaps for what is not known."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
import time_machine
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, Mode
from kafkadash.observe.models import SeriesKind
from tests.factories import NOW, BrokerFactory, TopicFactory, watched
from tests.history import beats, looked, rolled_up, taken_in
from tests.pages.conftest import Page

MINUTE = NOW.replace(second=0, microsecond=0)
HOUR = MINUTE.replace(minute=0)
DAY = HOUR.replace(hour=0)
Get = Callable[..., Page]


@pytest.fixture
def demo(db: None) -> Cluster:
    demo = watched("demo")
    TopicFactory.create(cluster=demo, name="orders")
    BrokerFactory.create(cluster=demo, broker_id=7)
    return demo


@pytest.fixture
def get(demo: Cluster, viewer: User, client_of: Callable[[User], Client]) -> Get:
    client = client_of(viewer)

    def page(of: str, **asked: Any) -> Page:
        with time_machine.travel(NOW, tick=False):
            response = client.get(f"/clusters/demo/{of}/history/", asked)
        assert response.status_code == 200
        return Page(response.content.decode())

    return page


def charts(page: Page) -> list[dict[str, Any]]:
    return [json.loads(unescape(told.split('"', 1)[0])) for told in page.html.split('data-chart="')[1:]]


def known(values: list[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def test_topic__lag_of_all_groups_and_bytes_on_disk(get: Get, demo: Cluster) -> None:
    topic: dict[str, Any] = {"kind": SeriesKind.TOPIC, "topic": "orders"}
    rolled_up(demo, MINUTE - timedelta(minutes=9), **topic, p50=1, p95=4, most=5, other=2_500_000)
    rolled_up(demo, MINUTE - timedelta(minutes=3), **topic, p50=1, p95=3, most=5, other=None)
    page = get("topics/orders", range="hour")
    at, last = ((MINUTE - timedelta(minutes=ago)).strftime("%H:%M") for ago in (9, 3))
    assert f"p95 was at most 4 records, at {at}; last known 3, at {last}." in page.text
    assert f"Its size was at most 2.5 MB, at {at}, the last that is known." in page.text
    assert "Nothing is known of 58 of 59 minutes." in page.text
    lag, size = charts(page)
    assert [line["label"] for line in lag["series"]] == ["p50", "p95", "largest"]
    assert size["unit"] == "MB"
    assert known(size["series"][0]["y"]) == [2.5]
    assert page.html.count('aria-label="How far back"') == 1


def test_topic_that_nobody_reads__has_its_size_and_no_lag(get: Get, demo: Cluster) -> None:
    nobody: dict[str, Any] = dict.fromkeys(("most", "p50", "p95", "p99", "mean"))
    rolled_up(demo, HOUR, kind=SeriesKind.TOPIC, topic="orders", grain=3600, samples=0, other=9, **nobody)
    looked(NOW, beats(NOW))
    taken_in(NOW)
    page = get("topics/orders", range="week")
    assert "It may be that no group read the topic." in page.text
    assert "Its size was at most 9 B" in page.text
    assert len(charts(page)) == 1


def test_broker__bytes_are_the_mean_of_a_replica_times_their_number(get: Get, demo: Cluster) -> None:
    broker: dict[str, Any] = {"kind": SeriesKind.BROKER, "grain": 86_400}
    rolled_up(demo, DAY - timedelta(days=30), node=7, most=900, mean=250.5, other=4, **broker)
    rolled_up(demo, DAY - timedelta(days=20), node=7, most=900, mean=None, other=6, **broker)
    rolled_up(demo, DAY - timedelta(days=10), node=8, most=77_777, mean=77_777.0, other=1, **broker)
    page = get("brokers/7", range="year")
    at = (DAY - timedelta(days=30)).strftime("%-d %b")
    assert f"All together was at most 1.0 kB, at {at}, the last that is known." in page.text
    size, number = charts(page)
    assert known(size["series"][0]["y"]) == [1.002]
    assert known(size["series"][1]["y"]) == [0.9, 0.9]
    assert known(number["series"][0]["y"]) == [4, 6]
    assert "an estimate where that changes" in page.text
    assert "77" not in str(charts(page)[0]["series"])


def test_quorum__the_node_that_was_farthest_behind_unless_one_is_chosen(get: Get, demo: Cluster) -> None:
    hour: dict[str, Any] = {"kind": SeriesKind.QUORUM, "grain": 3600}
    rolled_up(demo, HOUR - timedelta(hours=2), node=0, p95=40, most=90, other=31, changes=0, **hour)
    rolled_up(demo, HOUR - timedelta(hours=2), node=2, p95=400, most=25_000, other=31, changes=2, **hour)
    page = get("quorum", range="week")
    assert "Lag in ms of node 2" in page.text
    lag, fetch = charts(page)
    assert lag["unit"] == "s"
    assert known(lag["series"][2]["y"]) == [25]
    assert [mark["label"] for mark in lag["marks"]] == ["2 leader changes"]
    assert known(fetch["series"][0]["y"]) == [31]
    assert "unknown unknown unknown unknown" in page.text, "changes of the leader are not known either"
    chosen = get("quorum", range="week", node="0")
    assert "Lag in ms of node 0" in chosen.text
    assert 'href="?range=year&amp;node=0"' in chosen.html
    assert charts(chosen)[0]["marks"] == []


def test_zookeeper__has_no_quorum_to_tell_of(get: Get, demo: Cluster) -> None:
    Cluster.objects.filter(pk=demo.pk).update(mode=Mode.ZOOKEEPER)
    looked(NOW)
    page = get("quorum")
    assert "ZooKeeper mode has no controller quorum" in page.text
    assert not charts(page)


@pytest.mark.parametrize("of", ["topics/nothing", "brokers/77"])
def test_what_was_never_seen__has_no_history(
    of: str, demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    assert client_of(viewer).get(f"/clusters/demo/{of}/history/").status_code == 404


@pytest.mark.parametrize("of", ["topics/orders", "brokers/7"])
def test_its_page__leads_to_its_history(
    of: str, demo: Cluster, viewer: User, client_of: Callable[[User], Client]
) -> None:
    page = client_of(viewer).get(f"/clusters/demo/{of}/").content.decode()
    assert f'href="/clusters/demo/{of}/history/"' in page


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ("day", "A longer time may have some."),
        ("year", "Each day is added up by the pipeline once it is over; a shorter time may have some."),
    ],
)
def test_nothing_in_this_time__says_where_there_may_be_some(get: Get, chosen: str, says: str) -> None:
    looked(NOW, beats(NOW))
    taken_in(NOW)
    assert says in get("topics/orders", range=chosen).text
