"""A step of a run: lease, rows, orders, an observation of the cluster, and the pure ``execution.engine.step``.

Then one transaction stores everything that was decided, including the intents of all calls; then the calls are made;
then their answers are stored. If the worker dies in between, an intent remains, and the next step finds the result in
the cluster. A failed observation changes nothing.

Calls are sent in this order: lists and rates of the throttle, directories of future replicas, moves, cancels, replica
orders, removals, elections. Each call has a deadline, and is made only while the lease lasts longer than that. A call
that certainly was not sent counts no attempt, unlike a call that may have reached Kafka.

``take_turn`` begins a queued run when it is first in the queue and the cluster is healthy and as approved. Wrong
content makes the request STALE, with one reason per row; bad health keeps the run queued with the reason, and the run
is tried again until its window ends.

Each order of a person ends with an answer, whatever came of it. Log directories of future replicas are told to their
brokers before the moves are submitted. A broker that restarts in between forgets them, so the directories are read once
more when all moves have ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import Error, IntegrityError
from django.db.models import F
from django.db.models.functions import Now

from kafkadash.changes.checks import CheckSubject
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.changes.state_machine import ChangeState, ChangeTrigger
from kafkadash.changes.transitions import has_digested_content
from kafkadash.changes.worker_transitions import list_reasons, turn_stale
from kafkadash.clusters.secrets import SecretError
from kafkadash.core.database.availability import is_away
from kafkadash.core.leases import RowLease
from kafkadash.core.messages import (
    CodedMessage,
    CodedReason,
    PlainReason,
    coded,
    find_reason,
    is_same_reason,
    join_reasons,
    message_reason,
    pack_reasons,
    reason_columns,
    reason_message,
    reason_text,
)
from kafkadash.core.racks import judge_spread
from kafkadash.execution.claims import record_ends, register_accepted
from kafkadash.execution.command_answers import (
    CameTooLate,
    DoesNotAsk,
    ElectionNotSent,
    ElectionRefused,
    OrderAnswerCode,
)
from kafkadash.execution.engine.admission import RunHealth, check_content
from kafkadash.execution.engine.reasons import (
    CheckFailed,
    ClusterReadOnly,
    ClusterUnreadable,
    EndedByOperator,
    EndedByOperatorWithNote,
    LacksPermission,
    LiesElsewhere,
    LiesNobodyKnows,
    LookedOnceMore,
    MoreLikeIt,
    NewerVersion,
    NotElected,
    NotReadLately,
    NotSentYet,
    NotWatched,
    RefusedToCancel,
    RefusedToOrder,
    RowHeldUp,
    RowReasonCode,
    RunReasonCode,
    StartRefused,
    TopicsUnread,
)
from kafkadash.execution.engine.state import (
    BEFORE,
    REOPENED,
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
    StateTransition,
    SubmitAction,
)
from kafkadash.execution.engine.step import (
    Action,
    SetRate,
    StepPlan,
    apply_answer,
    apply_reply,
    cancel_row,
    plan_step,
    undo_unsent,
)
from kafkadash.execution.models import RUN_FORMAT, Execution, Order, OrderType
from kafkadash.execution.queue import in_front_of, wake_those_that_wait
from kafkadash.execution.worker import fail_points, moves
from kafkadash.execution.worker import finish as obligations
from kafkadash.execution.worker import finish as verifying
from kafkadash.execution.worker import snapshot as rest_of_cluster
from kafkadash.execution.worker.broker_absences import note_look
from kafkadash.execution.worker.fail_points import FailCall
from kafkadash.execution.worker.lease import LeaseLost, extend_lease, next_turn, take_lease
from kafkadash.execution.worker.measure import fresh_sizes, measure, moved_at_end, stored_progress
from kafkadash.execution.worker.moves import insert_rows, kept, load_rows, store_portions, store_rows
from kafkadash.execution.worker.running import CALL_S, RunningStep, StepBudget
from kafkadash.execution.worker.snapshot import (
    ClusterContext,
    ClusterReplaced,
    ClusterSnapshot,
    observe_cluster,
    read_context,
    window_open,
)
from kafkadash.execution.worker.throttle_ledger import RunLedger
from kafkadash.kafka.api import (
    ItemChanged,
    ItemError,
    KafkaAdmin,
    KafkaChanges,
    KafkaClient,
    KafkaFailure,
    NotSupported,
    ReplicaPlace,
    TopicPartition,
)
from kafkadash.kafka.connect import admin_for
from kafkadash.monitoring.models import CollectorKind
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.preconditions import ClusterSeen, check_preconditions
from kafkadash.planning.stored_checks import find_broken_rules, limits_of, plan_rows
from kafkadash.planning.stored_topology import load_topology
from kafkadash.planning.topology import ClusterTopology


@dataclass(slots=True)
class TakenOrders:
    """``rows`` as the orders make them; ``elections`` are to be sent. Nothing is written before ``store``."""

    orders: list[Order] = field(default_factory=list)
    rows: dict[Key, RunRow] = field(default_factory=dict)

    @property
    def elections(self) -> list[Key]:
        return [key_of(order) for order in self._unanswered]

    @property
    def _unanswered(self) -> list[Order]:
        """Elections, which are answered when Kafka was asked."""
        return [order for order in self.orders if order.answer is None]

    def store(self, now: datetime) -> None:
        """In the transaction of the step. An election is taken when it is answered: sent twice, it does no harm."""
        self._take([order for order in self.orders if order.answer is not None], now)

    def store_elected(self, elected: Mapping[Key, CodedReason], now: datetime) -> None:
        """Answer elections by what came of them."""
        orders = self._unanswered
        for order in orders:
            order.answer = elected.get(key_of(order)) or PlainReason(OrderAnswerCode.ELECTION_UNKNOWN)
        self._take(orders, now)

    @staticmethod
    def _take(orders: Sequence[Order], now: datetime) -> None:
        for order in orders:
            order.taken_at = now
        if orders:
            Order.objects.bulk_update(orders, ["taken_at", "answer_code", "answer_params"])


def take_orders(running: RunningStep, moves: Sequence[RunRow], ledger: RunLedger) -> TakenOrders:
    """Take up the run's orders, and return them with the rows that they change. One query, and none without orders."""
    if not running.orders:
        return TakenOrders()
    taken = TakenOrders(list(Order.objects.filter(execution=running.execution, taken_at=None)))
    wanted = {key_of(order) for order in taken.orders}
    rows = {move.key: move for move in moves if move.key in wanted}
    for order in taken.orders:
        if order.entity:
            order.answer = ledger.order(OrderType(order.order_type), order.entity, order.user_name)
            continue
        move = rows.get(key_of(order))
        if move is None:
            order.answer = PlainReason(OrderAnswerCode.NO_ROW)
            continue
        after, answer = _ROW_DEEDS[OrderType(order.order_type)](move, order, running)
        if answer is not None:
            order.answer = answer
        if after is not move:
            rows[move.key] = taken.rows[move.key] = after
    return taken


