"""Runs in short, for lists, bars and the review: how far, until when, behind whom; and what a start would do."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from kafkadash.accounts.errors import lazy_text
from kafkadash.changes.kinds import RunSummary
from kafkadash.changes.models import ChangeRequest, has_open_step_before
from kafkadash.changes.state_machine import RAN, RUNNING, ChangeState
from kafkadash.core.charts import ChartMark
from kafkadash.core.formatting import join_items
from kafkadash.core.messages import choose_plural, message_text, reason_text
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution, Move, RunOutcome
from kafkadash.execution.pages.counts import freshness_of_figures, freshness_of_run
from kafkadash.execution.queue import may_pass
from kafkadash.execution.worker.measure import stored_progress
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.options import format_megabytes
from kafkadash.planning.window import run_options

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
    RunOutcome.CLEAN: ("ok", "All partitions are as planned, and all kafkadash throttles are removed."),
    RunOutcome.OBLIGATIONS: ("warning", lazy_text(ReassignmentErrorCode.THROTTLES_OWED)),
    RunOutcome.EXCEPTIONS: ("warning", lazy_text(ReassignmentErrorCode.NOT_ALL_AS_PLANNED)),
}
_ENDED = {
    ChangeState.CANCELLED: ("unknown", "Completed moves stay; moves in flight returned to their original replicas."),
    ChangeState.FAILED: ("critical", lazy_text(ReassignmentErrorCode.RUN_FAILED)),
}


def summarize_runs(changes: Sequence[ChangeRequest]) -> Mapping[int, RunSummary]:
    """Return the summaries of these requests' runs, by request number, without requests that have no run. One query,
    one more where one is queued, and one more where one has ended.
    """
    rows = Execution.objects.filter(request__in=[change.pk for change in changes])
    executions = list(rows.defer("samples", "report", "foreign").order_by())
    return _summarize_executions(executions, {change.pk: change for change in changes}, timezone.now())


def summarize_run(execution: Execution, change: ChangeRequest, now: datetime) -> RunSummary:
    """The same of one whose row was read already."""
    return _summarize_executions([execution], {change.pk: change}, now)[change.pk]


def mark_runs(cluster_id: int, begin: datetime, end: datetime) -> list[ChartMark]:
    """Return marks for the starts and ends of a cluster's runs, on its charts. One query."""
    runs = Execution.objects.filter(cluster=cluster_id, started_at__lt=end).exclude(ended_at__lt=begin)
    marks = []
    for number, started_at, ended_at in runs.values_list("request_id", "started_at", "ended_at"):
        marks += [
            ChartMark(at.timestamp(), f"#{number} {word}")
            for at, word in ((started_at, "started"), (ended_at, "ended"))
            if at is not None and begin <= at < end
        ]
    return marks


def start_words(change: ChangeRequest, now: datetime) -> Sequence[str]:
    """Return what a start does, in sentences. One query."""
    options = run_options(change)
    partitions = choose_plural("# partition|# partitions", change.artifact.rows if change.artifact else 0)
    moves = choose_plural("# concurrent move|# concurrent moves", options.per_broker)
    told = [
        f"The run moves {partitions} at up to {format_megabytes(options.throttle)} MB/s into and out of each broker.",
        f"It submits up to {moves} per broker and direction, and {options.per_cluster:,} in the cluster.",
    ]
    if change.not_before is not None and change.not_before > now:
        told.append("The window has not opened: the run is queued until then.")
    if change.not_after is not None:
        told.append("After the window ends, no further moves are submitted.")
    queued_now = Execution(request=change, cluster=change.cluster)
    others = [
        run for run in _read_waiting_runs({change.cluster_id}, now) if run.active or not may_pass(queued_now, run)
    ]
    if others:
        names = join_items([f"#{run.request_id}" for run in others])
        told.append(f"The run waits behind {names}: {change.cluster.name} runs one reassignment at a time.")
    told.append("kafkadash reads each partition again right before moving it, and removes the throttles at the end.")
    return told


