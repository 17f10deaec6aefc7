"""Codes of notes of throttle removals, and of their check."""

from __future__ import annotations

from enum import StrEnum


class RemovalNoteCode(StrEnum):
    """Codes; people search for the values."""

    STATIC_LEFT_OUT = "removal-static-left-out"


class RemovalCheckTitle(StrEnum):
    """Codes of the titles of checks."""

    FITS = "removal-fits"
