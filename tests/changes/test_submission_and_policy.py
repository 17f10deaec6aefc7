"""What is proposed says why, has a plan, and was compared with a cluster that was read just now.

What waits for a person: what he may approve now, and what he has to refresh.

A stored plan is never changed; one that nobody refers to is forgotten after a day; a cluster takes its own along.

What a cluster asks of its changes: defaults without a row, sentences for what makes no sense, an audit event.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import plan, services
from kafkadash.changes import services as drafting
from kafkadash.changes.checks import CheckResult
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode, ChangeRefused, EditedMeanwhile
from kafkadash.changes.lists import waiting_count, waiting_for
from kafkadash.changes.models import ChangeRequest, Comment, PlanArtifact, Policy, PolicyLoosening, Review, VoidCode
from kafkadash.changes.plans import keep_artifact, prune_artifacts
from kafkadash.changes.policy import (
    BadPolicy,
    apply_due_loosenings,
    change_policy,
    confirm_loosening,
    drop_loosening,
    policy_of,
    rules_of,
    waiting_loosening,
)
from kafkadash.changes.recheck import recheck
from kafkadash.changes.risk import RiskCode
from kafkadash.changes.state_machine import ChangeState, PolicyRules, WorkflowErrorCode
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.clusters.removal import list_belongings, purge_removed, remove_cluster
from kafkadash.clusters.services import give_role
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import coded, message_cause, message_text
from kafkadash.jobs.models import Job, JobState
from kafkadash.monitoring.models import CollectorKind, CollectorRun
from kafkadash.planning.models import PlanReport
from tests.changes.worlds import (
    ALIVE,
    AS_PLANNED,
    DANGEROUS,
    MOVED,
    NOT_KNOWN,
    OTHER_ROWS,
    ROWS,
    World,
    draft,
    now_of,
    planned,
    proposed,
)
from tests.raised_codes import raises_code

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
        ChangeState.PROPOSED,
        1,
        "Its disk fails.",
        ready.digest,
    )
    assert (change.risk, change.approvals_needed) == (4, 1)
    ((points, why),) = change.risk_reasons
    assert (points, why["code"], why["params"]) == (4, RiskCode.BYTES, {"share": 0.01})
    assert change.checks == [pack_dataclass(AS_PLANNED), pack_dataclass(ALIVE)]
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
    with raises_code(ChangeErrorCode.WHY_MISSING, ChangeRefused):
        services.submit(ready, alice, why=why, version=ready.version)


def test_it_has_a_plan(world: World, cluster: Cluster, alice: User, submit: Submit) -> None:
    with raises_code(WorkflowErrorCode.PLAN_MISSING, ChangeRefused):
        submit(draft(cluster, alice))


def test_the_plan_does_something(world: World, cluster: Cluster, alice: User, submit: Submit) -> None:
    with raises_code(ChangeErrorCode.PLAN_EMPTY, ChangeRefused):
        submit(planned(draft(cluster, alice), ()))


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING])
def test_no_other_plan_is_being_made(ready: ChangeRequest, submit: Submit, state: JobState) -> None:
    job = Job.objects.create(kind="plan", cluster=ready.cluster, state=state)
    ChangeRequest.objects.update(job=job)
    with raises_code(ChangeErrorCode.PLAN_UNDER_WAY, ChangeRefused, number=ready.pk):
        submit(ready)


def test_it_is_the_version_that_the_author_saw(ready: ChangeRequest, ann: User, submit: Submit) -> None:
    drafting.edit_draft(ready, ann, ready.version, title="Drain broker 4")
    with raises_code(ChangeErrorCode.EDITED_MEANWHILE, EditedMeanwhile, who="ann", number=ready.pk):
        submit(ready)


def test_it_is_the_plan_that_the_author_saw(ready: ChangeRequest, alice: User) -> None:
    with raises_code(ChangeErrorCode.PLANNED_ANEW, ChangedMeanwhile):
        services.submit(ready, alice, why="Its disk fails.", version=ready.version, digest="0" * 64)


def test_content_that_failed_without_a_problem__is_refused(ready: ChangeRequest, submit: Submit, world: World) -> None:
    world.checks = (replace(MOVED, problems=()), ALIVE)
    with pytest.raises(ChangeRefused) as refused:
        submit(ready)
    assert message_cause(ChangeErrorCode.NOT_TRUE_ANY_MORE, check=MOVED.title) in str(refused.value)


def test_content_that_failed_is_named(ready: ChangeRequest, submit: Submit, world: World) -> None:
    world.checks = (MOVED, ALIVE)
    with pytest.raises(ChangeRefused) as caught:
        submit(ready)
    first = MOVED.problems[0]
    assert caught.value.message == coded(ChangeErrorCode.PLAN_NO_LONGER_FITS, first=first, total=1, others=0)


def test_content_that_nobody_could_check_is_no_content_that_passed(
    ready: ChangeRequest, submit: Submit, world: World
) -> None:
    world.checks = (NOT_KNOWN, ALIVE)
    with pytest.raises(ChangeRefused) as caught:
        submit(ready)
    assert caught.value.message == coded(ChangeErrorCode.PLAN_NOT_CHECKED, checks=(NOT_KNOWN.title,))


@pytest.mark.parametrize("result", [CheckResult.FAILED, CheckResult.UNKNOWN])
def test_health_does_not_matter_yet(ready: ChangeRequest, submit: Submit, world: World, result: CheckResult) -> None:
    world.checks = (AS_PLANNED, replace(ALIVE, result=result))
    assert submit(ready).state == ChangeState.PROPOSED


@pytest.mark.parametrize("kind", [CollectorKind.METADATA, CollectorKind.REASSIGNMENTS])
def test_stale_facts_prove_nothing(ready: ChangeRequest, submit: Submit, kind: CollectorKind) -> None:
    CollectorRun.objects.filter(kind=kind).update(succeeded_at=datetime.now(UTC) - timedelta(minutes=5))
    with raises_code(ChangeErrorCode.FACTS_TOO_OLD, ChangeRefused, cluster="orders-eu", match="5 min"):
        submit(ready)


@pytest.mark.parametrize("kind", [CollectorKind.METADATA, CollectorKind.REASSIGNMENTS])
def test_facts_that_were_never_read_prove_nothing(ready: ChangeRequest, submit: Submit, kind: CollectorKind) -> None:
    CollectorRun.objects.filter(kind=kind).update(succeeded_at=None)
    with raises_code(ChangeErrorCode.FACTS_NOT_READ, ChangeRefused):
        submit(ready)


def test_a_window_that_is_over_is_refused(world: World, cluster: Cluster, alice: User, submit: Submit) -> None:
    change = planned(draft(cluster, alice, not_before="2026-01-01T00:00:00Z", not_after="2026-01-02T00:00:00Z"))
    with raises_code(WorkflowErrorCode.WINDOW_OVER, ChangeRefused, name=f"#{change.pk}"):
        submit(change)


def test_a_role_taken_away_meanwhile_and_a_read_only_cluster_count(ready: ChangeRequest, submit: Submit) -> None:
    Cluster.objects.update(read_only=True)
    with raises_code(ClusterErrorCode.READ_ONLY, ChangeRefused, cluster="orders-eu"):
        submit(ready)
    Cluster.objects.update(read_only=False)
    ClusterRole.objects.all().delete()
    with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, roles="operator"):
        submit(ready)
    assert now_of(ready).state == ChangeState.DRAFT


def test_twice_is_once(ready: ChangeRequest, submit: Submit) -> None:
    submit(ready)
    with raises_code(ChangeErrorCode.NO_DRAFT_ANY_MORE, ChangedMeanwhile, match="alice"):
        submit(ready)
    assert now_of(ready).round == 1


def test_withdrawing_makes_approvals_void(ready: ChangeRequest, submit: Submit, alice: User, bob: User) -> None:
    change = submit(ready)
    services.approve(change, bob, change.digest)
    back = services.withdraw(change, alice, "The disk was replaced.")
    assert (back.state, back.approvals_needed, back.expires_at) == (ChangeState.DRAFT, None, None)
    review = back.reviews.get()
    assert review.void_at is not None
    assert (review.void_code, review.void_by) == (VoidCode.WITHDRAWN, "alice")
    assert AuditEvent.objects.get(action="change.withdrawn").reason == "The disk was replaced."
    again = submit(back)
    assert (again.state, again.round, again.digest) == (ChangeState.PROPOSED, 2, change.digest), "the same, unapproved"


def test_an_approved_one_is_not_edited_in_place(ready: ChangeRequest, submit: Submit, alice: User, bob: User) -> None:
    change = submit(ready)
    change = services.approve(change, bob, change.digest)
    with raises_code(WorkflowErrorCode.WITHDRAW_FIRST, ChangedMeanwhile, name=f"#{change.pk}", state="approved"):
        services.edit(change, alice)


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


@pytest.fixture
def artifact(db: None) -> PlanArtifact:
    return keep_artifact(plan.canonical_bytes(ROWS), len(ROWS))


def aged(artifact: PlanArtifact) -> PlanArtifact:
    """As if made two days ago; the row is written anew, as none can be changed."""
    again = PlanArtifact(sha256=artifact.sha256, data=artifact.data, rows=artifact.rows)
    artifact.delete()
    again.created_at = Now() - timedelta(days=2)
    again.save(force_insert=True)
    return again


def test_it_is_what_was_hashed(artifact: PlanArtifact) -> None:
    assert plan.hash_artifact(zlib.decompress(artifact.data)) == artifact.sha256
    assert plan.read_rows(zlib.decompress(artifact.data)) == ROWS


def test_made_again_it_is_the_same_row(artifact: PlanArtifact) -> None:
    assert keep_artifact(plan.canonical_bytes(reversed(ROWS)), len(ROWS)) == artifact
    assert PlanArtifact.objects.count() == 1


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE changes_planartifact SET rows = 1",
        "UPDATE changes_planartifact SET data = ''",
        "SET LOCAL session_replication_role = replica; UPDATE changes_planartifact SET rows = 1",
    ],
)
def test_the_database_refuses_to_change_it(artifact: PlanArtifact, sql: str) -> None:
    with (
        pytest.raises(DatabaseError, match="plans are never changed: UPDATE"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)
    assert PlanArtifact.objects.get().rows == 2


def test_it_is_forgotten_a_day_after_nobody_refers_to_it(artifact: PlanArtifact) -> None:
    assert prune_artifacts() == 0, "a request may be about to refer to it"
    aged(artifact)
    assert prune_artifacts() == 1
    assert not PlanArtifact.objects.exists()


def test_it_is_kept_while_a_request_or_a_report_refers_to_it(
    world: World, cluster: Cluster, alice: User, artifact: PlanArtifact
) -> None:
    artifact = aged(artifact)
    change = planned(draft(cluster, alice))
    assert change.artifact_id == artifact.sha256
    assert prune_artifacts() == 0
    PlanReport.objects.create(request=change, artifact_id=artifact.sha256, impact={}, took_s=0.1)
    planned(change, OTHER_ROWS)
    assert prune_artifacts() == 0, "what the page shows is of the old plan until the new report is there"
    PlanReport.objects.all().delete()
    assert prune_artifacts() == 1


def test_a_removed_cluster_takes_its_requests_along(world: World, cluster: Cluster, alice: User, bob: User) -> None:
    change = proposed(cluster, alice)
    PlanReport.objects.create(request=change, artifact=PlanArtifact.objects.get(), impact={}, took_s=0.1)
    services.comment(change, bob, "fine")
    services.approve(change, bob, change.digest)
    drafting.copy(change, alice)
    Policy.objects.create(cluster=cluster)
    words = {each.words: each.rows for each in list_belongings(cluster)}
    assert words["change requests"] == 2
    remove_cluster(alice, cluster, typed_name="orders-eu")
    while purge_removed(batch=1):
        pass
    assert not Cluster.with_removed.exists()
    for model in (ChangeRequest, Comment, Review, Policy, PlanReport):
        assert not model._base_manager.exists()
    assert PlanArtifact.objects.exists()
    assert AuditEvent.objects.filter(action="change.approved").exists(), "the audit keeps what was done"


MakeUser = Callable[..., User]

STRICT = PolicyRules(1, 1, 2, 24, self_approval=False, break_glass=False)
LOOSER: dict[str, int | bool] = {"approvals_high": 1, "break_glass": True}


@pytest.fixture
def other_admin(make_user: MakeUser) -> User:
    return make_user("ada", Role.ADMIN)


def rules(cluster: Cluster) -> PolicyRules:
    return rules_of(policy_of(cluster))


def seen(cluster: Cluster) -> str:
    waiting = waiting_loosening(cluster)
    assert waiting is not None
    return waiting.asked_at.isoformat()


def let_it_count(cluster: Cluster) -> None:
    PolicyLoosening.objects.filter(cluster=cluster).update(counts_from=Now())


def test_a_cluster_without_a_row_has_the_defaults(
    cluster: Cluster, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert rules(cluster) == STRICT


def test_a_stricter_policy_holds_at_once_and_the_audit_says_before_and_after(cluster: Cluster, admin: User) -> None:
    change_policy(cluster, admin, {"approvals_high": 3, "valid_hours": 12}, reason="four eyes twice")
    assert rules(cluster) == replace(STRICT, approvals_high=3, valid_hours=12)
    event = AuditEvent.objects.get(action="policy.changed")
    assert (event.actor_name, event.cluster, event.reason) == ("adam", "orders-eu", "four eyes twice")
    assert event.before == {"approvals_high": 2, "valid_hours": 24}
    assert event.after == {"approvals_high": 3, "valid_hours": 12}


class TestLoosening:
    def test_needs_a_second_administrator_and_a_day(self, cluster: Cluster, admin: User, other_admin: User) -> None:
        change_policy(cluster, admin, LOOSER, reason="Nobody is left.")
        assert rules(cluster) == STRICT
        with pytest.raises(ChangeRefused) as caught:
            confirm_loosening(cluster, admin, seen(cluster))
        assert str(caught.value) == message_text(ChangeErrorCode.LOOSENING_NEEDS_ANOTHER, cluster=cluster.slug)
        apply_due_loosenings()
        assert rules(cluster) == STRICT
        confirmed = confirm_loosening(cluster, other_admin, seen(cluster))
        assert confirmed.counts_from is not None
        assert confirmed.counts_from - timezone.now() > timedelta(hours=23)
        assert apply_due_loosenings() == 0
        assert rules(cluster) == STRICT
        let_it_count(cluster)
        assert apply_due_loosenings() == 1
        assert rules(cluster) == replace(STRICT, approvals_high=1, break_glass=True)
        actions = AuditEvent.objects.order_by("id").values_list("action", "actor_name")
        assert list(actions) == [
            ("policy.loosening_asked", "adam"),
            ("policy.loosening_confirmed", "ada"),
            ("policy.loosened", "kafkadash"),
        ]

    @pytest.mark.parametrize("who", ["asker gave the role", "role is new"])
    def test_is_not_confirmed_by_a_role_that_does_not_count(
        self, cluster: Cluster, admin: User, make_user: MakeUser, who: str
    ) -> None:
        puppet = make_user("puppet")
        give_role(admin, puppet, Role.ADMIN)
        if who == "asker gave the role":
            ClusterRole.objects.filter(user=puppet).update(counts_from=Now())
        change_policy(cluster, admin, LOOSER, reason="Nobody is left.")
        with pytest.raises(ChangeRefused):
            confirm_loosening(cluster, puppet, seen(cluster))
        assert waiting_loosening(cluster).counts_from is None  # type: ignore[union-attr]

    def test_two_administrators_against_each_other(self, cluster: Cluster, admin: User, other_admin: User) -> None:
        change_policy(cluster, admin, LOOSER, reason="Nobody is left.")
        with pytest.raises(ChangeRefused) as caught:
            change_policy(cluster, other_admin, {"self_approval": True}, reason="Me too.")
        assert str(caught.value) == message_text(ChangeErrorCode.LOOSENING_WAITS, who="adam", cluster="orders-eu")
        before = seen(cluster)
        drop_loosening(cluster, other_admin, before)
        change_policy(cluster, other_admin, {"self_approval": True}, reason="Me too.")
        with pytest.raises(ChangedMeanwhile):
            confirm_loosening(cluster, admin, before)
        assert rules(cluster) == STRICT

    def test_ends_where_the_policy_becomes_stricter(self, cluster: Cluster, admin: User, other_admin: User) -> None:
        change_policy(cluster, admin, LOOSER, reason="Nobody is left.")
        confirm_loosening(cluster, other_admin, seen(cluster))
        change_policy(cluster, other_admin, {"approvals_high": 3}, reason="No.")
        assert waiting_loosening(cluster) is None
        assert apply_due_loosenings() == 0
        assert rules(cluster) == replace(STRICT, approvals_high=3)

    def test_holds_at_once_where_it_is_set_on_the_server(self, cluster: Cluster, admin: User) -> None:
        change_policy(cluster, admin, LOOSER, reason="Nobody is left.")
        command = ["policy", cluster.slug, "--approvals-high", "1", "--self-approval", "yes"]
        with pytest.raises(CommandError):
            call_command(*command)
        out = StringIO()
        call_command(*command, "--reason", "First day.", stdout=out)
        assert rules(cluster) == replace(STRICT, approvals_high=1, self_approval=True)
        assert "self-approval: True" in out.getvalue()
        assert waiting_loosening(cluster) is None
        assert AuditEvent.objects.get(action="policy.changed").actor_name == "command line"


def test_what_stays_is_no_event(cluster: Cluster, admin: User) -> None:
    change_policy(cluster, admin, {"approvals_high": 2})
    assert not AuditEvent.objects.exists()
    assert not Policy.objects.exists()


@pytest.mark.parametrize(
    ("values", "field", "code"),
    [
        ({"approvals_low": 0}, "approvals_low", ChangeErrorCode.POLICY_APPROVALS),
        ({"approvals_high": 6}, "approvals_high", ChangeErrorCode.POLICY_APPROVALS),
        ({"approvals_low": 3}, "approvals_high", ChangeErrorCode.POLICY_ORDER),
        ({"approvals_medium": 3}, "approvals_high", ChangeErrorCode.POLICY_ORDER),
        ({"valid_hours": 0}, "valid_hours", ChangeErrorCode.POLICY_HOURS),
        ({"valid_hours": 721}, "valid_hours", ChangeErrorCode.POLICY_HOURS),
    ],
)
def test_what_makes_no_sense_is_refused(
    cluster: Cluster, admin: User, values: dict[str, int], field: str, code: ChangeErrorCode
) -> None:
    with pytest.raises(BadPolicy) as refused:
        change_policy(cluster, admin, values)
    assert {name: message.code for name, message in refused.value.messages.items()} == {field: code}
    assert not Policy.objects.exists()


def test_it_is_for_administrators(cluster: Cluster, alice: User) -> None:
    with raises_code(ChangeErrorCode.POLICY_NEEDS_ROLE, ChangeRefused, cluster="orders-eu", roles="admin"):
        change_policy(cluster, alice, {"self_approval": True})


def test_a_read_only_cluster_has_a_policy_too(cluster: Cluster, admin: User) -> None:
    Cluster.objects.update(read_only=True)
    change_policy(cluster, admin, {"valid_hours": 12})
    assert policy_of(cluster).valid_hours == 12
