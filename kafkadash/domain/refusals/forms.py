"""The form of a reassignment"""

from kafkadash.domain.refusals.entry import Entry

PAGE_INCOMPLETE = Entry("page-incomplete", "This page was not complete.", "Load it again.")
CLUSTER_NOT_ALLOWED = Entry("cluster-not-allowed", "", "Choose one of the clusters that you may propose on.")
CLUSTER_MISSING = Entry("cluster-missing", "", "Choose the cluster that this is about.")
CLUSTER_READ_ONLY = Entry(
    "cluster-read-only",
    "{cluster} is read-only in kafkadash: nothing is proposed on it.",
    "Choose another one; an administrator can allow changes under Settings.",
)
MODE_UNKNOWN = Entry("mode-unknown", "", "Choose one of the changes that are listed here.")
MODE_MISSING = Entry("mode-missing", "", "Choose what to do: one of the changes that are listed here.")
NO_BROKER_ID = Entry("no-broker-id", "", "“{typed}” is no broker id: ids are whole numbers from 0 on.")
NO_BROKER_CHOSEN = Entry("no-broker-chosen", "", "Choose at least one broker to drain.")
BROKER_NOT_THERE = Entry("broker-not-there", "{cluster} has no {brokers}. {has}", "Choose among those.")
NO_BROKER_LEFT = Entry(
    "no-broker-left",
    "That leaves no broker of {cluster} that is up to take the replicas.",
    "Leave at least one.",
)
RACK_MISSING = Entry(
    "rack-missing",
    "{brokers} no rack and the others do, so nobody can tell whether replicas are spread.",
    "Set broker.rack there, or plan without regard to racks.",
)
RACKS_NOT_KNOWN = Entry(
    "racks-not-known",
    "{brokers} no rack and the others do, so nobody can tell which partitions are spread wrongly.",
    "Set broker.rack there first.",
)
PATTERN_TOO_LONG = Entry(
    "pattern-too-long", "The regular expression has {length:,} characters; {most:,} fit.", "Shorten it, or name topics."
)
PATTERN_TOO_SLOW = Entry(
    "pattern-too-slow",
    "To match all names with this regular expression takes more than {seconds:g} s.",
    "Use a simpler one: what repeats something that repeats is slow.",
)
PATTERNS_BUSY = Entry(
    "patterns-busy",
    "Other regular expressions are being tried at this moment.",
    "Wait a few seconds, then change it or send it again.",
)
TARGET_NOT_THERE = Entry(
    "target-not-there", "A broker that was chosen is not in this cluster any more.", "Look at those listed, and choose."
)
EVENNESS_UNREADABLE = Entry(
    "evenness-unreadable", "", "Give percent of the mean of the rack, from 1 to 100, for example 5."
)
FILE_AND_TEXT = Entry(
    "file-and-text",
    "A file was chosen and a text was pasted.",
    "Leave one out, so that it is clear which counts.",
)
FILE_EMPTY = Entry("file-empty", "The file is empty.", "Choose the JSON of the assignment.")
NO_FILE = Entry("no-file", "", "Paste the JSON of the assignment, or choose a file.")
FILE_TOO_LARGE = Entry(
    "file-too-large",
    "This is {size} MB, and {most} MB are taken at most.",
    "Split the assignment into several changes, or take out the partitions that do not move.",
)
FILE_NOT_SENT = Entry(
    "file-not-sent",
    "This is {size} MB, and {most} MB are taken at most. It was not sent.",
    "Split the assignment into several changes, or take out the partitions that do not move.",
)
TIME_UNREADABLE = Entry("time-unreadable", "", "This is no time: give day and time in UTC, like 2026-11-21 22:00.")
TIME_PASSED = Entry("time-passed", "This has passed: it is {now} UTC now.", "Give a time that is to come.")
PERCENT_UNREADABLE = Entry("percent-unreadable", "", "Give percent of each disk, from 1 to 100, for example 80.")
PERCENT_OUTSIDE = Entry(
    "percent-outside", "The disk limit is from 1 to 100 percent of each disk.", "Give another one, for example 80."
)
LOWEST_ABOVE_HIGHEST = Entry(
    "lowest-above-highest",
    "The lowest, {low} MB/s, is above the highest, {high} MB/s.",
    "Lower the one, or raise the other.",
)
STARTS_BELOW = Entry("starts-below", "It starts below the lowest, {low} MB/s.", "Raise it, or lower that.")
STARTS_ABOVE = Entry("starts-above", "It starts above the highest, {high} MB/s.", "Lower it, or raise that.")
MORE_THAN_THE_CLUSTER = Entry(
    "more-than-the-cluster", "More than the {most} of the whole cluster.", "Lower it, or raise that."
)
NO_WHOLE_NUMBER = Entry("no-whole-number", "", "Give a whole number from 1 on, for example {example}.")
TOO_MANY_AT_ONCE = Entry(
    "too-many-at-once", "{typed:,} at once is more than the {most:,} that are allowed.", "Give fewer."
)
VERY_SLOW = Entry(
    "very-slow", "{rate} is very slow: a partition of 1 GB takes {hours}.", "Say so again if it is meant."
)
NEVER_FINISHES = Entry(
    "never-finishes",
    "{rate} is below the {inbound} MB/s that producers write to what moves: at that rate it could never finish.",
    "Say so again if it is meant.",
)
VERIFIES_ALREADY = Entry(
    "verifies-already",
    "Another file of yours is being verified: {file}.",
    "Wait until that has ended, or stop it; then send this one.",
)
VERIFY_NEEDS_ROLE = Entry(
    "verify-needs-role",
    "To verify more than {most} MB on {cluster} you need the role {roles}.",
    "Ask somebody who has it, or send the part of the file that matters.",
)
TITLE_MISSING = Entry("title-missing", "", "Give it a title: what it does, in a few words.")
TITLE_DOES_NOT_FIT = Entry("title-does-not-fit", "The title has {length} characters; {most} fit.", "Shorten it.")
REASON_DOES_NOT_FIT = Entry("reason-does-not-fit", "The reason has {length:,} characters; {most:,} fit.", "Shorten it.")
WHY_NEEDED = Entry("why-needed", "", "Say why this is needed: the approver decides by it, and the audit keeps it.")
EDITED_BEFORE_PLANNED = Entry(
    "edited-before-planned", "This draft was edited meanwhile.", "Look at it again before it is planned."
)
ONLY_A_DRAFT_IS_PLANNED = Entry(
    "only-a-draft-is-planned", "#{number} is no draft any more; only a draft is planned.", "Look at it again."
)
