"""Troubles of short runs: blocked, without a reading of the cluster, or standing still for long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, Subquery

from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import STEPPED, ChangeState
from kafkadash.changes.troubles import PATIENCE, RunTrouble, TroubleKind
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedReason
from kafkadash.short_runs.models import ShortItem, ShortRun
from kafkadash.short_runs.reasons import ShortRunReasonCode
from kafkadash.short_runs.state import ENDED


@dataclass(frozen=True, slots=True)
class ShortRunStanding:
    """Run of change ``number`` as its last step left it.

    ``turn_at``: when it was queued, or when the step before it ended; ``state_since``: of its request. ``done_at``:
    when its newest item ended. ``left``: items that have not ended.
    """

    number: int
    state: ChangeState
    turn_at: datetime
    state_since: datetime
    started_at: datetime | None = None
    looked_at: datetime | None = None
    blocked_at: datetime | None = None
    done_at: datetime | None = None
    error: CodedReason | None = None
    left: int = 0

    @property
    def read_at(self) -> datetime:
        """Time of the last reading of the cluster; before the first one, of the turn."""
        return self.looked_at or self.started_at or self.turn_at

    @property
    def got_on_at(self) -> datetime:
        """Last time when an item ended, or when the run went into its state."""
        return max(at for at in (self.state_since, self.started_at, self.done_at) if at is not None)


def load_short_troubles(cluster: Cluster, now: datetime) -> Iterator[RunTrouble]:
    """Yield the troubles of all short runs of a cluster. One query."""
    before = ChangeRequest.objects.filter(
        first_step=OuterRef("request__first_step"), step__lt=OuterRef("request__step")
    ).order_by("-state_since")
    ended = ShortItem.objects.filter(run=OuterRef("pk"), state__in=[state.value for state in ENDED])
    runs = ShortRun.objects.filter(cluster=cluster, request__state__in=STEPPED, queued_at__lte=now - PATIENCE)
    for run in runs.select_related("request").annotate(
        before_at=Subquery(before.values("state_since")[:1]),
        done_at=Subquery(ended.order_by("-changed_at").values("changed_at")[:1]),
    ):
        yield from judge_short_run(_describe_run(run, run.before_at, run.done_at), now)


def _describe_run(run: ShortRun, before_at: datetime | None, done_at: datetime | None) -> ShortRunStanding:
    return ShortRunStanding(
        number=run.request_id,
        state=ChangeState(run.request.state),
        turn_at=max(run.queued_at, before_at or run.queued_at),
        state_since=run.request.state_since,
        started_at=run.started_at,
        looked_at=run.looked_at,
        blocked_at=run.blocked_at,
        done_at=done_at,
        error=run.error,
        left=run.items - sum(number for state, number in run.counts.items() if state in ENDED),
    )


def judge_short_run(run: ShortRunStanding, now: datetime) -> Iterator[RunTrouble]:
    """Yield the troubles of one run. Pure.

    A run that waits for its window, for another run or for a step before it has none, and a paused one only if it
    cannot read the cluster. No item takes as long as ``PATIENCE``: where none ended for so long, the run stands still,
    whatever became of its requests.
    """
    queued = run.state is ChangeState.QUEUED
    if queued and run.blocked_at is not None and now - run.blocked_at >= PATIENCE:
        yield RunTrouble(run.number, TroubleKind.BLOCKED, run.left, run.blocked_at)
    unread = run.error is not None and run.error.stored_code == ShortRunReasonCode.CLUSTER_UNREAD
    if unread and now - run.read_at > PATIENCE:
        yield RunTrouble(run.number, TroubleKind.UNREAD, run.left, run.read_at, run.error)
    if queued:
        stands, since = run.error is not None and not unread, run.read_at
    else:
        stands, since = run.state is not ChangeState.PAUSED, run.got_on_at
    if stands and now - since > PATIENCE:
        yield RunTrouble(run.number, TroubleKind.STALLED, run.left, since, run.error)
