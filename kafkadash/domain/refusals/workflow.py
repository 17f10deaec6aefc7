"""The life of a change: submitting, approving, declining, starting"""

from kafkadash.domain.refusals.entry import Entry

_LOOK = "Look at it again."
_COPY = "Copy it to propose it again."

WRONG_ROLE = Entry("wrong-role", "This is for the role {roles}.", "Ask an administrator of the cluster for it.")
WINDOW_OVER = Entry("window-over", "The window of {name} is over.", "Choose another one, then submit it.")
WINDOW_TOO_FAR = Entry(
    "window-too-far",
    "The window begins more than {hours} from now, and an approval is valid no longer than that on this cluster.",
    "Submit it closer to the window, or have the policy changed.",
)
NO_NEW_PLAN = Entry("no-new-plan", "{name} has no new plan.", "Ask for a new plan again.")
NOT_A_PERSON = Entry("not-a-person", "An approval is a person's.", "Sign in and approve it on its page.")
OWN_HANDS = Entry(
    "own-hands",
    "You wrote, edited or refreshed {name}, so somebody else has to approve it.",
    "Ask another approver.",
)
APPROVED_ALREADY = Entry(
    "approved-already",
    "You have approved {name} already; it takes somebody else's approval as well.",
    "Ask another approver.",
)
DECLINE_REASON = Entry("decline-reason", "", "Say why you decline it, so that the author knows what to change.")
DECLINE_REASON_TYPED = Entry(
    "decline-reason-typed", "", "Say what has to change before you would approve: declining needs a reason."
)
WITHDRAW_REASON = Entry("withdraw-reason", "", "Say why it is withdrawn: those who reviewed it read that.")
NOT_DUE = Entry("not-due", "The time of {name} is not over.", "It expires by itself when it is.")
GLASS_FORBIDDEN = Entry(
    "glass-forbidden",
    "The policy of this cluster lets nobody start a change without its approvals.",
    "Ask approvers for theirs, or an administrator to change the policy.",
)
GLASS_REASON = Entry("glass-reason", "", "Say why this cannot wait for its approvals; it is written into the audit.")
WINDOW_NOT_BEGUN = Entry(
    "window-not-begun", "The window of {name} has not begun.", "It goes on by itself when it begins."
)
TIME_OVER = Entry("time-over", "The time of {name} is over.", _COPY)
CANNOT_RUN = Entry(
    "cannot-run",
    "This version of kafkadash cannot run {name} yet.",
    "Have kafkadash updated to a version that can, then start it.",
)
LACKS_APPROVALS = Entry(
    "lacks-approvals", "{name} does not have the approvals it needs.", "Ask approvers for those that are missing."
)
OTHER_CONTENT = Entry("other-content", "{name} changed while you read it: its content is another one now.", _LOOK)
OTHER_ROUND = Entry(
    "other-round", "{name} was proposed anew while you read it: its reason may be another one now.", _LOOK
)
ROLE_FROM_AUTHOR = Entry(
    "role-from-author",
    "{name} was written or edited by whoever gave you your role, so your approval does not count for it.",
    "Ask another approver, or have another administrator give the role.",
)
FINAL = Entry("final", "{name} is {state}, and that is final.", _COPY)
WITHDRAW_FIRST = Entry("withdraw-first", "{name} is {state}.", "Withdraw it to edit it; its approvals are void then.")
NOT_NEEDED = Entry("not-needed", "{name} has all its approvals already.", "Yours is not needed any more.")
NOTHING_TO_REFRESH = Entry("nothing-to-refresh", "{name} is {state}, not stale: there is nothing to refresh.", _LOOK)
NOT_FROM_HERE = Entry("not-from-here", "{name} is {state} now, so it cannot be {done}.", _LOOK)

STILL_A_DRAFT = Entry(
    "still-a-draft",
    "There is nothing to decide yet: this is the draft of {author}.",
    "It can be decided on when it is submitted.",
)
STALE_FIRST = Entry(
    "stale-first",
    "There is nothing to decide: the plan no longer fits the cluster and has to be made anew first.",
    "Whoever may propose changes can ask for a new plan.",
)
WAITS_FOR_START = Entry(
    "waits-for-start",
    "It waits to be started, by somebody with the role {roles} on {cluster}.",
    "Ask one of them to start it.",
)
DECIDED = Entry("decided", "There is nothing left to decide.", "Its run and its audit trail say how it goes on.")
DECIDING_NEEDS_ROLE = Entry(
    "deciding-needs-role",
    "To approve or decline it, one needs the role {roles} on {cluster}.",
    "Ask an administrator of the cluster for it, or somebody who has it to decide.",
)
TOO_FEW_APPROVERS = Entry(
    "too-few-approvers",
    "It needs {needed}, and {who}: so it cannot be approved.",
    "Ask an administrator of {cluster} to make somebody else an approver.",
)
DECIDING_OWN = Entry(
    "deciding-own",
    "You wrote, edited or refreshed what is proposed, so somebody else decides about it.",
    "Ask another approver.",
)
