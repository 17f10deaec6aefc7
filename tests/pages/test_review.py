"""The review page of a change request, for everybody who may look at it and in each state."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client

from kafkadash.accounts.audit import record
from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest, Comment, Policy, Verdict
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.domain.checks import About, Check, Result
from kafkadash.domain.messages import message_text
from kafkadash.domain.workflow_states import State
from tests.changes.parcels import PASSED, approved, propose
from tests.factories import NOW, watched
from tests.pages.conftest import Page

GetPage = Callable[[str], Page]
Look = Callable[[User, ChangeRequest], Page]
pytestmark = pytest.mark.usefixtures("parcels")


@pytest.fixture
def demo(db: None) -> Cluster:
    return watched("demo")


@pytest.fixture
def change(demo: Cluster, operator: User) -> ChangeRequest:
    return propose(demo, operator)


@pytest.fixture
def look(client_of: Callable[[User], Client]) -> Look:
    def get(user: User, change: ChangeRequest) -> Page:
        response = client_of(user).get(f"/changes/{change.pk}/")
        assert response.status_code == 200
        return Page(response.content.decode())

    return get


def test_it_comes_in_the_order_of_the_design(change: ChangeRequest, approver: User, look: Look) -> None:
    page = look(approver, change)
    order = ("change-bar", "why", "verdict", "parcels", "checks", "comments", "audit", "decide")
    assert tuple(page.order_of(*order)) == order
    assert page.title == f"#{change.pk} Bring 3 parcels north"
    assert page.words("change-bar") == (
        f"Proposed #{change.pk} Bring 3 parcels north 3 parcels needs 1 approval, has 0 Decline… Review and approve"
    )
    index = re.search(r'<nav class="section-index".*?</nav>', page.html, re.DOTALL)
    assert index is not None
    for anchor in re.findall(r'href="#([^"]+)"', index[0]):
        assert page.has(anchor)
    assert "3 parcels go to the north." in page.words("parcels")
    assert 'aria-current="page">Reassignments' in page.html
    assert f"key=change:{change.pk}" in page.start_tag("live")


def test_what_and_why_says_who_asked_and_how_long_it_holds(change: ChangeRequest, viewer: User, look: Look) -> None:
    words = look(viewer, change).words("why")
    assert words.startswith(
        "What and why Draft Proposed Approved Bring every parcel to the north. The south is closed."
    )
    assert "asked by olga , 01:58:04 last edited by olga , 01:55:04" in words
    assert "plan made from the topology of 01:57:04" in words
    assert "expires 22 Nov 01:55:04 , in 23 h 52 min" in words
    assert "Executing" not in words, "what cannot be run yet is not promised"


def test_the_verdict_says_whether_it_can_be_run_the_risk_and_why(
    change: ChangeRequest, viewer: User, look: Look
) -> None:
    page = look(viewer, change)
    assert page.words("verdict") == (
        "Medium risk Can be run as planned: 2 of 2 checks pass. Risk 34 of 100, one approval needed."
        " +20 moves 10 % of the bytes +14 touches 20 % of the partitions"
    )
    assert 'data-state="warning"' in page.start_tag("verdict")
    failed = Check("alive", About.HEALTH, Result.FAILED, "All targets alive", "1 of 2", ("broker 5 is fenced",), 4)
    unknown = Check("quorum", About.HEALTH, Result.UNKNOWN, "Controllers answer")
    ChangeRequest.objects.update(checks=[c.as_json() for c in (PASSED, failed, unknown)], risk=5, risk_reasons=[])
    page = look(viewer, change)
    assert page.words("verdict") == (
        "Low risk Cannot be run as it is now: 1 of 3 checks pass, 1 cannot be told. Risk 5 of 100, one approval needed."
    )
    assert 'data-state="warning"' in page.start_tag("verdict"), "not green beside a check that fails"


def test_checks_have_a_word_a_figure_and_their_problems(change: ChangeRequest, viewer: User, look: Look) -> None:
    failed = Check("alive", About.HEALTH, Result.FAILED, "All targets alive", "1 of 2", ("broker 5 is fenced",), 4)
    unknown = Check("quorum", About.HEALTH, Result.UNKNOWN, "Controllers answer")
    ChangeRequest.objects.update(checks=[c.as_json() for c in (PASSED, failed, unknown)])
    page = look(viewer, change)
    assert page.order_of("check-alive", "check-quorum", "check-as-planned")[0] == "check-as-planned", "content first"
    assert page.words("check-alive") == "All targets alive fails 1 of 2 broker 5 is fenced and 3 more"
    assert 'data-state="warning"' in page.start_tag("check-alive")
    assert page.words("check-quorum") == "Controllers answer not known"
    assert 'data-state="unknown"' in page.start_tag("check-quorum")
    assert page.words("check-as-planned") == "Every partition is as it was planned : passes 3 of 3"


def test_nothing_old_is_green_and_nobody_approves_on_it(change: ChangeRequest, approver: User, look: Look) -> None:
    ChangeRequest.objects.update(checked_at=NOW - timedelta(minutes=5))
    page = look(approver, change)
    assert "data-stale" in page.start_tag("checks")
    assert 'data-state="ok"' not in page.part("checks")
    assert "Whether it can be run is not known: 2 of 2 checks passed." in page.words("verdict")
    decide = page.part("decide")
    assert 'type="button" aria-disabled="true" aria-describedby="approve-off"' in decide
    assert page.words("approve-off") == (
        message_text(ChangeErrorCode.CHECKS_TOO_OLD, doing="Approving", limit="2 min", age="5 min")
    )
    assert ">Decline</button>" in decide, "declining needs no fresh data"


def test_the_decision_names_exactly_what_is_approved(change: ChangeRequest, approver: User, look: Look) -> None:
    page = look(approver, change)
    words = page.words("decide-approve")
    assert "You approve exactly this content: 3 parcels, topology of 01:57:04 ." in words
    assert f"sha256:{change.digest[:8]} {change.digest[8:16]} " in words
    for form in ("decide-approve", "decide-decline"):
        assert f'name="digest" value="{change.digest}"' in page.part(form)
        assert "csrfmiddlewaretoken" in page.part(form)
    assert page.words("decide-head") == "Your decision, abel You are neither the author nor the last editor."
    assert "hx-morph-skip" in page.part("decide-seen"), "a refetch does not exchange what was read"
    assert f'data-digest="{change.digest}" data-round="1"' in page.start_tag("decide")
    assert " hidden" in page.start_tag("changed-while-you-read")


class TestWhoeverMayNotDecideIsToldWhy:
    def test_without_the_role(self, change: ChangeRequest, viewer: User, auditor: User, look: Look) -> None:
        for user in (viewer, auditor):
            page = look(user, change)
            assert page.words("decide-body") == (
                message_text(ChangeErrorCode.DECIDING_NEEDS_ROLE, roles="approver", cluster="demo")
            )
            assert "<form" not in page.part("decide")
            assert "<form" not in page.part("comments")

    def test_own_hands(self, change: ChangeRequest, operator: User, look: Look) -> None:
        ClusterRole.objects.create(user=operator, role=Role.APPROVER)
        page = look(operator, change)
        assert "You wrote, edited or refreshed what is proposed, so somebody else decides about it." in page.text
        assert "Withdraw to a draft" in page.words("decide")
        assert not page.has("decide-approve")
        Policy.objects.create(cluster=change.cluster, self_approval=True)
        page = look(operator, change)
        assert page.has("decide-approve")
        assert "You wrote or edited it yourself; the policy of demo allows you to decide." in page.text

    def test_an_approval_of_ones_own(self, change: ChangeRequest, approver: User, look: Look) -> None:
        ChangeRequest.objects.update(approvals_needed=2)
        approved(change, approver)
        page = look(approver, change)
        assert "You approved it. It needs 1 more approval, by somebody else." in page.words("decide")
        assert not page.has("decide-approve")
        assert page.has("decide-decline"), "one may think otherwise"
        assert "two approvals needed, one given" in page.words("verdict")

    def test_a_read_only_cluster(self, change: ChangeRequest, approver: User, look: Look) -> None:
        Cluster.objects.update(read_only=True)
        page = look(approver, change)
        assert page.words("approve-off").startswith("demo is read-only in kafkadash")
        assert "read-only" in page.words("change-bar")
        assert page.has("decide-decline")

    def test_an_approval_of_what_was_before_does_not_count(
        self, change: ChangeRequest, approver: User, make_user: Callable[..., User], look: Look
    ) -> None:
        approved(change, make_user("ann", Role.APPROVER), round=0)
        approved(change, make_user("bea", Role.APPROVER), void_at=NOW)
        approved(change, make_user("cis", Role.APPROVER), digest="0" * 64)
        page = look(approver, change)
        assert "needs 1 approval, has 0" in page.words("change-bar")
        assert page.has("decide-approve")


class TestStates:
    def test_a_draft_leads_on_for_whoever_may(self, demo: Cluster, operator: User, viewer: User, look: Look) -> None:
        draft = propose(demo, operator, State.DRAFT, title="", why="", artifact=None, digest="", topology_at=None)
        page = look(operator, draft)
        assert page.title == f"#{draft.pk} without a title yet"
        assert f'href="/changes/{draft.pk}/draft/what/"' in page.part("change-bar")
        assert "Delete the draft" in page.words("decide")
        assert not page.has("verdict")
        assert not page.has("checks")
        assert not page.has("parcels")
        seen = look(viewer, draft)
        assert "There is nothing to decide yet: this is the draft of olga." in seen.words("decide")
        assert "Go on" not in seen.words("change-bar")

    def test_a_draft_that_was_proposed_once_stays(self, demo: Cluster, operator: User, look: Look) -> None:
        assert "Delete the draft" not in look(operator, propose(demo, operator, State.DRAFT, round=1)).text

    def test_stale_says_what_changed_and_that_nothing_was_sent(
        self, demo: Cluster, operator: User, approver: User, look: Look
    ) -> None:
        moved = "orders-1: replicas are 2, 1; the plan expects 3, 1"
        failed = Check(
            "as-planned", About.CONTENT, Result.FAILED, "Every partition is as planned", "2 of 3", (moved,), 1
        )
        change = propose(demo, operator, State.STALE, stale_reasons=[moved], checks=[failed.as_json()])
        approved(change, approver, void_at=NOW, void_why="stale")
        page = look(operator, change)
        assert page.words("stale") == (
            f"Stale 1 of 3 rows changed since the plan. Nothing was sent; abel’s approval is void. {moved}"
            " Refresh the plan"
        )
        assert f'action="/changes/{change.pk}/refresh/"' in page.part("stale")
        seen = look(approver, change)
        assert "<form" not in seen.part("stale"), "an approver does not refresh"
        assert "the plan no longer fits the cluster and has to be made anew first" in seen.words("decide")

    def test_approved_says_by_whom_and_until_when(
        self, demo: Cluster, operator: User, approver: User, look: Look
    ) -> None:
        change = propose(demo, operator, State.APPROVED)
        approved(change, approver, note="Go ahead.")
        page = look(approver, change)
        assert page.words("decide-body") == "Approved: abel, 02:02:04 . Valid until 22 Nov 01:55:04 . Go ahead."
        assert "one approval given" in page.words("verdict")
        assert "Start" not in page.text

    def test_declined_says_by_whom_and_why_and_can_be_copied(
        self, demo: Cluster, operator: User, approver: User, look: Look
    ) -> None:
        change = propose(demo, operator, State.DECLINED)
        approved(change, approver, verdict=Verdict.DECLINED, note="Not on a Friday.")
        page = look(operator, change)
        assert page.words("decide-body") == "Declined: abel, 02:02:04 . Not on a Friday. Copy as a new draft"
        assert "Draft Proposed Declined" in page.words("why")
        assert "Copy as a new draft" not in look(approver, change).text

    def test_expired_says_so(self, demo: Cluster, operator: User, look: Look) -> None:
        page = look(operator, propose(demo, operator, State.EXPIRED))
        assert "Expired 01:58:04 : its time was over before it was approved." in page.words("decide")
        assert "expires" not in page.words("why")
        assert "Copy as a new draft" in page.words("decide")
        assert "as of 02:03:00" in page.words("checks"), "what is not repeated is no live figure"
        assert 'data-state="ok"' not in page.part("checks"), "and not green"
        assert 'data-state="unknown"' not in page.part("checks"), "that it passed then is known"
        assert page.part("checks").count('href="#i-check"') == 2
        assert "When it was last checked it could be run: 2 of 2 checks passed." in page.words("verdict")

    @pytest.mark.parametrize("state", list(State))
    def test_every_state_has_a_page_for_everybody(
        self,
        state: State,
        demo: Cluster,
        viewer: User,
        operator: User,
        approver: User,
        admin: User,
        look: Look,
    ) -> None:
        change = propose(demo, operator, state)
        for user in (viewer, operator, approver, admin):
            assert look(user, change).words("change-bar").startswith(state.value.capitalize())


def test_names_comments_and_reasons_with_markup_are_text(
    demo: Cluster, make_user: Callable[..., User], approver: User, look: Look
) -> None:
    bold = "<b onclick=alert(1)>bold</b>"
    author = make_user("<i>eve</i>", Role.OPERATOR)
    change = propose(demo, author, State.STALE, title=bold, why=bold, stale_reasons=[bold])
    Comment.objects.create(request=change, user=author, user_name="<i>eve</i>", text=f"{bold}\nsecond line")
    record(author, "change.submitted", change, reason=bold)
    approved(change, approver, note=bold)
    page = look(approver, change)
    assert "<b onclick" not in page.html
    assert "<i>eve" not in page.html
    assert page.text.count(bold) >= 4
    assert "second line" in page.words("comments")


def test_the_trail_tells_people_the_product_and_trouble_apart(
    change: ChangeRequest, operator: User, viewer: User, look: Look
) -> None:
    digest = {"digest": change.digest}
    events = [
        record(operator, "change.submitted", change, reason="The south is closed.", after=digest),
        record("kafkadash", "change.turned_stale", change),
        record("planner", "change.something_new", change),
    ]
    page = look(viewer, change)
    submitted, stale, new = (f"event-{event.pk}" for event in events)
    assert page.order_of(new, stale, submitted) == [submitted, stale, new], "oldest first"
    assert 'data-kind="person"' in page.start_tag(submitted)
    assert f"olga submitted it for approval The south is closed. digest {change.digest[:8]}…" in page.words(submitted)
    assert 'data-state="warning"' in page.start_tag(stale)
    assert "kafkadash found that the plan no longer fits the cluster" in page.words(stale)
    assert "planner something new" in page.words(new)
    other = propose(change.cluster, operator)
    assert "Nothing is recorded." in look(viewer, other).words("audit")


def test_the_window_is_part_of_what_is_approved(demo: Cluster, operator: User, approver: User, look: Look) -> None:
    change = propose(demo, operator, not_before=NOW, not_after=NOW + timedelta(hours=6))
    words = look(approver, change).words("decide-approve")
    assert "3 parcels, window from 02:03:04 until 08:03:04 , topology of 01:57:04" in words


def test_the_navigation_names_the_role_on_this_cluster(
    change: ChangeRequest, make_user: Callable[..., User], look: Look
) -> None:
    una = make_user("una", Role.ADMIN, watched("other"))
    ClusterRole.objects.create(user=una, cluster=change.cluster, role=Role.VIEWER)
    assert 'una <span class="muted">viewer</span>' in look(una, change).html


def test_it_is_not_there_for_whoever_may_not_view_its_cluster(
    change: ChangeRequest, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    una = client_of(make_user("una", Role.VIEWER, watched("other")))
    assert una.get(f"/changes/{change.pk}/").status_code == 404
    assert una.get(f"/changes/{change.pk + 1}/").status_code == 404


def test_a_kind_that_is_not_known_shows_what_is_common(change: ChangeRequest, operator: User, look: Look) -> None:
    ChangeRequest.objects.update(kind="of the future")
    page = look(operator, change)
    assert "does not know changes of the kind of the future" in page.words("why")
    assert page.has("checks")
    assert not page.has("parcels")


def test_unchanged_it_costs_no_body(change: ChangeRequest, viewer: User, client_of: Callable[[User], Client]) -> None:
    client, where = client_of(viewer), f"/changes/{change.pk}/"
    etag = client.get(where)["ETag"]
    assert client.get(where, headers={"If-None-Match": etag}).status_code == 304
    ChangeRequest.objects.update(checked_at=NOW)
    again = client.get(where, headers={"If-None-Match": etag})
    assert again.status_code == 200
    assert "Can be run as planned" in unescape(again.content.decode())
