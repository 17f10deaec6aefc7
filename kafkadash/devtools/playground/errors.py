"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class PlaygroundErrorCode(StrEnum):
    """Codes; people search for the values."""

    # The playground: real Kafka on one's own machine
    NO_JAVA = "no-java"
    NO_CLASS_ARCHIVE = "no-class-archive"
    ARCHIVE_NOT_WRITTEN = "archive-not-written"
    JAR_LINE_UNREADABLE = "jar-line-unreadable"
    JAR_CHANGED = "jar-changed"
    JAR_NOT_GIVEN = "jar-not-given"
    JARS_NOT_FETCHED = "jars-not-fetched"
    CACHE_FULL = "cache-full"
    CACHE_NOT_USABLE = "cache-not-usable"
    NO_PLAYGROUND = "no-playground"
    PLAYGROUND_UNREADABLE = "playground-unreadable"
    PLAYGROUND_HAS_COMMA = "playground-has-comma"
    PLAYGROUND_IS_OTHER = "playground-is-other"
    PLAYGROUND_TOO_SMALL = "playground-too-small"
    RACKS_DO_NOT_FIT = "racks-do-not-fit"
    CONTROLLERS_CANNOT_MOVE = "controllers-cannot-move"
    STORAGE_NOT_FORMATTED = "storage-not-formatted"
    NOBODY_TO_JOIN = "nobody-to-join"
    ADDED_BUT_NOT_STARTED = "added-but-not-started"
    NOT_ALL_JOINED = "not-all-joined"
    NODE_UNKNOWN = "node-unknown"
    NODE_RUNS = "node-runs"
    NODE_DOES_NOT_RUN = "node-does-not-run"
    TOOL_UNKNOWN = "tool-unknown"
    TOPIC_REFUSED = "topic-refused"
    NO_LEADERS = "no-leaders"
    DATA_NOT_TAKEN = "data-not-taken"
    PLAYGROUND_SILENT = "playground-silent"
    NO_TOPIC_TO_WRITE = "no-topic-to-write"
