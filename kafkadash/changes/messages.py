"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.changes.errors import ChangeErrorCode as Code
from kafkadash.domain.messages import MessageTemplate

_ANEW = "Make the plan again."

CHANGE_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Drafts, plans and what people write
    Code.TEXT_TOO_LONG: MessageTemplate("{what} has {length:,} characters; {most:,} is the most.", "Shorten it."),
    Code.TITLE_TOO_LONG: MessageTemplate("The title has {length} characters; {most} is the most.", "Shorten it."),
    Code.TYPED_TOO_LONG: MessageTemplate(
        "This has {length:,} characters; {most:,} is the most.", "What is longer belongs behind a link."
    ),
    Code.WINDOW_TURNED_ROUND: MessageTemplate(
        "The window ends before it begins.", "Give an end that is after the beginning."
    ),
    Code.NO_TIME: MessageTemplate("{written} is no time.", "Write it as 2026-11-24T22:00:00Z."),
    Code.WHY_MISSING: MessageTemplate("", "Say why this is to be done: whoever approves it has to know."),
    Code.COMMENT_MISSING: MessageTemplate("", "There is nothing in it yet: write what you want to say."),
    Code.PLAN_UNDER_WAY: MessageTemplate(
        "The plan of #{number} is still being made.", "Submit it when the plan is there."
    ),
    Code.PLAN_EMPTY: MessageTemplate(
        "The plan of #{number} is empty: there is nothing to do, so there is nothing to approve.",
        "Delete the draft, or edit what it asks for.",
    ),
    Code.PLANNED_ANEW: MessageTemplate(
        "#{number} was planned anew while you had it open.", "Look at the plan again, then submit it."
    ),
    Code.PLAN_NO_LONGER_FITS: MessageTemplate(
        "The plan no longer fits the cluster: {first}{more}", "Make the plan again."
    ),
    Code.PLAN_NEVER_STARTS: MessageTemplate("This plan could never start: {first}{more}", "{then}"),
    Code.PLAN_NOT_CHECKED: MessageTemplate(
        "This could not be checked, so nobody can tell whether the plan fits: {checks}.",
        "Wait for the next refresh; the overview of the cluster says what could not be read.",
    ),
    Code.NO_DRAFT_ANY_MORE: MessageTemplate("#{number} is no draft any more.", "{now}"),
    Code.SAVED_IN_ANOTHER_WINDOW: MessageTemplate(
        "You saved #{number} in another window{at}.", "What you entered here is not stored: open it again."
    ),
    Code.EDITED_MEANWHILE: MessageTemplate(
        "{who} edited #{number}{at}, while you had it open. What you entered is not stored yet, so that {who}'s edit "
        "is not lost.",
        "Look at what is stored now, then enter yours again where it still fits.",
    ),
    Code.PLAN_DROPPED: MessageTemplate("#{number} is no draft any more, so the plan was dropped.", "{now}"),
    Code.EDITED_WHILE_PLANNED: MessageTemplate(
        "#{number} was edited by {who} while it was planned, so the plan was dropped.", "Make the plan again."
    ),
    Code.NEW_PLAN_DROPPED: MessageTemplate("The new plan of #{number} was dropped.", "{now}"),
    Code.NOTHING_LEFT: MessageTemplate(
        "There is nothing left to do: the cluster is by now as #{number} wants it.", "Withdraw it, or let it expire."
    ),
    Code.NEW_PLAN_UNDER_WAY: MessageTemplate(
        "A new plan is being made already.", "It is shown here as soon as it is done."
    ),
    Code.ONLY_A_DRAFT_IS_DELETED: MessageTemplate("Only a draft can be deleted.", "{now}"),
    Code.KEPT_ONCE_PROPOSED: MessageTemplate(
        "#{number} was proposed once, so what was said about it is kept.", "Leave it as a draft."
    ),
    Code.DELETED_MEANWHILE: MessageTemplate(
        "#{number} was deleted while you read it.", "Propose it anew if it is still needed."
    ),
    Code.CHANGED_MEANWHILE: MessageTemplate("#{number} changed while you read it.", "Look at it again."),
    Code.POLICY_APPROVALS: MessageTemplate(
        "", "Between 1 and {most} approvals: without one, nobody else has looked at it."
    ),
    Code.POLICY_ORDER: MessageTemplate(
        "A higher risk cannot need fewer approvals than a lower one.", "Raise this number, or lower the one before it."
    ),
    Code.POLICY_HOURS: MessageTemplate("", "Between 1 and {most} hours ({days} days): give a number of them."),
    Code.POLICY_NO_NUMBER: MessageTemplate("", "Give a whole number."),
    Code.LOOSENING_WAITS: MessageTemplate(
        "{who} asked for a looser policy of {cluster} already, and that waits.", "Confirm it or drop it first."
    ),
    Code.LOOSENING_NEEDS_ANOTHER: MessageTemplate(
        "Whoever asked for a looser policy, or has the role admin from them, cannot confirm it.",
        "Ask another administrator, or set it on the server: manage.py policy {cluster}",
    ),
    Code.LOOSENING_CHANGED: MessageTemplate(
        "What waited for {cluster} was dropped, replaced or came into force.", "Look at it again."
    ),
    Code.POLICY_REASON: MessageTemplate("", "Say why: others rely on this rule, and read the reason in the audit."),
    # What the checks of a reassignment find before it runs
    Code.NOT_TRUE_ANY_MORE: MessageTemplate("Not true any more: {check}.", _ANEW),
    Code.APPROVER_LEFT: MessageTemplate(
        "{name} approved it, and may not approve changes of {cluster} any more.",
        "Make a new plan and have it approved again.",
    ),
    Code.CONTENT_ALTERED: MessageTemplate(
        "The stored plan or options of {name} are not those of its digest: they were altered in the database.",
        "Find out who wrote there. Then make a new plan and have it approved.",
    ),
    # What is looked for and is not there: verifications, plans and reassignments
    Code.PLANNING_STOPPED: MessageTemplate("It was stopped.", "Ask for the plan again."),
    # The life of a change: submitting, approving, declining, starting
    Code.DECLINE_REASON_TYPED: MessageTemplate(
        "", "Say what has to change before you would approve: declining needs a reason."
    ),
    Code.WITHDRAW_REASON: MessageTemplate("", "Say why it is withdrawn: those who reviewed it read that."),
    Code.ROLE_FROM_AUTHOR: MessageTemplate(
        "{name} was written or edited by whoever gave you your role, so your approval does not count for it.",
        "Ask another approver, or have another administrator give the role.",
    ),
    Code.STILL_A_DRAFT: MessageTemplate(
        "There is nothing to decide yet: this is the draft of {author}.", "It can be decided on when it is submitted."
    ),
    Code.STALE_FIRST: MessageTemplate(
        "There is nothing to decide: the plan no longer fits the cluster and has to be made anew first.",
        "Whoever may propose changes can ask for a new plan.",
    ),
    Code.WAITS_FOR_START: MessageTemplate(
        "It waits to be started, by somebody with the role {roles} on {cluster}.", "Ask one of them to start it."
    ),
    Code.DECIDED: MessageTemplate(
        "There is nothing left to decide.", "Its run and its audit trail say how it goes on."
    ),
    Code.DECIDING_NEEDS_ROLE: MessageTemplate(
        "To approve or decline it, one needs the role {roles} on {cluster}.",
        "Ask an administrator of the cluster for it, or somebody who has it to decide.",
    ),
    Code.TOO_FEW_APPROVERS: MessageTemplate(
        "It needs {needed}, and {who}: so it cannot be approved.",
        "Ask an administrator of {cluster} to make somebody else an approver.",
    ),
    Code.DECIDING_OWN: MessageTemplate(
        "You wrote, edited or refreshed what is proposed, so somebody else decides about it.", "Ask another approver."
    ),
    # Rights, and facts that are too old
    Code.CLUSTER_REMOVED: MessageTemplate(
        "{cluster} was removed from kafkadash.", "Register it again, then propose it there."
    ),
    Code.ITS_CLUSTER_REMOVED: MessageTemplate(
        "Its cluster was removed from kafkadash.", "Register it again, then propose it there."
    ),
    Code.NEEDS_ROLE_NOW: MessageTemplate(
        "{doing} on {cluster} you need the role {roles}, which you do not have now.",
        "Ask an administrator of the cluster for it.",
    ),
    Code.ROLE_COUNTS_LATER: MessageTemplate(
        "Your role on {cluster} was given lately: nothing is approved or started by it before {at}.",
        "Ask somebody whose role counts already.",
    ),
    Code.POLICY_NEEDS_ROLE: MessageTemplate(
        "To change the policy of {cluster} you need the role {roles} on it.",
        "Ask an administrator of the cluster for it.",
    ),
    Code.NO_SUCH_CHANGE: MessageTemplate(
        "There is no change #{number} on a cluster that you may view.",
        "Look at the list of changes, or ask an administrator for the role viewer on its cluster.",
    ),
    Code.FACTS_NOT_READ: MessageTemplate(
        "The {facts} of {cluster} have not been read yet, so nobody can tell whether this fits.",
        "Wait for the first refresh; the overview of the cluster says if it fails.",
    ),
    Code.FACTS_TOO_OLD: MessageTemplate(
        "What is known about {facts} of {cluster} is {age} old, so nobody can tell whether this still fits.",
        "Wait for the next refresh.",
    ),
    Code.CHECKS_NOT_MADE: MessageTemplate(
        "{doing} needs checks on data younger than {limit}; it was not checked yet.", "Wait for the next refresh."
    ),
    Code.CHECKS_TOO_OLD: MessageTemplate(
        "{doing} needs checks on data younger than {limit}; the last are on data {age} old.",
        "Wait for the next refresh; the overview of the cluster says if it fails.",
    ),
    # Starting, steering and ending a run
    Code.START_KEY_TOO_LONG: MessageTemplate(
        "The key of a start has at most {most} characters.", "Start it from its page."
    ),
    Code.RESUME_REASON: MessageTemplate("", "Say why it may go on: whoever paused it has to know."),
    Code.CANCEL_REASON: MessageTemplate("", "Say why it is cancelled: it stands in its report."),
    # Work that a worker does for a page or a command
    Code.CHANGE_KIND_UNKNOWN: MessageTemplate(
        "This version of kafkadash knows no kind of change called {name!r}.", "Use the version that made it."
    ),
}
