"""The rule of lag as columns gives what ``monitoring.groups.rules.judge_partition`` gives, window for window."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from kafkadash.export.schema import SegmentKind
from kafkadash.monitoring.groups.rules import WINDOW, LagSample, LagState, judge_partition
from kafkadash.pipeline.flushes import FOLDER
from kafkadash.pipeline.jobs.figures import encode_request, of_windows
from kafkadash.pipeline.jobs.samples import KnownSamples, SampleStep, SampleWindows
from tests.monitoring.lag_cases import CASES, Window, random_windows
from tests.pipeline.frames import BEGAN, facts, only

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")


def _judged(spark: SparkSession, windows: Sequence[Window]) -> list[str]:
    """Of each window, by Spark. What a window says apart from its samples takes the place of what they would say."""
    from pyspark.sql import functions as sql

    from kafkadash.pipeline.jobs import figures as verdict

    heads = [
        (number, window.lag, window.has_members, window.allowed, float(window.now), window.minimum)
        for number, window in enumerate(windows)
    ]
    said = spark.createDataFrame(heads, "id int, _current long, members boolean, allowed long, now double, minimum int")
    whole = said.join(spark.createDataFrame(_folded(windows)), "id")
    state = verdict.judge_state(
        has_members=sql.col("members"),
        allowed=sql.col("allowed"),
        now=sql.col("now"),
        minimum=sql.col("minimum"),
    )
    return [row.state for row in whole.select("id", state.alias("state")).orderBy("id").collect()]


def _folded(windows: Sequence[Window]) -> pa.Table:
    """The figures of all of them, one step for the newest samples, one for those before, and so on."""
    folded = SampleWindows(size=max(len(window.samples) for window in windows), timed=True)
    everyone = np.arange(len(windows))
    # A sample of which nothing is known, in each: so that a window without samples has figures as well.
    nothing = KnownSamples(np.zeros(everyone.size, np.int64), np.zeros(everyone.size, np.bool_))
    folded.size += 1
    folded.add(everyone, SampleStep(nothing, nothing, nothing, np.zeros(everyone.size, np.bool_)))
    for back in range(folded.size - 1):
        places = np.array([place for place in range(len(windows)) if back < len(windows[place].samples)], np.int64)
        samples = [windows[place].samples[-1 - back] for place in places]
        ends = [windows[place].ends[back] if back < len(windows[place].ends) else None for place in places]
        at = [sample.commit_at for sample in samples]
        step = SampleStep(
            _known([sample.committed for sample in samples]),
            _known([sample.lag for sample in samples]),
            _known(ends),
            np.zeros(places.size, np.bool_),
            (np.array([float(each or 0) for each in at]), np.array([each is not None for each in at], np.bool_)),
        )
        folded.add(places, step)
    return pa.table(
        {
            "id": pa.array(everyone).cast(pa.int32()),
            **of_windows(folded),
            "_times": pa.array(folded.times),
            "_first_at": pa.array(folded.first_at),
            "_last_at": pa.array(folded.last_at),
        }
    )


def _known(values: Sequence[int | None]) -> KnownSamples:
    return KnownSamples(
        np.array([value or 0 for value in values], np.int64),
        np.array([value is not None for value in values], np.bool_),
    )


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
        expected = judge_partition(
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


class Judge:
    """Writes rows into files, and has Spark judge what is in them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self._times = 0

    def frame(self, rows: list[dict[str, Any]], minutes: tuple[int, int] = (0, 2**40), files: int = 1) -> DataFrame:
        from kafkadash.pipeline.jobs.figures import lag_verdicts

        self._times += 1
        place = self._folder / FOLDER / str(self._times)
        facts(self._spark, SegmentKind.GROUP_OFFSET, rows).repartition(files).write.parquet(place.as_uri())
        names = sorted(f"{self._times}/{file.name}" for file in place.glob("*.parquet"))
        clusters = {row.get("cluster", "prod") for row in rows}
        texts = [encode_request(self._folder.as_uri(), names, {cluster: [minutes]}) for cluster in sorted(clusters)]
        return lag_verdicts(self._spark.createDataFrame([(text,) for text in texts], "asked string"))

    def says(self, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return only(self.frame(rows), ["topic", "partition", "verdict", "worker_verdict"])

    def says_of_each(self, *cases: list[dict[str, Any]]) -> list[list[tuple[Any, ...]]]:
        """Of several cases at once, each in a cluster of its own: verdict and the worker's word of its partitions."""
        rows = [{**row, "cluster": f"case-{number}"} for number, case in enumerate(cases) for row in case]
        found = only(self.frame(rows), ["cluster", "topic", "partition", "verdict", "worker_verdict"])
        return [[row[3:] for row in found if row[0] == f"case-{number}"] for number in range(len(cases))]


@pytest.fixture
def judge_of(spark: SparkSession, tmp_path: Path) -> Judge:
    return Judge(spark, tmp_path)


def test_the_last_ten_samples_are_judged_and_the_workers_word_stands_beside(judge_of: Judge) -> None:
    # Before these ten, the offset moved and was at the end once: nobody looks at that.
    rows = [_row(n, 5 if n > 1 else n, 5 if n == 1 else 100 + n) for n in range(WINDOW + 2)]
    rows[-1]["verdict"] = "stall"
    of_later = [*rows[:-1], rows[-1] | {"verdict": "of a later release"}]
    assert judge_of.says_of_each(rows, rows[3:], of_later) == [
        [("stall", "stall")],
        [("unknown", "stall")],
        [("stall", "")],
    ]


def test_the_newest_row_says_who_is_there_and_how_much_is_allowed(judge_of: Judge) -> None:
    rows = []
    for n in range(WINDOW):
        newest = n == WINDOW - 1
        rows.append(_row(n, 5, 100 + n, topic="left", members=0 if newest else 1))
        rows.append(_row(n, 5, 100 + n, topic="nobody-said", members=None if newest else 1))
        rows.append(_row(n, 5, 100 + n, topic="tolerated", allowed_lag=104 if newest else 0))
    assert [(topic, verdict) for topic, _, verdict, _ in judge_of.says(rows)] == [
        ("left", "stop"),
        ("nobody-said", "err"),
        ("tolerated", "ok"),
    ]


def test_a_lag_that_is_not_known_is_no_lag_of_zero(judge_of: Judge) -> None:
    rows = [_row(n, 5 + n, 100 + 2 * n) for n in range(WINDOW)]
    unknown_between = [row | {"lag": None, "log_end": None} if row["at"] == 4 else row for row in rows]
    unknown_last = [row | {"lag": None, "log_end": None} if row["at"] == WINDOW - 1 else row for row in rows]
    no_commit = [row | {"lag": None, "committed": None} if row["at"] == 4 else row for row in rows]
    said = judge_of.says_of_each(rows, unknown_between, unknown_last, no_commit)
    assert [verdict for [(verdict, _)] in said] == ["warn", "warn", "unknown", "unknown"]


def test_no_window_reaches_beyond_where_the_workers_begins(judge_of: Judge) -> None:
    rows = [_row(n, 5, 100 + n) for n in range(2 * WINDOW)]
    broken = [
        [row | {"previous_committed": None} if row["at"] == beginning else row for row in rows]
        for beginning in (WINDOW, WINDOW + 1, 2 * WINDOW - 1)
    ]
    expected = ("stall", "unknown", "unknown")
    assert judge_of.says_of_each(*broken) == [[(verdict, "unknown")] for verdict in expected]


def test_what_the_order_and_the_files_of_rows_are_makes_no_difference(judge_of: Judge) -> None:
    rows = []
    for place, window in enumerate(random_windows(300, seed=4)):
        samples: Sequence[LagSample] = window.samples
        seen = [*reversed(window.ends)]
        ends = [*[None] * (len(samples) - len(seen)), *seen]
        rows += [
            _row(n, sample.committed, end, topic=f"t{place % 7}", partition=place)
            for n, (sample, end) in enumerate(zip(samples, ends, strict=True))
        ]
    names = ["topic", "partition", "observed_at", "verdict", "worker_verdict"]
    once = only(judge_of.frame(rows), names)
    assert len(once) == len({row["partition"] for row in rows})
    shuffled = random.Random(7).sample(rows, len(rows))
    assert only(judge_of.frame(shuffled, files=7), names) == once
    in_order = sorted(rows, key=lambda row: (row["at"], row["topic"], row["partition"]))
    assert only(judge_of.frame(in_order), names) == once
    assert only(judge_of.frame([*in_order, *shuffled], files=3), names) == once  # a row that stands there twice
    assert {state for *_, state, _ in once} >= {LagState.OK, LagState.UNKNOWN}


def test_clusters_are_judged_apart_and_by_their_own_minutes(judge_of: Judge) -> None:
    rows = [_row(n, 5, 100 + n, cluster=cluster) for n in range(WINDOW) for cluster in ("one", "other")]
    rows[0]["committed"] = 7  # of one only
    names = ["cluster", "verdict"]
    assert only(judge_of.frame(rows), names) == [("one", "rewind"), ("other", "stall")]
    began = int(BEGAN.timestamp()) // 60
    assert only(judge_of.frame(rows, minutes=(began + 1, began + 9)), names) == []
    assert only(judge_of.frame([*rows, _row(60, 5, 300, cluster="one")], minutes=(began + 1, began + 9)), names) == [
        ("one", "unknown")
    ]


def test_two_refreshes_at_one_time_are_in_the_order_of_their_numbers(judge_of: Judge) -> None:
    rows = [_row(n, 5, 100 + n) for n in range(WINDOW - 2)]
    last = {"at": WINDOW, "previous_committed": 1, "log_end": 200, "lag": 190, "verdict": "ok"}
    rows.append({**last, "committed": 7, "epoch": 2, "seq": 1, "verdict": "stall"})
    rows.append({**last, "committed": 9, "epoch": 1, "seq": 50})
    later = [*rows[:-1], rows[-1] | {"epoch": 2, "seq": 2}]
    assert judge_of.says_of_each(rows, later) == [[("rewind", "stall")], [("warn", "ok")]]


def test_partitions_come_and_go(judge_of: Judge) -> None:
    rows = [_row(n, 5, 100 + n, group="late", partition=1) for n in (WINDOW - 2, WINDOW - 1)]
    for n in range(WINDOW):
        rows += [_row(n, 5, 100 + n, partition=partition) for partition in range(n % 3, 6)]
    whole = judge_of.says(rows)
    assert whole == [
        *[("orders", partition, "unknown", "unknown") for partition in (0, 1, 1)],
        *[("orders", partition, "stall", "unknown") for partition in (2, 3, 4, 5)],
    ]
