"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.export.errors import ExportErrorCode

_TRIED_AGAIN = "Nothing half is left; it is tried again every {seconds:g} s, and until then the facts wait."
_SET_ASIDE = "The pipeline leaves it out; what is in it is missing in the history, all else goes on."

EXPORT_MESSAGES: Mapping[ExportErrorCode, MessageTemplate] = {
    ExportErrorCode.FACTS_NOT_KEPT: MessageTemplate(
        "PyArrow is not installed where the workers run, so no facts are kept for the pipeline.",
        "Install the extra “pipeline”; what was read until then is not in the history.",
    ),
    ExportErrorCode.DISK_FULL: MessageTemplate(
        "Segments cannot be written to {place}: the disk is full.",
        "Make room. Nothing half is left; it is tried again every {seconds:g} s, and until then the facts wait.",
    ),
    ExportErrorCode.SEGMENTS_NOT_WRITTEN: MessageTemplate(
        "Segments cannot be written to {place}: {fault}.", _TRIED_AGAIN
    ),
    ExportErrorCode.ANOTHER_WRITES_HERE: MessageTemplate(
        "{file} is from another database of kafkadash than this one.",
        "Give each of the two a folder of its own; this one goes on with numbers of its own.",
    ),
    ExportErrorCode.FACTS_LOST: MessageTemplate(
        "{rows} of this refresh were dropped: more than {size} waited to be written.",
        "See why segments cannot be written; what is read from now on is kept again.",
    ),
    ExportErrorCode.FACTS_DAMAGED: MessageTemplate(
        "{rows} of this refresh could not be read back from the outbox and were dropped.",
        "See whether the database is well; the next refresh is kept again.",
    ),
    ExportErrorCode.PLACE_UNKNOWN: MessageTemplate(
        "{uri} is no place for segments: {fault}.", "Write file:///path, hdfs://host/path or s3a://bucket/path."
    ),
    ExportErrorCode.SEGMENT_NOT_WHOLE: MessageTemplate("{file} is not whole: {fault}.", _SET_ASIDE),
    ExportErrorCode.SEGMENT_FROM_THE_FUTURE: MessageTemplate(
        "{file} has the schema {version}; this release knows up to {known}.", "Upgrade what reads it, or move it away."
    ),
    ExportErrorCode.SEGMENT_WITHOUT_SCHEMA: MessageTemplate(
        "{file} does not say which schema it has.", "It is from something else: move it away."
    ),
    ExportErrorCode.SEGMENT_COLUMNS_DIFFER: MessageTemplate(
        "{file} has other columns than its schema: {columns}.", _SET_ASIDE
    ),
    ExportErrorCode.SEGMENT_NOT_THERE: MessageTemplate(
        "{manifest} names {file}, which is not there.", "Its rows are missing in the history."
    ),
    ExportErrorCode.SEGMENT_ROWS_DIFFER: MessageTemplate(
        "{file} has {found} of refresh {refresh}, the manifest says {told}.",
        "Do not trust either; what is read from now on is not touched by it.",
    ),
    ExportErrorCode.SEGMENT_ORPHAN: MessageTemplate(
        "{file} is named by no manifest.", "For the pipeline it does not exist: it may be deleted."
    ),
    ExportErrorCode.SNAPSHOT_TWICE: MessageTemplate(
        "{manifest} has refresh {refresh} for the second time.", "Its rows count twice in the history."
    ),
    ExportErrorCode.SNAPSHOTS_MISSING: MessageTemplate(
        "No manifest tells of {missing} before refresh {refresh} in {manifest}.", "They are missing in the history."
    ),
    ExportErrorCode.FLUSHES_MISSING: MessageTemplate(
        "Before {manifest} {missing}.", "Whatever they held is missing in the history."
    ),
    ExportErrorCode.FLUSH_MISNAMED: MessageTemplate(
        "{manifest} is the manifest of flush {flush}, as it says itself.", "Somebody moved or copied it."
    ),
    ExportErrorCode.NO_SEGMENTS: MessageTemplate(
        "There are no segments in {uri}.",
        "Name the folder in which the one of the manifests is, or see that beat runs, and a worker for the queue "
        "collect.",
    ),
    ExportErrorCode.ANOTHER_WRITES_NOW: MessageTemplate(
        "Another worker writes segments at this moment.", "What waits is in its flush, or the next."
    ),
}
