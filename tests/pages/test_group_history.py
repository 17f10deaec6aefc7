"""The history of a group: percentiles by minute, hour or day; what is not known is a gap, and its age is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from html import unescape
from typing import Any

import pytest
import time_machine
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from tests.factories import NOW, watched
from tests.history import beats, group_row, looked, rolled_up, taken_in
from tests.pages.conftest import Page

URL = "/clusters/demo/groups/reader/history/"
MINUTE = NOW.replace(second=0, microsecond=0)
Get = Callable[..., Page]


@pytest.fixture
def demo(db: None) -> Cluster:
    demo = watched("demo")
    group_row(demo, "reader", NOW)
    return demo


@pytest.fixture
def get(demo: Cluster, viewer: User, client_of: Callable[[User], Client]) -> Get:
    client = client_of(viewer)

    def page(**asked: str) -> Page:
        with time_machine.travel(NOW, tick=False):
            response = client.get(URL, asked)
        assert response.status_code == 200
        return Page(response.content.decode())

    return page


def minutes(demo: Cluster, *ago: int, **figures: Any) -> None:
    for n in ago:
        rolled_up(demo, MINUTE - timedelta(minutes=n), group="reader", **{"topic": "orders", **figures})


def chart(page: Page) -> dict[str, Any]:
    told = page.html.split('data-chart="', 1)[1].split('"', 1)[0]
    return json.loads(unescape(told))  # type: ignore[no-any-return]


def test_an_hour_of_minutes__lines_with_gaps_and_a_summary(get: Get, demo: Cluster) -> None:
    minutes(demo, 50, 49, 3, p50=4, p95=70, most=90)
    minutes(demo, 30, p50=5, p95=1200, most=1500)
    page = get(range="hour")
    at, last = ((MINUTE - timedelta(minutes=ago)).strftime("%H:%M") for ago in (30, 3))
    assert f"p95 was at most 1,200 records, at {at}; last known 70, at {last}." in page.text
    assert "Nothing is known of 55 of 59 minutes." in page.text
    told = chart(page)
    p50, p95, most = (line["y"] for line in told["series"])
    assert [value for value in p95 if value is not None] == [70, 70, 1200, 70]
    assert p95.count(None) == p50.count(None) == most.count(None) == 55
    assert "Records of lag in orders" in page.text
    assert told["x"][p95.index(1200)] == (MINUTE - timedelta(minutes=30)).timestamp()


def test_the_table_twin__has_the_largest_of_each_stretch(get: Get, demo: Cluster) -> None:
    minutes(demo, 4, p50=4, p95=70, most=90)
    minutes(demo, 5, p50=3, p95=80, most=81)
    page = get(range="hour")
    assert "The chart has each minute; each row has the largest of 3 minutes." in page.text
    assert "4 80 90" in page.text or "4 70 90" in page.text


@pytest.mark.parametrize(
    ("chosen", "grain", "at"),
    [
        ("week", 3600, MINUTE.replace(minute=0) - timedelta(days=3)),
        ("year", 86_400, MINUTE.replace(minute=0, hour=0) - timedelta(days=200)),
    ],
)
def test_longer_times__are_drawn_from_hours_and_days(
    get: Get, demo: Cluster, chosen: str, grain: int, at: datetime
) -> None:
    rolled_up(demo, at, grain=grain, group="reader", topic="orders", p95=5)
    rolled_up(demo, MINUTE - timedelta(minutes=1), group="reader", topic="orders", p95=777)
    page = get(range=chosen)
    assert "p95 was at most 5 records" in page.text
    assert "777" not in page.text
    assert f'href="?range={chosen}&amp;topic=orders" aria-current="true"' in page.html


def test_several_topics__the_one_with_the_largest_lag_is_shown_unless_one_is_chosen(get: Get, demo: Cluster) -> None:
    minutes(demo, 3, topic="small", p95=1, most=2)
    minutes(demo, 3, topic="large", p95=10, most=20)
    assert "Records of lag in large" in get(range="hour").text
    assert "Records of lag in small" in get(range="hour", topic="small").text
    page = get(range="hour", topic="other")
    assert "There is no history of this group in a topic called “other”." in page.text
    assert "Records of lag in large" in page.text


def test_the_pipeline_is_behind__it_is_said_and_nothing_looks_fresh(get: Get, demo: Cluster) -> None:
    minutes(demo, 40)
    looked(NOW, beats(NOW, beat_at=(NOW - timedelta(minutes=40)).isoformat()))
    taken_in(NOW, newest_at=NOW - timedelta(minutes=39))
    page = get(range="hour")
    newest = (MINUTE - timedelta(minutes=40)).strftime("%H:%M")
    assert f"history of the pipeline, newest {newest}" in page.text
    assert "The pipeline stands still: its last sign is 40 min" in page.text
    assert "What came after the newest figure here is unknown." in page.text
    assert "data-stale" in page.html
    looked(NOW, beats(NOW))
    assert "stands still" not in get(range="hour").text


def test_no_history__says_so_and_what_brings_it(get: Get) -> None:
    looked(NOW)
    page = get(range="year")
    assert "Nothing is known of the last year." in page.text
    assert "There is no history for this time." in page.text
    assert "python manage.py pipeline run" in page.text
    assert "data-chart" not in page.html


def test_another_groups_history__is_not_shown(get: Get, demo: Cluster) -> None:
    rolled_up(demo, MINUTE - timedelta(minutes=2), group="writer", topic="orders")
    assert "There is no history for this time." in get(range="hour").text
