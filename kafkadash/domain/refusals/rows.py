"""Rows of a run: why one waits, was left out, failed or ended otherwise than planned"""

from kafkadash.domain.executor_state import NOT_ELECTED as NOT_ELECTED_BEGINS
from kafkadash.domain.executor_state import NOT_REREAD as NOT_REREAD_BEGINS
from kafkadash.domain.executor_state import UNTOLD as UNTOLD_BEGINS
from kafkadash.domain.refusals.entry import Entry

_ANEW = "If it is still wanted, propose it anew from the cluster as it is now."

REASSIGNED_BY_OTHERS = Entry("reassigned-by-others", "Somebody else reassigns it, to {target}.", _ANEW)
NOT_AS_PLANNED = Entry("not-as-planned", "Its replicas are {replicas}; the plan expects {expected} before.", _ANEW)
THERE_ALREADY = Entry(
    "there-already",
    "Its replicas are {replicas} already, as the plan asks; the plan expects {expected} before.",
    "Nothing is left to do for it.",
)
FACTOR_NOT_APPROVED = Entry(
    "factor-not-approved",
    "It has {has} and would have {target}, which was not approved.",
    "Propose it anew, and allow another number of replicas under Limits.",
)
TOPIC_DELETED = Entry(
    "topic-deleted", "{topic} was deleted.", "Nothing is left to move; restore the topic if that was a mistake."
)
TOPIC_CREATED_AGAIN = Entry(
    "topic-created-again",
    "{topic} was deleted and created again.",
    "Plan the new topic in a change of its own, if it has to move.",
)
TOPIC_DELETED_SINCE = Entry(
    "topic-deleted-since", "It was done; {topic} was deleted since.", "Restore the topic if that was a mistake."
)
MOVED_BY_OTHERS = Entry("moved-by-others", "Somebody else moves it to {target}.", _ANEW)
OLD_REPLICAS_SUBMITTED = Entry(
    "old-replicas-submitted",
    "Somebody submitted its old replicas while it moved; that can never end.",
    "Cancel it.",
)
CHANGED_BY_OTHERS = Entry(
    "changed-by-others", "Somebody else changed it: its replicas are {replicas}, not {target}.", _ANEW
)
CHANGED_SINCE = Entry("changed-since", "It was done; its replicas are {replicas} since, by somebody else.", _ANEW)
CANCELLED_BY_OTHERS = Entry("cancelled-by-others", "Somebody else cancelled it.", _ANEW)
ORDERED_BY_OTHERS = Entry("ordered-by-others", "Somebody else put its replicas into another order.", _ANEW)
ORDER_NOT_RESTORED = Entry(
    "order-not-restored",
    "Its order could not be restored: its replicas are {replicas}.",
    "A change of its own can put them in order.",
)
NO_TRACE = Entry(
    "no-trace",
    "It was submitted {times} and Kafka shows no trace of it.",
    "Submit it again, or give it up?",
)
ANSWER_LOST = Entry(
    "answer-lost", "The answer to its submission was lost.", "The next look at the cluster tells what came of it."
)
ARRIVED_LATE = Entry(
    "arrived-late", "A request that had gone astray reached Kafka late.", "It goes on; nothing is to be done."
)
ARRIVED_LATE_CANCELLED = Entry(
    "arrived-late-cancelled", "A request that had gone astray reached Kafka late.", "It is cancelled again."
)
REFUSED_TO_CANCEL = Entry(
    "refused-to-cancel", "Kafka refuses to cancel it: {words}", "It is asked again until Kafka does."
)
REFUSED_TO_ORDER = Entry(
    "refused-to-order",
    "Kafka refuses to restore the order of its replicas: {words}",
    "It is asked again a few times; a change of its own can do it later.",
)
NOT_ELECTED = Entry(
    "not-elected",
    NOT_ELECTED_BEGINS + " {why}",
    "Ask for the election on the page of the row, or with Kafka's own tool once the run has ended.",
)
UNTOLD = Entry(
    "untold",
    UNTOLD_BEGINS + " Kafka lists no move of it, but {topic} is not described to kafkadash any more.",
    "Verify it when it is.",
)
NOT_REREAD = Entry(
    "not-reread",
    NOT_REREAD_BEGINS + " {topic} is not described to kafkadash any more.",
    "Verify it when the principal may Describe it again.",
)
NO_TIME_LEFT = Entry(
    "no-time-left", "There was no time left for it in this step.", "It takes its turn in the next one."
)
NO_TIME_FOR_THROTTLE = Entry(
    "no-time-for-throttle",
    "There was no time left to set its throttle in this step.",
    "It takes its turn in the next one.",
)
CANCELLED_BEFORE = Entry(
    "cancelled-before", "The run was cancelled before it began.", "Propose what is left anew if it is still wanted."
)
RUN_ENDED_BEFORE = Entry(
    "run-ended-before", "The run ended before it began.", "Propose what is left anew if it is still wanted."
)
RUN_ENDED_UNSEEN = Entry(
    "run-ended-unseen",
    "The run ended while nobody could see what became of it.",
    "See the partition in the cluster, and cancel what still moves with Kafka's own tool.",
)
GIVEN_UP = Entry("given-up", "The operator gave it up.", "Propose it anew if it is still wanted.")
ALL_REFUSED = Entry("all-refused", "Kafka refused {rows}, all there are: {why}", "Propose it anew when that is mended.")

