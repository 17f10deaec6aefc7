"""Codes of checks and refusals of cancellations."""

from __future__ import annotations

from enum import StrEnum


class CancelCheckCode(StrEnum):
    """Codes; people search for the values."""

    DOES_NOT_FIT = "cancel-does-not-fit"
    REASSIGNMENTS_OLD = "cancel-reassignments-old"
    OURS_LEFT_OUT = "cancel-ours-left-out"


class CancelCheckTitle(StrEnum):
    """Codes of the titles of checks."""

    FITS = "cancel-fits"
