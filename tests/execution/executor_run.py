"""An execution against the cluster of ``executor_cluster``: keeps what its caller would store, and watches every step.

What must never happen is asserted where it would: at each request, each end and each change of the throttle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.execution.engine.reasons import RefusedByKafka
from kafkadash.execution.engine.state import (
    IN_FLIGHT,
    BrokerSlot,
    CallReply,
    CancelAction,
    ClusterObservation,
    CopyWork,
    ElectAction,
    Key,
    ReorderAction,
    RowState,
    RunMode,
    RunRow,
    SubmitAction,
)
from kafkadash.execution.engine.step import (
    Action,
    ChangeLists,
    ClearRate,
    SetRate,
    StepPlan,
    StepThrottles,
    ThrottledPairs,
    apply_answer,
    apply_reply,
    compute_wanted_throttles,
    plan_step,
)
from tests.execution.executor_cluster import Cluster

EVERY = 2.0
"""Seconds between two steps."""

MOST_LATE = 4
"""Looks by which metadata may be behind, less than the executor's ``LATE_METADATA``."""


class Fate(Enum):
    """What becomes of the requests of one step."""

    ANSWERED = "answered"
    ANSWER_LOST = "done, and its answer lost"
    NOT_SENT = "the process died before it was sent"
    ANSWER_NOT_STORED = "the process died before its answer was stored"
    LATE = "its answer lost, and done some seconds later"


