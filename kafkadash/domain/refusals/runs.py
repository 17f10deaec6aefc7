"""Starting, steering and ending a run"""

from kafkadash.domain.refusals.entry import Entry

_LOOK = "Look at it again."

START_KEY_TOO_LONG = Entry(
    "start-key-too-long", "The key of a start has at most {most} characters.", "Start it from its page."
)
RESUME_REASON = Entry("resume-reason", "", "Say why it may go on: whoever paused it has to know.")
CANCEL_REASON = Entry("cancel-reason", "", "Say why it is cancelled: it stands in its report.")
GIVE_UP_REASON = Entry("give-up-reason", "", "Say why it is given up: it stands in its report.")
GIVE_UP_ONLY_CANCELLED = Entry(
    "give-up-only-cancelled",
    "{name} is {state}: only a run that is being cancelled is given up.",
    "Cancel it first, or look at how it stands on its page.",
)
GIVE_UP_TOO_EARLY = Entry(
    "give-up-too-early",
    "{cluster} may still answer, and then the cancel ends by itself.",
    "A run may be given up when its cluster has not answered for {wait}, and {times} in a row.",
)
FLIGHT_STAYS = Entry(
    "flight-stays",
    "{moves} in flight, with an end that nobody knows: Kafka may go on with {them}.",
    "Cancel what still moves with Kafka's own tool, if it is to end.",
)
WAITING_STAYS = Entry("waiting-stays", "{moves}, never to begin.", "A new plan is needed for what should still move.")
OBLIGATIONS_STAY = Entry(
    "obligations-stay",
    "",
    "{throttles} as obligations of this run: cleared by kafkadash as soon as the cluster answers again and nothing of "
    "the run is in flight.",
)
NOTHING_STAYS = Entry("nothing-stays", "Nothing that is known of.", "Its report says how each row ended.")
ORDER_REASON = Entry("order-reason", "", "Say why: it stands in the audit and in the report of the run.")

RATE_MISSING = Entry("rate-missing", "", "Give a number of MB/s, for example 60.")
RATE_NEGATIVE = Entry("rate-negative", "", "A throttle is above 0: give a number of MB/s, for example 60.")
RATE_NO_NUMBER = Entry(
    "rate-no-number",
    "“{typed}” is not a number.",
    "Give MB/s with a point for decimals, for example 60 or 2.5.",
)
RATE_ZERO = Entry(
    "rate-zero",
    "With a throttle of 0 nothing would ever arrive.",
    "Give a number of MB/s above 0, for example 60.",
)
RATE_TOO_LARGE = Entry(
    "rate-too-large",
    "That is more than {most:,} MB/s, which no broker reaches.",
    "Give MB/s, not bytes per second.",
)
RATE_NOT_APPROVED = Entry(
    "rate-not-approved",
    "{name} may run between {least} and {most} MB/s, as it was approved.",
    "{wanted} needs a new approval: cancel the run and propose what is left with other limits.",
)
RATE_CHANGED = Entry("rate-changed", "The throttle is {now} MB/s now, another one than you saw.", _LOOK)
RATE_CHANGED_BY = Entry("rate-changed-by", "{who} set the throttle to {now} MB/s on {at}, while you read.", _LOOK)
RATE_SLOW = Entry("rate-slow", "{wanted} is less than 1 MB/s.", "Is that what you mean?")
RATE_BELOW_INBOUND = Entry(
    "rate-below-inbound",
    "{wanted} is not above {inbound}. {whence} At that rate the run could never finish.",
    "Set it all the same?",
)
RATE_INBOUND_UNKNOWN = Entry(
    "rate-inbound-unknown",
    "{whence} So nobody can tell whether copies still get on at {wanted}.",
    "Lower it all the same?",
)
MOVES_NO_NUMBER = Entry("moves-no-number", "", "Give a whole number of moves {where}, for example 5.")
MOVES_TOO_FEW = Entry(
    "moves-too-few",
    "",
    "At least one move at once {where}. To submit nothing more, pause the run.",
)
MOVES_NOT_APPROVED = Entry(
    "moves-not-approved",
    "{name} may have up to {most} at once {where}, as it was approved.",
    "More than that needs a new approval: cancel the run and propose what is left with other limits.",
)
LIMITS_CHANGED = Entry("limits-changed", "{name} changed while you read it.", _LOOK)
ENDED_MEANWHILE = Entry("ended-meanwhile", "{name} ended while you read it: nothing of it is under way.", _LOOK)
LIMITS_MATTER_NO_MORE = Entry(
    "limits-matter-no-more", "{name} is {state}: its limits matter no more.", "Look at how it ends on its page."
)
NOTHING_UNDER_WAY = Entry(
    "nothing-under-way", "{name} is {state}: nothing of it is under way.", "Look at how it stands on its page."
)
CANCELLED_AS_A_WHOLE = Entry(
    "cancelled-as-a-whole",
    "{name} is being cancelled as a whole, and its rows with it.",
    "Wait until it has ended; a row that asks can be given up.",
)
NO_RUN = Entry("no-run", "#{number} has no run: it was not started.", "Start it from its page.")
NO_SUCH_DEED = Entry("no-such-deed", "“{deed}” is nothing that can be done here.", "Look at the page again.")
NO_SUCH_ROW = Entry("no-such-row", "{row} is not moved by {name}.", "Choose a row from the page of the run.")
NO_SUCH_ROW_TO_REPLAN = Entry(
    "no-such-row-to-replan",
    "#{number} moves no such partition: there is nothing to plan anew.",
    "Choose a row from the page of the run.",
)
NO_SUCH_PARTITION = Entry(
    "no-such-partition", "Change #{number} does not move such a partition.", "Choose a row from the page of its run."
)
ROW_HAS_ENDED = Entry(
    "row-has-ended", "{row} has ended: {state}. There is nothing to cancel.", "A rollback takes back what is done."
)
ROW_BEING_CANCELLED = Entry(
    "row-being-cancelled", "{row} is being cancelled already.", "Wait until the run shows it as cancelled."
)
ROW_DOES_NOT_ASK = Entry("row-does-not-ask", "{row} does not ask for anything now: it is {state}.", _LOOK)
NOTHING_IS_SUBMITTED = Entry("nothing-is-submitted", "{name} is {state}: nothing is submitted.", "Resume it first.")
NO_FOREIGN_THROTTLE = Entry(
    "no-foreign-throttle", "There is no throttle of others on {entity} now that differs from ours.", _LOOK
)
RUN_NOT_ENDED = Entry(
    "run-not-ended",
    "#{number} is {state}: there is nothing to take back before its run has ended.",
    "Wait until it has ended, or cancel it.",
)
MOVED_NOTHING = Entry(
    "moved-nothing",
    "#{number} moved nothing, or its rows are not kept any more: there is nothing to take back.",
    "Plan a change of its own for what should lie elsewhere.",
)
NOT_READ_SINCE = Entry(
    "not-read-since", "{cluster} was not read again since that run ended.", "Wait for the next refresh."
)
NO_REPORT = Entry(
    "no-report",
    "Change #{number} has no report: its run has not ended.",
    "Follow the run on its page; the report is there when it has ended.",
)
NOTHING_TO_REPLAN = Entry(
    "nothing-to-replan", "{row} is {state}: there is nothing to plan anew.", "Look at the row again."
)
NO_OTHER_BROKER = Entry(
    "no-other-broker",
    "There is no other broker that takes replicas to put in the place of {lost}.",
    "Bring a broker back or add one, then plan it anew.",
)
