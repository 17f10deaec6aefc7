"""Texts of this app's codes (``errors``): what is wrong, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.pipeline.errors import PipelineErrorCode as Code

_QUARANTINED = "The file is quarantined; the other files were processed."

PIPELINE_MESSAGES: Mapping[Code, MessageTemplate] = {
    # The pipeline, and the files that it quarantines
    Code.NO_PYSPARK: MessageTemplate(
        "PySpark is not installed.", "Install kafkadash with the extra “pipeline”: make setup."
    ),
    Code.NO_PYARROW: MessageTemplate(
        "PyArrow is not installed.", "Install kafkadash with the extra “pipeline”: make setup."
    ),
    Code.NO_JAVA_FOR_SPARK: MessageTemplate(
        "Spark needs Java {version} or newer, which was not found.",
        "Install Java, or set JAVA_HOME. Only history and forecasts need Spark.",
    ),
    Code.JAVA_HOME_UNUSABLE: MessageTemplate(
        "JAVA_HOME ({home}) has no Java {version} or newer.", "Correct JAVA_HOME, or unset it to use Java from PATH."
    ),
    Code.SPARK_NOT_STARTED: MessageTemplate(
        "Spark did not start: {fault}.", "See Spark's output above, correct the cause, and start again."
    ),
    Code.SPARK_SETTING_UNREADABLE: MessageTemplate(
        "“{given}” in PIPELINE_SPARK_CONF is not a Spark setting.",
        "Write spark.name=value, separated by semicolons.",
    ),
    Code.ADDRESS_UNUSABLE: MessageTemplate(
        "“{address}” is not the address of a folder.", "Set PIPELINE_URI to an address with file:, hdfs: or s3a:."
    ),
    Code.ADDRESS_UNREACHABLE: MessageTemplate(
        "{address} is not readable and writable: {fault}.",
        "Check that the folder exists and this user may write to it, or change PIPELINE_URI.",
    ),
    Code.ANOTHER_PIPELINE: MessageTemplate(
        "Another pipeline, process {pid}, uses {address}.", "Stop that process first."
    ),
    Code.BATCH_FAILED: MessageTemplate(
        "The pipeline stopped: {fault}.",
        "See its log, then start it again. It resumes with the unfinished batch, and nothing is lost.",
    ),
    Code.FILE_GONE: MessageTemplate("The manifest lists this file, but it does not exist.", "History lacks its data."),
    Code.FILE_TRUNCATED: MessageTemplate(
        "The file is truncated or damaged: {fault}.",
        f"{_QUARANTINED} Check the disk of the segments for free space and faults.",
    ),
    Code.FILE_FROM_FUTURE: MessageTemplate(
        "The file has schema {version}; this pipeline reads schemas up to {known}.",
        "Update the pipeline to the release of the collectors, then run manage.py pipeline backfill for that time.",
    ),
    Code.FILE_UNLIKE: MessageTemplate(
        "The file is not a segment of this kind: {column} is missing or has another type.",
        f"{_QUARANTINED} Check for other programs that write to this folder.",
    ),
    Code.FILE_WITHOUT_VALUE: MessageTemplate(
        "The column {column} is empty in some rows, but is required.",
        f"{_QUARANTINED} Check for other programs that write to this folder.",
    ),
    Code.FILE_OF_OTHER_ROWS: MessageTemplate(
        "The file has {found} rows; the manifest lists {expected}.",
        f"{_QUARANTINED} Check for two collectors with the same epoch.",
    ),
    Code.OPTION_NO_TIME: MessageTemplate(
        "{option} “{given}” is not a date or time.", "Write 2026-11-22 or 2026-11-22T14:00."
    ),
    Code.FROM_AFTER_TO: MessageTemplate(
        "{begin} is not before {end}.", "Set --from to the earlier time; times are in UTC."
    ),
    Code.NOTHING_RETAINED: MessageTemplate(
        "No segments are retained from {begin} to {end}.",
        "Choose a period after the oldest retained segment, {oldest}.",
    ),
    Code.NOTHING_TO_BACKFILL: MessageTemplate(
        "{address} has no segments.", "Check that beat and a worker for the queue collect are running."
    ),
    Code.NEVER_BEATEN: MessageTemplate(
        "No pipeline has run on {address}.", "Start one: manage.py pipeline run, or the service pipeline."
    ),
    Code.PIPELINE_SILENT: MessageTemplate(
        "The last heartbeat of the pipeline was {age} ago.", "Check the process and its log. No data is lost."
    ),
}
