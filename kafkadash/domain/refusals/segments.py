"""What leaves for the pipeline, and what is wrong with it"""

from kafkadash.domain.refusals.entry import Entry

_TRIED_AGAIN = "Nothing half is left; it is tried again every {seconds:g} s, and until then the facts wait."

NO_PYARROW = Entry(
    "segments-without-pyarrow",
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
