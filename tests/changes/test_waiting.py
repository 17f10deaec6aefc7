"""What waits for a person: what he may approve now, and what he has to refresh."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from pytest_django import DjangoAssertNumQueries

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.models import ChangeRequest, Policy
from kafkadash.changes.queries import waiting_count, waiting_for
from kafkadash.changes.recheck import recheck
from kafkadash.clusters.models import Cluster, ClusterRole
from tests.changes.worlds import DANGEROUS, MOVED, World, draft, proposed


@pytest.fixture
def change(world: World, cluster: Cluster, alice: User) -> ChangeRequest:
    draft(cluster, alice)
    return proposed(cluster, alice)


def test_a_proposal_waits_for_approvers(
    change: ChangeRequest, alice: User, bob: User, bea: User, viewer: User, admin: User
) -> None:
    assert [waiting_count(user) for user in (bob, bea)] == [1, 1]
    assert [waiting_count(user) for user in (alice, viewer, admin)] == [0, 0, 0]
    assert waiting_for(bob).get() == change
    assert waiting_count(AnonymousUser()) == 0


def test_it_costs_one_query(
    change: ChangeRequest, bob: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert waiting_count(bob) == 1
    with django_assert_num_queries(1):
        assert len(waiting_for(bob)) == 1


def test_one_s_own_does_not_unless_the_policy_allows_it(world: World, cluster: Cluster, ann: User) -> None:
    proposed(cluster, ann)
    assert waiting_count(ann) == 0
    Policy.objects.create(cluster=cluster, self_approval=True)
    assert waiting_count(ann) == 1


def test_what_one_approved_does_not_until_the_next_round(
    world: World, cluster: Cluster, alice: User, bob: User, bea: User
) -> None:
    world.risk = DANGEROUS
    change = proposed(cluster, alice)
    services.approve(change, bob, change.digest)
    assert [waiting_count(user) for user in (bob, bea)] == [0, 1]
    change = services.withdraw(change, alice, "later")
    services.submit(change, alice, why="Now.", version=change.version)
    assert [waiting_count(user) for user in (bob, bea)] == [1, 1]


def test_nothing_waits_on_a_cluster_where_nothing_may_be_approved(change: ChangeRequest, bob: User) -> None:
    Cluster.objects.update(read_only=True)
    assert waiting_count(bob) == 0
    Cluster.objects.update(read_only=False, removed_at=datetime.now(UTC))
    assert waiting_count(bob) == 0


def test_a_role_that_ran_out_ends_it(change: ChangeRequest, bob: User) -> None:
    ClusterRole.objects.filter(user=bob).update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert waiting_count(bob) == 0


def test_a_role_on_another_cluster_is_none_here(change: ChangeRequest, bob: User) -> None:
    ClusterRole.objects.filter(user=bob).update(cluster=Cluster.objects.create(name="other", slug="other"))
    assert waiting_count(bob) == 0


def test_a_stale_one_waits_for_those_who_made_it(
    change: ChangeRequest, world: World, alice: User, bob: User, operator: User
) -> None:
    world.checks = (MOVED,)
    recheck(change.cluster_id, datetime.now(UTC))
    assert [waiting_count(user) for user in (alice, bob, operator)] == [1, 0, 0]


def test_what_is_decided_waits_for_nobody(change: ChangeRequest, alice: User, bob: User, bea: User) -> None:
    services.approve(change, bob, change.digest)
    assert [waiting_count(user) for user in (alice, bob, bea)] == [0, 0, 0]
