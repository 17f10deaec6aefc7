"""Codes of refusals and notes of changes of configs, and of their check."""

from __future__ import annotations

from enum import StrEnum


class ConfigErrorCode(StrEnum):
    """Codes; people search for the values."""

    NOT_READ = "config-not-read"
    OWNER_UNKNOWN = "config-owner-unknown"
    KEY_MISSING = "config-key-missing"
    KEY_REPEATED = "config-key-repeated"
    TYPED_NO_VALUE = "config-typed-no-value"
    TYPED_NO_KEY = "config-typed-no-key"
    KEY_UNKNOWN = "config-key-unknown"
    KEY_READ_ONLY = "config-key-read-only"
    KEY_SENSITIVE = "config-key-sensitive"
    KEY_OF_THROTTLES = "config-key-of-throttles"
    KEY_TOO_LONG = "config-key-too-long"
    VALUE_OF_TYPE = "config-value-of-type"
    VALUE_TOO_LONG = "config-value-too-long"
    NOTHING_CHANGED = "config-nothing-changed"
    LEFT_OUT_GONE = "config-left-out-gone"
    LEFT_OUT_CHANGED = "config-left-out-changed"
    LEFT_OUT_SAME = "config-left-out-same"


class ConfigCheckTitle(StrEnum):
    """Codes of the titles of checks."""

    FITS = "config-edit-fits"
