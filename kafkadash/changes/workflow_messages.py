"""Texts of the codes of the workflow (``domain.workflow``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.domain.messages import MessageTemplate
from kafkadash.domain.workflow_errors import WorkflowErrorCode as Code

_COPY = "Copy it to propose it again."
_LOOK = "Look at it again."

WORKFLOW_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Drafts, plans and what people write
    Code.PLAN_MISSING: MessageTemplate("#{number} has no plan yet.", "Make the plan first, then submit it."),
    # The life of a change: submitting, approving, declining, starting
    Code.WRONG_ROLE: MessageTemplate("This is for the role {roles}.", "Ask an administrator of the cluster for it."),
    Code.WINDOW_OVER: MessageTemplate("The window of {name} is over.", "Choose another one, then submit it."),
    Code.WINDOW_TOO_FAR: MessageTemplate(
        "The window begins more than {hours} from now, and an approval is valid no longer than that on this cluster.",
        "Submit it closer to the window, or have the policy changed.",
    ),
    Code.NO_NEW_PLAN: MessageTemplate("{name} has no new plan.", "Ask for a new plan again."),
    Code.NOT_A_PERSON: MessageTemplate("An approval is a person's.", "Sign in and approve it on its page."),
    Code.OWN_HANDS: MessageTemplate(
        "You wrote, edited or refreshed {name}, so somebody else has to approve it.", "Ask another approver."
    ),
    Code.APPROVED_ALREADY: MessageTemplate(
        "You have approved {name} already; it takes somebody else's approval as well.", "Ask another approver."
    ),
    Code.DECLINE_REASON: MessageTemplate("", "Say why you decline it, so that the author knows what to change."),
    Code.NOT_DUE: MessageTemplate("The time of {name} is not over.", "It expires by itself when it is."),
    Code.GLASS_FORBIDDEN: MessageTemplate(
        "The policy of this cluster lets nobody start a change without its approvals.",
        "Ask approvers for theirs, or an administrator to change the policy.",
    ),
    Code.GLASS_REASON: MessageTemplate("", "Say why this cannot wait for its approvals; it is written into the audit."),
    Code.WINDOW_NOT_BEGUN: MessageTemplate(
        "The window of {name} has not begun.", "It goes on by itself when it begins."
    ),
    Code.TIME_OVER: MessageTemplate("The time of {name} is over.", _COPY),
    Code.CANNOT_RUN: MessageTemplate(
        "This version of kafkadash cannot run {name} yet.",
        "Have kafkadash updated to a version that can, then start it.",
    ),
    Code.LACKS_APPROVALS: MessageTemplate(
        "{name} does not have the approvals it needs.", "Ask approvers for those that are missing."
    ),
    Code.OTHER_CONTENT: MessageTemplate("{name} changed while you read it: its content is another one now.", _LOOK),
    Code.OTHER_ROUND: MessageTemplate(
        "{name} was proposed anew while you read it: its reason may be another one now.", _LOOK
    ),
    Code.FINAL: MessageTemplate("{name} is {state}, and that is final.", _COPY),
    Code.WITHDRAW_FIRST: MessageTemplate("{name} is {state}.", "Withdraw it to edit it; its approvals are void then."),
    Code.NOT_NEEDED: MessageTemplate("{name} has all its approvals already.", "Yours is not needed any more."),
    Code.NOTHING_TO_REFRESH: MessageTemplate("{name} is {state}, not stale: there is nothing to refresh.", _LOOK),
    Code.NOT_FROM_HERE: MessageTemplate("{name} is {state} now, so it cannot be {done}.", _LOOK),
}
