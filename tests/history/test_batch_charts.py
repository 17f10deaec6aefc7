"""Charts of the ledger: delay and rows by interval, one query, and gaps where no batch was ingested."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import count

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import User
from kafkadash.core.charts import ChartPanel
from kafkadash.export.results import ResultKind
from kafkadash.history.batch_charts import batch_panels
from kafkadash.history.models import PipelineLedger
from tests.factories import NOW
from tests.pages.conftest import Page, figures_of

pytestmark = pytest.mark.django_db
LAST = 287
"""Place of the interval 02:00 to 02:05, which holds NOW."""
STREAM = "2f1b6c1e-6c1b-4a57-9a0e-0d6f1f9f2a11"
_NUMBERS = count()


def ingest_batch(ago_s: float, delay_s: float | None = None, query: str = STREAM, **rows: int) -> None:
    at = NOW - timedelta(seconds=ago_s)
    newest_at = None if delay_s is None else at - timedelta(seconds=delay_s)
    batch = next(_NUMBERS)
    PipelineLedger.objects.create(query=query, batch=batch, ingested_at=at, newest_at=newest_at, rows=rows)


def panel(key: str) -> ChartPanel:
    return next(each for each in batch_panels(NOW) if each.key == key)


def known(key: str, label: str) -> dict[int, float]:
    line = next(line for line in panel(key).spec.lines if line.label == label)
    return {place: value for place, value in enumerate(line.values) if value is not None}


def test_delay__median_and_highest_of_each_interval__none_between() -> None:
    for delay in (2.0, 4.0, 90.0):
        ingest_batch(60, delay, lag_rollup=1)
    ingest_batch(1200, 7.5, lag_rollup=1)
    assert known("pipeline-delay", "p50") == {LAST: 4.0, LAST - 4: 7.5}
    assert known("pipeline-delay", "max") == {LAST: 90.0, LAST - 4: 7.5}
    assert figures_of(panel("pipeline-delay").summary) == ["90.0 s", "02:00", "90.0 s", "02:00"]


def test_delay__of_scheduled_jobs_and_of_batches_without_segment__is_left_out() -> None:
    for query in ("hourly-2f1b-3", "daily-2f1b-3-4", "backfill-20261120T0000-20261121T0000-20261121T020000"):
        ingest_batch(60, 3600.0, query, lag_rollup=5)
    ingest_batch(60, None, lag_rollup=5)
    assert not panel("pipeline-delay").spec.known
    assert known("pipeline-rows", "all rows") == {LAST: 20}


def test_rows__a_line_per_group_with_rows__and_the_sum() -> None:
    ingest_batch(60, 1.0, lag_rollup=10, topic_rollup=20, lag_verdict=300)
    ingest_batch(30, 1.0, lag_rollup=1, broker_rollup=4)
    ingest_batch(1200, 1.0)
    spec = panel("pipeline-rows").spec
    assert [line.label for line in spec.lines] == [
        "all rows",
        "lag rollups",
        "broker, quorum and traffic rollups",
        "lag verdicts",
    ]
    assert known("pipeline-rows", "all rows") == {LAST: 335, LAST - 4: 0}
    assert known("pipeline-rows", "lag rollups") == {LAST: 31, LAST - 4: 0}
    assert figures_of(panel("pipeline-rows").summary) == ["335", "02:00", "335", "02:00"]


def test_rows__of_every_kind__have_a_line_with_an_ink_of_its_own() -> None:
    ingest_batch(60, 1.0, STREAM, **dict.fromkeys(map(str, ResultKind), 1))
    lines = panel("pipeline-rows").spec.lines
    assert len({line.ink for line in lines}) == len(lines) <= 6
    assert sum(line.values[LAST] or 0 for line in lines[1:]) == lines[0].values[LAST] == len(ResultKind)


def test_newest_and_highest__have_their_own_times() -> None:
    ingest_batch(7200, 30.0, lag_rollup=900)
    ingest_batch(60, 2.0, lag_rollup=5)
    assert figures_of(panel("pipeline-delay").summary) == ["2.0 s", "02:00", "30.0 s", "00:00"]
    assert figures_of(panel("pipeline-rows").summary) == ["5", "02:00", "900", "00:00"]


def test_a_batch_of_the_day_before__is_outside() -> None:
    ingest_batch(24 * 3600, 1.0, lag_rollup=5)
    assert not panel("pipeline-delay").spec.known
    assert not panel("pipeline-rows").spec.known


def test_both_charts__take_one_query() -> None:
    ingest_batch(60, 1.0, lag_rollup=5)
    with CaptureQueriesContext(connection) as queries:
        batch_panels(NOW)
    assert len(queries) == 1


@pytest.fixture
def get_pipeline(viewer: User, client_of: Callable[[User], Client]) -> Callable[[], Page]:
    return lambda: Page.read(client_of(viewer).get("/pipeline/"))


def test_page__without_batches__has_no_chart_and_says_so(get_pipeline: Callable[[], Page]) -> None:
    page = get_pipeline()
    assert "data-chart" not in page.html
    for key in ("pipeline-delay", "pipeline-rows"):
        assert page.find(f"#{key} [data-empty=none]")


def test_page__with_a_batch__has_both_charts_and_their_tables(get_pipeline: Callable[[], Page]) -> None:
    PipelineLedger.objects.create(query=STREAM, batch=1, rows={"lag_rollup": 12})
    PipelineLedger.objects.update(newest_at=PipelineLedger.objects.get().ingested_at - timedelta(seconds=4))
    page = get_pipeline()
    assert page.has("pipeline-delay-canvas")
    assert page.has("pipeline-rows-canvas")
    assert page.figures("#pipeline-delay .chart-summary")[0] == "4.0 s"
    assert page.figures("#pipeline-rows .chart-summary")[0] == "12"
    assert page.texts("#pipeline-rows-table th")[1:3] == ["All rows", "Lag rollups"]