def key_of(order: Order) -> Key:
    return order.topic, order.partition or 0


def _cancel_row(move: RunRow, order: Order, running: RunningStep) -> tuple[RunRow, CodedReason]:
    after = cancel_row(move, running.now(), _operator_reason(order))
    if after is move:
        return move, CameTooLate(move.state.value)
    return after, PlainReason(OrderAnswerCode.CANCEL_BEGAN) if after.in_flight else PlainReason(
        OrderAnswerCode.LEFT_OUT
    )


def _retry_row(move: RunRow, order: Order, running: RunningStep) -> tuple[RunRow, CodedReason]:
    if running.state is ChangeState.CANCELLING:
        return move, PlainReason(OrderAnswerCode.RUN_IS_CANCELLED)
    return _answer_row(move, order, running, again=True)


def _give_up(move: RunRow, order: Order, running: RunningStep) -> tuple[RunRow, CodedReason]:
    return _answer_row(move, order, running, again=False)


def _answer_row(move: RunRow, order: Order, running: RunningStep, *, again: bool) -> tuple[RunRow, CodedReason]:
    if not move.asks:
        return move, DoesNotAsk(move.state.value)
    after = apply_answer(move, running.now(), again=again, reason=_operator_reason(order))
    return after, PlainReason(OrderAnswerCode.TAKES_ITS_TURN) if again else PlainReason(OrderAnswerCode.GIVEN_UP)


def _elect(move: RunRow, _order: Order, _running: RunningStep) -> tuple[RunRow, None]:
    """Leave the row as it is: the order is answered when Kafka was asked."""
    return move, None


def _operator_reason(order: Order) -> CodedReason:
    name, note = order.user_name, order.reason
    return EndedByOperatorWithNote(name, note) if note else EndedByOperator(name)


_ROW_DEEDS: Mapping[OrderType, Callable[[RunRow, Order, RunningStep], tuple[RunRow, CodedReason | None]]] = {
    OrderType.CANCEL_ROW: _cancel_row,
    OrderType.AGAIN: _retry_row,
    OrderType.GIVE_UP: _give_up,
    OrderType.ELECT: _elect,
}


AT_ONCE = 500
"""Rows of one round of requests."""


@dataclass(slots=True)
class DirectoryRefused:
    """Rows that must not be submitted: ``refused`` by Kafka in its own words, ``again`` is why they are tried again."""

    refused: dict[Key, str] = field(default_factory=dict)
    again: dict[Key, CodedReason] = field(default_factory=dict)


def place_replicas(
    client: KafkaChanges, wanted: Sequence[BrokerSlot], *, deadline: float, may: Callable[[], bool]
) -> DirectoryRefused:
    """Send one request to each broker. A lost one is sent again with the next submission, which does no harm."""
    unplaced = DirectoryRefused()
    for start in range(0, len(wanted), AT_ONCE):
        some = wanted[start : start + AT_ONCE]
        places = {ReplicaPlace(broker, *row.key): path for row in some for broker, path in row.directories}
        try:
            if not may():
                unplaced.again.update({row.key: PlainReason(RowReasonCode.NO_TIME_LEFT) for row in some})
                continue
            with fail_points.around((FailCall.PLACE,)):
                answer = client.place_replicas(places, deadline=deadline)
        except KafkaFailure as failure:
            unplaced.again.update({row.key: NotSentYet(str(failure)) for row in some})
            continue
        for replica, error in answer.refused.items():
            if error.code is None:
                unplaced.again[replica.topic, replica.partition] = NotSentYet(error.cause)
            else:
                unplaced.refused[replica.topic, replica.partition] = error.cause
        for replica, error in answer.lost.items():
            unplaced.again[replica.topic, replica.partition] = NotSentYet(error.cause)
    return unplaced


