"""The rule of lag as columns gives what ``domain.lag.judge`` gives, window for window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from kafkadash.domain.lag import WINDOW, LagState, Sample, judge
from kafkadash.domain.segments import SegmentKind
from tests.domain.lag_cases import CASES, Window
from tests.domain.lag_windows import random_windows
from tests.pipeline.jobs.frames import facts, only

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")


def _judged(spark: SparkSession, windows: Sequence[Window]) -> list[str]:
    """Of each window, by Spark. What a window says apart from its samples takes the place of what they would say."""
    from pyspark.sql import functions as sql

    from kafkadash.pipeline.jobs import verdict

    samples: list[tuple[Any, ...]] = []
    heads: list[tuple[Any, ...]] = []
    for number, window in enumerate(windows):
        for back, sample in enumerate(reversed(window.samples)):
            end = window.ends[back] if back < len(window.ends) else None
            samples.append((number, -back, *sample, end))
        heads.append((number, window.lag, window.has_members, window.allowed, float(window.now), window.minimum))
    made = spark.createDataFrame(samples, "id int, place int, committed long, lag long, commit_at double, log_end long")
    said = spark.createDataFrame(heads, "id int, said long, members boolean, allowed long, now double, minimum int")
    longest = max(len(window.samples) for window in windows)
    seen = verdict.windows(made, ["id"], ["place"], timed=True, size=longest)
    whole = (
        said.join(seen, "id", "left")
        .withColumn("_current", sql.col("said"))
        .na.fill(0, ["_commits", "_lags", "_times"])  # of a window without samples
    )
    state = verdict.state(
        has_members=sql.col("members"),
        allowed=sql.col("allowed"),
        now=sql.col("now"),
        minimum=sql.col("minimum"),
    )
    return [row.state for row in whole.select("id", state.alias("state")).orderBy("id").collect()]


def test_the_shared_cases(spark: SparkSession) -> None:
    states = _judged(spark, [case.window for case in CASES])
    wrong = [
        (case.window.name, case.state, state) for case, state in zip(CASES, states, strict=True) if case.state != state
    ]
    assert wrong == []
    assert set(states) >= {"ok", "warn", "stall", "stop", "rewind", "unknown"}


def test_ten_thousand_random_windows(spark: SparkSession) -> None:
    windows = list(random_windows(10_000))
    states = _judged(spark, windows)
    wrong = []
    for window, state in zip(windows, states, strict=True):
        expected = judge(
            window.samples,
            lag=window.lag,
            ends=window.ends,
            now=window.now,
            has_members=window.has_members,
            allowed=window.allowed,
            minimum=window.minimum,
        )
        if expected != state:
            wrong.append((window, expected, state))
    assert wrong == []


def _row(at: int, committed: int | None, end: int | None, **besides: Any) -> dict[str, Any]:
    lag = None if committed is None or end is None else max(0, end - committed)
    previous = 1 if at else None  # which one it was is nobody's business
    return {"at": at, "committed": committed, "log_end": end, "lag": lag, "previous_committed": previous, **besides}


def _verdicts(spark: SparkSession, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    from kafkadash.pipeline.jobs.verdict import lag_verdicts

    found = lag_verdicts(facts(spark, SegmentKind.GROUP_OFFSET, rows))
    return only(found, ["topic", "partition", "verdict", "worker_verdict"])


def test_the_last_ten_samples_are_judged_and_the_workers_word_stands_beside(spark: SparkSession) -> None:
    # Before these ten, the offset moved and was at the end once: nobody looks at that.
    rows = [_row(n, 5 if n > 1 else n, 5 if n == 1 else 100 + n) for n in range(WINDOW + 2)]
    rows[-1]["verdict"] = "stall"
    assert _verdicts(spark, rows) == [("orders", 0, "stall", "stall")]
    assert _verdicts(spark, rows[3:]) == [("orders", 0, "unknown", "stall")]
    assert _verdicts(spark, [*rows[:-1], rows[-1] | {"verdict": "of a later release"}]) == [("orders", 0, "stall", "")]


def test_the_newest_row_says_who_is_there_and_how_much_is_allowed(spark: SparkSession) -> None:
    rows = []
    for n in range(WINDOW):
        newest = n == WINDOW - 1
        rows.append(_row(n, 5, 100 + n, topic="left", members=0 if newest else 1))
        rows.append(_row(n, 5, 100 + n, topic="nobody-said", members=None if newest else 1))
        rows.append(_row(n, 5, 100 + n, topic="tolerated", allowed_lag=104 if newest else 0))
    assert [(topic, verdict) for topic, _, verdict, _ in _verdicts(spark, rows)] == [
        ("left", "stop"),
        ("nobody-said", "err"),
        ("tolerated", "ok"),
    ]


def test_a_lag_that_is_not_known_is_no_lag_of_zero(spark: SparkSession) -> None:
    rows = [_row(n, 5 + n, 100 + 2 * n) for n in range(WINDOW)]
    assert _verdicts(spark, rows)[0][2] == "warn"
    unknown_between = [row | {"lag": None, "log_end": None} if row["at"] == 4 else row for row in rows]
    assert _verdicts(spark, unknown_between)[0][2] == "warn"
    unknown_last = [row | {"lag": None, "log_end": None} if row["at"] == WINDOW - 1 else row for row in rows]
    assert _verdicts(spark, unknown_last)[0][2] == "unknown"
    no_commit = [row | {"lag": None, "committed": None} if row["at"] == 4 else row for row in rows]
    assert _verdicts(spark, no_commit)[0][2] == "unknown"


def test_no_window_reaches_beyond_where_the_workers_begins(spark: SparkSession) -> None:
    rows = [_row(n, 5, 100 + n) for n in range(2 * WINDOW)]
    for beginning, expected in ((WINDOW, "stall"), (WINDOW + 1, "unknown"), (2 * WINDOW - 1, "unknown")):
        broken = [row | {"previous_committed": None} if row["at"] == beginning else row for row in rows]
        assert _verdicts(spark, broken) == [("orders", 0, expected, "unknown")]


def test_what_the_order_and_the_files_of_rows_are_makes_no_difference(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs.verdict import lag_verdicts

    rows = []
    for place, window in enumerate(random_windows(300, seed=4)):
        samples: Sequence[Sample] = window.samples
        seen = [*reversed(window.ends)]
        ends = [*[None] * (len(samples) - len(seen)), *seen]
        rows += [
            _row(n, sample.committed, end, topic=f"t{place % 7}", partition=place)
            for n, (sample, end) in enumerate(zip(samples, ends, strict=True))
        ]
    made = facts(spark, SegmentKind.GROUP_OFFSET, rows)
    names = ["topic", "partition", "observed_at", "verdict", "worker_verdict"]
    once = only(lag_verdicts(made), names)
    assert only(lag_verdicts(made.orderBy("lag").repartition(7)), names) == once
    assert {state for *_, state, _ in once} >= {LagState.OK, LagState.UNKNOWN}
