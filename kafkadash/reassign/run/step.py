"""One step of one run, from its lease to its last reply (04-changes.md §3).

Lease, rows, what people asked for, a look at the cluster, the pure step; then one transaction with everything that was
decided, the intents of all calls among it; then the calls; then their answers. Whoever dies in between leaves an
intent, and the next step tells from the cluster what became of it. A look that failed changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog
from django.conf import settings
from django.db import Error
from django.db.models import F

from kafkadash.clusters.secrets import SecretError
from kafkadash.database.away import is_away
from kafkadash.domain.executor import Step, step
from kafkadash.domain.executor_state import BEFORE, REOPENED, Elect, Key, Mode, Move, Submit, Transition
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.executor_throttles import SetRate
from kafkadash.domain.messages import reason_cause, reason_text
from kafkadash.domain.reasons import CodedReason, is_same_reason, pack_reasons, reason_columns
from kafkadash.domain.run_reasons import ClusterReadOnly, ClusterUnreadable, NewerVersion, StepFailed
from kafkadash.domain.workflow_states import State
from kafkadash.kafka.changing import KafkaClient
from kafkadash.kafka.connect import admin_for
from kafkadash.kafka.port import KafkaFailure
from kafkadash.reassign.models import RUN_FORMAT, Execution
from kafkadash.reassign.run import fail_points, moves, obligations, rest_of_cluster, turn, verifying
from kafkadash.reassign.run.broker_absences import note_look
from kafkadash.reassign.run.budget import CALL_S, Budget
from kafkadash.reassign.run.directories import misplaced
from kafkadash.reassign.run.lease import LeaseLost, next_turn, take
from kafkadash.reassign.run.ledger import Ledger
from kafkadash.reassign.run.look import AnotherCluster, Look, look
from kafkadash.reassign.run.measure import fresh_sizes, measure, moved_at_end, stored_progress
from kafkadash.reassign.run.moves import kept, load, store, store_portions
from kafkadash.reassign.run.rest_of_cluster import Known
from kafkadash.reassign.run.running import Running
from kafkadash.reassign.run.step_calls import StepCalls
from kafkadash.reassign.run.taking_orders import Taken, take_orders

log = structlog.get_logger(__name__)

REST_S = 10.0
"""Between two steps of a run in which nothing moves and nothing can be submitted."""
FAULT_S = 10.0
KNOWN_FOR_S = 10.0
KNOWN_RUNS = 50

_MODES = {
    State.EXECUTING: Mode.EXECUTING,
    State.PAUSED: Mode.PAUSED,
    State.CANCELLING: Mode.CANCELLING,
    State.VERIFYING: Mode.PAUSED,
}


class StateChanged(Exception):
    """Somebody paused, resumed or cancelled it while it was decided what to do: it is decided anew, at once."""


def step_once(execution_id: int) -> None:
    """One step, or nothing where somebody else is at it or its time has not come.

    Without the database it ends where it is and stores nothing: what was sent is told from the cluster by the next
    step, which begins when the lease is over. Raises Error only where the lease could not be asked for.
    """
    lease = take(execution_id)
    if lease is None:
        return
    try:
        running = Running.of(lease)
        if running is not None:
            _step(running)
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
    columns = reason_columns(StepFailed(), "error")
    Execution.objects.filter(pk=execution_id).update(**columns, failures=F("failures") + 1)


def _step(running: Running) -> None:
    fail_points.step_begins()
    budget = Budget()
    try:
        if running.execution.format > RUN_FORMAT:
            _of_a_newer_version(running)
            return
        client = client_of(running)
        if running.state is State.QUEUED:
            turn.take_turn(running, client, budget)
        elif running.state in _MODES:
            _Moving(running, client, budget).take()
        else:
            obligations.work_off(running, client, budget)
    except (KafkaFailure, SecretError, AnotherCluster) as failure:
        _look_failed(running, failure)


def _of_a_newer_version(running: Running) -> None:
    """Two versions at once, or one that was taken back: what is stored is not guessed at, and nothing is sent."""
    own = running.execution
    why = NewerVersion(own.format, RUN_FORMAT)
    log.warning("execution.newer_format", execution=own.pk, format=own.format)
    with running.write():
        running.save(**reason_columns(why, "error"), next_at=next_turn(running.lease, REST_S))
    if not is_same_reason(own.error, why):
        running.publish()


def client_of(running: Running) -> KafkaClient:
    """The one that this process has for the cluster. Raises SecretError."""
    return admin_for(running.cluster.connection())


def _look_failed(running: Running, failure: Exception) -> None:
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
    return failure.reason if isinstance(failure, AnotherCluster) else ClusterUnreadable(str(failure))


@dataclass(slots=True)
class _Decided:
    """What one look led to. ``rows`` are all as they are after it, ``changed`` those that are stored otherwise.

    ``copied``: bytes that had been copied of rows that have just ended.
    """

    taken: Step
    orders: Taken
    rows: list[Move]
    changed: list[Transition]
    copied: dict[Key, int | None] = field(default_factory=dict)


class _Moving:
    """A step of a run that is under way."""

    def __init__(self, running: Running, client: KafkaClient, budget: Budget) -> None:
        self._running, self._client, self._budget = running, client, budget
        self._mode = _MODES[running.state]
        execution = running.execution
        self._rows = kept.take(execution.pk, running.lease.epoch) or load(execution.pk)
        self._ledger = Ledger.load(execution)
        self._foreign = list(execution.foreign)

    def take(self) -> None:
        running = self._running
        seen = self._look()
        self._ledger.look(self._client, seen.alive, running.now(), deadline=self._budget.reading(CALL_S))
        orders = take_orders(running, self._rows.moves, self._ledger)
        decided = self._decide(seen, orders)
        while rates := self._rates_of_others(decided, seen):
            seen = seen.throttled_by_others(rates)
            decided = self._decide(seen, orders)
        deadline = self._budget.reading(CALL_S)
        self._ledger.intend(self._client, decided.taken.actions, seen.alive, running.now(), deadline=deadline)
        self._measure(decided, seen)
        self._commit(decided, seen)
        if decided.taken.actions or decided.orders.elections or self._ledger.calls_left:
            self._act(decided)
        kept.give(running.execution.pk, running.lease.epoch, self._rows)
        running.publish()

    def _look(self) -> Look:
        running = self._running
        topics = {move.work.row.topic for move in self._rows.moves}
        return look(
            self._client,
            running.cluster,
            self._rows.moves,
            self._budget.reading(settings.KAFKA_DEADLINE),
            now=running.now(),
            known=self._known(topics),
            options=running.options,
            disk_limit=running.disk_limit,
        )

    def _rates_of_others(self, decided: _Decided, seen: Look) -> Mapping[int, str]:
        """Return rates that others use on brokers that would be given one now: ours is not set over theirs."""
        known = seen.observation.brokers
        given = [action.broker for action in decided.taken.actions if isinstance(action, SetRate)]
        brokers = [broker for broker in given if not known[broker].others_rate]
        if not brokers:
            return {}
        deadline = self._budget.reading(CALL_S)
        return self._ledger.rates_of_others(self._client, seen, brokers, self._running.now(), deadline=deadline)

    def _known(self, topics: set[str]) -> Known:
        found = _known(self._running, topics)
        cluster = self._running.cluster
        if not cluster.read_only:
            return found
        return replace(found, withheld=(*found.withheld, ClusterReadOnly(cluster.name)))

    def _decide(self, seen: Look, orders: Taken) -> _Decided:
        running = self._running
        before = self._rows.moves
        moves = [orders.rows.get(move.key, move) for move in before] if orders.rows else before
        taken = step(moves, seen.observation, running.options, running.now(), self._mode, self._ledger.throttles())
        after = {t.after.key: t.after for t in taken.transitions}
        rows = [after.get(move.key, move) for move in moves]
        if running.state is State.VERIFYING:
            elsewhere = misplaced(self._client, rows, deadline=self._budget.reading(CALL_S))
            rows = [verifying.reread(move, seen.observation, running, elsewhere) for move in rows]
        changed = [Transition(a, b) for a, b in zip(before, rows, strict=True) if a is not b]
        return _Decided(taken, orders, rows, changed)

    def _measure(self, decided: _Decided, seen: Look) -> None:
        """Its figures. A fault in them keeps nobody from what moves: then the last ones stay, with their age."""
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

    def _commit(self, decided: _Decided, seen: Look) -> None:
        """All that was decided, and the intents, before anything of it is sent."""
        running = self._running
        own = running.execution
        over = decided.taken.over and not self._ledger.pending(running.now())
        ends = over and running.state is not State.PAUSED
        submits = any(isinstance(action, Submit) for action in decided.taken.actions)
        own.absences = note_look(own.absences, seen.observation.brokers, seen.taken_at, own.started_at)
        ahead, changed = self._split(decided)
        store_portions(running.lease, self._rows, ahead, decided.copied)
        with running.write_state() if ends or submits else running.write() as request:
            if request is not None and request.state != running.state:
                raise StateChanged
            store(self._rows, changed, decided.copied)
            self._ledger.store(running.now())
            decided.orders.store(running.now())
            self._tell(decided)
            running.save(
                looked_at=seen.taken_at,
                failures=0,
                held=[] if running.state is State.VERIFYING else pack_reasons(decided.taken.held),
                **reason_columns(None, "error"),
                **reason_columns(decided.taken.brake.reason, "brake"),
                absences=own.absences,
                next_at=next_turn(running.lease, self._rest(decided)),
                progress=own.progress,
                progress_at=own.progress_at,
                samples=own.samples,
            )
            if ends and request is not None:
                verifying.end(running, request, decided.rows, seen, self._ledger.obligations())
        self._rows.moves = decided.rows

    @staticmethod
    def _split(decided: _Decided) -> tuple[list[Move], list[Move]]:
        """Rows to be stored before the others, where all are too many for one short transaction, and those others.

        Whoever dies in between has stored what was seen, or an intent, of some rows. A row's first submission waits for
        what proves that nobody paused the run, and what an order made of a row for the answer to the order.
        """
        if len(decided.changed) <= moves.AT_ONCE:
            return [], [t.after for t in decided.changed]
        ahead: list[Move] = []
        rest: list[Move] = []
        for t in decided.changed:
            first = t.before.state in BEFORE and t.after.state is RowState.SUBMITTING
            (rest if first or t.after.key in decided.orders.rows else ahead).append(t.after)
        return ahead, rest

    def _rest(self, decided: _Decided) -> float:
        """Seconds from the start of this step to that of the next; a little less, as the tick comes once a second."""
        quick = float(settings.EXECUTE_INTERVAL)
        still = not decided.taken.actions and not any(move.in_flight for move in decided.rows)
        ends = decided.taken.over and self._running.state is not State.PAUSED
        rests = still and not ends and (decided.taken.held or self._all_wait(decided.rows))
        return max(quick, REST_S) if rests else max(0.0, quick - 0.5)

    @staticmethod
    def _all_wait(rows: Sequence[Move]) -> bool:
        return all(move.ended or move.reason for move in rows)

    def _tell(self, decided: _Decided) -> None:
        """What somebody will want to know later, in the audit."""
        running = self._running
        late = [t.after for t in decided.changed if t.before.state in REOPENED and t.after.in_flight]
        if late:
            named = [f"{move.work.row.name}: {reason_text(move.reason)}" for move in late[:20]]
            running.audit("came_late", reason=reason_text(late[0].reason), after={"rows": named, "count": len(late)})
        if (
            any(t.after.asks and not t.before.asks for t in decided.changed)
            or running.execution.foreign != self._foreign
        ):
            running.hint()
        brake, before = decided.taken.brake.reason, running.execution.brake
        if (brake is None) != (before is None):
            running.audit("braked" if brake else "brake_released", reason=reason_cause(brake or before))

    def _act(self, decided: _Decided) -> None:
        running = self._running
        acting = StepCalls(
            self._client,
            running.lease,
            self._ledger,
            running.options,
            # Of a request that never left, what an operator had asked of the row stays asked.
            {t.after.key: Transition(decided.orders.rows.get(t.after.key, t.before), t.after) for t in decided.changed},
            deadline=CALL_S,
            budget=self._budget,
        )
        acted = acting.take([*decided.taken.actions, *(Elect(key) for key in decided.orders.elections)])
        answered = list(acted.rows.values())
        store_portions(running.lease, self._rows, answered[moves.AT_ONCE :])
        with running.write():
            store(self._rows, answered[: moves.AT_ONCE])
            self._ledger.store(running.now())
            decided.orders.store_elected(acted.elected, running.now())
        fail_points.answers_stored()
        if acted.rows:
            self._rows.moves = [acted.rows.get(move.key, move) for move in self._rows.moves]


_known_lately: dict[int, tuple[float, Known]] = {}


def _known(running: Running, topics: set[str]) -> Known:
    """Read again after some seconds: the collectors are no quicker. What it says of ages holds until then."""
    number = running.execution.pk
    at, found = _known_lately.get(number, (0.0, None))
    if found is None or time.monotonic() - at > KNOWN_FOR_S:
        if len(_known_lately) > KNOWN_RUNS:
            _known_lately.clear()
        found = rest_of_cluster.known(running.cluster, topics, running.now())
        _known_lately[number] = time.monotonic(), found
    return found