def find_misplaced(client: KafkaAdmin, moves: Sequence[RunRow], *, deadline: float) -> dict[Key, CodedReason]:
    """Rows that are done, but whose new replicas do not lie where the plan says, or nobody can tell.

    Kafka is asked only where a row names a directory.
    """
    named = [move.work.row for move in moves if move.state is RowState.DONE and move.work.row.log_dirs]
    rows = [row for row in named if row.directories]
    if not rows:
        return {}
    brokers = sorted({broker for row in rows for broker, _ in row.directories})
    lies: dict[tuple[int, Key], str] = {}
    untold: dict[int, str] = {}
    try:
        answer = client.log_dirs(brokers, deadline=deadline)
    except KafkaFailure as failure:
        untold = dict.fromkeys(brokers, str(failure))
    else:
        untold = {broker: error.text for broker, error in answer.errors.items()}
        for broker, directories in answer.brokers.items():
            for directory in directories:
                lies.update({(broker, (r.topic, r.partition)): directory.path for r in directory.replicas})
    found: dict[Key, CodedReason] = {}
    for row in rows:
        key = row.topic, row.partition
        for broker, path in row.directories:
            there = lies.get((broker, key))
            if there != path:
                found[key] = join_reasons(
                    found.get(key), _misplacement_reason(broker, path, there, untold.get(broker, ""))
                )
    return found


def _misplacement_reason(broker: int, path: str, there: str | None, untold: str) -> CodedReason:
    return LiesNobodyKnows(broker, path, untold) if there is None else LiesElsewhere(broker, there, path)


log = structlog.get_logger(__name__)
"""Partitions of one request."""
NOT_IN_PROGRESS = 85


@dataclass(slots=True)
class ActedStep:
    """``rows`` that changed by the answers, ``accepted`` submissions. ``elected``: what came of elections."""

    rows: dict[Key, RunRow] = field(default_factory=dict)
    accepted: list[RunRow] = field(default_factory=list)
    elected: dict[Key, CodedReason] = field(default_factory=dict)


class StepCalls:
    """``transitions`` are those that were stored, by row; ``deadline`` is of one call, in seconds, ``budget`` of all.

    Raises LeaseLost as soon as somebody else has taken over; what was answered until then is lost, and the next step
    tells it from the cluster.
    """

    def __init__(
        self,
        client: KafkaClient,
        lease: RowLease,
        ledger: RunLedger,
        options: RunOptions,
        stored: Mapping[Key, StateTransition],
        *,
        deadline: float,
        budget: StepBudget,
    ) -> None:
        self._client, self._lease, self._ledger, self._options = client, lease, ledger, options
        self._stored = stored
        self._deadline, self._budget = deadline, budget
        self.acted = ActedStep()

    def take(self, actions: Sequence[Action]) -> ActedStep:
        now = self._lease.now()
        wrong = self._ledger.send_limits(now, deadline=self._deadline, may=self._may)
        copies = {a.key: self._stored[a.key].after.work for a in actions if isinstance(a, SubmitAction)}
        users = {key: [*work.row.current, *work.adding] for key, work in copies.items() if work.adding}
        wrong = self._ledger.await_rates(users, now, deadline=self._deadline, may=self._may)
        for key in (action.key for action in actions if isinstance(action, SubmitAction) and action.key in wrong):
            self._unsent(key, wrong[key])
        unplaced = self._place([a for a in actions if isinstance(a, BrokerSlot) and a.key not in wrong])
        held = wrong.keys() | unplaced
        self._submit([action for action in actions if isinstance(action, SubmitAction) and action.key not in held])
        self._cancel([action.key for action in actions if isinstance(action, CancelAction)])
        self._reorder([action for action in actions if isinstance(action, ReorderAction)])
        self._ledger.send_restores(self._lease.now(), deadline=self._deadline, may=self._may)
        self._elect([action.key for action in actions if isinstance(action, ElectAction)])
        return self.acted

    def _may(self) -> bool:
        """Return whether there is time for one more call, and renew the lease if so. Raises LeaseLost."""
        if self._budget.left <= 0:
            return False
        extend_lease(self._lease, self._deadline)
        return True

    def _place(self, wanted: Sequence[BrokerSlot]) -> set[Key]:
        """Rows that are not submitted now, because where their replicas shall lie could not be told."""
        unplaced = place_replicas(self._client, wanted, deadline=self._deadline, may=self._may)
        for key, why in unplaced.again.items():
            self._unsent(key, why)
        for key, answer in unplaced.refused.items():
            self._submitted(key, CallReply.REFUSED, answer, None)
        return unplaced.again.keys() | unplaced.refused.keys()

    def _submit(self, submits: Sequence[SubmitAction]) -> None:
        """Rows that keep their number of replicas are guarded by Kafka where it can (4.1)."""
        changes_factor = [s for s in submits if self._changes_factor(s.key)]
        keep_factor = [s for s in submits if not self._changes_factor(s.key)]
        for some, keep in ((keep_factor, True), (changes_factor if self._options.change_rf else [], False)):
            targets = {s.key: s.replicas for s in some}
            self._alter(FailCall.SUBMIT, targets, keep, self._submitted)

    def _changes_factor(self, key: Key) -> bool:
        row = self._stored[key].after.work.row
        return len(row.target) != len(row.current)

    def _submitted(self, key: Key, reply: CallReply, words: str, _: ItemError | None) -> None:
        self._set(apply_reply(self._row(key), reply, self._lease.now(), words))
        if reply is CallReply.ACCEPTED:
            self.acted.accepted.append(self._row(key))

    def _cancel(self, keys: Sequence[Key]) -> None:
        self._alter(FailCall.CANCEL, dict.fromkeys(keys), keep=True, then=self._cancelled)

    def _cancelled(self, key: Key, reply: CallReply, words: str, error: ItemError | None) -> None:
        if reply is CallReply.REFUSED and (error is None or error.code != NOT_IN_PROGRESS):
            self._set(replace(self._row(key), reason=RefusedToCancel(words)))

    def _reorder(self, reorders: Sequence[ReorderAction]) -> None:
        targets = {r.key: r.replicas for r in reorders}
        self._alter(FailCall.REORDER, targets, keep=True, then=self._reordered)

    def _reordered(self, key: Key, reply: CallReply, words: str, _: ItemError | None) -> None:
        if reply is CallReply.REFUSED:
            self._set(replace(self._row(key), reason=RefusedToOrder(words)))

    def _alter(
        self,
        call: FailCall,
        targets: Mapping[Key, tuple[int, ...] | None],
        keep: bool,
        then: Callable[[Key, CallReply, str, ItemError | None], None],
    ) -> None:
        keys = sorted(targets)
        for start in range(0, len(keys), AT_ONCE):
            some = {TopicPartition(*key): targets[key] for key in keys[start : start + AT_ONCE]}
            try:
                if not self._may():
                    self._none_sent(some, PlainReason(RowReasonCode.NO_TIME_LEFT))
                    continue
                with fail_points.around((call,)):
                    answer = self._client.alter_reassignments(some, deadline=self._deadline, keep_factor=keep)
            except KafkaFailure as failure:
                self._none_sent(some, NotSentYet(str(failure)))
                continue
            for item, reply, error in _replies(answer):
                then((item.topic, item.partition), reply, error.cause if error else "", error)

    def _elect(self, keys: Sequence[Key]) -> None:
        if not keys:
            return
        try:
            if not self._may():
                self._none_sent([TopicPartition(*key) for key in keys], PlainReason(RowReasonCode.NO_TIME_LEFT))
                self.acted.elected |= dict.fromkeys(keys, PlainReason(OrderAnswerCode.ELECTION_NO_TIME))
                return
            with fail_points.around((FailCall.ELECTION,)):
                answer = self._client.elect_leaders([TopicPartition(*key) for key in keys], deadline=self._deadline)
        except KafkaFailure as failure:
            self._none_sent([TopicPartition(*key) for key in keys], NotSentYet(str(failure)))
            self.acted.elected |= dict.fromkeys(keys, ElectionNotSent(str(failure)))
            return
        for item, reply, error in _replies(answer):
            key = item.topic, item.partition
            words = error.cause if error else ""
            self.acted.elected[key] = _answer_of(reply, words)
            if key in self._stored:
                self._elected(key, reply, words)

    def _elected(self, key: Key, reply: CallReply, words: str) -> None:
        """A refusal stands at the row until a later election of it is done."""
        if reply is CallReply.REFUSED:
            self._set(replace(self._row(key), reason=NotElected(words)))
        elif reply is CallReply.ACCEPTED and find_reason(self._row(key).reason, NotElected):
            self._set(replace(self._row(key), reason=None))

    def _none_sent(self, items: Iterable[TopicPartition], why: CodedReason) -> None:
        for item in items:
            self._unsent((item.topic, item.partition), why)

    def _unsent(self, key: Key, why: CodedReason) -> None:
        stored = self._stored.get(key)
        if stored is not None:
            self._set(undo_unsent(stored, self._lease.now(), why))

    def _row(self, key: Key) -> RunRow:
        return self.acted.rows.get(key, self._stored[key].after)

    def _set(self, row: RunRow) -> None:
        if row is not self._row(row.key):
            self.acted.rows[row.key] = row


