"""Codes of entries that are no events of collectors, and of requests that cannot be answered."""

from __future__ import annotations

from enum import StrEnum


class TimelineCode(StrEnum):
    """Codes of entries: findings, changes, reassignments and maintenance."""

    FINDING_OPENED = "timeline-finding-opened"
    FINDING_CLOSED = "timeline-finding-closed"
    CHANGE_STEP = "timeline-change-step"
    MOVES_STARTED = "timeline-moves-started"
    MOVES_STARTED_BY_RUN = "timeline-moves-started-by-run"
    MOVES_COMPLETED = "timeline-moves-completed"
    MOVES_CANCELLED = "timeline-moves-cancelled"
    MOVES_SUPERSEDED = "timeline-moves-superseded"
    MOVES_OF_DELETED_TOPICS = "timeline-moves-of-deleted-topics"
    MOVES_ENDED_UNSEEN = "timeline-moves-ended-unseen"
    MAINTENANCE_BEGAN = "timeline-maintenance-began"
    MAINTENANCE_ENDED = "timeline-maintenance-ended"
    SILENCE_BEGAN = "timeline-silence-began"
    SILENCE_ENDED = "timeline-silence-ended"


class TimelineErrorCode(StrEnum):
    """Codes of problems with the address of a timeline."""

    MOMENT_UNREADABLE = "timeline-moment-unreadable"
    SPAN_EMPTY = "timeline-span-empty"
    BROKER_UNREADABLE = "timeline-broker-unreadable"
    EXPORT_TOO_LARGE = "timeline-export-too-large"
