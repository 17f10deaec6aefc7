"""Codes of refusals and notes of elections, and of their check."""

from __future__ import annotations

from enum import StrEnum


class ElectionErrorCode(StrEnum):
    """Codes; people search for the values."""

    OUT_OF_SYNC_LEFT_OUT = "election-out-of-sync-left-out"
    SCOPE_UNKNOWN = "election-scope-unknown"


class ElectionCheckTitle(StrEnum):
    """Codes of the titles of checks."""

    FITS = "election-fits"
