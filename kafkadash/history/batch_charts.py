"""Charts of the batches that the ingest stored in the last 24 hours: their delay, and their rows.

The ledger is aggregated in the database, in intervals of five minutes. An interval without a batch is a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Aggregate, BigIntegerField, F, FloatField, Func, Max, Q, Sum, TextField, Value
from django.db.models.functions import Cast

from kafkadash.core.charts import ChartLine, ChartPanel, Ink, largest_rows
from kafkadash.core.messages import choose_plural
from kafkadash.export.results import ResultKind
from kafkadash.history.models import PipelineLedger
from kafkadash.monitoring.traffic.pages import TREND, TrafficSeries, read_series

SCHEDULED = r"^(hourly|daily|backfill)-"
"""Beginnings of the query ids of jobs that are not the stream (``export.results``)."""


class NearestMedian(Aggregate):
    """Median by nearest rank: a value that occurs, as the pipeline's own percentiles are."""

    name = "NearestMedian"
    template = "percentile_disc(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Kinds of results that share a line."""

    label: str
    ink: Ink
    kinds: Sequence[ResultKind]


_GROUPS = (
    RowGroup("lag rollups", 2, (ResultKind.LAG_ROLLUP, ResultKind.TOPIC_ROLLUP, ResultKind.CLUSTER_ROLLUP)),
    RowGroup(
        "broker, quorum and traffic rollups",
        3,
        (ResultKind.BROKER_ROLLUP, ResultKind.QUORUM_ROLLUP, ResultKind.BYTES_IN, ResultKind.RECORDS_IN),
    ),
    RowGroup("lag verdicts", 4, (ResultKind.LAG_VERDICT,)),
    RowGroup("workloads", 5, (ResultKind.WORKLOAD,)),
    RowGroup("catch-ups and disk forecasts", 6, (ResultKind.CATCH_UP, ResultKind.DISK_FORECAST)),
)


def batch_panels(now: datetime) -> list[ChartPanel]:
    """Return the delay (seconds) and the rows of the batches of the last 24 hours; one query."""
    streamed = Q(newest_at__isnull=False) & ~Q(query__regex=SCHEDULED)
    delay = Func(
        F("ingested_at") - F("newest_at"),
        template="EXTRACT(EPOCH FROM %(expressions)s)::float8",
        output_field=FloatField(),
    )
    series = read_series(
        PipelineLedger.objects.annotate(taken_at=F("ingested_at")),
        TREND,
        now,
        p50=NearestMedian(delay, filter=streamed),
        most=Max(delay, filter=streamed),
        **{kind.value: Sum(_rows_of(kind), default=0) for kind in ResultKind},
    )
    return [_delay_panel(series), _rows_panel(series)]


def _rows_of(kind: ResultKind) -> Cast:
    path = (F("rows"), Value(kind.value))
    return Cast(Func(*path, function="jsonb_extract_path_text", output_field=TextField()), BigIntegerField())


def _delay_panel(series: TrafficSeries) -> ChartPanel:
    most = _round_all(series.values["most"])
    spec = series.spec([ChartLine("p50", 1, _round_all(series.values["p50"]), 2), ChartLine("max", 2, most)], "s")
    return ChartPanel(
        "pipeline-delay",
        "Ingest delay",
        _describe_line("max ", most, series, _format_seconds) or "No stream batch in the last 24 h.",
        spec,
        largest_rows(spec, _format_seconds),
        "Seconds from the segment’s commit to its rows in the database. Stream batches only.",
        "Delays are shown from the first stream batch on.",
    )


def _rows_panel(series: TrafficSeries) -> ChartPanel:
    """Groups without a row in the whole time have no line."""
    total = _sum_kinds(series, tuple(ResultKind))
    lines = [ChartLine("all rows", 1, total, 2)]
    for group in _GROUPS:
        values = _sum_kinds(series, group.kinds)
        if any(values):
            lines.append(ChartLine(group.label, group.ink, values))
    spec = series.spec(lines, top=10.0)
    return ChartPanel(
        "pipeline-rows",
        "Rows ingested per 5 min",
        _describe_line("", total, series, _format_rows) or "No batch in the last 24 h.",
        spec,
        largest_rows(spec, lambda value: f"{value:,.0f}"),
        "Rows of all batches and clusters. The newest interval may be incomplete.",
        "Rows are shown from the first batch on.",
    )


def _sum_kinds(series: TrafficSeries, kinds: Sequence[ResultKind]) -> list[float | None]:
    """Return the rows of these kinds by interval, None where no batch was ingested."""
    columns = zip(*(series.values[kind.value] for kind in kinds), strict=True)
    return [None if any(value is None for value in values) else sum(v or 0 for v in values) for values in columns]


def _round_all(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else round(value, 3) for value in values]


def _describe_line(of: str, values: Sequence[float | None], series: TrafficSeries, cell: Callable[[float], str]) -> str:
    """Return the newest and the highest value with their times; '' where none is known."""
    known = [(value, place) for place, value in enumerate(values) if value is not None]
    if not known:
        return ""
    newest, last = known[-1]
    highest, place = max(known)
    return f"Newest {of}{cell(newest)} at {series.clock(last)}; highest {cell(highest)} at {series.clock(place)}."


def _format_seconds(value: float) -> str:
    return f"{value:,.1f} s"


def _format_rows(value: float) -> str:
    return choose_plural("# row|# rows", round(value))
