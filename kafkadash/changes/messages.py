"""Texts of the codes of this app: errors, risk points (``changes.risk``) and states (``changes.state_machine``)."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.risk import RiskCode
from kafkadash.changes.state_machine import WorkflowErrorCode
from kafkadash.core.messages import MessageTemplate, Writer

_ANEW = "Make the plan again."

CHANGE_MESSAGES: Mapping[ChangeErrorCode, MessageTemplate] = {
    # Drafts, plans and what people write
    ChangeErrorCode.TEXT_TOO_LONG: MessageTemplate(
        "{what} has {length:,} characters; {most:,} is the most.", "Shorten it."
    ),
    ChangeErrorCode.TITLE_TOO_LONG: MessageTemplate(
        "The title has {length} characters; {most} is the most.", "Shorten it."
    ),
    ChangeErrorCode.TYPED_TOO_LONG: MessageTemplate(
        "This has {length:,} characters; {most:,} is the most.", "What is longer belongs behind a link."
    ),
    ChangeErrorCode.WINDOW_TURNED_ROUND: MessageTemplate(
        "The window ends before it begins.", "Give an end that is after the beginning."
    ),
    ChangeErrorCode.NO_TIME: MessageTemplate("{written} is no time.", "Write it as 2026-11-24T22:00:00Z."),
    ChangeErrorCode.WHY_MISSING: MessageTemplate("", "Say why this is to be done: whoever approves it has to know."),
    ChangeErrorCode.COMMENT_MISSING: MessageTemplate("", "There is nothing in it yet: write what you want to say."),
    ChangeErrorCode.PLAN_UNDER_WAY: MessageTemplate(
        "The plan of #{number} is still being made.", "Submit it when the plan is there."
    ),
    ChangeErrorCode.PLAN_EMPTY: MessageTemplate(
        "The plan of #{number} is empty: there is nothing to do, so there is nothing to approve.",
        "Delete the draft, or edit what it asks for.",
    ),
    ChangeErrorCode.PLANNED_ANEW: MessageTemplate(
        "#{number} was planned anew while you had it open.", "Look at the plan again, then submit it."
    ),
    ChangeErrorCode.PLAN_NO_LONGER_FITS: MessageTemplate(
        "The plan no longer fits the cluster: {first:cause}",
        "Make the plan again.",
        many="The plan no longer fits the cluster, for this and {others:# other reason|# other reasons}: {first:cause}",
        by="total",
    ),
    ChangeErrorCode.PLAN_NEVER_STARTS: MessageTemplate(
        "This plan could never start: {first:cause}",
        "{first:advice}",
        many="This plan could never start, for this and {others:# other reason|# other reasons}: {first:cause}",
        by="total",
    ),
    ChangeErrorCode.PLAN_NOT_CHECKED: MessageTemplate(
        "This could not be checked, so nobody can tell whether the plan fits: {checks:names}.",
        "Wait for the next refresh; the overview of the cluster says what could not be read.",
    ),
    ChangeErrorCode.NO_DRAFT_ANY_MORE: MessageTemplate("#{number} is no draft any more.", "{now}"),
    ChangeErrorCode.SAVED_IN_ANOTHER_WINDOW: MessageTemplate(
        "You saved #{number} in another window{at}.", "What you entered here is not stored: open it again."
    ),
    ChangeErrorCode.EDITED_MEANWHILE: MessageTemplate(
        "{who} edited #{number}{at}, while you had it open. What you entered is not stored yet, so that {who}'s edit "
        "is not lost.",
        "Look at what is stored now, then enter yours again where it still fits.",
    ),
    ChangeErrorCode.PLAN_DROPPED: MessageTemplate("#{number} is no draft any more, so the plan was dropped.", "{now}"),
    ChangeErrorCode.EDITED_WHILE_PLANNED: MessageTemplate(
        "#{number} was edited by {who} while it was planned, so the plan was dropped.", "Make the plan again."
    ),
    ChangeErrorCode.NEW_PLAN_DROPPED: MessageTemplate("The new plan of #{number} was dropped.", "{now}"),
    ChangeErrorCode.NOTHING_LEFT: MessageTemplate(
        "There is nothing left to do: the cluster is by now as #{number} wants it.", "Withdraw it, or let it expire."
    ),
    ChangeErrorCode.NEW_PLAN_UNDER_WAY: MessageTemplate(
        "A new plan is being made already.", "It is shown here as soon as it is done."
    ),
    ChangeErrorCode.ONLY_A_DRAFT_IS_DELETED: MessageTemplate("Only a draft can be deleted.", "{now}"),
    ChangeErrorCode.KEPT_ONCE_PROPOSED: MessageTemplate(
        "#{number} was proposed once, so what was said about it is kept.", "Leave it as a draft."
    ),
    ChangeErrorCode.DELETED_MEANWHILE: MessageTemplate(
        "#{number} was deleted while you read it.", "Propose it anew if it is still needed."
    ),
    ChangeErrorCode.CHANGED_MEANWHILE: MessageTemplate("#{number} changed while you read it.", "Look at it again."),
    ChangeErrorCode.POLICY_APPROVALS: MessageTemplate(
        "", "Between 1 and {most} approvals: without one, nobody else has looked at it."
    ),
    ChangeErrorCode.POLICY_ORDER: MessageTemplate(
        "A higher risk cannot need fewer approvals than a lower one.", "Raise this number, or lower the one before it."
    ),
    ChangeErrorCode.POLICY_HOURS: MessageTemplate(
        "", "Between 1 and {most} hours ({days} days): give a number of them."
    ),
    ChangeErrorCode.POLICY_NO_NUMBER: MessageTemplate("", "Give a whole number."),
    ChangeErrorCode.LOOSENING_WAITS: MessageTemplate(
        "{who} asked for a looser policy of {cluster} already, and that waits.", "Confirm it or drop it first."
    ),
    ChangeErrorCode.LOOSENING_NEEDS_ANOTHER: MessageTemplate(
        "Whoever asked for a looser policy, or has the role admin from them, cannot confirm it.",
        "Ask another administrator, or set it on the server: manage.py policy {cluster}",
    ),
    ChangeErrorCode.LOOSENING_CHANGED: MessageTemplate(
        "What waited for {cluster} was dropped, replaced or came into force.", "Look at it again."
    ),
    ChangeErrorCode.POLICY_REASON: MessageTemplate(
        "", "Say why: others rely on this rule, and read the reason in the audit."
    ),
    # Checks of a reassignment before it runs
    ChangeErrorCode.NOT_TRUE_ANY_MORE: MessageTemplate("Not true any more: {check}.", _ANEW),
    ChangeErrorCode.MORE_REASONS: MessageTemplate("And {more:,} more.", _ANEW),
    ChangeErrorCode.APPROVER_LEFT: MessageTemplate(
        "{name} approved it, and may not approve changes of {cluster} any more.",
        "Make a new plan and have it approved again.",
    ),
    ChangeErrorCode.CONTENT_ALTERED: MessageTemplate(
        "The stored plan or options of {name} are not those of its digest: they were altered in the database.",
        "Find out who wrote there. Then make a new plan and have it approved.",
    ),
    # Verifications, plans and reassignments that are not there
    ChangeErrorCode.PLANNING_STOPPED: MessageTemplate("It was stopped.", "Ask for the plan again."),
    # The life of a change: submitting, approving, declining, starting
    ChangeErrorCode.DECLINE_REASON_TYPED: MessageTemplate(
        "", "Say what has to change before you would approve: declining needs a reason."
    ),
    ChangeErrorCode.WITHDRAW_REASON: MessageTemplate("", "Say why it is withdrawn: those who reviewed it read that."),
    ChangeErrorCode.ROLE_FROM_AUTHOR: MessageTemplate(
        "{name} was written or edited by whoever gave you your role, so your approval does not count for it.",
        "Ask another approver, or have another administrator give the role.",
    ),
    ChangeErrorCode.STILL_A_DRAFT: MessageTemplate(
        "There is nothing to decide yet: this is the draft of {author}.", "It can be decided on when it is submitted."
    ),
    ChangeErrorCode.STALE_FIRST: MessageTemplate(
        "There is nothing to decide: the plan no longer fits the cluster and has to be made anew first.",
        "Whoever may propose changes can ask for a new plan.",
    ),
    ChangeErrorCode.WAITS_FOR_START: MessageTemplate(
        "It waits to be started, by somebody with the role {roles} on {cluster}.", "Ask one of them to start it."
    ),
    ChangeErrorCode.DECIDED: MessageTemplate(
        "There is nothing left to decide.", "Its run and its audit trail say how it goes on."
    ),
    ChangeErrorCode.DECIDING_NEEDS_ROLE: MessageTemplate(
        "To approve or decline it, one needs the role {roles} on {cluster}.",
        "Ask an administrator of the cluster for it, or somebody who has it to decide.",
    ),
    ChangeErrorCode.TOO_FEW_APPROVERS: MessageTemplate(
        "It needs {needed:# approval|# approvals}, and {who}: so it cannot be approved.",
        "Ask an administrator of {cluster} to make somebody else an approver.",
    ),
    ChangeErrorCode.DECIDING_OWN: MessageTemplate(
        "You wrote, edited or refreshed what is proposed, so somebody else decides about it.", "Ask another approver."
    ),
    # Rights, and facts that are too old
    ChangeErrorCode.CLUSTER_REMOVED: MessageTemplate(
        "{cluster} was removed from kafkadash.", "Register it again, then propose it there."
    ),
    ChangeErrorCode.ITS_CLUSTER_REMOVED: MessageTemplate(
        "Its cluster was removed from kafkadash.", "Register it again, then propose it there."
    ),
    ChangeErrorCode.NEEDS_ROLE_NOW: MessageTemplate(
        "{doing} on {cluster} you need the role {roles}, which you do not have now.",
        "Ask an administrator of the cluster for it.",
    ),
    ChangeErrorCode.ROLE_COUNTS_LATER: MessageTemplate(
        "Your role on {cluster} was given lately: nothing is approved or started by it before {at}.",
        "Ask somebody whose role counts already.",
    ),
    ChangeErrorCode.POLICY_NEEDS_ROLE: MessageTemplate(
        "To change the policy of {cluster} you need the role {roles} on it.",
        "Ask an administrator of the cluster for it.",
    ),
    ChangeErrorCode.NO_SUCH_CHANGE: MessageTemplate(
        "There is no change #{number} on a cluster that you may view.",
        "Look at the list of changes, or ask an administrator for the role viewer on its cluster.",
    ),
    ChangeErrorCode.FACTS_NOT_READ: MessageTemplate(
        "The {facts} of {cluster} have not been read yet, so nobody can tell whether this fits.",
        "Wait for the first refresh; the overview of the cluster says if it fails.",
    ),
    ChangeErrorCode.FACTS_TOO_OLD: MessageTemplate(
        "What is known about {facts} of {cluster} is {age} old, so nobody can tell whether this still fits.",
        "Wait for the next refresh.",
    ),
    ChangeErrorCode.CHECKS_NOT_MADE: MessageTemplate(
        "{doing} needs checks on data younger than {limit}; it was not checked yet.", "Wait for the next refresh."
    ),
    ChangeErrorCode.CHECKS_TOO_OLD: MessageTemplate(
        "{doing} needs checks on data younger than {limit}; the last are on data {age} old.",
        "Wait for the next refresh; the overview of the cluster says if it fails.",
    ),
    # Starting, steering and ending a run
    ChangeErrorCode.START_KEY_TOO_LONG: MessageTemplate(
        "The key of a start has at most {most} characters.", "Start it from its page."
    ),
    ChangeErrorCode.RESUME_REASON: MessageTemplate("", "Say why it may go on: whoever paused it has to know."),
    ChangeErrorCode.CANCEL_REASON: MessageTemplate("", "Say why it is cancelled: it stands in its report."),
    # Work that a worker does for a page or a command
    ChangeErrorCode.CHANGE_KIND_UNKNOWN: MessageTemplate(
        "This version of kafkadash knows no kind of change called {name!r}.", "Use the version that made it."
    ),
}


RISK_MESSAGES: Mapping[RiskCode, MessageTemplate] = {
    RiskCode.BYTES: MessageTemplate("moves {share:percent} of the bytes"),
    RiskCode.BYTES_UNKNOWN: MessageTemplate("how many bytes move is not known"),
    RiskCode.PARTITIONS: MessageTemplate("touches {share:percent} of the partitions"),
    RiskCode.PARTITIONS_UNKNOWN: MessageTemplate("how many of the partitions it touches is not known"),
    RiskCode.FEWER_REPLICAS: MessageTemplate("{partitions:# partition ends|# partitions end} with fewer replicas"),
    RiskCode.INTERNAL_TOPICS: MessageTemplate("{topics:# internal topic|# internal topics}"),
    RiskCode.SPREAD_WORSE: MessageTemplate("{partitions:# partition is|# partitions are} spread over racks worse"),
    RiskCode.SPREAD_UNKNOWN: MessageTemplate("whether the rack spread gets worse is not known"),
    RiskCode.RACKS_ON_ONE_BROKER: MessageTemplate("{racks:names} left with one broker"),
}


def _format_percent(share: float) -> str:
    percent = round(100 * min(1.0, max(0.0, share)))
    return f"{percent} %" if percent else "less than 1 %"


RISK_WRITERS: Mapping[str, Writer] = {"percent": _format_percent}


_COPY = "Copy it to propose it again."
_LOOK = "Look at it again."

WORKFLOW_MESSAGES: Mapping[WorkflowErrorCode, MessageTemplate] = {
    # Drafts, plans and what people write
    WorkflowErrorCode.PLAN_MISSING: MessageTemplate(
        "#{number} has no plan yet.", "Make the plan first, then submit it."
    ),
    # The life of a change: submitting, approving, declining, starting
    WorkflowErrorCode.WRONG_ROLE: MessageTemplate(
        "This is for the role {roles}.", "Ask an administrator of the cluster for it."
    ),
    WorkflowErrorCode.WINDOW_OVER: MessageTemplate(
        "The window of {name} is over.", "Choose another one, then submit it."
    ),
    WorkflowErrorCode.WINDOW_TOO_FAR: MessageTemplate(
        "The window begins more than {hours:# hour|# hours} from now, and an approval is valid no longer than that on "
        "this cluster.",
        "Submit it closer to the window, or have the policy changed.",
    ),
    WorkflowErrorCode.NO_NEW_PLAN: MessageTemplate("{name} has no new plan.", "Ask for a new plan again."),
    WorkflowErrorCode.NOT_A_PERSON: MessageTemplate(
        "An approval is a person's.", "Sign in and approve it on its page."
    ),
    WorkflowErrorCode.OWN_HANDS: MessageTemplate(
        "You wrote, edited or refreshed {name}, so somebody else has to approve it.", "Ask another approver."
    ),
    WorkflowErrorCode.APPROVED_ALREADY: MessageTemplate(
        "You have approved {name} already; it takes somebody else's approval as well.", "Ask another approver."
    ),
    WorkflowErrorCode.DECLINE_REASON: MessageTemplate(
        "", "Say why you decline it, so that the author knows what to change."
    ),
    WorkflowErrorCode.NOT_DUE: MessageTemplate("The time of {name} is not over.", "It expires by itself when it is."),
    WorkflowErrorCode.GLASS_FORBIDDEN: MessageTemplate(
        "The policy of this cluster lets nobody start a change without its approvals.",
        "Ask approvers for theirs, or an administrator to change the policy.",
    ),
    WorkflowErrorCode.GLASS_REASON: MessageTemplate(
        "", "Say why this cannot wait for its approvals; it is written into the audit."
    ),
    WorkflowErrorCode.WINDOW_NOT_BEGUN: MessageTemplate(
        "The window of {name} has not begun.", "It goes on by itself when it begins."
    ),
    WorkflowErrorCode.TIME_OVER: MessageTemplate("The time of {name} is over.", _COPY),
    WorkflowErrorCode.CANNOT_RUN: MessageTemplate(
        "This version of kafkadash cannot run {name} yet.",
        "Have kafkadash updated to a version that can, then start it.",
    ),
    WorkflowErrorCode.LACKS_APPROVALS: MessageTemplate(
        "{name} does not have the approvals it needs.", "Ask approvers for those that are missing."
    ),
    WorkflowErrorCode.OTHER_CONTENT: MessageTemplate(
        "{name} changed while you read it: its content is another one now.", _LOOK
    ),
    WorkflowErrorCode.OTHER_ROUND: MessageTemplate(
        "{name} was proposed anew while you read it: its reason may be another one now.", _LOOK
    ),
    WorkflowErrorCode.FINAL: MessageTemplate("{name} is {state}, and that is final.", _COPY),
    WorkflowErrorCode.WITHDRAW_FIRST: MessageTemplate(
        "{name} is {state}.", "Withdraw it to edit it; its approvals are void then."
    ),
    WorkflowErrorCode.NOT_NEEDED: MessageTemplate(
        "{name} has all its approvals already.", "Yours is not needed any more."
    ),
    WorkflowErrorCode.NOTHING_TO_REFRESH: MessageTemplate(
        "{name} is {state}, not stale: there is nothing to refresh.", _LOOK
    ),
    WorkflowErrorCode.NOT_FROM_HERE: MessageTemplate("{name} is {state} now, so it cannot be {done}.", _LOOK),
}
