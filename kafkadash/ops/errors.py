"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class OperationErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Filters and addresses that name unknown objects
    NO_SUCH_EVENT = "no-such-event"
    EVENT_NOT_LISTED = "event-not-listed"
    NO_SUCH_FORMAT = "no-such-format"
    OBJECT_UNNAMED = "object-unnamed"
    MOMENT_UNREADABLE = "moment-unreadable"

    # Commands on the server, and the checks of /readyz
    NOTHING_TO_CHANGE = "nothing-to-change"
    TEST_CANCELLED = "test-cancelled"
    TEST_NOT_TAKEN = "test-not-taken"
    TEST_TOO_SLOW = "test-too-slow"
    CHECK_UNKNOWN = "check-unknown"
    DATABASE_TOO_OLD = "database-too-old"
    DATABASE_SILENT = "database-silent"
    REDIS_SILENT = "redis-silent"
    NOT_KNOWN_WITHOUT_DATABASE = "not-known-without-database"
    CLOCK_WRONG = "clock-wrong"
    NEVER_TICKED = "never-ticked"
    TICK_LATE = "tick-late"
    COLLECTION_LATE = "collection-late"
    COLLECTION_STANDS = "collection-stands"
    CLUSTERS_SILENT = "clusters-silent"
    RUN_LATE = "run-late"
