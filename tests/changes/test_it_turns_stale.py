"""After each refresh open requests are compared with the cluster; what no longer fits turns stale and says why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import kinds, services
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.recheck import recheck
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.clusters.models import Cluster, ClusterRole
from kafkadash.domain.checks import Check, Checked, Result
from kafkadash.domain.workflow_states import State
from kafkadash.events import changed
from kafkadash.jobs.models import Job, JobState
from kafkadash.observe.models import Kind
from kafkadash.ops import after_collect as following
from tests.changes.worlds import (
    ALIVE,
    AS_PLANNED,
    DANGEROUS,
    MOVED,
    NOT_KNOWN,
    ROWS,
    World,
    draft,
    now_of,
    planned,
    proposed,
    refreshed,
)


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def change(world: World, cluster: Cluster, alice: User) -> ChangeRequest:
    return proposed(cluster, alice)


@pytest.fixture
def stale(change: ChangeRequest, world: World) -> ChangeRequest:
    world.checks = (MOVED, ALIVE)
    recheck(change.cluster_id, now())
    world.checks = (AS_PLANNED, ALIVE)
    return now_of(change)


def test_it_says_which_row_and_how(stale: ChangeRequest) -> None:
    assert stale.state == State.STALE
    assert stale.stale_reasons == ["orders-0 is on 1, 2, 4 now; planned was 1, 2, 3."]
    assert stale.checks == [MOVED.as_json(), ALIVE.as_json()]
    event = AuditEvent.objects.get(action="change.turned_stale")
    assert (event.actor, event.actor_name) == ("kafkadash", "kafkadash")
    assert event.reason == "orders-0 is on 1, 2, 4 now; planned was 1, 2, 3."
    assert (event.after or {})["state"] == "stale"


def test_an_approved_one_turns_stale_too(change: ChangeRequest, bob: User, world: World) -> None:
    services.approve(change, bob, change.digest)
    world.checks = (MOVED,)
    recheck(change.cluster_id, now())
    assert now_of(change).state == State.STALE


def test_of_many_rows_the_first_are_named_and_the_others_counted(change: ChangeRequest, world: World) -> None:
    said = tuple(f"orders-{n} is elsewhere." for n in range(250))
    world.checks = (replace(MOVED, problems=said, problem_count=900),)
    recheck(change.cluster_id, now())
    reasons = now_of(change).stale_reasons
    assert len(reasons) == 201
    assert reasons[-1] == "And 700 more."


@pytest.mark.parametrize("checks", [(NOT_KNOWN, ALIVE), (AS_PLANNED, replace(ALIVE, result=Result.FAILED))])
def test_what_is_unknown_or_unhealthy_makes_nothing_stale(
    change: ChangeRequest, world: World, checks: tuple[Check, ...]
) -> None:
    world.checks = checks
    recheck(change.cluster_id, now())
    after = now_of(change)
    assert after.state == State.PROPOSED
    assert after.checks == [check.as_json() for check in world.checks]


def test_a_draft_with_a_plan_learns_its_checks_and_stays_a_draft(world: World, cluster: Cluster, alice: User) -> None:
    change = planned(draft(cluster, alice))
    without_plan = draft(cluster, alice)
    world.checks = (MOVED,)
    assert recheck(cluster.pk, now()) == 1
    after = now_of(change)
    assert (after.state, after.checks) == (State.DRAFT, [MOVED.as_json()])
    assert now_of(without_plan).checks == []


def test_a_draft_left_lying_is_checked_for_a_day(world: World, cluster: Cluster, alice: User) -> None:
    planned(draft(cluster, alice))
    world.asked = 0
    recheck(cluster.pk, now() + timedelta(hours=23))
    assert world.asked == 1
    recheck(cluster.pk, now() + timedelta(hours=25))
    assert world.asked == 1


def test_what_fits_again_stays_stale_until_somebody_refreshes_it(stale: ChangeRequest) -> None:
    recheck(stale.cluster_id, now())
    after = now_of(stale)
    assert after.state == State.STALE
    assert after.checks == [AS_PLANNED.as_json(), ALIVE.as_json()]
    assert after.stale_reasons == stale.stale_reasons


def test_a_check_that_was_overtaken_by_another_stores_nothing(change: ChangeRequest, world: World) -> None:
    def another(asked: ChangeRequest) -> None:
        world.meanwhile = None
        recheck(asked.cluster_id, now())
        world.checks = (MOVED,)

    world.meanwhile = another
    assert recheck(change.cluster_id, now()) == 0
    assert now_of(change).state == State.PROPOSED


def test_facts_of_which_some_are_older_than_at_the_last_check_count(change: ChangeRequest, world: World) -> None:
    """Another source came into play, which has been silent for a while; what the others say is no less true."""
    world.facts_at = now() - timedelta(minutes=5)
    world.checks = (MOVED,)
    recheck(change.cluster_id, now())
    after = now_of(change)
    assert (after.state, after.checked_at) == (State.STALE, world.facts_at)


def test_it_costs_one_query_when_nothing_is_open(
    world: World, cluster: Cluster, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    draft(cluster, alice)
    with django_assert_num_queries(1):
        assert recheck(cluster.pk, now()) == 0
    assert world.asked == 0


def test_one_that_cannot_be_checked_keeps_no_other_from_it(
    change: ChangeRequest, world: World, cluster: Cluster, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = change.pk
    later = proposed(cluster, alice)

    def sometimes(asked: ChangeRequest, at: datetime) -> Checked:
        if asked.pk == broken:
            raise RuntimeError("no rows")
        return world.checked(asked, at)

    world.checks = (MOVED,)
    monkeypatch.setitem(kinds._kinds, "test", replace(kinds.kind_of("test"), checks=sometimes))
    recheck(cluster.pk, now())
    assert (now_of(change).state, now_of(later).state) == (State.PROPOSED, State.STALE)


@pytest.mark.parametrize(("kind", "asked"), [(Kind.METADATA, 1), (Kind.REASSIGNMENTS, 1), (Kind.VERSIONS, 0)])
def test_it_follows_the_refreshes_that_matter(
    change: ChangeRequest, world: World, monkeypatch: pytest.MonkeyPatch, kind: Kind, asked: int
) -> None:
    monkeypatch.setattr(following, "publish_panels", lambda *_: None)
    world.asked = 0
    following.after_collect(cluster_id=change.cluster_id, kinds=frozenset({kind.value}), seq=1)
    assert world.asked == asked


def test_board_is_hinted_where_a_finding_came_or_went(
    change: ChangeRequest, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its title and its counts by kind are of all clusters; the state of this one may be the same as before."""
    hinted: list[str] = []
    monkeypatch.setattr(following, "publish_panels", lambda *_: None)
    monkeypatch.setattr(following, "publish_keys", lambda keys, _: hinted.extend(keys))
    for news, keys in ((False, []), (True, ["board"])):
        monkeypatch.setattr(following, "judge", lambda *_, news=news: news)
        following.after_collect(cluster_id=change.cluster_id, kinds=frozenset({Kind.VERSIONS.value}), seq=1)
        assert hinted == keys


