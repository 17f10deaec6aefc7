"""Codes of what people are refused, and of what fails, in this app; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class HistoryErrorCode(StrEnum):
    """Codes; people search for the values."""

    NO_HISTORY_OF_TOPIC = "no-history-of-topic"
    NO_HISTORY_OF_NODE = "no-history-of-node"
    NO_MARKER = "result-marker-unreadable"
    MARKER_FROM_FUTURE = "result-from-the-future"
    RESULT_KIND_UNKNOWN = "result-kind-unknown"
    FILES_MISSING = "result-files-missing"
    RESULT_DAMAGED = "result-damaged"
    COLUMNS_WRONG = "result-columns-wrong"
    RESULTS_NEED_PYARROW = "no-pyarrow-for-results"
    STORE_SILENT = "pipeline-store-silent"
