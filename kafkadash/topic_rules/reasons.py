"""Coded reasons of items that the topic rules of a cluster do not allow, and of those that cannot be judged."""

from __future__ import annotations

from enum import StrEnum

from kafkadash.core.messages import CodedReason

Limits = tuple[int | None, int | None]
"""Least and most; None where there is no limit."""


class RuleReasonCode(StrEnum):
    """Codes of why an item breaks a rule; the values are stored."""

    NAME = "topic-rule-name"
    NAME_UNJUDGED = "topic-rule-name-unjudged"
    FACTOR = "topic-rule-factor"
    KEY = "topic-rule-key"
    VALUE = "topic-rule-value"
    INHERITED = "topic-rule-inherited"
    INHERITED_UNKNOWN = "topic-rule-inherited-unknown"


class NameNotAllowed(CodedReason, code=RuleReasonCode.NAME):
    name: str
    pattern: str


class NameUnjudged(CodedReason, code=RuleReasonCode.NAME_UNJUDGED):
    """PostgreSQL did not match the names in time."""

    pattern: str


class FactorNotAllowed(CodedReason, code=RuleReasonCode.FACTOR):
    factor: int
    allowed: Limits


class KeyNotAllowed(CodedReason, code=RuleReasonCode.KEY):
    key: str


class ValueNotAllowed(CodedReason, code=RuleReasonCode.VALUE):
    key: str
    value: str
    allowed: Limits


class InheritedNotAllowed(CodedReason, code=RuleReasonCode.INHERITED):
    """``value`` is in force where the config is not set."""

    key: str
    value: str
    allowed: Limits


class InheritedUnknown(CodedReason, code=RuleReasonCode.INHERITED_UNKNOWN):
    key: str
    allowed: Limits


UNJUDGED = (NameUnjudged, InheritedUnknown)
"""Reasons of items of which nobody can tell whether they keep the rules."""