def _answer_of(reply: CallReply, words: str) -> CodedReason:
    """A lost answer is no refusal: nobody knows what came of it."""
    if reply is CallReply.LOST:
        return PlainReason(OrderAnswerCode.ELECTION_UNKNOWN)
    return PlainReason(OrderAnswerCode.ELECTED) if reply is CallReply.ACCEPTED else ElectionRefused(words)


def _replies(answer: ItemChanged[TopicPartition]) -> Iterable[tuple[TopicPartition, CallReply, ItemError | None]]:
    yield from ((item, CallReply.ACCEPTED, None) for item in answer.done)
    yield from ((item, CallReply.REFUSED, error) for item, error in answer.refused.items())
    yield from ((item, CallReply.LOST, error) for item, error in answer.lost.items())


AGAIN_S = 10.0
"""A run that cannot begin is tried again after so long."""
SURE_S = 2.0
"""Content that a broker's late metadata could feign to be wrong is looked at once more, so much later."""

MOST_PERMISSIONS = 5
_ON_CLUSTER = ("Alter", "AlterConfigs")
_NOT_HEALTH = frozenset({"window", "throttle"})
"""Stored checks that keep no run from beginning: the end is an estimate, and the rate can be changed meanwhile."""


def take_turn(running: RunningStep, client: KafkaClient, budget: StepBudget) -> None:
    """Try once to start the run. Raises KafkaFailure, SecretError, AnotherCluster where the cluster cannot be asked."""
    now = running.now()
    if in_front_of(running.execution, now) is not None:
        _store_blocked(running, None)
        return
    if not has_digested_content(running.request):
        _turn_stale(running, [coded(ChangeErrorCode.CONTENT_ALTERED, name=f"#{running.request.pk}")])
        return
    rows = plan_rows(running.request.artifact_id or "")
    if broken := find_broken_rules(running.request, rows, now):
        _turn_stale(running, broken)
        return
    loaded = load_topology(running.cluster, frozenset(row.topic for row in rows)).seen
    works = _build_works(rows, loaded.topology)
    why = (
        _not_allowed(running, now) or _find_stale_facts(loaded, now) or _check_stored_health(running, rows, loaded, now)
    )
    if why:
        _store_blocked(running, why)
        return
    seen = _observe_before_start(running, client, works, budget)
    why = _not_seen(seen.observation)
    if why:
        _store_blocked(running, why)
        return
    judged = [_judge_content(RunRow(work), seen.observation, running.options, running.now()) for work in works]
    wrong = [move for move in judged if move.ended]
    if wrong:
        _not_as_approved(running, wrong)
        return
    why = _check_observed_health(works, seen.observation) or _not_permitted(client, {row.topic for row in rows}, budget)
    if why:
        _store_blocked(running, why)
        return
    insert_rows(running.lease, running.execution.pk, works)
    _begin_run(running, len(works))


