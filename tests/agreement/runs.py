"""Approved requests on a real cluster, and their runs, one step at a time, as the worker of runs makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import KafkaException
from django.db.models.functions import Now

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import services
from kafkadash.changes import services as drafting
from kafkadash.changes import services as running
from kafkadash.changes.models import ChangeRequest, Policy, RequestState
from kafkadash.changes.plan import PartitionMove, RunOptions, canonical_bytes
from kafkadash.changes.plans import store_plan
from kafkadash.clusters.models import Cluster
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.execution import commands as orders
from kafkadash.execution.models import Execution, Move, ThrottleEntry
from kafkadash.execution.progress.figures import RowMark, RowNow, RunNow
from kafkadash.execution.worker.measure import stored_progress
from kafkadash.execution.worker.step import step_once
from kafkadash.monitoring.models import CollectorKind
from kafkadash.planning.impact import impact_of
from kafkadash.planning.plan_store import store_report
from kafkadash.planning.proposal import EXPLICIT, KIND, PlanInput, options_json
from kafkadash.planning.stored_topology import load_topology
from tests.agreement.tools import Tools
from tests.frozen_nodes import fenced_broker
from tests.kafka_configs import alter
from tests.kafka_releases import has_quorum
from tests.waiting import wait_until

READ = (
    CollectorKind.METADATA,
    CollectorKind.REASSIGNMENTS,
    CollectorKind.QUORUM,
    CollectorKind.LOG_DIRS,
    CollectorKind.CONFIGS,
)
# The disks of the machine that runs this may be fuller than a broker's should be.
ASKED = PlanInput(EXPLICIT, upload="0" * 64, name="plan.json", disk_limit=1.0)
SLOW, FAST = 200_000, 1_000_000_000
HELD_MIB = 32
"""Size of a topic whose move at ``SLOW`` lasts for more than two minutes: longer than a test, on a slow machine too."""
RUN_S = 60.0

Targets = Mapping[tuple[str, int], Sequence[int]]


@dataclass
class Run:
    """One request and its run. ``alice`` asks for things, ``step`` does one step at once, whenever the next was due."""

    change: ChangeRequest
    alice: User

    @property
    def state(self) -> RequestState:
        return RequestState(ChangeRequest.objects.values_list("state", flat=True).get(pk=self.change.pk))

    @property
    def execution(self) -> Execution:
        return Execution.objects.get(request=self.change)

    @property
    def now(self) -> RunNow | None:
        """The figures of the last step."""
        return stored_progress(self.execution)

    def row(self, topic: str, partition: int = 0) -> Move:
        return Move.objects.get(execution__request=self.change, topic=topic, partition=partition)

    def uncleared(self) -> list[ThrottleEntry]:
        """Throttles that it set and has not taken away yet."""
        return list(ThrottleEntry.objects.filter(execution=self.execution).exclude(state="cleared"))

    def figures(self, topic: str, partition: int = 0) -> RowNow | None:
        now = self.now
        rows = now.rows if now is not None else ()
        return next((row for row in rows if (row.topic, row.partition) == (topic, partition)), None)

    def mark(self, topic: str, partition: int = 0) -> RowMark | None:
        now = self.figures(topic, partition)
        return now.mark if now is not None else None

    def start(self) -> Run:
        running.start(self.change, self.alice, "The window is open.", running.start_key(self.change, self.alice))
        return self

    def step(self) -> None:
        Execution.objects.filter(request=self.change).update(next_at=Now())
        step_once(self.execution.pk)

    def until(self, condition: Callable[[], object], what: str, deadline_s: float = RUN_S) -> None:
        """Steps until it is true."""

        def after_a_step() -> object:
            self.step()
            return condition()

        try:
            wait_until(after_a_step, what, deadline_s)
        except AssertionError as late:
            raise AssertionError(f"{late}; {self.stands()}") from late

    def stands(self) -> str:
        own = self.execution
        rows = [f"{row} {row.state} {row.reason}".strip() for row in Move.objects.filter(execution=own)]
        return f"#{self.change.pk} is {self.state}: {[own.error, own.blocked, own.held, own.brake]} {rows}"

    def until_it_is(self, state: RequestState, deadline_s: float = RUN_S) -> None:
        self.until(lambda: self.state == state, f"it is {state.label}", deadline_s)

    def until_moving(self, topic: str, partition: int = 0) -> None:
        self.until_it_is(RequestState.EXECUTING)
        self.until(lambda: self.row(topic, partition).state == "moving", f"{topic} moves")

    def cancel(self, reason: str) -> None:
        """Returns when nothing of it moves any more."""
        running.cancel(self.change, self.alice, reason)
        self.until_it_is(RequestState.CANCELLED, 90)

    def raise_throttle(self, rate: str, reason: str = "It is night.") -> None:
        """In MB/s, from the next step on."""
        orders.set_throttle(self.change, self.alice, rate, reason)

    def said(self, verb: str) -> list[AuditEvent]:
        return list(AuditEvent.objects.filter(object_id=str(self.change.pk), action=f"change.{verb}"))


@dataclass
class Requests:
    """Makes approved requests, as two people would, but for the wizard's pages and the child process that plans."""

    cluster: Cluster
    refresh: Callable[[CollectorKind], object]
    alice: User
    bob: User

    def read_all(self) -> None:
        for kind in READ:
            self.refresh(kind)

    def approved(
        self,
        targets: Targets,
        *,
        throttle: int = SLOW,
        highest: int = FAST,
        elect: bool = True,
        per_broker: int = 5,
        directories: Mapping[tuple[str, int], Sequence[str]] | None = None,
    ) -> Run:
        """``throttle`` is where it starts, and the lowest that is approved; ``directories``: one for each target."""
        Policy.objects.update_or_create(cluster=self.cluster, defaults={"approvals_high": 1})
        self.read_all()
        options = RunOptions(throttle, min(throttle, 1_000), highest, per_broker=per_broker, elect_leaders=elect)
        draft = drafting.create_draft(
            self.cluster,
            KIND,
            self.alice,
            title="Move",
            input=pack_dataclass(ASKED),
            options=options_json(options, ASKED),
        )
        change = self._proposed(draft, self._rows(targets, directories or {}))
        return Run(services.approve(change, self.bob, change.digest), self.alice)

    def _rows(self, targets: Targets, directories: Mapping[tuple[str, int], Sequence[str]]) -> list[PartitionMove]:
        topics = load_topology(self.cluster, sorted({topic for topic, _ in targets})).topology.topics
        current = {
            (topic.name, p.partition): (topic.id, p.replicas) for topic in topics.values() for p in topic.partitions
        }
        return [
            PartitionMove(
                name,
                current[name, number][0],
                number,
                current[name, number][1],
                tuple(target),
                tuple(directories.get((name, number), ())),
            )
            for (name, number), target in targets.items()
        ]

    def _proposed(self, draft: ChangeRequest, rows: Sequence[PartitionMove]) -> ChangeRequest:
        loaded = load_topology(self.cluster)
        planned = store_plan(draft.pk, draft.version, canonical_bytes(rows), len(rows), loaded.facts_at)
        assert planned.artifact is not None
        impact = impact_of(rows, loaded.topology, disk_limit=ASKED.disk_limit)
        store_report(planned, planned.artifact, rows, impact, [], 0.0, loaded.topology)
        return services.submit(planned, self.alice, why="A test.", version=planned.version)


