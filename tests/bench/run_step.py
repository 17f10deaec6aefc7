"""A step of the executor while 2,000 rows move, and what it pushes to the pages that show them.

4,000 moves on 300 brokers, a real PostgreSQL, and a model of Kafka. What Kafka itself takes for its answers is not in
it (listing 2 ms, metadata and offsets some 50 ms).
"""

from __future__ import annotations

import json
import random
import time
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock

from tests.bench.bars import Bar, at_most, percentile
from tests.bench.server import empty_database

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from kafkadash.changes.plan import PartitionMove
    from kafkadash.clusters.models import Cluster
    from kafkadash.execution.progress.figures import RunNow
    from kafkadash.kafka.api import OffsetQuery, ReplicaOffsets
    from tests.execution.worlds import World

MOVES, BROKERS, TOPIC_SIZE, SEED = 4_000, 300, 20, 5
MOVING, PER_BROKER = 2_000, 40
SIZE, RATE = 20_000_000_000, 60_000_000
NEARLY = 0.99
"""The last ones of the window are in between: submitted, or just done."""

STEPS = 10
STEP_S, STATEMENTS, MEASURE_S, PUSHED_KB = 1.0, 10, 0.15, 20.0


def measure() -> list[Bar]:
    with empty_database():
        return list(_measured())


def _measured() -> Iterator[Bar]:
    from django.conf import settings

    from kafkadash.execution.worker import step as stepping
    from tests.execution.worlds import patched

    world = _world()
    with patched(world), mock.patch.object(stepping, "KNOWN_FOR_S", 10.0):
        _until_they_move(world)
        steps = _steps(world)
    yield at_most("step at 2,000 moving rows, median", percentile(steps.took, 50), STEP_S, "s")
    yield Bar("step at 2,000 moving rows, worst", round(max(steps.took), 3), "s")
    yield Bar("of it computing, median", round(percentile(steps.computing, 50), 3), "s")
    yield at_most("of it the measurement, median", percentile(steps.measuring, 50), MEASURE_S, "s")
    yield at_most("statements of a step, median", percentile(steps.statements, 50), STATEMENTS, "statements")
    yield Bar("statements of a step, most", max(steps.statements), "statements")
    yield Bar("statements to render its pages", steps.published, "statements")
    yield Bar("figures stored by a step", round(len(world.run().progress) / 1000), "kB")
    pushed = _pushed(world.runs[0], world.clock) / 1000
    yield Bar("pushed to a running page by a step", round(pushed, 1), "kB")
    yield at_most("pushed to a running page", pushed / settings.EXECUTE_INTERVAL, PUSHED_KB, "kB/s")


@dataclass
class _Steps:
    """Of each step: seconds, of them computing and of them measuring, and statements without those of its pages.

    ``published``: statements that rendered the pages of the last one.
    """

    took: list[float] = field(default_factory=list)
    computing: list[float] = field(default_factory=list)
    measuring: list[float] = field(default_factory=list)
    statements: list[int] = field(default_factory=list)
    published: int = 0


def _steps(world: World) -> _Steps:
    """Takes ``STEPS`` steps. Raises RuntimeError where one fails."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from kafkadash.execution.worker import measure as figures
    from kafkadash.execution.worker import step as stepping
    from kafkadash.execution.worker.running import RunningStep

    steps, publish = _Steps(), RunningStep.publish

    def timed(*arguments: Any) -> RunNow:
        began = time.perf_counter()
        found = figures.measure(*arguments)
        steps.measuring.append(time.perf_counter() - began)
        return found

    def counted(running: RunningStep) -> None:
        before = len(connection.queries_log)
        publish(running)
        steps.published = len(connection.queries_log) - before

    with mock.patch.object(stepping, "measure", timed), mock.patch.object(RunningStep, "publish", counted):
        for _ in range(STEPS):
            world.passes(2.0)
            _due(world.run().pk)
            with CaptureQueriesContext(connection) as queries:
                began, computed = time.perf_counter(), time.process_time()
                stepping.step_once(world.run().pk)
                steps.took.append(time.perf_counter() - began)
                steps.computing.append(time.process_time() - computed)
            run = world.run()
            if run.error:
                raise RuntimeError(run.error)
            own = [q["sql"] for q in queries.captured_queries if not q["sql"].startswith(_NO_STATEMENTS)]
            # One is the bench's own, which reads the run's key; what renders the pages is told apart.
            steps.statements.append(len(own) - 1 - steps.published)
    return steps


def _until_they_move(world: World) -> None:
    """Steps until nearly as many rows move as may. Raises RuntimeError where they do not."""
    from kafkadash.execution.models import Move

    for _ in range(12):
        world.tick()
        if Move.objects.filter(state__in=("moving", "catching_up")).count() >= NEARLY * MOVING:
            return
    run = world.run()
    moving = Move.objects.filter(state="moving").count()
    raise RuntimeError(f"only {moving} rows move: {run.blocked} {run.held} {run.error}")


_NO_STATEMENTS = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE")


def _pushed(number: int, now: datetime) -> int:
    """Bytes of the messages that follow a step, before the WebSocket's own compression."""
    from kafkadash.live.frames import run_frame
    from kafkadash.live.panels import RUN_PANELS

    frames = [run_frame(panel, number, now, 1) for panel in RUN_PANELS.values()]
    return sum(len(frame.text.encode()) for frame in frames if frame is not None)


