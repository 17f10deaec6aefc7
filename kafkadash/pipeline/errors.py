"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class PipelineErrorCode(StrEnum):
    """Codes; people search for the values."""

    # The pipeline, and what it sets aside
    NO_PYSPARK = "no-pyspark"
    NO_PYARROW = "no-pyarrow"
    NO_JAVA_FOR_SPARK = "no-java-for-spark"
    JAVA_HOME_UNUSABLE = "java-home-unusable"
    SPARK_NOT_STARTED = "spark-not-started"
    SPARK_SETTING_UNREADABLE = "spark-setting-unreadable"
    ADDRESS_UNUSABLE = "pipeline-address-unusable"
    ADDRESS_UNREACHABLE = "pipeline-address-unreachable"
    ANOTHER_PIPELINE = "another-pipeline"
    BATCH_FAILED = "batch-failed"
    FILE_GONE = "segment-gone"
    FILE_TRUNCATED = "segment-truncated"
    FILE_FROM_FUTURE = "segment-from-future"
    FILE_UNLIKE = "segment-unlike"
    FILE_WITHOUT_VALUE = "segment-without-value"
    FILE_OF_OTHER_ROWS = "segment-of-other-rows"
    OPTION_NO_TIME = "option-no-time"
    FROM_AFTER_TO = "from-after-to"
    NOTHING_RETAINED = "nothing-retained"
    NOTHING_TO_BACKFILL = "nothing-to-backfill"
    NEVER_BEATEN = "never-beaten"
    PIPELINE_SILENT = "pipeline-silent"
