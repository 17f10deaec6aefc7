"""Workers whose database goes away in the middle: they stop, store nothing, and go on when it is back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from unittest import mock

import pytest
from django.db import Error, connection

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.models import Cluster
from kafkadash.observe import collection
from kafkadash.observe.models import Collection, CollectorRun, Kind
from kafkadash.ops.models import Heartbeat
from kafkadash.ops.tick import tick
from kafkadash.reassign.models import Execution
from kafkadash.reassign.run import step as stepping
from tests.away.conftest import Away
from tests.reassign.run.runs import ROWS, World
from tests.waiting import wait_until


@pytest.fixture
def world(away: Away, world: World) -> World:
    return world


def back(away: Away) -> None:
    away.start()
    wait_until(_answers, "the database answers", 15)


def _answers() -> bool:
    try:
        User.objects.exists()
    except Error:
        connection.close()
        return False
    return True


@pytest.mark.parametrize(
    ("when", "call"), [("after", "list_reassignments"), ("after", "alter_configs"), ("after", "alter_reassignments")]
)
def test_a_step__whose_database_dies_around_a_call__is_finished_by_the_next_ones(
    away: Away, world: World, operator: User, call: str, when: str
) -> None:
    world.queue(operator)
    run = world.executions[world.runs[0]]
    died: list[str] = []

    def dies(made: str) -> None:
        if made == call and not died and Execution.objects.get(pk=run).active:
            died.append(made)
            away.kill()

    setattr(world.kafka, when, dies)
    for _ in range(60):
        world.step()
        connection.close()  # as at the end of each task
        if died:
            break
        world.passes(2)
    assert died, f"{call} was never made"
    back(away)

    world.kafka.before = world.kafka.after = lambda _: None
    assert Execution.objects.get(pk=run).error is None, "an outage is no fault of the step"
    world.until("done")
    assert {state for state, _ in world.states().values()} == {"done"}
    assert world.arrived == Counter({(row.topic, row.partition): 1 for row in ROWS})
    assert world.audit().count("change.turn_came") == 1


def test_a_refresh__whose_database_dies_before_it_stores__leaves_nothing_and_is_made_again(
    away: Away, cluster: Cluster
) -> None:
    collection.ensure_runs()
    run = CollectorRun.objects.get(cluster=cluster, kind=Kind.METADATA)
    asked: Callable[..., object] = collection._ask

    def dies(*arguments: object) -> object:
        answer = asked(*arguments)
        away.kill()
        return answer

    with mock.patch.object(collection, "_ask", dies), pytest.raises(Error):
        collection.refresh(run.pk)
    connection.close()
    back(away)

    assert not Collection.objects.exists()
    CollectorRun.objects.filter(pk=run.pk).update(lease_until=None)
    assert collection.refresh(run.pk) is not None
    assert Collection.objects.count() == 1


def test_a_tick__fails_while_it_is_away_and_is_whole_when_it_is_back(away: Away, cluster: Cluster) -> None:
    away.stop()
    for _ in range(3):
        with pytest.raises(Error):
            tick()
        connection.close()
    back(away)
    tick()
    assert CollectorRun.objects.filter(cluster=cluster).count() == len(Kind)
    assert Heartbeat.objects.exists()


def test_a_step__that_cannot_even_ask_for_its_lease__sends_nothing(away: Away, world: World, operator: User) -> None:
    world.queue(operator)
    world.reset()
    connection.close()
    away.stop()
    before = len(world.kafka.sent)
    with pytest.raises(Error):
        stepping.step_once(world.executions[world.runs[0]])
    connection.close()
    assert len(world.kafka.sent) == before
    back(away)
    assert not AuditEvent.objects.filter(action="change.turn_came").exists()
