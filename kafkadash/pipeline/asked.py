"""Times that people give to commands."""

from __future__ import annotations

from datetime import UTC, datetime

from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.faults import PipelineFault


def times(begin: str, end: str) -> tuple[datetime, datetime]:
    """In UTC, where nothing else is said. Raises PipelineFault for what is no time, and for an end before its begin."""
    first, last = _time("--from", begin), _time("--to", end)
    if first >= last:
        raise PipelineFault(PipelineErrorCode.FROM_AFTER_TO, begin=begin, end=end)
    return first, last


def _time(option: str, given: str) -> datetime:
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        raise PipelineFault(PipelineErrorCode.OPTION_NO_TIME, option=option, given=given) from None
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
