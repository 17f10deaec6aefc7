"""Codes of refusals of changes of consumer groups, and of their checks."""

from __future__ import annotations

from enum import StrEnum


class GroupErrorCode(StrEnum):
    """Codes; people search for the values."""

    RULE_UNKNOWN = "group-rule-unknown"
    TIME_WRONG = "group-time-wrong"
    TIME_AHEAD = "group-time-ahead"
    SHIFT_WRONG = "group-shift-wrong"
    TOPIC_UNKNOWN = "group-topic-unknown"
    PARTITIONS_FORMAT = "group-partitions-format"
    PARTITIONS_ALONE = "group-partitions-alone"
    PARTITION_UNKNOWN = "group-partition-unknown"
    OFFSETS_MISSING = "group-offsets-missing"
    OFFSETS_FORMAT = "group-offsets-format"
    OFFSETS_REPEATED = "group-offsets-repeated"
    OFFSETS_TOO_LONG = "group-offsets-too-long"
    DOES_NOT_FIT = "group-does-not-fit"
    NO_OFFSETS = "group-no-offsets"
    TOPIC_LEFT_OUT = "group-topic-left-out"
    NOT_EMPTY_LEFT_OUT = "group-not-empty-left-out"
    SUBSCRIBED_LEFT_OUT = "group-subscribed-left-out"
    DATA_STALE = "group-data-stale"
    PATTERN_MISSING = "group-pattern-missing"
    TOO_MANY = "group-too-many"
    NO_COMMITS_OF_TYPE = "group-no-commits-of-type"


class GroupCheckTitle(StrEnum):
    """Codes of the titles of checks."""

    RESET_FITS = "group-reset-fits"
    DELETION_FITS = "group-deletion-fits"
    OFFSET_DELETION_FITS = "group-offset-deletion-fits"
