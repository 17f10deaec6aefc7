"""What stands above the figures of a run: why it does not begin, why nothing is submitted, why nobody can tell."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from kafkadash.changes.models import ChangeRequest
from kafkadash.domain.executor_state import ENDED
from kafkadash.domain.messages import (
    message_advice,
    message_cause,
    message_parts,
    message_text,
    reason_advice,
    reason_cause,
    reason_text,
)
from kafkadash.domain.run_reasons import ClusterReadOnly, RunPaused
from kafkadash.domain.wording import capital, count, duration, listed
from kafkadash.domain.workflow_states import State
from kafkadash.reassign.asked import broker_names
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Execution, Move, Order
from kafkadash.reassign.run.broker_absences import brokers_away, time_words
from kafkadash.reassign.run.counts import Counts
from kafkadash.reassign.run.giving_up import why_not_yet
from kafkadash.reassign.run.queue import in_front_of
from kafkadash.reassign.run.stored import INTERVAL_S, freshness_of_run

_WORKED_ON = (State.EXECUTING, State.PAUSED, State.CANCELLING, State.VERIFYING)
_CANCELLED_FROM = (State.EXECUTING, State.PAUSED)
_MOST_ORDERS = 5
_FIRST_LOOK = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence in bold and those that follow. ``state`` of the status tokens; ``behind``: number of the change that
    it waits for. ``cancels``: whoever may is offered to cancel the run; ``asking``: is led to the rows that ask;
    ``gives_up``: to what giving the run up would leave behind.
    """

    state: str
    lead: str
    rest: str = ""
    behind: int | None = None
    cancels: bool = False
    asking: bool = False
    gives_up: bool = False


def notices_of(execution: Execution, counts: Counts, now: datetime) -> list[Notice]:
    """Worst first. One query, for what was asked of the run and not done yet, or for what is in front of it; one more
    where a broker is away.
    """
    change = execution.request
    if change.state == State.QUEUED:
        return [_queued(execution, now)]
    if change.state not in _WORKED_ON:
        return []
    found = [
        _unread(execution, now),
        _brokers_down(execution, now),
        _read_only(execution),
        _brake(execution, change),
        *_held(execution, change, counts, now),
        _asking(counts),
    ]
    found += [_ordered(order) for order in _orders(execution)]
    return [notice for notice in found if notice is not None]


def _unread(execution: Execution, now: datetime) -> Notice | None:
    """What was read of the cluster is old, or could not be read."""
    looked = freshness_of_run(execution, now)
    again = f", {execution.failures:,} times in a row" if execution.failures > 1 else ""
    error = (
        message_cause(ReassignmentErrorCode.CLUSTER_UNREAD, again=again, error=reason_text(execution.error))
        if execution.error
        else ""
    )
    if not looked.stale:
        return Notice("warning", error, message_advice(ReassignmentErrorCode.CLUSTER_UNREAD)) if error else None
    if looked.age_s is None:
        if error:
            return Notice("critical", error, message_text(ReassignmentErrorCode.NOT_READ_YET))
        if execution.started_at and now - execution.started_at < _FIRST_LOOK:
            return None
        return Notice("critical", *message_parts(ReassignmentErrorCode.NEVER_LOOKED))
    lead, goes_on = message_parts(ReassignmentErrorCode.SHOWN_IS_OLD, age=duration(looked.age_s))
    if error and not why_not_yet(execution, now):
        return Notice(
            "critical", lead, f"{error} {message_text(ReassignmentErrorCode.CANCEL_CANNOT_END)}", gives_up=True
        )
    return Notice(
        "critical", lead, f"{error or message_text(ReassignmentErrorCode.NOBODY_READS, interval=INTERVAL_S)} {goes_on}"
    )


