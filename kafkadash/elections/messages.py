"""Texts of the codes of elections."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.elections.errors import ElectionCheckTitle, ElectionErrorCode
from kafkadash.elections.reasons import ElectionReasonCode

ELECTION_ERROR_MESSAGES: Mapping[ElectionErrorCode, MessageTemplate] = {
    ElectionErrorCode.OUT_OF_SYNC_LEFT_OUT: MessageTemplate(
        "{partitions:# partition is|# partitions are} left out: the preferred leader is not in the ISR.",
        "Elect leaders again when its replicas have caught up.",
    ),
    ElectionErrorCode.SCOPE_UNKNOWN: MessageTemplate(
        "{cluster} has no such broker or topic.", "Open the page of a broker or topic, and elect leaders from there."
    ),
    ElectionErrorCode.CLEAN_LEFT_OUT: MessageTemplate(
        "{partitions:# partition is|# partitions are} left out: a live replica has all committed records.",
        "Wait for Kafka's own election, or check the controllers.",
    ),
    ElectionErrorCode.NO_REPLICA_LEFT_OUT: MessageTemplate(
        "{partitions:# partition is|# partitions are} left out: no replica is live.", "Start a broker of its replicas."
    ),
    ElectionErrorCode.LED_LEFT_OUT: MessageTemplate(
        "{partitions:# partition is|# partitions are} left out: the preferred leader leads already.",
        "No action needed.",
    ),
    ElectionErrorCode.PARTITIONS_MISSING: MessageTemplate("", "Enter at least one partition, such as orders-3."),
    ElectionErrorCode.PARTITION_FORMAT: MessageTemplate(
        "“{typed}” is not a partition.", "Enter topic, hyphen and number, such as orders-3."
    ),
    ElectionErrorCode.PARTITION_UNKNOWN: MessageTemplate(
        "{cluster} has no partition {partition}.", "Remove it, or wait for the next refresh."
    ),
    ElectionErrorCode.TOO_MANY_PARTITIONS: MessageTemplate(
        "{partitions:,} partitions are more than {most:,}.", "Choose a topic or a broker instead."
    ),
}

ELECTION_TITLES: Mapping[ElectionCheckTitle, MessageTemplate] = {
    ElectionCheckTitle.FITS: MessageTemplate("Preferred leaders are in sync, replicas are as planned"),
    ElectionCheckTitle.UNCLEAN_FITS: MessageTemplate("Only an unclean election is left, replicas are as planned"),
}

ELECTION_MESSAGES: Mapping[ElectionReasonCode, MessageTemplate] = {
    ElectionReasonCode.PARTITION_GONE: MessageTemplate("The partition no longer exists.", "Refresh the plan."),
    ElectionReasonCode.TOPIC_RECREATED: MessageTemplate(
        "The topic was deleted and created again.", "Refresh the plan."
    ),
    ElectionReasonCode.REPLICAS_CHANGED: MessageTemplate(
        "The replicas are {replicas:brokers}, planned with {expected:brokers}.", "Refresh the plan."
    ),
    ElectionReasonCode.PREFERRED_OUT_OF_SYNC: MessageTemplate(
        "The preferred leader, broker {broker}, is not in the ISR.", "Wait until its replica has caught up."
    ),
    ElectionReasonCode.CLEAN_POSSIBLE: MessageTemplate(
        "Broker {broker} is live and has all committed records, so Kafka can elect it without loss.",
        "Withdraw this change.",
    ),
    ElectionReasonCode.NO_REPLICA_LIVE: MessageTemplate(
        "No replica is live, so Kafka cannot elect any.", "Start a broker of the replicas."
    ),
    ElectionReasonCode.LED_SINCE: MessageTemplate(
        "The partition had a leader since the plan.", "Refresh the plan, and check the loss again."
    ),
    ElectionReasonCode.CHOICE_CHANGED: MessageTemplate(
        "Kafka's choice is now {now}; broker {planned} was planned.", "Refresh the plan, and check the loss again."
    ),
    ElectionReasonCode.LED_AGAIN: MessageTemplate(
        "Broker {leader} leads again, with all committed records.", "No action needed."
    ),
    ElectionReasonCode.LED_BY_ANOTHER: MessageTemplate(
        "Broker {leader} leads, not broker {planned} as planned.", "Check the log ends of the topic."
    ),
}
