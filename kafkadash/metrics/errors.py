"""Codes of what a scrape is refused with; the texts are in ``messages``."""

from __future__ import annotations

from enum import StrEnum


class MetricsErrorCode(StrEnum):
    """Codes; people search for the values."""

    METRICS_OFF = "metrics-off"
    SCRAPE_REFUSED = "scrape-refused"
