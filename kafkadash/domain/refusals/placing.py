"""What a planned placement cannot give, or gives otherwise than wanted"""

from kafkadash.domain.refusals.entry import Entry

KEEPS_MORE_THAN_ALLOWED = Entry(
    "keeps-more-than-allowed",
    "Broker {broker} keeps {replicas}, and {most} are allowed on a broker.",
    "Allow more replicas per broker, or let others move too.",
)
NO_ROOM_AT_THE_MAXIMUM = Entry(
    "no-room-at-the-maximum",
    "With at most {most} replicas on a broker there is room for {room:,}, and there are {total:,}.",
    "Allow more replicas per broker, or add brokers.",
)
MOVING_LEFT_OUT = Entry(
    "moving-left-out",
    "{partitions} {are} being reassigned already, and left out of this plan.",
    "Plan again when that is done.",
)
AS_EVEN_AS_POSSIBLE = Entry(
    "as-even-as-possible",
    "The brokers do not get even shares of the replicas: {brokers}.",
    "Let others move too, or add a broker to the rack that has too few.",
)
LEFT_ON_ONE_DOWN = Entry(
    "left-on-one-down",
    "{replicas} {stay} on broker {broker}, which {is_down}.",
    "Drain it, unless it comes back.",
)
REPLACEMENT_HOLDS_IT = Entry(
    "replacement-holds-it",
    "{partitions} {are} on {brokers} already, so one of the replicas that leave would have no place.",
    "Name further brokers to take their place, or let others move too.",
)
OUTSIDE_FOR_A_LARGE_ONE = Entry(
    "outside-for-a-large-one",
    "Broker {broker} would hold {held}, and {mean} is the mean of its rack: {partition} alone is larger than that "
    "allows.",
    "Split that topic over more partitions, or accept it.",
)
OUTSIDE_FOR_THE_REST = Entry(
    "outside-for-the-rest",
    "Broker {broker} would hold {held}, and {mean} is the mean of its rack: large partitions leave the others of the "
    "rack less.",
    "Accept it, or spread those topics over more partitions.",
)
OUTSIDE_AND_STUCK = Entry(
    "outside-and-stuck",
    "Broker {broker} would hold {held}, and {mean} is the mean of its rack: what may move does not suffice, or there "
    "is no room for it.",
    "Let more topics move, or allow more of the disks.",
)
MORE_OUTSIDE = Entry(
    "more-outside",
    "{brokers} more could not be brought within what was asked for.",
    "The table of brokers has them all.",
)
