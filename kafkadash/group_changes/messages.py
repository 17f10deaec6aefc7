"""Texts of the codes of changes of consumer groups."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate, Writer
from kafkadash.group_changes.errors import GroupCheckTitle, GroupErrorCode
from kafkadash.group_changes.reasons import GroupReasonCode

GROUP_CHANGE_WRITERS: Mapping[str, Writer] = {
    "committed_offset": lambda offset: "none" if offset is None else f"{offset:,}",
}

GROUP_CHANGE_ERROR_MESSAGES: Mapping[GroupErrorCode, MessageTemplate] = {
    GroupErrorCode.RULE_UNKNOWN: MessageTemplate("There is no such target.", "Choose one of those listed."),
    GroupErrorCode.TIME_WRONG: MessageTemplate("The time cannot be read.", "Type it as 2026-11-26 09:30, in UTC."),
    GroupErrorCode.TIME_AHEAD: MessageTemplate("The time is in the future.", "Correct it, or choose Latest."),
    GroupErrorCode.SHIFT_WRONG: MessageTemplate(
        "The shift must be a whole number other than 0.", "Type -100 to go back, 100 to go forward."
    ),
    GroupErrorCode.TOPIC_UNKNOWN: MessageTemplate(
        "The group has no committed offsets of such a topic.", "Choose one of those listed."
    ),
    GroupErrorCode.PARTITIONS_FORMAT: MessageTemplate(
        "{part} is no partition or range of partitions.", "Type partitions as 0, 2, 5-7."
    ),
    GroupErrorCode.PARTITIONS_ALONE: MessageTemplate("Partitions need a topic.", "Choose the topic."),
    GroupErrorCode.PARTITION_UNKNOWN: MessageTemplate(
        "There is no partition {topic}-{partition}.", "Correct the topic or the number."
    ),
    GroupErrorCode.OFFSETS_MISSING: MessageTemplate(
        "No offsets are typed.", "Type one partition per line, such as orders-0=1200."
    ),
    GroupErrorCode.OFFSETS_FORMAT: MessageTemplate(
        "{line} is no partition with an offset.", "Type one per line, such as orders-0=1200."
    ),
    GroupErrorCode.OFFSETS_REPEATED: MessageTemplate("{partition} is listed twice.", "Remove one of the lines."),
    GroupErrorCode.OFFSETS_TOO_LONG: MessageTemplate(
        "The offsets have {length:,} characters; the limit is {most:,}.", "Reset the others with a second change."
    ),
    GroupErrorCode.DOES_NOT_FIT: MessageTemplate("{item}: {why:cause}", "{why:advice}"),
    GroupErrorCode.NO_OFFSETS: MessageTemplate(
        "Group {group} has no committed offsets in this scope.", "Choose another topic."
    ),
    GroupErrorCode.TOPIC_LEFT_OUT: MessageTemplate("Topic {topic} no longer exists.", "Kafka removes its offsets."),
    GroupErrorCode.NOT_EMPTY_LEFT_OUT: MessageTemplate(
        "Group {group} is not empty: its state is {state}.", "Stop its consumers first."
    ),
    GroupErrorCode.SUBSCRIBED_LEFT_OUT: MessageTemplate(
        "Members of group {group} read topic {topic}.", "Stop these consumers first."
    ),
    GroupErrorCode.DATA_STALE: MessageTemplate(
        "The data of group {group} is stale.", "Wait until its coordinator answers."
    ),
    GroupErrorCode.PATTERN_MISSING: MessageTemplate(
        "A part of the names is required.", "Type a part that all groups to delete have."
    ),
    GroupErrorCode.NO_COMMITS_OF_TYPE: MessageTemplate(
        "Group {group} is a {kind} group: kafkadash changes groups with committed offsets only.",
        "Use Kafka's tool for its type, such as kafka-share-groups.",
    ),
    GroupErrorCode.TOO_MANY: MessageTemplate("One change deletes at most {most:,} groups.", "Choose fewer groups."),
}

GROUP_CHANGE_TITLES: Mapping[GroupCheckTitle, MessageTemplate] = {
    GroupCheckTitle.RESET_FITS: MessageTemplate("The group is empty, offsets are as planned with"),
    GroupCheckTitle.DELETION_FITS: MessageTemplate("Groups are empty, offsets are as planned with"),
    GroupCheckTitle.OFFSET_DELETION_FITS: MessageTemplate("No member reads the topic, offsets are as planned with"),
}

_REFRESH = "Refresh the plan."

GROUP_CHANGE_MESSAGES: Mapping[GroupReasonCode, MessageTemplate] = {
    GroupReasonCode.GONE: MessageTemplate("The group no longer exists.", _REFRESH),
    GroupReasonCode.ACTIVE: MessageTemplate(
        "The group is not empty: its state is {state}.", "Stop its consumers first."
    ),
    GroupReasonCode.SUBSCRIBED: MessageTemplate("Members of the group read the topic.", "Stop these consumers first."),
    GroupReasonCode.TOPIC_GONE: MessageTemplate("The topic no longer exists.", _REFRESH),
    GroupReasonCode.TOPIC_RECREATED: MessageTemplate("The topic was deleted and created again.", _REFRESH),
    GroupReasonCode.PARTITION_GONE: MessageTemplate("The partition does not exist.", _REFRESH),
    GroupReasonCode.OFFSET_MOVED: MessageTemplate(
        "The committed offset is {committed:committed_offset}, planned with {expected:committed_offset}.", _REFRESH
    ),
    GroupReasonCode.OFFSETS_MOVED: MessageTemplate("The committed offsets are others than planned with.", _REFRESH),
    GroupReasonCode.NOT_COMMITTED: MessageTemplate(
        "There is no committed offset to shift.", "Leave the partition out, or choose another target."
    ),
    GroupReasonCode.OUT_OF_LOG: MessageTemplate(
        "Offset {offset:,} is outside the log, which has {start:,} to {end:,}.", "Choose an offset within the log."
    ),
}
