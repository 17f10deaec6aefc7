"""A second person approves exactly what was proposed; nobody approves what he wrote, edited or refreshed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import drafting, services
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import Policy, Review, Verdict
from kafkadash.changes.recheck import recheck
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.changes.trail import entries
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.clusters.services import give_role
from kafkadash.domain.messages import message_text
from kafkadash.domain.workflow_states import State
from kafkadash.observe.models import CollectorRun
from tests.changes.worlds import DANGEROUS, MOVED, World, now_of, proposed, refreshed

pytestmark = pytest.mark.usefixtures("world")


def test_a_second_person_approves_exactly_this(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    after = services.approve(change, bob, change.digest, "looks right")
    assert (after.state, after.digest, after.round) == (State.APPROVED, change.digest, 1)
    review = Review.objects.get()
    assert (review.user_name, review.verdict, review.digest, review.round, review.note) == (
        "bob",
        Verdict.APPROVED,
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
    with pytest.raises(Refused, match=f"You wrote, edited or refreshed #{change.pk}, so somebody else has to approve"):
        services.approve(change, ann, change.digest)
    assert now_of(change).state == State.PROPOSED
    assert not Review.objects.exists()


def test_who_edited_the_draft_cannot(cluster: Cluster, alice: User, ann: User) -> None:
    change = proposed(cluster, alice)
    change = services.edit(change, ann, "a smaller throttle")
    change = drafting.edit_draft(change, ann, change.version, options={"bounds": [1, 2]})
    change = services.submit(change, alice, why="Its disk fails.", version=change.version)
    with pytest.raises(Refused, match="You wrote, edited or refreshed"):
        services.approve(change, ann, change.digest)


def test_who_only_took_it_back_has_a_hand_in_nothing(cluster: Cluster, alice: User, ann: User) -> None:
    change = services.edit(proposed(cluster, alice), ann)
    change = services.submit(change, alice, why="Its disk fails.", version=change.version)
    assert services.approve(change, ann, change.digest).state == State.APPROVED


def test_who_submitted_it_cannot(cluster: Cluster, alice: User, ann: User) -> None:
    change = services.withdraw(proposed(cluster, alice), alice, "later")
    change = services.submit(change, ann, why="Now.", version=change.version)
    with pytest.raises(Refused, match="You wrote, edited or refreshed"):
        services.approve(change, ann, change.digest)


def test_who_refreshed_it_cannot(cluster: Cluster, alice: User, ann: User, bob: User, world: World) -> None:
    change = proposed(cluster, alice)
    world.checks = (MOVED,)
    recheck(cluster.pk, datetime.now(UTC))
    change = refreshed(change, ann)
    with pytest.raises(Refused, match="You wrote, edited or refreshed"):
        services.approve(change, ann, change.digest)
    assert services.approve(change, bob, change.digest).state == State.APPROVED


def test_whoever_has_the_role_from_the_author_does_not_count(
    cluster: Cluster, admin: User, stranger: User, bob: User
) -> None:
    """The author could have given it to an account of his own."""
    ClusterRole.objects.create(user=admin, role=Role.OPERATOR)
    give_role(admin, stranger, Role.APPROVER, cluster=cluster)
    change = proposed(cluster, admin)
    with pytest.raises(Refused) as caught:
        services.approve(change, stranger, change.digest)
    at = ClusterRole.objects.get(user=stranger).counts_from
    assert str(caught.value) == message_text(
        ChangeErrorCode.ROLE_COUNTS_LATER, cluster="orders-eu", at=f"{at:%-d %b at %H:%M} UTC"
    )
    ClusterRole.objects.update(counts_from=Now())
    with pytest.raises(Refused) as caught:
        services.approve(change, stranger, change.digest)
    assert str(caught.value) == message_text(ChangeErrorCode.ROLE_FROM_AUTHOR, name=f"#{change.pk}")
    assert services.approve(change, bob, change.digest).state == State.APPROVED


def test_one_s_own_is_approved_where_the_policy_allows_it(cluster: Cluster, ann: User) -> None:
    Policy.objects.create(cluster=cluster, self_approval=True)
    change = proposed(cluster, ann)
    after = services.approve(change, ann, change.digest)
    assert (after.state, after.self_approved_name) == (State.APPROVED, "ann")
    (entry,) = entries(AuditEvent.objects.filter(action="change.approved"))
    assert entry.trouble == "critical"
    assert services.withdraw(after, ann, "Not like that.").self_approved_name == ""


def test_a_plan_that_changed_while_the_page_was_open_is_not_approved(
    cluster: Cluster, alice: User, bob: User, world: World
) -> None:
    seen = proposed(cluster, alice)
    world.checks = (MOVED,)
    recheck(cluster.pk, datetime.now(UTC))
    refreshed(seen, alice)
    with pytest.raises(
        Changed, match=rf"#{seen.pk} changed while you read it.*alice made a new plan for it on .* UTC. Look at it"
    ):
        services.approve(seen, bob, seen.digest)
    assert now_of(seen).state == State.PROPOSED
    assert not Review.objects.exists()


def test_one_that_was_declined_meanwhile_says_so(cluster: Cluster, alice: User, bob: User, bea: User) -> None:
    change = proposed(cluster, alice)
    services.decline(change, bea, change.digest, "Not before the sale.")
    with pytest.raises(
        Changed, match=rf"#{change.pk} is declined, and that is final.*bea declined it on .* UTC. Copy it"
    ):
        services.approve(change, bob, change.digest)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.AUDITOR, Role.ADMIN])
def test_it_needs_the_role(cluster: Cluster, alice: User, stranger: User, role: Role) -> None:
    ClusterRole.objects.create(user=stranger, role=role)
    change = proposed(cluster, alice)
    with pytest.raises(Refused, match="To approve changes on orders-eu you need the role approver"):
        services.approve(change, stranger, change.digest)


def test_a_role_taken_away_meanwhile_counts(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    ClusterRole.objects.filter(user=bob).update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    with pytest.raises(Refused, match="you need the role approver, which you do not have now"):
        services.approve(change, bob, change.digest)


def test_a_cluster_made_read_only_meanwhile_counts(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    Cluster.objects.update(read_only=True)
    with pytest.raises(Refused, match="orders-eu is read-only in kafkadash"):
        services.approve(change, bob, change.digest)
    assert services.withdraw(change, alice, "not now").state == State.DRAFT, "what only ends it is possible"


def test_a_cluster_removed_meanwhile_counts(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    Cluster.objects.update(removed_at=datetime.now(UTC))
    with pytest.raises(Refused, match="cluster was removed"):
        services.approve(change, bob, change.digest)


def test_facts_that_grew_old_are_nothing_to_approve_on(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    CollectorRun.objects.update(succeeded_at=datetime.now(UTC) - timedelta(minutes=10))
    with pytest.raises(Refused, match=r"What is known about topics and brokers of orders-eu is 10 min .*old"):
        services.approve(change, bob, change.digest)


def test_its_time_being_over_counts_before_the_tick_says_so(cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    type(change).objects.update(expires_at=datetime.now(UTC))
    with pytest.raises(Changed, match=rf"The time of #{change.pk} is over\..*Copy it to propose it again"):
        services.approve(change, bob, change.digest)


def test_a_dangerous_one_takes_two(cluster: Cluster, alice: User, bob: User, bea: User, world: World) -> None:
    world.risk = DANGEROUS
    change = proposed(cluster, alice)
    assert change.approvals_needed == 2
    assert services.approve(change, bob, change.digest).state == State.PROPOSED
    with pytest.raises(Refused, match=f"You have approved #{change.pk} already"):
        services.approve(change, bob, change.digest)
    assert services.approve(change, bea, change.digest).state == State.APPROVED
    assert AuditEvent.objects.filter(action="change.approved").count() == 2


def test_a_policy_made_stricter_counts_at_once(cluster: Cluster, alice: User, bob: User, bea: User) -> None:
    change = proposed(cluster, alice)
    Policy.objects.create(cluster=cluster, approvals_low=2, approvals_medium=2)
    assert services.approve(change, bob, change.digest).state == State.PROPOSED
    assert services.approve(change, bea, change.digest).state == State.APPROVED


def test_a_policy_made_milder_does_not(cluster: Cluster, alice: User, bob: User) -> None:
    policy = Policy.objects.create(cluster=cluster, approvals_low=2, approvals_medium=2)
    change = proposed(cluster, alice)
    policy.approvals_low = 1
    policy.save()
    after = services.approve(change, bob, change.digest)
    assert (after.state, after.approvals_needed) == (State.PROPOSED, 2)


def test_the_approval_of_an_account_that_is_gone_no_longer_counts(
    cluster: Cluster, alice: User, bob: User, bea: User, ann: User, world: World
) -> None:
    world.risk = DANGEROUS
    change = proposed(cluster, alice)
    services.approve(change, bob, change.digest)
    bob.delete()
    assert services.approve(change, bea, change.digest).state == State.PROPOSED
    assert services.approve(change, ann, change.digest).state == State.APPROVED
    assert Review.objects.order_by("at")[0].user_name == "bob", "the history stays"


@pytest.mark.parametrize("reason", ["", "   ", "\n\t"])
def test_declining_needs_a_reason(cluster: Cluster, alice: User, bob: User, reason: str) -> None:
    change = proposed(cluster, alice)
    with pytest.raises(Refused, match="Say why you decline it"):
        services.decline(change, bob, change.digest, reason)
    assert now_of(change).state == State.PROPOSED


def test_declined_is_final(cluster: Cluster, alice: User, bob: User, bea: User) -> None:
    change = proposed(cluster, alice)
    assert services.decline(change, bob, change.digest, "Not before the sale.").state == State.DECLINED
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
        with pytest.raises(Changed):
            refused()
    assert now_of(change).state == State.DECLINED


def test_who_approved_may_still_decline(cluster: Cluster, alice: User, bob: User, world: World) -> None:
    world.risk = DANGEROUS
    change = proposed(cluster, alice)
    services.approve(change, bob, change.digest)
    assert services.decline(change, bob, change.digest, "I overlooked the backfill.").state == State.DECLINED
    first, second = Review.objects.order_by("pk")
    assert (first.verdict, first.void_why) == (Verdict.APPROVED, "bob declined it later")
    assert (second.verdict, second.void_at) == (Verdict.DECLINED, None)
