"""Drafts, plans and what people write"""

from kafkadash.domain.refusals.entry import Entry

TEXT_TOO_LONG = Entry("text-too-long", "{what} has {length:,} characters; {most:,} is the most.", "Shorten it.")
TITLE_TOO_LONG = Entry("title-too-long", "The title has {length} characters; {most} is the most.", "Shorten it.")
TYPED_TOO_LONG = Entry(
    "typed-too-long",
    "This has {length:,} characters; {most:,} is the most.",
    "What is longer belongs behind a link.",
)
WINDOW_TURNED_ROUND = Entry(
    "window-turned-round", "The window ends before it begins.", "Give an end that is after the beginning."
)
NO_TIME = Entry("no-time", "{written} is no time.", "Write it as 2026-11-24T22:00:00Z.")
WHY_MISSING = Entry("why-missing", "", "Say why this is to be done: whoever approves it has to know.")
COMMENT_MISSING = Entry("comment-missing", "", "There is nothing in it yet: write what you want to say.")
PLAN_UNDER_WAY = Entry(
    "plan-under-way", "The plan of #{number} is still being made.", "Submit it when the plan is there."
)
PLAN_MISSING = Entry("plan-missing", "#{number} has no plan yet.", "Make the plan first, then submit it.")
PLAN_EMPTY = Entry(
    "plan-empty",
    "The plan of #{number} is empty: there is nothing to do, so there is nothing to approve.",
    "Delete the draft, or edit what it asks for.",
)
PLANNED_ANEW = Entry(
    "planned-anew", "#{number} was planned anew while you had it open.", "Look at the plan again, then submit it."
)
PLAN_NO_LONGER_FITS = Entry(
    "plan-no-longer-fits", "The plan no longer fits the cluster: {first}{more}", "Make the plan again."
)
PLAN_NEVER_STARTS = Entry("plan-never-starts", "This plan could never start: {first}{more}", "{then}")
PLAN_NOT_CHECKED = Entry(
    "plan-not-checked",
    "This could not be checked, so nobody can tell whether the plan fits: {checks}.",
    "Wait for the next refresh; the overview of the cluster says what could not be read.",
)
NO_DRAFT_ANY_MORE = Entry("no-draft-any-more", "#{number} is no draft any more.", "{now}")
SAVED_IN_ANOTHER_WINDOW = Entry(
    "saved-in-another-window",
    "You saved #{number} in another window{at}.",
    "What you entered here is not stored: open it again.",
)
EDITED_MEANWHILE = Entry(
    "edited-meanwhile",
    "{who} edited #{number}{at}, while you had it open. What you entered is not stored yet, so that {who}'s edit is "
    "not lost.",
    "Look at what is stored now, then enter yours again where it still fits.",
)
PLAN_DROPPED = Entry("plan-dropped", "#{number} is no draft any more, so the plan was dropped.", "{now}")
EDITED_WHILE_PLANNED = Entry(
    "edited-while-planned",
    "#{number} was edited by {who} while it was planned, so the plan was dropped.",
    "Make the plan again.",
)
NEW_PLAN_DROPPED = Entry("new-plan-dropped", "The new plan of #{number} was dropped.", "{now}")
NOTHING_LEFT = Entry(
    "nothing-left",
    "There is nothing left to do: the cluster is by now as #{number} wants it.",
    "Withdraw it, or let it expire.",
)
NEW_PLAN_UNDER_WAY = Entry(
    "new-plan-under-way", "A new plan is being made already.", "It is shown here as soon as it is done."
)
ONLY_A_DRAFT_IS_DELETED = Entry("only-a-draft-is-deleted", "Only a draft can be deleted.", "{now}")
KEPT_ONCE_PROPOSED = Entry(
    "kept-once-proposed",
    "#{number} was proposed once, so what was said about it is kept.",
    "Leave it as a draft.",
)
DELETED_MEANWHILE = Entry(
    "deleted-meanwhile", "#{number} was deleted while you read it.", "Propose it anew if it is still needed."
)
CHANGED_MEANWHILE = Entry("changed-meanwhile", "#{number} changed while you read it.", "Look at it again.")
POLICY_APPROVALS = Entry(
    "policy-approvals",
    "",
    "Between 1 and {most} approvals: without one, nobody else has looked at it.",
)
POLICY_ORDER = Entry(
    "policy-order",
    "A higher risk cannot need fewer approvals than a lower one.",
    "Raise this number, or lower the one before it.",
)
POLICY_HOURS = Entry(
    "policy-hours",
    "",
    "Between 1 and {most} hours ({days} days): give a number of them.",
)
POLICY_NO_NUMBER = Entry("policy-no-number", "", "Give a whole number.")
LOOSENING_WAITS = Entry(
    "loosening-waits",
    "{who} asked for a looser policy of {cluster} already, and that waits.",
    "Confirm it or drop it first.",
)
LOOSENING_NEEDS_ANOTHER = Entry(
    "loosening-needs-another",
    "Whoever asked for a looser policy, or has the role admin from them, cannot confirm it.",
    "Ask another administrator, or set it on the server: manage.py policy {cluster}",
)
LOOSENING_CHANGED = Entry(
    "loosening-changed", "What waited for {cluster} was dropped, replaced or came into force.", "Look at it again."
)
POLICY_REASON = Entry("policy-reason", "", "Say why: others rely on this rule, and read the reason in the audit.")
