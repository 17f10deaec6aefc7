"""A cancel on a cluster that does not answer: an administrator gives it up, and what it owes is cleared later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import running
from kafkadash.changes.models import RequestState
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.clusters.models import Cluster
from kafkadash.domain.plan import Row
from kafkadash.domain.row_reasons import CancelledBefore
from kafkadash.domain.run_reasons import GivenUpBy
from kafkadash.kafka.port import DeadlineExceeded
from kafkadash.reassign.models import Execution, Move, ThrottleEntry
from kafkadash.reassign.run import moves
from kafkadash.reassign.run.giving_up import give_up
from kafkadash.reassign.run.left_behind import SILENT_LOOKS
from tests.reassign.run.runs import World

pytestmark = pytest.mark.django_db
WHY = "The cluster burned down."


@pytest.fixture
def silent(world: World, operator: User) -> World:
    """Moves are in flight and being cancelled, and nothing answers for 20 looks and 11 minutes."""
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    assert world.model.moving
    world.kafka.fail["list_reassignments"] = DeadlineExceeded("No answer within 8 s.")
    running.cancel(world.change(), operator, "Wrong broker.")
    for _ in range(SILENT_LOOKS):
        world.step()
    Execution.objects.update(looked_at=datetime.now(UTC) - timedelta(minutes=11))
    return world


def test_given_up__it_owes_its_throttles_until_the_cluster_answers_again(
    silent: World, admin: User, operator: User
) -> None:
    moving = {f"{topic}-{partition}" for topic, partition in silent.model.moving}
    owed = ThrottleEntry.objects.exclude(state="cleared").count()
    Cluster.objects.update(read_only=True)
    give_up(silent.change(), admin, WHY)
    run = silent.run()
    assert (silent.change().state, run.active, run.error) == ("failed", False, GivenUpBy("adam", WHY))
    assert {name for name, (state, _) in silent.states().items() if state == "unknown"} == moving
    assert {state for name, (state, _) in silent.states().items() if name not in moving} <= {"cancelled", "done"}
    assert len(run.report["obligations"]) == owed
    event = AuditEvent.objects.get(action="change.failed")
    assert (event.actor_name, event.reason) == ("adam", WHY)
    assert event.after is not None
    assert (event.after["unknown_rows"], event.after["obligations"]) == (len(moving), owed)
    with pytest.raises(Changed, match="adam gave it up on"):
        give_up(silent.change(), admin, WHY)

    silent.step()
    assert ThrottleEntry.objects.exclude(state="cleared").count() == owed, "it does not answer yet"
    silent.kafka.fail.clear()
    silent.passes(600)
    silent.step()
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()
    assert not any(value for own in silent.kafka.configs.values() for value in own.values())
    settled = AuditEvent.objects.get(action="change.throttle_settled")
    assert settled.reason.endswith("demo is read-only; what runs set there is taken away too.")
    Cluster.objects.update(read_only=False)
    number = silent.queue(operator, [Row("clicks", "id-of-clicks", 1, (1, 2), (1, 5))]).pk
    silent.until(RequestState.DONE, number=number)


def test_a_cluster_that_may_still_answer__is_waited_for(silent: World, admin: User, operator: User) -> None:
    with pytest.raises(Refused, match="Say why it is given up"):
        give_up(silent.change(), admin, "  ")
    with pytest.raises(Refused, match="To give up a run on demo you need the role admin"):
        give_up(silent.change(), operator, WHY)
    for fields in ({"failures": SILENT_LOOKS - 1}, {"looked_at": datetime.now(UTC) - timedelta(minutes=9)}):
        before = Execution.objects.values(*fields).get()
        Execution.objects.update(**fields)
        with pytest.raises(Refused, match="may still answer, and then the cancel ends by itself"):
            give_up(silent.change(), admin, WHY)
        Execution.objects.update(**before)
    assert silent.change().state == RequestState.CANCELLING
    silent.kafka.fail.clear()
    silent.until(RequestState.CANCELLED)


def test_a_run_that_is_not_cancelled__is_not_given_up(world: World, operator: User, admin: User) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    Execution.objects.update(looked_at=datetime.now(UTC) - timedelta(hours=1), failures=SILENT_LOOKS)
    with pytest.raises(Refused, match=r"changed while you read it|only a run that is being cancelled"):
        give_up(world.change(), admin, WHY)


def test_given_up_while_a_step_looks__the_step_writes_and_sends_nothing(silent: World, admin: User) -> None:
    """It answers in the very step in which it is given up."""
    silent.kafka.fail.clear()
    sent = list(silent.kafka.sent)

    def given_up(call: str) -> None:
        if call == "metadata":
            silent.kafka.before = lambda _: None
            give_up(silent.change(), admin, WHY)

    silent.kafka.before = given_up
    silent.step()
    assert silent.kafka.sent == sent
    assert silent.change().state == RequestState.FAILED
    assert "unknown" in {state for state, _ in silent.states().values()}


def test_rows_that_wait__end_in_portions(silent: World, admin: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkadash.reassign.run.giving_up.AT_ONCE", 2)
    assert moves.AT_ONCE > 2
    Move.objects.filter(topic="orders").update(state="pending")
    give_up(silent.change(), admin, WHY)
    ends = {name: end for name, end in silent.states().items() if name.startswith("orders")}
    assert set(ends.values()) == {("cancelled", CancelledBefore())}
