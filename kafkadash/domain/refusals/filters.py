"""Filters and addresses of pages that name what is not there"""

from kafkadash.domain.refusals.entry import Entry

CHOICE_UNKNOWN = Entry("choice-unknown", "There is no {noun} “{asked}”; it is left out.", "There are: {known}.")
COLUMN_UNKNOWN = Entry(
    "column-unknown",
    "The list cannot be sorted by “{column}”; it is sorted by {instead}.",
    "Columns: {columns}.",
)
PARTITIONS_NO_BROKER = Entry(
    "partitions-no-broker",
    "“{typed}” is no broker id; partitions of all brokers are shown.",
    "Ids are whole numbers, for example 3.",
)
REASSIGNMENTS_NO_BROKER = Entry(
    "reassignments-no-broker",
    "“{typed}” is no broker id; those of all brokers are shown.",
    "Ids are whole numbers, for example 3.",
)
BROKER_NOT_SEEN = Entry(
    "broker-not-seen",
    "No broker {broker} was seen in {cluster}.",
    "Choose one from the list of its brokers.",
)
TOPIC_NOT_SEEN = Entry(
    "topic-not-seen",
    "{cluster} has no topic {topic!r}, as far as was seen.",
    "Choose one from the list of its topics; a new one is there after the next refresh.",
)
GROUP_NOT_SEEN = Entry(
    "group-not-seen",
    "{cluster} has no consumer group {group!r}, as far as was seen.",
    "Choose one from the list of its groups; a new one is there after the next refresh.",
)
FINDING_FORGOTTEN = Entry(
    "finding-forgotten",
    "There is no finding {number}, or it closed so long ago that it is forgotten.",
    "The overview of the cluster lists those that are open.",
)
FINDING_CLOSED = Entry("finding-closed", "", "This finding has closed; there is nothing left to take care of.")
NO_SUCH_RUNBOOK = Entry("no-such-runbook", "", "There is no runbook {kind!r}; see the list of runbooks.")
NO_SUCH_EVENT = Entry(
    "no-such-event",
    "There is no event {number} in the audit that you may read.",
    "Look for it in the audit, or ask an administrator for the role auditor.",
)
EVENT_NOT_LISTED = Entry(
    "event-not-listed",
    "There is no event {asked} in this list; it is shown from its newest.",
    "Turn its pages from there.",
)
NO_SUCH_FORMAT = Entry("no-such-format", "", "There is no format “{asked}”; there are: {known}.")
OBJECT_UNNAMED = Entry(
    "object-unnamed",
    "",
    "“{typed}” names no object; write its type and its id, such as cluster:3. It is left out.",
)
MOMENT_UNREADABLE = Entry(
    "moment-unreadable",
    "",
    "“{typed}” is no time; write 2026-11-21 or 2026-11-21T14:30 (UTC). It is left out.",
)

DRILL_BROKERS_UNKNOWN = Entry("drill-brokers-unknown", "", "{cluster} has no {brokers}; {there}.")
DRILL_RACK_UNKNOWN = Entry("drill-rack-unknown", "", "No broker of {cluster} is in a rack {rack}; {there}.")
DRILL_FENCED = Entry(
    "drill-fenced",
    "{brokers} fenced already: what that did has happened.",
    "The overview of the cluster shows it.",
)
DRILL_NO_BROKER = Entry(
    "drill-no-broker", "", "“{typed}” is no broker id: give numbers with commas between them, such as 1,2."
)
DRILL_TOO_MANY = Entry(
    "drill-too-many",
    "Only the first {most:,} of {many:,} brokers are looked at.",
    "Ask for the others by themselves.",
)
