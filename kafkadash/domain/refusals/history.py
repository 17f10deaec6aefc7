"""Results of the pipeline that are not taken in, whole or in part"""

from kafkadash.domain.refusals.entry import Entry

_LOOK = "The rest was taken in; run the backfill for that time, or look at the pipeline's log."

NO_MARKER = Entry(
    "result-marker-unreadable",
    "{file} is no marker of a result: {why}.",
    "Nothing of that batch was taken in; run the backfill for its time.",
)
MARKER_FROM_FUTURE = Entry(
    "result-from-the-future",
    "{file} has format {format}; this version of kafkadash reads up to {known}.",
    "Bring the workers to the pipeline's version, then run the backfill for its time.",
)
RESULT_KIND_UNKNOWN = Entry(
    "result-kind-unknown",
    "{file} holds results of a kind called {kind!r}, which this version of kafkadash does not know.",
    "Bring the workers to the pipeline's version, then run the backfill for its time.",
)
FILES_MISSING = Entry(
    "result-files-missing", "{file} has {found} rows where its marker says {told}: files of it are missing.", _LOOK
)
RESULT_DAMAGED = Entry("result-damaged", "{file} is no whole Parquet file: {why}.", _LOOK)
COLUMNS_WRONG = Entry(
    "result-columns-wrong",
    "{file} has not the columns of {kind} that this version of kafkadash knows: {why}.",
    "Bring workers and pipeline to the same version, then run the backfill for that time.",
)
RESULTS_NEED_PYARROW = Entry(
    "no-pyarrow-for-results",
    "PyArrow is not installed on the worker, so no result of the pipeline can be read.",
    "Install kafkadash with the extra 'pipeline' there; everything else works without it.",
)
STORE_SILENT = Entry(
    "pipeline-store-silent",
    "The pipeline's folder cannot be read: {why}.",
    "Check PIPELINE_URI and the rights of the worker there; it is tried again by itself.",
)
