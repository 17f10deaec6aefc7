"""Lists with more rows than are pushed: a page of them fetches itself when it is told that facts were read."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, expect

from kafkadash.clusters.models import Cluster
from kafkadash.live.publisher import publish_panels
from kafkadash.observe.models import CollectorRun, Kind, TopicState
from tests.factories import TopicFactory
from tests.groups import STALLED, WELL, group_seen
from tests.live.conftest import Server
from tests.live.test_page_stays_live import opened

pytestmark = pytest.mark.e2e
GROUPS = "/clusters/demo/groups/"
TOPICS = "/clusters/demo/topics/"


@pytest.fixture
def topics(cluster: Cluster) -> Cluster:
    """Two topics, read a second ago."""
    now = timezone.now()
    for kind in (Kind.METADATA, Kind.REASSIGNMENTS, Kind.CONFIGS):
        CollectorRun.objects.create(cluster=cluster, kind=kind, interval_s=30, succeeded_at=now - timedelta(seconds=1))
    for name in ("clicks", "orders"):
        TopicFactory.create(cluster=cluster, name=name, topic_id=name, changed_at=now)
    return cluster


def test_hint__with_a_half_typed_filter__shows_what_is_new_and_keeps_what_was_typed(
    chrome: BrowserContext,
    server: Server,
    topics: Cluster,
) -> None:
    page = opened(chrome, server, TOPICS)
    page.keyboard.press("/")
    field = page.get_by_label("Part of the name")
    expect(field).to_be_focused()
    page.keyboard.type("ord")

    TopicState.objects.filter(name="orders").update(under_min_isr=1)
    TopicFactory.create(cluster=topics, name="payments", topic_id="payments", changed_at=timezone.now())
    publish_panels(topics.pk, {Kind.METADATA}, 1)

    expect(page.locator("#topic-payments")).to_be_visible()
    expect(page.locator("#topic-orders")).to_contain_text("1 under min-ISR")
    expect(page.locator("h1")).to_have_text("Of 3 topics, 1 is under min-ISR.")
    expect(field).to_be_focused()
    expect(field).to_have_value("ord")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"http://127.0.0.1:{server.port}{TOPICS}?q=ord&internal=")
    expect(page.locator("#topic-clicks")).to_have_count(0)
    expect(page.locator("#topic-orders")).to_be_visible()


def test_rows_of_a_list__are_walked_by_keys_and_opened(
    chrome: BrowserContext,
    server: Server,
    topics: Cluster,
) -> None:
    page = opened(chrome, server, TOPICS)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("The only partition of orders has all its replicas in sync.")


def test_group__whose_verdict_turns__is_shown_on_its_page_and_in_the_list(
    chrome: BrowserContext, server: Server, topics: Cluster
) -> None:
    now = timezone.now()
    CollectorRun.objects.create(cluster=topics, kind=Kind.GROUPS, interval_s=30, succeeded_at=now)
    well = group_seen(topics, "reader", {("orders", 0): WELL}, members={"c": {"orders": [0]}}, now=now)
    listed, page = opened(chrome, server, GROUPS), opened(chrome, server, f"{GROUPS}reader/")
    row, pill = listed.locator("table.groups tbody tr"), page.locator("#verdict-demo .status-pill")
    expect(row).to_contain_text("OK")
    expect(pill).to_have_text("OK")

    well.delete()
    group_seen(topics, "reader", {("orders", 0): STALLED}, now=now)
    publish_panels(topics.pk, {Kind.GROUPS}, 1)

    expect(row).to_contain_text("Stop")
    expect(pill).to_have_text("Stop")
