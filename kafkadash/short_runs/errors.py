"""Codes of refusals of changes that are lists of items."""

from __future__ import annotations

from enum import StrEnum


class ShortRunErrorCode(StrEnum):
    """Codes; people search for the values."""

    ITEM_DOES_NOT_FIT = "item-does-not-fit"
    FACTS_OLD = "item-facts-old"
    NOTHING_TO_DO = "nothing-to-do"
    TOO_MANY_ITEMS = "too-many-items"
    NOT_CONFIRMED = "short-run-not-confirmed"
    NOT_PROPOSED = "short-run-not-proposed"
    NO_PROPOSER = "short-run-no-proposer"
    NO_SHORT_CHANGE = "no-short-change"
    NOT_VALIDATED = "short-items-not-validated"
    NOT_VALIDATED_YET = "short-items-not-validated-yet"
    NO_ROLLBACK = "short-run-no-rollback"
    RUN_STILL_HERE = "short-run-still-here"
    ITEMS_IN_FLIGHT = "short-items-in-flight"


class ShortCheckTitle(StrEnum):
    """Codes of the titles of checks that several kinds have."""

    VALIDATED = "short-items-validated"
