"""The page of a finding: what is wrong, who has it, and what it was after it closed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, Role
from kafkadash.oncall.models import Finding
from tests.factories import NOW, BrokerFactory, judged, silent, watched
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]


@pytest.fixture
def finding(db: None) -> Finding:
    judged(watched("demo", offline_partitions=2))
    return Finding.objects.get()


def address(finding: Finding, action: str = "") -> str:
    return f"/clusters/demo/findings/{finding.public_id}/{action}"


def test_it_says_what_is_wrong_since_when_and_what_to_do(finding: Finding, get_page: GetPage) -> None:
    page = get_page(address(finding))
    assert page.title == "2 partitions have no leader: nobody can read or write them."
    facts = page.words("finding-facts")
    assert "Measured 2 partitions , limit 0" in facts
    assert "Opened 02:03:01 Last seen 02:03:01 Closed not yet See the topics" in facts
    assert "Runbook: Partitions without a leader" in page.words("runbook")
    assert 'href="/clusters/demo/topics/?state=offline"' in page.html


def test_it_goes_on_saying_so_after_it_closed(finding: Finding, get_page: GetPage) -> None:
    finding.cluster.state.offline_partitions = 0
    finding.cluster.state.save()
    judged(finding.cluster, readings=1)
    page = get_page(address(finding))
    assert page.title == "2 partitions have no leader: nobody can read or write them."
    assert "Closed 02:03:01" in page.words("finding-facts")
    assert "Nobody had it when it closed." in page.words("owner")
    assert "<form" not in page.part("owner")


def test_it_says_when_it_cannot_be_told_any_more(finding: Finding, get_page: GetPage) -> None:
    silent(finding.cluster, NOW - timedelta(minutes=12), error="refused")
    page = get_page(address(finding))
    assert "Was critical" in page.text
    assert "whether it is still so cannot be told" in page.words("finding-facts")
    assert "data-stale" in page.start_tag("finding-facts")


def test_a_viewer_is_told_who_may_take_it(finding: Finding, get_page: GetPage) -> None:
    owner = get_page(address(finding)).words("owner")
    assert owner == "Owner Nobody has it. To acknowledge it, one needs the role operator, approver or admin on demo."


def test_whoever_takes_it_is_named_everywhere(
    finding: Finding, operator: User, client_of: Callable[[User], Client], get_page: GetPage
) -> None:
    client = client_of(operator)
    assert "<form" in Page(client.get(address(finding)).content.decode()).part("owner")
    answer = client.post(address(finding, "acknowledge/"))
    assert (answer.status_code, answer["Location"]) == (302, address(finding))
    assert "olga has it since 02:03:04" in get_page(address(finding)).words("owner")
    board = get_page("/")
    assert "olga since 02:03:04" in board.words(f"finding-{finding.public_id}")
    assert board.title == "demo has 2 partitions without a leader."

    client.post(address(finding, "release/"))
    assert "Nobody has it." in get_page(address(finding)).words("owner")


def test_one_that_closed_meanwhile_cannot_be_taken(
    finding: Finding, operator: User, client_of: Callable[[User], Client]
) -> None:
    Finding.objects.update(closed_at=NOW)
    page = Page(client_of(operator).post(address(finding, "acknowledge/"), follow=True).content.decode())
    assert "This finding has closed; there is nothing left to take care of." in page.words("owner")


def test_one_needs_the_role_on_this_cluster(
    finding: Finding, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    elsewhere = make_user("ann", Role.OPERATOR, watched("other"))
    client = client_of(elsewhere)
    assert client.get(address(finding)).status_code == 404
    assert client.post(address(finding, "acknowledge/")).status_code == 404
    assert Cluster.objects.filter(slug="demo").exists()


def test_one_that_never_opened_has_no_page(viewer: User, client_of: Callable[[User], Client]) -> None:
    judged(watched("demo", under_replicated=3), readings=0)
    pending = Finding.objects.get()
    assert client_of(viewer).get(address(pending)).status_code == 404


class TestBoardFilters:
    @pytest.fixture
    def clusters(self, db: None) -> None:
        for name, offline, uneven in (("dark", 2, 3), ("racks", 0, 5), ("well", 0, 0)):
            judged(watched(name, offline_partitions=offline, rack_violations=uneven))

    def test_of_one_kind_shows_only_that(self, clusters: None, get_page: GetPage) -> None:
        page = get_page("/?kind=rack-violation")
        assert page.order_of("chosen-dark", "chosen-racks", "status-well") == ["chosen-dark", "chosen-racks"]
        assert "no leader" not in page.words("chosen-dark")
        assert "5 partitions are not spread evenly" in page.words("chosen-racks")
        assert page.title == "dark has 2 partitions without a leader, and nobody has it."

    def test_kinds_are_counted_and_lead_to_themselves(self, clusters: None, get_page: GetPage) -> None:
        page = get_page("/")
        assert page.words("kinds") == "Offline partitions 1 Uneven spread over racks 2"
        assert 'href="?kind=rack-violation"' in page.part("kinds")
        assert 'href="?state=warning&amp;kind=offline-partitions"' in get_page("/?state=warning").part("kinds")

    def test_mine_are_those_i_took(
        self, clusters: None, operator: User, client_of: Callable[[User], Client], get_page: GetPage
    ) -> None:
        own = Finding.objects.get(cluster__slug="racks")
        client_of(operator).post(f"/clusters/racks/findings/{own.public_id}/acknowledge/")
        mine = Page(client_of(operator).get("/?mine=1").content.decode())
        assert mine.order_of("chosen-dark", "chosen-racks") == ["chosen-racks"]
        assert "Mine 1" in mine.words("kinds")
        assert "No open finding is like this." in get_page("/?mine=1").text

    def test_what_makes_no_sense_is_left_out(self, clusters: None, get_page: GetPage) -> None:
        assert get_page("/?kind=nonsense&state=purple").has("status-well")


def test_of_many_findings_the_board_shows_the_first_and_the_overview_all(get_page: GetPage) -> None:
    cluster = watched("demo", brokers_gone=0)
    for broker in range(10, 20):
        BrokerFactory.create(cluster=cluster, broker_id=broker, fenced=True)
    judged(cluster)
    board = get_page("/")
    assert board.title == "demo has 10 brokers down that host replicas, and nobody has it."
    assert "4 more findings of demo" in board.words("status-demo")
    assert get_page("/clusters/demo/").html.count('class="finding-row"') == 10
