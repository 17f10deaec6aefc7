"""Which rates a plan is made with, from when they are and of how many partitions nothing is known: for people."""

from __future__ import annotations

from datetime import UTC, datetime

from kafkadash.domain.planner.workload import WorkloadUsed
from kafkadash.domain.wording import count, long_duration, size
from kafkadash.observe.templatetags.figures import rate
from kafkadash.reassign.workload import Model

_UNKNOWN = "what partitions take in counts as unknown"


def model_words(model: Model, now: datetime) -> str:
    """Before there is a plan: what it would be made with."""
    if model.from_at is not None and model.to_at is not None:
        seen = _period(model.from_at, model.to_at, now)
        return f"The pipeline has rates of {count(model.topics, 'topic')}, seen {seen}."
    if model.old_at is not None:
        return f"The pipeline's last rates are of {_moment(model.old_at)}, too old to plan with: {_UNKNOWN}."
    return f"The pipeline has no rates of this cluster yet: {_UNKNOWN}."


def used_words(used: WorkloadUsed | None, now: datetime) -> str:
    """Of a plan; '' where nothing is copied, or where it is not known what it was made with."""
    if used is None or not used.known + used.unknown:
        return ""
    if not used.known:
        return f"none: of {_partitions(used.unknown)} that are copied the pipeline has no rates"
    begin, end = datetime.fromisoformat(used.from_at), datetime.fromisoformat(used.to_at)
    words = f"of {_partitions(used.known)}, seen by the pipeline {_period(begin, end, now)}"
    if used.unknown:
        words += f"; of {_partitions(used.unknown)} nothing is known"
    words += f". Estimate: together they take in {rate(used.typical)}"
    if used.peak is not None:
        words += f", at most {rate(used.peak)} if all have their busiest hour at once"
    if used.grows is not None:
        words += f", and {'grow' if used.grows >= 0 else 'shrink'} by {size(abs(used.grows))} a day"
    return words


def _partitions(number: int) -> str:
    return count(number, "partition")


def _period(begin: datetime, end: datetime, now: datetime) -> str:
    age = long_duration(max(0.0, (now - end).total_seconds()))
    return f"from {_moment(begin)} to {_moment(end)}, {age} ago"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%-d %b %H:%M} UTC"
