"""Changes that are lists of items on the real cluster, from their draft to their end, one step at a time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.short_runs.models import ShortRun
from kafkadash.short_runs.plans import plan_draft
from kafkadash.short_runs.worker import step_once
from tests.waiting import wait_until

DEADLINE_S = 60.0


def queue(cluster: Cluster, kind: str, wanted: Mapping[str, Any], operator: User) -> ChangeRequest:
    """Draft, plan, submit and start a change whose approval is not the point."""
    cluster.refresh_from_db()
    draft = services.create_draft(cluster, kind, operator, title="Mend it", input=wanted, options={})
    planned = plan_draft(draft)
    services.submit(planned, operator, why="It was found.", version=planned.version)
    expires = datetime.now(UTC) + timedelta(hours=1)
    ChangeRequest.objects.filter(pk=draft.pk).update(
        state=RequestState.APPROVED, approvals_needed=0, expires_at=expires
    )
    return services.start(ChangeRequest.objects.get(pk=draft.pk), operator, "Now.")


def step_until(change: ChangeRequest, *states: RequestState) -> ShortRun | None:
    """Return the run of the change once this is in one of the states; a stale change has none."""

    def is_there() -> bool:
        run = ShortRun.objects.filter(request=change).first()
        if run is not None:
            ShortRun.objects.filter(pk=run.pk).update(next_at=Now())
            step_once(run.pk)
        change.refresh_from_db()
        return change.state in states

    try:
        wait_until(is_there, f"#{change.pk} is {states[0].label}", DEADLINE_S)
    except AssertionError as late:
        run = ShortRun.objects.filter(request=change).first()
        rows = list(run.rows.values_list("state", "reason_code", "reason_params")) if run else []
        stands = run and (run.blocked_code, run.error_code, run.failures)
        raise AssertionError(f"{late}; it is {change.state}, {stands}, {rows}") from late
    return ShortRun.objects.filter(request=change).first()
