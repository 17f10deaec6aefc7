"""Texts of the codes of throttle removals."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.throttle_removal.errors import RemovalCheckTitle, RemovalNoteCode
from kafkadash.throttle_removal.reasons import RemovalReasonCode

REMOVAL_NOTE_MESSAGES: Mapping[RemovalNoteCode, MessageTemplate] = {
    RemovalNoteCode.STATIC_LEFT_OUT: MessageTemplate(
        "{throttles:# throttle is|# throttles are} left out: set in a broker's configuration file.",
        "Remove it from the file, then restart the broker.",
    ),
}

REMOVAL_TITLES: Mapping[RemovalCheckTitle, MessageTemplate] = {
    RemovalCheckTitle.FITS: MessageTemplate("Throttles have the planned values, and nothing needs them"),
}

REMOVAL_MESSAGES: Mapping[RemovalReasonCode, MessageTemplate] = {
    RemovalReasonCode.NEEDED: MessageTemplate("A reassignment in flight needs this throttle.", "Wait for its end."),
    RemovalReasonCode.OURS: MessageTemplate("A run of kafkadash uses this throttle.", "The run removes it at its end."),
    RemovalReasonCode.VALUE_CHANGED: MessageTemplate(
        "The throttle is {value:rate}, planned with {expected:rate}.", "Refresh the plan."
    ),
    RemovalReasonCode.NOT_ORPHAN: MessageTemplate("The throttle is no longer an orphan.", "Refresh the plan."),
    RemovalReasonCode.RUN_ACTIVE: MessageTemplate(
        "The run of #{number} sets and removes throttles on this cluster.", "The removal starts after its end."
    ),
}
