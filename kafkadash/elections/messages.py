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
}

ELECTION_TITLES: Mapping[ElectionCheckTitle, MessageTemplate] = {
    ElectionCheckTitle.FITS: MessageTemplate("Preferred leaders are in sync, replicas are as planned"),
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
}
