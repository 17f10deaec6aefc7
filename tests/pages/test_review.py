"""The review page of a change request, for everybody who may look at it and in each state.

What is done from the review page: it is done, or refused with a sentence, and nothing that was typed is lost.

The list of change requests: what waits for whom, filters with addresses, rows in words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from html import escape
from typing import cast

import pytest
from django.http import HttpResponse
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.accounts.services import record
from kafkadash.changes.checks import ChangeCheck, CheckResult, CheckSubject
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest, Comment, Policy, Review, ReviewVerdict
from kafkadash.changes.request_validation import LONGEST_TEXT
from kafkadash.changes.state_machine import ChangeState, WorkflowErrorCode
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.core.errors import RequestErrorCode
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import coded, message_text
from kafkadash.planning.problem_codes import CheckErrorCode, CheckTitle
from tests.changes.parcels import PASSED, approved, propose
from tests.factories import NOW, watched
from tests.pages.conftest import Page, figures_of, told_in

GetPage = Callable[[str], Page]
Look = Callable[[User, ChangeRequest], Page]
pytestmark = pytest.mark.usefixtures("parcels")

FENCED = coded(CheckErrorCode.TARGET_FENCED, broker=5)
NOT_ALIVE = ChangeCheck(
    "alive", CheckSubject.HEALTH, CheckResult.FAILED, coded(CheckTitle.TARGETS_ALIVE), "1 of 2", (FENCED,), 4
)
NOT_HEARD = ChangeCheck("quorum", CheckSubject.HEALTH, CheckResult.UNKNOWN, coded(CheckTitle.QUORUM_ANSWERS))


@pytest.fixture
def look(client_of: Callable[[User], Client]) -> Look:
    def get(user: User, change: ChangeRequest) -> Page:
        response = client_of(user).get(f"/changes/{change.pk}/")
        assert response.status_code == 200
        return Page.read(response)

    return get


def test_it_comes_in_the_order_of_the_design(change: ChangeRequest, approver: User, look: Look) -> None:
    page = look(approver, change)
    order = ("change-bar", "why", "verdict", "parcels", "checks", "comments", "audit", "decide")
    assert tuple(page.order_of(*order)) == order
    assert page.title == f"#{change.pk} Bring 3 parcels north"
    bar = page.first("#change-bar")
    assert bar.get("data-outcome") == ChangeState.PROPOSED
    assert figures_of(bar.first("[data-approvals]").text) == ["0", "1"]
    assert page.links("#change-bar .button-row") == ["#decide-decline", "#decide"]
    index = re.search(r'<nav class="section-index".*?</nav>', page.html, re.DOTALL)
    assert index is not None
    for anchor in re.findall(r'href="#([^"]+)"', index[0]):
        assert page.has(anchor)
    assert page.figures("#parcels p") == ["3"]
    assert 'aria-current="page">Reassignments' in page.html
    assert f"key=change:{change.pk}" in page.start_tag("live")


def test_what_and_why_says_who_asked_and_how_long_it_holds(change: ChangeRequest, viewer: User, look: Look) -> None:
    page = look(viewer, change)
    assert page.texts("#why .stepper li") == ["Draft", "Proposed", "Approved"]
    assert page.texts("#why blockquote") == [change.why]
    assert page.texts("#why [data-fact] b") == ["olga", "olga", "22 Nov 01:55:04"]
    assert page.figures("#why [data-fact=author]") == ["01:58:04"]
    assert page.figures("#why [data-fact=editor]") == ["01:55:04"]
    assert page.figures("#why [data-fact=topology]") == ["01:57:04"]
    assert page.figures("#why [data-fact=expires]") == ["22 Nov 01:55:04", "23 h 52 min"]


def test_the_verdict_says_whether_it_can_be_run_the_risk_and_why(
    change: ChangeRequest, viewer: User, look: Look
) -> None:
    page = look(viewer, change)
    verdict = page.first("#verdict")
    assert (verdict.get("data-state"), verdict.get("data-checks")) == ("warning", "ok")
    assert figures_of(verdict.first("h2").text) == ["2", "2", "34", "100", "0", "1"]
    assert verdict.texts(".reasons b") == ["+20", "+14"]
    assert [figures_of(reason)[1] for reason in verdict.texts(".reasons li")] == ["10 %", "20 %"]
    assert (page.context["needed"], page.context["approvals"]) == (1, [])
    ChangeRequest.objects.update(
        checks=[pack_dataclass(c) for c in (PASSED, NOT_ALIVE, NOT_HEARD)], risk=5, risk_reasons=[]
    )
    page = look(viewer, change)
    verdict = page.first("#verdict")
    assert verdict.get("data-checks") == "warning"
    assert figures_of(verdict.first("h2").text) == ["1", "3", "1", "5", "100", "0", "1"]
    assert verdict.first(".status-pill").get("data-state") == "ok", "the risk is low"
    assert verdict.get("data-state") == "warning"  # not green beside a check that fails


def test_checks_have_a_word_a_figure_and_their_problems(change: ChangeRequest, viewer: User, look: Look) -> None:
    ChangeRequest.objects.update(checks=[pack_dataclass(c) for c in (PASSED, NOT_ALIVE, NOT_HEARD)])
    page = look(viewer, change)
    assert page.order_of("check-alive", "check-quorum", "check-as-planned")[0] == "check-as-planned", "content first"
    failing = page.first("#check-alive")
    assert failing.get("data-state") == "warning"
    assert failing.texts(".check-problems .error-code") == [FENCED.code]
    assert figures_of(failing.texts(".check-problems .muted")[0]) == ["3"]
    assert page.states("#check-quorum") == ["unknown"]
    passing = page.first("#check-as-planned")
    assert passing.get("data-state") == "ok"
    assert str(PASSED.title) in passing.text
    assert figures_of(passing.text) == ["3", "3"]


def test_nothing_old_is_green_and_nobody_approves_on_it(change: ChangeRequest, approver: User, look: Look) -> None:
    ChangeRequest.objects.update(checked_at=NOW - timedelta(minutes=5))
    page = look(approver, change)
    assert "data-stale" in page.start_tag("checks")
    assert 'data-state="ok"' not in page.part("checks")
    assert page.first("#verdict").get("data-checks") == "unknown"
    decide = page.part("decide")
    assert 'type="button" aria-disabled="true" aria-describedby="approve-off"' in decide
    assert page.words("approve-off") == (
        message_text(ChangeErrorCode.CHECKS_TOO_OLD, doing="Approving", limit="2 min", age="5 min")
    )
    assert ">Decline change</button>" in decide  # declining needs no fresh data


def test_the_decision_names_exactly_what_is_approved(change: ChangeRequest, approver: User, look: Look) -> None:
    page = look(approver, change)
    words = page.words("decide-approve")
    assert page.figures("#decide-approve .approved-content") == ["3", "01:57:04"]
    assert f"sha256:{change.digest[:8]} {change.digest[8:16]} " in words
    for form in ("decide-approve", "decide-decline"):
        assert f'name="digest" value="{change.digest}"' in page.part(form)
        assert "csrfmiddlewaretoken" in page.part(form)
    assert "abel" in page.first("#decide-head h2").text
    assert page.first("#decide-head [data-as]").get("data-as") == "other"
    assert "hx-morph-skip" in page.part("decide-seen")  # a refetch does not exchange what was read
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
        assert page.tells(ChangeErrorCode.DECIDING_OWN, "#decide .why-not")
        assert page.find(f"#decide form[action=/changes/{change.pk}/withdraw/]")
        assert not page.has("decide-approve")
        Policy.objects.create(cluster=change.cluster, self_approval=True)
        page = look(operator, change)
        assert page.has("decide-approve")
        assert page.first("#decide-head [data-as]").get("data-as") == "author"

    def test_an_approval_of_ones_own(self, change: ChangeRequest, approver: User, look: Look) -> None:
        ChangeRequest.objects.update(approvals_needed=2)
        approved(change, approver)
        page = look(approver, change)
        assert page.first("#decide-head [data-as]").get("data-as") == "approved"
        assert page.figures("#decide-forms p") == ["1"]
        assert not page.has("decide-approve")
        assert page.has("decide-decline"), "one may think otherwise"
        assert (page.context["needed"], len(page.context["approvals"])) == (2, 1)

    def test_a_read_only_cluster(self, change: ChangeRequest, approver: User, look: Look) -> None:
        Cluster.objects.update(read_only=True)
        page = look(approver, change)
        assert page.words("approve-off") == message_text(ClusterErrorCode.READ_ONLY, cluster="demo")
        assert "read-only" in page.words("change-bar")
        assert page.has("decide-decline")

    def test_an_approval_of_what_was_before_does_not_count(
        self, change: ChangeRequest, approver: User, make_user: Callable[..., User], look: Look
    ) -> None:
        approved(change, make_user("ann", Role.APPROVER), round=0)
        approved(change, make_user("bea", Role.APPROVER), void_at=NOW)
        approved(change, make_user("cis", Role.APPROVER), digest="0" * 64)
        page = look(approver, change)
        assert page.figures("#change-bar [data-approvals]") == ["0", "1"]
        assert page.has("decide-approve")


class TestStates:
    def test_a_draft_leads_on_for_whoever_may(self, demo: Cluster, operator: User, viewer: User, look: Look) -> None:
        draft = propose(demo, operator, ChangeState.DRAFT, title="", why="", artifact=None, digest="", topology_at=None)
        page = look(operator, draft)
        assert f"#{draft.pk}" in page.title
        assert f'href="/changes/{draft.pk}/draft/what/"' in page.part("change-bar")
        assert page.find(f"#decide form[action=/changes/{draft.pk}/delete/]")
        assert not page.has("verdict")
        assert not page.has("checks")
        assert not page.has("parcels")
        seen = look(viewer, draft)
        assert seen.tells(ChangeErrorCode.STILL_A_DRAFT, "#decide .why-not")
        assert f"/changes/{draft.pk}/draft/what/" not in seen.links("#change-bar")

    def test_a_draft_that_was_proposed_once_stays(self, demo: Cluster, operator: User, look: Look) -> None:
        page = look(operator, propose(demo, operator, ChangeState.DRAFT, round=1))
        assert not any(form.get("action").endswith("/delete/") for form in page.find("#decide form"))

    def test_stale_says_what_changed_and_that_nothing_was_sent(
        self, demo: Cluster, operator: User, approver: User, look: Look
    ) -> None:
        moved = coded(CheckErrorCode.OTHER_THAN_PLANNED, row="orders-1", replicas=(2, 1), expected=(3, 1))
        failed = replace(PASSED, result=CheckResult.FAILED, figure="2 of 3", problems=(moved,), problem_count=1)
        change = propose(
            demo, operator, ChangeState.STALE, stale_reasons=[moved.as_json()], checks=[pack_dataclass(failed)]
        )
        approved(change, approver, void_at=NOW, void_code="new-plan")
        page = look(operator, change)
        head = page.first("#stale h2").text
        assert figures_of(head) == ["1", "3"]
        assert "abel" in head, "whose approval is void"
        assert page.texts("#stale .reasons .error-code") == [moved.code]
        assert f'action="/changes/{change.pk}/refresh/"' in page.part("stale")
        seen = look(approver, change)
        assert "<form" not in seen.part("stale")  # an approver does not refresh
        assert seen.tells(ChangeErrorCode.STALE_FIRST, "#decide .why-not")

    def test_approved_says_by_whom_and_until_when(
        self, demo: Cluster, operator: User, approver: User, look: Look
    ) -> None:
        change = propose(demo, operator, ChangeState.APPROVED)
        approved(change, approver, note="Go ahead.")
        page = look(approver, change)
        assert page.figures("#decide-body p") == ["02:02:04", "22 Nov 01:55:04"]
        assert "abel" in page.first("#decide-body p").text
        assert page.texts("#decide-body blockquote") == ["Go ahead."]
        assert len(page.context["approvals"]) == page.context["needed"] == 1
        assert not page.has("start-form")

    def test_declined_says_by_whom_and_why_and_can_be_copied(
        self, demo: Cluster, operator: User, approver: User, look: Look
    ) -> None:
        change = propose(demo, operator, ChangeState.DECLINED)
        approved(change, approver, verdict=ReviewVerdict.DECLINED, note="Not on a Friday.")
        page = look(operator, change)
        assert page.figures("#decide-body p") == ["02:02:04"]
        assert "abel" in page.first("#decide-body p").text
        assert page.texts("#decide-body blockquote") == ["Not on a Friday."]
        assert page.texts("#why .stepper li") == ["Draft", "Proposed", "Declined"]
        copy = f"#decide form[action=/changes/{change.pk}/copy/]"
        assert page.find(copy)
        assert not look(approver, change).find(copy)

    def test_expired_says_so(self, demo: Cluster, operator: User, look: Look) -> None:
        change = propose(demo, operator, ChangeState.EXPIRED)
        page = look(operator, change)
        assert page.first("#change-bar").get("data-outcome") == ChangeState.EXPIRED
        assert page.figures("#decide-body p") == ["01:58:04"]
        assert not page.find("#why [data-fact=expires]")
        assert page.find(f"#decide form[action=/changes/{change.pk}/copy/]")
        assert "as of 02:03:00" in page.words("checks")  # what is not repeated is no live figure
        assert 'data-state="ok"' not in page.part("checks"), "and not green"
        assert 'data-state="unknown"' not in page.part("checks")  # that it passed then is known
        assert page.part("checks").count('href="#i-check"') == 2
        assert page.figures("#verdict h2")[:2] == ["2", "2"]
        assert page.first("#verdict").get("data-checks") == "unknown"

    @pytest.mark.parametrize("state", list(ChangeState))
    def test_every_state_has_a_page_for_everybody(
        self,
        state: ChangeState,
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
    change = propose(demo, author, ChangeState.STALE, title=bold, why=bold, stale_reasons=[bold])
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
    event = page.first(f"#{submitted}")
    assert event.get("data-event") == "change.submitted"
    assert event.first("b").text == "olga"
    assert event.texts(".kept-text")[0] == "The south is closed."
    assert f"{change.digest[:8]}…" in event.text
    assert 'data-state="warning"' in page.start_tag(stale)
    assert page.first(f"#{stale}").get("data-event") == "change.turned_stale"
    assert page.first(f"#{new}").get("data-event") == "change.something_new"
    other = propose(change.cluster, operator)
    assert not look(viewer, other).find("#audit li")


def test_the_window_is_part_of_what_is_approved(demo: Cluster, operator: User, approver: User, look: Look) -> None:
    change = propose(demo, operator, not_before=NOW, not_after=NOW + timedelta(hours=6))
    page = look(approver, change)
    assert page.figures("#decide-approve .approved-content") == ["3", "02:03:04", "08:03:04", "01:57:04"]


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
    assert "of the future" in page.texts("#why .mono")
    assert page.has("checks")
    assert not page.has("parcels")


def test_unchanged_it_costs_no_body(change: ChangeRequest, viewer: User, client_of: Callable[[User], Client]) -> None:
    client, where = client_of(viewer), f"/changes/{change.pk}/"
    etag = client.get(where)["ETag"]
    assert client.get(where, headers={"If-None-Match": etag}).status_code == 304
    ChangeRequest.objects.update(checked_at=NOW)
    again = client.get(where, headers={"If-None-Match": etag})
    assert again.status_code == 200
    assert Page.read(again).first("#verdict").get("data-checks") == "ok"


TYPED = 'I looked at <b>"all"</b> of it.'


@pytest.fixture
def proposed_change(db: None, operator: User) -> ChangeRequest:
    return propose(watched("demo"), operator)


@pytest.fixture
def post(proposed_change: ChangeRequest, client_of: Callable[[User], Client]) -> Callable[..., HttpResponse]:
    """``post(user, "approve", note="fine")``; the digest is the one on the page unless another is given."""

    def send(user: User, verb: str, **typed: str) -> HttpResponse:
        form = {"digest": proposed_change.digest, **typed}
        return cast("HttpResponse", client_of(user).post(f"/changes/{proposed_change.pk}/{verb}/", form))

    return send


Post = Callable[..., HttpResponse]


def state_of(change: ChangeRequest) -> str:
    return ChangeRequest.objects.get(pk=change.pk).state


def refused(response: HttpResponse, status: int) -> Page:
    assert response.status_code == status
    return Page(response.content.decode())


def test_an_approval_is_of_the_digest_that_was_shown(
    proposed_change: ChangeRequest, approver: User, post: Post
) -> None:
    done = post(approver, "approve", note=TYPED)
    assert (done.status_code, done["Location"]) == (302, f"/changes/{proposed_change.pk}/")
    review = Review.objects.get()
    assert (review.user, review.digest, review.note) == (approver, proposed_change.digest, TYPED)
    assert state_of(proposed_change) == ChangeState.APPROVED


def test_after_it_the_page_says_what_was_done(
    proposed_change: ChangeRequest, approver: User, client_of: Callable[[User], Client]
) -> None:
    client = client_of(approver)
    answer = client.post(f"/changes/{proposed_change.pk}/approve/", {"digest": proposed_change.digest}, follow=True)
    page = Page(answer.content.decode())
    assert f"You approved #{proposed_change.pk}." in page.text
    assert "Approved: abel" in page.words("decide-body")
    assert "abel approved it" in page.words("audit")


def test_another_digest_is_refused_and_the_note_is_kept(
    proposed_change: ChangeRequest, approver: User, post: Post
) -> None:
    page = refused(post(approver, "approve", digest="0" * 64, note=TYPED), 409)
    assert page.refusal == WorkflowErrorCode.OTHER_CONTENT
    assert f'value="{escape(TYPED)}"' in page.part("decide-approve")
    assert f"key=change:{proposed_change.pk}" in page.html  # the page is as live as before
    assert f'data-address="/changes/{proposed_change.pk}/"' in page.html
    assert state_of(proposed_change) == ChangeState.PROPOSED
    assert not Review.objects.exists()


def test_what_somebody_else_decided_meanwhile_is_said_and_the_text_is_kept(
    proposed_change: ChangeRequest, approver: User, make_user: Callable[..., User], post: Post
) -> None:
    assert post(make_user("bea", Role.APPROVER), "decline", reason="No.").status_code == 302
    page = refused(post(approver, "approve", note=TYPED), 409)
    assert page.has("refused")
    assert "bea declined it" in page.words("audit")
    assert not page.has("decide-approve")
    assert TYPED in page.words("refused")  # there is no field any more, so the text stands there


def test_own_hands_are_refused_by_the_server(proposed_change: ChangeRequest, operator: User, post: Post) -> None:
    ClusterRole.objects.create(user=operator, role=Role.APPROVER)
    page = refused(post(operator, "approve", note=TYPED), 409)
    assert TYPED in page.words("refused")
    assert state_of(proposed_change) == ChangeState.PROPOSED


def test_whoever_lost_the_role_is_told_and_keeps_his_text(
    proposed_change: ChangeRequest, approver: User, post: Post
) -> None:
    ClusterRole.objects.filter(user=approver).update(role=Role.VIEWER)
    page = refused(post(approver, "approve", note=TYPED), 403)
    assert page.refusal == ClusterErrorCode.NEEDS_ROLE
    assert TYPED in page.words("refused")
    assert page.title.startswith(f"#{proposed_change.pk} ")
    assert state_of(proposed_change) == ChangeState.PROPOSED


def test_a_read_only_cluster_refuses_approvals_and_lets_decline(
    proposed_change: ChangeRequest, approver: User, post: Post
) -> None:
    Cluster.objects.update(read_only=True)
    assert "demo is read-only" in refused(post(approver, "approve", note=TYPED), 403).words("refused")
    assert post(approver, "decline", reason="Read-only.").status_code == 302
    assert state_of(proposed_change) == ChangeState.DECLINED


def test_on_a_read_only_cluster_one_withdraws_and_deletes_all_the_same(
    proposed_change: ChangeRequest, operator: User, post: Post, client_of: Callable[[User], Client]
) -> None:
    draft = propose(proposed_change.cluster, operator, ChangeState.DRAFT)
    Cluster.objects.update(read_only=True)
    client = client_of(operator)
    assert Page(client.get(f"/changes/{proposed_change.pk}/").content.decode()).has("withdraw-form")
    assert post(operator, "withdraw", reason="Nothing is changed there now.").status_code == 302
    assert state_of(proposed_change) == ChangeState.DRAFT
    drafted = Page(client.get(f"/changes/{draft.pk}/").content.decode())
    assert drafted.find(f"#decide form[action=/changes/{draft.pk}/delete/]")
    assert client.post(f"/changes/{draft.pk}/delete/").status_code == 302
    assert not ChangeRequest.objects.filter(pk=draft.pk).exists()
    for verb in ("refresh", "edit", "copy"):
        assert refused(post(operator, verb, reason="x"), 403).refusal == ClusterErrorCode.READ_ONLY


@pytest.mark.parametrize("verb", ["approve", "decline"])
def test_the_same_plan_proposed_again_is_another_proposal(
    verb: str,
    proposed_change: ChangeRequest,
    approver: User,
    operator: User,
    post: Post,
    client_of: Callable[[User], Client],
) -> None:
    seen = Page(client_of(approver).get(f"/changes/{proposed_change.pk}/").content.decode())
    assert f'name="round" value="{proposed_change.round}"' in seen.part(f"decide-{verb}")
    assert post(operator, "withdraw", reason="A limit is wrong.").status_code == 302
    ChangeRequest.objects.update(state=ChangeState.PROPOSED, round=proposed_change.round + 1, why="Another reason.")
    page = refused(post(approver, verb, round=str(proposed_change.round), note=TYPED, reason=TYPED), 409)
    assert page.refusal == WorkflowErrorCode.OTHER_ROUND
    assert state_of(proposed_change) == ChangeState.PROPOSED
    assert post(approver, verb, round=str(proposed_change.round + 1), reason=TYPED).status_code == 302


def test_old_facts_refuse_an_approval(proposed_change: ChangeRequest, approver: User, post: Post) -> None:
    ChangeRequest.objects.update(checked_at=NOW - timedelta(minutes=5))
    page = refused(post(approver, "approve", note=TYPED), 409)
    assert page.tells(ChangeErrorCode.CHECKS_TOO_OLD, "#refused")
    assert state_of(proposed_change) == ChangeState.PROPOSED


def test_declining_needs_a_reason(proposed_change: ChangeRequest, approver: User, post: Post) -> None:
    for nothing in ("", "   \n"):
        page = refused(post(approver, "decline", reason=nothing), 400)
        assert page.tells(ChangeErrorCode.DECLINE_REASON_TYPED, "#reason-error")
        assert 'aria-invalid="true" aria-describedby="reason-error"' in page.part("decide-decline")
    assert state_of(proposed_change) == ChangeState.PROPOSED
    assert post(approver, "decline", reason="Not on a Friday.").status_code == 302
    assert Review.objects.get().note == "Not on a Friday."


@pytest.mark.parametrize(
    ("verb", "field"), [("approve", "note"), ("decline", "reason"), ("comment", "text"), ("comment", "reason")]
)
def test_what_is_too_long_is_said_and_kept(
    verb: str, field: str, proposed_change: ChangeRequest, approver: User, post: Post
) -> None:
    text = "ä" * (LONGEST_TEXT + 1)
    page = refused(post(approver, verb, **{field: text}), 400)
    assert page.tells(ChangeErrorCode.TYPED_TOO_LONG, f"#{field}-error")
    assert page.figures(f"#{field}-error")[:2] == ["10,001", "10,000"]
    assert text in page.html
    assert not Comment.objects.exists()
    assert state_of(proposed_change) == ChangeState.PROPOSED


def test_a_comment_is_there_for_everybody(proposed_change: ChangeRequest, approver: User, post: Post) -> None:
    done = post(approver, "comment", text=TYPED)
    assert (done.status_code, done["Location"]) == (302, f"/changes/{proposed_change.pk}/#comments")
    assert post(approver, "comment", reason="From the other field.").status_code == 302
    assert [comment.text for comment in Comment.objects.all()] == [TYPED, "From the other field."]
    page = refused(post(approver, "comment", text=" "), 400)
    assert page.tells(ChangeErrorCode.COMMENT_MISSING, "#text-error")
    assert TYPED in page.words("comments")


def test_a_viewer_cannot_comment(proposed_change: ChangeRequest, viewer: User, post: Post) -> None:
    assert TYPED in refused(post(viewer, "comment", text=TYPED), 403).words("refused")
    assert not Comment.objects.exists()


def test_the_author_withdraws_with_a_reason(proposed_change: ChangeRequest, operator: User, post: Post) -> None:
    page = refused(post(operator, "withdraw", reason=""), 400)
    assert page.tells(ChangeErrorCode.WITHDRAW_REASON, "#withdraw-reason-error")
    assert post(operator, "withdraw", reason="A typing mistake.").status_code == 302
    assert state_of(proposed_change) == ChangeState.DRAFT
    assert AuditEvent.objects.get(action="change.withdrawn").reason == "A typing mistake."


def test_editing_leads_to_where_the_draft_is_edited(proposed_change: ChangeRequest, operator: User, post: Post) -> None:
    done = post(operator, "edit")
    assert (done.status_code, done["Location"]) == (302, f"/changes/{proposed_change.pk}/draft/what/")
    assert state_of(proposed_change) == ChangeState.DRAFT


def test_a_copy_is_a_new_draft_and_leads_there(
    operator: User, client_of: Callable[[User], Client], proposed_change: ChangeRequest
) -> None:
    ended = propose(proposed_change.cluster, operator, ChangeState.EXPIRED)
    done = client_of(operator).post(f"/changes/{ended.pk}/copy/")
    copied = ChangeRequest.objects.latest("pk")
    assert (copied.origin_id, copied.state) == (ended.pk, ChangeState.DRAFT)
    assert done["Location"] == f"/changes/{copied.pk}/draft/what/"
    page = Page(client_of(operator).get(f"/changes/{copied.pk}/").content.decode())
    assert f"copy of #{ended.pk}" in page.words("change-bar")


def test_a_draft_is_deleted_and_what_was_proposed_is_not(
    operator: User, client_of: Callable[[User], Client], proposed_change: ChangeRequest
) -> None:
    draft = propose(proposed_change.cluster, operator, ChangeState.DRAFT)
    client = client_of(operator)
    gone = client.post(f"/changes/{draft.pk}/delete/", follow=True)
    assert f"Draft #{draft.pk} was deleted." in Page(gone.content.decode()).text
    assert client.get(f"/changes/{draft.pk}/").status_code == 404
    assert refused(client.post(f"/changes/{proposed_change.pk}/delete/"), 409).has("refused")  # type: ignore[arg-type]
    assert ChangeRequest.objects.filter(pk=proposed_change.pk).exists()


def test_only_what_is_stale_is_refreshed(proposed_change: ChangeRequest, operator: User, post: Post) -> None:
    assert refused(post(operator, "refresh"), 409).refusal == WorkflowErrorCode.NOTHING_TO_REFRESH
    ChangeRequest.objects.update(state=ChangeState.STALE)
    assert post(operator, "refresh").status_code == 302


def test_a_stricter_policy_counts_for_what_is_open(proposed_change: ChangeRequest, approver: User, post: Post) -> None:
    Policy.objects.create(cluster=proposed_change.cluster, approvals_medium=2)
    assert post(approver, "approve").status_code == 302
    assert state_of(proposed_change) == ChangeState.PROPOSED


def test_forms_need_their_token(proposed_change: ChangeRequest, approver: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(approver)
    for verb in ("approve", "decline", "withdraw", "comment", "refresh", "copy", "edit", "delete"):
        where = f"/changes/{proposed_change.pk}/{verb}/"
        assert client.post(where, {"digest": proposed_change.digest, "reason": "x", "text": "x"}).status_code == 403
        assert client.get(where)["Location"] == f"/changes/{proposed_change.pk}/"
    assert state_of(proposed_change) == ChangeState.PROPOSED


def test_of_a_cluster_that_may_not_be_viewed_there_is_nothing_to_decide(
    proposed_change: ChangeRequest, make_user: Callable[..., User], post: Post
) -> None:
    una = make_user("una", Role.APPROVER, watched("other"))
    assert post(una, "approve").status_code == 404
    assert state_of(proposed_change) == ChangeState.PROPOSED


def test_an_approver_of_one_cluster_is_none_of_another(
    proposed_change: ChangeRequest, make_user: Callable[..., User], post: Post
) -> None:
    una = make_user("una", Role.APPROVER, watched("other"))
    ClusterRole.objects.create(user=una, cluster=proposed_change.cluster, role=Role.VIEWER)
    assert post(una, "approve").status_code == 403
    assert state_of(proposed_change) == ChangeState.PROPOSED


def seen_by(client_of: Callable[[User], Client], user: User, address: str = "/changes/") -> Page:
    response = client_of(user).get(address)
    assert response.status_code == 200
    return Page.read(response)


def test_the_title_says_what_waits_and_the_navigation_counts_it(
    demo: Cluster, operator: User, approver: User, client_of: Callable[[User], Client]
) -> None:
    first, second = propose(demo, operator), propose(demo, operator)
    page = seen_by(client_of, approver)
    assert figures_of(page.title) == ["2"]
    assert page.order_of(f"change-{second.pk}", f"change-{first.pk}") == [f"change-{second.pk}", f"change-{first.pk}"]
    assert page.words("waiting-count") == "2"
    assert "2 waiting for you" in page.html  # in the menu of a phone
    assert seen_by(client_of, approver, "/clusters/demo/").words("waiting-count") == "2"
    approved(first, approver)
    page = seen_by(client_of, approver)
    assert figures_of(page.title) == ["1"]
    assert not page.has(f"change-{first.pk}")


def test_nothing_waits_for_whoever_cannot_decide(
    change: ChangeRequest,
    operator: User,
    viewer: User,
    make_user: Callable[..., User],
    client_of: Callable[..., Client],
) -> None:
    both = make_user("both", Role.APPROVER)
    ChangeRequest.objects.update(contributor_ids=[operator.pk, both.pk])
    elsewhere = make_user("else", Role.APPROVER, watched("other"))
    for user in (operator, viewer, both, elsewhere):
        page = seen_by(client_of, user)
        assert page.title == "Changes: none waiting for you", user
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
    assert none.find("[data-empty=no-cluster]")


def test_a_row_says_what_where_by_whom_and_what_it_waits_for(
    demo: Cluster, operator: User, approver: User, get_page: GetPage
) -> None:
    change = propose(demo, operator, approvals_needed=2, state_since=NOW - timedelta(hours=2))
    approved(change, approver)
    cells = get_page("/changes/?show=open").cells(f"change-{change.pk}")
    assert cells[:2] == ["Proposed", f"#{change.pk} {change.title} 3 parcels"]
    assert cells[2:5] == ["demo", "olga", "1 of 2"]
    assert cells[5] == "approver: review"
    assert cells[6] == "00:03:04"


@pytest.mark.parametrize(
    ("state", "pill", "waits_for"),
    [
        (ChangeState.DRAFT, 'data-phase="draft"', "author: submit"),
        (ChangeState.STALE, 'class="status-pill" data-state="warning"', "author: refresh plan"),
        (ChangeState.APPROVED, 'data-phase="approved"', "–"),
        (ChangeState.QUEUED, 'data-phase="approved"', "in queue"),
        (ChangeState.EXECUTING, 'data-phase="executing"', "in progress"),
        (ChangeState.PAUSED, 'data-phase="executing"', "operator: resume"),
        (ChangeState.VERIFYING, 'data-phase="executing"', "verification"),
        (ChangeState.CANCELLING, 'data-phase="executing"', "in progress"),
        (ChangeState.DONE, 'data-phase="done"', "–"),
        (ChangeState.FAILED, 'class="status-pill" data-state="critical"', "–"),
        (ChangeState.DECLINED, 'data-phase="ended"', "–"),
        (ChangeState.EXPIRED, 'data-phase="ended"', "–"),
        (ChangeState.CANCELLED, 'data-phase="ended"', "–"),
    ],
)
def test_each_state_has_its_pill_its_word_and_what_it_waits_for(
    state: ChangeState, pill: str, waits_for: str, demo: Cluster, operator: User, get_page: GetPage
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
    ended = propose(other, operator, ChangeState.DECLINED, title="Drain broker 3")
    mine = propose(other, viewer, ChangeState.DRAFT, title="Move 100% of_it", why="because")
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
    assert page.figures("#changes .segments") == ["0", "0", "2", "1", "1", "3"]
    assert 'href="?author=vera&amp;show=ended&amp;sort=since"' in page.html
    assert 'value="vera"' in page.html


def test_what_the_address_asks_for_and_nobody_knows_is_said(demo: Cluster, get_page: GetPage) -> None:
    page = get_page("/changes/?show=purple&cluster=nowhere&state=x&sort=colour")
    said = page.texts(".notice")
    for asked in ("purple", "nowhere", "x"):
        assert any(told_in(each, RequestErrorCode.CHOICE_UNKNOWN) and f"“{asked}”" in each for each in said)
    assert any(told_in(each, RequestErrorCode.COLUMN_UNKNOWN) and "colour" in each for each in said)


def test_empty_lists_say_what_next(
    demo: Cluster, operator: User, viewer: User, client_of: Callable[[User], Client], get_page: GetPage
) -> None:
    page = get_page("/changes/")
    assert page.find("[data-empty=waiting]")
    assert "/changes/new/" not in page.links("main"), "a viewer may not"
    assert get_page("/changes/?show=all").find("[data-empty=all]")
    assert get_page("/changes/?show=mine").find("[data-empty=mine]")
    change = propose(demo, operator)
    assert 'href="?show=open"' in get_page("/changes/").part("changes")
    nothing = get_page("/changes/?show=all&q=nothing")
    assert nothing.find("[data-empty=filtered]")
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
    cells = get_page("/changes/?show=all").cells(f"change-{change.pk}")
    assert [figures_of(cell) for cell in cells[4:6]] == [["0", "3"], ["3"]]


def test_a_kind_that_is_not_known_is_listed_all_the_same(change: ChangeRequest, get_page: GetPage) -> None:
    ChangeRequest.objects.update(kind="of the future")
    assert get_page("/changes/?show=all").find(f"#change-{change.pk} [data-unknown-kind]")


def test_the_list_is_told_of_changes(demo: Cluster, get_page: GetPage) -> None:
    assert "key=changes" in get_page("/changes/").start_tag("live")
    assert "data-key-changes" in get_page("/").html
