"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.monitoring.errors import CollectionErrorCode as Code

_FAILED = "The last refresh of {kinds} failed."
_FROM_BEFORE = "What is shown of it is from before, with its age."
_DENIED = "Kafka does not let kafkadash read {kinds}."

COLLECTION_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Verifications, plans and reassignments that are not there
    Code.NO_SUCH_REASSIGNMENT: MessageTemplate(
        "{cluster} has no reassignment {asked}, or it ended so long ago that it is forgotten.",
        "List what moves, and name it as it stands there.",
    ),
    # Results of the pipeline that are not taken in, whole or in part
    # Clusters that do not answer, and what a connection test finds
    Code.ANOTHER_COLLECTOR: MessageTemplate(
        "Another collector took over; nothing was stored.", "What the other one reads is stored."
    ),
    Code.COLLECTOR_FAULT: MessageTemplate(
        "kafkadash failed while it read {kind} ({fault}). Nothing of that refresh was stored.",
        "The log of the worker says where; report it if it goes on.",
    ),
    Code.COLLECTOR_SET_ASIDE: MessageTemplate(
        "Reading {kind} did not end in time {times} times in a row. It is set aside for {pause}, so that no more "
        "workers are lost to it.",
        "The log of the worker says what it was at; a restart of the worker frees those that still hang.",
    ),
    Code.COLLECTED_BY_ANOTHER: MessageTemplate(
        "{kind}: another collector is at it; nothing was done.", "What it reads is shown when it is done."
    ),
    Code.REFRESH_FAILED: MessageTemplate(_FAILED, _FROM_BEFORE),
    Code.NEVER_REFRESHED: MessageTemplate(_FAILED, "Until then, what comes from it is empty here."),
    Code.READ_DENIED: MessageTemplate(_DENIED, _FROM_BEFORE),
    Code.NEVER_ALLOWED: MessageTemplate(_DENIED, "Until kafkadash may, what comes from it is empty here."),
    Code.READ_IN_PART: MessageTemplate(
        "{kind} were read, but not completely.", "The overview lists how each kind is read."
    ),
    Code.BROKER_NOT_READ: MessageTemplate("", "Broker {broker}: {why}"),
    Code.BROKER_FENCED: MessageTemplate(
        "Broker {broker} is fenced and was not asked.", "See why the controller fences it."
    ),
    Code.DIRECTORY_NOT_READ: MessageTemplate("", "Broker {broker}, {path}: {why}"),
    Code.TOPIC_NOT_READ: MessageTemplate("", "Topic {topic}: {why}"),
    Code.GROUPS_NOT_DESCRIBED: MessageTemplate("{groups:# group|# groups} could not be described.", "{why}"),
    Code.COMMITS_NOT_READ: MessageTemplate("The commits of {groups:# group|# groups} could not be read.", "{why}"),
    Code.LOG_ENDS_NOT_READ: MessageTemplate(
        "The log ends of {partitions:# partition|# partitions} could not be read.", "{why}"
    ),
    Code.GROUPS_UNSTORABLE: MessageTemplate(
        "{groups:# group|# groups} with a NUL character in {groups:its name|their names} cannot be stored.",
        "All other groups are; give such groups other names.",
    ),
    Code.THROTTLES_IN_DOUBT: MessageTemplate("Whether throttles are still needed is not known.", "{why}"),
    Code.SAME_FOR_OTHERS: MessageTemplate("", "{why} The same for {others} more."),
    # Segments for the pipeline, and faults in them
    # Filters and addresses of pages that name what is not there
    Code.PARTITIONS_NO_BROKER: MessageTemplate(
        "“{typed}” is no broker id; partitions of all brokers are shown.", "Ids are whole numbers, for example 3."
    ),
    Code.REASSIGNMENTS_NO_BROKER: MessageTemplate(
        "“{typed}” is no broker id; those of all brokers are shown.", "Ids are whole numbers, for example 3."
    ),
    Code.BROKER_NOT_SEEN: MessageTemplate(
        "No broker {broker} was seen in {cluster}.", "Choose one from the list of its brokers."
    ),
    Code.TOPIC_NOT_SEEN: MessageTemplate(
        "{cluster} has no topic {topic!r}, as far as was seen.",
        "Choose one from the list of its topics; a new one is there after the next refresh.",
    ),
    Code.GROUP_NOT_SEEN: MessageTemplate(
        "{cluster} has no consumer group {group!r}, as far as was seen.",
        "Choose one from the list of its groups; a new one is there after the next refresh.",
    ),
}
