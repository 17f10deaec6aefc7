"""What a plan is asked for, and cannot be given as it was asked"""

from kafkadash.domain.refusals.entry import Entry

NO_BROKERS_TO_ADD = Entry(
    "no-brokers-to-add", "No broker that is to be given replicas is named.", "Name those that were added."
)
NO_BROKERS_TO_REPLACE = Entry("no-brokers-to-replace", "No broker to replace is named.", "Name at least one.")
NO_REPLACEMENTS = Entry(
    "no-replacements", "No broker is named that takes over from {brokers}.", "Name at least one that does."
)
REPLACED_BY_ITSELF = Entry(
    "replaced-by-itself", "{brokers} would be replaced and take over at once.", "Name each on one side only."
)
NO_FACTOR = Entry("no-factor", "No replication factor is given.", "Say how many replicas partitions are to have.")
FACTOR_TOO_LOW = Entry(
    "factor-too-low", "A replication factor of {factor} leaves partitions without replicas.", "Ask for 1 at least."
)
FACTOR_TOO_HIGH = Entry(
    "factor-too-high",
    "A replication factor of {factor} needs as many brokers, and there {verb} only {brokers} that can hold replicas.",
    "Ask for {most} at most, or add brokers.",
)
PATTERN_WRONG = Entry(
    "pattern-wrong", "“{pattern}” is no regular expression: {fault}.", "Correct it; it has to match whole names."
)
NO_TOPIC_CHOSEN = Entry(
    "no-topic-chosen",
    "Of {topics} not one is chosen: {why}.",
    "Choose other topics; a regular expression has to match whole names.",
)
TOPICS_UNKNOWN = Entry(
    "topics-unknown", "There is no topic {topics} in this cluster.", "Name topics of the cluster only."
)
EPS_OUTSIDE = Entry(
    "eps-outside", "Disks within {eps:g} of their mean is no share.", "Give one from 0 to 1; 0.05 are 5 %."
)
DISK_LIMIT_OUTSIDE = Entry(
    "disk-limit-outside", "A disk limit of {limit:g} is no share of a disk.", "Give one from 0 to 1; 0.8 are 80 %."
)
DISK_LIMIT_PASSED = Entry(
    "disk-limit-passed",
    "Broker {broker} uses {share} of its disk today, {used} of {total}{more}, and the disk limit is {limit:g} %.",
    "Allow more, make room there, or let only others be given replicas.",
)
MOST_REPLICAS_TOO_LOW = Entry(
    "most-replicas-too-low", "At most {most} replicas on a broker would leave none anywhere.", "Allow 1 at least."
)
GONE_LEFT_OUT = Entry(
    "gone-left-out", "{partitions} {are} not in this cluster any more.", "What is left of the earlier plan is planned."
)
NOTHING_LEFT_TO_FINISH = Entry(
    "nothing-left-to-finish",
    "Every partition of the earlier plan moves already, or is not in this cluster any more.",
    "Plan again when those that move are done.",
)