def _summarize_executions(
    executions: Sequence[Execution], by_number: Mapping[int, ChangeRequest], now: datetime
) -> Mapping[int, RunSummary]:
    queued = {run.cluster_id for run in executions if by_number[run.request_id].state == ChangeState.QUEUED}
    in_front = _in_front(queued, now) if queued else {}
    ended = [run.pk for run in executions if by_number[run.request_id].state in RAN]
    moved = _moved_something(ended) if ended else frozenset()
    return {
        run.request_id: _summarize_execution(
            run, by_number[run.request_id], in_front.get(run.pk, ()), run.pk in moved, now
        )
        for run in executions
    }


def _summarize_execution(
    run: Execution, change: ChangeRequest, behind: tuple[int, ...], moved: bool, now: datetime
) -> RunSummary:
    number, over = change.pk, change.state in RAN
    figures = stored_progress(run)
    live = change.state in RUNNING
    eta = figures.eta_s if figures and live and not freshness_of_figures(run, now).stale else None
    finite = eta is not None and math.isfinite(eta)
    end_state, end_words = _describe_end(run, ChangeState(change.state))
    return RunSummary(
        url=reverse("execution:run", args=[number]),
        pause_url=reverse("execution:run_pause", args=[number]),
        resume_url=reverse("execution:run_resume", args=[number]),
        cancel_url=reverse("execution:run_cancel", args=[number]),
        report_url=reverse("execution:report", args=[number]) if over else "",
        back_url=reverse("execution:rollback", args=[number]) if over and moved else "",
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


def _describe_end(run: Execution, state: ChangeState) -> tuple[str, str]:
    """Return the end as a status token and a sentence; both '' where the run has not ended."""
    if state is not ChangeState.DONE:
        told, words = _ENDED.get(state, ("", ""))
    elif run.outcome:
        told, words = _DONE[RunOutcome(run.outcome)]
    else:
        told, words = "unknown", message_text(ReassignmentErrorCode.END_NOT_KNOWN)
    return told, str(words)


def _in_front(clusters: Collection[int], now: datetime) -> Mapping[int, tuple[int, ...]]:
    """Return, for each queued run by its key, the requests whose turn comes before, as ``queue.in_front_of``."""
    found: dict[int, tuple[int, ...]] = {}
    waiting = _read_waiting_runs(clusters, now, everything=True)
    for run in waiting:
        found[run.pk] = tuple(
            other.request_id
            for other in waiting
            if other.cluster_id == run.cluster_id
            and other.pk != run.pk
            and (
                other.active
                or (_has_window_begun(other, now) and _queue_key(other) < _queue_key(run) and not may_pass(run, other))
            )
        )
    return found


def _read_waiting_runs(clusters: Collection[int], now: datetime, *, everything: bool = False) -> list[Execution]:
    """Active and queued runs of these clusters in their order; without those whose window has not begun, or that wait
    for the step of a change before them, unless asked for: they keep nobody waiting.
    """
    rows = (
        Execution.objects.filter(Q(active=True) | Q(request__state=ChangeState.QUEUED), cluster__in=clusters)
        .select_related("request")
        .only(*_OF_TURNS)
    )
    if not everything:
        rows = rows.exclude(has_open_step_before("request__"))
    ordered = sorted(rows, key=lambda run: (not run.active, *_queue_key(run)))
    return [run for run in ordered if everything or run.active or _has_window_begun(run, now)]


def _queue_key(run: Execution) -> tuple[datetime, int]:
    return run.queued_at, run.pk


def _has_window_begun(run: Execution, now: datetime) -> bool:
    begin = run.request.not_before
    return begin is None or begin <= now


def _moved_something(executions: Sequence[int]) -> frozenset[int]:
    done = Move.objects.filter(execution__in=executions, state=RowState.DONE)
    return frozenset(done.order_by().values_list("execution", flat=True).distinct())
