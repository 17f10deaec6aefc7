"""What leaves for the pipeline, and what is wrong with it"""

from kafkadash.domain.refusals.entry import Entry

_TRIED_AGAIN = "Nothing half is left; it is tried again every {seconds:g} s, and until then the facts wait."

FACTS_NOT_KEPT = Entry(
    "facts-not-kept",
    "PyArrow is not installed where the workers run, so no facts are kept for the pipeline.",
    "Install the extra “pipeline”; what was read until then is not in the history.",
)
DISK_FULL = Entry(
    "disk-full",
    "Segments cannot be written to {place}: the disk is full.",
    "Make room. " + _TRIED_AGAIN,
)
SEGMENTS_NOT_WRITTEN = Entry(
    "segments-not-written",
    "Segments cannot be written to {place}: {fault}.",
    _TRIED_AGAIN,
)
ANOTHER_WRITES_HERE = Entry(
    "another-writes-here",
    "{file} is from another database of kafkadash than this one.",
    "Give each of the two a folder of its own; this one goes on with numbers of its own.",
)
FACTS_LOST = Entry(
    "facts-lost",
    "{rows} of this refresh were dropped: more than {size} waited to be written.",
    "See why segments cannot be written; what is read from now on is kept again.",
)
FACTS_DAMAGED = Entry(
    "facts-damaged",
    "{rows} of this refresh could not be read back from the outbox and were dropped.",
    "See whether the database is well; the next refresh is kept again.",
)
PLACE_UNKNOWN = Entry(
    "place-unknown",
    "{uri} is no place for segments: {fault}.",
    "Write file:///path, hdfs://host/path or s3a://bucket/path.",
)

_SET_ASIDE = "The pipeline leaves it out; what is in it is missing in the history, all else goes on."

SEGMENT_NOT_WHOLE = Entry("segment-not-whole", "{file} is not whole: {fault}.", _SET_ASIDE)
SEGMENT_FROM_THE_FUTURE = Entry(
    "segment-from-the-future",
    "{file} has the schema {version}; this release knows up to {known}.",
    "Upgrade what reads it, or move it away.",
)
SEGMENT_WITHOUT_SCHEMA = Entry(
    "segment-without-schema", "{file} does not say which schema it has.", "It is from something else: move it away."
)
SEGMENT_COLUMNS_DIFFER = Entry(
    "segment-columns-differ", "{file} has other columns than its schema: {columns}.", _SET_ASIDE
)
SEGMENT_NOT_THERE = Entry(
    "segment-not-there", "{manifest} names {file}, which is not there.", "Its rows are missing in the history."
)
SEGMENT_ROWS_DIFFER = Entry(
    "segment-rows-differ",
    "{file} has {found} of refresh {refresh}, the manifest says {told}.",
    "Do not trust either; what is read from now on is not touched by it.",
)
SEGMENT_ORPHAN = Entry(
    "segment-orphan", "{file} is named by no manifest.", "For the pipeline it does not exist: it may be deleted."
)
SNAPSHOT_TWICE = Entry(
    "snapshot-twice", "{manifest} has refresh {refresh} for the second time.", "Its rows count twice in the history."
)
SNAPSHOTS_MISSING = Entry(
    "snapshots-missing",
    "No manifest tells of {missing} before refresh {refresh} in {manifest}.",
    "They are missing in the history.",
)
FLUSHES_MISSING = Entry(
    "flushes-missing", "Before {manifest} {missing}.", "Whatever they held is missing in the history."
)
FLUSH_MISNAMED = Entry(
    "flush-misnamed", "{manifest} is the manifest of flush {flush}, as it says itself.", "Somebody moved or copied it."
)
NO_SEGMENTS = Entry(
    "no-segments",
    "There are no segments in {uri}.",
    "Name the folder in which the one of the manifests is, or see that beat runs, and a worker for the queue collect.",
)
ANOTHER_WRITES_NOW = Entry(
    "another-writes-now", "Another worker writes segments at this moment.", "What waits is in its flush, or the next."
)
