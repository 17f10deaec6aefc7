"""A rate that somebody else's moves use is waited for, never set over: of another installation, or of Kafka's tool."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes.models import RequestState
from kafkadash.domain.plan import Row
from kafkadash.domain.row_reasons import RateInUse
from kafkadash.domain.throttles import FOLLOWER_RATE, LEADER_RATE
from kafkadash.kafka.port import ConfigResource
from kafkadash.observe.models import Outcome, ThrottleState
from kafkadash.reassign.models import ThrottleEntry
from kafkadash.reassign.run.rest_of_cluster import OTHERS_CLEAR
from tests.factories import ThrottleFactory, ended
from tests.reassign.run.runs import RATE, ROWS, SIZE, World

pytestmark = pytest.mark.django_db

THEIRS = ("clicks", 1)
"""On brokers 1 and 2, moved to 1 and 6: most rows of the run need broker 6, two of them neither."""
OF_OTHERS = {LEADER_RATE: "60000000", FOLLOWER_RATE: "60000000"}
WAITS = RateInUse(6, "60000000")
BROKER_6 = ConfigResource.broker(6)


def others_move(world: World) -> None:
    world.kafka.model.partitions[THEIRS].size = 100 * SIZE  # not done before they say so
    world.model.submit(THEIRS, (1, 6))
    others_set(world, at=world.clock)


def others_set(world: World, at: datetime) -> None:
    """Rates of theirs, as the collector of configs has read them."""
    for broker in (1, 2, 6):
        world.kafka.configs[ConfigResource.broker(broker)] = dict(OF_OTHERS)
        for key, value in OF_OTHERS.items():
            ThrottleFactory.create(
                cluster=world.cluster, resource="broker", name=str(broker), key=key, value=value, changed_at=at
            )


def others_are_done(world: World, *, clear: bool) -> None:
    world.model.partitions[THEIRS].left = {6: 0.0}
    if clear:
        for broker in (1, 2, 6):
            world.kafka.configs[ConfigResource.broker(broker)] = {}
    ended(world.cluster, Outcome.COMPLETED, world.clock, topic="clicks", partition=1, replicas=[1, 6, 2], adding=[6])


def waits(world: World) -> set[str]:
    return {row for row, (_, reason) in world.states().items() if reason == WAITS}


def test_rate_of_others__that_their_moves_use__is_waited_for_and_not_set_over(world: World, operator: User) -> None:
    others_move(world)
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    for _ in range(5):
        world.tick()

    assert "clicks-0" in waits(world)
    assert not world.arrived["clicks", 0]
    assert world.kafka.configs[BROKER_6] == OF_OTHERS
    assert not ThrottleEntry.objects.filter(resource="broker", name="6").exists()

    others_are_done(world, clear=True)
    change = world.until(RequestState.DONE)

    assert all(world.arrived[row.topic, row.partition] for row in ROWS), change
    assert not any(world.kafka.configs.get(ConfigResource.broker(broker)) for broker in range(1, 7))


def test_rate_of_others__left_behind_by_their_moves__is_covered_after_a_minute_and_put_back(
    world: World, operator: User
) -> None:
    others_move(world)
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    others_are_done(world, clear=False)
    over = world.clock
    world.tick()
    assert "clicks-0" in waits(world), "they may be about to remove it"

    world.until(RequestState.DONE)

    assert world.clock - over >= OTHERS_CLEAR
    assert world.kafka.configs[BROKER_6] == OF_OTHERS
    assert set(ThrottleEntry.objects.filter(name="6").values_list("state", "previous")) == {("cleared", "60000000")}


def test_rate_of_others__where_none_of_their_moves_goes_on__is_covered_and_put_back(
    world: World, operator: User
) -> None:
    others_set(world, at=world.clock - OTHERS_CLEAR - timedelta(seconds=1))
    ended(
        world.cluster, Outcome.COMPLETED, world.clock - OTHERS_CLEAR - timedelta(seconds=1), replicas=[1, 6], adding=[6]
    )
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    world.tick()
    assert world.kafka.configs[BROKER_6] != OF_OTHERS

    world.until(RequestState.DONE)

    assert world.kafka.configs[BROKER_6] == OF_OTHERS


def test_rate_of_others__set_a_moment_ago__is_waited_for_though_none_of_their_moves_is_seen(
    world: World, operator: User
) -> None:
    """A short move comes and goes between two looks; its throttle is removed some seconds later."""
    world.kafka.configs[BROKER_6] = dict(OF_OTHERS)
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    assert "clicks-0" in waits(world)
    assert world.kafka.configs[BROKER_6] == OF_OTHERS

    world.kafka.configs[BROKER_6] = {}
    world.tick()
    world.tick()

    assert "clicks-0" not in waits(world)
    assert world.kafka.configs[BROKER_6] == {LEADER_RATE: str(RATE), FOLLOWER_RATE: str(RATE)}
    world.until(RequestState.DONE)
    assert not world.kafka.configs[BROKER_6]


def test_rate_of_others__that_a_run_has_just_put_back__is_not_waited_for(world: World, operator: User) -> None:
    others_set(world, at=world.clock - 2 * OTHERS_CLEAR)
    world.queue(operator)
    world.until(RequestState.DONE)
    ThrottleState.objects.all().delete()  # the collector has just read it anew

    back = tuple(Row(row.topic, row.topic_id, row.partition, row.target, row.current) for row in ROWS)
    number = world.queue(operator, back).pk
    world.until(RequestState.EXECUTING, number=number)
    world.tick()

    assert world.arrived["clicks", 0] == 2
    assert WAITS not in {reason for _, reason in world.states(number).values()}
    world.until(RequestState.DONE, number=number)
    assert world.kafka.configs[BROKER_6] == OF_OTHERS


def test_rate_of_others__that_a_run_put_back_long_ago__is_waited_for_when_it_is_set_anew(
    world: World, operator: User
) -> None:
    others_set(world, at=world.clock - 2 * OTHERS_CLEAR)
    world.queue(operator)
    world.until(RequestState.DONE)
    ThrottleState.objects.all().delete()
    ThrottleEntry.objects.update(changed_at=world.clock - timedelta(days=1), lost_at=None)

    back = tuple(Row(row.topic, row.topic_id, row.partition, row.target, row.current) for row in ROWS)
    number = world.queue(operator, back).pk
    world.until(RequestState.EXECUTING, number=number)
    world.tick()

    assert world.arrived["clicks", 0] == 1
    assert WAITS in {reason for _, reason in world.states(number).values()}
