"""Texts of the codes of maintenance windows and silences."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.maintenance.errors import MaintenanceErrorCode as Code

MAINTENANCE_MESSAGES: Mapping[Code, MessageTemplate] = {
    Code.REASON_MISSING: MessageTemplate("The reason is missing.", "Enter why, for example a change number."),
    Code.REASON_TOO_LONG: MessageTemplate("The reason has {typed:,} characters.", "Enter at most {most:,}."),
    Code.SCOPE_UNKNOWN: MessageTemplate(
        "This cluster has no such broker or rack now.", "Choose the cluster, a broker or a rack from the list."
    ),
    Code.TIME_UNREADABLE: MessageTemplate("“{typed}” is not a date and time.", "Enter one such as 2026-11-27T02:10."),
    Code.TIME_SKIPPED: MessageTemplate(
        "{typed} does not exist in {time_zone}: clocks are set forward over it.", "Enter a time before or after it."
    ),
    Code.BEGIN_PAST: MessageTemplate(
        "The begin is in the past.", "Leave it empty to begin now, or enter a later time. Check the time zone."
    ),
    Code.BEGIN_TOO_LATE: MessageTemplate(
        "The begin is more than {days} days ahead.", "Add the window when it is nearer."
    ),
    Code.END_MISSING: MessageTemplate("The end is missing.", "Enter when receivers are notified again."),
    Code.END_PAST: MessageTemplate("The end is in the past.", "Enter a later time. Check the time zone."),
    Code.END_BEFORE_BEGIN: MessageTemplate("The end is not after the begin.", "Enter a later end."),
    Code.TOO_LONG: MessageTemplate("More than {days} days are not possible.", "Enter an earlier end."),
    Code.OVERLAPS: MessageTemplate(
        "The same is planned already from {begins:moment} to {ends:moment} (number {number}).",
        "End that one first, or choose a time outside it.",
    ),
    Code.KIND_UNKNOWN: MessageTemplate("There is no such kind of finding.", "Choose one from the list."),
    Code.NOTHING_SILENCED: MessageTemplate(
        "Neither a kind nor a subject is chosen.", "Choose one of both. To expect all findings, plan maintenance."
    ),
    Code.SUBJECT_TOO_LONG: MessageTemplate("The subject has {typed:,} characters.", "Enter at most {most:,}."),
    Code.TOO_MANY: MessageTemplate(
        "This cluster has {most} windows and silences that are not over.", "End those that are not needed first."
    ),
    Code.OVER_ALREADY: MessageTemplate("This window or silence is over already.", "Nothing is left to do."),
    Code.PERIOD_UNKNOWN: MessageTemplate(
        "{cluster} has no window or silence {number}.", "It may have been cancelled, or forgotten after its time."
    ),
}