def _due(pk: int) -> None:
    from django.db.models.functions import Now

    from kafkadash.execution.models import Execution

    Execution.objects.filter(pk=pk).update(next_at=Now(), lease_until=None)


def _world() -> World:
    """A run of all moves, queued by an operator."""
    from kafkadash.accounts.models import User
    from kafkadash.changes.plan import RunOptions
    from kafkadash.clusters.models import ClusterRole, Role
    from kafkadash.kafka.api import ReplicaOffset, ReplicaOffsets
    from tests.execution import worlds as runs
    from tests.execution.executor_cluster import Cluster as Model
    from tests.execution.model_kafka import ModelKafka

    rows = _plan()
    cluster = _stored(rows)
    model = Model(rows, {(r.topic, r.partition): float(SIZE) for r in rows}, range(BROKERS), RATE)

    class OnTime(ModelKafka):
        """Answers at the time of the virtual clock."""

        def replica_offsets(self, queries: Collection[OffsetQuery], *, deadline: float) -> ReplicaOffsets:
            found, at = super().replica_offsets(queries, deadline=deadline), world.clock.timestamp()
            return ReplicaOffsets({q: ReplicaOffset(o.offset, at) for q, o in found.offsets.items()}, found.errors)

    world = runs.World(cluster, OnTime(model, cluster.kafka_id))
    user = User.objects.create(username="olga")
    ClusterRole.objects.create(user=user, role=Role.OPERATOR)
    world.queue(user, rows, RunOptions(RATE, RATE // 10, 2 * RATE, per_broker=PER_BROKER, per_cluster=MOVING))
    return world


def _plan() -> list[PartitionMove]:
    """The last replica of each goes to another broker of its rack, which is its id modulo 3."""
    from kafkadash.changes.plan import PartitionMove

    chance = random.Random(SEED)
    rows = []
    for place in range(MOVES):
        held = [3 * chance.randrange(BROKERS // 3) + rack for rack in (0, 1, 2)]
        held.append(3 * ((held[2] // 3 + chance.randrange(1, BROKERS // 3)) % (BROKERS // 3)) + 2)
        topic = place // TOPIC_SIZE
        rows.append(
            PartitionMove(
                f"orders.{topic:03}", f"id-{topic}", place % TOPIC_SIZE, tuple(held[:3]), (held[0], held[1], held[3])
            )
        )
    return rows


def _stored(rows: list[PartitionMove]) -> Cluster:
    """As collectors leave it, fresh."""
    from kafkadash.monitoring.models import BrokerState, BrokerWeights, ClusterState, CollectorRun, TopicState
    from tests.factories import GB, BrokerFactory, BrokerWeightsFactory, TopicFactory, directory, watched

    now = datetime.now(UTC)
    cluster = watched("large", now)
    CollectorRun.objects.filter(cluster=cluster).update(succeeded_at=now + timedelta(minutes=5))  # until all is made
    ClusterState.objects.filter(cluster=cluster).update(partitions=MOVES, topics=MOVES // TOPIC_SIZE, brokers=BROKERS)
    BrokerState.objects.filter(cluster=cluster).delete()
    BrokerWeights.objects.filter(cluster=cluster).delete()
    partitions: dict[tuple[str, str], list[list[object]]] = defaultdict(list)
    sizes: dict[int, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        held = list(row.current)
        partitions[row.topic, row.topic_id].append([row.partition, held[0], 5, held, held, []])
        for broker in held:
            sizes[broker][row.topic][str(row.partition)] = SIZE
    TopicState.objects.bulk_create(
        TopicFactory.build(cluster=cluster, topic_id=id_, name=name, partitions=packed, changed_at=now)
        for (name, id_), packed in partitions.items()
    )
    BrokerState.objects.bulk_create(
        BrokerFactory.build(cluster=cluster, broker_id=n, rack=f"rack-{n % 3}", changed_at=now) for n in range(BROKERS)
    )
    BrokerWeights.objects.bulk_create(
        BrokerWeightsFactory.build(
            cluster=cluster,
            broker_id=n,
            taken_at=now - timedelta(seconds=1),
            dirs=[directory(total=20_000 * GB, usable=15_000 * GB)],
            data=zlib.compress(json.dumps(sizes[n]).encode()),
        )
        for n in range(BROKERS)
    )
    return cluster
