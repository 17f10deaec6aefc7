"""What is looked for and is not there: verifications, plans and reassignments"""

from kafkadash.domain.refusals.entry import Entry

NO_SUCH_VERIFICATION = Entry(
    "no-such-verification",
    "{cluster} has no such verification, or it was so long ago that it is forgotten.",
    "Bring the file again.",
)
NO_PLAN_YET = Entry(
    "no-plan-yet", "Change #{number} has no plan yet.", "Make the plan; its page then has the file of it."
)
NO_ROWS_OF_TOPIC = Entry(
    "no-rows-of-topic",
    "The plan of change #{number} has no rows of a topic {topic}.",
    "Choose a topic from the page of the plan.",
)
NO_REASSIGNMENT = Entry("no-reassignment", "#{number} is no reassignment.", "Open it from the list of changes.")
FILTER_NO_BROKER = Entry(
    "filter-no-broker",
    "“{typed}” is no broker id; it is left out.",
    "Ids are whole numbers, for example 3.",
)
NO_SUCH_REASSIGNMENT = Entry(
    "no-such-reassignment",
    "{cluster} has no reassignment {asked}, or it ended so long ago that it is forgotten.",
    "List what moves, and name it as it stands there.",
)
EXISTENCE_NOT_KNOWN = Entry(
    "existence-not-known",
    "Whether {row} exists is not known: the topics were not read yet.",
    "Ask again after the next refresh.",
)
PARTITION_NOT_THERE = Entry(
    "partition-not-there",
    "Partition {row} does not exist, as of {at}.",
    "Correct its name, or ask again after the next refresh if it is new.",
)
PLAN_OF_ANOTHER_FORMAT = Entry(
    "plan-of-another-format",
    "The plan has format {found}; this version reads format {own}.",
    "Make the plan again, or start the version that made it.",
)
PLAN_NOT_READABLE = Entry("plan-not-readable", "The stored plan cannot be read: {error}.", "Make the plan again.")
PLANNING_STOPPED = Entry("planning-stopped", "It was stopped.", "Ask for the plan again.")

NO_HISTORY_OF_TOPIC = Entry(
    "no-history-of-topic",
    "There is no history of this group in a topic called “{topic}”.",
    "Choose one of the topics below; the one with the largest lag is shown.",
)
NO_HISTORY_OF_NODE = Entry(
    "no-history-of-node",
    "There is no history of a node {typed} of this quorum.",
    "Choose one of the nodes below; the one that was farthest behind is shown.",
)
