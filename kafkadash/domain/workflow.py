"""The states of a change request."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a change request stands; the values are stored."""

    DRAFT = "draft"
    PROPOSED = "proposed"
    APPROVED = "approved"
    QUEUED = "queued"
    STALE = "stale"
    EXECUTING = "executing"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    VERIFYING = "verifying"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    DECLINED = "declined"
    EXPIRED = "expired"
