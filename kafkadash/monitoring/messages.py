"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.monitoring.canary.rules import CanaryReason
from kafkadash.monitoring.errors import CollectionErrorCode as Code
from kafkadash.monitoring.transactions.rules import TransactionDoubt

_FAILED = "Collection of {kinds} failed."
_FROM_BEFORE = "The page shows older data with its age."
_DENIED = "Kafka does not allow kafkadash to read {kinds}."
_EMPTY = "The page shows no data of this kind."

COLLECTION_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Verifications, plans and reassignments that are not there
    Code.NO_SUCH_REASSIGNMENT: MessageTemplate(
        "{cluster} has no reassignment {asked}, or its retention time is over.",
        "List the reassignments and use an ID from the list.",
    ),
    Code.UNFINISHED_TOPIC_GONE: MessageTemplate(
        "Topic {topic} no longer exists, so its reassignment cannot be finished.", "No action needed."
    ),
    Code.UNFINISHED_OTHER_TOPIC: MessageTemplate(
        "Topic {topic} was created again since, so this reassignment cannot be finished.",
        "Propose a reassignment of the new topic instead.",
    ),
    Code.NOT_COLLECTED: MessageTemplate(
        "No data about {cluster} has been collected yet.",
        "Check that the cluster is enabled, and that beat and a worker for the queue collect are running.",
    ),
    # Results of the pipeline that are not taken in, whole or in part
    # Clusters that do not answer, and what a connection test finds
    Code.ANOTHER_COLLECTOR: MessageTemplate(
        "Another collector has taken over. No data was stored.", "The other collector stores its own data."
    ),
    Code.COLLECTOR_FAULT: MessageTemplate(
        "Collection of {kind} failed inside kafkadash ({fault}). No data was stored.",
        "See the worker log. Report the error if it continues.",
    ),
    Code.COLLECTOR_SET_ASIDE: MessageTemplate(
        "Collection of {kind} timed out {times} times in a row. It is paused for {pause} to keep workers free.",
        "See the worker log. Restart the worker to end hanging collections.",
    ),
    Code.COLLECTED_BY_ANOTHER: MessageTemplate(
        "{kind}: another collector is running. No data was read.", "Its data appears when it finishes."
    ),
    Code.KIND_NOT_STARTED: MessageTemplate(
        "{kind} is not collected on {cluster}.", "Start it on the cluster's canary page."
    ),
    Code.CANARY_WITHOUT_TOPIC: MessageTemplate(
        "The canary needs the topic {topic}.", "Propose it, and start the canary when it is created."
    ),
    Code.REFRESH_FAILED: MessageTemplate(_FAILED, _FROM_BEFORE),
    Code.NEVER_REFRESHED: MessageTemplate(_FAILED, _EMPTY),
    Code.READ_DENIED: MessageTemplate(_DENIED, _FROM_BEFORE),
    Code.NEVER_ALLOWED: MessageTemplate(_DENIED, _EMPTY),
    Code.READ_IN_PART: MessageTemplate("Partial data: {missing}.", "See the collection panel on the overview."),
    Code.BROKER_NOT_READ: MessageTemplate("", "Broker {broker}: {why}"),
    Code.BROKER_FENCED: MessageTemplate(
        "Broker {broker} is fenced and was skipped.", "Check why the controller fences the broker."
    ),
    Code.DIRECTORY_NOT_READ: MessageTemplate("", "Broker {broker}, {path}: {why}"),
    Code.TOPIC_NOT_READ: MessageTemplate("", "Topic {topic}: {why}"),
    Code.ELIGIBLE_NOT_READ: MessageTemplate("Eligible leader replicas could not be read.", "{why}"),
    Code.TIERS_NOT_READ: MessageTemplate("Offsets of tiered topics could not be read.", "{why}"),
    Code.TIERS_LEFT_OUT: MessageTemplate(
        "Offsets of {topics:# tiered topic|# tiered topics} were not read this time.",
        "At most {most:,} partitions are read at once, those read longest ago first.",
    ),
    Code.GROUPS_NOT_DESCRIBED: MessageTemplate("{groups:# group|# groups} could not be described.", "{why}"),
    Code.COMMITS_NOT_READ: MessageTemplate(
        "Committed offsets of {groups:# group|# groups} could not be read.", "{why}"
    ),
    Code.SHARE_OFFSETS_NOT_READ: MessageTemplate(
        "Start offsets of {groups:# share group|# share groups} could not be read.", "{why}"
    ),
    Code.LOG_ENDS_NOT_READ: MessageTemplate(
        "Log end offsets of {partitions:# partition|# partitions} could not be read.", "{why}"
    ),
    Code.GROUPS_UNSTORABLE: MessageTemplate(
        "{groups:# group has a NUL character in its name|# groups have a NUL character in their names} and cannot be "
        "stored.",
        "Rename these groups. All other groups are stored.",
    ),
    Code.THROTTLES_IN_DOUBT: MessageTemplate("kafkadash cannot determine whether throttles are still needed.", "{why}"),
    Code.ZOOKEEPER_NOT_READ: MessageTemplate("ZooKeeper could not be read.", "{why}"),
    Code.SAME_FOR_OTHERS: MessageTemplate("", "{why} The same applies to {others} more."),
    # Segments for the pipeline, and faults in them
    # Filters and addresses of pages that name what is not there
    Code.PARTITIONS_NO_BROKER: MessageTemplate(
        "“{typed}” is not a broker ID. Partitions of all brokers are shown.", "Enter a whole number, such as 3."
    ),
    Code.RACKS_NOT_COUNTED: MessageTemplate(
        "The cluster has too many violations to filter by rack. Violations of all racks are shown.",
        "Filter by topic name.",
    ),
    Code.REASSIGNMENTS_NO_BROKER: MessageTemplate(
        "“{typed}” is not a broker ID. Reassignments of all brokers are shown.", "Enter a whole number, such as 3."
    ),
    Code.BROKER_NOT_SEEN: MessageTemplate(
        "kafkadash has not seen broker {broker} in {cluster}.", "Choose a broker from the list."
    ),
    Code.TOPIC_NOT_SEEN: MessageTemplate(
        "kafkadash has not seen topic {topic!r} in {cluster}.",
        "Choose a topic from the list. New topics appear after the next refresh.",
    ),
    Code.GROUP_NOT_SEEN: MessageTemplate(
        "kafkadash has not seen consumer group {group!r} in {cluster}.",
        "Choose a group from the list. New groups appear after the next refresh.",
    ),
}

