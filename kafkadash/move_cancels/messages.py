"""Texts of the codes of cancellations."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.move_cancels.errors import CancelCheckTitle, CancelNoteCode
from kafkadash.move_cancels.reasons import CancelReasonCode

CANCEL_NOTE_MESSAGES: Mapping[CancelNoteCode, MessageTemplate] = {
    CancelNoteCode.OURS_LEFT_OUT: MessageTemplate(
        "{moves:# reassignment|# reassignments} of kafkadash left out.", "Cancel them on the pages of their runs."
    ),
}

CANCEL_TITLES: Mapping[CancelCheckTitle, MessageTemplate] = {
    CancelCheckTitle.FITS: MessageTemplate("Reassignments are as planned, and none is of kafkadash"),
}

CANCEL_MESSAGES: Mapping[CancelReasonCode, MessageTemplate] = {
    CancelReasonCode.TOPIC_GONE: MessageTemplate("The topic was deleted, or created again.", "Refresh the plan."),
    CancelReasonCode.ENDED: MessageTemplate(
        "The reassignment had ended: the replicas are {replicas:brokers}.", "No action needed."
    ),
    CancelReasonCode.OURS: MessageTemplate("A run of kafkadash moves this partition.", "Cancel it on the run's page."),
    CancelReasonCode.MOVE_CHANGED: MessageTemplate(
        "The reassignment is another one now: it adds {adding:few} and removes {removing:few}.", "Refresh the plan."
    ),
    CancelReasonCode.NOTHING_IN_SYNC: MessageTemplate(
        "None of the remaining replicas {replicas:brokers} is in sync: Kafka refuses the cancel.",
        "Wait until one of them is in the ISR.",
    ),
}