@dataclass
class Run:
    cluster: Cluster
    moves: list[RunRow]
    options: RunOptions
    mode: RunMode = RunMode.EXECUTING
    ours: StepThrottles = field(default_factory=StepThrottles)
    late: list[tuple[datetime, Action]] = field(default_factory=list)
    steps: list[StepPlan] = field(default_factory=list)
    looks_late: int = 0
    disturbed: set[Key] = field(default_factory=set)
    placed: dict[tuple[Key, int], str] = field(default_factory=dict)
    _looks: list[ClusterObservation] = field(default_factory=list)

    @classmethod
    def of(
        cls, rows: Sequence[PartitionMove], brokers: int, options: RunOptions, size: float = 10e6, rate: float = 1e6
    ) -> Run:
        sizes = {(row.topic, row.partition): size for row in rows}
        cluster = Cluster(rows, sizes, range(1, brokers + 1), rate)
        return cls(cluster, [RunRow(CopyWork(row, int(size))) for row in rows], options)

    def move(self, key: Key) -> RunRow:
        return next(move for move in self.moves if move.key == key)

    def states(self) -> list[RowState]:
        return [move.state for move in self.moves]

    def tick(self, fate: Fate = Fate.ANSWERED) -> StepPlan:
        """One step, its requests, and two seconds of the cluster. Late requests arrive before and after the look."""
        self._arrive()
        seen = self._look()
        taken = plan_step(self.moves, seen, self.options, self.cluster.now, self.mode, self.ours)
        before = {move.key: move for move in self.moves}
        after = {transition.after.key: transition.after for transition in taken.transitions}
        assert len(after) == len(taken.transitions)
        self.moves = [after.get(move.key, move) for move in self.moves]
        self._check_ends(before)
        self._check_slots(taken, seen)
        self.cluster.now += timedelta(milliseconds=200)
        self._arrive()
        for action in taken.actions:
            self._take(action, seen, fate)
        if fate is not Fate.NOT_SENT:
            self._check_throttles()
        self.steps.append(taken)
        self.cluster.pass_time(EVERY)
        return taken

    def _arrive(self) -> None:
        now = self.cluster.now
        for at, action in list(self.late):
            if at <= now:
                self.late.remove((at, action))
                self._reach(action, late=True)

    def _look(self) -> ClusterObservation:
        """The broker that answers has heard of nothing in so many looks as it is late."""
        seen = self.cluster.look(move.key for move in self.moves)
        self._looks = [*self._looks[-MOST_LATE:], seen]
        last = self._looks[max(0, len(self._looks) - 1 - self.looks_late)]
        if last is seen:
            return seen
        partitions = {
            key: replace(last.partitions[key], listed=now.listed) if key in last.partitions else now
            for key, now in seen.partitions.items()
        }
        return replace(seen, partitions=partitions)

    def _take(self, action: Action, seen: ClusterObservation, fate: Fate) -> None:
        if isinstance(action, SubmitAction | ReorderAction):
            assert seen.partitions[action.key].listed is None, "a request to what is listed"
        if isinstance(action, BrokerSlot):
            self.placed |= {(action.key, broker): path for broker, path in action.directories}
            return
        if isinstance(action, SubmitAction):
            assert self.move(action.key).work.row.directories == tuple(
                (broker, path) for (key, broker), path in self.placed.items() if key == action.key
            ), "submitted before its replicas were placed"
            assert action.replicas == self.move(action.key).work.row.target
        if fate is Fate.NOT_SENT:
            return
        if isinstance(action, ChangeLists | SetRate | ClearRate):
            self._throttle(action)
            return
        if fate is Fate.LATE and not isinstance(action, ElectAction | ReorderAction):
            self.late.append((self.cluster.now + timedelta(seconds=7), action))
            self._reply(action, CallReply.LOST)
            return
        done = self._reach(action)
        if fate is Fate.ANSWERED:
            self._reply(action, CallReply.ACCEPTED if done else CallReply.REFUSED)
        elif fate is Fate.ANSWER_LOST:
            self._reply(action, CallReply.LOST)

    def _reply(self, action: Action, reply: CallReply) -> None:
        if isinstance(action, SubmitAction):
            stored = apply_reply(
                self.move(action.key), reply, self.cluster.now, "" if reply is CallReply.ACCEPTED else "No."
            )
            self.moves = [stored if move.key == action.key else move for move in self.moves]

    def _reach(self, action: Action, *, late: bool = False) -> bool:
        """What arrives at the cluster. No request of ours may make a zombie.

        Kafka cannot be fenced: a late one that meets what somebody else began meanwhile may, and is shown as theirs.
        """
        if isinstance(action, ElectAction):
            self.cluster.elect(action.key)
            return True
        if isinstance(action, CancelAction):
            return self.cluster.cancel(action.key)
        assert isinstance(action, SubmitAction | ReorderAction)
        partition = self.cluster.partitions.get(action.key)
        allowed = partition is None or partition.zombie or (late and action.key in self.disturbed)
        done = self.cluster.submit(action.key, action.replicas)
        assert allowed or partition is None or not partition.zombie, "a zombie of ours"
        return done

    def _throttle(self, action: ChangeLists | SetRate | ClearRate) -> None:
        pairs, rates = dict(self.ours.pairs), dict(self.ours.rates)
        if isinstance(action, ChangeLists):
            had = pairs.get(action.topic, ThrottledPairs())
            assert not action.add.leader & had.leader
            assert action.remove.leader <= had.leader
            now = ThrottledPairs(
                had.leader - action.remove.leader | action.add.leader,
                had.follower - action.remove.follower | action.add.follower,
            )
            pairs.pop(action.topic, None)
            pairs |= {action.topic: now} if now else {}
        elif isinstance(action, SetRate):
            rates[action.broker] = action.rate
        else:
            del rates[action.broker]
        self.ours = StepThrottles(pairs, rates)

    def _check_throttles(self) -> None:
        need = compute_wanted_throttles(self.moves_as_stepped(), self.options.throttle)
        assert self.ours.pairs == need.pairs
        assert set(self.ours.rates) <= set(need.rates)
        unreachable = set(need.rates) - set(self.ours.rates)
        assert not any(self.cluster.brokers[broker] for broker in unreachable)

    def moves_as_stepped(self) -> list[RunRow]:
        """As the step left them: a refusal that was stored since ends a row that the next step takes the pairs off."""
        return [
            replace(m, state=RowState.SUBMITTING)
            if m.state is RowState.FAILED and m.reason == RefusedByKafka("No.")
            else m
            for m in self.moves
        ]

    def _check_ends(self, before: dict[Key, RunRow]) -> None:
        for move in self.moves:
            if move.state is RowState.DONE and before[move.key].state is not RowState.DONE:
                partition = self.cluster.partitions.get(move.key)
                if partition is not None and move.key not in self.disturbed:
                    assert partition.replicas == move.work.row.target, (before[move.key], partition)
                    assert not partition.moving, (before[move.key], partition)

    def _check_slots(self, taken: StepPlan, seen: ClusterObservation) -> None:
        submitted = {action.key for action in taken.actions if isinstance(action, SubmitAction)}
        if not submitted:
            return
        assert self.mode is RunMode.EXECUTING
        into: Counter[int] = Counter()
        out: Counter[int] = Counter()
        topics: Counter[str] = Counter()
        new_brokers: set[tuple[str, int]] = set()
        for move in self.moves:
            if move.state not in IN_FLIGHT or not move.holds_slot(self.cluster.now):
                continue
            leader = seen.partitions[move.key].leader if move.key in seen.partitions else None
            leader = move.work.row.current[0] if leader is None else leader
            topics[move.work.row.topic] += 1
            if move.work.adding:
                out[leader] += 1
                into.update(move.work.adding)
            if move.key in submitted and move.attempt == 1:
                new_brokers |= {("out", leader)} if move.work.adding else set()
                new_brokers |= {("in", broker) for broker in move.work.adding}
        k = self.options.per_broker
        assert all((into if way == "in" else out)[broker] <= k for way, broker in new_brokers)
        if any(self.move(key).attempt == 1 for key in submitted):
            assert sum(topics.values()) <= self.options.per_cluster
        for topic in {topic for topic, partition in submitted if self.move((topic, partition)).attempt == 1}:
            assert topics[topic] <= max(1, seen.topics[topic].partitions // 2)

    def settle(self, most: int = 400) -> None:
        """Without faults, the operator answering what is asked, until all is over."""
        self.looks_late = 0
        for _ in range(most):
            self.moves = [apply_answer(move, self.cluster.now, again=True) for move in self.moves]
            if self.tick().over:
                return
        raise AssertionError(f"not over: {[(m.key, m.state, m.reason) for m in self.moves if not m.ended]}")