def _build_works(rows: Sequence[PartitionMove], topology: ClusterTopology) -> list[CopyWork]:
    """With the sizes as they are now, for the order in which rows are submitted."""
    racks = topology.racks
    number = len(set(racks.values()))
    sizes = {(t.name, p.partition): p.size_bytes for t in topology.topics.values() for p in t.partitions}

    def mends(row: PartitionMove) -> bool:
        return (
            number > 1
            and judge_spread(row.target, racks, number).moves < judge_spread(row.current, racks, number).moves
        )

    return [CopyWork(row, sizes.get((row.topic, row.partition)), mends(row)) for row in rows]


def _not_allowed(running: RunningStep, now: datetime) -> CodedReason | None:
    """Return why nothing is begun on this cluster now; None when nothing stands against it."""
    cluster = running.cluster
    if cluster.read_only:
        return ClusterReadOnly(cluster.name)
    if not cluster.enabled:
        return NotWatched(cluster.name)
    return None if window_open(running.options, now) else PlainReason(RunReasonCode.WINDOW_NOT_OPEN)


def _find_stale_facts(seen: ClusterSeen, now: datetime) -> CodedReason | None:
    """Stored facts decide what is not asked live: disks, and the rest of the cluster's partitions."""
    kinds = {
        CollectorKind.METADATA: seen.metadata,
        CollectorKind.REASSIGNMENTS: seen.reassignments,
        CollectorKind.LOG_DIRS: seen.log_dirs,
    }
    if not seen.zookeeper:
        kinds[CollectorKind.QUORUM] = seen.quorum
    old = tuple(kind.value for kind, read in kinds.items() if read.stale(now))
    return NotReadLately(old) if old else None


def _check_stored_health(
    running: RunningStep, rows: Sequence[PartitionMove], seen: ClusterSeen, now: datetime
) -> CodedReason | None:
    """The first thing that the stored facts have against it. What cannot be told at all was shown to who approved."""
    found = check_preconditions(rows, running.options, limits_of(running.request.input), seen, now)
    failed = [check for check in found.failed(CheckSubject.HEALTH) if check.code not in _NOT_HEALTH]
    if not failed:
        return None
    first = next((problem for check in failed for problem in check.problems), failed[0].title)
    total = sum(max(check.problem_count, len(check.problems), 1) for check in failed)
    return _with_more(CheckFailed(failed[0].code, message_reason(first)), total)


def _observe_before_start(
    running: RunningStep, client: KafkaClient, works: Sequence[CopyWork], budget: StepBudget
) -> ClusterSnapshot:
    moves = [RunRow(work) for work in works]
    return observe_cluster(
        client,
        running.cluster,
        moves,
        budget.reading(settings.KAFKA_DEADLINE),
        now=running.now(),
        known=read_context(running.cluster, {work.row.topic for work in works}, running.now()),
        options=running.options,
        disk_limit=running.disk_limit,
    )


def _not_seen(seen: ClusterObservation) -> CodedReason | None:
    if not seen.quorum:
        return PlainReason(RunReasonCode.QUORUM_SILENT)
    if not seen.listing:
        return PlainReason(RunReasonCode.LISTING_UNREAD)
    return TopicsUnread(len(seen.unread), tuple(sorted(seen.unread)[:5])) if seen.unread else None


def _judge_content(move: RunRow, seen: ClusterObservation, options: RunOptions, now: datetime) -> RunRow:
    """Check the row's content as if a second look had said the same, so that the row says what is wrong."""
    once = check_content(move, seen, options, now)
    if once.hint is None:
        return once
    again = check_content(once, replace(seen, at=seen.at + timedelta(microseconds=1)), options, now)
    return replace(again, hint=once.hint)


def _not_as_approved(running: RunningStep, wrong: Sequence[RunRow]) -> None:
    """STALE; but what a broker's late metadata could feign is looked at once more before approvals are void."""
    code = ReassignmentErrorCode.ROW_NOT_AS_APPROVED
    told = [coded(code, row=move.work.row.name, why=move.reason) for move in wrong]
    sure = any(move.hint is None for move in wrong)
    once_more = _with_more(LookedOnceMore(wrong[0].work.row.name, wrong[0].reason), len(wrong))
    if not sure and running.execution.blocked != once_more:
        _store_blocked(running, once_more, again=SURE_S)
        return
    _turn_stale(running, told)


def _turn_stale(running: RunningStep, told: Sequence[CodedMessage]) -> None:
    with running.write_state() as request:
        turn_stale(request, list_reasons(told, len(told)), len(told), running.now())


