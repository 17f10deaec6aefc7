"""How the pipeline stands, as it was last seen: one judgement for its page, for findings and beside charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from django.conf import settings

from kafkadash.core.formatting import format_duration
from kafkadash.core.messages import CodedMessage, choose_plural, read_message
from kafkadash.history.models import PipelineLedger, PipelineState
from kafkadash.history.schedule import STATE_ID
from kafkadash.monitoring.freshness import FactFreshness

MISSED = 3
"""Intervals that may pass without a sign before anything is amber."""
LOOKED_EVERY_S = 30.0
"""A look at the pipeline's folder is not called old before twice this, however short the ingest's interval is."""


@dataclass(frozen=True, slots=True)
class PipelineBeat:
    """The newest heartbeat, as the pipeline wrote it; times are by the clock of its machine."""

    name: str
    state: str
    query: str
    host: str
    fault: CodedMessage | str
    working_on: str
    beat_at: datetime | None
    interval_s: float
    batch: int | None
    batch_at: datetime | None
    batch_seconds: float | None
    newest_observed_at: datetime | None
    event_lag_s: float | None

    def missed(self, now: datetime) -> bool:
        return self.beat_at is None or now - self.beat_at > timedelta(seconds=MISSED * self.interval_s)


class PipelineVerdict(StrEnum):
    """How the pipeline stands, as its page names it in an attribute."""

    NEVER_LOOKED = "never-looked"
    UNREADABLE = "unreadable"
    NO_WORKER = "no-worker"
    NOT_STARTED = "not-started"
    FAILED = "failed"
    STOPPED = "stopped"
    SILENT = "silent"
    BEHIND = "behind"
    NOT_TAKEN_IN = "not-taken-in"
    NOTHING_YET = "nothing-yet"
    UP_TO_DATE = "up-to-date"


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """``state`` is that of the marks: ok, warning or unknown. ``then`` says what to do, or why."""

    now: datetime
    row: PipelineState | None
    beat: PipelineBeat | None
    newest: PipelineLedger | None
    code: PipelineVerdict
    state: str
    title: str
    then: CodedMessage | str

    @property
    def looked(self) -> FactFreshness:
        at = self.row.looked_at if self.row else None
        return FactFreshness(at, max(LOOKED_EVERY_S, settings.INGEST_INTERVAL), self.now)

    @property
    def reaches(self) -> datetime | None:
        """Up to when there is history: when the newest segment of a result was written."""
        return self.newest.newest_at if self.newest else None

    @property
    def set_up(self) -> bool:
        return self.beat is not None or self.newest is not None

    @property
    def well_at(self) -> datetime | None:
        """When it last did what there was to do: a batch, or, where nothing waits, a heartbeat."""
        if self.beat is None:
            return self.newest.ingested_at if self.newest else None
        idle = self.row is not None and self.row.segments_waiting == 0 and self.beat.state == "waiting"
        told = [self.beat.beat_at if idle else self.beat.batch_at, self.newest.ingested_at if self.newest else None]
        return max((at for at in told if at is not None), default=None)

    @property
    def interval_s(self) -> float:
        """Between two batches: no segment comes more often than collectors write them."""
        return max(self.beat.interval_s if self.beat else 0.0, float(settings.SEGMENT_FLUSH_SECONDS))


def pipeline_standing(now: datetime) -> PipelineStatus:
    """Two queries."""
    row = PipelineState.objects.filter(pk=STATE_ID).first()
    newest = PipelineLedger.objects.exclude(newest_at=None).order_by("-ingested_at").first()
    beats = [_parse_beat(told) for told in row.heartbeats] if row else []
    beat = max(beats, key=lambda one: one.beat_at or datetime.min.replace(tzinfo=UTC), default=None)
    code, state, title, then = _judge_standing(
        PipelineStatus(now, row, beat, newest, PipelineVerdict.NEVER_LOOKED, "unknown", "", "")
    )
    return PipelineStatus(now, row, beat, newest, code, state, title, then)


def _judge_standing(seen: PipelineStatus) -> tuple[PipelineVerdict, str, str, CodedMessage | str]:
    row, beat, now = seen.row, seen.beat, seen.now
    if row is None or row.attempted_at is None:
        return (
            PipelineVerdict.NEVER_LOOKED,
            "unknown",
            "Pipeline status unknown",
            "No worker has checked the pipeline yet. Workers check it every few seconds.",
        )
    if row.last_error and seen.looked.stale:
        return PipelineVerdict.UNREADABLE, "unknown", "Pipeline status unknown", row.last_error
    if seen.looked.stale:
        return (
            PipelineVerdict.NO_WORKER,
            "unknown",
            "Pipeline status unknown: not checked recently",
            "Check that the workers are running. Results wait for a worker; no result is lost.",
        )
    if beat is None:
        return (
            PipelineVerdict.NOT_STARTED,
            "unknown",
            "No pipeline has reported yet",
            _NOT_STARTED,
        )
    ago = format_duration((now - beat.beat_at).total_seconds()) if beat.beat_at else ""
    if beat.state == "failed":
        return PipelineVerdict.FAILED, "warning", "Pipeline failed", beat.fault or "See the pipeline log."
    if beat.state == "stopped":
        return (
            PipelineVerdict.STOPPED,
            "warning",
            f"Pipeline stopped {ago} ago" if ago else "Pipeline stopped",
            _WAITS,
        )
    if beat.missed(now):
        since = f": last heartbeat {ago} ago" if ago else ""
        return PipelineVerdict.SILENT, "warning", f"Pipeline stalled{since}", _WAITS
    waited = (now - row.oldest_waiting_at).total_seconds() if row.oldest_waiting_at else 0.0
    if row.segments_waiting and waited > MISSED * seen.interval_s:
        segments = choose_plural("# segment|# segments", row.segments_waiting)
        return (
            PipelineVerdict.BEHIND,
            "warning",
            f"Pipeline behind: {segments} waiting, oldest {format_duration(waited)}",
            beat.fault,
        )
    if row.results_waiting:
        waiting = choose_plural("# pipeline result|# pipeline results", row.results_waiting)
        return (
            PipelineVerdict.NOT_TAKEN_IN,
            "warning",
            f"Ingest behind: {waiting} waiting",
            row.last_error or "",
        )
    if seen.newest is None:
        return PipelineVerdict.NOTHING_YET, "unknown", "Pipeline running, no results yet", beat.fault
    return PipelineVerdict.UP_TO_DATE, "ok", "History is up to date", ""


_NOT_STARTED = (
    "Live data works without the pipeline. Percentiles, history and forecasts need it. Start it with: "
    "python manage.py pipeline run. It requires Java and the extra “pipeline”."
)
_WAITS = "Segments wait for the pipeline until their retention ends. Live data is not affected."


def _parse_beat(told: Mapping[str, Any]) -> PipelineBeat:
    return PipelineBeat(
        name=str(told.get("name") or told.get("file") or ""),
        state=str(told.get("state") or ""),
        query=str(told.get("query") or ""),
        host=str(told.get("host") or ""),
        fault=_parse_fault(told.get("fault")),
        working_on=str(told.get("working_on") or ""),
        beat_at=_parse_time(told.get("beat_at")),
        interval_s=_parse_number(told.get("interval_seconds")) or 10.0,
        batch=told["last_batch"] if isinstance(told.get("last_batch"), int) else None,
        batch_at=_parse_time(told.get("last_batch_at")),
        batch_seconds=_parse_number(told.get("last_batch_seconds")),
        newest_observed_at=_parse_time(told.get("newest_observed_at")),
        event_lag_s=_parse_number(told.get("event_lag_seconds")),
    )


def _parse_fault(told: Any) -> CodedMessage | str:
    try:
        return read_message(told) if told else ""
    except ValueError:  # another program wrote there
        return ""


def _parse_time(told: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(told)
    except (TypeError, ValueError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _parse_number(told: Any) -> float | None:
    return float(told) if isinstance(told, int | float) else None
