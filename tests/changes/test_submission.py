"""What is proposed says why, has a plan, and was compared with a cluster that was read just now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import drafting, services
from kafkadash.changes.models import ChangeRequest, Policy
from kafkadash.changes.refusals import Changed, EditedMeanwhile, Refused
from kafkadash.clusters.models import Cluster, ClusterRole
from kafkadash.domain.checks import Result
from kafkadash.domain.workflow_states import State
from kafkadash.jobs.models import Job, JobState
from kafkadash.observe.models import CollectorRun, Kind
from tests.changes.worlds import ALIVE, AS_PLANNED, DANGEROUS, MOVED, NOT_KNOWN, World, draft, now_of, planned

Submit = Callable[[ChangeRequest], ChangeRequest]


@pytest.fixture
def ready(world: World, cluster: Cluster, alice: User) -> ChangeRequest:
    return planned(draft(cluster, alice))


@pytest.fixture
def submit(alice: User) -> Submit:
    return lambda change: services.submit(change, alice, why="Its disk fails.", version=change.version)


def test_it_is_proposed_with_its_risk_and_its_checks(ready: ChangeRequest, submit: Submit) -> None:
    before = datetime.now(UTC)
    change = submit(ready)
    assert (change.state, change.round, change.why, change.digest) == (
        State.PROPOSED,
        1,
        "Its disk fails.",
        ready.digest,
    )
    assert (change.risk, change.approvals_needed) == (4, 1)
    assert change.risk_reasons == [[4, "moves 1 % of the bytes"]]
    assert change.checks == [AS_PLANNED.as_json(), ALIVE.as_json()]
    assert change.expires_at is not None
    assert change.submitted_at is not None
    assert before + timedelta(hours=24) <= change.expires_at
    event = AuditEvent.objects.get(action="change.submitted")
    assert event.reason == "Its disk fails."
    assert event.before == {"state": "draft", "digest": ready.digest, "round": 0}
    assert event.after == {"state": "proposed", "digest": ready.digest, "round": 1, "risk": 4, "level": "low"}


def test_a_client_cannot_lower_the_risk(ready: ChangeRequest, submit: Submit, world: World) -> None:
    world.risk = DANGEROUS
    ready.risk, ready.approvals_needed = 0, 0
    change = submit(ready)
    assert (change.risk, change.approvals_needed) == (95, 2)


def test_the_policy_says_how_many_and_for_how_long(ready: ChangeRequest, submit: Submit) -> None:
    Policy.objects.create(cluster=ready.cluster, approvals_low=3, approvals_medium=3, approvals_high=3, valid_hours=1)
    change = submit(ready)
    assert change.approvals_needed == 3
    assert change.expires_at is not None
    assert change.expires_at < datetime.now(UTC) + timedelta(hours=2)


@pytest.mark.parametrize("why", ["", "  \n"])
def test_it_says_why(ready: ChangeRequest, alice: User, why: str) -> None:
    with pytest.raises(Refused, match="Say why this is to be done"):
        services.submit(ready, alice, why=why, version=ready.version)


def test_it_has_a_plan(world: World, cluster: Cluster, alice: User, submit: Submit) -> None:
    with pytest.raises(Refused, match="has no plan yet"):
        submit(draft(cluster, alice))


def test_the_plan_does_something(world: World, cluster: Cluster, alice: User, submit: Submit) -> None:
    with pytest.raises(Refused, match="is empty: there is nothing to do"):
        submit(planned(draft(cluster, alice), ()))


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING])
def test_no_other_plan_is_being_made(ready: ChangeRequest, submit: Submit, state: JobState) -> None:
    job = Job.objects.create(kind="plan", cluster=ready.cluster, state=state)
    ChangeRequest.objects.update(job=job)
    with pytest.raises(Refused, match=f"The plan of #{ready.pk} is still being made"):
        submit(ready)


def test_it_is_the_version_that_the_author_saw(ready: ChangeRequest, ann: User, submit: Submit) -> None:
    drafting.edit_draft(ready, ann, ready.version, title="Drain broker 4")
    with pytest.raises(EditedMeanwhile, match=f"ann edited #{ready.pk}"):
        submit(ready)


def test_it_is_the_plan_that_the_author_saw(ready: ChangeRequest, alice: User) -> None:
    with pytest.raises(Changed, match="was planned anew while you had it open"):
        services.submit(ready, alice, why="Its disk fails.", version=ready.version, digest="0" * 64)


def test_content_that_failed_is_named(ready: ChangeRequest, submit: Submit, world: World) -> None:
    world.checks = (MOVED, ALIVE)
    with pytest.raises(Refused, match="The plan no longer fits the cluster: orders-0 is on 1, 2, 4 now"):
        submit(ready)


def test_content_that_nobody_could_check_is_no_content_that_passed(
    ready: ChangeRequest, submit: Submit, world: World
) -> None:
    world.checks = (NOT_KNOWN, ALIVE)
    with pytest.raises(Refused, match=r"This could not be checked.*Every partition is as it was planned"):
        submit(ready)


@pytest.mark.parametrize("result", [Result.FAILED, Result.UNKNOWN])
def test_health_does_not_matter_yet(ready: ChangeRequest, submit: Submit, world: World, result: Result) -> None:
    world.checks = (AS_PLANNED, replace(ALIVE, result=result))
    assert submit(ready).state == State.PROPOSED


@pytest.mark.parametrize("kind", [Kind.METADATA, Kind.REASSIGNMENTS])
def test_stale_facts_prove_nothing(ready: ChangeRequest, submit: Submit, kind: Kind) -> None:
    CollectorRun.objects.filter(kind=kind).update(succeeded_at=datetime.now(UTC) - timedelta(minutes=5))
    with pytest.raises(Refused, match=r"What is known about .* of orders-eu is 5 min .*old.*Wait for the next refresh"):
        submit(ready)


@pytest.mark.parametrize("kind", [Kind.METADATA, Kind.REASSIGNMENTS])
def test_facts_that_were_never_read_prove_nothing(ready: ChangeRequest, submit: Submit, kind: Kind) -> None:
    CollectorRun.objects.filter(kind=kind).update(succeeded_at=None)
    with pytest.raises(Refused, match="have not been read yet"):
        submit(ready)


def test_a_window_that_is_over_is_refused(world: World, cluster: Cluster, alice: User, submit: Submit) -> None:
    change = planned(draft(cluster, alice, not_before="2026-01-01T00:00:00Z", not_after="2026-01-02T00:00:00Z"))
    with pytest.raises(Refused, match=f"The window of #{change.pk} is over"):
        submit(change)


def test_a_role_taken_away_meanwhile_and_a_read_only_cluster_count(ready: ChangeRequest, submit: Submit) -> None:
    Cluster.objects.update(read_only=True)
    with pytest.raises(Refused, match="orders-eu is read-only"):
        submit(ready)
    Cluster.objects.update(read_only=False)
    ClusterRole.objects.all().delete()
    with pytest.raises(Refused, match="you need the role operator"):
        submit(ready)
    assert now_of(ready).state == State.DRAFT


def test_twice_is_once(ready: ChangeRequest, submit: Submit) -> None:
    submit(ready)
    with pytest.raises(Changed, match=r"is no draft any more.*alice submitted it on"):
        submit(ready)
    assert now_of(ready).round == 1


def test_withdrawing_makes_approvals_void(ready: ChangeRequest, submit: Submit, alice: User, bob: User) -> None:
    change = submit(ready)
    services.approve(change, bob, change.digest)
    back = services.withdraw(change, alice, "The disk was replaced.")
    assert (back.state, back.approvals_needed, back.expires_at) == (State.DRAFT, None, None)
    review = back.reviews.get()
    assert review.void_at is not None
    assert review.void_why == "alice withdrew it"
    assert AuditEvent.objects.get(action="change.withdrawn").reason == "The disk was replaced."
    again = submit(back)
    assert (again.state, again.round, again.digest) == (State.PROPOSED, 2, change.digest), "the same, unapproved"


def test_an_approved_one_is_not_edited_in_place(ready: ChangeRequest, submit: Submit, alice: User, bob: User) -> None:
    change = submit(ready)
    change = services.approve(change, bob, change.digest)
    with pytest.raises(Changed, match=rf"#{change.pk} is approved\..*Withdraw it to edit it"):
        services.edit(change, alice)
