"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.pipeline.errors import PipelineErrorCode as Code

PIPELINE_MESSAGES: Mapping[Code, MessageTemplate] = {
    # The pipeline, and what it sets aside
    Code.NO_PYSPARK: MessageTemplate(
        "PySpark is not installed.", "Install kafkadash with its extra “pipeline”: make setup."
    ),
    Code.NO_PYARROW: MessageTemplate(
        "PyArrow is not installed.", "Install kafkadash with its extra “pipeline”: make setup."
    ),
    Code.NO_JAVA_FOR_SPARK: MessageTemplate(
        "There is no Java {version} or newer here, which Spark needs.",
        "Install one, or set JAVA_HOME to one; everything but history and forecasts goes on without.",
    ),
    Code.JAVA_HOME_UNUSABLE: MessageTemplate(
        "JAVA_HOME is {home}, and there is no Java {version} or newer in it.",
        "Correct it, or leave it out: then a Java on PATH is looked for.",
    ),
    Code.SPARK_NOT_STARTED: MessageTemplate(
        "Spark could not be started: {fault}.", "Its own words stand above. Correct that, start again."
    ),
    Code.SPARK_SETTING_UNREADABLE: MessageTemplate(
        "“{given}” is no setting of Spark.",
        "Write PIPELINE_SPARK_CONF as spark.name=value, with semicolons between several.",
    ),
    Code.ADDRESS_UNUSABLE: MessageTemplate(
        "“{address}” is no address of a folder.", "Set PIPELINE_URI to one that begins with file:, hdfs: or s3a:."
    ),
    Code.ADDRESS_UNREACHABLE: MessageTemplate(
        "{address} cannot be read and written: {fault}.",
        "See that it is there and that this user may write to it, or set PIPELINE_URI to another.",
    ),
    Code.ANOTHER_PIPELINE: MessageTemplate(
        "Another pipeline runs on {address}, as process {pid}.", "Stop that one first: one is enough."
    ),
    Code.BATCH_FAILED: MessageTemplate(
        "The pipeline stopped: {fault}.",
        "Nothing is lost: started again, it goes on with what it did not finish. Its log says more.",
    ),
    Code.FILE_GONE: MessageTemplate(
        "The manifest names it and it is not there.", "Its figures are missing from history."
    ),
    Code.FILE_TRUNCATED: MessageTemplate(
        "It is not whole: {fault}.",
        "It was set aside, the rest went on; see whether the disk of the segments is full or failing.",
    ),
    Code.FILE_FROM_FUTURE: MessageTemplate(
        "It is of schema {version}, and this pipeline knows schemas up to {known}.",
        "Bring the pipeline to the release of the collectors, then take that time in with manage.py pipeline backfill.",
    ),
    Code.FILE_UNLIKE: MessageTemplate(
        "It is no segment of this kind: {column} is missing or of another type.",
        "It was set aside, the rest went on; see who else writes into this folder.",
    ),
    Code.FILE_WITHOUT_VALUE: MessageTemplate(
        "Its column {column} has no value in some rows, and must have one in each.",
        "It was set aside, the rest went on; see who else writes into this folder.",
    ),
    Code.FILE_OF_OTHER_ROWS: MessageTemplate(
        "It has {found} rows, and the manifest says {expected}.",
        "It was set aside, the rest went on; see whether two collectors write under one epoch.",
    ),
    Code.OPTION_NO_TIME: MessageTemplate(
        "{option} is “{given}”, which is no date and no time.", "Write one such as 2026-11-22 or 2026-11-22T14:00."
    ),
    Code.FROM_AFTER_TO: MessageTemplate(
        "{begin} is not before {end}.", "Give --from the earlier of the two; times are in UTC."
    ),
    Code.NOTHING_RETAINED: MessageTemplate(
        "No segment is kept of the time from {begin} to {end}.",
        "The oldest that is kept is of {oldest}; what is older cannot be reckoned again.",
    ),
    Code.NOTHING_TO_BACKFILL: MessageTemplate(
        "There are no segments below {address}.",
        "Collectors write them: see that beat and a worker for the queue collect run.",
    ),
    Code.NEVER_BEATEN: MessageTemplate(
        "No pipeline has ever run on {address}.", "Start one: manage.py pipeline run, or the service pipeline."
    ),
    Code.PIPELINE_SILENT: MessageTemplate(
        "The pipeline was last heard of {age} ago.",
        "See whether it runs, and what its log says; nothing is lost meanwhile.",
    ),
}
