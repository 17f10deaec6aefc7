"""The pipeline, and what it sets aside"""

from kafkadash.domain.refusals.entry import Entry

NO_PYSPARK = Entry(
    "no-pyspark", "PySpark is not installed.", "Install kafkadash with its extra “pipeline”: make setup."
)
NO_PYARROW = Entry(
    "no-pyarrow", "PyArrow is not installed.", "Install kafkadash with its extra “pipeline”: make setup."
)
NO_JAVA_FOR_SPARK = Entry(
    "no-java-for-spark",
    "There is no Java {version} or newer here, which Spark needs.",
    "Install one, or set JAVA_HOME to one; everything but history and forecasts goes on without.",
)
JAVA_HOME_UNUSABLE = Entry(
    "java-home-unusable",
    "JAVA_HOME is {home}, and there is no Java {version} or newer in it.",
    "Correct it, or leave it out: then a Java on PATH is looked for.",
)
SPARK_NOT_STARTED = Entry(
    "spark-not-started", "Spark could not be started: {fault}.", "Its own words stand above. Correct that, start again."
)
SPARK_SETTING_UNREADABLE = Entry(
    "spark-setting-unreadable",
    "“{given}” is no setting of Spark.",
    "Write PIPELINE_SPARK_CONF as spark.name=value, with semicolons between several.",
)
ADDRESS_UNUSABLE = Entry(
    "pipeline-address-unusable",
    "“{address}” is no address of a folder.",
    "Set PIPELINE_URI to one that begins with file:, hdfs: or s3a:.",
)
ADDRESS_UNREACHABLE = Entry(
    "pipeline-address-unreachable",
    "{address} cannot be read and written: {fault}.",
    "See that it is there and that this user may write to it, or set PIPELINE_URI to another.",
)
ANOTHER_PIPELINE = Entry(
    "another-pipeline", "Another pipeline runs on {address}, as process {pid}.", "Stop that one first: one is enough."
)
BATCH_FAILED = Entry(
    "batch-failed",
    "The pipeline stopped: {fault}.",
    "Nothing is lost: started again, it goes on with what it did not finish. Its log says more.",
)

FILE_GONE = Entry("segment-gone", "The manifest names it and it is not there.", "Its figures are missing from history.")
FILE_TRUNCATED = Entry(
    "segment-truncated",
    "It is not whole: {fault}.",
    "It was set aside, the rest went on; see whether the disk of the segments is full or failing.",
)
FILE_FROM_FUTURE = Entry(
    "segment-from-future",
    "It is of schema {version}, and this pipeline knows schemas up to {known}.",
    "Bring the pipeline to the release of the collectors, then take that time in with manage.py pipeline backfill.",
)
FILE_UNLIKE = Entry(
    "segment-unlike",
    "It is no segment of this kind: {column} is missing or of another type.",
    "It was set aside, the rest went on; see who else writes into this folder.",
)
FILE_WITHOUT_VALUE = Entry(
    "segment-without-value",
    "Its column {column} has no value in some rows, and must have one in each.",
    "It was set aside, the rest went on; see who else writes into this folder.",
)
FILE_OF_OTHER_ROWS = Entry(
    "segment-of-other-rows",
    "It has {found} rows, and the manifest says {expected}.",
    "It was set aside, the rest went on; see whether two collectors write under one epoch.",
)
OPTION_NO_TIME = Entry(
    "option-no-time",
    "{option} is “{given}”, which is no date and no time.",
    "Write one such as 2026-11-22 or 2026-11-22T14:00.",
)
FROM_AFTER_TO = Entry(
    "from-after-to", "{begin} is not before {end}.", "Give --from the earlier of the two; times are in UTC."
)
NOTHING_RETAINED = Entry(
    "nothing-retained",
    "No segment is kept of the time from {begin} to {end}.",
    "The oldest that is kept is of {oldest}; what is older cannot be reckoned again.",
)
NOTHING_TO_BACKFILL = Entry(
    "nothing-to-backfill",
    "There are no segments below {address}.",
    "Collectors write them: see that beat and a worker for the queue collect run.",
)
NEVER_BEATEN = Entry(
    "never-beaten",
    "No pipeline has ever run on {address}.",
    "Start one: manage.py pipeline run, or the service pipeline.",
)
PIPELINE_SILENT = Entry(
    "pipeline-silent",
    "The pipeline was last heard of {age} ago.",
    "See whether it runs, and what its log says; nothing is lost meanwhile.",
)
