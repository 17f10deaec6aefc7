"""Codes of what people are refused when they plan maintenance or silence findings; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class MaintenanceErrorCode(StrEnum):
    """Codes; people search for the values."""

    REASON_MISSING = "maintenance-reason-missing"
    REASON_TOO_LONG = "maintenance-reason-too-long"
    SCOPE_UNKNOWN = "maintenance-scope-unknown"
    TIME_UNREADABLE = "maintenance-time-unreadable"
    TIME_SKIPPED = "maintenance-time-skipped"
    BEGIN_PAST = "maintenance-begin-past"
    BEGIN_TOO_LATE = "maintenance-begin-too-late"
    END_MISSING = "maintenance-end-missing"
    END_PAST = "maintenance-end-past"
    END_BEFORE_BEGIN = "maintenance-end-before-begin"
    TOO_LONG = "maintenance-too-long"
    OVERLAPS = "maintenance-overlaps"
    KIND_UNKNOWN = "silence-kind-unknown"
    NOTHING_SILENCED = "silence-of-nothing"
    SUBJECT_TOO_LONG = "silence-subject-too-long"
    TOO_MANY = "maintenance-too-many"
    OVER_ALREADY = "maintenance-over-already"
    PERIOD_UNKNOWN = "maintenance-unknown"
