"""Two people at the same instant, on two real connections: nothing is lost, nothing counts twice."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from threading import Barrier

import pytest
from django.db import connection, transaction

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import services
from kafkadash.changes import services as drafting
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode, ChangeRefused, EditedMeanwhile
from kafkadash.changes.models import ChangeRequest, Review
from kafkadash.changes.recheck import recheck
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster
from tests.changes.worlds import AS_PLANNED, DANGEROUS, MOVED, World, draft, now_of, planned, proposed

pytestmark = pytest.mark.django_db(transaction=True)


ATTEMPTS = 5


def at_once(*deeds: Callable[[], object]) -> list[object]:
    """What each returned, or the refusal; all begin together, each on a connection of its own."""
    barrier = Barrier(len(deeds))

    def run(deed: Callable[[], object]) -> object:
        try:
            barrier.wait(timeout=10)
            return deed()
        except ChangeRefused as refused:
            return refused
        finally:
            connection.close()

    with ThreadPoolExecutor(len(deeds)) as pool:
        return [future.result(timeout=30) for future in [pool.submit(run, deed) for deed in deeds]]


def test_two_approvals_make_two(world: World, cluster: Cluster, alice: User, bob: User, bea: User) -> None:
    for _ in range(ATTEMPTS):
        world.risk = DANGEROUS
        change = proposed(cluster, alice)
        results = at_once(
            partial(services.approve, change, bob, change.digest), partial(services.approve, change, bea, change.digest)
        )
        assert all(isinstance(result, ChangeRequest) for result in results)
        assert now_of(change).state == ChangeState.APPROVED
        assert Review.objects.filter(request=change).count() == 2
        # The row that each returns is read after its commit, so either may already show the other's approval.
        events = AuditEvent.objects.filter(action="change.approved", object_id=str(change.pk))
        assert sorted((event.after or {})["state"] for event in events) == [ChangeState.APPROVED, ChangeState.PROPOSED]


def test_one_person_twice_is_one(world: World, cluster: Cluster, alice: User, bob: User) -> None:
    for _ in range(ATTEMPTS):
        world.risk = DANGEROUS
        change = proposed(cluster, alice)
        results = at_once(*[partial(services.approve, change, bob, change.digest)] * 2)
        assert sum(isinstance(result, ChangeRefused) for result in results) == 1
        assert now_of(change).state == ChangeState.PROPOSED
        assert Review.objects.filter(request=change).count() == 1


def test_of_approving_and_declining_one_wins_and_the_other_is_told(
    world: World, cluster: Cluster, alice: User, bob: User, bea: User
) -> None:
    for _ in range(ATTEMPTS):
        change = proposed(cluster, alice)
        results = at_once(
            partial(services.approve, change, bob, change.digest),
            partial(services.decline, change, bea, change.digest, "Not now."),
        )
        told = [result for result in results if isinstance(result, ChangedMeanwhile)]
        assert len(told) == 1
        assert "bea declined it on" in str(told[0]) or "bob approved it on" in str(told[0])
        assert now_of(change).state in (ChangeState.APPROVED, ChangeState.DECLINED)
        assert Review.objects.filter(request=change).count() == 1


def test_an_approval_and_a_plan_that_turns_stale(world: World, cluster: Cluster, alice: User, bob: User) -> None:
    for _ in range(ATTEMPTS):
        world.checks = (AS_PLANNED,)
        change = proposed(cluster, alice)
        world.checks = (MOVED,)
        at_once(
            partial(services.approve, change, bob, change.digest),
            lambda: recheck(cluster.pk, datetime.now(UTC)),
        )
        recheck(cluster.pk, datetime.now(UTC))
        assert now_of(change).state == ChangeState.STALE, "whoever was first, the next look finds it"


def test_two_who_save_one_draft(world: World, cluster: Cluster, alice: User, ann: User) -> None:
    change = draft(cluster, alice)
    results = at_once(
        lambda: drafting.edit_draft(change, alice, 1, title="Drain 3"),
        lambda: drafting.edit_draft(change, ann, 1, title="Drain 4"),
    )
    assert sum(isinstance(result, EditedMeanwhile) for result in results) == 1
    assert now_of(change).version == 2


def test_a_plan_that_two_jobs_make_is_stored_once(world: World, cluster: Cluster, alice: User, ann: User) -> None:
    one, other = draft(cluster, alice), draft(cluster, ann)
    first, second = at_once(lambda: planned(one), lambda: planned(other))
    assert isinstance(first, ChangeRequest)
    assert isinstance(second, ChangeRequest)
    assert first.artifact_id == second.artifact_id


def test_a_role_taken_away_while_he_waits_for_the_row_counts(
    world: World, cluster: Cluster, alice: User, bob: User
) -> None:
    change = proposed(cluster, alice)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            ChangeRequest.objects.select_for_update().get(pk=change.pk)
            waiting = pool.submit(at_once, partial(services.approve, change, bob, change.digest))
            bob.cluster_roles.all().delete()
        (result,) = waiting.result(timeout=30)
    assert isinstance(result, ChangeRefused)
    assert result.code == ChangeErrorCode.NEEDS_ROLE_NOW
