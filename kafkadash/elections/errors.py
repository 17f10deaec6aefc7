"""Codes of refusals and notes of elections, and of their check."""

from __future__ import annotations

from enum import StrEnum


class ElectionErrorCode(StrEnum):
    """Codes; people search for the values."""

    OUT_OF_SYNC_LEFT_OUT = "election-out-of-sync-left-out"
    SCOPE_UNKNOWN = "election-scope-unknown"
    CLEAN_LEFT_OUT = "election-clean-left-out"
    NO_REPLICA_LEFT_OUT = "election-no-replica-left-out"
    LED_LEFT_OUT = "election-led-left-out"
    PARTITIONS_MISSING = "election-partitions-missing"
    PARTITION_FORMAT = "election-partition-format"
    PARTITION_UNKNOWN = "election-partition-unknown"
    TOO_MANY_PARTITIONS = "election-too-many-partitions"


class ElectionCheckTitle(StrEnum):
    """Codes of the titles of checks."""

    FITS = "election-fits"
    UNCLEAN_FITS = "election-unclean-fits"
