"""Codes of refusals of topic rules, of rules that cannot be met, and of the check of changes against them."""

from __future__ import annotations

from enum import StrEnum


class RuleErrorCode(StrEnum):
    """Codes; people search for the values."""

    NO_NUMBER = "topic-rules-no-number"
    RANGE_REVERSED = "topic-rules-range-reversed"
    MIN_ISR_ABOVE_FACTOR = "topic-rules-min-isr-above-factor"
    PATTERN_TOO_LONG = "topic-rules-pattern-too-long"
    PATTERN_WRONG = "topic-rules-pattern-wrong"
    PATTERN_TOO_SLOW = "topic-rules-pattern-too-slow"
    SCOPE_UNKNOWN = "topic-rules-scope-unknown"
    KEYS_MISSING = "topic-rules-keys-missing"
    KEYS_UNUSED = "topic-rules-keys-unused"
    KEY_FORMAT = "topic-rules-key-format"
    KEY_UNKNOWN = "topic-rules-key-unknown"
    TOO_MANY_LINES = "topic-rules-too-many-lines"
    BOUND_FORMAT = "topic-rules-bound-format"
    BOUND_REPEATED = "topic-rules-bound-repeated"
    BOUND_OF_MIN_ISR = "topic-rules-bound-of-min-isr"
    REASON_MISSING = "topic-rules-reason-missing"
    CHANGED_MEANWHILE = "topic-rules-changed-meanwhile"
    NEEDS_ROLE = "topic-rules-need-role"
    BROKEN = "topic-rules-broken"
    LEFT_OUT = "topic-rules-left-out"


class RuleConflictCode(StrEnum):
    """Codes of rules that no topic can keep, and of configs that new topics have to set because of a rule."""

    FACTOR_ABOVE_BROKERS = "topic-rules-factor-above-brokers"
    MIN_ISR_ABOVE_BROKERS = "topic-rules-min-isr-above-brokers"
    NOT_NUMERIC = "topic-rules-not-numeric"
    OUTSIDE_TYPE = "topic-rules-outside-type"
    DEFAULT_LOCKED = "topic-rules-default-locked"
    DEFAULT_OUTSIDE = "topic-rules-default-outside"


class RuleCheckTitle(StrEnum):
    """Codes of the titles of the check."""

    KEPT = "topic-rules-kept"
    RESTORED = "topic-rules-restored"
