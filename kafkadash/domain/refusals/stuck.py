"""Why a row in flight does not get on"""

from kafkadash.domain.refusals.entry import Entry

DESTINATION_UNREGISTERED = Entry(
    "destination-unregistered",
    "Broker {broker}, which it is copied to, is not registered.",
    "Start it, or plan the row anew without it.",
)
DESTINATION_AWAY = Entry(
    "destination-away",
    "Broker {broker}, which it is copied to, is {state}.",
    "Bring it back, or plan the row anew without it.",
)
KEPT_NOT_IN_SYNC = Entry(
    "kept-not-in-sync",
    "It is copied and in sync, but {brokers}, which {keep} a replica, {are} {state}: Kafka ends the move only when "
    "every replica is in sync.",
    "Bring back what is away, or plan the row anew without it.",
)
NO_SOURCE = Entry(
    "no-source",
    "The partition has no leader, so there is nothing to copy from.",
    "Bring back a broker that has it in sync.",
)
LIMIT_BELOW_INBOUND = Entry(
    "limit-below-inbound",
    "Broker {broker} {does} replicas at no more than {limit}; {what}, so it can never finish.{whose}",
    "Raise that limit, or cancel the row.",
)
COPY_BELOW_INBOUND = Entry(
    "copy-below-inbound",
    "Producers write {rate} to {row}, which is no less than its copy gets: so it can never finish.",
    "Raise the throttle, or cancel the row.",
)
DESTINATION_DISK_FULL = Entry(
    "destination-disk-full",
    "Broker {broker} may take {room} more on its disks, and {coming} are still to come.",
    "Make room on it, or plan the row anew without it.",
)
DESTINATION_DISK_NOT_READ = Entry(
    "destination-disk-not-read",
    "The disks of broker {broker} were not read lately; nobody can tell whether they take what comes.",
    "See on the broker's page why they are not read.",
)
DESTINATION_CORDONED = Entry(
    "destination-cordoned",
    "All log directories of broker {broker} are cordoned.",
    "Uncordon one, or plan the row anew without it.",
)
SOURCE_AT_ITS_LIMIT = Entry(
    "source-at-its-limit",
    "Broker {broker}, which it is copied from, sends {sent} of the {limit} it may, while {others} in sync ({which}) "
    "could send.",
    "Raise the throttle, or let another broker lead it.",
)
RATE_OF_OTHERS = Entry(
    "rate-of-others",
    "Broker {broker} has a throttle that is not ours: {key} is {rate}.",
    "Decide on the page of its throttles whether it stays.",
)
LIST_OF_OTHERS = Entry(
    "list-of-others",
    "{key} of {topic} was changed by somebody else.",
    "Ask who did; it is seen on the page of the throttles.",
)
CLUSTER_REFUSES = Entry("cluster-refuses", "The cluster refuses: {words}", "Mend that, or cancel the row.")
NO_CAUSE_FOUND = Entry(
    "no-cause-found",
    "It has not come nearer to its leader for {quiet}. Source, destination, leader, disk and throttles look well.",
    "The log of the destination may say why.",
)
