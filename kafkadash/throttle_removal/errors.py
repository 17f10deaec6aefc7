"""Codes of checks of throttle removals."""

from __future__ import annotations

from enum import StrEnum


class RemovalCheckCode(StrEnum):
    """Codes; people search for the values."""

    DOES_NOT_FIT = "removal-does-not-fit"
    CONFIGS_OLD = "removal-configs-old"
    STATIC_LEFT_OUT = "removal-static-left-out"


class RemovalCheckTitle(StrEnum):
    """Codes of the titles of checks."""

    FITS = "removal-fits"
