"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class ExportErrorCode(StrEnum):
    """Codes; people search for the values."""

    FACTS_NOT_KEPT = "facts-not-kept"
    DISK_FULL = "disk-full"
    SEGMENTS_NOT_WRITTEN = "segments-not-written"
    ANOTHER_WRITES_HERE = "another-writes-here"
    FACTS_LOST = "facts-lost"
    FACTS_DAMAGED = "facts-damaged"
    PLACE_UNKNOWN = "place-unknown"
    SEGMENT_NOT_WHOLE = "segment-not-whole"
    SEGMENT_FROM_THE_FUTURE = "segment-from-the-future"
    SEGMENT_WITHOUT_SCHEMA = "segment-without-schema"
    SEGMENT_COLUMNS_DIFFER = "segment-columns-differ"
    SEGMENT_NOT_THERE = "segment-not-there"
    SEGMENT_ROWS_DIFFER = "segment-rows-differ"
    SEGMENT_ORPHAN = "segment-orphan"
    SNAPSHOT_TWICE = "snapshot-twice"
    SNAPSHOTS_MISSING = "snapshots-missing"
    FLUSHES_MISSING = "flushes-missing"
    FLUSH_MISNAMED = "flush-misnamed"
    NO_SEGMENTS = "no-segments"
    ANOTHER_WRITES_NOW = "another-writes-now"
