"""Which rows belong to which minutes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kafkadash.pipeline.lake import Span, within

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")
CLUSTERS = ("east", "west", "never-looked-at")


@pytest.mark.parametrize(
    "spans",
    [
        [],
        [Span(10, 10)],
        [Span(10, 12), Span(20, 20)],
        [Span(0, 200), Span(300, 301)],
        [Span(10, 12, "east")],
        [Span(10, 12, "east"), Span(9, 11, "west"), Span(20, 25, "east")],
        [Span(15, 15), Span(10, 12, "east"), Span(20, 25, "east")],
    ],
)
def test_a_minute_begins_with_its_first_microsecond_and_ends_before_the_next(
    spark: SparkSession, spans: list[Span]
) -> None:
    rows = [
        (cluster, datetime.fromtimestamp(minute * 60 + second, UTC))
        for cluster in CLUSTERS
        for minute in range(310)
        for second in (0, 59.999999)
    ]
    frame = spark.createDataFrame(rows, "cluster string, observed_at timestamp")
    found = {(row.cluster, row.observed_at.astimezone(UTC)) for row in frame.where(within(spans)).collect()}
    assert found == {
        (cluster, at)
        for cluster, at in rows
        if any(span.first <= at.timestamp() // 60 <= span.last and span.cluster in (None, cluster) for span in spans)
    }
