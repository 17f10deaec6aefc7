"""What the pipeline says: disks that will be full, files that it could not read, and that it stands still."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from kafkadash.domain.facts import Facts, ForecastFact
from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.judges.words import some
from kafkadash.domain.wording import count, long_duration, size

SOON = timedelta(hours=24)
FORECAST_HOLDS = timedelta(hours=3)
"""Forecasts are made every hour; one that is older than this says nothing any more."""
MISSED = 3
"""The pipeline stands still after so many intervals without a batch."""


def disk_soon(facts: Facts, _: datetime, now: datetime) -> Iterator[Finding]:
    for forecast in facts.forecasts:
        left = full_in(forecast, now)
        if left is None or left >= SOON or _too_old(forecast, now):
            continue
        seconds = left.total_seconds()
        words = f"about {long_duration(seconds)}" if seconds >= 60 else "less than 1 min"
        free = size(max(0, forecast.total_bytes - forecast.used_bytes))
        seen = long_duration((forecast.made_at - forecast.from_at).total_seconds())
        yield Finding(
            FindingKind.DISK_SOON,
            f"A log directory of broker {forecast.broker} is projected to be full in {words}: {forecast.path}.",
            f"has a log directory on broker {forecast.broker} that is projected to be full within a day",
            forecast.made_at,
            scope=f"{forecast.broker}:{forecast.path}",
            detail=f"It grows by {size(forecast.grows_per_day)} a day, as seen over {seen}, and had {free} free of "
            f"{size(forecast.total_bytes)} · an estimate; a full directory goes offline",
            value=round(seconds / 3600, 1),
            unit="hours",
            threshold=SOON.total_seconds() / 3600,
            measured=words,
            limit="limit 24 h",
        )


def segment_set_aside(facts: Facts, at: datetime, _: datetime) -> Iterator[Finding]:
    aside = facts.pipeline_stands.set_aside if facts.pipeline_stands else ()
    if number := len(aside):
        newest = max(aside, key=lambda file: (file.at, file.file))
        yield Finding(
            FindingKind.SEGMENT_SET_ASIDE,
            f"The pipeline could not read {count(number, 'segment')} and set {'it' if number == 1 else 'them'} aside: "
            "history has a gap.",
            f"has {count(number, 'segment')} that the pipeline could not read",
            at,
            detail=f"{newest.why} · {some([file.file for file in aside])}",
            value=number,
            unit="segments",
            threshold=0,
            measured=count(number, "segment"),
            limit="limit 0",
            since=min(file.at for file in aside),
        )


def pipeline_still(facts: Facts, at: datetime, now: datetime) -> Iterator[Finding]:
    """Nothing live depends on it; history, percentiles and forecasts do."""
    stands = facts.pipeline_stands
    if stands is None or stands.batch_at is None or now - stands.batch_at <= MISSED * _interval(stands.interval_s):
        return
    age = long_duration((now - stands.batch_at).total_seconds())
    limit = long_duration(MISSED * stands.interval_s)
    yield Finding(
        FindingKind.PIPELINE_STILL,
        "The pipeline stands still: history, percentiles and forecasts are not updated.",
        "gets no history: the pipeline stands still",
        at,
        detail="What is live does not depend on it; nothing is lost as long as segments are kept",
        measured=age,
        limit=f"limit {limit}",
        since=stands.batch_at,
    )


def old_forecasts(facts: Facts, now: datetime) -> Iterator[tuple[FindingKind, str]]:
    """Directories of which no forecast holds any more: whether they will be full cannot be told."""
    for forecast in facts.forecasts:
        if _too_old(forecast, now):
            yield FindingKind.DISK_SOON, f"{forecast.broker}:{forecast.path}"


def full_in(forecast: ForecastFact, now: datetime) -> timedelta | None:
    """From now on, if it grows as it did; None where it does not, or not within a year."""
    if forecast.grows_per_day <= 0:
        return None
    days = (forecast.total_bytes - forecast.used_bytes) / forecast.grows_per_day
    if days > 365:
        return None
    return max(timedelta(), timedelta(days=days) - (now - forecast.made_at))


def _too_old(forecast: ForecastFact, now: datetime) -> bool:
    return now - forecast.made_at > FORECAST_HOLDS


def _interval(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)