def _check_observed_health(works: Sequence[CopyWork], seen: ClusterObservation) -> CodedReason | None:
    health = RunHealth(seen)
    wrong: dict[CodedReason, str] = {}
    for work in works:
        why = health.wrong(work)
        if why:
            wrong.setdefault(why, work.row.name)
    if not wrong:
        return None
    first, name = next(iter(wrong.items()))
    of_one_row = first.stored_code in (RowReasonCode.NO_LEADER, RowReasonCode.UNDER_MIN_ISR)
    return _with_more(RowHeldUp(name, first) if of_one_row else first, len(wrong))


def _not_permitted(client: KafkaClient, topics: Collection[str], budget: StepBudget) -> CodedReason | None:
    """Return what the principal lacks, or None, where the brokers tell it: an unknown permission refuses nothing."""
    try:
        own = client.permissions(deadline=budget.reading(settings.KAFKA_DEADLINE))
    except NotSupported:
        return None
    lacks = [(needed, "") for needed in _ON_CLUSTER if own.cluster and needed not in own.cluster]
    for topic in sorted(topics):
        held = own.topics.get(topic)
        if held is not None and "AlterConfigs" not in held:
            lacks.append(("AlterConfigs", topic))
    if not lacks:
        return None
    return _with_more(LacksPermission(tuple(lacks[:MOST_PERMISSIONS])), len(lacks) - MOST_PERMISSIONS + 1)


def _store_blocked(running: RunningStep, why: CodedReason | None, *, again: float = AGAIN_S) -> None:
    """Store why the run waits; None where only others are in front of it."""
    own = running.execution
    with running.write():
        running.save(
            **reason_columns(why, "blocked"),
            blocked_at=None if why is None else own.blocked_at if own.blocked else Now(),
            **reason_columns(None, "error"),
            failures=0,
            looked_at=running.now(),
            next_at=next_turn(running.lease, again),
        )
        if why is not None and own.blocked is None:
            wake_those_that_wait(running.cluster.pk, but=own.pk)  # some may pass it now
    if why != own.blocked:
        running.hint()


def _begin_run(running: RunningStep, rows: int) -> None:
    """QUEUED → EXECUTING with its rows, in one transaction; or, if something came between, another try."""
    try:
        with running.write_state() as request:
            if request.state != ChangeState.QUEUED or request.digest != running.request.digest:
                return
            running.move(request, ChangeTrigger.TURN, also={"rows": rows})
            running.save(
                active=True,
                started_at=running.now(),
                **reason_columns(None, "blocked"),
                blocked_at=None,
                rows=rows,
                **reason_columns(None, "error"),
                failures=0,
                next_at=next_turn(running.lease, 0),
            )
    except IntegrityError:
        return  # another run of the cluster became active at this instant; the next try waits for it
    except ChangeRefused as refused:
        _store_blocked(running, StartRefused(str(refused)))
        return
    running.publish()


def _with_more(first: CodedReason, total: int) -> CodedReason:
    return join_reasons(first, MoreLikeIt(total - 1)) if total > 1 else first


REST_S = 10.0
"""Between two steps of a run in which nothing moves and nothing can be submitted."""
FAULT_S = 10.0
KNOWN_FOR_S = 10.0
KNOWN_RUNS = 50

_MODES = {
    ChangeState.EXECUTING: RunMode.EXECUTING,
    ChangeState.PAUSED: RunMode.PAUSED,
    ChangeState.CANCELLING: RunMode.CANCELLING,
    ChangeState.VERIFYING: RunMode.PAUSED,
}


class StateChanged(Exception):
    """State change (pause, resume, cancel) while a step was decided: the step is decided anew, at once."""


def step_once(execution_id: int) -> None:
    """Do one step of the run, or nothing where somebody else works on the run or its time has not come.

    Without the database it ends where it is and stores nothing: what was sent is told from the cluster by the next
    step, which begins when the lease is over. Raises Error only where the lease could not be asked for.
    """
    lease = take_lease(execution_id)
    if lease is None:
        return
    try:
        running = RunningStep.of(lease)
        if running is not None:
            _run_step(running)
    except StateChanged:
        log.info("execution.state_changed", execution=execution_id)
    except LeaseLost:
        log.warning("execution.lease_lost", execution=execution_id, epoch=lease.epoch)
    except Exception as fault:
        if is_away(fault):
            log.warning("execution.database_away", execution=execution_id, error=str(fault).strip())
            return
        log.exception("execution.step_failed", execution=execution_id)
        with suppress(Error, LeaseLost), lease.write_portion():
            _note_fault(execution_id)
            lease.postpone(FAULT_S)
    finally:
        with suppress(Error):
            lease.give_back()


def _note_fault(execution_id: int) -> None:
    columns = reason_columns(PlainReason(RunReasonCode.STEP_FAILED), "error")
    Execution.objects.filter(pk=execution_id).update(**columns, failures=F("failures") + 1)


def _run_step(running: RunningStep) -> None:
    fail_points.step_begins()
    budget = StepBudget()
    try:
        if running.execution.format > RUN_FORMAT:
            _of_a_newer_version(running)
            return
        client = client_of(running)
        if running.state is ChangeState.QUEUED:
            take_turn(running, client, budget)
        elif running.state in _MODES:
            _MovingRows(running, client, budget).take()
        else:
            obligations.work_off(running, client, budget)
    except (KafkaFailure, SecretError, ClusterReplaced) as failure:
        _look_failed(running, failure)


