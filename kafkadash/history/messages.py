"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.history.errors import HistoryErrorCode

_LOOK = "The rest was taken in; run the backfill for that time, or look at the pipeline's log."

HISTORY_MESSAGES: Mapping[HistoryErrorCode, MessageTemplate] = {
    HistoryErrorCode.NO_HISTORY_OF_TOPIC: MessageTemplate(
        "There is no history of this group in a topic called “{topic}”.",
        "Choose one of the topics below; the one with the largest lag is shown.",
    ),
    HistoryErrorCode.NO_HISTORY_OF_NODE: MessageTemplate(
        "There is no history of a node {typed} of this quorum.",
        "Choose one of the nodes below; the one that was farthest behind is shown.",
    ),
    HistoryErrorCode.NO_MARKER: MessageTemplate(
        "{file} is no marker of a result: {why}.", "Nothing of that batch was taken in; run the backfill for its time."
    ),
    HistoryErrorCode.MARKER_FROM_FUTURE: MessageTemplate(
        "{file} has format {format}; this version of kafkadash reads up to {known}.",
        "Bring the workers to the pipeline's version, then run the backfill for its time.",
    ),
    HistoryErrorCode.RESULT_KIND_UNKNOWN: MessageTemplate(
        "{file} holds results of a kind called {kind!r}, which this version of kafkadash does not know.",
        "Bring the workers to the pipeline's version, then run the backfill for its time.",
    ),
    HistoryErrorCode.FILES_MISSING: MessageTemplate(
        "{file} has {found} rows where its marker says {told}: files of it are missing.", _LOOK
    ),
    HistoryErrorCode.RESULT_DAMAGED: MessageTemplate("{file} is no whole Parquet file: {why}.", _LOOK),
    HistoryErrorCode.COLUMNS_WRONG: MessageTemplate(
        "{file} has not the columns of {kind} that this version of kafkadash knows: {why}.",
        "Bring workers and pipeline to the same version, then run the backfill for that time.",
    ),
    HistoryErrorCode.RESULTS_NEED_PYARROW: MessageTemplate(
        "PyArrow is not installed on the worker, so no result of the pipeline can be read.",
        "Install kafkadash with the extra 'pipeline' there; everything else works without it.",
    ),
    HistoryErrorCode.STORE_SILENT: MessageTemplate(
        "The pipeline's folder cannot be read: {why}.",
        "Check PIPELINE_URI and the rights of the worker there; it is tried again by itself.",
    ),
}
