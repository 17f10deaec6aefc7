"""Codes of checks and refusals of elections."""

from __future__ import annotations

from enum import StrEnum


class ElectionCheckCode(StrEnum):
    """Codes; people search for the values."""

    DOES_NOT_FIT = "election-does-not-fit"
    METADATA_OLD = "election-metadata-old"
    OUT_OF_SYNC_LEFT_OUT = "election-out-of-sync-left-out"
    SCOPE_UNKNOWN = "election-scope-unknown"


class ElectionCheckTitle(StrEnum):
    """Codes of the titles of checks."""

    FITS = "election-fits"
