"""Codes of the refusals and failures of change requests, and the exceptions that carry them."""

from __future__ import annotations

from enum import StrEnum

from kafkadash.core.errors import UserError


class ChangeErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Drafts, plans and what people write
    TEXT_TOO_LONG = "text-too-long"
    TITLE_TOO_LONG = "title-too-long"
    TYPED_TOO_LONG = "typed-too-long"
    WINDOW_TURNED_ROUND = "window-turned-round"
    NO_TIME = "no-time"
    WHY_MISSING = "why-missing"
    COMMENT_MISSING = "comment-missing"
    PLAN_UNDER_WAY = "plan-under-way"
    PLAN_EMPTY = "plan-empty"
    PLANNED_ANEW = "planned-anew"
    PLAN_NO_LONGER_FITS = "plan-no-longer-fits"
    PLAN_NEVER_STARTS = "plan-never-starts"
    PLAN_NOT_CHECKED = "plan-not-checked"
    NO_DRAFT_ANY_MORE = "no-draft-any-more"
    SAVED_IN_ANOTHER_WINDOW = "saved-in-another-window"
    EDITED_MEANWHILE = "edited-meanwhile"
    PLAN_DROPPED = "plan-dropped"
    EDITED_WHILE_PLANNED = "edited-while-planned"
    NEW_PLAN_DROPPED = "new-plan-dropped"
    NOTHING_LEFT = "nothing-left"
    NEW_PLAN_UNDER_WAY = "new-plan-under-way"
    ONLY_A_DRAFT_IS_DELETED = "only-a-draft-is-deleted"
    KEPT_ONCE_PROPOSED = "kept-once-proposed"
    DELETED_MEANWHILE = "deleted-meanwhile"
    CHANGED_MEANWHILE = "changed-meanwhile"
    POLICY_APPROVALS = "policy-approvals"
    POLICY_ORDER = "policy-order"
    POLICY_HOURS = "policy-hours"
    POLICY_NO_NUMBER = "policy-no-number"
    LOOSENING_WAITS = "loosening-waits"
    LOOSENING_NEEDS_ANOTHER = "loosening-needs-another"
    LOOSENING_CHANGED = "loosening-changed"
    POLICY_REASON = "policy-reason"

    # Checks of a reassignment before it runs
    NOT_TRUE_ANY_MORE = "not-true-any-more"
    MORE_REASONS = "more-reasons"
    APPROVER_LEFT = "approver-left"
    CONTENT_ALTERED = "content-altered"

    # Verifications, plans and reassignments that are not there
    PLANNING_STOPPED = "planning-stopped"

    # The life of a change: submitting, approving, declining, starting
    DECLINE_REASON_TYPED = "decline-reason-typed"
    WITHDRAW_REASON = "withdraw-reason"
    ROLE_FROM_AUTHOR = "role-from-author"
    STILL_A_DRAFT = "still-a-draft"
    STALE_FIRST = "stale-first"
    WAITS_FOR_START = "waits-for-start"
    DECIDED = "decided"
    DECIDING_NEEDS_ROLE = "deciding-needs-role"
    TOO_FEW_APPROVERS = "too-few-approvers"
    DECIDING_OWN = "deciding-own"

    # Rights, and facts that are too old
    CLUSTER_REMOVED = "cluster-removed"
    ITS_CLUSTER_REMOVED = "its-cluster-removed"
    NEEDS_ROLE_NOW = "needs-role-now"
    ROLE_COUNTS_LATER = "role-counts-later"
    POLICY_NEEDS_ROLE = "policy-needs-role"
    NO_SUCH_CHANGE = "no-such-change"
    FACTS_NOT_READ = "facts-not-read"
    FACTS_TOO_OLD = "facts-too-old"
    CHECKS_NOT_MADE = "checks-not-made"
    CHECKS_TOO_OLD = "checks-too-old"

    # Starting, steering and ending a run
    START_KEY_TOO_LONG = "start-key-too-long"
    RESUME_REASON = "resume-reason"
    CANCEL_REASON = "cancel-reason"

    # Changes of several steps
    STEP_IS_OPEN = "step-is-open"
    STEP_NOT_DONE = "step-not-done"
    OTHER_STEPS = "other-steps"
    STEPS_WERE_PROPOSED = "steps-were-proposed"

    # Work that a worker does for a page or a command
    CHANGE_KIND_UNKNOWN = "change-kind-unknown"


class StepCheckTitle(StrEnum):
    """Code of the title of the check of the steps before."""

    STEPS_BEFORE = "steps-before-are-over"


class RightsTitle(StrEnum):
    """Code of the title of the check of ACLs."""

    GRANTED = "rights-granted"


class RightsCode(StrEnum):
    """Codes of what the check of ACLs finds missing or unknown."""

    MISSING_ON_CLUSTER = "right-missing-cluster"
    MISSING_ON_TOPICS = "right-missing-topics"
    MISSING_ON_GROUPS = "right-missing-groups"
    UNREAD = "rights-unread"
    OLD = "rights-old"
    MAYBE_ON_TOPICS = "right-maybe-on-topics"
    TOPICS_UNREAD = "rights-on-topics-unread"
    GROUPS_UNREAD = "rights-on-groups-unread"


class ChangeRefused(UserError):
    """Refusal of an action on a change request; nothing was written."""


class ChangedMeanwhile(ChangeRefused):
    """The request changed after the person saw it; the message says who changed it, how and when."""


class EditedMeanwhile(ChangedMeanwhile):
    """The draft has another version than the one that was open; what was entered is not stored."""
