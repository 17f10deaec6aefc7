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


SPANS: list[list[Span]] = [
    [],
    [Span(10, 10)],
    [Span(10, 12), Span(20, 20)],
    [Span(0, 200), Span(300, 301)],
    [Span(10, 12, "east")],
    [Span(10, 12, "east"), Span(9, 11, "west"), Span(20, 25, "east")],
    [Span(15, 15), Span(10, 12, "east"), Span(20, 25, "east")],
]


def test_a_minute_begins_with_its_first_microsecond_and_ends_before_the_next(spark: SparkSession) -> None:
    """All lists of spans are asked at once, a column each."""
    rows = [
        (cluster, datetime.fromtimestamp(minute * 60 + second, UTC))
        for cluster in CLUSTERS
        for minute in range(310)
        for second in (0, 59.999999)
    ]
    frame = spark.createDataFrame(rows, "cluster string, observed_at timestamp")
    asked = frame.select("*", *(within(spans).alias(f"in_{n}") for n, spans in enumerate(SPANS))).collect()
    assert len(asked) == len(rows)
    for row in asked:
        minute = row.observed_at.timestamp() // 60
        for n, spans in enumerate(SPANS):
            inside = any(s.first <= minute <= s.last and s.cluster in (None, row.cluster) for s in spans)
            assert row[f"in_{n}"] is inside, (row, spans)
