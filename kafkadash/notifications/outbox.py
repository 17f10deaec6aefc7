"""Events for receivers, recorded in the transaction of what they tell of: both are stored, or neither."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, message_columns
from kafkadash.notifications.models import CAUSE_MARK, EventStep, EventSubject, NotificationEvent


def build_event(
    cluster: Cluster | None,
    subject: EventSubject,
    subject_id: str,
    step: EventStep,
    message: CodedMessage,
    occurred_at: datetime,
    *,
    kind: str = "",
    state: str = "",
    path: str = "",
    runbook: str = "",
    cause: str = "",
    consequences: dict[str, Any] | None = None,
    hold_until: datetime | None = None,
) -> NotificationEvent:
    """Return an event that is not stored yet; ``cluster`` is None for kafkadash itself.

    ``path`` and ``runbook`` are pages of kafkadash.
    """
    return NotificationEvent(
        cluster=cluster,
        subject=subject,
        subject_id=subject_id,
        step=step,
        kind=kind,
        state=state,
        path=path,
        runbook=runbook,
        occurred_at=occurred_at,
        cause=cause,
        consequences=consequences,
        hold_until=hold_until,
        **message_columns(message, "message"),
    )


def change_cause(number: int | str) -> str:
    """Return the ``cause`` of an event that a change explains."""
    return f"{CAUSE_MARK}{number}"


def record_events(events: Iterable[NotificationEvent]) -> None:
    """Store events, inside the caller's transaction. The tick routes them (``routing.route_events``)."""
    if rows := list(events):
        NotificationEvent.objects.bulk_create(rows)
