"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.export.errors import ExportErrorCode

_TRIED_AGAIN = "kafkadash retries every {seconds:g} s. Until then, facts wait in the outbox; no partial files remain."
_QUARANTINED = "The pipeline skips this file, so its rows are missing from the history."

EXPORT_MESSAGES: Mapping[ExportErrorCode, MessageTemplate] = {
    ExportErrorCode.FACTS_NOT_KEPT: MessageTemplate(
        "PyArrow is not installed on the workers, so no facts are kept for the pipeline.",
        "Install the extra “pipeline”. Facts read before that are missing from the history.",
    ),
    ExportErrorCode.DISK_FULL: MessageTemplate(
        "Segments cannot be written to {place}: the disk is full.", "Free disk space. " + _TRIED_AGAIN
    ),
    ExportErrorCode.SEGMENTS_NOT_WRITTEN: MessageTemplate(
        "Segments cannot be written to {place}: {fault}.", _TRIED_AGAIN
    ),
    ExportErrorCode.ANOTHER_WRITES_HERE: MessageTemplate(
        "{file} was written by another kafkadash database.",
        "Use a separate folder for each installation. This one continues with its own numbers.",
    ),
    ExportErrorCode.FACTS_LOST: MessageTemplate(
        "{rows} of this refresh were dropped: more than {size} were waiting to be written.",
        "Check why segments cannot be written. New facts are kept.",
    ),
    ExportErrorCode.FACTS_DAMAGED: MessageTemplate(
        "{rows} of this refresh could not be read from the outbox and were dropped.",
        "Check the database. The next refresh is kept.",
    ),
    ExportErrorCode.PLACE_UNKNOWN: MessageTemplate(
        "{uri} is not a valid location for segments: {fault}.",
        "Use file:///path, hdfs://host/path or s3a://bucket/path.",
    ),
    ExportErrorCode.SEGMENT_NOT_WHOLE: MessageTemplate("{file} is incomplete: {fault}.", _QUARANTINED),
    ExportErrorCode.SEGMENT_FROM_THE_FUTURE: MessageTemplate(
        "{file} has schema version {version}; this release supports versions up to {known}.",
        "Upgrade the reader, or move the file to another folder.",
    ),
    ExportErrorCode.SEGMENT_WITHOUT_SCHEMA: MessageTemplate(
        "{file} has no schema version.", "kafkadash did not write this file. Move it to another folder."
    ),
    ExportErrorCode.SEGMENT_COLUMNS_DIFFER: MessageTemplate(
        "Columns of {file} differ from its schema: {columns}.", _QUARANTINED
    ),
    ExportErrorCode.SEGMENT_NOT_THERE: MessageTemplate(
        "{manifest} names {file}, which does not exist.", "Its rows are missing from the history."
    ),
    ExportErrorCode.SEGMENT_ROWS_DIFFER: MessageTemplate(
        "{file} has {found} of refresh {refresh}; the manifest has {told}.",
        "Do not trust either number. Later refreshes are not affected.",
    ),
    ExportErrorCode.SEGMENT_ORPHAN: MessageTemplate(
        "{file} is in no manifest.", "The pipeline ignores this file. You can delete it."
    ),
    ExportErrorCode.SNAPSHOT_TWICE: MessageTemplate(
        "{manifest} contains refresh {refresh} a second time.", "Its rows count twice in the history."
    ),
    ExportErrorCode.SNAPSHOTS_MISSING: MessageTemplate(
        "No manifest contains the {missing} before refresh {refresh} in {manifest}.",
        "They are missing from the history.",
    ),
    ExportErrorCode.FLUSHES_MISSING: MessageTemplate(
        "Before {manifest}, {missing}.", "The rows of missing flushes are missing from the history."
    ),
    ExportErrorCode.FLUSH_MISNAMED: MessageTemplate(
        "{manifest} contains the manifest of flush {flush}.", "The file was moved or copied. Restore its name."
    ),
    ExportErrorCode.NO_SEGMENTS: MessageTemplate(
        "No segments in {uri}.",
        "Enter the parent folder of the manifests, or check that Celery beat and a worker for the queue collect are "
        "running.",
    ),
    ExportErrorCode.ANOTHER_WRITES_NOW: MessageTemplate(
        "Another worker is writing segments.", "Waiting facts are in its flush or in the next one."
    ),
}
