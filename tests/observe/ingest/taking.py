"""The time of the buckets, and what a turn of the ingest is to a test."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

NOW = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=5)
Turn = Callable[[], int | None]
"""Returns how many results it took in; None where it was not its turn."""
