"""Texts of the codes of topic rules."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate, Writer
from kafkadash.topic_rules.errors import RuleCheckTitle, RuleConflictCode, RuleErrorCode
from kafkadash.topic_rules.reasons import Limits, RuleReasonCode


def describe_limits(limits: Limits) -> str:
    """Return "1 to 3", "at least 2", "at most 3" or "3"."""
    least, most = limits
    if least is None or most is None:
        return f"at least {least:,}" if least is not None else f"at most {most:,}" if most is not None else "any value"
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


RULE_WRITERS: Mapping[str, Writer] = {"rule_limits": describe_limits}

RULE_ERROR_MESSAGES: Mapping[RuleErrorCode, MessageTemplate] = {
    RuleErrorCode.NO_NUMBER: MessageTemplate(
        "This is no whole number from 1 to {most:,}.", "Correct it, or leave the field empty."
    ),
    RuleErrorCode.RANGE_REVERSED: MessageTemplate(
        "No value can meet this: the minimum {least:,} is above the maximum {most:,}.", "Correct one of them."
    ),
    RuleErrorCode.MIN_ISR_ABOVE_FACTOR: MessageTemplate(
        "No topic can meet this: at least {min_isr} replicas in sync, at most {factor} replicas.",
        "Lower this minimum, or raise the maximum replication factor.",
    ),
    RuleErrorCode.PATTERN_TOO_LONG: MessageTemplate(
        "The pattern has {length:,} characters; the limit is {most}.", "Shorten it."
    ),
    RuleErrorCode.PATTERN_WRONG: MessageTemplate("PostgreSQL cannot use the pattern: {fault}.", "Correct it."),
    RuleErrorCode.PATTERN_TOO_SLOW: MessageTemplate(
        "The pattern takes more than {seconds:g} s to match.", "Use fewer nested repetitions and no back references."
    ),
    RuleErrorCode.SCOPE_UNKNOWN: MessageTemplate("There is no such choice.", "Choose one of those listed."),
    RuleErrorCode.KEYS_MISSING: MessageTemplate("No config is listed.", "List the configs, or choose “all”."),
    RuleErrorCode.KEYS_UNUSED: MessageTemplate(
        "Configs are listed below, and all may change.", "Choose another scope, or remove the list."
    ),
    RuleErrorCode.KEY_FORMAT: MessageTemplate(
        "{line} is no name of a config.", "Type one name per line, such as retention.ms."
    ),
    RuleErrorCode.KEY_UNKNOWN: MessageTemplate("Kafka describes no config {key} here.", "Correct the name."),
    RuleErrorCode.TOO_MANY_LINES: MessageTemplate("There are more than {most} lines.", "Remove some of them."),
    RuleErrorCode.BOUND_FORMAT: MessageTemplate(
        "{line} is no bound.", "Type one config per line with its limits, such as retention.ms=1h..30d."
    ),
    RuleErrorCode.BOUND_REPEATED: MessageTemplate("The config {key} is listed twice.", "Remove one of the lines."),
    RuleErrorCode.BOUND_OF_MIN_ISR: MessageTemplate(
        "Bounds of min.insync.replicas have fields of their own.", "Remove the line, and fill in these fields."
    ),
    RuleErrorCode.REASON_MISSING: MessageTemplate("A reason is required.", "State why the rules change."),
    RuleErrorCode.CHANGED_MEANWHILE: MessageTemplate(
        "Another user has changed the topic rules of {cluster}.", "Reload the page, then make your change again."
    ),
    RuleErrorCode.NEEDS_ROLE: MessageTemplate(
        "Topic rules of {cluster} need the role {roles}.", "Ask an administrator for the role."
    ),
    RuleErrorCode.BROKEN: MessageTemplate("{item}: {why:cause}", "{why:advice}"),
    RuleErrorCode.LEFT_OUT: MessageTemplate(
        "{items:# item is|# items are} left out by the topic rules, {first} among them: {why:cause}", "{why:advice}"
    ),
}

RULE_CONFLICT_MESSAGES: Mapping[RuleConflictCode, MessageTemplate] = {
    RuleConflictCode.FACTOR_ABOVE_BROKERS: MessageTemplate(
        "The rules want a replication factor of at least {least}; {brokers:# broker is|# brokers are} registered.",
        "Lower the minimum, or add brokers.",
    ),
    RuleConflictCode.MIN_ISR_ABOVE_BROKERS: MessageTemplate(
        "The rules want at least {least} replicas in sync; {brokers:# broker is|# brokers are} registered.",
        "Lower the minimum, or add brokers.",
    ),
    RuleConflictCode.NOT_NUMERIC: MessageTemplate(
        "{key} has a bound, and Kafka takes no number for it: its type is {type}.", "Remove the bound."
    ),
    RuleConflictCode.OUTSIDE_TYPE: MessageTemplate(
        "{key} has a bound that Kafka's type {type} cannot meet: {allowed:rule_limits}.", "Correct the bound."
    ),
    RuleConflictCode.DEFAULT_LOCKED: MessageTemplate(
        "No topic can be created: {key} is inherited as {value}, the rules want {allowed:rule_limits} and forbid "
        "setting it.",
        "Allow {key}, or change its bound or default.",
    ),
    RuleConflictCode.DEFAULT_OUTSIDE: MessageTemplate(
        "New topics have to set {key}: its inherited value {value} is outside the bound {allowed:rule_limits}.",
        "Change the bound or the default if that is not intended.",
    ),
}

_CHOOSE = "Choose another value."

RULE_MESSAGES: Mapping[RuleReasonCode, MessageTemplate] = {
    RuleReasonCode.NAME: MessageTemplate(
        "The topic rules allow only names that match {pattern}; {name} does not.", "Choose another name."
    ),
    RuleReasonCode.NAME_UNJUDGED: MessageTemplate(
        "Matching names with the pattern {pattern} of the topic rules took too long.",
        "Ask an administrator for a simpler pattern.",
    ),
    RuleReasonCode.FACTOR: MessageTemplate(
        "The replication factor is {factor}; the topic rules allow {allowed:rule_limits}.", _CHOOSE
    ),
    RuleReasonCode.KEY: MessageTemplate(
        "The topic rules do not allow {key} to be changed.", "Leave it out, or ask an administrator to allow it."
    ),
    RuleReasonCode.VALUE: MessageTemplate(
        "{key} would be {value}; the topic rules allow {allowed:rule_limits}.", _CHOOSE
    ),
    RuleReasonCode.INHERITED: MessageTemplate(
        "{key} would be inherited as {value}; the topic rules allow {allowed:rule_limits}.", "Set {key}."
    ),
    RuleReasonCode.INHERITED_UNKNOWN: MessageTemplate(
        "The inherited value of {key} is unknown; the topic rules allow {allowed:rule_limits}.", "Set {key}."
    ),
}

RULE_TITLES: Mapping[RuleCheckTitle, MessageTemplate] = {
    RuleCheckTitle.KEPT: MessageTemplate("Topic rules of the cluster are kept"),
    RuleCheckTitle.RESTORED: MessageTemplate("Rollback restores earlier values, allowed outside topic rules"),
}
