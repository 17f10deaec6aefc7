"""A draft is on the server from its first step; two people who edit it at once do not lose each other's work."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import transaction

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import drafting, services
from kafkadash.changes.kinds import UnknownKind
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.refusals import Changed, EditedMeanwhile, Refused
from kafkadash.clusters.models import Cluster, ClusterRole
from kafkadash.domain.workflow_states import State
from tests.changes.worlds import ROWS, draft, now_of, planned, proposed

pytestmark = pytest.mark.usefixtures("world")


def test_it_begins_with_its_author(cluster: Cluster, alice: User) -> None:
    change = draft(cluster, alice, not_before="2026-11-24T22:00:00Z", not_after="2026-11-25T04:00:00Z")
    assert (change.state, change.version, change.round, change.digest) == (State.DRAFT, 1, 0, "")
    assert (change.author_name, change.hands) == ("alice", [alice.pk])
    assert change.not_before == datetime(2026, 11, 24, 22, tzinfo=UTC)
    event = AuditEvent.objects.get()
    assert (event.action, event.object_id, event.cluster) == ("change.created", str(change.pk), "orders-eu")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"not_before": "tonight"}, "'tonight' is no time. Write it as 2026-11-24T22:00:00Z"),
        ({"not_before": "2026-11-24T22:00:00Z", "not_after": "2026-11-24T21:00:00Z"}, "ends before it begins"),
    ],
)
def test_a_window_that_is_none_is_refused(
    cluster: Cluster, alice: User, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(Refused, match=sentence):
        draft(cluster, alice, **options)


def test_it_needs_the_role_and_a_cluster_that_may_be_changed(cluster: Cluster, alice: User, bob: User) -> None:
    with pytest.raises(Refused, match="To propose changes on orders-eu you need the role operator"):
        draft(cluster, bob)
    Cluster.objects.update(read_only=True)
    with pytest.raises(Refused, match="orders-eu is read-only"):
        draft(cluster, alice)
    assert not ChangeRequest.objects.exists()


def test_a_kind_that_nobody_knows_is_refused(cluster: Cluster, alice: User) -> None:
    with pytest.raises(UnknownKind):
        drafting.create_draft(cluster, "nonsense", alice, title="", input={}, options={})


def test_two_people_edit_one_draft(cluster: Cluster, alice: User, ann: User) -> None:
    opened = draft(cluster, alice)
    drafting.edit_draft(opened, ann, opened.version, input={"brokers": [3, 4]})
    with pytest.raises(EditedMeanwhile, match=rf"ann edited #{opened.pk} on .* UTC, while you had it open") as refused:
        drafting.edit_draft(opened, alice, opened.version, input={"brokers": [5]})
    assert "What you entered is not stored" in str(refused.value)
    after = now_of(opened)
    assert (after.input, after.version, after.hands) == ({"brokers": [3, 4]}, 2, sorted([alice.pk, ann.pk]))


def test_two_windows_of_one_person(cluster: Cluster, alice: User) -> None:
    opened = draft(cluster, alice)
    drafting.edit_draft(opened, alice, opened.version, title="Drain broker 3 at night")
    with pytest.raises(EditedMeanwhile, match=r"You saved .* in another window"):
        drafting.edit_draft(opened, alice, opened.version, title="Drain")


def test_what_is_the_same_is_no_edit(cluster: Cluster, alice: User, ann: User) -> None:
    change = draft(cluster, alice)
    after = drafting.edit_draft(change, ann, 1, title=change.title, input=change.input, options=change.options)
    assert (after.version, after.hands) == (1, [alice.pk])
    assert not AuditEvent.objects.filter(action="change.edited").exists()


def test_other_input_makes_the_plan_void_and_other_options_its_digest(cluster: Cluster, alice: User) -> None:
    change = planned(draft(cluster, alice))
    bounded = drafting.edit_draft(change, alice, 1, options={"bounds": [20, 80]})
    assert bounded.artifact_id == change.artifact_id
    assert bounded.digest not in ("", change.digest)
    other = drafting.edit_draft(bounded, alice, 2, input={"brokers": [4]})
    assert (other.artifact_id, other.digest, other.topology_at, other.checks) == (None, "", None, [])


def test_an_edit_is_in_the_audit_with_before_and_after(cluster: Cluster, alice: User) -> None:
    drafting.edit_draft(draft(cluster, alice), alice, 1, title="Drain it", input={"json": "x" * 5000})
    event = AuditEvent.objects.get(action="change.edited")
    assert event.before == {"title": "Drain broker 3", "input": {"brokers": [3]}}
    assert event.after == {"title": "Drain it", "input": "5,012 characters"}


def test_a_plan_of_a_draft_that_was_edited_meanwhile_is_dropped(cluster: Cluster, alice: User) -> None:
    change = draft(cluster, alice)
    drafting.edit_draft(change, alice, 1, input={"brokers": [4]})
    with pytest.raises(EditedMeanwhile, match=f"#{change.pk} was edited by alice while it was planned"):
        planned(change)
    assert now_of(change).artifact_id is None


def test_a_plan_of_what_is_no_draft_any_more_is_dropped(cluster: Cluster, alice: User) -> None:
    change = proposed(cluster, alice)
    with pytest.raises(Changed, match=f"#{change.pk} is no draft any more"):
        planned(change, ROWS[:1])
    assert now_of(change).digest == change.digest


def test_what_is_proposed_is_not_edited_in_place(cluster: Cluster, alice: User) -> None:
    change = proposed(cluster, alice)
    with pytest.raises(Changed, match=rf"#{change.pk} is no draft any more.*alice submitted it"):
        drafting.edit_draft(change, alice, change.version, title="Drain it")


def test_a_role_taken_away_meanwhile_counts(cluster: Cluster, alice: User) -> None:
    change = draft(cluster, alice)
    ClusterRole.objects.filter(user=alice).delete()
    with pytest.raises(Refused, match="you need the role operator, which you do not have now"):
        drafting.edit_draft(change, alice, 1, title="Drain it")


def test_a_draft_is_deleted_and_the_audit_remembers(cluster: Cluster, alice: User) -> None:
    change = draft(cluster, alice)
    drafting.delete(change, alice)
    assert not ChangeRequest.objects.exists()
    event = AuditEvent.objects.get(action="change.deleted")
    assert (event.before or {})["title"] == "Drain broker 3"
    with pytest.raises(Changed, match=f"#{change.pk} was deleted while you read it. alice deleted it on"):
        drafting.edit_draft(change, alice, 1, title="Drain it")


def test_what_was_proposed_once_is_kept(cluster: Cluster, alice: User) -> None:
    change = proposed(cluster, alice)
    with pytest.raises(Changed, match="Only a draft can be deleted"):
        drafting.delete(change, alice)
    services.withdraw(change, alice, "later")
    with pytest.raises(Refused, match=f"#{change.pk} was proposed once, so what was said about it is kept"):
        drafting.delete(change, alice)


def test_a_copy_is_a_draft_without_plan_that_its_first_author_cannot_approve_either(
    cluster: Cluster, ann: User, alice: User, bob: User
) -> None:
    original = services.decline(proposed(cluster, ann), bob, proposed_digest(cluster), "Not now.")
    copy = drafting.copy(original, alice)
    assert (copy.state, copy.title, copy.why, copy.input) == (State.DRAFT, original.title, original.why, original.input)
    assert (copy.artifact_id, copy.digest, copy.round, copy.author_name) == (None, "", 0, "alice")
    assert (copy.origin_id, copy.origin_word) == (original.pk, "copy")
    copy = planned(copy)
    copy = services.submit(copy, alice, why="Now.", version=copy.version)
    with pytest.raises(Refused, match="You wrote, edited or refreshed"):
        services.approve(copy, ann, copy.digest)


def proposed_digest(cluster: Cluster) -> str:
    return ChangeRequest.objects.get(cluster=cluster).digest


def test_a_comment_says_something(cluster: Cluster, alice: User, bob: User, viewer: User) -> None:
    change = draft(cluster, alice)
    stored = services.comment(change, bob, "  <b>Disk</b> of 6?\n")
    assert (stored.user_name, stored.text) == ("bob", "<b>Disk</b> of 6?")
    for text in ("", " \n"):
        with pytest.raises(Refused, match="There is nothing in it yet"):
            services.comment(change, bob, text)
    with pytest.raises(Refused, match="The comment has 10,001 characters; 10,000 is the most"):
        services.comment(change, bob, "x" * 10_001)
    with pytest.raises(Refused, match="To comment on changes on orders-eu you need the role"):
        services.comment(change, viewer, "me too")


def test_what_people_did_outlives_their_accounts(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    services.comment(change, bob, "fine")
    services.approve(change, bob, change.digest)
    with transaction.atomic():
        bob.delete()
        alice.delete()
    after = now_of(change)
    assert (after.state, after.author, after.author_name) == (State.APPROVED, None, "alice")
    assert after.reviews.get().user_name == "bob"
    assert after.comments.get().user_name == "bob"
