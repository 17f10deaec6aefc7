"""What the checks of a reassignment find before it runs"""

from kafkadash.domain.refusals.entry import Entry

_ANEW = "Make the plan again."
_READ = "See on the overview of the cluster why they are not read."

GONE = Entry("gone", "{name} does not exist any more.", _ANEW)
TOPIC_REPLACED = Entry("topic-replaced", "{topic} was deleted and created again since the plan.", _ANEW)
AS_PLANNED_ALREADY = Entry(
    "as-planned-already",
    "{row}: replicas are {replicas} already, as the plan asks; it expects {expected} before.",
    _ANEW,
)
OTHER_THAN_PLANNED = Entry("other-than-planned", "{row}: replicas are {replicas}; the plan expects {expected}.", _ANEW)
MOVING_BY_OTHERS = Entry(
    "moving-by-others",
    "{row} is being reassigned by somebody else{what}.",
    "Wait until that is done or cancel it, then make the plan again.",
)
FACTOR_CHANGES = Entry(
    "factor-changes",
    "{row} has {replicas} and would have {target}.",
    "Make the plan again, and allow another number of replicas under Limits if that is meant.",
)
TARGET_NOT_REGISTERED = Entry(
    "target-not-registered",
    "Broker {broker} is not registered; a move to it would never end.",
    "Start it, or plan without it.",
)
TARGET_FENCED = Entry(
    "target-fenced",
    "Broker {broker} is fenced; a move to it would never end.",
    "See why the controller fences it, or plan without it.",
)
TARGET_SILENT = Entry(
    "target-silent",
    "Broker {broker} does not answer; a move to it may never end.",
    "See why it does not answer on its page, or plan without it.",
)
TARGET_CORDONED = Entry(
    "target-cordoned", "All log directories of broker {broker} are cordoned.", "Uncordon one, or plan without it."
)
DIRECTORIES_UNREAD = Entry(
    "directories-unread",
    "The log directories of {brokers} were not read.",
    "See on the broker's page why they are not read.",
)
QUORUM_LOST = Entry(
    "quorum-lost",
    "The quorum is lost: nothing can be changed before a majority of the controllers is back.",
    "See the controllers on the page of the quorum.",
)
DISK_TOO_SMALL = Entry(
    "disk-too-small",
    "Broker {broker} {comes}: {coming} arrive, and there is room for {room}.",
    "Make room on it, or plan again with other limits.",
)
DIRECTORIES_TOO_SMALL = Entry(
    "directories-too-small",
    "No directory of broker {broker} has room for {replica} of one partition: {has}.",
    "Make room on it, or plan again with other limits.",
)
DISK_NOT_KNOWN = Entry(
    "disk-not-known", "The disk of {brokers} is not known.", "See on the broker's page why it is not read."
)
SIZE_NOT_KNOWN = Entry(
    "size-not-known",
    "The size of {partitions} is not known.",
    "See on the pages of the brokers why their disks are not read.",
)
RACKS_NOT_NAMED = Entry(
    "racks-not-named",
    "Some brokers name no rack, so the spread cannot be judged.",
    "Set broker.rack there, or look at the spread yourself.",
)
SPREAD_WORSE = Entry(
    "spread-worse",
    "{row} would lie in fewer racks, or less evenly: {replicas}.",
    "Plan it elsewhere, or accept fewer racks where it is said what moves.",
)
LEADERLESS = Entry(
    "leaderless", "{row} has no leader; nothing can be copied.", "Bring back a broker that has it in sync."
)
LAGGING = Entry(
    "lagging",
    "{row} is under min-ISR ({has}); let {brokers} catch up first.",
    "It passes by itself then; see why that broker lags.",
)
MIN_ISR_UNREAD = Entry("min-isr-unread", "{setting} of {topics} was not read.", _READ)
THROTTLE_TOO_LOW = Entry(
    "throttle-too-low",
    "The partitions that move to broker {broker} receive {inbound:,.1f} MB/s together; copies at {throttle:,.1f} MB/s "
    "would never catch up.",
    "Raise the throttle while it runs, or plan again with a higher one.",
)
INBOUND_UNKNOWN = Entry(
    "inbound-unknown",
    "What {partitions} {receive} is not known.",
    "Give a throttle well above what producers write; it can be changed while it runs.",
)
WINDOW_HAS_ENDED = Entry(
    "window-has-ended", "The window ended at {closed:%d %b %H:%M} UTC.", "Plan again with a window that is to come."
)
WINDOW_TOO_SHORT = Entry(
    "window-too-short",
    "It needs {needs} at least, and the window is open for {length}.",
    "What is left when it closes does not begin: plan less, a longer window or a higher throttle.",
)
LENGTH_NOT_KNOWN = Entry(
    "length-not-known",
    "How long it takes is not known: sizes are missing.",
    "See on the pages of the brokers why their disks are not read.",
)
FACTS_NEVER_READ = Entry("facts-never-read", "The {facts} of the cluster were never read.", _READ)
QUORUM_NEVER_READ = Entry(
    "quorum-never-read", "The quorum was never read.", "See on the page of the quorum why it is not read."
)
FACTS_READ_LONG_AGO = Entry(
    "facts-read-long-ago", "The {facts} {was} read {ago} ago, which is too old to be relied on.", _READ
)