def _of_a_newer_version(running: RunningStep) -> None:
    """Two versions at once, or one that was taken back: what is stored is not guessed at, and nothing is sent."""
    own = running.execution
    why = NewerVersion(own.format, RUN_FORMAT)
    log.warning("execution.newer_format", execution=own.pk, format=own.format)
    with running.write():
        running.save(**reason_columns(why, "error"), next_at=next_turn(running.lease, REST_S))
    if not is_same_reason(own.error, why):
        running.publish()


def client_of(running: RunningStep) -> KafkaClient:
    """The one that this process has for the cluster. Raises SecretError."""
    return admin_for(running.cluster.connection())


def _look_failed(running: RunningStep, failure: Exception) -> None:
    own = running.execution
    log.warning("execution.look_failed", execution=own.pk, change=own.request_id, error=str(failure))
    if verifying.gives_up(running, failure):
        return
    with running.write():
        running.save(
            **reason_columns(_reason_of(failure), "error"),
            failures=own.failures + 1,
            next_at=next_turn(running.lease, REST_S if own.failures else settings.EXECUTE_INTERVAL),
        )
    running.publish()


def _reason_of(failure: Exception) -> CodedReason:
    return failure.reason if isinstance(failure, ClusterReplaced) else ClusterUnreadable(str(failure))


@dataclass(slots=True)
class _DecidedStart:
    """Result of one look. ``rows`` are all rows as they are after it, ``changed`` those that are stored otherwise.

    ``copied``: bytes that had been copied of rows that have just ended.
    """

    taken: StepPlan
    orders: TakenOrders
    rows: list[RunRow]
    changed: list[StateTransition]
    copied: dict[Key, int | None] = field(default_factory=dict)


