"""What is done from the review page: it is done, or refused with a sentence, and nothing that was typed is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from html import escape
from typing import cast

import pytest
from django.http import HttpResponse
from django.test import Client

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.models import ChangeRequest, Comment, Policy, Review
from kafkadash.changes.written import LONGEST_TEXT
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.domain.workflow_states import State
from tests.changes.parcels import propose
from tests.factories import NOW, watched
from tests.pages.conftest import Page

pytestmark = pytest.mark.usefixtures("parcels")
TYPED = 'I looked at <b>"all"</b> of it.'


@pytest.fixture
def change(db: None, operator: User) -> ChangeRequest:
    return propose(watched("demo"), operator)


@pytest.fixture
def post(change: ChangeRequest, client_of: Callable[[User], Client]) -> Callable[..., HttpResponse]:
    """``post(user, "approve", note="fine")``; the digest is the one on the page unless another is given."""

    def send(user: User, verb: str, **typed: str) -> HttpResponse:
        form = {"digest": change.digest, **typed}
        return cast("HttpResponse", client_of(user).post(f"/changes/{change.pk}/{verb}/", form))

    return send


Post = Callable[..., HttpResponse]


def state_of(change: ChangeRequest) -> str:
    return ChangeRequest.objects.get(pk=change.pk).state


def refused(response: HttpResponse, status: int) -> Page:
    assert response.status_code == status
    return Page(response.content.decode())


def test_an_approval_is_of_the_digest_that_was_shown(change: ChangeRequest, approver: User, post: Post) -> None:
    done = post(approver, "approve", note=TYPED)
    assert (done.status_code, done["Location"]) == (302, f"/changes/{change.pk}/")
    review = Review.objects.get()
    assert (review.user, review.digest, review.note) == (approver, change.digest, TYPED)
    assert state_of(change) == State.APPROVED


def test_after_it_the_page_says_what_was_done(
    change: ChangeRequest, approver: User, client_of: Callable[[User], Client]
) -> None:
    client = client_of(approver)
    answer = client.post(f"/changes/{change.pk}/approve/", {"digest": change.digest}, follow=True)
    page = Page(answer.content.decode())
    assert f"You approved #{change.pk}." in page.text
    assert "Approved: abel" in page.words("decide-body")
    assert "abel approved it" in page.words("audit")


def test_another_digest_is_refused_and_the_note_is_kept(change: ChangeRequest, approver: User, post: Post) -> None:
    page = refused(post(approver, "approve", digest="0" * 64, note=TYPED), 409)
    assert "changed while you read it" in page.words("refused")
    assert f'value="{escape(TYPED)}"' in page.part("decide-approve")
    assert f"key=change:{change.pk}" in page.html, "the page is as live as before"
    assert f'data-address="/changes/{change.pk}/"' in page.html
    assert state_of(change) == State.PROPOSED
    assert not Review.objects.exists()


def test_what_somebody_else_decided_meanwhile_is_said_and_the_text_is_kept(
    change: ChangeRequest, approver: User, make_user: Callable[..., User], post: Post
) -> None:
    assert post(make_user("bea", Role.APPROVER), "decline", reason="No.").status_code == 302
    page = refused(post(approver, "approve", note=TYPED), 409)
    assert page.has("refused")
    assert "bea declined it" in page.words("audit")
    assert not page.has("decide-approve")
    assert TYPED in page.words("refused"), "there is no field any more, so the text stands there"


def test_own_hands_are_refused_by_the_server(change: ChangeRequest, operator: User, post: Post) -> None:
    ClusterRole.objects.create(user=operator, role=Role.APPROVER)
    page = refused(post(operator, "approve", note=TYPED), 409)
    assert TYPED in page.words("refused")
    assert state_of(change) == State.PROPOSED


def test_whoever_lost_the_role_is_told_and_keeps_his_text(change: ChangeRequest, approver: User, post: Post) -> None:
    ClusterRole.objects.filter(user=approver).update(role=Role.VIEWER)
    page = refused(post(approver, "approve", note=TYPED), 403)
    assert "On demo, this needs the role approver." in page.words("refused")
    assert TYPED in page.words("refused")
    assert page.title.startswith(f"#{change.pk} ")
    assert state_of(change) == State.PROPOSED


def test_a_read_only_cluster_refuses_approvals_and_lets_decline(
    change: ChangeRequest, approver: User, post: Post
) -> None:
    Cluster.objects.update(read_only=True)
    assert "demo is read-only" in refused(post(approver, "approve", note=TYPED), 403).words("refused")
    assert post(approver, "decline", reason="Read-only.").status_code == 302
    assert state_of(change) == State.DECLINED


def test_on_a_read_only_cluster_one_withdraws_and_deletes_all_the_same(
    change: ChangeRequest, operator: User, post: Post, client_of: Callable[[User], Client]
) -> None:
    draft = propose(change.cluster, operator, State.DRAFT)
    Cluster.objects.update(read_only=True)
    client = client_of(operator)
    assert Page(client.get(f"/changes/{change.pk}/").content.decode()).has("withdraw-form")
    assert post(operator, "withdraw", reason="Nothing is changed there now.").status_code == 302
    assert state_of(change) == State.DRAFT
    assert "Delete the draft" in Page(client.get(f"/changes/{draft.pk}/").content.decode()).words("decide")
    assert client.post(f"/changes/{draft.pk}/delete/").status_code == 302
    assert not ChangeRequest.objects.filter(pk=draft.pk).exists()
    for verb in ("refresh", "edit", "copy"):
        assert "demo is read-only" in refused(post(operator, verb, reason="x"), 403).words("refused")


@pytest.mark.parametrize("verb", ["approve", "decline"])
def test_the_same_plan_proposed_again_is_another_proposal(
    verb: str, change: ChangeRequest, approver: User, operator: User, post: Post, client_of: Callable[[User], Client]
) -> None:
    seen = Page(client_of(approver).get(f"/changes/{change.pk}/").content.decode())
    assert f'name="round" value="{change.round}"' in seen.part(f"decide-{verb}")
    assert post(operator, "withdraw", reason="A limit is wrong.").status_code == 302
    ChangeRequest.objects.update(state=State.PROPOSED, round=change.round + 1, why="Another reason.")
    page = refused(post(approver, verb, round=str(change.round), note=TYPED, reason=TYPED), 409)
    assert "was proposed anew while you read it" in page.words("refused")
    assert state_of(change) == State.PROPOSED
    assert post(approver, verb, round=str(change.round + 1), reason=TYPED).status_code == 302


def test_old_facts_refuse_an_approval(change: ChangeRequest, approver: User, post: Post) -> None:
    ChangeRequest.objects.update(checked_at=NOW - timedelta(minutes=5))
    page = refused(post(approver, "approve", note=TYPED), 409)
    assert "Approving needs checks on data younger than 2 min" in page.words("refused")
    assert state_of(change) == State.PROPOSED


def test_declining_needs_a_reason(change: ChangeRequest, approver: User, post: Post) -> None:
    for nothing in ("", "   \n"):
        page = refused(post(approver, "decline", reason=nothing), 400)
        assert "declining needs a reason" in page.words("reason-error")
        assert 'aria-invalid="true" aria-describedby="reason-error"' in page.part("decide-decline")
    assert state_of(change) == State.PROPOSED
    assert post(approver, "decline", reason="Not on a Friday.").status_code == 302
    assert Review.objects.get().note == "Not on a Friday."


@pytest.mark.parametrize(
    ("verb", "field"), [("approve", "note"), ("decline", "reason"), ("comment", "text"), ("comment", "reason")]
)
def test_what_is_too_long_is_said_and_kept(
    verb: str, field: str, change: ChangeRequest, approver: User, post: Post
) -> None:
    text = "ä" * (LONGEST_TEXT + 1)
    page = refused(post(approver, verb, **{field: text}), 400)
    assert "This has 10,001 characters; 10,000 is the most." in page.words(f"{field}-error")
    assert text in page.html
    assert not Comment.objects.exists()
    assert state_of(change) == State.PROPOSED


def test_a_comment_is_there_for_everybody(change: ChangeRequest, approver: User, post: Post) -> None:
    done = post(approver, "comment", text=TYPED)
    assert (done.status_code, done["Location"]) == (302, f"/changes/{change.pk}/#comments")
    assert post(approver, "comment", reason="From the other field.").status_code == 302
    assert [comment.text for comment in Comment.objects.all()] == [TYPED, "From the other field."]
    page = refused(post(approver, "comment", text=" "), 400)
    assert "There is nothing in it yet" in page.words("text-error")
    assert TYPED in page.words("comments")


def test_a_viewer_cannot_comment(change: ChangeRequest, viewer: User, post: Post) -> None:
    assert TYPED in refused(post(viewer, "comment", text=TYPED), 403).words("refused")
    assert not Comment.objects.exists()


def test_the_author_withdraws_with_a_reason(change: ChangeRequest, operator: User, post: Post) -> None:
    assert "Say why it is withdrawn" in refused(post(operator, "withdraw", reason=""), 400).words(
        "withdraw-reason-error"
    )
    assert post(operator, "withdraw", reason="A typing mistake.").status_code == 302
    assert state_of(change) == State.DRAFT
    assert AuditEvent.objects.get(action="change.withdrawn").reason == "A typing mistake."


def test_editing_leads_to_where_the_draft_is_edited(change: ChangeRequest, operator: User, post: Post) -> None:
    done = post(operator, "edit")
    assert (done.status_code, done["Location"]) == (302, f"/changes/{change.pk}/draft/what/")
    assert state_of(change) == State.DRAFT


def test_a_copy_is_a_new_draft_and_leads_there(
    operator: User, client_of: Callable[[User], Client], change: ChangeRequest
) -> None:
    ended = propose(change.cluster, operator, State.EXPIRED)
    done = client_of(operator).post(f"/changes/{ended.pk}/copy/")
    copied = ChangeRequest.objects.latest("pk")
    assert (copied.origin_id, copied.state) == (ended.pk, State.DRAFT)
    assert done["Location"] == f"/changes/{copied.pk}/draft/what/"
    page = Page(client_of(operator).get(f"/changes/{copied.pk}/").content.decode())
    assert f"copy of #{ended.pk}" in page.words("change-bar")


def test_a_draft_is_deleted_and_what_was_proposed_is_not(
    operator: User, client_of: Callable[[User], Client], change: ChangeRequest
) -> None:
    draft = propose(change.cluster, operator, State.DRAFT)
    client = client_of(operator)
    gone = client.post(f"/changes/{draft.pk}/delete/", follow=True)
    assert f"The draft #{draft.pk} is deleted." in Page(gone.content.decode()).text
    assert client.get(f"/changes/{draft.pk}/").status_code == 404
    assert refused(client.post(f"/changes/{change.pk}/delete/"), 409).has("refused")  # type: ignore[arg-type]
    assert ChangeRequest.objects.filter(pk=change.pk).exists()


def test_only_what_is_stale_is_refreshed(change: ChangeRequest, operator: User, post: Post) -> None:
    assert "there is nothing to refresh" in refused(post(operator, "refresh"), 409).words("refused")
    ChangeRequest.objects.update(state=State.STALE)
    assert post(operator, "refresh").status_code == 302


def test_a_stricter_policy_counts_for_what_is_open(change: ChangeRequest, approver: User, post: Post) -> None:
    Policy.objects.create(cluster=change.cluster, approvals_medium=2)
    assert post(approver, "approve").status_code == 302
    assert state_of(change) == State.PROPOSED


def test_forms_need_their_token(change: ChangeRequest, approver: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(approver)
    for verb in ("approve", "decline", "withdraw", "comment", "refresh", "copy", "edit", "delete"):
        where = f"/changes/{change.pk}/{verb}/"
        assert client.post(where, {"digest": change.digest, "reason": "x", "text": "x"}).status_code == 403
        assert client.get(where)["Location"] == f"/changes/{change.pk}/"
    assert state_of(change) == State.PROPOSED


def test_of_a_cluster_that_may_not_be_viewed_there_is_nothing_to_decide(
    change: ChangeRequest, make_user: Callable[..., User], post: Post
) -> None:
    una = make_user("una", Role.APPROVER, watched("other"))
    assert post(una, "approve").status_code == 404
    assert state_of(change) == State.PROPOSED


def test_an_approver_of_one_cluster_is_none_of_another(
    change: ChangeRequest, make_user: Callable[..., User], post: Post
) -> None:
    una = make_user("una", Role.APPROVER, watched("other"))
    ClusterRole.objects.create(user=una, cluster=change.cluster, role=Role.VIEWER)
    assert post(una, "approve").status_code == 403
    assert state_of(change) == State.PROPOSED
