"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class CollectionErrorCode(StrEnum):
    """Codes; people search for the values."""

    # What is looked for and is not there: verifications, plans and reassignments
    NO_SUCH_REASSIGNMENT = "no-such-reassignment"
    NO_HISTORY_OF_TOPIC = "no-history-of-topic"
    NO_HISTORY_OF_NODE = "no-history-of-node"

    # Results of the pipeline that are not taken in, whole or in part
    NO_MARKER = "result-marker-unreadable"
    MARKER_FROM_FUTURE = "result-from-the-future"
    RESULT_KIND_UNKNOWN = "result-kind-unknown"
    FILES_MISSING = "result-files-missing"
    RESULT_DAMAGED = "result-damaged"
    COLUMNS_WRONG = "result-columns-wrong"
    RESULTS_NEED_PYARROW = "no-pyarrow-for-results"
    STORE_SILENT = "pipeline-store-silent"

    # Clusters that do not answer, and what a connection test finds
    ANOTHER_COLLECTOR = "another-collector"
    COLLECTOR_FAULT = "collector-fault"
    COLLECTOR_SET_ASIDE = "collector-set-aside"
    COLLECTED_BY_ANOTHER = "collected-by-another"
    REFRESH_FAILED = "refresh-failed"
    NEVER_REFRESHED = "never-refreshed"
    READ_DENIED = "read-denied"
    NEVER_ALLOWED = "never-allowed"
    READ_IN_PART = "read-in-part"

    # What leaves for the pipeline, and what is wrong with it
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

    # Filters and addresses of pages that name what is not there
    CHOICE_UNKNOWN = "choice-unknown"
    COLUMN_UNKNOWN = "column-unknown"
    PARTITIONS_NO_BROKER = "partitions-no-broker"
    REASSIGNMENTS_NO_BROKER = "reassignments-no-broker"
    BROKER_NOT_SEEN = "broker-not-seen"
    TOPIC_NOT_SEEN = "topic-not-seen"
    GROUP_NOT_SEEN = "group-not-seen"
