"""Sends what a step decided, in its order, and makes rows of the answers; nothing is stored here.

Lists and rates of the throttle first, then the directories of what will come, the moves, cancels, orders of replicas,
what is cleared, and elections.
Each call ends within its deadline, and is made only while the lease holds for longer. What certainly never left is
told apart from what may have reached Kafka: the former counts no attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from kafkadash.domain.executor import Action, replied, unsent
from kafkadash.domain.executor_state import (
    Cancel,
    Elect,
    Key,
    Move,
    Place,
    Reorder,
    Reply,
    Submit,
    Transition,
)
from kafkadash.domain.plan import Options
from kafkadash.domain.reasons import CodedReason, find_reason
from kafkadash.domain.row_reasons import NotElected, NoTimeLeft, NotSentYet, RefusedToCancel, RefusedToOrder
from kafkadash.kafka.changing import Changed, KafkaClient
from kafkadash.kafka.port import ItemError, KafkaFailure, TopicPartition
from kafkadash.observe.lease import Lease
from kafkadash.reassign.run import fail_points
from kafkadash.reassign.run.budget import Budget
from kafkadash.reassign.run.directories import place
from kafkadash.reassign.run.fail_points import Call
from kafkadash.reassign.run.lease import ready
from kafkadash.reassign.run.ledger import Ledger
from kafkadash.reassign.run.order_answers import (
    ElectionNoTime,
    ElectionNotSent,
    ElectionRefused,
    ElectionUnknown,
    LeaderElected,
)

log = structlog.get_logger(__name__)

AT_ONCE = 500
"""Partitions of one request."""
NOT_IN_PROGRESS = 85


@dataclass(slots=True)
class Acted:
    """``rows`` that changed by the answers. ``elected``: what came of elections."""

    rows: dict[Key, Move] = field(default_factory=dict)
    elected: dict[Key, CodedReason] = field(default_factory=dict)


class StepCalls:
    """``transitions`` are those that were stored, by row; ``deadline`` is of one call, in seconds, ``budget`` of all.

    Raises LeaseLost as soon as somebody else has taken over; what was answered until then is lost, and the next step
    tells it from the cluster.
    """

    def __init__(
        self,
        client: KafkaClient,
        lease: Lease,
        ledger: Ledger,
        options: Options,
        stored: Mapping[Key, Transition],
        *,
        deadline: float,
        budget: Budget,
    ) -> None:
        self._client, self._lease, self._ledger, self._options = client, lease, ledger, options
        self._stored = stored
        self._deadline, self._budget = deadline, budget
        self.acted = Acted()

    def take(self, actions: Sequence[Action]) -> Acted:
        now = self._lease.now()
        wrong = self._ledger.set(self._client, now, deadline=self._deadline, may=self._may)
        for key in (action.key for action in actions if isinstance(action, Submit) and action.key in wrong):
            self._unsent(key, wrong[key])
        unplaced = self._place([a for a in actions if isinstance(a, Place) and a.key not in wrong])
        held = wrong.keys() | unplaced
        self._submit([action for action in actions if isinstance(action, Submit) and action.key not in held])
        self._cancel([action.key for action in actions if isinstance(action, Cancel)])
        self._reorder([action for action in actions if isinstance(action, Reorder)])
        self._ledger.clear(self._client, self._lease.now(), deadline=self._deadline, may=self._may)
        self._elect([action.key for action in actions if isinstance(action, Elect)])
        return self.acted

    def _may(self) -> bool:
        """Whether there is time for one more call. Raises LeaseLost."""
        if self._budget.left <= 0:
            return False
        ready(self._lease, self._deadline)
        return True

    def _place(self, wanted: Sequence[Place]) -> set[Key]:
        """Rows that are not submitted now, because where their replicas shall lie could not be told."""
        unplaced = place(self._client, wanted, deadline=self._deadline, may=self._may)
        for key, why in unplaced.again.items():
            self._unsent(key, why)
        for key, answer in unplaced.refused.items():
            self._submitted(key, Reply.REFUSED, answer, None)
        return unplaced.again.keys() | unplaced.refused.keys()

    def _submit(self, submits: Sequence[Submit]) -> None:
        """Rows that keep their number of replicas are guarded by Kafka where it can (4.1)."""
        changes_factor = [s for s in submits if self._changes_factor(s.key)]
        keep_factor = [s for s in submits if not self._changes_factor(s.key)]
        for some, keep in ((keep_factor, True), (changes_factor if self._options.change_rf else [], False)):
            targets = {s.key: s.replicas for s in some}
            self._alter(Call.SUBMIT, targets, keep, self._submitted)

    def _changes_factor(self, key: Key) -> bool:
        row = self._stored[key].after.work.row
        return len(row.target) != len(row.current)

    def _submitted(self, key: Key, reply: Reply, words: str, _: ItemError | None) -> None:
        self._set(replied(self._row(key), reply, self._lease.now(), words))

    def _cancel(self, keys: Sequence[Key]) -> None:
        self._alter(Call.CANCEL, dict.fromkeys(keys), keep=True, then=self._cancelled)

    def _cancelled(self, key: Key, reply: Reply, words: str, error: ItemError | None) -> None:
        if reply is Reply.REFUSED and (error is None or error.code != NOT_IN_PROGRESS):
            self._set(replace(self._row(key), reason=RefusedToCancel(words)))

    def _reorder(self, reorders: Sequence[Reorder]) -> None:
        targets = {r.key: r.replicas for r in reorders}
        self._alter(Call.REORDER, targets, keep=True, then=self._reordered)

    def _reordered(self, key: Key, reply: Reply, words: str, _: ItemError | None) -> None:
        if reply is Reply.REFUSED:
            self._set(replace(self._row(key), reason=RefusedToOrder(words)))

    def _alter(
        self,
        call: Call,
        targets: Mapping[Key, tuple[int, ...] | None],
        keep: bool,
        then: Callable[[Key, Reply, str, ItemError | None], None],
    ) -> None:
        keys = sorted(targets)
        for start in range(0, len(keys), AT_ONCE):
            some = {TopicPartition(*key): targets[key] for key in keys[start : start + AT_ONCE]}
            try:
                if not self._may():
                    self._none_sent(some, NoTimeLeft())
                    continue
                with fail_points.around((call,)):
                    answer = self._client.alter_reassignments(some, deadline=self._deadline, keep_factor=keep)
            except KafkaFailure as failure:
                self._none_sent(some, NotSentYet(str(failure)))
                continue
            for item, reply, error in _replies(answer):
                then((item.topic, item.partition), reply, error.text if error else "", error)

    def _elect(self, keys: Sequence[Key]) -> None:
        if not keys:
            return
        try:
            if not self._may():
                self._none_sent([TopicPartition(*key) for key in keys], NoTimeLeft())
                self.acted.elected |= dict.fromkeys(keys, ElectionNoTime())
                return
            with fail_points.around((Call.ELECTION,)):
                answer = self._client.elect_leaders([TopicPartition(*key) for key in keys], deadline=self._deadline)
        except KafkaFailure as failure:
            self._none_sent([TopicPartition(*key) for key in keys], NotSentYet(str(failure)))
            self.acted.elected |= dict.fromkeys(keys, ElectionNotSent(str(failure)))
            return
        for item, reply, error in _replies(answer):
            key = item.topic, item.partition
            words = error.text if error else ""
            self.acted.elected[key] = _answer_of(reply, words)
            if key in self._stored:
                self._elected(key, reply, words)

    def _elected(self, key: Key, reply: Reply, words: str) -> None:
        """A refusal stands at the row until a later election of it is done."""
        if reply is Reply.REFUSED:
            self._set(replace(self._row(key), reason=NotElected(words)))
        elif reply is Reply.ACCEPTED and find_reason(self._row(key).reason, NotElected):
            self._set(replace(self._row(key), reason=None))

    def _none_sent(self, items: Iterable[TopicPartition], why: CodedReason) -> None:
        for item in items:
            self._unsent((item.topic, item.partition), why)

    def _unsent(self, key: Key, why: CodedReason) -> None:
        stored = self._stored.get(key)
        if stored is not None:
            self._set(unsent(stored, self._lease.now(), why))

    def _row(self, key: Key) -> Move:
        return self.acted.rows.get(key, self._stored[key].after)

    def _set(self, row: Move) -> None:
        if row is not self._row(row.key):
            self.acted.rows[row.key] = row


def _answer_of(reply: Reply, words: str) -> CodedReason:
    """A lost answer is no refusal: nobody knows what came of it."""
    if reply is Reply.LOST:
        return ElectionUnknown()
    return LeaderElected() if reply is Reply.ACCEPTED else ElectionRefused(words)


def _replies(answer: Changed[TopicPartition]) -> Iterable[tuple[TopicPartition, Reply, ItemError | None]]:
    yield from ((item, Reply.ACCEPTED, None) for item in answer.done)
    yield from ((item, Reply.REFUSED, error) for item, error in answer.refused.items())
    yield from ((item, Reply.LOST, error) for item, error in answer.lost.items())
