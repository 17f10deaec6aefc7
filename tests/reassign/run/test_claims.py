"""What a run set and moves is shown as its own while it does, and as nobody's afterwards."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.domain.throttles import LEADER_LIST, LEADER_RATE
from kafkadash.kafka.port import ConfigResource
from kafkadash.observe.models import CollectorRun, Kind, Outcome, ReassignmentSnapshot, StartedFrom, ThrottleState
from kafkadash.reassign.models import Move, ThrottleEntry
from kafkadash.reassign.run.claims import reconcile
from kafkadash.reassign.run.rest_of_cluster import OTHERS_CLEAR
from tests.factories import ReassignmentFactory, ThrottleFactory
from tests.reassign.run.runs import World


def found(world: World) -> None:
    """What the collectors find: every throttle that is set, and the first moves."""
    for resource, values in world.kafka.configs.items():
        for key, value in values.items():
            kind = "topic" if resource == ConfigResource.topic(resource.name) else "broker"
            ThrottleFactory.create(cluster=world.cluster, resource=kind, name=resource.name, key=key, value=value)
    for move in Move.objects.exclude(submitted_at=None):
        ReassignmentFactory.create(
            cluster=world.cluster,
            topic=move.topic,
            topic_id=move.topic_id,
            partition=move.partition,
            target=move.target,
            adding=[6],
            removing=[3],
        )


def test_ours_is_claimed_with_the_time_it_was_submitted(world: World, operator: User) -> None:
    change = world.queue(operator)
    world.tick()
    world.tick()
    found(world)
    theirs = ThrottleFactory.create(cluster=world.cluster, name="9")
    reconcile(world.cluster.pk, world.clock)
    ours = ThrottleState.objects.exclude(claimed_by="")
    assert ours.count() == ThrottleState.objects.count() - 1
    assert ours.filter(key=LEADER_RATE, claimed_by=f"#{change.pk}", claim_url=f"/changes/{change.pk}/").count() == 6
    assert ours.filter(key=LEADER_LIST).count() == 2
    theirs.refresh_from_db()
    assert (theirs.claimed_by, theirs.claimed_at) == ("", None)
    for row in ReassignmentSnapshot.objects.all():
        move = Move.objects.get(topic=row.topic, partition=row.partition)
        assert (row.claimed_by, row.started_from) == (f"#{change.pk}", StartedFrom.SUBMITTED)
        assert row.started_after == row.started_before == move.submitted_at
    assert ReassignmentSnapshot.objects.count() >= 1


def test_what_it_removed_is_said_to_be_so_until_it_is_read_again(world: World, operator: User) -> None:
    change = world.queue(operator)
    world.tick()
    world.tick()
    found(world)
    ThrottleState.objects.update(read_at=world.clock)
    theirs = ThrottleFactory.create(cluster=world.cluster, name="9")
    reconcile(world.cluster.pk, world.clock)
    world.until("done")
    reconcile(world.cluster.pk, world.clock)
    removed = ThrottleState.objects.exclude(removed_at=None)
    assert set(removed.values_list("claimed_by", flat=True)) == {f"#{change.pk}"}
    assert removed.count() == ThrottleState.objects.count() - 1
    assert not removed.filter(pk=theirs.pk).exists()
    standing = removed.order_by("pk").last()
    assert standing is not None
    ThrottleState.objects.filter(pk=standing.pk).update(read_at=standing.removed_at)
    reconcile(world.cluster.pk, world.clock)
    standing.refresh_from_db()
    assert (standing.claimed_by, standing.removed_at) == ("", None), "it stands there, so somebody else set it"


def test_a_run_that_sets_and_removes_throttles_has_configs_read_at_once(
    world: World, operator: User, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    def due() -> bool:
        found = CollectorRun.objects.filter(kind=Kind.CONFIGS, next_at__lte=Now()).exists()
        CollectorRun.objects.update(next_at=Now() + timedelta(hours=1))
        return found

    due()
    world.queue(operator)
    with django_capture_on_commit_callbacks(execute=True):
        world.tick()
        world.tick()
    assert due()
    with django_capture_on_commit_callbacks(execute=True):
        world.until("done")
    assert due()


def test_when_it_has_ended_nothing_is_claimed_but_what_it_was(world: World, operator: User) -> None:
    change = world.queue(operator)
    world.tick()
    world.tick()
    found(world)
    reconcile(world.cluster.pk, world.clock)
    world.until("done")
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()
    ThrottleState.objects.update(unneeded_since=world.clock - timedelta(minutes=1), read_at=world.clock)
    ended = ReassignmentSnapshot.objects.order_by("pk").first()
    assert ended is not None
    ReassignmentSnapshot.objects.filter(pk=ended.pk).update(outcome=Outcome.COMPLETED, ended_at=world.clock)
    reconcile(world.cluster.pk, world.clock)
    assert not ThrottleState.objects.exclude(claimed_by="").exists()
    assert not ThrottleState.objects.filter(unneeded_since__isnull=False).exists(), "judged from here on"
    assert not ReassignmentSnapshot.objects.filter(outcome=Outcome.RUNNING).exclude(claimed_by="").exists()
    ended.refresh_from_db()
    assert (ended.claimed_by, ended.started_from) == (f"#{change.pk}", StartedFrom.SUBMITTED)


def test_a_reassignment_to_another_target_is_not_ours(world: World, operator: User) -> None:
    world.queue(operator)
    world.tick()
    world.tick()
    found(world)
    ReassignmentSnapshot.objects.update(target=[4, 5, 6])
    reconcile(world.cluster.pk, world.clock)
    assert not ReassignmentSnapshot.objects.exclude(claimed_by="").exists()


def test_what_had_stood_there_before_just_the_same_is_not_ours(world: World, operator: User) -> None:
    change = world.queue(operator)
    rate = str(world.run().throttle)
    world.kafka.configs[ConfigResource.broker(6)] = {LEADER_RATE: rate}
    long_ago = world.clock - 2 * OTHERS_CLEAR
    read = ThrottleFactory.create(cluster=world.cluster, name="6", key=LEADER_RATE, value=rate, changed_at=long_ago)
    world.tick()
    world.tick()
    read.delete()
    found(world)
    reconcile(world.cluster.pk, world.clock)
    same = ThrottleState.objects.get(name="6", key=LEADER_RATE)
    assert (same.value, same.claimed_by) == (rate, "")
    assert ThrottleState.objects.filter(name="6", claimed_by=f"#{change.pk}").count() == 1


def test_nothing_is_written_when_nothing_differs(
    world: World, operator: User, django_assert_num_queries: object
) -> None:
    world.queue(operator)
    world.tick()
    world.tick()
    found(world)
    reconcile(world.cluster.pk, world.clock)
    with django_assert_num_queries(6):  # type: ignore[operator]
        reconcile(world.cluster.pk, world.clock)
