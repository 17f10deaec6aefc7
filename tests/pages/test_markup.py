"""What holds for every page: strict CSP, unique ids, and partials that are the same in a page and in a push."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import time_machine
from django.template.loader import render_to_string
from django.test import Client
from pytest_django import DjangoDbBlocker

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.live.panels import PANELS, LivePanel
from kafkadash.monitoring.models import MoveOutcome
from tests.factories import NOW, ReassignmentFactory, TopicFactory, ended, silent, watched
from tests.kept_rows import kept
from tests.page_words import sentence_faults, title_faults
from tests.pages.conftest import Page

pytestmark = pytest.mark.django_db

GetPage = Callable[[str], Page]
PAGES = [
    "/",
    "/?state=ok",
    "/wall",
    "/wall?cluster=well&cluster=nothing",
    "/clusters/",
    "/clusters/demo/",
    "/clusters/demo/reassignments/",
    "/clusters/demo/reassignments/?ended=all",
    "/clusters/demo/reassignments/?running=all",
    "/clusters/demo/reassignments/?running=all&q=nowhere",
    "/clusters/demo/reassignments/r-running/",
    "/clusters/demo/reassignments/r-ended/",
    "/clusters/demo/drill/",
    "/clusters/demo/drill/?rack=eu-1b",
    "/clusters/demo/drill/?brokers=1,2&show=moving",
    "/clusters/demo/drill/?brokers=9,x",
    "/clusters/demo/restart/",
    "/clusters/demo/restart/?rack=nowhere",
    "/clusters/demo/brokers/1/restart/",
    "/clusters/silent/brokers/1/restart/",
    "/clusters/demo/quorum/",
    "/clusters/demo/quorum/?range=24h",
    "/clusters/demo/quorum/lag/?range=15m",
    "/clusters/demo/racks/",
    "/clusters/demo/throttles/",
    "/clusters/silent/throttles/",
    "/clusters/silent/racks/",
    "/clusters/silent/",
    "/clusters/silent/quorum/",
    "/clusters/demo/brokers/",
    "/clusters/demo/brokers/?q=nothing",
    "/clusters/demo/brokers/1/",
    "/clusters/demo/topics/",
    "/clusters/demo/topics/?state=nonsense",
    "/clusters/demo/topics/payments.ledger/",
    "/clusters/demo/history/",
    "/clusters/demo/topics/payments.ledger/history/",
    "/clusters/silent/brokers/",
    "/clusters/silent/topics/",
    "/clusters/silent/reassignments/",
    "/clusters/demo/verify/",
    "/account/password/",
    "/account/sessions/",
]
SETTINGS = [
    "/settings/",
    "/settings/register/",
    "/settings/roles/",
    "/settings/clusters/demo/",
    "/settings/clusters/demo/roles/",
    "/settings/clusters/demo/remove/",
    "/audit/",
    "/audit/?actor=nobody",
]


@pytest.fixture(scope="module", autouse=True)
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Cluster]:
    with kept(django_db_blocker, _world) as demo:
        yield demo


@time_machine.travel(NOW, tick=False)
def _world() -> Cluster:
    demo = watched("demo", offline_partitions=1)
    watched("well")
    silent(watched("silent"), NOW - timedelta(minutes=12), error="refused")
    ReassignmentFactory.create(cluster=demo, public_id="r-running")
    TopicFactory.create(
        cluster=demo, rack_violations=1, partitions=[[0, None, 5, [1, 2], [1], [2]], [1, 2, 5, [2, 3], [2, 3], []]]
    )
    ended(demo, MoveOutcome.CANCELLED, NOW - timedelta(minutes=1), public_id="r-ended")
    return demo


@pytest.fixture
def get_page(get_page: GetPage, admin: User, client_of: Callable[[User], Client]) -> GetPage:
    """As a viewer; the settings as an administrator."""
    administrator = client_of(admin)

    def get(address: str) -> Page:
        if not address.startswith(("/settings/", "/audit/")):
            return get_page(address)
        return Page(administrator.get(address).content.decode())

    return get


@pytest.mark.parametrize("address", PAGES + SETTINGS)
def test_nothing_inline_is_on_the_page(get_page: GetPage, address: str) -> None:
    html = get_page(address).html
    assert not re.search(r"\sstyle=", html)
    assert not re.search(r"\son\w+=", html)
    assert "javascript:" not in html
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", html))
    assert "<style" not in html


@pytest.mark.parametrize("address", PAGES + SETTINGS)
def test_ids_are_unique_and_references_lead_somewhere(get_page: GetPage, address: str) -> None:
    html = get_page(address).html
    ids = Counter(re.findall(r'\sid="([^"]+)"', html))
    assert [i for i, times in ids.items() if times > 1] == []
    if "<main" in html:
        assert {ref for ref in re.findall(r'aria-labelledby="([^"]+)"', html) if ref not in ids} == set()
        assert {ref for ref in re.findall(r'<use href="#([^"]+)"', html) if ref not in ids} == set()
        assert html.count("<h1") == 1


@pytest.mark.parametrize("address", PAGES + SETTINGS)
def test_words__of_headings_and_banners__follow_the_rules_of_language(get_page: GetPage, address: str) -> None:
    page = get_page(address)
    for heading in page.texts("h1"):
        assert list(title_faults(heading)) == []
    for banner in page.texts(".notice > p"):
        assert list(sentence_faults(banner)) == []


def test_the_policy_allows_nothing_but_our_own_origin(viewer: User, client_of: Callable[[User], Client]) -> None:
    policy = client_of(viewer).get("/").headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "data:" not in policy


@pytest.mark.parametrize("panel", PANELS.values(), ids=lambda panel: panel.name)
@pytest.mark.parametrize("name", ["demo", "well", "silent"])
def test_a_push_holds_nothing_of_a_person(panel: LivePanel, name: str) -> None:
    cluster = Cluster.objects.get(slug=name)
    html = render_to_string(panel.template, dict(panel.context(cluster, NOW))).strip()
    assert re.match(rf'<\w+[^>]*\sid="{panel.name}-{name}"', html)
    for forbidden in ("csrf", "vera"):
        assert forbidden not in html


@pytest.mark.parametrize("name", sorted(PANELS))
def test_a_page_shows_exactly_what_is_pushed(get_page: GetPage, world: Cluster, name: str) -> None:
    pages = {
        "status": "/",
        "wall": "/wall",
        "reassignments": "/clusters/demo/reassignments/",
        "controllers": "/clusters/demo/quorum/",
        "leaders": "/clusters/demo/quorum/",
        "throttles": "/clusters/demo/throttles/",
    }
    address = pages.get(name, "/clusters/demo/")
    pushed = render_to_string(PANELS[name].template, dict(PANELS[name].context(world, NOW))).strip()
    assert get_page(address).part(f"{name}-demo") == pushed


def test_who_is_signed_in_is_on_every_page(get_page: GetPage) -> None:
    top = get_page("/").html.split("</header>")[0]
    assert re.search(r"vera\s*<span class=\"muted\">viewer</span>", top)
    assert '<meta name="server-time" content="2026-11-21T02:03:04.000Z">' in get_page("/").html
