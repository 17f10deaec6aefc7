"""A draft is on the server from its first step; two people who edit it at once do not lose each other's work.

A second person approves exactly what was proposed; nobody approves what he wrote, edited or refreshed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.db.models.functions import Now

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import services
from kafkadash.changes import services as drafting
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode, ChangeRefused, EditedMeanwhile
from kafkadash.changes.kinds import UnknownChangeKind
from kafkadash.changes.models import ChangeRequest, Policy, Review, ReviewVerdict, VoidCode
from kafkadash.changes.recheck import recheck
from kafkadash.changes.state_machine import ChangeState, WorkflowErrorCode
from kafkadash.changes.trail import build_entries
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.clusters.services import give_role
from kafkadash.core.messages import message_text
from kafkadash.monitoring.models import CollectorRun
from tests.changes.worlds import DANGEROUS, MOVED, ROWS, World, draft, now_of, planned, proposed, refreshed
from tests.raised_codes import raises_code

pytestmark = pytest.mark.usefixtures("world")


def test_it_begins_with_its_author(cluster: Cluster, alice: User) -> None:
    change = draft(cluster, alice, not_before="2026-11-24T22:00:00Z", not_after="2026-11-25T04:00:00Z")
    assert (change.state, change.version, change.round, change.digest) == (ChangeState.DRAFT, 1, 0, "")
    assert (change.author_name, change.contributor_ids) == ("alice", [alice.pk])
    assert change.not_before == datetime(2026, 11, 24, 22, tzinfo=UTC)
    event = AuditEvent.objects.get()
    assert (event.action, event.object_id, event.cluster) == ("change.created", str(change.pk), "orders-eu")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"not_before": "tonight"}, "'tonight' is not a valid time. Use the format 2026-11-24T22:00:00Z"),
        ({"not_before": "2026-11-24T22:00:00Z", "not_after": "2026-11-24T21:00:00Z"}, "ends before it starts"),
    ],
)
def test_a_window_that_is_none_is_refused(
    cluster: Cluster, alice: User, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ChangeRefused, match=sentence):
        draft(cluster, alice, **options)


def test_a_title_that_does_not_fit__is_refused(cluster: Cluster, alice: User) -> None:
    with pytest.raises(ChangeRefused) as refused:
        drafting.create_draft(cluster, "test", alice, title="x" * 201, input={}, options={})
    assert refused.value.code == ChangeErrorCode.TITLE_TOO_LONG


def test_a_cluster_that_was_removed_meanwhile__gets_none(cluster: Cluster, alice: User) -> None:
    Cluster.objects.all().delete()
    with pytest.raises(ChangeRefused) as refused:
        draft(cluster, alice)
    assert refused.value.code == ChangeErrorCode.CLUSTER_REMOVED


def test_it_needs_the_role_and_a_cluster_that_may_be_changed(cluster: Cluster, alice: User, bob: User) -> None:
    with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, cluster="orders-eu", roles="operator"):
        draft(cluster, bob)
    Cluster.objects.update(read_only=True)
    with raises_code(ClusterErrorCode.READ_ONLY, ChangeRefused, cluster="orders-eu"):
        draft(cluster, alice)
    assert not ChangeRequest.objects.exists()


def test_a_kind_that_nobody_knows_is_refused(cluster: Cluster, alice: User) -> None:
    with pytest.raises(UnknownChangeKind):
        drafting.create_draft(cluster, "nonsense", alice, title="", input={}, options={})


def test_two_people_edit_one_draft(cluster: Cluster, alice: User, ann: User) -> None:
    opened = draft(cluster, alice)
    drafting.edit_draft(opened, ann, opened.version, input={"brokers": [3, 4]})
    with raises_code(ChangeErrorCode.EDITED_MEANWHILE, EditedMeanwhile, who="ann", number=opened.pk):
        drafting.edit_draft(opened, alice, opened.version, input={"brokers": [5]})
    after = now_of(opened)
    assert (after.input, after.version, after.contributor_ids) == ({"brokers": [3, 4]}, 2, sorted([alice.pk, ann.pk]))


def test_two_windows_of_one_person(cluster: Cluster, alice: User) -> None:
    opened = draft(cluster, alice)
    drafting.edit_draft(opened, alice, opened.version, title="Drain broker 3 at night")
    with raises_code(ChangeErrorCode.SAVED_IN_ANOTHER_WINDOW, EditedMeanwhile):
        drafting.edit_draft(opened, alice, opened.version, title="Drain")


def test_what_is_the_same_is_no_edit(cluster: Cluster, alice: User, ann: User) -> None:
    change = draft(cluster, alice)
    after = drafting.edit_draft(change, ann, 1, title=change.title, input=change.input, options=change.options)
    assert (after.version, after.contributor_ids) == (1, [alice.pk])
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
    with raises_code(ChangeErrorCode.EDITED_WHILE_PLANNED, EditedMeanwhile, number=change.pk, who="alice"):
        planned(change)
    assert now_of(change).artifact_id is None


def test_a_plan_of_what_is_no_draft_any_more_is_dropped(cluster: Cluster, alice: User) -> None:
    change = proposed(cluster, alice)
    with raises_code(ChangeErrorCode.PLAN_DROPPED, ChangedMeanwhile, number=change.pk):
        planned(change, ROWS[:1])
    assert now_of(change).digest == change.digest


def test_what_is_proposed_is_not_edited_in_place(cluster: Cluster, alice: User) -> None:
    change = proposed(cluster, alice)
    with raises_code(ChangeErrorCode.NO_DRAFT_ANY_MORE, ChangedMeanwhile, number=change.pk, match="alice"):
        drafting.edit_draft(change, alice, change.version, title="Drain it")


def test_a_role_of_the_author_taken_away_meanwhile_counts(cluster: Cluster, alice: User) -> None:
    change = draft(cluster, alice)
    ClusterRole.objects.filter(user=alice).delete()
    with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, roles="operator"):
        drafting.edit_draft(change, alice, 1, title="Drain it")


def test_a_draft_is_deleted_and_the_audit_remembers(cluster: Cluster, alice: User) -> None:
    change = draft(cluster, alice)
    drafting.delete(change, alice)
    assert not ChangeRequest.objects.exists()
    event = AuditEvent.objects.get(action="change.deleted")
    assert (event.before or {})["title"] == "Drain broker 3"
    with raises_code(ChangeErrorCode.DELETED_MEANWHILE, ChangedMeanwhile, number=change.pk, match="alice"):
        drafting.edit_draft(change, alice, 1, title="Drain it")


def test_what_was_proposed_once_is_kept(cluster: Cluster, alice: User) -> None:
    change = proposed(cluster, alice)
    with raises_code(ChangeErrorCode.ONLY_A_DRAFT_IS_DELETED, ChangedMeanwhile):
        drafting.delete(change, alice)
    services.withdraw(change, alice, "later")
    with raises_code(ChangeErrorCode.KEPT_ONCE_PROPOSED, ChangeRefused, number=change.pk):
        drafting.delete(change, alice)


def test_a_copy_is_a_draft_without_plan_that_its_first_author_cannot_approve_either(
    cluster: Cluster, ann: User, alice: User, bob: User
) -> None:
    original = services.decline(proposed(cluster, ann), bob, proposed_digest(cluster), "Not now.")
    copy = drafting.copy(original, alice)
    assert (copy.state, copy.title, copy.why, copy.input) == (
        ChangeState.DRAFT,
        original.title,
        original.why,
        original.input,
    )
    assert (copy.artifact_id, copy.digest, copy.round, copy.author_name) == (None, "", 0, "alice")
    assert (copy.origin_id, copy.origin_word) == (original.pk, "copy")
    copy = planned(copy)
    copy = services.submit(copy, alice, why="Now.", version=copy.version)
    with pytest.raises(ChangeRefused, match="You wrote, edited or refreshed"):
        services.approve(copy, ann, copy.digest)


def proposed_digest(cluster: Cluster) -> str:
    return ChangeRequest.objects.get(cluster=cluster).digest


def test_a_comment_says_something(cluster: Cluster, alice: User, bob: User, viewer: User) -> None:
    change = draft(cluster, alice)
    stored = services.comment(change, bob, "  <b>Disk</b> of 6?\n")
    assert (stored.user_name, stored.text) == ("bob", "<b>Disk</b> of 6?")
    for text in ("", " \n"):
        with raises_code(ChangeErrorCode.COMMENT_MISSING, ChangeRefused):
            services.comment(change, bob, text)
    with raises_code(ChangeErrorCode.TEXT_TOO_LONG, ChangeRefused, length=10001, most=10000):
        services.comment(change, bob, "x" * 10_001)
    with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, cluster="orders-eu"):
        services.comment(change, viewer, "me too")


def test_what_people_did_outlives_their_accounts(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    services.comment(change, bob, "fine")
    services.approve(change, bob, change.digest)
    with transaction.atomic():
        bob.delete()
        alice.delete()
    after = now_of(change)
    assert (after.state, after.author, after.author_name) == (ChangeState.APPROVED, None, "alice")
    assert after.reviews.get().user_name == "bob"
    assert after.comments.get().user_name == "bob"


def test_a_second_person_approves_exactly_this(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    after = services.approve(change, bob, change.digest, "looks right")
    assert (after.state, after.digest, after.round) == (ChangeState.APPROVED, change.digest, 1)
    review = Review.objects.get()
    assert (review.user_name, review.verdict, review.digest, review.round, review.note) == (
        "bob",
        ReviewVerdict.APPROVED,
        change.digest,
        1,
        "looks right",
    )
    event = AuditEvent.objects.get(action="change.approved")
    assert (event.actor_name, event.object_type, event.object_id, event.cluster, event.reason) == (
        "bob",
        "changerequest",
        str(change.pk),
        "orders-eu",
        "looks right",
    )
    assert event.before == {"state": "proposed", "digest": change.digest, "round": 1}
    assert event.after is not None
    assert event.after["state"] == "approved"
    assert event.after["approver"] == "bob"


def test_an_approval_is_valid_as_long_as_the_policy_says_from_now(cluster: Cluster, alice: User, bob: User) -> None:
    Policy.objects.create(cluster=cluster, valid_hours=3)
    change = proposed(cluster, alice)
    before = datetime.now(UTC)
    after = services.approve(change, bob, change.digest)
    assert after.expires_at is not None
    assert before + timedelta(hours=3) <= after.expires_at <= datetime.now(UTC) + timedelta(hours=3)


def test_the_author_cannot(cluster: Cluster, ann: User) -> None:
    change = proposed(cluster, ann)
    with pytest.raises(
        ChangeRefused, match=f"You wrote, edited or refreshed #{change.pk}, so another person has to approve"
    ):
        services.approve(change, ann, change.digest)
    assert now_of(change).state == ChangeState.PROPOSED
    assert not Review.objects.exists()


def test_who_edited_the_draft_cannot(cluster: Cluster, alice: User, ann: User) -> None:
    change = proposed(cluster, alice)
    change = services.edit(change, ann, "a smaller throttle")
    change = drafting.edit_draft(change, ann, change.version, options={"bounds": [1, 2]})
    change = services.submit(change, alice, why="Its disk fails.", version=change.version)
    with pytest.raises(ChangeRefused, match="You wrote, edited or refreshed"):
        services.approve(change, ann, change.digest)


def test_who_only_took_it_back_has_a_hand_in_nothing(cluster: Cluster, alice: User, ann: User) -> None:
    change = services.edit(proposed(cluster, alice), ann)
    change = services.submit(change, alice, why="Its disk fails.", version=change.version)
    assert services.approve(change, ann, change.digest).state == ChangeState.APPROVED


def test_who_submitted_it_cannot(cluster: Cluster, alice: User, ann: User) -> None:
    change = services.withdraw(proposed(cluster, alice), alice, "later")
    change = services.submit(change, ann, why="Now.", version=change.version)
    with pytest.raises(ChangeRefused, match="You wrote, edited or refreshed"):
        services.approve(change, ann, change.digest)


def test_who_refreshed_it_cannot(cluster: Cluster, alice: User, ann: User, bob: User, world: World) -> None:
    change = proposed(cluster, alice)
    world.checks = (MOVED,)
    recheck(cluster.pk, datetime.now(UTC))
    change = refreshed(change, ann)
    with pytest.raises(ChangeRefused, match="You wrote, edited or refreshed"):
        services.approve(change, ann, change.digest)
    assert services.approve(change, bob, change.digest).state == ChangeState.APPROVED


def test_whoever_has_the_role_from_the_author_does_not_count(
    cluster: Cluster, admin: User, stranger: User, bob: User
) -> None:
    """The author could have given it to an account of his own."""
    ClusterRole.objects.create(user=admin, role=Role.OPERATOR)
    give_role(admin, stranger, Role.APPROVER, cluster=cluster)
    change = proposed(cluster, admin)
    with pytest.raises(ChangeRefused) as caught:
        services.approve(change, stranger, change.digest)
    at = ClusterRole.objects.get(user=stranger).counts_from
    assert str(caught.value) == message_text(
        ChangeErrorCode.ROLE_COUNTS_LATER, cluster="orders-eu", at=f"{at:%-d %b at %H:%M} UTC"
    )
    ClusterRole.objects.update(counts_from=Now())
    with pytest.raises(ChangeRefused) as caught:
        services.approve(change, stranger, change.digest)
    assert str(caught.value) == message_text(ChangeErrorCode.ROLE_FROM_AUTHOR, name=f"#{change.pk}")
    assert services.approve(change, bob, change.digest).state == ChangeState.APPROVED


def test_one_s_own_is_approved_where_the_policy_allows_it(cluster: Cluster, ann: User) -> None:
    Policy.objects.create(cluster=cluster, self_approval=True)
    change = proposed(cluster, ann)
    after = services.approve(change, ann, change.digest)
    assert (after.state, after.self_approved_name) == (ChangeState.APPROVED, "ann")
    (entry,) = build_entries(AuditEvent.objects.filter(action="change.approved"))
    assert entry.trouble == "critical"
    assert services.withdraw(after, ann, "Not like that.").self_approved_name == ""


def test_a_plan_that_changed_while_the_page_was_open_is_not_approved(
    cluster: Cluster, alice: User, bob: User, world: World
) -> None:
    seen = proposed(cluster, alice)
    world.checks = (MOVED,)
    recheck(cluster.pk, datetime.now(UTC))
    refreshed(seen, alice)
    with raises_code(WorkflowErrorCode.OTHER_CONTENT, ChangedMeanwhile, name=f"#{seen.pk}", match="alice"):
        services.approve(seen, bob, seen.digest)
    assert now_of(seen).state == ChangeState.PROPOSED
    assert not Review.objects.exists()


def test_one_that_was_declined_meanwhile_says_so(cluster: Cluster, alice: User, bob: User, bea: User) -> None:
    change = proposed(cluster, alice)
    services.decline(change, bea, change.digest, "Not before the sale.")
    with raises_code(WorkflowErrorCode.FINAL, ChangedMeanwhile, name=f"#{change.pk}", state="declined", match="bea"):
        services.approve(change, bob, change.digest)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.AUDITOR, Role.ADMIN])
def test_it_needs_the_role(cluster: Cluster, alice: User, stranger: User, role: Role) -> None:
    ClusterRole.objects.create(user=stranger, role=role)
    change = proposed(cluster, alice)
    with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, cluster="orders-eu", roles="approver"):
        services.approve(change, stranger, change.digest)


def test_a_role_of_the_approver_that_ended_meanwhile_counts(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    ClusterRole.objects.filter(user=bob).update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, roles="approver"):
        services.approve(change, bob, change.digest)


def test_a_cluster_made_read_only_meanwhile_counts(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    Cluster.objects.update(read_only=True)
    with raises_code(ClusterErrorCode.READ_ONLY, ChangeRefused, cluster="orders-eu"):
        services.approve(change, bob, change.digest)
    assert services.withdraw(change, alice, "not now").state == ChangeState.DRAFT, "what only ends it is possible"


def test_a_cluster_removed_meanwhile_counts(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    Cluster.objects.update(removed_at=datetime.now(UTC))
    with raises_code(ChangeErrorCode.ITS_CLUSTER_REMOVED, ChangeRefused):
        services.approve(change, bob, change.digest)


def test_facts_that_grew_old_are_nothing_to_approve_on(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    CollectorRun.objects.update(succeeded_at=datetime.now(UTC) - timedelta(minutes=10))
    with raises_code(ChangeErrorCode.FACTS_TOO_OLD, ChangeRefused, cluster="orders-eu", match="10 min"):
        services.approve(change, bob, change.digest)


def test_its_time_being_over_counts_before_the_tick_says_so(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    type(change).objects.update(expires_at=datetime.now(UTC))
    with raises_code(WorkflowErrorCode.TIME_OVER, ChangedMeanwhile, name=f"#{change.pk}"):
        services.approve(change, bob, change.digest)


def test_a_dangerous_one_takes_two(cluster: Cluster, alice: User, bob: User, bea: User, world: World) -> None:
    world.risk = DANGEROUS
    change = proposed(cluster, alice)
    assert change.approvals_needed == 2
    assert services.approve(change, bob, change.digest).state == ChangeState.PROPOSED
    with pytest.raises(ChangeRefused, match=f"You have already approved #{change.pk}"):
        services.approve(change, bob, change.digest)
    assert services.approve(change, bea, change.digest).state == ChangeState.APPROVED
    assert AuditEvent.objects.filter(action="change.approved").count() == 2


def test_a_policy_made_stricter_counts_at_once(cluster: Cluster, alice: User, bob: User, bea: User) -> None:
    change = proposed(cluster, alice)
    Policy.objects.create(cluster=cluster, approvals_low=2, approvals_medium=2)
    assert services.approve(change, bob, change.digest).state == ChangeState.PROPOSED
    assert services.approve(change, bea, change.digest).state == ChangeState.APPROVED


def test_a_policy_made_milder_does_not(cluster: Cluster, alice: User, bob: User) -> None:
    policy = Policy.objects.create(cluster=cluster, approvals_low=2, approvals_medium=2)
    change = proposed(cluster, alice)
    policy.approvals_low = 1
    policy.save()
    after = services.approve(change, bob, change.digest)
    assert (after.state, after.approvals_needed) == (ChangeState.PROPOSED, 2)


def test_the_approval_of_an_account_that_is_gone_no_longer_counts(
    cluster: Cluster, alice: User, bob: User, bea: User, ann: User, world: World
) -> None:
    world.risk = DANGEROUS
    change = proposed(cluster, alice)
    services.approve(change, bob, change.digest)
    bob.delete()
    assert services.approve(change, bea, change.digest).state == ChangeState.PROPOSED
    assert services.approve(change, ann, change.digest).state == ChangeState.APPROVED
    assert Review.objects.order_by("at")[0].user_name == "bob", "the history stays"


@pytest.mark.parametrize("reason", ["", "   ", "\n\t"])
def test_declining_needs_a_reason(cluster: Cluster, alice: User, bob: User, reason: str) -> None:
    change = proposed(cluster, alice)
    with raises_code(WorkflowErrorCode.DECLINE_REASON, ChangeRefused):
        services.decline(change, bob, change.digest, reason)
    assert now_of(change).state == ChangeState.PROPOSED


def test_declined_is_final(cluster: Cluster, alice: User, bob: User, bea: User) -> None:
    change = proposed(cluster, alice)
    assert services.decline(change, bob, change.digest, "Not before the sale.").state == ChangeState.DECLINED
    event = AuditEvent.objects.get(action="change.declined")
    assert (event.reason, (event.after or {})["approver"]) == ("Not before the sale.", "bob")
    now = now_of(change)
    tries: tuple[Callable[[], object], ...] = (
        lambda: services.approve(now, bea, change.digest),
        lambda: services.withdraw(now, alice, "again"),
        lambda: services.edit(now, alice),
        lambda: services.submit(now, alice, why="again", version=now.version),
    )
    for refused in tries:
        with pytest.raises(ChangedMeanwhile):
            refused()
    assert now_of(change).state == ChangeState.DECLINED


def test_who_approved_may_still_decline(cluster: Cluster, alice: User, bob: User, world: World) -> None:
    world.risk = DANGEROUS
    change = proposed(cluster, alice)
    services.approve(change, bob, change.digest)
    assert services.decline(change, bob, change.digest, "I overlooked the backfill.").state == ChangeState.DECLINED
    first, second = Review.objects.order_by("pk")
    assert (first.verdict, first.void_code, first.void_by) == (ReviewVerdict.APPROVED, VoidCode.DECLINED_LATER, "bob")
    assert (second.verdict, second.void_at) == (ReviewVerdict.DECLINED, None)
