"""Events for receivers, recorded by the real transitions of a change, in their transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from unittest import mock

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes import services, transitions
from kafkadash.changes.expiry import expire_due
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.recheck import recheck
from kafkadash.changes.state_machine import ChangeState, ChangeTrigger
from kafkadash.changes.worker_transitions import move_itself
from kafkadash.clusters.models import Cluster
from kafkadash.notifications.errors import NotificationCode as Code
from kafkadash.notifications.models import EventStep, EventSubject, NotificationEvent
from tests.changes.worlds import ALIVE, AS_PLANNED, MOVED, World, kind_registered, now_of, proposed, refreshed

pytestmark = pytest.mark.django_db

WAITING = (EventStep.WAITING, Code.CHANGE_WAITING, None)
APPROVED = (EventStep.APPROVED, Code.CHANGE_APPROVED, None)
STARTED = (EventStep.STARTED, Code.CHANGE_STARTED, None)


class People(SimpleNamespace):
    """Those who act on a change: alice proposes and runs it, bob approves it."""

    alice: User
    bob: User
    world: World


Deed = Callable[[ChangeRequest, People], object]


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    with kind_registered(world, starts=True):
        yield world


@pytest.fixture
def people(alice: User, bob: User, world: World) -> People:
    return People(alice=alice, bob=bob, world=world)


def approve(change: ChangeRequest, people: People) -> None:
    services.approve(change, people.bob, change.digest)


def run(change: ChangeRequest, people: People) -> None:
    approve(change, people)
    services.start(now_of(change), people.alice)
    by_itself(ChangeTrigger.TURN)(now_of(change), people)


def by_itself(trigger: ChangeTrigger, *, clean: bool = True) -> Deed:
    return lambda change, _people: move_itself(change, trigger, datetime.now(UTC), clean=clean)


def turn_stale(change: ChangeRequest, people: People) -> None:
    people.world.checks = (MOVED, ALIVE)
    recheck(change.cluster_id, datetime.now(UTC))
    people.world.checks = (AS_PLANNED, ALIVE)


def expire(change: ChangeRequest, _people: People) -> None:
    ChangeRequest.objects.filter(pk=change.pk).update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    expire_due()


def ended(state: ChangeState) -> tuple[EventStep, Code, str]:
    return (EventStep.ENDED, Code.CHANGE_ENDED, state.value)


def told(change: ChangeRequest) -> list[tuple[str, str, str | None]]:
    events = NotificationEvent.objects.filter(subject=EventSubject.CHANGE, subject_id=str(change.pk)).order_by("pk")
    return [(event.step, event.message_code, event.message_params.get("state")) for event in events]


PAUSED_AND_DONE: tuple[Deed, ...] = (
    run,
    lambda change, people: services.pause(change, people.alice),
    lambda change, people: services.resume(change, people.alice, "The lag is gone."),
    by_itself(ChangeTrigger.ROWS_ENDED),
    by_itself(ChangeTrigger.VERIFIED),
)


@pytest.mark.parametrize(
    ("deeds", "steps"),
    [
        (PAUSED_AND_DONE, [APPROVED, STARTED, ended(ChangeState.DONE)]),
        (
            (*PAUSED_AND_DONE[:-1], by_itself(ChangeTrigger.VERIFIED, clean=False)),
            [APPROVED, STARTED, (EventStep.ENDED, Code.CHANGE_WITH_EXCEPTIONS, ChangeState.DONE.value)],
        ),
        (
            (lambda change, people: services.decline(change, people.bob, change.digest, "Not this week."),),
            [(EventStep.DECLINED, Code.CHANGE_DECLINED, None)],
        ),
        (
            (turn_stale, lambda change, people: refreshed(change, people.alice), expire),
            [(EventStep.STALE, Code.CHANGE_STALE, None), WAITING, ended(ChangeState.EXPIRED)],
        ),
        (
            (
                run,
                lambda change, people: services.cancel(change, people.alice, "Wrong broker."),
                by_itself(ChangeTrigger.CLEAN),
            ),
            [APPROVED, STARTED, ended(ChangeState.CANCELLED)],
        ),
        ((run, by_itself(ChangeTrigger.GIVE_UP)), [APPROVED, STARTED, ended(ChangeState.FAILED)]),
        ((lambda change, people: services.withdraw(change, people.alice, "Not now."),), []),
    ],
    ids=["done", "exceptions", "declined", "expired", "cancelled", "failed", "withdrawn"],
)
def test_change__on_its_way__is_told_by_step_and_code(
    cluster: Cluster, people: People, deeds: tuple[Deed, ...], steps: list[tuple[EventStep, Code, str | None]]
) -> None:
    change = proposed(cluster, people.alice)
    for deed in deeds:
        deed(now_of(change), people)
    assert told(change) == [WAITING, *steps]
    for event in NotificationEvent.objects.all():
        assert (event.cluster, event.kind, event.path) == (cluster, "test", f"/changes/{change.pk}/")
        assert event.message_params.items() >= {"number": change.pk, "title": "Drain broker 3"}.items()


def test_transition__that_is_rolled_back__leaves_no_event(cluster: Cluster, people: People) -> None:
    """A fault after the event takes the transition back, and a fault of the event takes the transition with it."""
    change = proposed(cluster, people.alice)
    for place in ("_tell_receivers", "record_events"):
        inner = getattr(transitions, place)

        def store_and_fail(*args: object, inner: Callable[..., None] = inner, **given: object) -> None:
            inner(*args, **given)
            assert len(told(change)) == 2, "stored within the transaction, not after it"
            raise ConnectionError

        with mock.patch.object(transitions, place, store_and_fail), pytest.raises(ConnectionError):
            approve(now_of(change), people)
        assert (now_of(change).state, told(change)) == (ChangeState.PROPOSED, [WAITING])
    approve(now_of(change), people)
    assert told(change) == [WAITING, APPROVED]
