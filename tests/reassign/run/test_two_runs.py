"""What a run still owes to a cluster, while another run of it is under way; and what keeps a cluster in kafkadash."""

from __future__ import annotations

import pytest

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import running
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.removal import remove_cluster, stays_in_kafka
from kafkadash.clusters.services import Refused
from kafkadash.domain.plan import Row
from kafkadash.domain.throttles import FOLLOWER_RATE, LEADER_RATE
from kafkadash.kafka.port import ConfigResource, DeadlineExceeded
from kafkadash.reassign.models import Execution, ThrottleEntry
from tests.reassign.run.runs import RATE, World

pytestmark = pytest.mark.django_db

OTHER_ROWS = (Row("clicks", "id-of-clicks", 1, (1, 2), (1, 4)),)
BROKER_3 = ConfigResource.broker(3)


def owes(world: World, operator: User, value: int, previous: int | None) -> int:
    """The number of a run that has ended; broker 3 was away then, and has its rates still."""
    number = world.queue(operator, OTHER_ROWS).pk
    world.runs.remove(number)
    ChangeRequest.objects.filter(pk=number).update(state=RequestState.DONE)
    Execution.objects.filter(request=number).update(active=False)
    for key in (LEADER_RATE, FOLLOWER_RATE):
        ThrottleEntry.objects.create(
            execution=world.run(number),
            resource="broker",
            name="3",
            key=key,
            value=str(value),
            previous=None if previous is None else str(previous),
            previous_source="" if previous is None else "broker",
            state="obliged",
            words="Broker 3 is away.",
        )
        world.kafka.configs.setdefault(BROKER_3, {})[key] = str(value)
    return number


@pytest.mark.parametrize("previous", [None, 77_000_000])
@pytest.mark.parametrize("value", [RATE, 60_000_000])
def test_rate_that_an_ended_run_owes__is_not_what_the_next_one_puts_back(
    world: World, operator: User, value: int, previous: int | None
) -> None:
    ended = owes(world, operator, value, previous)
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    world.tick()
    assert world.kafka.configs[BROKER_3][LEADER_RATE] == str(RATE)
    world.step(ended)
    assert world.kafka.configs[BROKER_3][LEADER_RATE] == str(RATE), "the run under way needs it"
    assert ThrottleEntry.objects.filter(execution__request=ended, state="obliged").count() == 2
    world.until(RequestState.DONE)
    left = {} if previous is None else {LEADER_RATE: str(previous), FOLLOWER_RATE: str(previous)}
    assert world.kafka.configs[BROKER_3] == left
    world.step(ended)
    assert world.kafka.configs[BROKER_3] == left
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()


def test_cluster_of_a_run_under_way__is_not_removed(world: World, operator: User, admin: User) -> None:
    name = world.cluster.name
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.step()
    with pytest.raises(Refused, match=r"#\d+ is under way here. Cancel it first"):
        remove_cluster(admin, world.cluster, typed_name=name)
    running.cancel(world.change(), operator, "It goes.")
    world.until(RequestState.CANCELLED)
    assert not stays_in_kafka(world.cluster).refused
    remove_cluster(admin, world.cluster, typed_name=name)
    assert AuditEvent.objects.get(action="cluster.removed").after is None


def test_cluster_removed_while_a_run_takes_its_turn__is_sent_nothing(world: World, operator: User, admin: User) -> None:
    """The last look before the turn was taken with the cluster still there."""
    name = world.cluster.name

    def removed(call: str) -> None:
        if call == "permissions":
            remove_cluster(admin, world.cluster, typed_name=name)

    world.queue(operator)
    world.kafka.before = removed
    world.step()
    assert world.change().state == RequestState.QUEUED
    assert not world.run().active
    for _ in range(3):
        world.tick()
    assert world.change().state == RequestState.QUEUED, "a message that was still under way finds nothing to do"
    assert not world.kafka.sent


def test_cluster_that_does_not_answer__is_removed_and_what_stays_there_is_said(
    world: World, operator: User, admin: User
) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.step()
    world.kafka.fail["metadata"] = DeadlineExceeded("No answer within 8 s.")
    for _ in range(20):
        assert stays_in_kafka(world.cluster).refused
        world.step()
    stays = stays_in_kafka(world.cluster)
    assert not stays.refused
    assert len(stays.left) == 2
    remove_cluster(admin, world.cluster, typed_name=world.cluster.name)
    assert AuditEvent.objects.get(action="cluster.removed").after == {"left_in_kafka": list(stays.left)}