def test_what_fails_there_keeps_nothing_from_being_published(
    change: ChangeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[int] = []
    monkeypatch.setattr(following, "publish_panels", lambda cluster_id, *_: published.append(cluster_id))

    def fails(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(following, "recheck", fails)
    following.after_collect(cluster_id=change.cluster_id, kinds=frozenset({Kind.METADATA.value}), seq=1)
    assert published == [change.cluster_id]


def test_pages_hear_of_it(
    change: ChangeRequest, world: World, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    heard: list[frozenset[str]] = []

    def hear(keys: frozenset[str], **_: object) -> None:
        heard.append(keys)

    changed.connect(hear)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            recheck(change.cluster_id, now())
        world.checks = (MOVED,)
        with django_capture_on_commit_callbacks(execute=True):
            recheck(change.cluster_id, now())
    finally:
        changed.disconnect(hear)
    page, everything = {f"change:{change.pk}"}, {f"change:{change.pk}", "changes"}
    assert heard == [page, everything], "lists show no checks"


def test_refreshing_makes_a_new_plan_and_approvals_void(
    change: ChangeRequest, alice: User, bob: User, ann: User, world: World
) -> None:
    services.approve(change, bob, change.digest)
    world.checks = (MOVED,)
    recheck(change.cluster_id, now())
    world.risk = DANGEROUS
    after = refreshed(now_of(change), ann)
    assert (after.state, after.round, after.stale_reasons) == (State.PROPOSED, 2, [])
    assert after.digest != change.digest
    assert (after.risk, after.approvals_needed) == (95, 2)
    assert after.hands == sorted([alice.pk, ann.pk])
    review = after.reviews.get()
    assert review.void_at is not None
    assert review.void_why == "ann made a new plan"
    assert AuditEvent.objects.get(action="change.refreshed").actor_name == "ann"
    assert services.approve(after, bob, after.digest).state == State.PROPOSED, "needs two now, has one"


def test_the_same_plan_made_again_revives_no_approval(
    change: ChangeRequest, alice: User, bob: User, world: World
) -> None:
    services.approve(change, bob, change.digest)
    world.checks = (MOVED,)
    recheck(change.cluster_id, now())
    after = refreshed(now_of(change), alice, ROWS)
    assert (after.state, after.digest, after.round) == (State.PROPOSED, change.digest, 2)


def test_the_checks_of_a_new_plan_are_made_at_once(
    stale: ChangeRequest, alice: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        refreshed(stale, alice)
    assert now_of(stale).checks == [AS_PLANNED.as_json(), ALIVE.as_json()]


def test_a_refresh_that_finds_nothing_to_do_says_so(stale: ChangeRequest, alice: User) -> None:
    with pytest.raises(Refused, match=f"There is nothing left to do: the cluster is by now as #{stale.pk} wants it"):
        refreshed(stale, alice, ())
    assert now_of(stale).state == State.STALE


def test_only_what_is_stale_is_refreshed(change: ChangeRequest, alice: User, world: World) -> None:
    with pytest.raises(Changed, match=f"#{change.pk} is proposed, not stale: there is nothing to refresh"):
        services.start_refresh(change, alice)
    assert world.replanned == []


def test_a_new_plan_is_asked_for_once(stale: ChangeRequest, alice: User, bob: User, world: World) -> None:
    services.start_refresh(stale, alice)
    assert world.replanned == [stale.pk]
    ChangeRequest.objects.update(job=Job.objects.create(kind="plan", state=JobState.RUNNING))
    with pytest.raises(Refused, match="A new plan is being made already"):
        services.start_refresh(stale, alice)
    with pytest.raises(Refused, match="To propose changes on orders-eu you need the role operator"):
        services.start_refresh(stale, bob)
    assert world.replanned == [stale.pk]


def test_a_new_plan_comes_too_late_for_what_was_edited(stale: ChangeRequest, alice: User) -> None:
    services.edit(stale, alice, "less of it")
    with pytest.raises(Changed, match=rf"The new plan of #{stale.pk} was dropped.*alice took it back to a draft"):
        refreshed(stale, alice)
    assert now_of(stale).state == State.DRAFT


def test_a_new_plan_of_somebody_who_lost_the_role_is_dropped(stale: ChangeRequest, alice: User) -> None:
    ClusterRole.objects.filter(user=alice).delete()
    with pytest.raises(Refused, match="you need the role operator"):
        refreshed(stale, alice)
