"""Steps of short runs: read, store the intent, send, store the answer.

One step is done under the lease of its run. An item is stored as sent before its request leaves, so whoever takes over
after a crash finds it in flight and settles it by a reading. Nothing is sent again unless a reading shows that it was
not done, and nothing is sent without enough of the lease left for the answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.conf import settings
from django.db import Error, transaction
from django.db.models import F
from django.db.models.functions import Now

from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import STEPS_BEFORE_ARE_OVER, ChangeRequest
from kafkadash.changes.state_machine import STEPPED, ChangeState, ChangeTrigger
from kafkadash.changes.transitions import announce_changes
from kafkadash.changes.worker_transitions import list_reasons, move_itself, turn_stale, write_change
from kafkadash.clusters.secrets import SecretError
from kafkadash.core import leases
from kafkadash.core.database.availability import is_away
from kafkadash.core.leases import LeasedTable, LeaseLost, RowLease, from_now
from kafkadash.core.messages import (
    CodedReason,
    PlainReason,
    coded,
    is_same_reason,
    reason_columns,
    reason_message,
    reason_text,
)
from kafkadash.core.rows import update_rows
from kafkadash.kafka.api import KafkaFailure, WholeClient
from kafkadash.kafka.connect import admin_for
from kafkadash.monitoring.schedule import read_soon
from kafkadash.short_runs import fail_points
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.kinds import ShortKind, items_of, short_kind
from kafkadash.short_runs.models import RUN_FORMAT, ShortItem, ShortOutcome, ShortRun
from kafkadash.short_runs.plans import is_rollback
from kafkadash.short_runs.reasons import (
    ClusterUnread,
    ItemsNotValidated,
    ItemsUnread,
    LooksOnceMore,
    OtherClusterAnswers,
    RefusedByKafka,
    RequestNotSent,
    ShortRunReasonCode,
    ShortStartRefused,
)
from kafkadash.short_runs.state import (
    IN_FLIGHT,
    REACHED,
    ItemProgress,
    ItemReading,
    ItemState,
    PlannedItem,
    ReadingState,
    answer_item,
    cancel_item,
    count_states,
    open_item,
    settle_item,
    verify_item,
)
from kafkadash.topic_rules.checks import judge_items
from kafkadash.topic_rules.reasons import UNJUDGED

log = structlog.get_logger(__name__)

RUNS = LeasedTable(ShortRun._meta.db_table, "steps")
CALL_S = 10.0
"""Deadline of a request that changes something, in seconds."""
MARGIN_S = 2.0
"""Seconds of the lease that must remain beyond that."""
STEP_S = 5.0
"""No request is begun later than this after the step was, in seconds."""
REST_S = 5.0
SETTLES_S = 20.0
AGAIN_S = 10.0
"""Between two readings for a run that cannot begin, and after a fault."""
SURE_S = 5.0
"""Between two readings that find the same item not as approved, in seconds: brokers learn of changes late."""
_DUE = (
    "JOIN changes_changerequest c ON c.id = r.request_id JOIN clusters_cluster k ON k.id = r.cluster_id"
    f" WHERE k.removed_at IS NULL AND c.state IN ({', '.join(['%s'] * len(STEPPED))}) AND {STEPS_BEFORE_ARE_OVER}"
)


def claim_due(limit: int = 100, hold_s: float = 10) -> list[int]:
    """Ids of the runs whose turn has come, marked so that each is handed out once."""
    return leases.claim(RUNS, _DUE, limit, hold_s, [state.value for state in STEPPED])


def hand_back(run_ids: list[int]) -> None:
    """Takes the mark of ``claim_due`` away."""
    leases.unclaim(RUNS, run_ids)


def step_once(run_id: int) -> None:
    """Do one step of the run, or nothing where somebody else works on it or its time has not come."""
    lease = leases.take(run_id, of=RUNS)
    if lease is None:
        return
    try:
        run = ShortRun.objects.select_related("request", "cluster").filter(pk=run_id, cluster__removed_at=None).first()
        if run is not None:
            _ShortStep(lease, run).take()
    except LeaseLost:
        log.warning("short_run.lease_lost", run=run_id, epoch=lease.epoch)
    except Exception as fault:
        if is_away(fault):
            log.warning("short_run.database_away", run=run_id, error=str(fault).strip())
            return
        log.exception("short_run.step_failed", run=run_id)
        with suppress(Error, LeaseLost), lease.write_portion():
            columns = reason_columns(PlainReason(ShortRunReasonCode.STEP_FAILED), "error")
            ShortRun.objects.filter(pk=run_id).update(**columns, failures=F("failures") + 1)
            lease.postpone(AGAIN_S)
    finally:
        with suppress(Error):
            lease.give_back()


@dataclass(slots=True)
class _ShortStep:
    """A step under its lease. ``run`` as it was read when the lease was taken. ``_keys``: primary key of each place."""

    lease: RowLease
    run: ShortRun
    _began: float = field(default_factory=time.monotonic)
    _keys: dict[int, int] = field(default_factory=dict)

    @property
    def request(self) -> ChangeRequest:
        return self.run.request

    @property
    def kind(self) -> ShortKind:
        return short_kind(self.request.kind)

    def take(self) -> None:
        if self.run.format > RUN_FORMAT:
            self._rest(PlainReason(ShortRunReasonCode.NEWER_FORMAT), AGAIN_S)
            return
        try:
            client = admin_for(self.run.cluster.connection())
            if other := self._find_another_cluster(client):
                self._hold(other)
            elif self.request.state == ChangeState.QUEUED:
                self._take_turn(client)
            else:
                self._work(client)
        except (KafkaFailure, SecretError) as failure:
            log.warning("short_run.look_failed", run=self.run.pk, error=str(failure))
            self._rest(ClusterUnread(str(failure)), REST_S)

    def _find_another_cluster(self, client: WholeClient) -> CodedReason | None:
        """Nothing is sent to a Kafka cluster that answers at the address of the registered one."""
        own = self.run.cluster
        answered = client.describe_cluster(deadline=settings.KAFKA_DEADLINE).cluster_id
        if own.kafka_id and answered and answered != own.kafka_id:
            return OtherClusterAnswers(own.name, answered, own.kafka_id)
        return None

    def _hold(self, why: CodedReason) -> None:
        """A queued run waits, one under way stands still."""
        if self.request.state == ChangeState.QUEUED:
            self._block(why)
        else:
            self._rest(why, AGAIN_S)

    # ---- beginning

    def _take_turn(self, client: WholeClient) -> None:
        """QUEUED → EXECUTING once every item was read and fits; an item that does not fit makes the request stale."""
        if why := self._not_allowed():
            self._block(why)
            return
        if why := self._find_wait():
            self._block(why, waits=True)
            return
        items = items_of(self.request)
        readings = self._read(client, items)
        wrong = {
            item.subject: reading.reason
            for item in items
            if (reading := readings.get(item.subject)) and reading.state is ReadingState.UNFIT and reading.reason
        }
        if wrong:
            self._refuse_items(wrong)
            return
        if broken := self._find_broken(items):
            certain = {subject: why for subject, why in broken.items() if not isinstance(why, UNJUDGED)}
            if certain:
                self._turn_stale(certain)
            else:
                self._block(ShortStartRefused(reason_text(next(iter(broken.values())))))
            return
        unread = [item.subject for item in items if item.subject not in readings]
        if unread:
            self._block(ItemsUnread(len(unread), unread[0]))
            return
        ready = [item for item in items if readings[item.subject].state is ReadingState.READY]
        if self._is_valid(client, ready):
            self._begin(items)

    def _is_valid(self, client: WholeClient, items: Sequence[PlannedItem]) -> bool:
        """Return whether Kafka would take these items; what it refuses makes the request stale."""
        validate = self.kind.validate
        if validate is None:
            return True
        for start in range(0, len(items), self.kind.batch):
            self.lease.keep(CALL_S + MARGIN_S)
            answers = validate(client, items[start : start + self.kind.batch], CALL_S)
            refused = {
                subject: RefusedByKafka(error.cause, error.code)
                for subject, error in answers.refused.items()
                if error.code is not None
            }
            if refused:
                self._refuse_items(refused)
                return False
            for subject, error in {**answers.refused, **answers.lost}.items():
                self._block(ItemsNotValidated(subject, error.cause))
                return False
        return True

    def _find_broken(self, items: Sequence[PlannedItem]) -> Mapping[str, CodedReason]:
        """Return what of the items the topic rules do not allow by now; a rollback may restore what they do not."""
        ruled = self.kind.ruled
        if ruled is None or is_rollback(self.request):
            return {}
        return judge_items(self.run.cluster, ruled(items), self.lease.now()).first

    def _not_allowed(self) -> CodedReason | None:
        if self.run.cluster.read_only:
            return PlainReason(ShortRunReasonCode.READ_ONLY)
        return None if self.run.cluster.enabled else PlainReason(ShortRunReasonCode.NOT_WATCHED)

    def _find_wait(self) -> CodedReason | None:
        """Return what the run waits for that comes by itself: its window, or the end of another run."""
        change = self.request
        if change.not_before is not None and change.not_before > self.lease.now():
            return PlainReason(ShortRunReasonCode.WINDOW_NOT_OPEN)
        return self.kind.obstacle(self.run.cluster)

    def _begin(self, items: Sequence[PlannedItem]) -> None:
        try:
            with self._write_state() as request:
                if request.state != ChangeState.QUEUED or request.digest != self.request.digest:
                    return
                move_itself(request, ChangeTrigger.TURN, self.lease.now(), also={"rows": len(items)})
                ShortItem.objects.bulk_create(
                    [
                        ShortItem(run=self.run, place=place, subject=item.subject, content=item.content)
                        for place, item in enumerate(items)
                    ],
                    batch_size=1000,
                )
                self._save(
                    started_at=self.lease.now(),
                    items=len(items),
                    counts={ItemState.PENDING.value: len(items)},
                    blocked_at=None,
                    failures=0,
                    next_at=from_now(0),
                    **reason_columns(None, "blocked"),
                    **reason_columns(None, "error"),
                )
        except ChangeRefused as refused:
            self._block(ShortStartRefused(str(refused)))
            return
        announce_changes(self.request.pk)

    def _block(self, why: CodedReason, again: float = AGAIN_S, *, waits: bool = False) -> None:
        """Store why the run does not begin. The cluster has answered, so that no earlier error holds any more."""
        own = self.run
        with self._write():
            self._save(
                **reason_columns(why, "blocked"),
                blocked_at=None if waits else own.blocked_at or Now(),
                **reason_columns(None, "error"),
                failures=0,
                looked_at=self.lease.now(),
                next_at=from_now(again),
            )
            if not is_same_reason(why, own.blocked):
                announce_changes(self.request.pk)

    def _refuse_items(self, wrong: Mapping[str, CodedReason]) -> None:
        """STALE; but what a broker's late metadata could feign is read once more before approvals are void."""
        once_more = LooksOnceMore(*next(iter(wrong.items())))
        if not is_same_reason(once_more, self.run.blocked):
            self._block(once_more, again=SURE_S)
            return
        self._turn_stale(wrong)

    def _turn_stale(self, wrong: Mapping[str, CodedReason]) -> None:
        told = [
            coded(ShortRunErrorCode.ITEM_DOES_NOT_FIT, item=subject, why=reason_message(why))
            for subject, why in wrong.items()
        ]
        with self._write_state() as request:
            turn_stale(request, list_reasons(told, len(told)), len(told), self.lease.now())

    # ---- working

    def _work(self, client: WholeClient) -> None:
        """Requests one after the other while the step has time and Kafka answers; the next step has the rest."""
        rows = self._load_rows()
        while True:
            state = ChangeState(self.request.state)
            rows, goes_on = self._do_batch(client, rows, state)
            if not goes_on or time.monotonic() - self._began > STEP_S:
                return
            self.request.refresh_from_db(fields=["state"])

    def _do_batch(
        self, client: WholeClient, rows: list[ItemProgress], state: ChangeState
    ) -> tuple[list[ItemProgress], bool]:
        """Send one request; return the rows after it, and whether it was sent and answered for each item."""
        if state is ChangeState.VERIFYING:
            self._verify(client, rows)
            return rows, False
        flying = [row for row in rows if row.state in IN_FLIGHT]
        waiting = [row for row in rows if row.state is ItemState.PENDING]
        allowed = state is ChangeState.EXECUTING and not self.run.cluster.read_only
        chosen = waiting[: self.kind.batch] if allowed else []
        readings = self._read(client, [row.opened for row in (*flying, *chosen)]) if flying or chosen else {}
        after = {row.place: settle_item(row, readings.get(row.item.subject)) for row in flying}
        after |= {row.place: open_item(row, readings.get(row.item.subject)) for row in chosen}
        if state is ChangeState.CANCELLING:
            after |= {row.place: cancel_item(row) for row in waiting}
            settled = [row for row in after.values() if row.state is ItemState.PENDING]
            after |= {row.place: cancel_item(row) for row in settled}
        unread = [row.item.subject for row in (*flying, *chosen) if row.item.subject not in readings]
        changed = _merge_rows(rows, after)
        sending = [row for row in after.values() if row.state is ItemState.SENDING and row.place not in _places(flying)]
        self._commit(changed, list(after.values()), state, self._find_problem(state, waiting, unread))
        if not sending:
            return changed, False
        answered = self._send(client, sending)
        return _merge_rows(changed, answered), all(row.ended for row in answered.values())

    def _find_problem(
        self, state: ChangeState, waiting: Sequence[ItemProgress], unread: Sequence[str]
    ) -> CodedReason | None:
        """Return why the run stands still, None where it does not."""
        if unread:
            return ItemsUnread(len(unread), unread[0])
        if state is ChangeState.EXECUTING and waiting and self.run.cluster.read_only:
            return PlainReason(ShortRunReasonCode.READ_ONLY)
        return None

    def _read(self, client: WholeClient, items: Sequence[PlannedItem]) -> Mapping[str, ItemReading]:
        found: dict[str, ItemReading] = {}
        for start in range(0, len(items), self.kind.batch):
            part = items[start : start + self.kind.batch]
            found |= self.kind.read(self.run.cluster, client, part, settings.KAFKA_DEADLINE)
            self.lease.keep(settings.KAFKA_DEADLINE + MARGIN_S)
        return found

    def _commit(
        self,
        rows: Sequence[ItemProgress],
        changed: Sequence[ItemProgress],
        state: ChangeState,
        problem: CodedReason | None,
    ) -> None:
        """Store all that was decided, and the intents, before anything of it is sent."""
        ends = state is not ChangeState.PAUSED and all(row.ended for row in rows)
        with self._write_state() as request:
            if request.state != state.value:
                raise LeaseLost  # somebody paused or cancelled it: the next step decides anew
            self._store_rows(changed)
            self._save(
                looked_at=self.lease.now(),
                failures=0,
                counts=_pack_counts(rows),
                next_at=from_now(0 if ends else REST_S),
                **reason_columns(problem, "error"),
            )
            if ends and state is ChangeState.EXECUTING:
                move_itself(request, ChangeTrigger.ROWS_ENDED, self.lease.now(), also=_pack_counts(rows))
            elif ends and state is ChangeState.CANCELLING:
                move_itself(request, ChangeTrigger.CLEAN, self.lease.now(), also=_pack_counts(rows))
                self._save(ended_at=self.lease.now())
                self._refresh_facts()
        if changed or not is_same_reason(problem, self.run.error):
            announce_changes(self.request.pk, listed=ends)

    def _send(self, client: WholeClient, sending: Sequence[ItemProgress]) -> dict[int, ItemProgress]:
        """Send the items whose intents are stored; their rows with Kafka's answers, stored too."""
        self.lease.keep(CALL_S + MARGIN_S)
        try:
            with fail_points.around_call():
                answers = self.kind.send(client, [row.opened for row in sending], CALL_S)
        except KafkaFailure as failure:  # nothing left this process
            log.warning("short_run.not_sent", run=self.run.pk, error=str(failure))
            answered = {row.place: _unsent(row) for row in sending}
            error: CodedReason | None = RequestNotSent(str(failure))
        else:
            answered = {row.place: answer_item(row, answers) for row in sending}
            unsent = next((refused for refused in answers.refused.values() if refused.code is None), None)
            error = RequestNotSent(unsent.cause) if unsent else None
        rest = 0 if all(row.ended for row in answered.values()) else REST_S
        with self._write():
            self._store_rows(list(answered.values()))
            self._save(next_at=from_now(rest), **reason_columns(error, "error"))
        fail_points.answers_stored()
        announce_changes(self.request.pk, listed=False)
        return answered

    def _verify(self, client: WholeClient, rows: Sequence[ItemProgress]) -> None:
        """VERIFYING → DONE: every item that was reached is read once more.

        Brokers learn of a change after the controller has answered, so what is not so yet is read again for
        ``SETTLES_S`` before it counts as changed by somebody else.
        """
        reached = [row for row in rows if row.state in REACHED]
        readings = self._read(client, [row.opened for row in reached])
        unread = [row.item.subject for row in reached if row.item.subject not in readings]
        if unread:
            self._rest(ItemsUnread(len(unread), unread[0]), REST_S)
            return
        after = [verify_item(row, readings.get(row.item.subject)) for row in reached]
        verifying_s = (self.lease.now() - self.request.state_since).total_seconds()
        if verifying_s < SETTLES_S and any(row.state is ItemState.REVERTED for row in after):
            with self._write():
                self._save(looked_at=self.lease.now(), next_at=from_now(1))
            return
        changed = _merge_rows(list(rows), {row.place: row for row in after})
        clean = all(row.state in REACHED for row in changed)
        with self._write_state() as request:
            self._store_rows([row for row in after if row.state not in REACHED])
            self._save(
                looked_at=self.lease.now(),
                ended_at=self.lease.now(),
                counts=_pack_counts(changed),
                outcome=ShortOutcome.CLEAN if clean else ShortOutcome.EXCEPTIONS,
                **reason_columns(None, "error"),
            )
            move_itself(request, ChangeTrigger.VERIFIED, self.lease.now(), also=_pack_counts(changed), clean=clean)
            self._refresh_facts()

    def _refresh_facts(self) -> None:
        """Pages and further plans, such as a rollback, need the values from after the run."""
        cluster_id, facts = self.run.cluster_id, self.kind.facts
        transaction.on_commit(lambda: read_soon(cluster_id, facts))

    # ---- writing

    @contextmanager
    def _write(self) -> Iterator[None]:
        with self.lease.write():
            yield

    @contextmanager
    def _write_state(self) -> Iterator[ChangeRequest]:
        with write_change(self.request, self.lease) as row:
            yield row

    def _load_rows(self) -> list[ItemProgress]:
        stored = list(ShortItem.objects.filter(run=self.run).order_by("place"))
        self._keys = {row.place: row.pk for row in stored}
        return [
            ItemProgress(
                row.place,
                PlannedItem(row.subject, row.content),
                ItemState(row.state),
                row.reason,
                row.attempt,
                row.before,
            )
            for row in stored
        ]

    def _store_rows(self, rows: Sequence[ItemProgress]) -> None:
        """Store what may change of these rows, in one statement."""
        at = self.lease.now()
        columns = {
            self._keys[row.place]: {
                "state": row.state.value,
                "attempt": row.attempt,
                "before": row.before,
                "changed_at": at,
                **reason_columns(row.reason),
            }
            for row in rows
        }
        update_rows(ShortItem, columns)

    def _save(self, **fields: Any) -> None:
        ShortRun.objects.filter(pk=self.run.pk).update(**fields)

    def _rest(self, why: CodedReason, seconds: float) -> None:
        with self._write():
            self._save(**reason_columns(why, "error"), failures=F("failures") + 1, next_at=from_now(seconds))
        if not is_same_reason(why, self.run.error):
            announce_changes(self.request.pk, listed=False)


def _unsent(row: ItemProgress) -> ItemProgress:
    return ItemProgress(row.place, row.item, attempt=row.attempt - 1, before=row.before)


def _places(rows: Sequence[ItemProgress]) -> set[int]:
    return {row.place for row in rows}


def _merge_rows(rows: Sequence[ItemProgress], after: Mapping[int, ItemProgress]) -> list[ItemProgress]:
    return [after.get(row.place, row) for row in rows]


def _pack_counts(rows: Sequence[ItemProgress]) -> dict[str, int]:
    return {state.value: number for state, number in count_states(rows).items() if number}
