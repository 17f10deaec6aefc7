"""Why no plan was made"""

from kafkadash.domain.refusals.entry import Entry

REPORT = "Nothing of it was stored; report it with what was asked for."
"""What to do about a plan with a fault of its own, whatever it is."""

DELETED_BEFORE = Entry(
    "deleted-before", "#{number} was deleted before it was planned.", "Begin it anew if it is still wanted."
)
EDITED_BEFORE = Entry("edited-before", "#{number} was edited by {who} before it was planned.", "Make the plan again.")
CLUSTER_NOT_REGISTERED = Entry(
    "cluster-not-registered", "Its cluster is not registered any more.", "Register it again, then make the plan."
)
JSON_NOT_STORED = Entry(
    "json-not-stored", "The JSON of this assignment is not stored any more.", "Bring it again under What."
)
NOTHING_TAKEN_BACK = Entry(
    "nothing-taken-back",
    "Nothing of #{number} can be taken back.{why}",
    "Plan a change of its own for what should lie elsewhere.",
)
NO_ACCOUNT = Entry("no-account", "Whoever asked for the new plan has no account any more.", "Ask for it again.")
PLANNER_KILLED = Entry(
    "planner-killed",
    "The planning process was ended by the system ({signal}), mostly for lack of memory.",
    "Plan fewer brokers or topics at once, or give the worker more memory.",
)
PLANNER_FAILED = Entry(
    "planner-failed",
    "The planning process ended with a fault of its own (exit code {code}).",
    "The log of the worker has the details; report them.",
)
PLANNER_OUT_OF_TIME = Entry(
    "planner-out-of-time",
    "Planning this takes longer than {seconds} s, the limit for one plan.",
    "Split it into smaller changes, or raise the limit.",
)
PLANNER_OUT_OF_MEMORY = Entry(
    "planner-out-of-memory",
    "Planning this needs more than {most:.1f} GB of memory, the limit for one plan.",
    "Split it into smaller changes, or raise the limit.",
)
CHECKER_DISAGREES = Entry(
    "checker-disagrees",
    "The plan does not keep the rule “{rule}”: {problem}",
    REPORT,
)
