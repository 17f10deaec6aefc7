"""Texts of the codes of the form that alters topics."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.topic_alter.errors import AlterErrorCode

ALTER_ERROR_MESSAGES: Mapping[AlterErrorCode, MessageTemplate] = {
    AlterErrorCode.NOTHING_ASKED: MessageTemplate(
        "All fields are empty, so nothing would change.", "Fill in at least one of them."
    ),
    AlterErrorCode.ALL_SO_ALREADY: MessageTemplate(
        "The topics already are as the form says.", "Change a value, or choose other topics."
    ),
    AlterErrorCode.INTERNAL_TOPIC: MessageTemplate(
        "{topic} is an internal topic, which is not altered here.", "Remove it from the list."
    ),
    AlterErrorCode.TOPIC_MOVING: MessageTemplate(
        "A reassignment of {topic} is in flight.", "Wait for its end, or leave the topic out."
    ),
    AlterErrorCode.NO_NUMBER: MessageTemplate(
        "{typed} is no whole number.", "Leave it empty or type -1 for no change."
    ),
    AlterErrorCode.FEWER_PARTITIONS: MessageTemplate(
        "{topic} has {partitions:# partition|# partitions} already, and Kafka cannot remove any.",
        "Type at least {partitions:,}.",
    ),
    AlterErrorCode.TOO_MANY_PARTITIONS: MessageTemplate(
        "The topics would get {added:,} new partitions; the limit of a change is {most:,}.",
        "Choose fewer partitions or fewer topics.",
    ),
    AlterErrorCode.ASSIGNMENT_OF_ONE: MessageTemplate(
        "An assignment is of one topic, but {topics:# topic is|# topics are} chosen.",
        "Choose one topic, or leave the assignment empty.",
    ),
    AlterErrorCode.ASSIGNMENT_LENGTH: MessageTemplate(
        "The assignment has {given:# partition|# partitions}; the topic will have {expected:,}.",
        "Type the brokers of each partition, without gaps.",
    ),
    AlterErrorCode.FACTOR_CONTRADICTS: MessageTemplate(
        "The assignment has {replicas:# replica|# replicas} per partition, the replication factor is {factor}.",
        "Correct one of them, or leave the factor empty.",
    ),
    AlterErrorCode.CONFIG_FORMAT: MessageTemplate(
        "{line} is no config.", "Type one config per line, such as retention.ms=86400000."
    ),
    AlterErrorCode.CONFIG_TWICE: MessageTemplate("The config {key} is listed twice.", "Remove one of the lines."),
    AlterErrorCode.CONFIGS_TOO_LONG: MessageTemplate(
        "The configs have {length:,} characters; the limit is {most:,}.", "Remove some of the lines."
    ),
    AlterErrorCode.MIN_ISR_STAYS: MessageTemplate(
        "{topic} would have {factor:# replica|# replicas}, but min.insync.replicas is {min_isr}.",
        "Set min.insync.replicas in the same form.",
    ),
}
