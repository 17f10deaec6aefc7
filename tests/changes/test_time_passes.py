"""By the database's clock: what is over expires, what is scheduled is queued, each once and with its audit event."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now
from pytest_django import DjangoAssertNumQueries

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import expiry, services
from kafkadash.changes.expiry import expire_due, queue_due
from kafkadash.changes.models import ChangeRequest, Policy
from kafkadash.changes.recheck import recheck
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.changes.transitions import move
from kafkadash.clusters.models import Cluster
from kafkadash.domain.workflow_states import State
from tests.changes.test_it_turns_stale import now
from tests.changes.worlds import MOVED, World, draft, kind_registered, now_of, proposed

SECOND = timedelta(seconds=1)


@pytest.fixture
def running_kind() -> Iterator[World]:
    """As if a later version could run the kind."""
    world = World()
    with kind_registered(world, starts=True):
        yield world


def set_time(change: ChangeRequest, **fields: object) -> ChangeRequest:
    ChangeRequest.objects.filter(pk=change.pk).update(**fields)
    return now_of(change)


def approved(cluster: Cluster, alice: User, bob: User) -> ChangeRequest:
    change = proposed(cluster, alice)
    return services.approve(change, bob, change.digest)


def test_a_proposal_expires(world: World, cluster: Cluster, alice: User) -> None:
    change = proposed(cluster, alice)
    assert expire_due() == 0
    set_time(change, expires_at=Now() - SECOND)
    assert expire_due() == 1
    assert now_of(change).state == State.EXPIRED
    event = AuditEvent.objects.get(action="change.expired")
    assert (event.actor, (event.before or {})["state"]) == ("kafkadash", "proposed")
    assert expire_due() == 0
    assert AuditEvent.objects.filter(action="change.expired").count() == 1


def test_so_do_an_approval_and_a_stale_request(world: World, cluster: Cluster, alice: User, bob: User) -> None:
    set_time(approved(cluster, alice, bob), expires_at=Now() - SECOND)
    stale = proposed(cluster, alice)
    world.checks = (MOVED,)
    recheck(cluster.pk, now())
    assert now_of(stale).state == State.STALE
    set_time(stale, expires_at=Now() - SECOND)
    assert expire_due() == 2


def test_a_window_that_is_over_ends_it_too(world: World, cluster: Cluster, alice: User, bob: User) -> None:
    change = set_time(approved(cluster, alice, bob), not_after=Now() - SECOND)
    assert expire_due() == 1
    assert now_of(change).state == State.EXPIRED


def test_a_draft_never_expires(world: World, cluster: Cluster, alice: User) -> None:
    set_time(draft(cluster, alice), expires_at=Now() - SECOND, not_after=Now() - SECOND)
    assert expire_due() == 0


def test_it_costs_one_query_when_nothing_is_due(
    world: World, cluster: Cluster, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    proposed(cluster, alice)
    with django_assert_num_queries(1):
        expire_due()
    with django_assert_num_queries(1):
        assert queue_due() == 0


def test_expired_is_final(world: World, cluster: Cluster, alice: User, bob: User) -> None:
    change = set_time(proposed(cluster, alice), expires_at=Now() - SECOND)
    expire_due()
    with pytest.raises(Changed, match=rf"#{change.pk} is expired, and that is final.*Copy it"):
        services.approve(change, bob, change.digest)
    with pytest.raises(Changed, match="is final"):
        services.edit(change, alice)


def test_a_scheduled_one_is_queued_when_its_window_begins(
    running_kind: World, cluster: Cluster, alice: User, bob: User
) -> None:
    change = set_time(approved(cluster, alice, bob), not_before=Now() + timedelta(hours=1))
    at_once = approved(cluster, alice, bob)
    assert queue_due() == 0
    set_time(change, not_before=Now() - SECOND)
    assert queue_due() == 1
    assert (now_of(change).state, now_of(at_once).state) == (State.QUEUED, State.APPROVED)
    assert AuditEvent.objects.get(action="change.scheduled").actor == "kafkadash"
    assert queue_due() == 0


def test_nothing_is_queued_that_this_version_cannot_run(world: World, cluster: Cluster, alice: User, bob: User) -> None:
    set_time(approved(cluster, alice, bob), not_before=Now() - SECOND)
    assert queue_due() == 0


def test_nothing_is_queued_on_a_read_only_cluster_or_after_its_time(
    running_kind: World, cluster: Cluster, alice: User, bob: User
) -> None:
    change = set_time(approved(cluster, alice, bob), not_before=Now() - SECOND, expires_at=Now() - SECOND)
    assert queue_due() == 0
    set_time(change, expires_at=Now() + timedelta(hours=1))
    Cluster.objects.update(read_only=True)
    assert queue_due() == 0


def test_one_that_cannot_be_moved_keeps_no_other_from_it(
    world: World, cluster: Cluster, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = proposed(cluster, alice), proposed(cluster, alice)
    ChangeRequest.objects.update(expires_at=F("submitted_at"))

    def sometimes(change: ChangeRequest, *args: object, **kwargs: object) -> object:
        if change.pk == first.pk:
            raise RuntimeError("unreadable")
        return move(change, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(expiry, "move", sometimes)
    assert expire_due() == 1
    assert (now_of(first).state, now_of(second).state) == (State.PROPOSED, State.EXPIRED)


def test_the_glass_is_broken_by_an_administrator_loudly(
    running_kind: World, cluster: Cluster, alice: User, admin: User, bob: User
) -> None:
    Policy.objects.create(cluster=cluster, break_glass=True)
    change = proposed(cluster, alice)
    with pytest.raises(Refused, match="To start a change without its approvals on orders-eu you need the role admin"):
        services.break_glass(change, bob, change.digest, "all burns")
    with pytest.raises(Refused, match="Say why this cannot wait"):
        services.break_glass(change, admin, change.digest, "  ")
    after = services.break_glass(change, admin, change.digest, "all burns")
    assert (after.state, after.broke_glass_name) == (State.QUEUED, "adam")
    event = AuditEvent.objects.get(action="change.broke_glass")
    assert (event.actor_name, event.reason) == ("adam", "all burns")
    assert event.after is not None
    assert (event.after["approvals"], event.after["needed"]) == (0, 1)
    back = services.withdraw(after, alice, "it stopped burning")
    assert (back.state, back.broke_glass_name) == (State.DRAFT, "")


def test_the_glass_stays_whole_where_the_policy_says_so_or_nothing_can_run(
    world: World, cluster: Cluster, alice: User, admin: User
) -> None:
    policy = Policy.objects.create(cluster=cluster, break_glass=True)
    change = proposed(cluster, alice)
    with pytest.raises(Refused, match=f"This version of kafkadash cannot run #{change.pk} yet"):
        services.break_glass(change, admin, change.digest, "all burns")
    policy.delete()
    with pytest.raises(Refused, match="lets nobody start a change without its approvals"):
        services.break_glass(change, admin, change.digest, "all burns")
