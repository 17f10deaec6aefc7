"""Texts of this app's codes (``errors``): what is so, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from kafkadash.core.messages import MessageTemplate
from kafkadash.history.errors import HistoryErrorCode

_BACKFILL = "All other results were ingested. Run the backfill for that time, or see the pipeline log."

HISTORY_MESSAGES: Mapping[HistoryErrorCode, MessageTemplate] = {
    HistoryErrorCode.NO_HISTORY_OF_TOPIC: MessageTemplate(
        "The group has no history for topic “{topic}”.",
        "Choose a listed topic. The page shows the topic with the highest lag.",
    ),
    HistoryErrorCode.NO_HISTORY_OF_NODE: MessageTemplate(
        "The quorum has no history for node {typed}.",
        "Choose a listed node. The page shows the node with the highest lag.",
    ),
    HistoryErrorCode.NO_MARKER: MessageTemplate(
        "{file} is not a valid result marker: {why}.", "The batch was not ingested. Run the backfill for its time."
    ),
    HistoryErrorCode.MARKER_FROM_FUTURE: MessageTemplate(
        "{file} has format {format}. This version of kafkadash reads formats up to {known}.",
        "Upgrade the workers to the version of the pipeline, then run the backfill for its time.",
    ),
    HistoryErrorCode.RESULT_KIND_UNKNOWN: MessageTemplate(
        "{file} holds results of the unknown kind {kind!r}.",
        "Upgrade the workers to the version of the pipeline, then run the backfill for its time.",
    ),
    HistoryErrorCode.FILES_MISSING: MessageTemplate(
        "{file} has {found} rows, but its marker lists {told}: files are missing.", _BACKFILL
    ),
    HistoryErrorCode.RESULT_DAMAGED: MessageTemplate("{file} is not a complete Parquet file: {why}.", _BACKFILL),
    HistoryErrorCode.COLUMNS_WRONG: MessageTemplate(
        "{file} does not have the columns of {kind}: {why}.",
        "Upgrade workers and pipeline to the same version, then run the backfill for that time.",
    ),
    HistoryErrorCode.RESULTS_NEED_PYARROW: MessageTemplate(
        "PyArrow is not installed on the worker, so results of the pipeline cannot be read.",
        "Install kafkadash with the extra 'pipeline' on the worker. All other functions work without it.",
    ),
    HistoryErrorCode.STORE_SILENT: MessageTemplate(
        "The pipeline folder cannot be read: {why}.",
        "Check PIPELINE_URI and the permissions of the worker. The worker retries automatically.",
    ),
}