class _MovingRows:
    """A step of a run that is under way."""

    def __init__(self, running: RunningStep, client: KafkaClient, budget: StepBudget) -> None:
        self._running, self._client, self._budget = running, client, budget
        self._mode = _MODES[running.state]
        execution = running.execution
        self._rows = kept.take(execution.pk, running.lease.epoch) or load_rows(execution.pk)
        self._ledger = RunLedger.load(execution)
        self._foreign = list(execution.foreign)

    def take(self) -> None:
        running = self._running
        seen = self._look()
        self._ledger.prepare(self._client, seen.alive, running.now(), deadline=self._budget.reading(CALL_S))
        orders = take_orders(running, self._rows.moves, self._ledger)
        decided = self._decide(seen, orders)
        while rates := self._rates_of_others(decided, seen):
            seen = seen.throttled_by_others(rates)
            decided = self._decide(seen, orders)
        deadline = self._budget.reading(CALL_S)
        self._ledger.intend(decided.taken.actions, running.now(), deadline=deadline)
        self._measure(decided, seen)
        self._commit(decided, seen)
        if decided.taken.actions or decided.orders.elections or self._ledger.calls_left:
            self._act(decided)
        kept.give(running.execution.pk, running.lease.epoch, self._rows)
        running.publish()

    def _look(self) -> ClusterSnapshot:
        running = self._running
        topics = {move.work.row.topic for move in self._rows.moves}
        return observe_cluster(
            self._client,
            running.cluster,
            self._rows.moves,
            self._budget.reading(settings.KAFKA_DEADLINE),
            now=running.now(),
            known=self._known(topics),
            options=running.options,
            disk_limit=running.disk_limit,
        )

    def _rates_of_others(self, decided: _DecidedStart, seen: ClusterSnapshot) -> Mapping[int, str]:
        """Return rates that others use on brokers that would be given one now: ours is not set over theirs."""
        known = seen.observation.brokers
        given = [action.broker for action in decided.taken.actions if isinstance(action, SetRate)]
        brokers = [broker for broker in given if not known[broker].others_rate]
        if not brokers:
            return {}
        deadline = self._budget.reading(CALL_S)
        return self._ledger.rates_of_others(seen, brokers, self._running.now(), deadline=deadline)

    def _known(self, topics: set[str]) -> ClusterContext:
        found = _read_context(self._running, topics)
        cluster = self._running.cluster
        if not cluster.read_only:
            return found
        return replace(found, withheld=(*found.withheld, ClusterReadOnly(cluster.name)))

    def _decide(self, seen: ClusterSnapshot, orders: TakenOrders) -> _DecidedStart:
        running = self._running
        before = self._rows.moves
        moves = [orders.rows.get(move.key, move) for move in before] if orders.rows else before
        taken = plan_step(moves, seen.observation, running.options, running.now(), self._mode, self._ledger.throttles())
        after = {t.after.key: t.after for t in taken.transitions}
        rows = [after.get(move.key, move) for move in moves]
        if running.state is ChangeState.VERIFYING:
            elsewhere = find_misplaced(self._client, rows, deadline=self._budget.reading(CALL_S))
            rows = [verifying.recheck_row(move, seen.observation, running, elsewhere) for move in rows]
        changed = [StateTransition(a, b) for a, b in zip(before, rows, strict=True) if a is not b]
        return _DecidedStart(taken, orders, rows, changed)

    def _measure(self, decided: _DecidedStart, seen: ClusterSnapshot) -> None:
        """Write the run's figures. A fault in them stops no move: the last ones stay, with their age."""
        execution, now = self._running.execution, self._running.now()
        try:
            ended = [t.after for t in decided.changed if t.after.ended and not t.before.ended]
            shown = stored_progress(execution) if ended else None
            decided.copied = {move.key: moved_at_end(shown, move) for move in ended}
            fresh = fresh_sizes(execution, decided.rows)
            measure(execution, decided.rows, seen.observation, seen.offsets, fresh, now)
        except Error:
            raise
        except Exception:
            log.exception("execution.not_measured", execution=execution.pk)

    def _commit(self, decided: _DecidedStart, seen: ClusterSnapshot) -> None:
        """All that was decided, and the intents, before anything of it is sent."""
        running = self._running
        own = running.execution
        over = decided.taken.over and not self._ledger.pending(running.now())
        ends = over and running.state is not ChangeState.PAUSED
        submits = any(isinstance(action, SubmitAction) for action in decided.taken.actions)
        own.absences = note_look(own.absences, seen.observation.brokers, seen.taken_at, own.started_at)
        ahead, changed = self._split(decided)
        store_portions(running.lease, self._rows, ahead, decided.copied)
        with running.write_state() if ends or submits else running.write() as request:
            if request is not None and request.state != running.state:
                raise StateChanged
            store_rows(self._rows, changed, decided.copied)
            record_ends(own, [t.after for t in decided.changed if not t.before.ended], running.now())
            self._ledger.commit(running.now())
            decided.orders.store(running.now())
            self._tell(decided)
            running.save(
                looked_at=seen.taken_at,
                failures=0,
                held=[] if running.state is ChangeState.VERIFYING else pack_reasons(decided.taken.held),
                **reason_columns(None, "error"),
                **reason_columns(decided.taken.brake.reason, "brake"),
                absences=own.absences,
                next_at=next_turn(running.lease, self._rest(decided)),
                progress=own.progress,
                progress_at=own.progress_at,
                samples=own.samples,
            )
            if ends and request is not None:
                verifying.finish_run(running, request, decided.rows, seen, self._ledger.obligations())
        self._rows.moves = decided.rows

    @staticmethod
    def _split(decided: _DecidedStart) -> tuple[list[RunRow], list[RunRow]]:
        """Rows to be stored before the others, where all are too many for one short transaction, and those others.

        Whoever dies in between has stored what was seen, or an intent, of some rows. A row's first submission waits for
        what proves that nobody paused the run, and what an order made of a row for the answer to the order.
        """
        if len(decided.changed) <= moves.AT_ONCE:
            return [], [t.after for t in decided.changed]
        ahead: list[RunRow] = []
        rest: list[RunRow] = []
        for t in decided.changed:
            first = t.before.state in BEFORE and t.after.state is RowState.SUBMITTING
            (rest if first or t.after.key in decided.orders.rows else ahead).append(t.after)
        return ahead, rest

    def _rest(self, decided: _DecidedStart) -> float:
        """Seconds from the start of this step to that of the next; a little less, as the tick comes once a second."""
        quick = float(settings.EXECUTE_INTERVAL)
        still = not decided.taken.actions and not any(move.in_flight for move in decided.rows)
        ends = decided.taken.over and self._running.state is not ChangeState.PAUSED
        rests = still and not ends and (decided.taken.held or self._all_wait(decided.rows))
        return max(quick, REST_S) if rests else max(0.0, quick - 0.5)

    @staticmethod
    def _all_wait(rows: Sequence[RunRow]) -> bool:
        return all(move.ended or move.reason for move in rows)

    def _tell(self, decided: _DecidedStart) -> None:
        """Record in the audit what people will want to know later."""
        running = self._running
        late = [t.after for t in decided.changed if t.before.state in REOPENED and t.after.in_flight]
        if late:
            named = [f"{move.work.row.name}: {reason_text(move.reason)}" for move in late[:20]]
            running.audit(
                "came_late", reason=reason_message(late[0].reason) or "", after={"rows": named, "count": len(late)}
            )
        if (
            any(t.after.asks and not t.before.asks for t in decided.changed)
            or running.execution.foreign != self._foreign
        ):
            running.hint()
        brake, before = decided.taken.brake.reason, running.execution.brake
        if (brake is None) != (before is None):
            running.audit("braked" if brake else "brake_released", reason=reason_message(brake or before) or "")

    def _act(self, decided: _DecidedStart) -> None:
        running = self._running
        acting = StepCalls(
            self._client,
            running.lease,
            self._ledger,
            running.options,
            # Of a request that never left, what an operator had asked of the row stays asked.
            {
                t.after.key: StateTransition(decided.orders.rows.get(t.after.key, t.before), t.after)
                for t in decided.changed
            },
            deadline=CALL_S,
            budget=self._budget,
        )
        acted = acting.take([*decided.taken.actions, *(ElectAction(key) for key in decided.orders.elections)])
        answered = list(acted.rows.values())
        store_portions(running.lease, self._rows, answered[moves.AT_ONCE :])
        with running.write():
            store_rows(self._rows, answered[: moves.AT_ONCE])
            self._ledger.commit(running.now())
            decided.orders.store_elected(acted.elected, running.now())
        register_accepted(running.lease, running.execution, acted.accepted)
        fail_points.answers_stored()
        if acted.rows:
            self._rows.moves = [acted.rows.get(move.key, move) for move in self._rows.moves]


_known_lately: dict[int, tuple[float, ClusterContext]] = {}


def _read_context(running: RunningStep, topics: set[str]) -> ClusterContext:
    """Read again after some seconds: the collectors are no quicker. What it says of ages holds until then."""
    number = running.execution.pk
    at, found = _known_lately.get(number, (0.0, None))
    if found is None or time.monotonic() - at > KNOWN_FOR_S:
        if len(_known_lately) > KNOWN_RUNS:
            _known_lately.clear()
        found = rest_of_cluster.read_context(running.cluster, topics, running.now())
        _known_lately[number] = time.monotonic(), found
    return found