_BROKER = "See the broker's page and its log."

CANARY_MESSAGES: Mapping[CanaryReason, MessageTemplate] = {
    CanaryReason.NO_ANSWER: MessageTemplate(
        "No broker of the cluster answered ({detail}).",
        "See the ages of other data: those say whether Kafka answers.",
    ),
    CanaryReason.NO_PARTITION: MessageTemplate(
        "No partition of the canary topic has the broker as preferred leader.",
        "Add a partition for it, or move one to it.",
    ),
    CanaryReason.LED_ELSEWHERE: MessageTemplate(
        "Its partition is led by broker {detail}.", "Elect preferred leaders once the broker is in sync."
    ),
    CanaryReason.LEADER_CHANGED: MessageTemplate(
        "The leader of its partition changed during the probe.", "Wait for the next probe."
    ),
    CanaryReason.NO_LEADER: MessageTemplate("Its partition has no leader.", "Bring back an in-sync broker."),
    CanaryReason.NOT_READABLE: MessageTemplate("The broker did not answer a consumer in time.", _BROKER),
    CanaryReason.NOT_WRITTEN: MessageTemplate("The record was not written in time.", _BROKER),
    CanaryReason.REFUSED: MessageTemplate("The record was not written ({detail}).", _BROKER),
    CanaryReason.NOT_CONSUMED: MessageTemplate("The record was written, and no consumer got it in time.", _BROKER),
}

TRANSACTION_MESSAGES: Mapping[TransactionDoubt, MessageTemplate] = {
    TransactionDoubt.PRODUCERS_NOT_TOLD: MessageTemplate(
        "The producers of the partition could not be read.",
        "This needs Kafka 2.8 or newer, and Read on the topic.",
    ),
    TransactionDoubt.COORDINATORS_SILENT: MessageTemplate(
        "Some coordinators did not list their transactions.",
        "This needs Kafka 3.0 or newer, and Describe on the topic __transaction_state. Check whether all brokers are "
        "up and all partitions of this topic have a leader.",
    ),
    TransactionDoubt.IDS_HIDDEN: MessageTemplate(
        "Kafka hides transactional IDs from kafkadash, so no coordinator can be excluded.",
        "Allow Describe on all transactional IDs.",
    ),
}
