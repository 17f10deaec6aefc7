"""A run that is being cancelled on a cluster that does not answer: an administrator gives it up.

Without that it would go on for ever, and no other run of the cluster would begin. Nothing is sent. What it set in Kafka
stays its obligation, which is worked off as soon as the cluster answers again; what moves there goes on by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.changes.guards import fresh, locked, refuse
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.policy import policy_of, rules_of
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.changes.transitions import changed_text, move
from kafkadash.changes.written import text_of
from kafkadash.clusters.access import GIVE_UP
from kafkadash.domain.executor_state import BEFORE, IN_FLIGHT
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.messages import message_text
from kafkadash.domain.reasons import reason_columns
from kafkadash.domain.row_reasons import CancelledBefore
from kafkadash.domain.run_reasons import GivenUpBy
from kafkadash.domain.wording import count
from kafkadash.domain.workflow import Deed
from kafkadash.domain.workflow_states import OVER, State, Trigger, Who
from kafkadash.observe.lease import from_now
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import EntryState, Execution, Move, ThrottleEntry
from kafkadash.reassign.run.ending import last_columns, leave_rows
from kafkadash.reassign.run.lease import OBLIGATIONS_EVERY_S
from kafkadash.reassign.run.left_behind import SILENT_LOOKS
from kafkadash.reassign.run.moves import AT_ONCE

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
        said = []
        if self.flight:
            them = "it" if self.flight == 1 else "them"
            said.append(message_text(ReassignmentErrorCode.FLIGHT_STAYS, moves=count(self.flight, "move"), them=them))
        if self.waiting:
            said.append(message_text(ReassignmentErrorCode.WAITING_STAYS, moves=count(self.waiting, "waiting move")))
        if self.throttles:
            said.append(
                message_text(ReassignmentErrorCode.OBLIGATIONS_STAY, throttles=count(self.throttles, "throttle"))
            )
        return said or [message_text(ReassignmentErrorCode.NOTHING_STAYS)]


def silent_for(run: Execution, now: datetime) -> timedelta | None:
    """How long the cluster of this run has not answered, where that is so long that it may be given up; else None."""
    since = run.looked_at or run.started_at
    if since is None or run.failures < SILENT_LOOKS or now - since < SILENT_FOR:
        return None
    return now - since


def why_not_yet(run: Execution, now: datetime) -> str:
    """Why it is not given up now, in a sentence; '' where it may be."""
    name, state = f"#{run.request_id}", State(run.request.state)
    if state is not State.CANCELLING:
        return message_text(ReassignmentErrorCode.GIVE_UP_ONLY_CANCELLED, name=name, state=state.value)
    if silent_for(run, now) is not None:
        return ""
    wait = count(round(SILENT_FOR.total_seconds() / 60), "minute")
    return message_text(
        ReassignmentErrorCode.GIVE_UP_TOO_EARLY, cluster=run.cluster.name, wait=wait, times=count(SILENT_LOOKS, "time")
    )


def stays_behind(run: Execution) -> StaysBehind:
    """Three queries."""
    own = Move.objects.filter(execution=run)
    owed = ThrottleEntry.objects.filter(execution=run).exclude(state=EntryState.CLEARED)
    return StaysBehind(own.filter(state__in=IN_FLIGHT).count(), own.filter(state__in=BEFORE).count(), owed.count())


def give_up(change: ChangeRequest, user: User, reason: str, request: HttpRequest | None = None) -> ChangeRequest:
    """CANCELLING → FAILED, also on a read-only cluster. A step that is being taken finds its lease gone.

    Raises Refused with a sentence, or Changed where somebody else was first.
    """
    said = text_of(reason, "The reason")
    if not said:
        raise Refused(ReassignmentErrorCode.GIVE_UP_REASON)
    refuse(user, GIVE_UP, fresh(change).cluster, read_only_too=True)
    while _some_never_begin(change):
        pass
    with transaction.atomic():
        row = locked(change)
        refuse(user, GIVE_UP, row.cluster, read_only_too=True)
        run, now = _silent(row)
        stays = stays_behind(run)
        leave_rows(run, now)
        move(
            row,
            Deed(Trigger.GIVE_UP, user.pk, frozenset({Who.ADMIN}), reason=said),
            rules_of(policy_of(row.cluster)),
            now,
            actor=user,
            also={"unknown_rows": stays.flight, "obligations": stays.throttles},
            request=request,
        )
        last = last_columns(run, State.FAILED, now, error=GivenUpBy(user.get_username(), said))
        Execution.objects.filter(pk=run.pk).update(**last, next_at=from_now(OBLIGATIONS_EVERY_S))
    return fresh(change)


def _silent(row: ChangeRequest) -> tuple[Execution, datetime]:
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
        raise Changed(changed_text(row.pk))
    why = why_not_yet(run, run.asked_at)
    if why:
        raise Refused(why)
    Execution.objects.filter(pk=run.pk).update(epoch=F("epoch") + 1, lease_until=None)
    return run, run.asked_at


def _some_never_begin(change: ChangeRequest) -> bool:
    """Ends some of the rows that wait, in a short transaction: of a run that is cancelled they never begin, whether it
    is given up or not.
    """
    with transaction.atomic():
        run, now = _silent(locked(change))
        waiting = Move.objects.filter(execution=run, state__in=BEFORE).order_by("pk").values_list("pk", flat=True)
        some = Move.objects.filter(pk__in=list(waiting[:AT_ONCE]))
        return bool(
            some.update(state=RowState.CANCELLED, hint="", hint_at=None, since=now, **reason_columns(CancelledBefore()))
        )
