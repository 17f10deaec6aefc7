"""Texts of the codes of this app: errors, risk points (``changes.risk``) and states (``changes.state_machine``)."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.changes.errors import ChangeErrorCode, RightsCode, RightsTitle, StepCheckTitle
from kafkadash.changes.risk import RiskCode
from kafkadash.changes.state_machine import WorkflowErrorCode
from kafkadash.core.messages import MessageTemplate, Writer

_NEW_PLAN = "Create a new plan."
_ASK_ADMINISTRATOR = "Ask a cluster administrator for the role."
_COPY = "Copy it as a new draft."
_REVIEW = "Review its current state."

CHANGE_MESSAGES: Mapping[ChangeErrorCode, MessageTemplate] = {
    # Drafts, plans and what people write
    ChangeErrorCode.TEXT_TOO_LONG: MessageTemplate(
        "{what} has {length:,} characters; the limit is {most:,}.", "Shorten it."
    ),
    ChangeErrorCode.TITLE_TOO_LONG: MessageTemplate(
        "The title has {length} characters; the limit is {most}.", "Shorten it."
    ),
    ChangeErrorCode.TYPED_TOO_LONG: MessageTemplate(
        "This text has {length:,} characters; the limit is {most:,}.", "Shorten it, or link to a longer text."
    ),
    ChangeErrorCode.WINDOW_TURNED_ROUND: MessageTemplate(
        "The window ends before it starts.", "Set an end after the start."
    ),
    ChangeErrorCode.NO_TIME: MessageTemplate("{written} is not a valid time.", "Use the format 2026-11-24T22:00:00Z."),
    ChangeErrorCode.WHY_MISSING: MessageTemplate("", "Enter a reason; approvers need it to decide."),
    ChangeErrorCode.COMMENT_MISSING: MessageTemplate("", "Enter a comment."),
    ChangeErrorCode.PLAN_UNDER_WAY: MessageTemplate(
        "#{number} is still being planned.", "Submit it when the plan is ready."
    ),
    ChangeErrorCode.PLAN_EMPTY: MessageTemplate(
        "The plan of #{number} is empty, so there is nothing to approve.", "Edit the draft, or delete it."
    ),
    ChangeErrorCode.PLANNED_ANEW: MessageTemplate(
        "#{number} was planned again while you had it open.", "Review the new plan, then submit."
    ),
    ChangeErrorCode.PLAN_NO_LONGER_FITS: MessageTemplate(
        "The plan no longer fits the cluster: {first:cause}",
        _NEW_PLAN,
        many="The plan no longer fits the cluster for this and {others:# other reason|# other reasons}: {first:cause}",
        by="total",
    ),
    ChangeErrorCode.PLAN_NEVER_STARTS: MessageTemplate(
        "This plan can never start: {first:cause}",
        "{first:advice}",
        many="This plan can never start, for this and {others:# other reason|# other reasons}: {first:cause}",
        by="total",
    ),
    ChangeErrorCode.PLAN_NOT_CHECKED: MessageTemplate(
        "The plan cannot be checked against the cluster yet. Unknown: {checks:names}.",
        "Wait for the next refresh. The cluster overview shows failed reads.",
    ),
    ChangeErrorCode.NO_DRAFT_ANY_MORE: MessageTemplate("#{number} is no longer a draft.", "{now}"),
    ChangeErrorCode.SAVED_IN_ANOTHER_WINDOW: MessageTemplate(
        "You saved #{number} in another window{at}.", "Your input here is not saved. Open the draft again."
    ),
    ChangeErrorCode.EDITED_MEANWHILE: MessageTemplate(
        "{who} edited #{number}{at}, while you had it open. Your input is not saved yet, to keep {who}'s edit.",
        "Review the saved draft, then enter your changes again where they still fit.",
    ),
    ChangeErrorCode.PLAN_DROPPED: MessageTemplate(
        "#{number} is no longer a draft, so the new plan was discarded.", "{now}"
    ),
    ChangeErrorCode.EDITED_WHILE_PLANNED: MessageTemplate(
        "{who} edited #{number} during planning, so the plan was discarded.", "Plan again."
    ),
    ChangeErrorCode.NEW_PLAN_DROPPED: MessageTemplate("The new plan of #{number} was discarded.", "{now}"),
    ChangeErrorCode.NOTHING_LEFT: MessageTemplate(
        "Nothing is left to do: the cluster already matches #{number}.", "Withdraw it, or let it expire."
    ),
    ChangeErrorCode.NEW_PLAN_UNDER_WAY: MessageTemplate(
        "A new plan is already being created.", "It appears here when it is ready."
    ),
    ChangeErrorCode.ONLY_A_DRAFT_IS_DELETED: MessageTemplate("Only drafts can be deleted.", "{now}"),
    ChangeErrorCode.KEPT_ONCE_PROPOSED: MessageTemplate(
        "#{number} was submitted before, so its reviews and comments are kept.", "Leave it as a draft."
    ),
    ChangeErrorCode.DELETED_MEANWHILE: MessageTemplate(
        "#{number} was deleted while you had it open.", "Propose it again if it is still needed."
    ),
    ChangeErrorCode.CHANGED_MEANWHILE: MessageTemplate(
        "#{number} changed while you had it open.", "Check its current state."
    ),
    ChangeErrorCode.POLICY_APPROVALS: MessageTemplate("", "Enter a number from 1 to {most}."),
    ChangeErrorCode.POLICY_ORDER: MessageTemplate(
        "A higher risk cannot need fewer approvals than a lower one.", "Raise this number, or lower the one before it."
    ),
    ChangeErrorCode.POLICY_HOURS: MessageTemplate("", "Enter a number of hours from 1 to {most} ({days} days)."),
    ChangeErrorCode.POLICY_NO_NUMBER: MessageTemplate("", "Enter a whole number."),
    ChangeErrorCode.LOOSENING_WAITS: MessageTemplate(
        "{who} has already requested a less strict policy for {cluster}.", "Confirm or discard that request first."
    ),
    ChangeErrorCode.LOOSENING_NEEDS_ANOTHER: MessageTemplate(
        "You requested this less strict policy, or the requester gave you the role admin, so you cannot confirm it.",
        "Ask another administrator, or run manage.py policy {cluster} on the server.",
    ),
    ChangeErrorCode.LOOSENING_CHANGED: MessageTemplate(
        "The requested policy of {cluster} was discarded, replaced or applied.", "Check the current policy."
    ),
    ChangeErrorCode.POLICY_REASON: MessageTemplate("", "Enter a reason; the audit log shows it."),
    # Checks of a reassignment before it runs
    ChangeErrorCode.NOT_TRUE_ANY_MORE: MessageTemplate("No longer true: {check}.", _NEW_PLAN),
    ChangeErrorCode.MORE_REASONS: MessageTemplate("And {more:,} more.", _NEW_PLAN),
    ChangeErrorCode.APPROVER_LEFT: MessageTemplate(
        "{name} approved this change, but may no longer approve changes of {cluster}.",
        "Create a new plan and have it approved.",
    ),
    ChangeErrorCode.CONTENT_ALTERED: MessageTemplate(
        "The stored plan or options of {name} do not match its digest: they were altered in the database.",
        "Find out who wrote to the database. Then create a new plan and have it approved.",
    ),
    # Verifications, plans and reassignments that are not there
    ChangeErrorCode.PLANNING_STOPPED: MessageTemplate("Planning was stopped.", "Request the plan again."),
    # The life of a change: submitting, approving, declining, starting
    ChangeErrorCode.DECLINE_REASON_TYPED: MessageTemplate(
        "", "Enter a reason to decline: name the changes that you need before you approve."
    ),
    ChangeErrorCode.WITHDRAW_REASON: MessageTemplate("", "Enter a reason to withdraw; reviewers read it."),
    ChangeErrorCode.ROLE_FROM_AUTHOR: MessageTemplate(
        "An author or editor of {name} gave you your role, so your approval does not count.",
        "Ask another approver, or have another administrator give you the role.",
    ),
    ChangeErrorCode.STILL_A_DRAFT: MessageTemplate(
        "This change is a draft of {author}.", "You can decide on it after it is submitted."
    ),
    ChangeErrorCode.STALE_FIRST: MessageTemplate(
        "The plan no longer fits the cluster, so there is nothing to decide.",
        "Users who may propose changes can refresh the plan.",
    ),
    ChangeErrorCode.WAITS_FOR_START: MessageTemplate(
        "This change is approved, but not started.", "Ask a user with the role {roles} on {cluster} to start it."
    ),
    ChangeErrorCode.DECIDED: MessageTemplate(
        "This change needs no further decision.", "Its run and its audit trail show its progress."
    ),
    ChangeErrorCode.DECIDING_NEEDS_ROLE: MessageTemplate(
        "Approving or declining needs the role {roles} on {cluster}.",
        "Ask a cluster administrator for the role, or ask an approver to decide.",
    ),
    ChangeErrorCode.TOO_FEW_APPROVERS: MessageTemplate(
        "This change needs {needed:# approval|# approvals}, but {who}.",
        "Ask an administrator of {cluster} to add an approver.",
    ),
    ChangeErrorCode.DECIDING_OWN: MessageTemplate(
        "You wrote, edited or refreshed this change, so you cannot decide on it.", "Ask another approver."
    ),
    # Rights, and facts that are too old
    ChangeErrorCode.CLUSTER_REMOVED: MessageTemplate(
        "{cluster} was removed from kafkadash.", "Add the cluster again first."
    ),
    ChangeErrorCode.ITS_CLUSTER_REMOVED: MessageTemplate(
        "The cluster of this change was removed from kafkadash.", "Add the cluster again, then propose the change."
    ),
    ChangeErrorCode.NEEDS_ROLE_NOW: MessageTemplate(
        "{doing} on {cluster}, you need the role {roles}.", _ASK_ADMINISTRATOR
    ),
    ChangeErrorCode.ROLE_COUNTS_LATER: MessageTemplate(
        "Your role on {cluster} is new: it cannot approve or start changes before {at}.",
        "Ask a user whose role is already in force.",
    ),
    ChangeErrorCode.POLICY_NEEDS_ROLE: MessageTemplate(
        "Changing the policy of {cluster} needs the role {roles}.", _ASK_ADMINISTRATOR
    ),
    ChangeErrorCode.NO_SUCH_CHANGE: MessageTemplate(
        "There is no change #{number} on the clusters that you may view.",
        "Check the list of changes, or ask an administrator for the role viewer on its cluster.",
    ),
    ChangeErrorCode.FACTS_NOT_READ: MessageTemplate(
        "The {facts} of {cluster} have not been read yet, so the plan cannot be checked.",
        "Wait for the first refresh. If it fails, see the cluster overview.",
    ),
    ChangeErrorCode.FACTS_TOO_OLD: MessageTemplate(
        "The data about {facts} of {cluster} is {age} old, too old to check the plan.", "Wait for the next refresh."
    ),
    ChangeErrorCode.CHECKS_NOT_MADE: MessageTemplate(
        "{doing} needs checks on data younger than {limit}; no check has run yet.", "Wait for the next refresh."
    ),
    ChangeErrorCode.CHECKS_TOO_OLD: MessageTemplate(
        "{doing} needs checks on data younger than {limit}; the last checks used data {age} old.",
        "Wait for the next refresh. If it fails, see the cluster overview.",
    ),
    # Starting, steering and ending a run
    ChangeErrorCode.START_KEY_TOO_LONG: MessageTemplate(
        "The start key is longer than {most} characters.", "Start the change from its page."
    ),
    ChangeErrorCode.RESUME_REASON: MessageTemplate("", "Enter a reason to resume; the user who paused reads it."),
    ChangeErrorCode.CANCEL_REASON: MessageTemplate("", "Enter a reason to cancel; the report shows it."),
    # Changes of several steps
    ChangeErrorCode.STEP_IS_OPEN: MessageTemplate(
        "Step {step}, #{number}, has to be done first.", "Open step {step} to see where it is."
    ),
    ChangeErrorCode.STEP_NOT_DONE: MessageTemplate(
        "Step {step}, #{number}, is {state}, so this step does not run.",
        "Create a new plan if this step is still needed.",
    ),
    ChangeErrorCode.OTHER_STEPS: MessageTemplate(
        "The steps of #{number} changed while you had the page open; none was approved.", _REVIEW
    ),
    ChangeErrorCode.STEPS_WERE_PROPOSED: MessageTemplate(
        "#{number} is a step of a change that was proposed.", "Withdraw the other steps instead."
    ),
    # Work that a worker does for a page or a command
    ChangeErrorCode.CHANGE_KIND_UNKNOWN: MessageTemplate(
        "This version of kafkadash does not support the change kind {name!r}.", "Use the version that created it."
    ),
}


_GRANT = "Grant it, then run manage.py collect with --kind versions: {line}"

CHECK_TITLES: Mapping[RightsTitle | StepCheckTitle, MessageTemplate] = {
    RightsTitle.GRANTED: MessageTemplate("Kafka grants what the change needs"),
    StepCheckTitle.STEPS_BEFORE: MessageTemplate("No step before this one is open"),
}

RIGHTS_MESSAGES: Mapping[RightsCode, MessageTemplate] = {
    RightsCode.MISSING_ON_CLUSTER: MessageTemplate("kafkadash lacks {operation} on the cluster.", _GRANT),
    RightsCode.MISSING_ON_TOPICS: MessageTemplate(
        "kafkadash lacks {operation} on {topic}.",
        _GRANT,
        many="kafkadash lacks {operation} on {topics:# topic|# topics}, {topic} among them.",
        by="topics",
    ),
    RightsCode.MISSING_ON_GROUPS: MessageTemplate(
        "kafkadash lacks {operation} on the group {group}.",
        _GRANT,
        many="kafkadash lacks {operation} on {groups:# group|# groups}, {group} among them.",
        by="groups",
    ),
    RightsCode.MAYBE_ON_TOPICS: MessageTemplate(
        "kafkadash lacks {operation} on the cluster; whether it has it on the new topics is not known.",
        "The run tells where Kafka refuses it.",
    ),
    RightsCode.TOPICS_UNREAD: MessageTemplate(
        "Rights on {topic} are not known.",
        "kafkadash reads them every 10 minutes, where it may describe the topic.",
        many="Rights on {topics:# topic|# topics} are not known, {topic} among them.",
        by="topics",
    ),
    RightsCode.GROUPS_UNREAD: MessageTemplate(
        "Rights on the group {group} are not known.",
        "kafkadash reads them every 10 minutes, where it may describe the group.",
        many="Rights on {groups:# group|# groups} are not known, {group} among them.",
        by="groups",
    ),
    RightsCode.OLD: MessageTemplate(
        "The rights of kafkadash were last read {age:duration} ago.",
        "Read them again with manage.py collect {cluster} --kind versions.",
    ),
    RightsCode.UNREAD: MessageTemplate(
        "Kafka does not tell which rights kafkadash has.",
        "Test the connection. Describe on the cluster is needed, and Kafka 2.8 or newer.",
    ),
}

RISK_MESSAGES: Mapping[RiskCode, MessageTemplate] = {
    RiskCode.BYTES: MessageTemplate("moves {share:percent} of the bytes"),
    RiskCode.BYTES_UNKNOWN: MessageTemplate("bytes to move unknown"),
    RiskCode.PARTITIONS: MessageTemplate("changes {share:percent} of the partitions"),
    RiskCode.PARTITIONS_UNKNOWN: MessageTemplate("share of changed partitions unknown"),
    RiskCode.FEWER_REPLICAS: MessageTemplate("fewer replicas for {partitions:# partition|# partitions}"),
    RiskCode.INTERNAL_TOPICS: MessageTemplate("changes {topics:# internal topic|# internal topics}"),
    RiskCode.SPREAD_WORSE: MessageTemplate("worse rack spread for {partitions:# partition|# partitions}"),
    RiskCode.SPREAD_UNKNOWN: MessageTemplate("effect on rack spread unknown"),
    RiskCode.TOPICS_DELETED: MessageTemplate("deletes the records of {topics:# topic|# topics} for good"),
    RiskCode.RECORDS_LOST: MessageTemplate("loses records of {partitions:# partition|# partitions} for good"),
    RiskCode.OFFSETS_RESET: MessageTemplate(
        "consumers skip or read again records of {partitions:# partition|# partitions}"
    ),
    RiskCode.OFFSETS_DELETED: MessageTemplate(
        "deletes the committed offsets of {partitions:# partition|# partitions} for good"
    ),
    RiskCode.RECORDS_AT_RISK: MessageTemplate("lets Kafka delete or lose records by {configs:# config|# configs}"),
    RiskCode.BROKERS_UNREGISTERED: MessageTemplate("unregisters {brokers:# stopped broker|# stopped brokers}"),
    RiskCode.FEW_BROKERS_LEFT: MessageTemplate(
        "leaves {brokers:# broker|# brokers} too few to place topics with the highest replication factor"
    ),
    RiskCode.RACKS_ON_ONE_BROKER: MessageTemplate(
        "{racks:rack|racks} {racks:names} {racks:has|have} a single broker left"
    ),
}


def _format_percent(share: float) -> str:
    percent = round(100 * min(1.0, max(0.0, share)))
    return f"{percent} %" if percent else "less than 1 %"


RISK_WRITERS: Mapping[str, Writer] = {"percent": _format_percent}


WORKFLOW_MESSAGES: Mapping[WorkflowErrorCode, MessageTemplate] = {
    # Drafts, plans and what people write
    WorkflowErrorCode.PLAN_MISSING: MessageTemplate("#{number} has no plan yet.", "Create the plan, then submit it."),
    # The life of a change: submitting, approving, declining, starting
    WorkflowErrorCode.WRONG_ROLE: MessageTemplate("This action needs the role {roles}.", _ASK_ADMINISTRATOR),
    WorkflowErrorCode.WINDOW_OVER: MessageTemplate(
        "The window of {name} is over.", "Choose another window, then submit."
    ),
    WorkflowErrorCode.WINDOW_TOO_FAR: MessageTemplate(
        "Approvals on this cluster are valid for {hours:# hour|# hours}, but the window starts later.",
        "Submit closer to the window, or have the policy changed.",
    ),
    WorkflowErrorCode.NO_NEW_PLAN: MessageTemplate("{name} has no new plan.", "Refresh the plan again."),
    WorkflowErrorCode.NOT_A_PERSON: MessageTemplate(
        "Only a person can approve a change.", "Sign in and approve it on its page."
    ),
    WorkflowErrorCode.OWN_HANDS: MessageTemplate(
        "You wrote, edited or refreshed {name}, so another person has to approve it.", "Ask another approver."
    ),
    WorkflowErrorCode.APPROVED_ALREADY: MessageTemplate(
        "You have already approved {name}; it also needs the approval of another person.", "Ask another approver."
    ),
    WorkflowErrorCode.DECLINE_REASON: MessageTemplate(
        "", "Enter a reason to decline, so that the author knows what to change."
    ),
    WorkflowErrorCode.NOT_DUE: MessageTemplate("{name} has not expired yet.", "It expires automatically."),
    WorkflowErrorCode.GLASS_FORBIDDEN: MessageTemplate(
        "The policy of this cluster does not allow a start without approvals.",
        "Ask approvers, or have an administrator change the policy.",
    ),
    WorkflowErrorCode.GLASS_NEVER: MessageTemplate(
        "A change of this kind never starts without its {approvals} approvals.", "Ask approvers."
    ),
    WorkflowErrorCode.GLASS_REASON: MessageTemplate(
        "", "Enter why this change cannot wait for approvals; the audit log shows it."
    ),
    WorkflowErrorCode.WINDOW_NOT_BEGUN: MessageTemplate(
        "The window of {name} has not started.", "It proceeds automatically when the window starts."
    ),
    WorkflowErrorCode.TIME_OVER: MessageTemplate(
        "{name} is no longer valid: its window or its validity period is over.", _COPY
    ),
    WorkflowErrorCode.CANNOT_RUN: MessageTemplate(
        "This version of kafkadash cannot run {name}.", "Update kafkadash, then start it."
    ),
    WorkflowErrorCode.LACKS_APPROVALS: MessageTemplate(
        "{name} does not have all required approvals.", "Ask approvers for the missing ones."
    ),
    WorkflowErrorCode.OTHER_CONTENT: MessageTemplate("The content of {name} changed while you had it open.", _REVIEW),
    WorkflowErrorCode.OTHER_ROUND: MessageTemplate(
        "{name} was submitted again while you had it open; its reason may differ.", _REVIEW
    ),
    WorkflowErrorCode.FINAL: MessageTemplate("{name} is {state}, and this is final.", _COPY),
    WorkflowErrorCode.WITHDRAW_FIRST: MessageTemplate(
        "{name} is {state}.", "Withdraw it before you edit it; its approvals are void then."
    ),
    WorkflowErrorCode.NOT_NEEDED: MessageTemplate(
        "{name} already has all its approvals.", "Yours is not needed any more."
    ),
    WorkflowErrorCode.NOTHING_TO_REFRESH: MessageTemplate(
        "{name} is {state}, not stale, so it needs no new plan.", _REVIEW
    ),
    WorkflowErrorCode.NOT_FROM_HERE: MessageTemplate("{name} is {state} and cannot be {done}.", _REVIEW),
}
