"""Codes of what the workflow of changes refuses; the texts are in ``changes.workflow_messages``."""

from __future__ import annotations

from enum import StrEnum


class WorkflowErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Drafts, plans and what people write
    PLAN_MISSING = "plan-missing"

    # The life of a change: submitting, approving, declining, starting
    WRONG_ROLE = "wrong-role"
    WINDOW_OVER = "window-over"
    WINDOW_TOO_FAR = "window-too-far"
    NO_NEW_PLAN = "no-new-plan"
    NOT_A_PERSON = "not-a-person"
    OWN_HANDS = "own-hands"
    APPROVED_ALREADY = "approved-already"
    DECLINE_REASON = "decline-reason"
    NOT_DUE = "not-due"
    GLASS_FORBIDDEN = "glass-forbidden"
    GLASS_REASON = "glass-reason"
    WINDOW_NOT_BEGUN = "window-not-begun"
    TIME_OVER = "time-over"
    CANNOT_RUN = "cannot-run"
    LACKS_APPROVALS = "lacks-approvals"
    OTHER_CONTENT = "other-content"
    OTHER_ROUND = "other-round"
    FINAL = "final"
    WITHDRAW_FIRST = "withdraw-first"
    NOT_NEEDED = "not-needed"
    NOTHING_TO_REFRESH = "nothing-to-refresh"
    NOT_FROM_HERE = "not-from-here"
