"""Codes of notes of cancellations, and of their check."""

from __future__ import annotations

from enum import StrEnum


class CancelNoteCode(StrEnum):
    """Codes; people search for the values."""

    OURS_LEFT_OUT = "cancel-ours-left-out"


class CancelCheckTitle(StrEnum):
    """Codes of the titles of checks."""

    FITS = "cancel-fits"
