"""The page of a finding: what is wrong, who has it, and what it was after it closed."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils.html import escape

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster, Role
from kafkadash.core.errors import RequestErrorCode
from kafkadash.findings.board import next_step, trend_of
from kafkadash.findings.errors import OnCallErrorCode
from kafkadash.findings.kinds import FindingCode, FindingKind
from kafkadash.findings.models import Finding
from kafkadash.monitoring.models import BrokerState, ClusterState
from tests.factories import NOW, BrokerFactory, TopicFactory, judged, silent, watched
from tests.groups import STALLED, group_seen
from tests.pages.conftest import Page, figures_of

GetPage = Callable[[str], Page]


@pytest.fixture
def finding(db: None) -> Finding:
    judged(watched("demo", offline_partitions=2))
    return Finding.objects.get()


def address(finding: Finding, action: str = "") -> str:
    return f"/clusters/demo/findings/{finding.public_id}/{action}"


def test_it_says_what_is_wrong_since_when_and_what_to_do(finding: Finding, get_page: GetPage) -> None:
    page = get_page(address(finding))
    assert figures_of(page.title) == ["2"]
    assert [kind.get("data-finding") for kind in page.find("main [data-finding]")] == ["offline-partitions"]
    assert page.texts(".page-head .error-code") == [FindingCode.PARTITIONS_LEADERLESS]
    facts = page.facts("#finding-facts")
    assert figures_of(facts["Measured"]) == ["2", "0"]
    assert (facts["Opened"], facts["Last seen"], figures_of(facts["Closed"])) == ("02:03:01", "02:03:01", [])
    steps = ["/clusters/demo/topics/?state=offline", "/clusters/demo/elections/unclean/"]
    assert page.links("#finding-facts") == steps
    assert page.links("#runbook .panel-head") == ["/runbooks/offline-partitions/"]
    assert 'href="/clusters/demo/topics/?state=offline"' in page.html


@pytest.mark.parametrize(
    ("ago_and_values", "words"),
    [
        ([(90, 5), (60, 5)], "steady"),
        ([(90, 5), (60, 9)], "steady, up from 5"),
        ([(90, 12_370), (5, 20_000)], "up from 12,370"),
        ([(90, 9), (5, 4)], "down from 9"),
        ([(90, 5), (30, 20), (5, 9)], "falling, up from 5"),
    ],
)
def test_trend__has_direction_and_first_value(ago_and_values: list[tuple[int, float]], words: str) -> None:
    history = [[(NOW - timedelta(minutes=ago)).timestamp(), value] for ago, value in ago_and_values]
    assert trend_of(history, 0, NOW).words == words


def test_it_goes_on_saying_so_after_it_closed(finding: Finding, get_page: GetPage) -> None:
    ClusterState.objects.update(offline_partitions=0)
    judged(Cluster.objects.get(), readings=1)
    page = get_page(address(finding))
    assert figures_of(page.title) == ["2"]
    assert page.facts("#finding-facts")["Closed"] == "02:03:01"
    assert page.first("#owner").get("data-owner") == ""
    assert "<form" not in page.part("owner")


@pytest.mark.parametrize("path", ["/", "/clusters/demo/", ""], ids=["board", "overview", "finding"])
@pytest.mark.parametrize(
    "columns",
    [
        {"message_code": "broker-dreams", "message_params": {"of": "<sheep>"}},
        {"message_code": FindingCode.PARTITIONS_LEADERLESS, "message_params": {}},
    ],
    ids=["code", "parameters"],
)
def test_message_of_another_version__is_shown_as_its_code(
    finding: Finding, get_page: GetPage, path: str, columns: dict[str, Any]
) -> None:
    Finding.objects.update(**columns)
    page = get_page(path or address(finding))
    assert columns["message_code"] in page.texts("code.error-code")
    assert "<sheep>" not in page.html
    assert "critical" in page.states(".status-pill")


@pytest.mark.parametrize("path", ["/", "/clusters/demo/", ""], ids=["board", "overview", "finding"])
def test_kind_of_another_version__is_shown_and_its_state_is_unknown(
    finding: Finding, get_page: GetPage, path: str
) -> None:
    Finding.objects.update(kind="broker-dreams", state="critical")
    page = get_page(path or address(finding))
    assert page.find("main [data-finding=broker-dreams]")
    assert set(page.states(".status-pill")) == {"unknown"}
    assert not [link for link in page.links("main") if link.endswith("/runbooks/broker-dreams/")]


def test_kind_of_another_version__stays_open_when_the_cluster_is_judged(finding: Finding) -> None:
    Finding.objects.update(kind="broker-dreams")
    judged(Cluster.objects.get())
    assert Finding.objects.get(kind="broker-dreams").closed_at is None


def test_it_says_when_it_cannot_be_told_any_more(finding: Finding, get_page: GetPage) -> None:
    silent(Cluster.objects.get(), NOW - timedelta(minutes=12), error="refused")
    page = get_page(address(finding))
    assert page.states(".page-actions .status-pill") == ["unknown"]
    assert "data-stale" in page.start_tag("finding-facts")


def test_a_viewer_is_told_who_may_take_it(finding: Finding, get_page: GetPage) -> None:
    page = get_page(address(finding))
    assert page.first("#owner").get("data-owner") == ""
    assert all(role in page.words("who-may") for role in ("operator", "approver", "admin"))


def test_whoever_takes_it_is_named_everywhere(
    finding: Finding, operator: User, client_of: Callable[[User], Client], get_page: GetPage
) -> None:
    client = client_of(operator)
    assert "<form" in Page(client.get(address(finding)).content.decode()).part("owner")
    answer = client.post(address(finding, "acknowledge/"))
    assert (answer.status_code, answer["Location"]) == (302, address(finding))
    owner = get_page(address(finding)).first("#owner")
    assert owner.get("data-owner") == "olga"
    assert figures_of(owner.text) == ["02:03:04"]
    board = get_page("/")
    assert board.texts(f"#finding-{finding.public_id} .finding-owner b") == ["olga"]
    assert board.figures(f"#finding-{finding.public_id} .finding-owner") == ["02:03:04"]
    assert figures_of(board.title) == ["2"]

    client.post(address(finding, "release/"))
    assert get_page(address(finding)).first("#owner").get("data-owner") == ""


@pytest.mark.parametrize(("back", "page"), [("board", "/"), ("overview", "/clusters/demo/")])
def test_finding__acknowledged_on_a_list__leads_back_to_it(
    finding: Finding, operator: User, client_of: Callable[[User], Client], back: str, page: str
) -> None:
    client = client_of(operator)
    form = Page(client.get(page).content.decode()).part(f"finding-{finding.public_id}")
    assert f'action="{address(finding, "acknowledge/")}"' in form
    assert f'name="back" value="{back}"' in form
    answer = client.post(address(finding, "acknowledge/"), {"back": back})
    assert (answer.status_code, answer["Location"]) == (302, f"{page}#finding-{finding.public_id}")
    assert Finding.objects.get(pk=finding.pk).acknowledged_by == operator


def test_finding__acknowledged_with_another_address_to_go_back_to__leads_to_its_page(
    finding: Finding, operator: User, client_of: Callable[[User], Client]
) -> None:
    answer = client_of(operator).post(address(finding, "acknowledge/"), {"back": "https://example.com/"})
    assert answer["Location"] == address(finding)


def test_commands_of_the_runbook__have_the_addresses_of_the_cluster(finding: Finding, get_page: GetPage) -> None:
    steps = get_page(address(finding)).part("runbook")
    assert f"--bootstrap-server {Cluster.objects.get().bootstrap_servers}" in steps
    assert "HOST:9092" not in steps


def test_commands_of_the_runbook__long_group_name__have_it_whole(demo: Cluster, get_page: GetPage) -> None:
    name = "g" * 300 + " $(x)"
    group_seen(demo, name, {("orders", 0): STALLED}, members={"c": {"orders": [0]}})
    judged(demo)
    steps = get_page(address(Finding.objects.get(kind="consumer-lag"))).part("runbook")
    assert f"--group {escape(shlex.quote(name))}" in steps


def test_one_that_closed_meanwhile_cannot_be_taken(
    finding: Finding, operator: User, client_of: Callable[[User], Client]
) -> None:
    Finding.objects.update(closed_at=NOW)
    page = Page(client_of(operator).post(address(finding, "acknowledge/"), follow=True).content.decode())
    assert page.has("closed-meanwhile")


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
        assert not page.find("#chosen-dark [data-finding=offline-partitions]")
        assert figures_of(page.first("#chosen-racks [data-finding=rack-violation] h3").text) == ["5"]
        assert figures_of(page.title) == ["2"]

    def test_kinds_are_counted_and_lead_to_themselves(self, clusters: None, get_page: GetPage) -> None:
        page = get_page("/")
        assert page.texts("#kinds b") == ["1", "2"]
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
        assert get_page("/?mine=1").find("[data-empty=filtered]")

    def test_what_makes_no_sense_is_left_out(self, clusters: None, get_page: GetPage) -> None:
        assert get_page("/?kind=nonsense&state=purple").has("status-well")


def test_of_many_findings_the_board_shows_the_first_and_the_overview_all(get_page: GetPage) -> None:
    cluster = watched("demo", brokers_gone=0)
    for broker in range(10, 20):
        BrokerFactory.create(cluster=cluster, broker_id=broker, fenced=True)
    judged(cluster)
    board = get_page("/")
    assert figures_of(board.title) == ["10"]
    assert board.figures("#status-demo .cluster-more") == ["7"]
    assert get_page("/clusters/demo/").html.count('class="finding-row"') == 10


class TestTerms:
    """Note and end of an acknowledgement, as they are typed."""

    @pytest.mark.parametrize(
        ("given", "code"),
        [
            ({"note": "x" * 501}, OnCallErrorCode.NOTE_TOO_LONG),
            ({"until": "2020-01-01T08:30"}, OnCallErrorCode.END_PAST),
            ({"until": "3000-01-01T08:30"}, OnCallErrorCode.END_TOO_LATE),
            ({"until": "2027-03-28T02:30", "time_zone": "Europe/Berlin"}, OnCallErrorCode.END_SKIPPED),
            ({"until": "soon"}, OnCallErrorCode.END_UNREADABLE),
            ({"snooze": "7"}, OnCallErrorCode.END_UNREADABLE),
            ({"until": "2027-01-01T08:30", "time_zone": "Mars/Base"}, RequestErrorCode.TIME_ZONE_UNKNOWN),
        ],
        ids=["note", "past", "late", "skipped", "unreadable", "preset", "zone"],
    )
    def test_wrong_ones_are_refused_and_kept_in_the_form(
        self, finding: Finding, operator: User, client_of: Callable[[User], Client], given: dict[str, str], code: str
    ) -> None:
        answer = client_of(operator).post(address(finding, "acknowledge/"), {"note": "Disk is on its way.", **given})
        page = Page(answer.content.decode())
        assert answer.status_code == 400
        assert code in page.texts("#wrong .error-code")
        for name, value in {"note": "Disk is on its way.", **given}.items():
            if name != "snooze":
                assert page.first(f"#owner [name={name}]").get("value") == value
        assert Finding.objects.get().acknowledged_by is None

    def test_a_note_for_one_that_closed_meanwhile_is_shown_again(
        self, finding: Finding, operator: User, client_of: Callable[[User], Client]
    ) -> None:
        Finding.objects.update(closed_at=NOW)
        answer = client_of(operator).post(address(finding, "acknowledge/"), {"note": "Disk <is> on its way."})
        page = Page(answer.content.decode())
        assert (answer.status_code, page.texts("#note-kept")) == (409, ["Disk <is> on its way."])

    @pytest.mark.parametrize(
        ("given", "mark"),
        [({}, "yes"), ({"until": "2026-11-22T08:30"}, "until"), ({"snooze": "60"}, "snoozed")],
        ids=["taken", "until", "snoozed"],
    )
    def test_all_lists_say_how_long(
        self,
        finding: Finding,
        operator: User,
        client_of: Callable[[User], Client],
        get_page: GetPage,
        given: dict[str, str],
        mark: str,
    ) -> None:
        board = get_page("/")
        assert [one.get("data-owned") for one in board.find(".owner-mark")] == ["no"]
        client_of(operator).post(address(finding, "acknowledge/"), {"note": "Disk is on its way.", **given})
        for path in ("/", "/clusters/demo/"):
            page = get_page(path)
            assert [one.get("data-owned") for one in page.find(".owner-mark")] == [mark]
            assert page.texts(".finding-note") == ["olga: Disk is on its way."]
        assert get_page(address(finding)).texts("#note") == ["Disk is on its way."]


class TestIncidents:
    @pytest.fixture
    def stopped(self, db: None) -> Cluster:
        cluster = watched("demo", under_replicated=1, under_min_isr=1)
        TopicFactory.create(cluster=cluster, name="orders", partitions=[[0, 1, 5, [1, 3], [1], [3]]])
        BrokerState.objects.filter(cluster=cluster, broker_id=3).update(fenced=True)
        judged(cluster)
        return cluster

    @pytest.mark.parametrize("path", ["/", "/clusters/demo/"])
    def test_consequences_are_folded_below_their_cause(self, stopped: Cluster, get_page: GetPage, path: str) -> None:
        page = get_page(path)
        assert [row.get("data-finding") for row in page.find(".finding-row")] == ["broker-down"]
        folded = page.find("details.consequences [data-consequence]")
        assert [row.get("data-consequence") for row in folded] == ["under-min-isr", "under-replicated"]
        assert figures_of(page.title)[0] == "3"

    def test_a_filter_shows_consequences_unfolded(self, stopped: Cluster, get_page: GetPage) -> None:
        page = get_page("/?kind=under-replicated")
        assert [row.get("data-finding") for row in page.find(".finding-row")] == ["under-replicated"]

    def test_pages_of_both_lead_to_each_other(self, stopped: Cluster, get_page: GetPage) -> None:
        cause, other = (Finding.objects.get(kind=kind) for kind in ("broker-down", "under-replicated"))
        assert get_page(address(other)).links("#cause") == [address(cause)]
        assert address(other) in get_page(address(cause)).links("#consequences")

    def test_steps_of_a_broker_that_is_down_are_filled_in(self, stopped: Cluster, get_page: GetPage) -> None:
        links = get_page(address(Finding.objects.get(kind="broker-down"))).links("#finding-facts")
        for mode in ("drain", "replace"):
            assert f"/changes/new/?cluster=demo&mode={mode}&brokers=3" in links


@pytest.mark.parametrize(
    ("kind", "scope", "url"),
    [
        (FindingKind.LEADER_SKEW, "3", "/clusters/demo/elections/new/?broker=3"),
        (FindingKind.RACK_VIOLATION, "", "/changes/new/?cluster=demo&mode=repair-racks"),
        (FindingKind.DISK_FULL, "3:/data", "/changes/new/?cluster=demo&mode=balance&disks=1"),
        (FindingKind.DISK_SOON, "3:/data", "/changes/new/?cluster=demo&mode=balance&disks=1"),
    ],
)
def test_next_step__opens_the_change_that_mends_it(kind: FindingKind, scope: str, url: str) -> None:
    step = next_step(Cluster(slug="demo"), kind, scope)
    assert step is not None
    assert step.url == url
