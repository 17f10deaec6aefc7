"""The figures of a run as they are stored with it, and what is read for them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.domain.executor_state import Move, State, Work
from kafkadash.domain.plan import Options, Row
from kafkadash.domain.run_progress import Direction
from kafkadash.kafka.port import ItemError, OffsetKind, OffsetQuery, ReplicaOffset, ReplicaOffsets
from kafkadash.observe.models import BrokerWeights, TopicState
from kafkadash.reassign.models import Execution
from kafkadash.reassign.run.measure import (
    FreshSizes,
    fresh_sizes,
    inbound_of,
    measure,
    moved_at_end,
    stored_progress,
    stored_samples,
)
from tests.domain.executor_cluster import START
from tests.domain.run_model import MB, Logs, Running
from tests.reassign.run.runs import World

pytestmark = pytest.mark.django_db

ROWS = (
    Row("orders", "id-of-orders", 0, (1, 2, 3), (1, 2, 6)),
    Row("clicks", "id-of-clicks", 0, (3, 5), (6, 5)),
)
RATE = 60 * MB


class Stored:
    """A run on the model of ``tests.domain.run_model`` whose figures go through the database after each step."""

    def __init__(self, execution: Execution) -> None:
        self.pk = execution.pk
        self.cluster = Logs(ROWS, {(r.topic, r.partition): 6000.0 * MB for r in ROWS}, range(1, 7), RATE)
        self.cluster.number = type(self.cluster.number)({"orders": 9, "clicks": 9})
        self.run = Running(self.cluster, ROWS, Options(RATE, 1, 10**12))
        Execution.objects.filter(pk=self.pk).update(throttle=RATE)
        BrokerWeights.objects.update(taken_at=START - timedelta(hours=1))
        self.errors: dict[OffsetQuery, ItemError] = {}

    def tick(self, fresh: FreshSizes | None = None) -> Execution:
        """As a worker that has just been started."""
        self.run.tick(2.0, measure=False)
        execution = Execution.objects.get(pk=self.pk)
        fresh = fresh or fresh_sizes(execution, self.run.moves)
        measure(execution, self.run.moves, self.cluster.look(), self.offsets(), fresh, self.cluster.now)
        execution.save(update_fields=["progress", "progress_at", "samples"])
        return Execution.objects.get(pk=self.pk)

    def ticks(self, number: int) -> Execution:
        for _ in range(number - 1):
            self.tick()
        return self.tick()

    def offsets(self) -> ReplicaOffsets:
        at, found = self.cluster.now.timestamp(), {}
        for key in self.cluster.moving:
            read = self.cluster.read(key)
            assert read.source is not None
            assert read.log_start is not None
            assert read.log_end is not None
            found[OffsetQuery(read.source, *key, OffsetKind.LATEST)] = ReplicaOffset(read.log_end, at)
            found[OffsetQuery(read.source, *key, OffsetKind.EARLIEST)] = ReplicaOffset(read.log_start, at)
            for broker, end in (read.ends or {}).items():
                found[OffsetQuery(broker, *key, OffsetKind.LATEST)] = ReplicaOffset(end, at)
        answered = {query: offset for query, offset in found.items() if query not in self.errors}
        return ReplicaOffsets(answered, self.errors)


@pytest.fixture
def running(world: World, operator: User) -> Stored:
    world.queue(operator)
    return Stored(world.run())


def test_measure__each_step_by_another_worker__goes_on_from_what_is_stored(running: Stored) -> None:
    execution = running.ticks(30)

    run = stored_progress(execution)

    assert run is not None
    assert run.rate == pytest.approx(RATE, rel=0.05)
    assert run.percent == pytest.approx(100 * 29 * 2 * RATE / (12_000 * MB), abs=3)
    assert run.binding == (6, Direction.IN)
    assert run.eta_s == pytest.approx(12_000 / 60 - 58, rel=0.1)
    assert {row.topic for row in run.rows} == {"orders", "clicks"}
    assert execution.progress_at is not None
    assert abs((execution.progress_at - running.cluster.now).total_seconds()) < 0.01


def test_measure__keeps_a_history_with_the_throttle(running: Stored) -> None:
    running.ticks(20)
    running.run.throttle(30 * MB)
    Execution.objects.filter(pk=running.pk).update(throttle=30 * MB)

    history = stored_samples(running.ticks(20))

    assert history is not None
    assert len(history.points) >= 5
    assert [(mark.before, mark.after) for mark in history.marks] == [(RATE, 30 * MB)]
    assert history.line((6, Direction.IN))[-1] == pytest.approx(30 * MB, rel=0.1)


def test_measure__nothing_was_answered__keeps_figures_with_their_age(running: Stored) -> None:
    before = stored_progress(running.ticks(10))
    running.errors = {query: ItemError("did not answer in time") for query in running.offsets().offsets}

    after = stored_progress(running.ticks(3))

    assert before is not None
    assert after is not None
    assert [row.sampled_at for row in after.rows] == [row.sampled_at for row in before.rows]
    assert [row.percent for row in after.rows] == [row.percent for row in before.rows]


def test_measure__kafka_refuses_to_tell_of_a_topic__its_words_are_the_cause(running: Stored) -> None:
    running.ticks(10)
    query = OffsetQuery(6, "orders", 0, OffsetKind.LATEST)
    running.errors = {query: ItemError("Topic authorization failed.", 29, "TOPIC_AUTHORIZATION_FAILED")}

    run = stored_progress(running.ticks(60))

    assert run is not None
    row = next(row for row in run.rows if row.topic == "orders")
    assert row.mark is not None


def test_fresh_sizes__first_step_asks_for_configs_too_and_later_ones_only_for_what_is_new(
    running: Stored, world: World
) -> None:
    demo = world.cluster
    TopicState.objects.filter(cluster=demo, name="orders").update(config={"cleanup.policy": ["compact", "topic"]})
    execution = running.tick()
    with CaptureQueriesContext(connection) as queries:
        again = fresh_sizes(execution, running.run.moves)
    run = stored_progress(running.tick())
    _weigh(demo, 6, {"orders": {"0": 55}})

    newer = fresh_sizes(execution, running.run.moves)

    assert len(queries) == 1
    assert again.sizes == {}
    assert newer.sizes[6][1] == {("orders", 0): 55}
    assert run is not None
    assert {row.topic: row.estimate for row in run.rows} == {"orders": "compacted", "clicks": ""}


def _weigh(cluster: Cluster, broker: int, sizes: dict[str, dict[str, int]]) -> None:
    later = max(BrokerWeights.objects.filter(cluster=cluster).values_list("taken_at", flat=True)) + timedelta(seconds=9)
    packed = zlib.compress(json.dumps(sizes).encode())
    BrokerWeights.objects.filter(cluster=cluster, broker_id=broker).update(data=packed, taken_at=later)


def test_inbound__nothing_measured__is_not_known_and_says_so(running: Stored) -> None:
    found, words = inbound_of(Execution.objects.get(pk=running.pk))
    early, early_words = inbound_of(running.ticks(3))

    assert found is early is None
    assert "Nothing is in flight" in words
    assert "not known yet of 2 moves" in early_words


def test_inbound__producers_write_to_two_partitions__adds_up_where_both_arrive(running: Stored) -> None:
    running.cluster.inbound = {("orders", 0): 2.0 * MB, ("clicks", 0): 3.0 * MB}

    found, words = inbound_of(running.ticks(20))

    assert found == pytest.approx(5 * MB, rel=0.05)
    assert "copied to broker 6" in words


def test_inbound__nobody_writes__is_nothing(running: Stored) -> None:
    assert inbound_of(running.ticks(20))[0] == 0.0


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State.DONE, lambda row: row.size_bytes),
        (State.CANCELLED, lambda row: row.moved_bytes),
    ],
)
def test_moved_at_end__is_all_of_what_is_done_and_what_was_there_of_the_others(
    running: Stored, state: State, expected: Callable[..., int]
) -> None:
    before = stored_progress(running.ticks(10))
    assert before is not None
    move = running.run.moves[0].to(state, START)

    row = next(row for row in before.rows if row.topic == "orders")
    assert moved_at_end(before, move) == expected(row)
    assert row.moved_bytes is not None
    assert 0 < row.moved_bytes < 6000 * MB


def test_moved_at_end__never_measured__is_known_only_where_it_cannot_be_otherwise() -> None:
    sized = Move(Work(ROWS[0], 500), State.DONE, submitted_at=START)

    assert moved_at_end(None, sized) == 500
    assert moved_at_end(None, Move(Work(ROWS[0]), State.DONE, submitted_at=START)) is None
    assert moved_at_end(None, Move(Work(ROWS[0], 500), State.SKIPPED)) == 0
    assert moved_at_end(None, Move(Work(ROWS[0], 500), State.CANCELLED, submitted_at=START)) is None
    assert moved_at_end(None, Move(Work(Row("orders", "", 0, (1, 2), (2, 1))), State.DONE)) == 0
