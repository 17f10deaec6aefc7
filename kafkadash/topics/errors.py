"""Codes of refusals of changes of topics, and of their checks."""

from __future__ import annotations

from enum import StrEnum


class TopicErrorCode(StrEnum):
    """Codes; people search for the values."""

    NAME_MISSING = "topic-name-missing"
    NAME_TOO_LONG = "topic-name-too-long"
    NAME_CHARACTERS = "topic-name-characters"
    NAME_DOTS = "topic-name-dots"
    NAME_INTERNAL = "topic-name-internal"
    NAME_REPEATED = "topic-name-repeated"
    NAME_TAKEN = "topic-name-taken"
    NAME_COLLIDES = "topic-name-collides"
    TOO_MANY_NAMES = "topic-too-many-names"
    TOO_MANY_REPLICAS = "topic-too-many-replicas"
    PARTITIONS_WRONG = "topic-partitions-wrong"
    FACTOR_WRONG = "topic-factor-wrong"
    DRAW_WRONG = "topic-draw-wrong"
    PLACEMENT_UNKNOWN = "topic-placement-unknown"
    RACK_MISSING = "topic-rack-missing"
    NO_BROKERS = "topic-no-brokers"
    ASSIGNMENT_MISSING = "topic-assignment-missing"
    ASSIGNMENT_FORMAT = "topic-assignment-format"
    ASSIGNMENT_UNEVEN = "topic-assignment-uneven"
    ASSIGNMENT_REPEATS = "topic-assignment-repeats"
    ASSIGNMENT_BROKER = "topic-assignment-broker"
    ASSIGNMENT_TOO_LONG = "topic-assignment-too-long"
    CONFIG_FORMAT = "topic-config-format"
    CONFIGS_TOO_LONG = "topic-configs-too-long"
    CONFIG_REPEATED = "topic-config-repeated"
    CONFIG_OF_THROTTLES = "topic-config-of-throttles"
    NOT_DELETABLE = "topic-not-deletable"
    COUNT_WRONG = "topic-count-wrong"
    MIN_ISR_TOO_HIGH = "topic-min-isr-too-high"


class TopicCheckTitle(StrEnum):
    """Codes of the titles of checks."""

    CREATION_FITS = "topic-creation-fits"
    GROWTH_FITS = "topic-growth-fits"
    DELETION_FITS = "topic-deletion-fits"
