"""After each refresh open requests are compared with the cluster; what no longer fits turns stale and says why.

By the database's clock: what is over expires, what is scheduled is queued, each once and with its audit event.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import expiry, kinds, services
from kafkadash.changes.checks import ChangeCheck, CheckOutcome, CheckResult
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode, ChangeRefused
from kafkadash.changes.expiry import expire_due, queue_due
from kafkadash.changes.models import ChangeRequest, Policy
from kafkadash.changes.recheck import recheck
from kafkadash.changes.state_machine import ChangeState, WorkflowErrorCode
from kafkadash.changes.worker_transitions import move_itself
from kafkadash.clusters.models import Cluster, ClusterRole
from kafkadash.core.events import changed
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import coded
from kafkadash.jobs.models import Job, JobState
from kafkadash.monitoring.models import CollectorKind
from kafkadash.ops import after_collect as following
from kafkadash.planning.problem_codes import CheckErrorCode
from tests.changes.worlds import (
    ALIVE,
    AS_PLANNED,
    DANGEROUS,
    MOVED,
    NOT_KNOWN,
    ROWS,
    World,
    draft,
    kind_registered,
    now_of,
    planned,
    proposed,
    refreshed,
)
from tests.raised_codes import raises_code


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
    assert stale.state == ChangeState.STALE
    assert stale.stale_reasons == [problem.as_json() for problem in MOVED.problems]
    assert stale.checks == [pack_dataclass(MOVED), pack_dataclass(ALIVE)]
    event = AuditEvent.objects.get(action="change.turned_stale")
    assert (event.actor, event.actor_name) == ("kafkadash", "kafkadash")
    assert event.why == MOVED.problems[0]
    assert (event.after or {})["state"] == "stale"


def test_an_approved_one_turns_stale_too(change: ChangeRequest, bob: User, world: World) -> None:
    services.approve(change, bob, change.digest)
    world.checks = (MOVED,)
    recheck(change.cluster_id, now())
    assert now_of(change).state == ChangeState.STALE


def test_of_many_rows_the_first_are_named_and_the_others_counted(change: ChangeRequest, world: World) -> None:
    problems = tuple(coded(CheckErrorCode.GONE, name=f"orders-{n}") for n in range(250))
    world.checks = (replace(MOVED, problems=problems, problem_count=900),)
    recheck(change.cluster_id, now())
    reasons = now_of(change).stale_reasons
    assert len(reasons) == 201
    assert reasons[-1] == coded(ChangeErrorCode.MORE_REASONS, more=700).as_json()


@pytest.mark.parametrize("checks", [(NOT_KNOWN, ALIVE), (AS_PLANNED, replace(ALIVE, result=CheckResult.FAILED))])
def test_what_is_unknown_or_unhealthy_makes_nothing_stale(
    change: ChangeRequest, world: World, checks: tuple[ChangeCheck, ...]
) -> None:
    world.checks = checks
    recheck(change.cluster_id, now())
    after = now_of(change)
    assert after.state == ChangeState.PROPOSED
    assert after.checks == [pack_dataclass(check) for check in world.checks]


def test_a_draft_with_a_plan_learns_its_checks_and_stays_a_draft(world: World, cluster: Cluster, alice: User) -> None:
    change = planned(draft(cluster, alice))
    without_plan = draft(cluster, alice)
    world.checks = (MOVED,)
    assert recheck(cluster.pk, now()) == 1
    after = now_of(change)
    assert (after.state, after.checks) == (ChangeState.DRAFT, [pack_dataclass(MOVED)])
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
    assert after.state == ChangeState.STALE
    assert after.checks == [pack_dataclass(AS_PLANNED), pack_dataclass(ALIVE)]
    assert after.stale_reasons == stale.stale_reasons


def test_a_check_that_was_overtaken_by_another_stores_nothing(change: ChangeRequest, world: World) -> None:
    def another(asked: ChangeRequest) -> None:
        world.meanwhile = None
        recheck(asked.cluster_id, now())
        world.checks = (MOVED,)

    world.meanwhile = another
    assert recheck(change.cluster_id, now()) == 0
    assert now_of(change).state == ChangeState.PROPOSED


def test_facts_of_which_some_are_older_than_at_the_last_check_count(change: ChangeRequest, world: World) -> None:
    """Another source came into play, which has been silent for a while; what the others say is no less true."""
    world.facts_at = now() - timedelta(minutes=5)
    world.checks = (MOVED,)
    recheck(change.cluster_id, now())
    after = now_of(change)
    assert (after.state, after.checked_at) == (ChangeState.STALE, world.facts_at)


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

    def sometimes(asked: ChangeRequest, at: datetime) -> CheckOutcome:
        if asked.pk == broken:
            raise RuntimeError("no rows")
        return world.checked(asked, at)

    world.checks = (MOVED,)
    monkeypatch.setitem(kinds._kinds, "test", replace(kinds.kind_of("test"), checks=sometimes))
    recheck(cluster.pk, now())
    assert (now_of(change).state, now_of(later).state) == (ChangeState.PROPOSED, ChangeState.STALE)


@pytest.mark.parametrize(
    ("kind", "asked"), [(CollectorKind.METADATA, 1), (CollectorKind.REASSIGNMENTS, 1), (CollectorKind.VERSIONS, 0)]
)
def test_it_follows_the_refreshes_that_matter(
    change: ChangeRequest, world: World, monkeypatch: pytest.MonkeyPatch, kind: CollectorKind, asked: int
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
        following.after_collect(cluster_id=change.cluster_id, kinds=frozenset({CollectorKind.VERSIONS.value}), seq=1)
        assert hinted == keys


def test_what_fails_there_keeps_nothing_from_being_published(
    change: ChangeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[int] = []
    monkeypatch.setattr(following, "publish_panels", lambda cluster_id, *_: published.append(cluster_id))

    def fails(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(following, "recheck", fails)
    following.after_collect(cluster_id=change.cluster_id, kinds=frozenset({CollectorKind.METADATA.value}), seq=1)
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
    assert (after.state, after.round, after.stale_reasons) == (ChangeState.PROPOSED, 2, [])
    assert after.digest != change.digest
    assert (after.risk, after.approvals_needed) == (95, 2)
    assert after.contributor_ids == sorted([alice.pk, ann.pk])
    review = after.reviews.get()
    assert review.void_at is not None
    assert review.void_by == "ann"
    assert AuditEvent.objects.get(action="change.refreshed").actor_name == "ann"
    assert services.approve(after, bob, after.digest).state == ChangeState.PROPOSED, "needs two now, has one"


def test_the_same_plan_made_again_revives_no_approval(
    change: ChangeRequest, alice: User, bob: User, world: World
) -> None:
    services.approve(change, bob, change.digest)
    world.checks = (MOVED,)
    recheck(change.cluster_id, now())
    after = refreshed(now_of(change), alice, ROWS)
    assert (after.state, after.digest, after.round) == (ChangeState.PROPOSED, change.digest, 2)


def test_the_checks_of_a_new_plan_are_made_at_once(
    stale: ChangeRequest, alice: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        refreshed(stale, alice)
    assert now_of(stale).checks == [pack_dataclass(AS_PLANNED), pack_dataclass(ALIVE)]


def test_a_refresh_that_finds_nothing_to_do_says_so(stale: ChangeRequest, alice: User) -> None:
    with raises_code(ChangeErrorCode.NOTHING_LEFT, ChangeRefused, number=stale.pk):
        refreshed(stale, alice, ())
    assert now_of(stale).state == ChangeState.STALE


def test_only_what_is_stale_is_refreshed(change: ChangeRequest, alice: User, world: World) -> None:
    with raises_code(WorkflowErrorCode.NOTHING_TO_REFRESH, ChangedMeanwhile, name=f"#{change.pk}", state="proposed"):
        services.start_refresh(change, alice)
    assert world.replanned == []


def test_a_new_plan_is_asked_for_once(stale: ChangeRequest, alice: User, bob: User, world: World) -> None:
    services.start_refresh(stale, alice)
    assert world.replanned == [stale.pk]
    ChangeRequest.objects.update(job=Job.objects.create(kind="plan", state=JobState.RUNNING))
    with raises_code(ChangeErrorCode.NEW_PLAN_UNDER_WAY, ChangeRefused):
        services.start_refresh(stale, alice)
    with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, cluster="orders-eu", roles="operator"):
        services.start_refresh(stale, bob)
    assert world.replanned == [stale.pk]


def test_a_new_plan_comes_too_late_for_what_was_edited(stale: ChangeRequest, alice: User) -> None:
    services.edit(stale, alice, "less of it")
    with raises_code(ChangeErrorCode.NEW_PLAN_DROPPED, ChangedMeanwhile, number=stale.pk, match="alice"):
        refreshed(stale, alice)
    assert now_of(stale).state == ChangeState.DRAFT


def test_a_new_plan_of_somebody_who_lost_the_role_is_dropped(stale: ChangeRequest, alice: User) -> None:
    ClusterRole.objects.filter(user=alice).delete()
    with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, roles="operator"):
        refreshed(stale, alice)


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
    assert now_of(change).state == ChangeState.EXPIRED
    event = AuditEvent.objects.get(action="change.expired")
    assert (event.actor, (event.before or {})["state"]) == ("kafkadash", "proposed")
    assert expire_due() == 0
    assert AuditEvent.objects.filter(action="change.expired").count() == 1


def test_so_do_an_approval_and_a_stale_request(world: World, cluster: Cluster, alice: User, bob: User) -> None:
    set_time(approved(cluster, alice, bob), expires_at=Now() - SECOND)
    stale = proposed(cluster, alice)
    world.checks = (MOVED,)
    recheck(cluster.pk, now())
    assert now_of(stale).state == ChangeState.STALE
    set_time(stale, expires_at=Now() - SECOND)
    assert expire_due() == 2


def test_a_window_that_is_over_ends_it_too(world: World, cluster: Cluster, alice: User, bob: User) -> None:
    change = set_time(approved(cluster, alice, bob), not_after=Now() - SECOND)
    assert expire_due() == 1
    assert now_of(change).state == ChangeState.EXPIRED


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
    with raises_code(WorkflowErrorCode.FINAL, ChangedMeanwhile, name=f"#{change.pk}", state="expired"):
        services.approve(change, bob, change.digest)
    with raises_code(WorkflowErrorCode.FINAL, ChangedMeanwhile):
        services.edit(change, alice)


def test_a_scheduled_one_is_queued_when_its_window_begins(
    running_kind: World, cluster: Cluster, alice: User, bob: User
) -> None:
    change = set_time(approved(cluster, alice, bob), not_before=Now() + timedelta(hours=1))
    at_once = approved(cluster, alice, bob)
    assert queue_due() == 0
    set_time(change, not_before=Now() - SECOND)
    assert queue_due() == 1
    assert (now_of(change).state, now_of(at_once).state) == (ChangeState.QUEUED, ChangeState.APPROVED)
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

    def sometimes(change: ChangeRequest, *args: Any) -> None:
        if change.pk == first.pk:
            raise RuntimeError("unreadable")
        move_itself(change, *args)

    monkeypatch.setattr(expiry, "move_itself", sometimes)
    assert expire_due() == 1
    assert (now_of(first).state, now_of(second).state) == (ChangeState.PROPOSED, ChangeState.EXPIRED)


def test_the_glass_is_broken_by_an_administrator_loudly(
    running_kind: World, cluster: Cluster, alice: User, admin: User, bob: User
) -> None:
    Policy.objects.create(cluster=cluster, break_glass=True)
    change = proposed(cluster, alice)
    with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, cluster="orders-eu", roles="admin"):
        services.break_glass(change, bob, change.digest, "all burns")
    with raises_code(WorkflowErrorCode.GLASS_REASON, ChangeRefused):
        services.break_glass(change, admin, change.digest, "  ")
    after = services.break_glass(change, admin, change.digest, "all burns")
    assert (after.state, after.broke_glass_name) == (ChangeState.QUEUED, "adam")
    event = AuditEvent.objects.get(action="change.broke_glass")
    assert (event.actor_name, event.reason) == ("adam", "all burns")
    assert event.after is not None
    assert (event.after["approvals"], event.after["needed"]) == (0, 1)
    back = services.withdraw(after, alice, "it stopped burning")
    assert (back.state, back.broke_glass_name) == (ChangeState.DRAFT, "")


def test_the_glass_stays_whole_where_the_policy_says_so_or_nothing_can_run(
    world: World, cluster: Cluster, alice: User, admin: User
) -> None:
    policy = Policy.objects.create(cluster=cluster, break_glass=True)
    change = proposed(cluster, alice)
    with raises_code(WorkflowErrorCode.CANNOT_RUN, ChangeRefused, name=f"#{change.pk}"):
        services.break_glass(change, admin, change.digest, "all burns")
    policy.delete()
    with raises_code(WorkflowErrorCode.GLASS_FORBIDDEN, ChangeRefused):
        services.break_glass(change, admin, change.digest, "all burns")