BROKER_AWAY = Entry(
    "broker-away", "Broker {broker} is away; a move with it would not end.", "Bring it back; the row then goes on."
)
BROKER_FENCED = Entry(
    "broker-fenced",
    "Broker {broker} is fenced; a move with it would not end.",
    "See why the controller fences it; the row then goes on.",
)
BROKER_NOT_REGISTERED = Entry(
    "broker-not-registered",
    "Broker {broker} is not registered; a move with it would not end.",
    "Start it, or cancel the row and plan it anew.",
)
RATE_IN_USE = Entry(
    "rate-in-use",
    "Broker {broker} is throttled to {rate} by somebody else who may be using it; the throttle of this run waits.",
    "It goes on when that rate is gone, or has stood for a minute without moves of others.",
)
BROKER_CORDONED = Entry(
    "broker-cordoned",
    "All log directories of broker {broker} are cordoned.",
    "Uncordon one, or cancel the row and plan it anew.",
)
DISKS_NOT_READ = Entry(
    "disks-not-read",
    "The disks of broker {broker} were not read; nobody can tell whether they take what comes.",
    "See on the broker's page why they are not read.",
)
DISKS_READ_LONG_AGO = Entry(
    "disks-read-long-ago",
    "The disks of broker {broker} were read {age} ago; nobody can tell whether they take what comes.",
    "See on the broker's page why they are not read.",
)
DISKS_FULL = Entry(
    "disks-full",
    "Broker {broker} has room for {room}{below} of its disks, and {coming} are still to come.",
    "Make room on it, or cancel the row and plan it anew.",
)
NO_LEADER = Entry("no-leader", "It has no leader; nothing can be copied.", "Bring back a broker that has it in sync.")
UNDER_MIN_ISR = Entry(
    "under-min-isr",
    "It is under min-ISR; broker {brokers} has to catch up first.",
    "It goes on by itself then; see why that broker lags.",
)
BRAKE = Entry(
    "brake",
    "{partitions} under min-ISR, and no broker is away that would explain it.",
    "Nothing is submitted but what repairs it. If the moves are what holds it up, cancel the run.",
)

LIES_ELSEWHERE = Entry(
    "lies-elsewhere",
    "Its replica on broker {broker} lies in {there}; the plan puts it into {path}.",
    "Kafka's kafka-reassign-partitions can move it between the directories of the broker.",
)
LIES_NOBODY_KNOWS = Entry(
    "lies-nobody-knows",
    "Nobody can tell whether its replica on broker {broker} lies in {path}, as the plan says.{why}",
    "See the directories on the broker's page when it answers again.",
)
THROTTLE_REMOVED = Entry(
    "throttle-removed",
    "Somebody else keeps removing our throttle ({places}).",
    "It is set again {again} after the last time; until then nothing is submitted.",
)
THROTTLE_MISSING = Entry(
    "throttle-missing",
    "Somebody else removed our throttle ({places}).",
    "It is set again when the next look finds the same; until then nothing is submitted.",
)

PAUSED = Entry("paused", "It is paused; what is in flight goes on.", "Resume it to have the rest submitted.")
WINDOW_CLOSED = Entry(
    "run-window-closed", "The window is closed.", "What is in flight goes on; cancel the run to end it."
)
LOOK_TOO_OLD = Entry(
    "look-too-old", "The cluster was read {age} ago, too long to act on.", "The next look is under way."
)
OTHER_TOPICS_NEVER_READ = Entry(
    "other-topics-never-read",
    "The other topics of the cluster were never read, so nobody can tell whether a move would harm them.",
    "See on the overview of the cluster why they are not read.",
)
OTHER_TOPICS_READ_LONG_AGO = Entry(
    "other-topics-read-long-ago",
    "The other topics were read {age} ago; nobody can tell whether another move would harm them.",
    "See on the overview of the cluster why they are not read.",
)
STEP_FAILED = Entry(
    "step-failed",
    "This step failed inside of kafkadash; the log of the worker says more.",
    "It is tried again by itself; if that goes on, report what the log says.",
)
ANOTHER_CLUSTER = Entry(
    "another-cluster",
    "The address of {cluster} now leads to the Kafka cluster {answered}, and not to {expected}. Nothing of this run "
    "is done there.",
    "Give the cluster its own addresses again under Settings.",
)

_ADVICE = tuple(entry.then for entry in list(globals().values()) if isinstance(entry, Entry) and "{" not in entry.then)


def without_advice(reason: str) -> str:
    """The reason of a row that has not begun, where what to do next is said for all rows together."""
    for advice in _ADVICE:
        if reason.endswith(advice):
            return reason.removesuffix(advice).rstrip()
    return reason
