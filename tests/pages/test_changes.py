"""The list of change requests: what waits for whom, filters with addresses, rows in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest, Policy
from kafkadash.clusters.models import Cluster, Role
from kafkadash.domain.workflow_states import State
from tests.changes.parcels import approved, propose
from tests.factories import NOW, watched
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]
pytestmark = pytest.mark.usefixtures("parcels")


@pytest.fixture
def demo(db: None) -> Cluster:
    return watched("demo")


@pytest.fixture
def change(demo: Cluster, operator: User) -> ChangeRequest:
    return propose(demo, operator)


def seen_by(client_of: Callable[[User], Client], user: User, address: str = "/changes/") -> Page:
    response = client_of(user).get(address)
    assert response.status_code == 200
    return Page(response.content.decode())


def test_the_title_says_what_waits_and_the_navigation_counts_it(
    demo: Cluster, operator: User, approver: User, client_of: Callable[[User], Client]
) -> None:
    first, second = propose(demo, operator), propose(demo, operator)
    page = seen_by(client_of, approver)
    assert page.title == "2 changes wait for you."
    assert page.order_of(f"change-{second.pk}", f"change-{first.pk}") == [f"change-{second.pk}", f"change-{first.pk}"]
    assert page.words("waiting-count") == "2"
    assert "2 waiting for you" in page.html, "in the menu of a phone"
    assert seen_by(client_of, approver, "/clusters/demo/").words("waiting-count") == "2"
    approved(first, approver)
    page = seen_by(client_of, approver)
    assert page.title == "1 change waits for you."
    assert not page.has(f"change-{first.pk}")


def test_nothing_waits_for_whoever_cannot_decide(
    change: ChangeRequest,
    operator: User,
    viewer: User,
    make_user: Callable[..., User],
    client_of: Callable[..., Client],
) -> None:
    both = make_user("both", Role.APPROVER)
    ChangeRequest.objects.update(hands=[operator.pk, both.pk])
    elsewhere = make_user("else", Role.APPROVER, watched("other"))
    for user in (operator, viewer, both, elsewhere):
        page = seen_by(client_of, user)
        assert page.title == "Nothing waits for you.", user
        assert " hidden" in page.start_tag("waiting-count")
        assert not page.has(f"change-{change.pk}")


def test_nobody_sees_changes_of_clusters_he_may_not_view(
    change: ChangeRequest, make_user: Callable[..., User], client_of: Callable[[User], Client], stranger: User
) -> None:
    una = make_user("una", Role.VIEWER, watched("other"))
    page = seen_by(client_of, una, "/changes/?show=all")
    assert not page.has(f"change-{change.pk}")
    assert "All 0" in page.words("changes")
    assert "demo" not in page.text
    none = seen_by(client_of, stranger)
    assert "You may not view any cluster yet." in none.text


def test_a_row_says_what_where_by_whom_and_what_it_waits_for(
    demo: Cluster, operator: User, approver: User, get_page: GetPage
) -> None:
    change = propose(demo, operator, approvals_needed=2, state_since=NOW - timedelta(hours=2))
    approved(change, approver)
    row = get_page("/changes/?show=open").words(f"change-{change.pk}")
    assert row == (f"Proposed #{change.pk} Bring 3 parcels north 3 parcels demo olga 1 of 2 1 approval 00:03:04")


@pytest.mark.parametrize(
    ("state", "pill", "waits_for"),
    [
        (State.DRAFT, 'data-phase="draft"', "olga, to propose it"),
        (State.STALE, 'class="status-pill" data-state="warning"', "a new plan"),
        (State.APPROVED, 'data-phase="approved"', "nothing"),
        (State.QUEUED, 'data-phase="approved"', "its turn"),
        (State.EXECUTING, 'data-phase="executing"', "its rows to end"),
        (State.PAUSED, 'data-phase="executing"', "an operator, to go on"),
        (State.VERIFYING, 'data-phase="executing"', "its rows to be read again"),
        (State.CANCELLING, 'data-phase="executing"', "its rows to end"),
        (State.DONE, 'data-phase="done"', "nothing"),
        (State.FAILED, 'class="status-pill" data-state="critical"', "nothing"),
        (State.DECLINED, 'data-phase="ended"', "nothing"),
        (State.EXPIRED, 'data-phase="ended"', "nothing"),
        (State.CANCELLED, 'data-phase="ended"', "nothing"),
    ],
)
def test_each_state_has_its_pill_its_word_and_what_it_waits_for(
    state: State, pill: str, waits_for: str, demo: Cluster, operator: User, get_page: GetPage
) -> None:
    change = propose(demo, operator, state)
    page = get_page("/changes/?show=all")
    assert pill in page.part(f"change-{change.pk}")
    words = page.words(f"change-{change.pk}")
    assert words.startswith(f"{state.value.capitalize()} #")
    assert waits_for in words


def test_every_filter_has_an_address(demo: Cluster, operator: User, viewer: User, get_page: GetPage) -> None:
    other = watched("other")
    parcels_ = propose(demo, operator)
    ended = propose(other, operator, State.DECLINED, title="Drain broker 3")
    mine = propose(other, viewer, State.DRAFT, title="Move 100% of_it", why="because")
    of = {"parcels": parcels_, "ended": ended, "mine": mine}
    for address, expected in (
        ("?show=all", {"parcels", "ended", "mine"}),
        ("?show=open", {"parcels", "mine"}),
        ("?show=ended", {"ended"}),
        ("?show=running", set()),
        ("?show=mine", {"mine"}),
        ("?show=all&cluster=demo", {"parcels"}),
        ("?show=all&state=declined", {"ended"}),
        ("?show=all&author=VER", {"mine"}),
        (f"?show=all&q=%23{ended.pk}", {"ended"}),
        (f"?show=all&q={ended.pk}", {"ended"}),
        ("?show=all&q=BROKER", {"ended"}),
        ("?show=all&q=because", {"mine"}),
        ("?show=all&q=100%25", {"mine"}),
        ("?show=all&q=of_it", {"mine"}),
        ("?show=all&q=9999999999999999999999999", set()),
        ("?show=all&q=²", set()),
    ):
        page = get_page(f"/changes/{address}")
        assert {name for name, change in of.items() if page.has(f"change-{change.pk}")} == expected, address
    page = get_page("/changes/?show=all&author=vera&sort=since")
    assert page.words("changes").startswith("Changes Waiting for you 0 Running 0 Open 2 Mine 1 Ended 1 All 3")
    assert 'href="?author=vera&amp;show=ended&amp;sort=since"' in page.html
    assert 'value="vera"' in page.html


def test_what_the_address_asks_for_and_nobody_knows_is_said(demo: Cluster, get_page: GetPage) -> None:
    page = get_page("/changes/?show=purple&cluster=nowhere&state=x&sort=colour")
    for sentence in ("There is no selection “purple”", "There is no cluster “nowhere”", "There is no state “x”"):
        assert sentence in page.text
    assert "cannot be sorted by “colour”" in page.text


def test_empty_lists_say_what_next(
    demo: Cluster, operator: User, viewer: User, client_of: Callable[[User], Client], get_page: GetPage
) -> None:
    page = get_page("/changes/")
    assert "Nothing waits for your approval, or for a new plan of yours. Nobody works on a change now." in page.text
    assert "Propose a change" not in page.text, "a viewer may not"
    assert "Nobody has proposed a change yet." in get_page("/changes/?show=all").text
    assert "You have not proposed anything yet." in get_page("/changes/?show=mine").text
    change = propose(demo, operator)
    assert 'href="?show=open"' in get_page("/changes/").part("changes")
    nothing = get_page("/changes/?show=all&q=nothing")
    assert "No change is like that." in nothing.text
    assert 'href="?show=all"' in nothing.part("changes")
    assert not nothing.has(f"change-{change.pk}")


def test_names_and_titles_with_markup_are_text(
    demo: Cluster, make_user: Callable[..., User], get_page: GetPage
) -> None:
    author = make_user("<i>eve</i>", Role.OPERATOR)
    change = propose(demo, author, title="<script>alert(1)</script>")
    page = get_page(f"/changes/?show=all&q={'<script>'}&author={'<i>'}")
    assert "<script>alert(1)" not in page.html
    assert "<i>eve" not in page.html
    assert "<script>alert(1)</script>" in page.words(f"change-{change.pk}")


def test_a_stricter_policy_counts_at_once(change: ChangeRequest, get_page: GetPage) -> None:
    Policy.objects.create(cluster=change.cluster, approvals_medium=3, approvals_high=3)
    assert "0 of 3 3 approvals" in get_page("/changes/?show=all").words(f"change-{change.pk}")


def test_a_kind_that_is_not_known_is_listed_all_the_same(change: ChangeRequest, get_page: GetPage) -> None:
    ChangeRequest.objects.update(kind="of the future")
    words = get_page("/changes/?show=all").words(f"change-{change.pk}")
    assert "of a kind that this version does not know" in words


def test_the_list_is_told_of_changes(demo: Cluster, get_page: GetPage) -> None:
    assert "key=changes" in get_page("/changes/").start_tag("live")
    assert "data-key-changes" in get_page("/").html
