"""Pages of history in a browser: drawn, accessible in both themes, never wider than a phone, whatever names are."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, expect

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.observe.group_names import slug_of
from kafkadash.observe.models import CollectorRun, Kind, SeriesKind
from tests.e2e.visitor import Visitor
from tests.factories import BrokerFactory, TopicFactory
from tests.history import beats, group_row, looked, rolled_up, taken_in
from tests.live.conftest import Server
from tests.live.test_charts_stay_live import COLOURS

pytestmark = pytest.mark.e2e
LONG = f"{'long.name-' * 24}249.chars"
PAGES = {
    "group-history": f"groups/{slug_of(LONG)}/history/?range=week",
    "topic-size-history": f"topics/{LONG}/history/?range=week",
    "broker-bytes-history": "brokers/1/history/?range=year",
    "node-lag-history": "quorum/history/?range=week",
}


@pytest.fixture
def kept(cluster: Cluster) -> Cluster:
    """Some hours of two days and some days of a year, with gaps, of a group, a topic, a broker and two nodes."""
    Cluster.objects.update(mode=Mode.KRAFT)
    now = timezone.now()
    for kind in Kind:
        CollectorRun.objects.create(cluster=cluster, kind=kind, interval_s=30, succeeded_at=now)
    group_row(cluster, LONG, now)
    TopicFactory.create(cluster=cluster, name=LONG, topic_id="long")
    BrokerFactory.create(cluster=cluster, broker_id=1)
    looked(now, beats(now))
    taken_in(now)
    hour = now.replace(minute=0, second=0, microsecond=0)
    for n in (1, 2, 3, 20, 21, 40):
        figures: dict[str, Any] = {"p50": 10 * n, "p95": 400 * n, "most": 1000 * n}
        at = hour - timedelta(hours=n)
        for topic in (LONG, "short"):
            rolled_up(cluster, at, grain=3600, group=LONG, topic=topic, **figures)
        rolled_up(cluster, at, grain=3600, kind=SeriesKind.TOPIC, topic=LONG, other=10**9 * n, **figures)
        for node in (1, 2):
            known = {"kind": SeriesKind.QUORUM, "node": node, "other": 40, "changes": n % 2, **figures}
            rolled_up(cluster, at, grain=3600, **known)
        day = hour.replace(hour=0) - timedelta(days=7 * n)
        rolled_up(cluster, day, grain=86_400, kind=SeriesKind.BROKER, node=1, other=30 + n, **figures)
    return cluster


def test_history__of_long_names_and_with_gaps__has_nothing_wrong_in_any_look(
    chrome: BrowserContext, server: Server, kept: Cluster, tmp_path: Path
) -> None:
    visitor = Visitor(chrome.new_page(), tmp_path)
    for chart, path in PAGES.items():
        visitor.visit(f"http://127.0.0.1:{server.port}/clusters/{kept.slug}/{path}", chart)
        canvas = visitor.page.locator(f"#{chart}-canvas canvas")
        expect(canvas).to_be_visible()
        assert len(canvas.evaluate(COLOURS)) > 1, f"nothing is drawn on {chart}"
        visitor.page.locator(f"#{chart}-table summary").click()
        expect(visitor.page.locator(f"#{chart}-table table")).to_be_visible()
        visitor.look(path, f"{chart}-table")
    assert not visitor.wrong, "\n".join(visitor.wrong)
