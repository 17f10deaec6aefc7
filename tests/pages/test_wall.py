"""The wallboard: the same states and findings as on the status board, and no cluster that is left out in silence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, Role
from kafkadash.findings.models import Finding
from kafkadash.findings.wall import MOST_ON_WALL
from tests.factories import NOW, BrokerFactory, judged, silent, watched
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]


@pytest.fixture
def clusters(db: None) -> dict[str, Cluster]:
    bad = watched("bad", offline_partitions=2, under_replicated=3, rack_violations=1)
    BrokerFactory.create(cluster=bad, broker_id=8, fenced=True)
    judged(bad)
    watched("well")
    silent(watched("away"), NOW - timedelta(minutes=12), error="refused")
    return {cluster.slug: cluster for cluster in Cluster.objects.all()}


def test_tiles__of_all_clusters__are_ordered_and_marked_as_on_the_board(
    clusters: dict[str, Cluster], get_page: GetPage
) -> None:
    page, board = get_page("/wall"), get_page("/")
    assert [tile.get("id") for tile in page.find(".wall-tile")] == ["wall-bad", "wall-away", "wall-well"]
    assert page.states(".wall-tile") == ["critical", "unknown", "ok"]
    assert page.title == board.title
    shown = [finding.get("id") for finding in page.first("#wall-bad").find(".wall-findings li[id]")]
    assert shown == [f"wall-{row.get('id')}" for row in board.first("#status-bad").find(".finding-row")][:MOST_ON_WALL]
    assert page.find("#wall-bad .wall-more")
    assert page.find("#wall-away .freshness[data-fresh=stale]")
    assert page.find("#connection")
    assert not page.find(".top-bar")
    assert not page.find("main form")


def test_finding__that_a_person_acknowledged__names_its_owner(
    clusters: dict[str, Cluster], viewer: User, get_page: GetPage
) -> None:
    first = Finding.objects.filter(cluster=clusters["bad"]).order_by("rank")[0]
    Finding.objects.filter(pk=first.pk).update(acknowledged_by=viewer, acknowledged_at=NOW)
    assert viewer.username in get_page("/wall").words(f"wall-finding-{first.public_id}")


def test_clusters__that_are_requested__are_shown_or_named(
    clusters: dict[str, Cluster], make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    page = Page.read(
        client_of(make_user("ann", Role.VIEWER, clusters["well"])).get("/wall?cluster=well&cluster=bad&cluster=<b>")
    )
    assert [tile.get("id") for tile in page.find(".wall-tile")] == ["wall-well"]
    assert page.context["missing"] == ["bad", "<b>"]
    assert page.has("wall-missing")
    assert "<b>." not in page.html


def test_wall__without_a_cluster__has_a_heading(client_of: Callable[[User], Client], stranger: User) -> None:
    page = Page.read(client_of(stranger).get("/wall"))
    assert page.title
    assert not page.find(".wall-tile")
