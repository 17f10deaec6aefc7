"""Brokers that are unregistered, from the plan to the end, and what keeps a change from it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from kafkadash.broker_life.reasons import BrokerReasonCode
from kafkadash.broker_life.unregister import KIND, plan_unregister
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.risk import RiskLevel, level_of
from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.models import BrokerState, BrokerWeights, ClusterState
from kafkadash.short_runs import fail_points
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.plans import check_items
from kafkadash.short_runs.rollback import propose_rollback
from tests.broker_life.conftest import EMPTY, BrokerWorld
from tests.factories import ReassignmentFactory

pytestmark = pytest.mark.django_db
SUBJECT = f"broker {EMPTY}"


class WorkerKilled(BaseException):
    """The worker dies here."""


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, point: str) -> Iterator[None]:
    def reach(here: str) -> None:
        if here == point:
            raise WorkerKilled

    with monkeypatch.context() as patch:
        patch.setattr(fail_points, "_reach", reach)
        with pytest.raises(WorkerKilled):
            yield


def test_run__stopped_and_empty__is_unregistered(world: BrokerWorld) -> None:
    world.stop()
    ClusterState.objects.update(hidden_topics=2)  # of another broker's disks; Kafka is asked
    change = world.until(world.unregister(), "done")
    assert (world.states(change), world.run(change).outcome) == ({SUBJECT: "done"}, "clean")
    assert EMPTY not in world.kafka.model.brokers
    assert level_of(change.risk) is RiskLevel.MEDIUM


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda: BrokerState.objects.update(fenced=False), BrokerReasonCode.ALIVE),
        pytest.param(
            lambda: BrokerState.objects.update(fenced=None), BrokerReasonCode.FENCED_UNKNOWN, id="older Kafka"
        ),
        (lambda: BrokerState.objects.update(replicas=1), BrokerReasonCode.HOSTS_REPLICAS),
        pytest.param(
            lambda: BrokerState.objects.update(fenced=None, gone_at=datetime.now(UTC)),
            BrokerReasonCode.FENCED_UNKNOWN,
            id="older Kafka, not listed",
        ),
        (
            lambda: ReassignmentFactory.create(cluster=Cluster.objects.get(), adding=[EMPTY]),
            BrokerReasonCode.GETS_REPLICAS,
        ),
    ],
)
def test_stored_rows_say_that_it_does_not_fit__no_plan_has_it_and_no_draft_is_sent(
    world: BrokerWorld, spoil: Callable[[], object], code: BrokerReasonCode
) -> None:
    world.stop()
    world.kind = KIND
    draft = world.draft({"broker": EMPTY})
    spoil()
    check = check_items(draft, world.clock).checks[0]
    planned = plan_unregister(world.cluster, {"broker": EMPTY})
    assert [problem.params["why"].code for problem in check.problems] == [code]
    assert [message.params["why"].code for message in planned.left_out] == [code]


def test_plan__nobody_knows_the_broker__says_so(world: BrokerWorld) -> None:
    [message] = plan_unregister(world.cluster, {"broker": 77}).left_out
    assert message.params["why"].code == BrokerReasonCode.NOT_REGISTERED


def start_again(world: BrokerWorld) -> None:
    world.kafka.model.brokers[EMPTY] = True


def give_it_a_replica(world: BrokerWorld) -> None:
    world.kafka.model.add_topic("new", [[EMPTY, 1]])


def begin_a_move(world: BrokerWorld) -> None:
    world.kafka.model.submit(("orders", 0), (1, 2, EMPTY))


def hide_a_topic(world: BrokerWorld) -> None:
    """On its disks lies a topic that no list has."""
    world.kafka.hidden = {"secret"}
    data = zlib.compress(json.dumps({"secret": {"0": 1}, "__cluster_metadata": {"0": 1}}).encode())
    BrokerWeights.objects.filter(broker_id=EMPTY).update(data=data)


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (start_again, BrokerReasonCode.ALIVE),
        (give_it_a_replica, BrokerReasonCode.HOSTS_REPLICAS),
        (begin_a_move, BrokerReasonCode.GETS_REPLICAS),
        (hide_a_topic, BrokerReasonCode.TOPICS_HIDDEN),
    ],
)
def test_queued__cluster_is_another_than_the_rows__turns_stale_and_sends_nothing(
    world: BrokerWorld, spoil: Callable[[BrokerWorld], None], code: BrokerReasonCode
) -> None:
    world.stop()
    change = world.unregister()
    spoil(world)
    change = world.until_stale(change)
    assert change.stale_reasons[0]["params"]["why"]["code"] == code
    assert not world.calls("unregister_broker")


def test_running__broker_starts_before_its_request__is_skipped(world: BrokerWorld) -> None:
    world.stop()
    change = world.step(world.unregister())
    start_again(world)
    change = world.until(change, "done")
    assert world.states(change) == {SUBJECT: "skipped"}
    assert world.reasons(change) == {SUBJECT: BrokerReasonCode.ALIVE}
    assert not world.calls("unregister_broker")


@pytest.mark.parametrize("arrives", [True, False])
def test_run__request_timed_out__a_reading_tells(world: BrokerWorld, arrives: bool) -> None:
    world.stop()
    change = world.step(world.unregister())
    world.kafka.lose = arrives
    world.step(change)
    assert world.states(change) == {SUBJECT: "lost"}
    world.kafka.lose = None
    change = world.until(change, "done")
    assert world.states(change) == {SUBJECT: "done"}
    assert world.calls("unregister_broker") == (1 if arrives else 2)


@pytest.mark.parametrize("point", [fail_points.BEFORE_CALL, fail_points.AFTER_CALL, fail_points.AFTER_ROW])
def test_run__worker_is_killed_at_a_point__the_next_one_settles_it(
    world: BrokerWorld, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    world.stop()
    change = world.step(world.unregister())
    with killed_at(monkeypatch, point):
        world.step(change)
    change = world.until(change, "done")
    assert world.states(change) == {SUBJECT: "done"}
    assert world.calls("unregister_broker") == 1


def test_verifying__broker_was_started_again__is_told(world: BrokerWorld) -> None:
    world.stop()
    change = world.step(world.unregister())

    def register(call: str) -> None:
        if call == "unregister_broker":
            world.kafka.model.brokers[EMPTY] = True

    world.kafka.after = register
    change = world.until(change, "done", 60)
    assert world.states(change) == {SUBJECT: "reverted"}
    assert world.reasons(change) == {SUBJECT: BrokerReasonCode.ALIVE}


def test_rollback__there_is_none(world: BrokerWorld) -> None:
    world.stop()
    change = world.until(world.unregister(), "done")
    with pytest.raises(ChangeRefused) as refused:
        propose_rollback(change, world.operator)
    assert refused.value.code == ShortRunErrorCode.NO_ROLLBACK
