"""Codes of refusals of the form that alters topics."""

from __future__ import annotations

from enum import StrEnum


class AlterErrorCode(StrEnum):
    """Codes; people search for the values."""

    NOTHING_ASKED = "alter-nothing-asked"
    ALL_SO_ALREADY = "alter-all-so-already"
    INTERNAL_TOPIC = "alter-internal-topic"
    TOPIC_MOVING = "alter-topic-moving"
    NO_NUMBER = "alter-no-number"
    FEWER_PARTITIONS = "alter-fewer-partitions"
    TOO_MANY_PARTITIONS = "alter-too-many-partitions"
    ASSIGNMENT_OF_ONE = "alter-assignment-of-one"
    ASSIGNMENT_LENGTH = "alter-assignment-length"
    FACTOR_CONTRADICTS = "alter-factor-contradicts"
    CONFIG_FORMAT = "alter-config-format"
    CONFIG_TWICE = "alter-config-twice"
    CONFIGS_TOO_LONG = "alter-configs-too-long"
    MIN_ISR_STAYS = "alter-min-isr-stays"
