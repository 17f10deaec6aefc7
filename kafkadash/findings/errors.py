"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class OnCallErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Filters and addresses of pages that name what is not there
    FINDING_FORGOTTEN = "finding-forgotten"
    FINDING_CLOSED = "finding-closed"
    NO_SUCH_RUNBOOK = "no-such-runbook"
    DRILL_BROKERS_UNKNOWN = "drill-brokers-unknown"
    DRILL_RACK_UNKNOWN = "drill-rack-unknown"
    DRILL_FENCED = "drill-fenced"
    DRILL_NO_BROKER = "drill-no-broker"
    DRILL_TOO_MANY = "drill-too-many"