def braked(tools: Tools, broker: int, name: str, rate: int) -> None:
    """Waits until the broker itself says so: it may apply a moment later what the controllers took."""
    wait_until(lambda: tools.throttles(broker).get((broker, name)) == str(rate), f"{name} of {broker} is {rate}", 10)


@contextmanager
def broker_killed(
    playground: KafkaPlayground, tools: Tools, broker: int, at_once: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Away, and known to be; afterwards it serves again. ``at_once`` is called before the controllers have noticed."""
    playground.kill_broker(broker)
    try:
        at_once()
        wait_until(lambda: tools.fenced(broker), f"Kafka itself calls broker {broker} fenced", 30)
        wait_until(lambda: _has_left_isrs(tools, broker), f"broker {broker} has left the ISRs", 30)
        yield
    finally:
        playground.start_broker(broker)
        wait_until(lambda: not tools.fenced(broker), f"broker {broker} is back", 60)


def _has_left_isrs(tools: Tools, broker: int) -> bool:
    """A controller beside ZooKeeper takes it out of ISRs after its znode has gone; the last of an ISR stays in it."""
    partitions = [p for topic in tools.topics().values() for p in topic.partitions.values()]
    return all(p.leader != broker and (broker not in p.isr or len(p.isr) == 1) for p in partitions)


@contextmanager
def broker_hung(playground: KafkaPlayground, tools: Tools, broker: int) -> Iterator[None]:
    """As ``broker_killed`` without the price of a start. A request that the broker has in hand may still be done."""
    with fenced_broker(playground, broker):
        assert tools.fenced(broker)
        yield
    wait_until(lambda: not tools.fenced(broker), f"broker {broker} is back", 60)
    if not has_quorum():
        wait_until(lambda: _takes_configs(playground, broker), f"broker {broker} has a session with ZooKeeper", 60)


def _takes_configs(playground: KafkaPlayground, broker: int) -> bool:
    """Return whether a broker writes configs, by one that nobody has set."""
    try:
        alter(playground, broker, num_recovery_threads_per_data_dir=None)
    except KafkaException:
        return False
    return True
