"""Texts of the codes of changes of topics."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.topics.errors import TopicCheckTitle, TopicErrorCode
from kafkadash.topics.reasons import TopicReasonCode

TOPIC_ERROR_MESSAGES: Mapping[TopicErrorCode, MessageTemplate] = {
    TopicErrorCode.NAME_MISSING: MessageTemplate("A topic name is required.", "Type one name per line."),
    TopicErrorCode.NAME_TOO_LONG: MessageTemplate(
        "The name {name} has {length} characters; Kafka allows {most}.", "Shorten it."
    ),
    TopicErrorCode.NAME_CHARACTERS: MessageTemplate(
        "The name {name} has characters that Kafka does not allow.",
        "Use letters, digits, dots, underscores and hyphens.",
    ),
    TopicErrorCode.NAME_DOTS: MessageTemplate("Kafka allows no topic named {name}.", "Choose another name."),
    TopicErrorCode.NAME_INTERNAL: MessageTemplate(
        "{name} is an internal topic, which Kafka creates itself.", "Choose another name."
    ),
    TopicErrorCode.NAME_REPEATED: MessageTemplate("The name {name} is listed twice.", "Remove one of the lines."),
    TopicErrorCode.NAME_TAKEN: MessageTemplate("{cluster} has a topic {name} already.", "Choose another name."),
    TopicErrorCode.NAME_COLLIDES: MessageTemplate(
        "The name {name} collides with topic {other}: their metrics would have the same name.",
        "Choose a name that differs in more than dots and underscores.",
    ),
    TopicErrorCode.TOO_MANY_NAMES: MessageTemplate(
        "There are {names:,} names; the limit of a change is {most:,}.", "Create the others with a second change."
    ),
    TopicErrorCode.TOO_MANY_REPLICAS: MessageTemplate(
        "The topics have {replicas:,} replicas in all; the limit of a change is {most:,}.",
        "Create some of the topics with a second change.",
    ),
    TopicErrorCode.PARTITIONS_WRONG: MessageTemplate(
        "The number of partitions must be between 1 and {most:,}.", "Correct it."
    ),
    TopicErrorCode.FACTOR_WRONG: MessageTemplate(
        "The replication factor must be between 1 and {brokers:,}, the number of brokers that can take replicas.",
        "Correct it.",
    ),
    TopicErrorCode.DRAW_WRONG: MessageTemplate(
        "Start and shift must be between 0 and {most:,}.", "Correct them, or open the page again for new ones."
    ),
    TopicErrorCode.PLACEMENT_UNKNOWN: MessageTemplate("There is no such placement.", "Choose one of those listed."),
    TopicErrorCode.RACK_MISSING: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:brokers} {brokers:has|have} no rack while others have one.",
        "Set broker.rack, or type the assignment.",
    ),
    TopicErrorCode.NO_BROKERS: MessageTemplate("No broker of {cluster} can take replicas.", "Open Brokers to see why."),
    TopicErrorCode.ASSIGNMENT_MISSING: MessageTemplate(
        "The assignment is empty.", "Type the brokers of each partition, such as 1:2:3,2:3:1."
    ),
    TopicErrorCode.ASSIGNMENT_FORMAT: MessageTemplate(
        "{part} is no list of brokers.", "Separate replicas by colons and partitions by commas, such as 1:2:3,2:3:1."
    ),
    TopicErrorCode.ASSIGNMENT_UNEVEN: MessageTemplate(
        "Partition {partition} has {replicas:# replica|# replicas}, partition 0 has {expected}.",
        "Give each partition the same number of replicas.",
    ),
    TopicErrorCode.ASSIGNMENT_REPEATS: MessageTemplate(
        "Partition {partition} names broker {broker} twice.", "Put each replica on another broker."
    ),
    TopicErrorCode.ASSIGNMENT_BROKER: MessageTemplate(
        "Partition {partition} names broker {broker}, which cannot take replicas.", "Choose another broker."
    ),
    TopicErrorCode.ASSIGNMENT_TOO_LONG: MessageTemplate(
        "The assignment has more than {most:,} partitions, which Kafka refuses in one request.",
        "Create fewer partitions.",
    ),
    TopicErrorCode.CONFIG_FORMAT: MessageTemplate(
        "{line} is no config.", "Type one config per line, such as retention.ms=86400000."
    ),
    TopicErrorCode.CONFIGS_TOO_LONG: MessageTemplate(
        "The configs have {length:,} characters; the limit is {most:,}.", "Remove some of the lines."
    ),
    TopicErrorCode.CONFIG_REPEATED: MessageTemplate("The config {key} is listed twice.", "Remove one of the lines."),
    TopicErrorCode.CONFIG_OF_THROTTLES: MessageTemplate(
        "{key} is set and removed by reassignments.", "Remove the line."
    ),
    TopicErrorCode.NOT_DELETABLE: MessageTemplate(
        "{cluster} has no topic {topic} that kafkadash can delete.",
        "Internal topics belong to Kafka; topics without an ID need Kafka 2.8 or newer.",
    ),
    TopicErrorCode.COUNT_WRONG: MessageTemplate(
        "The number of partitions must be between {least:,} and {most:,}.",
        "Correct it. The topic has {partitions:,}, and Kafka cannot remove any.",
    ),
    TopicErrorCode.MIN_ISR_TOO_HIGH: MessageTemplate(
        "Producers with acks=all could not write: min.insync.replicas is {min_isr}, the replication factor {factor}.",
        "Lower min.insync.replicas, or raise the replication factor.",
    ),
}

TOPIC_TITLES: Mapping[TopicCheckTitle, MessageTemplate] = {
    TopicCheckTitle.CREATION_FITS: MessageTemplate("Names are free, brokers can take replicas"),
    TopicCheckTitle.DELETION_FITS: MessageTemplate("Topics are those that were planned with, and none moves"),
    TopicCheckTitle.GROWTH_FITS: MessageTemplate("Topics have as many partitions as planned with"),
}

TOPIC_MESSAGES: Mapping[TopicReasonCode, MessageTemplate] = {
    TopicReasonCode.EXISTS: MessageTemplate(
        "A topic of this name exists, with {partitions:# partition|# partitions}.", "Choose another name."
    ),
    TopicReasonCode.COLLIDES: MessageTemplate(
        "The name collides with topic {other}: their metrics would have the same name.", "Choose another name."
    ),
    TopicReasonCode.BROKERS_AWAY: MessageTemplate(
        "{brokers:Broker|Brokers} {brokers:brokers} cannot take replicas.", "Refresh the plan."
    ),
    TopicReasonCode.GONE: MessageTemplate("The topic no longer exists.", "Refresh the plan."),
    TopicReasonCode.RECREATED: MessageTemplate("The topic was deleted and created again.", "Refresh the plan."),
    TopicReasonCode.MOVING: MessageTemplate(
        "A reassignment of the topic is in flight.",
        "Wait for its end, then refresh the plan.",
    ),
    TopicReasonCode.PARTITIONS_CHANGED: MessageTemplate(
        "The topic has {partitions:# partition|# partitions}, planned with {expected}.", "Refresh the plan."
    ),
    TopicReasonCode.FACTOR_DIFFERS: MessageTemplate(
        "Partition 0 has {replicas:# replica|# replicas}; the new partitions are planned with {planned}.",
        "Change the replication factor first, or create a new plan.",
    ),
}
