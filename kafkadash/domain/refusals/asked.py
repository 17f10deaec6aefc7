"""What is asked for and cannot be planned, or deserves to be known"""

from kafkadash.domain.refusals.entry import Entry

NO_BROKER_NAMED = Entry("no-broker-named", "No broker to drain is named.", "Name at least one.")
BROKERS_UNKNOWN = Entry(
    "brokers-unknown", "There {verb} no {brokers} in this cluster; {there}.", "Name brokers of the cluster only."
)
TARGETS_UNKNOWN = Entry(
    "targets-unknown", "No replicas can go to {brokers}: not in this cluster.", "Name brokers of the cluster only."
)
ALL_WOULD_BE_DRAINED = Entry(
    "all-would-be-drained",
    "All brokers of the cluster would be drained; nobody is left to hold the replicas.",
    "Leave at least one.",
)
NO_TARGET = Entry(
    "no-target",
    "No broker is left that may be given replicas: all others are away, fenced, cordoned or left out.",
    "Bring one of them back, or drain fewer.",
)
NOTHING_TO_DRAIN = Entry(
    "nothing-to-drain", "{brokers} {hold} no replicas; there is nothing to move.", "Choose another broker."
)
HOLDS_NOTHING = Entry("holds-nothing", "{brokers} {hold} no replicas.", "The others are drained as asked.")
TOO_FEW_BROKERS = Entry(
    "too-few-brokers",
    "{topic} has {replicas}, and only {brokers} would be left for them.",
    "Drain fewer brokers, add some, or lower its replication factor first.",
)
RACKS_MIXED = Entry(
    "racks-mixed",
    "{brokers} {verb} no rack while others do, so the spread over racks cannot be kept.",
    "Set broker.rack there, or plan without regard to racks.",
)
LAST_OF_A_RACK = Entry(
    "last-of-a-rack",
    "{brokers} {verb} the last in {racks} that may hold replicas: without {them} {fewer}.",
    "Accept fewer racks, or add a broker there.",
)
LEADER_MISSING = Entry(
    "leader-missing",
    "{partitions} {has} no leader: nothing can be copied before there is one.",
    "Bring back a broker that is in sync, or the move waits for it.",
)
MOVES_ALREADY = Entry("moves-already", "{row} is being reassigned already.", "Wait until that is done, or cancel it.")
DISK_LIMIT = Entry(
    "disk-limit",
    "Broker {broker} would come to {share} of its disk: {used} in use and {coming} more, of {total}. The limit is "
    "{limit:.0f} %, which leaves room for {room}.",
    "Make room on it, move less at once, or allow more under Limits.",
)
DISK_LIMIT_OF_A_DIRECTORY = Entry(
    "disk-limit-of-a-directory",
    "Broker {broker} would get a replica of {replica}, and no log directory of it has room for that: {room} at most, "
    "with a limit of {limit:.0f} %.",
    "Make room in one of them, or allow more under Limits.",
)
DISK_UNJUDGED = Entry(
    "disk-unjudged",
    "The disk of {brokers} is not known, so the limit was not kept there.",
    "See on the broker's page why it is not read.",
)
SIZE_UNJUDGED = Entry(
    "size-unjudged",
    "The size of {partitions} is not known; it is missing in what was reckoned for disks.",
    "See on the pages of the brokers why their disks are not read.",
)
ALL_AS_ASKED = Entry(
    "all-as-asked", "{partitions} as asked already; nothing would move.", "Nothing is left to do for this file."
)
SOME_AS_ASKED = Entry(
    "some-as-asked", "{partitions} of the file {are} as asked already.", "Only the others are planned."
)
PARTITION_UNKNOWN = Entry(
    "partition-unknown", "There is no partition {row}: {topic} {has}.", "Correct it in the file, or take it out."
)
TOPIC_UNKNOWN = Entry(
    "topic-unknown", "There is no topic {topic} in this cluster{more}.", "Correct it in the file, or take it out."
)
BROKER_UNKNOWN = Entry(
    "broker-unknown", "There is no broker {broker} in this cluster{more}.", "Name brokers of the cluster only."
)
BROKER_UNFIT = Entry(
    "broker-unfit",
    "Broker {broker} {why} and can be given no replicas now{more}.",
    "Name another one, or wait until it can.",
)
KEPT_ON_ONE_AWAY = Entry(
    "kept-on-one-away",
    "{partitions} {keep} a replica on broker {broker}, which is away: what moves may stay listed as moving until it is "
    "back.",
    "Bring it back first, or plan these replicas elsewhere too.",
)
OTHER_FACTOR = Entry(
    "other-factor",
    "{row} has {replicas} and would have {target:,}.",
    "If that is meant, allow the replication factor to change.",
)
DIRECTORY_UNKNOWN = Entry(
    "directory-unknown",
    "{row}: broker {broker} has no log directory {path}; it has {paths}.",
    'Name one that it has, or "any".',
)
DIRECTORIES_ONLY = Entry(
    "directories-only",
    "{row} keeps its brokers and only asks for other log directories; only moves between brokers are planned here.",
    "Move it between disks with Kafka's own tool, kafka-reassign-partitions.",
)
DIRECTORY_OF_ONE_THAT_STAYS = Entry(
    "directory-of-one-that-stays",
    "{row}: broker {broker} keeps its replica, and the file names the directory {path} for it.",
    'Only new replicas are put into a directory here: write "any" for one that stays.',
)
