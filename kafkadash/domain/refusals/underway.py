"""What the page of a run says of what fails on its way"""

from kafkadash.domain.refusals.entry import Entry

_GOES_ON = "What Kafka has in flight goes on by itself; nothing new is submitted."

CLUSTER_UNREAD = Entry(
    "cluster-unread",
    "The cluster could not be read{again}: {error}",
    "Nothing is submitted until it answers.",
)
NOT_READ_YET = Entry("not-read-yet", "It was not read for this run yet.", "Nothing is submitted until it answers.")
NEVER_LOOKED = Entry("never-looked", "The cluster was not read for this run yet.", "Is a worker for runs at work?")
SHOWN_IS_OLD = Entry("shown-is-old", "What is shown is {age} old.", _GOES_ON)
NOBODY_READS = Entry(
    "nobody-reads",
    "It should be read every {interval:g} s, and nobody does.",
    "See whether a worker for runs is at work.",
)
CANCEL_CANNOT_END = Entry(
    "cancel-cannot-end",
    "The cancel cannot end, and until it does no other run begins here.",
    "An administrator may give it up.",
)
BROKERS_DOWN = Entry(
    "brokers-down",
    "{brokers} {down} ({since}).",
    "{moves} that did not end yet {have} a replica there. A copy to a broker that is down goes on when it is back.",
)
READ_ONLY_NOW = Entry(
    "read-only-now",
    "{cluster} is read-only now: nothing more is submitted.",
    "What is in flight {going}. The throttles that this run set there are still taken away.",
)
PAUSED_AT_ITS_END = Entry(
    "paused-at-its-end", "It is paused, and every move has ended.", "Resume it: it is verified and ends."
)
WINDOW_RAN_OUT = Entry(
    "window-ran-out",
    "Its window is over, and {moves} did not begin.",
    "They never will. Cancel the run to end it; what is done stays done.",
)
ROWS_ASK = Entry(
    "rows-ask",
    "{moves} {ask} for an answer.",
    "What was sent left no trace in the cluster: submit again, or give up.",
)
BLOCKED = Entry(
    "blocked",
    "Blocked{since}: {why}",
    "It stays queued and approved, and is tried again by itself{until}. Changes of other partitions do not wait for "
    "it. Nothing was sent to Kafka.",
)
NOT_OURS_TO_CANCEL = Entry(
    "not-ours-to-cancel",
    "Somebody else gave it the target {target}.",
    "That is not ours to cancel: the row ends as superseded and is left as it is.",
)
CANCEL_LEAVES_OTHERS = Entry(
    "cancel-leaves-others",
    "A cancel leaves {there}, another set than the original {original}: somebody changed it while it moved.",
    "{original} is restored by a second request, and then verified.",
)
OUTCOME_NOT_TOLD = Entry(
    "outcome-not-told", "Kafka's answer does not tell what became of it.", "It is read again, and settled then."
)
BROKER_OF_THROTTLE_AWAY = Entry(
    "broker-of-throttle-away", "Broker {broker} is away.", "Its throttles are read again when it is back."
)
CONFIG_UNREAD = Entry("config-unread", "{resource} could not be read.", "It is tried again in the next step.")
RUN_STILL_HERE = Entry(
    "run-still-here",
    "#{number} is under way here.",
    "Cancel it first, so that it takes its throttles away: a cluster that is removed is never asked again.",
)
RUN_CANNOT_BE_STOPPED = Entry(
    "run-cannot-be-stopped",
    "#{number} is under way, and nobody can stop it: what moves goes on in Kafka.",
    "Cancel what still moves with Kafka's own tool.",
)
THROTTLES_STAY = Entry(
    "throttles-stay", "", "{throttles} of #{number}: whoever needs it gone has to remove it by hand."
)
NOT_ALL_AS_PLANNED = Entry(
    "not-all-as-planned",
    "Some rows did not end as planned.",
    "The report names each with its reason.",
)
THROTTLES_OWED = Entry(
    "throttles-owed",
    "Every row is as planned. Something of our throttles could not be taken away yet.",
    "That is tried again.",
)
RUN_FAILED = Entry("run-failed", "What was done by then stays done.", "The report names every row.")
END_NOT_KNOWN = Entry(
    "end-not-known", "How it ended was not written down.", "The audit has what was done, and the rows how they ended."
)
OURS_REMOVED = Entry(
    "ours-removed", "Our throttles were removed by somebody else: {places}.", "They are set again by the next steps."
)
OTHER_RATE_SET = Entry(
    "other-rate-set", "Somebody else set another rate where ours stood: {places}.", "It is not adjusted any more."
)
OTHERS_LEFT = Entry(
    "others-left",
    "What was there at the end was not ours any more, and was left: {places}.",
    "Ask who set it before you remove it.",
)
CALL_CAME_LATE = Entry(
    "call-came-late",
    "A call that had gone astray reached Kafka late: {places}.",
    "What it set is taken away again when the run does not need it.",
)
OWED = Entry("owed", "", "It cannot be read or cleared now, and will be later: {places}.")
