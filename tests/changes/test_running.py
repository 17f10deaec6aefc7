"""Starting, pausing, resuming and cancelling: once, by those who may, with the reason kept."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db import connection

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.accounts.services import set_active
from kafkadash.changes import plan, services
from kafkadash.changes import services as running
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest, Policy, VoidCode
from kafkadash.changes.plan import PartitionMove
from kafkadash.changes.recheck import recheck
from kafkadash.changes.state_machine import ChangeState, WorkflowErrorCode
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster, ClusterRole, Role
from kafkadash.clusters.services import remove_role
from kafkadash.core.messages import coded, message_text
from kafkadash.monitoring.models import CollectorRun
from tests.changes.test_two_at_once import ATTEMPTS, at_once
from tests.changes.worlds import World, kind_registered, now_of, proposed
from tests.raised_codes import raises_code


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    with kind_registered(world, starts=True):
        yield world


def approved(cluster: Cluster, alice: User, bob: User) -> ChangeRequest:
    change = proposed(cluster, alice)
    return services.approve(change, bob, change.digest)


def in_state(change: ChangeRequest, state: ChangeState) -> ChangeRequest:
    ChangeRequest.objects.filter(pk=change.pk).update(state=state)
    return now_of(change)


def events(change: ChangeRequest, action: str) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(action=f"change.{action}", object_id=str(change.pk)))


@pytest.mark.parametrize("leaves", ["account closed", "role taken", "account deleted"])
def test_an_approval_counts_only_while_its_giver_may_approve(
    world: World, cluster: Cluster, alice: User, bob: User, leaves: str
) -> None:
    change = approved(cluster, alice, bob)
    match leaves:
        case "account closed":
            set_active("cli", bob, active=False)
        case "role taken":
            remove_role("cli", bob, Role.APPROVER)
        case _:
            bob.delete()
    with pytest.raises(ChangeRefused) as caught:
        running.start(now_of(change), alice)
    assert str(caught.value) == message_text(WorkflowErrorCode.LACKS_APPROVALS, name=f"#{change.pk}")
    recheck(change.cluster_id, datetime.now(UTC))
    after = now_of(change)
    assert after.state == ChangeState.STALE
    assert after.stale_reasons == [coded(ChangeErrorCode.APPROVER_LEFT, name="bob", cluster="orders-eu").as_json()]
    review = after.reviews.get()
    assert (review.void_code, review.void_by) == (VoidCode.MAY_NOT_APPROVE, "bob")


def test_an_approval_of_a_closed_account_leaves_its_place_to_another(
    world: World, cluster: Cluster, alice: User, bob: User, bea: User
) -> None:
    Policy.objects.create(cluster=cluster, approvals_low=2, approvals_medium=2, approvals_high=2)
    change = approved(cluster, alice, bob)
    set_active("cli", bob, active=False)
    recheck(change.cluster_id, datetime.now(UTC))
    assert now_of(change).state == ChangeState.PROPOSED
    assert now_of(change).reviews.get().void_at is not None
    assert services.approve(now_of(change), bea, change.digest).state == ChangeState.PROPOSED
    set_active("cli", bob, active=True)
    assert services.approve(now_of(change), bob, change.digest).state == ChangeState.APPROVED


def alter_options(change: ChangeRequest) -> None:
    ChangeRequest.objects.filter(pk=change.pk).update(options={"bounds": [0, 5_000_000_000]})


def alter_artifact(change: ChangeRequest) -> None:
    artifact = zlib.compress(plan.canonical_bytes((PartitionMove("orders", "id-1", 0, (1, 2, 3), (4, 5, 6)),)))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE changes_planartifact DISABLE TRIGGER USER")
        cursor.execute("UPDATE changes_planartifact SET data = %s WHERE sha256 = %s", [artifact, change.artifact_id])
        cursor.execute("ALTER TABLE changes_planartifact ENABLE TRIGGER USER")


def damage_artifact(change: ChangeRequest) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE changes_planartifact DISABLE TRIGGER USER")
        cursor.execute("UPDATE changes_planartifact SET data = %s WHERE sha256 = %s", [b"no zlib", change.artifact_id])
        cursor.execute("ALTER TABLE changes_planartifact ENABLE TRIGGER USER")


@pytest.mark.parametrize("alter", [alter_options, alter_artifact, damage_artifact])
class TestAlteredContent:
    def test_is_neither_approved_nor_started(
        self,
        world: World,
        cluster: Cluster,
        alice: User,
        bob: User,
        admin: User,
        alter: Callable[[ChangeRequest], None],
    ) -> None:
        Policy.objects.create(cluster=cluster, break_glass=True)
        open_one, other = proposed(cluster, alice), approved(cluster, alice, bob)
        alter(open_one)
        alter(other)
        deeds: list[tuple[ChangeRequest, Callable[[], object]]] = [
            (open_one, lambda: services.approve(now_of(open_one), bob, open_one.digest)),
            (open_one, lambda: services.break_glass(now_of(open_one), admin, open_one.digest, "Now.")),
            (other, lambda: running.start(now_of(other), alice)),
        ]
        for change, deed in deeds:
            with pytest.raises(ChangeRefused) as caught:
                deed()
            assert str(caught.value) == message_text(ChangeErrorCode.CONTENT_ALTERED, name=f"#{change.pk}")

    def test_makes_the_request_stale(
        self, world: World, cluster: Cluster, alice: User, bob: User, alter: Callable[[ChangeRequest], None]
    ) -> None:
        change = approved(cluster, alice, bob)
        alter(change)
        recheck(cluster.pk, datetime.now(UTC))
        after = now_of(change)
        assert after.state == ChangeState.STALE
        assert after.stale_reasons == [coded(ChangeErrorCode.CONTENT_ALTERED, name=f"#{change.pk}").as_json()]


class TestStart:
    def test_it_is_queued_and_the_audit_says_by_whom(
        self, world: World, cluster: Cluster, alice: User, ann: User, bob: User
    ) -> None:
        change = approved(cluster, alice, bob)
        after = running.start(change, ann, "The night is quiet.", "k1")
        assert after.state == ChangeState.QUEUED
        (event,) = events(change, "started")
        assert (event.actor_name, event.reason) == ("ann", "The night is quiet.")
        assert (event.after or {})["key"] == "k1"

    def test_the_same_key_again_is_the_same_start(self, world: World, cluster: Cluster, alice: User, bob: User) -> None:
        change = approved(cluster, alice, bob)
        running.start(change, alice, key="k1")
        in_state(change, ChangeState.EXECUTING)
        assert running.start(change, alice, key="k1").state == ChangeState.EXECUTING
        assert len(events(change, "started")) == 1
        for key in ("", "k2"):
            with raises_code(WorkflowErrorCode.NOT_FROM_HERE, ChangedMeanwhile, done="started", match="alice"):
                running.start(change, alice, key=key)

    def test_an_old_key_does_not_start_what_was_approved_anew(
        self, world: World, cluster: Cluster, alice: User, bob: User
    ) -> None:
        change = approved(cluster, alice, bob)
        key, seen = running.start_key(change, alice), change.round
        running.start(change, alice, key=key, seen_round=seen)
        services.withdraw(change, alice, "Not now.")
        draft = now_of(change)
        again = services.submit(draft, alice, why="Now it is.", version=draft.version)
        services.approve(again, bob, again.digest)
        with raises_code(ChangeErrorCode.CHANGED_MEANWHILE, ChangedMeanwhile):
            running.start(change, alice, key=key, seen_round=seen)
        assert running.start_key(now_of(change), alice) != key

    def test_who_lost_the_role_meanwhile_is_told(self, world: World, cluster: Cluster, alice: User, bob: User) -> None:
        change = approved(cluster, alice, bob)
        ClusterRole.objects.filter(user=alice).update(role=Role.VIEWER)
        with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, roles="operator"):
            running.start(change, alice)
        with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, cluster="orders-eu"):
            running.start(change, bob)
        assert now_of(change).state == ChangeState.APPROVED

    def test_a_cluster_that_became_read_only_refuses(
        self, world: World, cluster: Cluster, alice: User, bob: User
    ) -> None:
        change = approved(cluster, alice, bob)
        Cluster.objects.update(read_only=True)
        with raises_code(ClusterErrorCode.READ_ONLY, ChangeRefused, cluster="orders-eu"):
            running.start(change, alice)

    def test_old_facts_refuse(self, world: World, cluster: Cluster, alice: User, bob: User) -> None:
        change = approved(cluster, alice, bob)
        CollectorRun.objects.update(succeeded_at=datetime.now(UTC) - timedelta(hours=1))
        with raises_code(ChangeErrorCode.FACTS_TOO_OLD, ChangeRefused, match="1 h"):
            running.start(change, alice)

    def test_what_is_not_approved_or_over_is_not_started(
        self, world: World, cluster: Cluster, alice: User, bob: User
    ) -> None:
        change = proposed(cluster, alice)
        with raises_code(WorkflowErrorCode.NOT_FROM_HERE, ChangedMeanwhile, state="proposed", done="started"):
            running.start(change, alice)
        services.approve(change, bob, change.digest)
        ChangeRequest.objects.update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
        with raises_code(WorkflowErrorCode.TIME_OVER, ChangedMeanwhile):
            running.start(change, alice)
        with raises_code(ChangeErrorCode.START_KEY_TOO_LONG, ChangeRefused, most=100):
            running.start(change, alice, key="k" * 101)

    def test_a_kind_that_cannot_be_run_is_not_started(self, cluster: Cluster, alice: User, bob: User) -> None:
        with kind_registered(World()):
            change = approved(cluster, alice, bob)
            with raises_code(WorkflowErrorCode.CANNOT_RUN, ChangeRefused):
                running.start(change, alice)


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    def test_pressed_twice_it_is_started_once_and_nobody_gets_an_error(
        self, world: World, cluster: Cluster, alice: User, bob: User
    ) -> None:
        for _ in range(ATTEMPTS):
            change = approved(cluster, alice, bob)
            key = running.start_key(change, alice)
            results = at_once(*[partial(running.start, change, alice, key=key)] * 3)
            assert [getattr(result, "state", result) for result in results] == [ChangeState.QUEUED] * 3
            assert len(events(change, "started")) == 1

    def test_of_two_people_one_starts_it_and_the_other_is_told(
        self, world: World, cluster: Cluster, alice: User, ann: User, bob: User
    ) -> None:
        for _ in range(ATTEMPTS):
            change = approved(cluster, alice, bob)
            results = at_once(
                *(partial(running.start, change, user, key=running.start_key(change, user)) for user in (alice, ann))
            )
            (told,) = (result for result in results if isinstance(result, ChangeRefused))
            assert "started it on" in str(told)
            assert len(events(change, "started")) == 1

    def test_a_start_and_a_withdrawal_end_in_one_or_the_other(
        self, world: World, cluster: Cluster, alice: User, ann: User, bob: User
    ) -> None:
        for _ in range(ATTEMPTS):
            change = approved(cluster, alice, bob)
            results = at_once(
                partial(running.start, change, alice), partial(services.withdraw, change, ann, "Not tonight.")
            )
            state = now_of(change).state
            assert state == ChangeState.DRAFT, "withdrawn before or after its start"
            assert sum(isinstance(result, ChangeRefused) for result in results) <= 1


@pytest.fixture
def runs(world: World, cluster: Cluster, alice: User, bob: User) -> ChangeRequest:
    return in_state(approved(cluster, alice, bob), ChangeState.EXECUTING)


class TestSteering:
    def test_it_is_paused_resumed_and_cancelled_with_reasons(self, runs: ChangeRequest, alice: User, bob: User) -> None:
        assert running.pause(runs, alice, "p99 is high.").state == ChangeState.PAUSED
        assert running.resume(runs, alice, "It is down again.").state == ChangeState.EXECUTING
        assert running.cancel(runs, bob, "Wrong broker.").state == ChangeState.CANCELLING
        said = {action: events(runs, action)[0] for action in ("paused", "resumed", "cancelled")}
        assert [(e.actor_name, e.reason) for e in said.values()] == [
            ("alice", "p99 is high."),
            ("alice", "It is down again."),
            ("bob", "Wrong broker."),
        ]

    def test_a_pause_does_not_wait_for_words(self, runs: ChangeRequest, alice: User) -> None:
        assert running.pause(runs, alice, " \n").state == ChangeState.PAUSED
        assert events(runs, "paused")[0].reason == ""

    @pytest.mark.parametrize("deed", [running.resume, running.cancel])
    @pytest.mark.parametrize("nothing", ["", " \n"])
    def test_all_else_needs_a_reason(
        self, deed: Callable[..., ChangeRequest], nothing: str, runs: ChangeRequest, alice: User
    ) -> None:
        with pytest.raises(ChangeRefused, match="Enter a reason to"):
            deed(runs, alice, nothing)
        assert now_of(runs).state == ChangeState.EXECUTING

    def test_an_approver_cancels_and_nothing_else(self, runs: ChangeRequest, bob: User) -> None:
        for deed in (running.pause, running.resume):
            with raises_code(ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, roles="operator"):
                deed(runs, bob, "Because.")
        assert running.cancel(runs, bob, "Because.").state == ChangeState.CANCELLING

    def test_a_viewer_cancels_nothing(self, runs: ChangeRequest, make_user: Callable[..., User]) -> None:
        with raises_code(
            ChangeErrorCode.NEEDS_ROLE_NOW, ChangeRefused, cluster="orders-eu", roles="operator or approver"
        ):
            running.cancel(runs, make_user("vera", Role.VIEWER), "Because.")

    def test_a_read_only_cluster_lets_pause_and_cancel_but_not_go_on(self, runs: ChangeRequest, alice: User) -> None:
        Cluster.objects.update(read_only=True)
        assert running.pause(runs, alice, "Read-only now.").state == ChangeState.PAUSED
        with raises_code(ClusterErrorCode.READ_ONLY, ChangeRefused, cluster="orders-eu"):
            running.resume(runs, alice, "Because.")
        assert running.cancel(runs, alice, "Read-only now.").state == ChangeState.CANCELLING

    def test_what_somebody_else_did_first_is_said(self, runs: ChangeRequest, alice: User, ann: User) -> None:
        running.cancel(runs, ann, "Wrong broker.")
        for deed in (running.pause, running.cancel):
            with raises_code(WorkflowErrorCode.NOT_FROM_HERE, ChangedMeanwhile, state="cancelling", match="ann"):
                deed(runs, alice, "Because.")
