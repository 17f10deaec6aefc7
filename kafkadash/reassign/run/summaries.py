"""Runs in short, for lists, bars and the review: how far, until when, behind whom; and what a start would do."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from kafkadash.accounts.errors import lazy_text
from kafkadash.changes.decision import RAN, RUNS
from kafkadash.changes.kinds import Run
from kafkadash.changes.models import ChangeRequest
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.messages import message_text, reason_text
from kafkadash.domain.wording import count, listed
from kafkadash.domain.workflow_states import State
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Execution, Move, Outcome
from kafkadash.reassign.rates import megabytes
from kafkadash.reassign.run.measure import stored_progress
from kafkadash.reassign.run.queue import may_pass
from kafkadash.reassign.run.stored import freshness_of_figures, freshness_of_run
from kafkadash.reassign.window_facts import run_options

_OF_TURNS = (
    "cluster_id",
    "active",
    "queued_at",
    "blocked_code",
    "blocked_params",
    "request_id",
    "request__artifact_id",
    "request__not_before",
    "request__state",
)
_DONE = {
    Outcome.CLEAN: ("ok", "Every row is as planned, and nothing of our throttles is left."),
    Outcome.OBLIGATIONS: ("warning", lazy_text(ReassignmentErrorCode.THROTTLES_OWED)),
    Outcome.EXCEPTIONS: ("warning", lazy_text(ReassignmentErrorCode.NOT_ALL_AS_PLANNED)),
}
_ENDED = {
    State.CANCELLED: ("unknown", "What was done by then stays done; what was in flight went back."),
    State.FAILED: ("critical", lazy_text(ReassignmentErrorCode.RUN_FAILED)),
}


def runs(changes: Sequence[ChangeRequest]) -> Mapping[int, Run]:
    """Those of these requests that have a run, by number. One query, one more where one is queued, and one more where
    one has ended.
    """
    rows = Execution.objects.filter(request__in=[change.pk for change in changes])
    executions = list(rows.defer("samples", "report", "foreign").order_by())
    return _shorts(executions, {change.pk: change for change in changes}, timezone.now())


def short(execution: Execution, change: ChangeRequest, now: datetime) -> Run:
    """The same of one whose row was read already."""
    return _shorts([execution], {change.pk: change}, now)[change.pk]


def start_words(change: ChangeRequest, now: datetime) -> Sequence[str]:
    """What a start does, in sentences. One query."""
    options = run_options(change)
    rows = change.artifact.rows if change.artifact else 0
    moved = (
        f"It moves {count(rows, 'partition')} with at most {megabytes(options.throttle)} MB/s into and out of each "
        f"broker, up to {count(options.per_broker, 'move')} at once per broker and direction and "
        f"{options.per_cluster:,} in the cluster."
    )
    told = [moved]
    if change.not_before is not None and change.not_before > now:
        told.append("Its window has not begun: it is queued, and begins with its window.")
    if change.not_after is not None:
        told.append("When its window ends, nothing more is submitted.")
    queued_now = Execution(request=change, cluster=change.cluster)
    others = [run for run in _waiting({change.cluster_id}, now) if run.active or not may_pass(queued_now, run)]
    if others:
        names = listed([f"#{run.request_id}" for run in others])
        told.append(f"It waits behind {names}: one reassignment runs on {change.cluster.name} at a time.")
    told.append("Every partition is read again right before it is moved, and the throttles are taken away at the end.")
    return told


def _shorts(
    executions: Sequence[Execution], by_number: Mapping[int, ChangeRequest], now: datetime
) -> Mapping[int, Run]:
    queued = {run.cluster_id for run in executions if by_number[run.request_id].state == State.QUEUED}
    in_front = _in_front(queued, now) if queued else {}
    ended = [run.pk for run in executions if by_number[run.request_id].state in RAN]
    moved = _moved_something(ended) if ended else frozenset()
    return {
        run.request_id: _short(run, by_number[run.request_id], in_front.get(run.pk, ()), run.pk in moved, now)
        for run in executions
    }


def _short(run: Execution, change: ChangeRequest, behind: tuple[int, ...], moved: bool, now: datetime) -> Run:
    number, over = change.pk, change.state in RAN
    figures = stored_progress(run)
    live = change.state in RUNS
    eta = figures.eta_s if figures and live and not freshness_of_figures(run, now).stale else None
    finite = eta is not None and math.isfinite(eta)
    end_state, end_words = _end(run, State(change.state))
    return Run(
        url=reverse("reassign:run", args=[number]),
        pause_url=reverse("reassign:run_pause", args=[number]),
        resume_url=reverse("reassign:run_resume", args=[number]),
        cancel_url=reverse("reassign:run_cancel", args=[number]),
        report_url=reverse("reassign:report", args=[number]) if over else "",
        back_url=reverse("reassign:rollback", args=[number]) if over and moved else "",
        begun=run.started_at is not None,
        percent=figures.percent if figures else None,
        known_percent=figures.known_percent if figures else None,
        ends_at=figures.at + timedelta(seconds=eta) if figures and eta is not None and finite else None,
        no_progress=eta is not None and not finite,
        stuck=figures.stuck if figures else 0,
        slow=figures.slow if figures else 0,
        behind=behind,
        blocked=reason_text(run.blocked),
        blocked_at=run.blocked_at,
        outcome=run.get_outcome_display() if run.outcome else "",
        end_state=end_state,
        end_words=end_words,
        figures_at=run.progress_at,
        old=live and freshness_of_run(run, now).stale,
    )


def _end(run: Execution, state: State) -> tuple[str, str]:
    """Of the status tokens, and a sentence; both '' where it has not ended."""
    if state is not State.DONE:
        told, words = _ENDED.get(state, ("", ""))
    elif run.outcome:
        told, words = _DONE[Outcome(run.outcome)]
    else:
        told, words = "unknown", message_text(ReassignmentErrorCode.END_NOT_KNOWN)
    return told, str(words)


def _in_front(clusters: Collection[int], now: datetime) -> Mapping[int, tuple[int, ...]]:
    """Of each queued run, by its key, the requests whose turn comes before: as ``queue.in_front_of`` has it."""
    found: dict[int, tuple[int, ...]] = {}
    waiting = _waiting(clusters, now, everything=True)
    for run in waiting:
        found[run.pk] = tuple(
            other.request_id
            for other in waiting
            if other.cluster_id == run.cluster_id
            and other.pk != run.pk
            and (other.active or (_begun(other, now) and _order(other) < _order(run) and not may_pass(run, other)))
        )
    return found


def _waiting(clusters: Collection[int], now: datetime, *, everything: bool = False) -> list[Execution]:
    """Active and queued runs of these clusters in their order; without those whose window has not begun, unless asked
    for: they keep nobody waiting.
    """
    rows = (
        Execution.objects.filter(Q(active=True) | Q(request__state=State.QUEUED), cluster__in=clusters)
        .select_related("request")
        .only(*_OF_TURNS)
    )
    ordered = sorted(rows, key=lambda run: (not run.active, *_order(run)))
    return [run for run in ordered if everything or run.active or _begun(run, now)]


def _order(run: Execution) -> tuple[datetime, int]:
    return run.queued_at, run.pk


def _begun(run: Execution, now: datetime) -> bool:
    begin = run.request.not_before
    return begin is None or begin <= now


def _moved_something(executions: Sequence[int]) -> frozenset[int]:
    done = Move.objects.filter(execution__in=executions, state=RowState.DONE)
    return frozenset(done.order_by().values_list("execution", flat=True).distinct())
