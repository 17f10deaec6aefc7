"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.domain.messages import MessageTemplate
from kafkadash.observe.errors import CollectionErrorCode as Code

_LOOK = "The rest was taken in; run the backfill for that time, or look at the pipeline's log."
_FAILED = "The last refresh of {kinds} failed."
_FROM_BEFORE = "What is shown of it is from before, with its age."
_DENIED = "Kafka does not let kafkadash read {kinds}."
_TRIED_AGAIN = "Nothing half is left; it is tried again every {seconds:g} s, and until then the facts wait."
_SET_ASIDE = "The pipeline leaves it out; what is in it is missing in the history, all else goes on."

COLLECTION_MESSAGES: Mapping[Code, MessageTemplate] = {
    # What is looked for and is not there: verifications, plans and reassignments
    Code.NO_SUCH_REASSIGNMENT: MessageTemplate(
        "{cluster} has no reassignment {asked}, or it ended so long ago that it is forgotten.",
        "List what moves, and name it as it stands there.",
    ),
    Code.NO_HISTORY_OF_TOPIC: MessageTemplate(
        "There is no history of this group in a topic called “{topic}”.",
        "Choose one of the topics below; the one with the largest lag is shown.",
    ),
    Code.NO_HISTORY_OF_NODE: MessageTemplate(
        "There is no history of a node {typed} of this quorum.",
        "Choose one of the nodes below; the one that was farthest behind is shown.",
    ),
    # Results of the pipeline that are not taken in, whole or in part
    Code.NO_MARKER: MessageTemplate(
        "{file} is no marker of a result: {why}.", "Nothing of that batch was taken in; run the backfill for its time."
    ),
    Code.MARKER_FROM_FUTURE: MessageTemplate(
        "{file} has format {format}; this version of kafkadash reads up to {known}.",
        "Bring the workers to the pipeline's version, then run the backfill for its time.",
    ),
    Code.RESULT_KIND_UNKNOWN: MessageTemplate(
        "{file} holds results of a kind called {kind!r}, which this version of kafkadash does not know.",
        "Bring the workers to the pipeline's version, then run the backfill for its time.",
    ),
    Code.FILES_MISSING: MessageTemplate(
        "{file} has {found} rows where its marker says {told}: files of it are missing.", _LOOK
    ),
    Code.RESULT_DAMAGED: MessageTemplate("{file} is no whole Parquet file: {why}.", _LOOK),
    Code.COLUMNS_WRONG: MessageTemplate(
        "{file} has not the columns of {kind} that this version of kafkadash knows: {why}.",
        "Bring workers and pipeline to the same version, then run the backfill for that time.",
    ),
    Code.RESULTS_NEED_PYARROW: MessageTemplate(
        "PyArrow is not installed on the worker, so no result of the pipeline can be read.",
        "Install kafkadash with the extra 'pipeline' there; everything else works without it.",
    ),
    Code.STORE_SILENT: MessageTemplate(
        "The pipeline's folder cannot be read: {why}.",
        "Check PIPELINE_URI and the rights of the worker there; it is tried again by itself.",
    ),
    # Clusters that do not answer, and what a connection test finds
    Code.ANOTHER_COLLECTOR: MessageTemplate(
        "Another collector took over; nothing was stored.", "What the other one reads is stored."
    ),
    Code.COLLECTOR_FAULT: MessageTemplate(
        "kafkadash failed while it read {kind} ({fault}). Nothing of that refresh was stored.",
        "The log of the worker says where; report it if it goes on.",
    ),
    Code.COLLECTOR_SET_ASIDE: MessageTemplate(
        "Reading {kind} did not end in time {times} times in a row. It is set aside for {pause}, so that no more "
        "workers are lost to it.",
        "The log of the worker says what it was at; a restart of the worker frees those that still hang.",
    ),
    Code.COLLECTED_BY_ANOTHER: MessageTemplate(
        "{kind}: another collector is at it; nothing was done.", "What it reads is shown when it is done."
    ),
    Code.REFRESH_FAILED: MessageTemplate(_FAILED, _FROM_BEFORE),
    Code.NEVER_REFRESHED: MessageTemplate(_FAILED, "Until then, what comes from it is empty here."),
    Code.READ_DENIED: MessageTemplate(_DENIED, _FROM_BEFORE),
    Code.NEVER_ALLOWED: MessageTemplate(_DENIED, "Until kafkadash may, what comes from it is empty here."),
    Code.READ_IN_PART: MessageTemplate(
        "{kind} were read, but not completely.", "The overview lists how each kind is read."
    ),
    # What leaves for the pipeline, and what is wrong with it
    Code.FACTS_NOT_KEPT: MessageTemplate(
        "PyArrow is not installed where the workers run, so no facts are kept for the pipeline.",
        "Install the extra “pipeline”; what was read until then is not in the history.",
    ),
    Code.DISK_FULL: MessageTemplate(
        "Segments cannot be written to {place}: the disk is full.",
        "Make room. Nothing half is left; it is tried again every {seconds:g} s, and until then the facts wait.",
    ),
    Code.SEGMENTS_NOT_WRITTEN: MessageTemplate("Segments cannot be written to {place}: {fault}.", _TRIED_AGAIN),
    Code.ANOTHER_WRITES_HERE: MessageTemplate(
        "{file} is from another database of kafkadash than this one.",
        "Give each of the two a folder of its own; this one goes on with numbers of its own.",
    ),
    Code.FACTS_LOST: MessageTemplate(
        "{rows} of this refresh were dropped: more than {size} waited to be written.",
        "See why segments cannot be written; what is read from now on is kept again.",
    ),
    Code.FACTS_DAMAGED: MessageTemplate(
        "{rows} of this refresh could not be read back from the outbox and were dropped.",
        "See whether the database is well; the next refresh is kept again.",
    ),
    Code.PLACE_UNKNOWN: MessageTemplate(
        "{uri} is no place for segments: {fault}.", "Write file:///path, hdfs://host/path or s3a://bucket/path."
    ),
    Code.SEGMENT_NOT_WHOLE: MessageTemplate("{file} is not whole: {fault}.", _SET_ASIDE),
    Code.SEGMENT_FROM_THE_FUTURE: MessageTemplate(
        "{file} has the schema {version}; this release knows up to {known}.", "Upgrade what reads it, or move it away."
    ),
    Code.SEGMENT_WITHOUT_SCHEMA: MessageTemplate(
        "{file} does not say which schema it has.", "It is from something else: move it away."
    ),
    Code.SEGMENT_COLUMNS_DIFFER: MessageTemplate("{file} has other columns than its schema: {columns}.", _SET_ASIDE),
    Code.SEGMENT_NOT_THERE: MessageTemplate(
        "{manifest} names {file}, which is not there.", "Its rows are missing in the history."
    ),
    Code.SEGMENT_ROWS_DIFFER: MessageTemplate(
        "{file} has {found} of refresh {refresh}, the manifest says {told}.",
        "Do not trust either; what is read from now on is not touched by it.",
    ),
    Code.SEGMENT_ORPHAN: MessageTemplate(
        "{file} is named by no manifest.", "For the pipeline it does not exist: it may be deleted."
    ),
    Code.SNAPSHOT_TWICE: MessageTemplate(
        "{manifest} has refresh {refresh} for the second time.", "Its rows count twice in the history."
    ),
    Code.SNAPSHOTS_MISSING: MessageTemplate(
        "No manifest tells of {missing} before refresh {refresh} in {manifest}.", "They are missing in the history."
    ),
    Code.FLUSHES_MISSING: MessageTemplate(
        "Before {manifest} {missing}.", "Whatever they held is missing in the history."
    ),
    Code.FLUSH_MISNAMED: MessageTemplate(
        "{manifest} is the manifest of flush {flush}, as it says itself.", "Somebody moved or copied it."
    ),
    Code.NO_SEGMENTS: MessageTemplate(
        "There are no segments in {uri}.",
        "Name the folder in which the one of the manifests is, or see that beat runs, and a worker for the queue "
        "collect.",
    ),
    Code.ANOTHER_WRITES_NOW: MessageTemplate(
        "Another worker writes segments at this moment.", "What waits is in its flush, or the next."
    ),
    # Filters and addresses of pages that name what is not there
    Code.CHOICE_UNKNOWN: MessageTemplate("There is no {noun} “{asked}”; it is left out.", "There are: {known}."),
    Code.COLUMN_UNKNOWN: MessageTemplate(
        "The list cannot be sorted by “{column}”; it is sorted by {instead}.", "Columns: {columns}."
    ),
    Code.PARTITIONS_NO_BROKER: MessageTemplate(
        "“{typed}” is no broker id; partitions of all brokers are shown.", "Ids are whole numbers, for example 3."
    ),
    Code.REASSIGNMENTS_NO_BROKER: MessageTemplate(
        "“{typed}” is no broker id; those of all brokers are shown.", "Ids are whole numbers, for example 3."
    ),
    Code.BROKER_NOT_SEEN: MessageTemplate(
        "No broker {broker} was seen in {cluster}.", "Choose one from the list of its brokers."
    ),
    Code.TOPIC_NOT_SEEN: MessageTemplate(
        "{cluster} has no topic {topic!r}, as far as was seen.",
        "Choose one from the list of its topics; a new one is there after the next refresh.",
    ),
    Code.GROUP_NOT_SEEN: MessageTemplate(
        "{cluster} has no consumer group {group!r}, as far as was seen.",
        "Choose one from the list of its groups; a new one is there after the next refresh.",
    ),
}
