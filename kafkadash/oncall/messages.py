"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.domain.messages import MessageTemplate
from kafkadash.oncall.errors import OnCallErrorCode as Code

ONCALL_MESSAGES: Mapping[Code, MessageTemplate] = {
    # Filters and addresses of pages that name what is not there
    Code.FINDING_FORGOTTEN: MessageTemplate(
        "There is no finding {number}, or it closed so long ago that it is forgotten.",
        "The overview of the cluster lists those that are open.",
    ),
    Code.FINDING_CLOSED: MessageTemplate("", "This finding has closed; there is nothing left to take care of."),
    Code.NO_SUCH_RUNBOOK: MessageTemplate("", "There is no runbook {kind!r}; see the list of runbooks."),
    Code.DRILL_BROKERS_UNKNOWN: MessageTemplate("", "{cluster} has no {brokers}; {there}."),
    Code.DRILL_RACK_UNKNOWN: MessageTemplate("", "No broker of {cluster} is in a rack {rack}; {there}."),
    Code.DRILL_FENCED: MessageTemplate(
        "{brokers} fenced already: what that did has happened.", "The overview of the cluster shows it."
    ),
    Code.DRILL_NO_BROKER: MessageTemplate(
        "", "“{typed}” is no broker id: give numbers with commas between them, such as 1,2."
    ),
    Code.DRILL_TOO_MANY: MessageTemplate(
        "Only the first {most:,} of {many:,} brokers are looked at.", "Ask for the others by themselves."
    ),
}
