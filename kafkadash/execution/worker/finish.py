"""The end of a run: a last look at its rows, its throttles removed or owed, and the outcome of its request.

A run that is being cancelled on a cluster that does not answer can be given up by an administrator; otherwise it would
go on for ever, and no other run of the cluster would begin. Giving up sends nothing: moves in Kafka go on by
themselves, and throttles that the run set stay its obligation, which is worked off (``work_off``) as soon as the
cluster or an absent broker answers again. ``left_behind`` lists what runs would leave in Kafka if their cluster were
removed from kafkadash now; ``stop_runs`` stops them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Q
from django.db.models.functions import Now
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangedMeanwhile, ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.policy import rules_for
from kafkadash.changes.request_validation import lock_change, reload_change, require_permission, text_of
from kafkadash.changes.state_machine import OVER, ActorKind, ChangeState, ChangeTrigger, TransitionRequest
from kafkadash.changes.transitions import changed_message, move
from kafkadash.clusters.access import GIVE_UP
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.removal import RemovalBlocked
from kafkadash.core.leases import from_now
from kafkadash.core.messages import (
    CodedMessage,
    CodedReason,
    PlainReason,
    coded,
    find_reason,
    is_same_reason,
    join_reasons,
    message_text,
    reason_columns,
    reason_message,
)
from kafkadash.execution.command_answers import OrderAnswerCode
from kafkadash.execution.engine.admission import clear_hint, is_topic_gone, observation_covers, settle_row
from kafkadash.execution.engine.reasons import (
    AllRefused,
    ChangedSince,
    EndUntold,
    GivenUpBy,
    NotElected,
    NotReread,
    RowReasonCode,
    StillGoing,
    TopicDeletedSince,
)
from kafkadash.execution.engine.state import BEFORE, IN_FLIGHT, UNREAD_FOR, ClusterObservation, Key, RowState
from kafkadash.execution.engine.state import RunRow as Row
from kafkadash.execution.engine.throttle_ledger import LedgerState
from kafkadash.execution.models import Execution, Move, Order, RunOutcome, ThrottleEntry, ThrottleEntryState
from kafkadash.execution.models import Move as Stored
from kafkadash.execution.report import report_when_it_ends
from kafkadash.execution.worker import fail_points
from kafkadash.execution.worker.lease import OBLIGATIONS_EVERY_S, extend_lease, next_turn
from kafkadash.execution.worker.moves import AT_ONCE
from kafkadash.execution.worker.running import CALL_S, RunningStep, StepBudget
from kafkadash.execution.worker.snapshot import ClusterReplaced, ClusterSnapshot, refuse_another
from kafkadash.execution.worker.throttle_ledger import RunLedger
from kafkadash.kafka.api import KafkaClient
from kafkadash.monitoring.models import CollectorKind
from kafkadash.monitoring.schedule import read_soon
from kafkadash.planning.errors import ReassignmentErrorCode


def leave_rows(execution: Execution, now: datetime) -> None:
    """Set rows in flight to UNKNOWN, as nobody can tell their outcome, and rows never sent to CANCELLED."""
    own = Move.objects.filter(execution=execution)
    ended = {"hint": "", "hint_at": None, "since": now}
    own.filter(state__in=IN_FLIGHT).update(
        state=RowState.UNKNOWN, **reason_columns(PlainReason(RowReasonCode.RUN_ENDED_UNSEEN)), **ended
    )
    own.filter(state__in=BEFORE).update(
        state=RowState.CANCELLED, **reason_columns(PlainReason(RowReasonCode.RUN_ENDED_BEFORE)), **ended
    )


def last_columns(
    execution: Execution,
    state: ChangeState,
    now: datetime,
    *,
    outcome: RunOutcome | None = None,
    error: CodedReason | None = None,
) -> dict[str, Any]:
    """The columns of a run that is over, its report among them; what was asked of it and not done yet is answered.

    In the transaction that stores them, after the state of the request and the rows were stored.
    """
    left = Order.objects.filter(execution=execution, taken_at=None)
    left.update(taken_at=Now(), **reason_columns(PlainReason(OrderAnswerCode.RUN_ENDED), "answer"))
    word = outcome.value if outcome else ""
    return {
        "active": False,
        "ended_at": now,
        "outcome": word,
        "report": report_when_it_ends(execution, state, word, now),
        "held": [],
        **reason_columns(error, "error"),
        **reason_columns(None, "brake"),
    }


ANOTHER_FOR = timedelta(minutes=10)
"""So long another cluster may answer before the run is given up: an address may be wrong for a while."""
ANOTHER_TIMES = 20
"""And so many looks in a row: a worker that was away for long does not give up at its first one."""

_GIVEN_UP = (ChangeState.EXECUTING, ChangeState.CANCELLING, ChangeState.VERIFYING)
"""States that nobody could end otherwise; one that is paused waits for whoever paused it."""


def finish_run(
    running: RunningStep, request: ChangeRequest, rows: Sequence[Row], seen: ClusterSnapshot, obligations: Sequence[str]
) -> None:
    """The next state of a run of which every row has ended and nothing is left to be cleared now.

    In the transaction of the step, with the request's row locked.
    """
    looked = seen.observation
    if not looked.listing or not looked.quorum or any(move.hint is not None for move in rows):
        return
    state = running.state
    if state is ChangeState.EXECUTING:
        if rows and all(move.state is RowState.FAILED and find_reason(move.reason, EndUntold) is None for move in rows):
            _give_up(running, request, AllRefused(len(rows), rows[0].reason))
            return
        running.move(request, ChangeTrigger.ROWS_ENDED)
        running.save(next_at=next_turn(running.lease, 0))
    elif state is ChangeState.CANCELLING:
        running.move(request, ChangeTrigger.CLEAN, also=_tally(rows, obligations))
        _store_end(running, ChangeState.CANCELLED)
    elif state is ChangeState.VERIFYING:
        outcome = _decide_outcome(rows, obligations)
        also = {"outcome": outcome.value, **_tally(rows, obligations)}
        running.move(request, ChangeTrigger.VERIFIED, also=also, clean=outcome is not RunOutcome.EXCEPTIONS)
        _store_end(running, ChangeState.DONE, outcome=outcome)


def recheck_row(move: Row, seen: ClusterObservation, running: RunningStep, elsewhere: Mapping[Key, CodedReason]) -> Row:
    """A row that was done, looked at once more: what somebody did with it since is said, after two looks.

    ``elsewhere``: what is to be said of rows whose replicas lie in other directories than planned; they are done.
    """
    now = running.now()
    topic = move.work.row.topic
    if move.state is RowState.DONE and topic in seen.unread and find_reason(move.reason, NotReread) is None:
        return settle_row(move, RowState.DONE, seen.at, now, join_reasons(move.reason, NotReread(topic)), UNREAD_FOR)
    if move.state is not RowState.DONE or not observation_covers(move, seen):
        return move
    if is_topic_gone(move.work.row, seen):
        return settle_row(move, RowState.TOPIC_DELETED, seen.at, now, TopicDeletedSince(topic))
    partition = seen.partitions[move.key]
    if partition.listed is not None or partition.replicas == move.work.row.target:
        unled = None if partition.leader == move.work.row.target[0] else find_reason(move.reason, NotElected)
        return clear_hint(move).to(RowState.DONE, now, elsewhere.get(move.key, unled and move.reason))
    return settle_row(move, RowState.SUPERSEDED, seen.at, now, ChangedSince(partition.replicas))


def gives_up(running: RunningStep, failure: Exception) -> bool:
    """End the run as FAILED if another cluster has answered for too long; return whether that was done."""
    own, state = running.execution, running.state
    since = own.looked_at or own.started_at
    if not isinstance(failure, ClusterReplaced) or state not in _GIVEN_UP or since is None:
        return False
    often = own.failures >= ANOTHER_TIMES and is_same_reason(own.error, failure.reason)
    if not often or running.now() - since < ANOTHER_FOR:
        return False
    with running.write_state() as request:
        if request.state != state:
            return False
        leave_rows(running.execution, running.now())
        _give_up(running, request, failure.reason)
    running.publish()
    return True


def _give_up(running: RunningStep, request: ChangeRequest, why: CodedReason) -> None:
    running.move(request, ChangeTrigger.GIVE_UP, why=reason_message(why))
    _store_end(running, ChangeState.FAILED, error=why)


def _store_end(
    running: RunningStep, state: ChangeState, *, outcome: RunOutcome | None = None, error: CodedReason | None = None
) -> None:
    """Store the end of the run; later turns work off what the run still owes."""
    last = last_columns(running.execution, state, running.now(), outcome=outcome, error=error)
    running.save(**last, next_at=next_turn(running.lease, OBLIGATIONS_EVERY_S))
    cluster_id = running.execution.cluster_id
    transaction.on_commit(
        lambda: read_soon(cluster_id, [CollectorKind.METADATA, CollectorKind.REASSIGNMENTS, CollectorKind.CONFIGS])
    )


def _decide_outcome(rows: Sequence[Row], obligations: Sequence[str]) -> RunOutcome:
    if any(move.state is not RowState.DONE or move.reason for move in rows):
        return RunOutcome.EXCEPTIONS
    return RunOutcome.OBLIGATIONS if obligations else RunOutcome.CLEAN


def _tally(rows: Sequence[Row], obligations: Sequence[str]) -> dict[str, Any]:
    counts = Counter(move.state.value for move in rows)
    return {"rows": dict(sorted(counts.items())), "obligations": list(obligations)}


SILENT_LOOKS = 20
"""Looks in a row that failed, after which nobody is asked to wait for the cluster any more."""


def stop_runs(cluster: Cluster) -> None:
    """Steps that are being taken find their lease gone; a run whose turn came in this instant is active by now."""
    Execution.objects.filter(cluster=cluster).update(epoch=F("epoch") + 1, lease_until=None)


def left_behind(cluster: Cluster) -> RemovalBlocked:
    """Return what runs leave in Kafka. A run under way has to end first, unless its cluster is silent. One query."""
    open_entries = Count("throttles", filter=~Q(throttles__state=LedgerState.CLEARED.value))
    runs = Execution.objects.filter(cluster=cluster).annotate(owed=open_entries).filter(Q(active=True) | Q(owed__gt=0))
    refused, left = "", []
    for number, active, failures, owed in runs.order_by("pk").values_list("request", "active", "failures", "owed"):
        if active and failures < SILENT_LOOKS:
            refused = message_text(ReassignmentErrorCode.RUN_STILL_HERE, number=number)
        elif active:
            left.append(message_text(ReassignmentErrorCode.RUN_CANNOT_BE_STOPPED, number=number))
        if owed:
            left.append(message_text(ReassignmentErrorCode.THROTTLES_STAY, throttles=owed, number=number))
    return RemovalBlocked(refused, tuple(left))


SILENT_FOR = timedelta(minutes=10)
"""So long a cluster has not answered, and ``SILENT_LOOKS`` times in a row, before a run on it may be given up."""


@dataclass(frozen=True, slots=True)
class StaysBehind:
    """How many rows and throttles, as they are stored."""

    flight: int
    waiting: int
    throttles: int

    @property
    def sentences(self) -> list[str]:
        texts = []
        if self.flight:
            texts.append(message_text(ReassignmentErrorCode.FLIGHT_STAYS, moves=self.flight))
        if self.waiting:
            texts.append(message_text(ReassignmentErrorCode.WAITING_STAYS, moves=self.waiting))
        if self.throttles:
            texts.append(message_text(ReassignmentErrorCode.OBLIGATIONS_STAY, throttles=self.throttles))
        return texts or [message_text(ReassignmentErrorCode.NOTHING_STAYS)]


def silent_for(run: Execution, now: datetime) -> timedelta | None:
    """How long the cluster of this run has not answered, where that is so long that it may be given up; else None."""
    since = run.looked_at or run.started_at
    if since is None or run.failures < SILENT_LOOKS or now - since < SILENT_FOR:
        return None
    return now - since


def why_not_yet(run: Execution, now: datetime) -> CodedMessage | None:
    """Return why it is not given up now; None where it may be."""
    name, state = f"#{run.request_id}", ChangeState(run.request.state)
    if state is not ChangeState.CANCELLING:
        return coded(ReassignmentErrorCode.GIVE_UP_ONLY_CANCELLED, name=name, state=state.value)
    if silent_for(run, now) is not None:
        return None
    minutes = round(SILENT_FOR.total_seconds() / 60)
    return coded(ReassignmentErrorCode.GIVE_UP_TOO_EARLY, cluster=run.cluster.name, minutes=minutes, times=SILENT_LOOKS)


def stays_behind(run: Execution) -> StaysBehind:
    """Three queries."""
    own = Move.objects.filter(execution=run)
    owed = ThrottleEntry.objects.filter(execution=run).exclude(state=ThrottleEntryState.CLEARED)
    return StaysBehind(own.filter(state__in=IN_FLIGHT).count(), own.filter(state__in=BEFORE).count(), owed.count())


def give_up(change: ChangeRequest, user: User, reason: str, request: HttpRequest | None = None) -> ChangeRequest:
    """CANCELLING → FAILED, also on a read-only cluster. A step that is being taken finds its lease gone.

    Raises Refused with a sentence, or Changed where somebody else was first.
    """
    text = text_of(reason, "The reason")
    if not text:
        raise ChangeRefused(ReassignmentErrorCode.GIVE_UP_REASON)
    require_permission(user, GIVE_UP, reload_change(change).cluster, read_only_too=True)
    while _some_never_begin(change):
        pass
    with transaction.atomic():
        row = lock_change(change)
        require_permission(user, GIVE_UP, row.cluster, read_only_too=True)
        run, now = _take_over_run(row)
        stays = stays_behind(run)
        leave_rows(run, now)
        move(
            row,
            TransitionRequest(ChangeTrigger.GIVE_UP, user.pk, frozenset({ActorKind.ADMIN}), reason=text),
            rules_for(row),
            now,
            actor=user,
            also={"unknown_rows": stays.flight, "obligations": stays.throttles},
            request=request,
        )
        last = last_columns(run, ChangeState.FAILED, now, error=GivenUpBy(user.get_username(), text))
        Execution.objects.filter(pk=run.pk).update(**last, next_at=from_now(OBLIGATIONS_EVERY_S))
    return reload_change(change)


def _take_over_run(row: ChangeRequest) -> tuple[Execution, datetime]:
    """The run of this request, held, with its lease taken from whoever has it, and the database's time.

    Looks are dated by that clock; this machine's may be off. Raises Refused unless it may end.
    """
    run = (
        Execution.objects.annotate(asked_at=Now())
        .select_for_update(of=("self",), no_key=True)
        .select_related("request", "cluster")
        .filter(request=row.pk)
        .first()
    )
    if run is None or row.state in OVER:
        raise ChangedMeanwhile(changed_message(row.pk))
    why = why_not_yet(run, run.asked_at)
    if why:
        raise ChangeRefused(why)
    Execution.objects.filter(pk=run.pk).update(epoch=F("epoch") + 1, lease_until=None)
    return run, run.asked_at


def _some_never_begin(change: ChangeRequest) -> bool:
    """Ends some of the rows that wait, in a short transaction: of a run that is cancelled they never begin, whether it
    is given up or not.
    """
    with transaction.atomic():
        run, now = _take_over_run(lock_change(change))
        waiting = Move.objects.filter(execution=run, state__in=BEFORE).order_by("pk").values_list("pk", flat=True)
        some = Move.objects.filter(pk__in=list(waiting[:AT_ONCE]))
        return bool(
            some.update(
                state=RowState.CANCELLED,
                hint="",
                hint_at=None,
                since=now,
                **reason_columns(PlainReason(RowReasonCode.CANCELLED_BEFORE)),
            )
        )


def work_off(running: RunningStep, client: KafkaClient, budget: StepBudget) -> None:
    """Work off what an ended run still owes: throttles on brokers that were away. Not while moves of it still go on."""
    refuse_another(client, running.cluster, budget.reading(settings.KAFKA_DEADLINE))
    lease = running.lease
    going = _still_going(running, client, budget)
    if going:
        with running.write():
            running.save(
                next_at=next_turn(lease, OBLIGATIONS_EVERY_S), failures=0, **reason_columns(StillGoing(going), "error")
            )
        return

    def may() -> bool:
        if budget.left <= 0:
            return False
        extend_lease(lease, CALL_S)
        return True

    owed = _clear_throttles(running, client, budget, may)
    with running.write():
        error = running.execution.error if owed else None
        running.save(next_at=next_turn(lease, OBLIGATIONS_EVERY_S), failures=0, **reason_columns(error, "error"))
    running.publish()


def _still_going(running: RunningStep, client: KafkaClient, budget: StepBudget) -> int:
    """How many rows that it left in flight, because nobody could see them any more, Kafka still lists."""
    left = Stored.objects.filter(execution=running.execution, state=RowState.UNKNOWN)
    keys = set(left.values_list("topic", "partition"))
    if not keys:
        return 0
    listing = client.list_reassignments(deadline=budget.reading(settings.KAFKA_DEADLINE))
    return sum((row.topic, row.partition) in keys for row in listing.rows)


def _clear_throttles(
    running: RunningStep, client: KafkaClient, budget: StepBudget, may: Callable[[], bool]
) -> list[str]:
    """Clears what can be cleared; returns what it owes then, in sentences.

    In two transactions; ``budget`` is for all of at most eight calls. Raises KafkaFailure where the cluster does not
    answer at all.
    """
    now = running.now()
    ledger = RunLedger.load(running.execution)
    owed = bool(ledger.obligations())
    alive = {b.id for b in client.describe_cluster(deadline=budget.reading(CALL_S)).brokers if not b.fenced}
    ledger.prepare(client, alive, now, deadline=budget.reading(CALL_S), everything=True)
    ledger.intend(ledger.takes_away(), now, deadline=budget.reading(CALL_S))
    with running.write():
        ledger.commit(now)
    ledger.send_limits(now, deadline=CALL_S, may=may)
    ledger.send_restores(now, deadline=CALL_S, may=may)
    left = ledger.obligations()
    with running.write():
        ledger.commit(now)
        if owed and not left:
            ledger.tell_clean()
    fail_points.answers_stored()
    return left