def _brokers_down(execution: Execution, now: datetime) -> Notice | None:
    """Brokers that the last look did not see alive, whether anything of the run lies on them or not."""
    away = brokers_away(execution.absences)
    if not away:
        return None
    ids = sorted(away)
    left = Move.objects.filter(execution=execution).exclude(state__in=ENDED)
    touched = left.filter(Q(current__overlap=ids) | Q(target__overlap=ids)).count()
    is_, was = ("is", "was") if len(ids) == 1 else ("are", "were")
    told = message_parts(
        ReassignmentErrorCode.BROKERS_DOWN,
        brokers=capital(broker_names(ids)),
        down=f"{was if freshness_of_run(execution, now).stale else is_} down",
        since=listed(
            [f"since {time_words(at)}" if (at := away[id_].gone_at) else "since before it began" for id_ in ids]
        ),
        moves=count(touched, "move"),
        have="has" if touched == 1 else "have",
    )
    return Notice("warning", *told)


def _read_only(execution: Execution) -> Notice | None:
    """What is sent to a cluster all the same, by a run that began before it became read-only."""
    if not execution.cluster.read_only:
        return None
    going = "goes back, as it was cancelled" if execution.request.state == State.CANCELLING else "goes on to its end"
    return Notice(
        "warning", *message_parts(ReassignmentErrorCode.READ_ONLY_NOW, cluster=execution.cluster.name, going=going)
    )


def _brake(execution: Execution, change: ChangeRequest) -> Notice | None:
    brake = execution.brake
    if brake is None:
        return None
    return Notice("critical", reason_cause(brake), reason_advice(brake), cancels=change.state in _CANCELLED_FROM)


def _held(execution: Execution, change: ChangeRequest, counts: Counts, now: datetime) -> list[Notice]:
    state = "maintenance" if change.state == State.PAUSED else "warning"
    if change.state == State.PAUSED and counts.total and counts.ended == counts.total:
        return [Notice("warning", *message_parts(ReassignmentErrorCode.PAUSED_AT_ITS_END))]
    if change.not_after and change.not_after <= now and counts.waiting and change.state in _CANCELLED_FROM:
        told = message_parts(ReassignmentErrorCode.WINDOW_RAN_OUT, moves=count(counts.waiting, "move"))
        return [Notice("warning", *told, cancels=True)]
    told_above = execution.cluster.read_only
    held = [reason_text(why) for why in execution.held_reasons if not (told_above and isinstance(why, ClusterReadOnly))]
    if not held:
        return [Notice(state, reason_text(RunPaused()))] if change.state == State.PAUSED else []
    return [Notice(state, held[0], " ".join([*held[1:], "Nothing more is submitted."]))]


def _asking(counts: Counts) -> Notice | None:
    if not counts.asks:
        return None
    told = message_parts(
        ReassignmentErrorCode.ROWS_ASK, moves=count(counts.asks, "move"), ask="asks" if counts.asks == 1 else "ask"
    )
    return Notice("warning", *told, asking=True)


def _orders(execution: Execution) -> list[Order]:
    return list(Order.objects.filter(execution=execution, taken_at=None)[:_MOST_ORDERS])


def _ordered(order: Order) -> Notice:
    what = f"{order.topic}-{order.partition}" if order.topic else order.entity
    lead = f"{order.user_name} asked: {order.get_deed_display()}, {what}."
    return Notice("unknown", lead, "The next step does it.")


def _queued(execution: Execution, now: datetime) -> Notice:
    """Its place in the queue of the cluster, or why it does not begin though it is its turn."""
    if execution.blocked:
        since = f" since {duration((now - execution.blocked_at).total_seconds())}" if execution.blocked_at else ""
        until = " until its window ends" if execution.request.not_after else ""
        return Notice(
            "warning",
            *message_parts(ReassignmentErrorCode.BLOCKED, since=since, why=reason_text(execution.blocked), until=until),
        )
    before = in_front_of(execution, now)
    if before is None:
        opens = execution.request.not_before
        if opens and opens > now:
            return Notice(
                "maintenance", f"It waits for its window, which begins in {duration((opens - now).total_seconds())}."
            )
        return Notice("unknown", "It is its turn.", "It begins as soon as the checks have passed on the cluster.")
    lead = f"It waits behind #{before.request_id} {before.request.title}".rstrip() + "."
    rest = f"One reassignment runs at a time on {execution.cluster.name}."
    return Notice("maintenance", lead, rest, behind=before.request_id)
