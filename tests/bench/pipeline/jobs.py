"""The jobs on their own: the rule of lag over ten million rows, percentiles merged twice, and DuckDB beside Spark.

Rows are made once, by Spark, and lie in Parquet files as segments do; making them is not measured.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kafkadash.export.results import ResultKind, RollupGrain
from kafkadash.export.schema import COLUMNS, SegmentKind
from kafkadash.monitoring.groups.rules import WINDOW
from kafkadash.pipeline.session import open_session, require
from tests.bench.bars import Bar, at_most

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

VERDICT_ROWS, VERDICT_S = 10_000_000, 10.0
RANK_ERROR = 1.5
COMPARED_ROWS, TIMES_DUCKDB = 20_000_000, 8.0
BEGAN = 1_772_409_600  # 2026-03-02 00:00 UTC
REPEATS = 3


def measure() -> list[Bar]:
    require()
    folder = Path(tempfile.mkdtemp(prefix="kafkadash-bench-"))
    spark = open_session(os.environ, "kafkadash bench")
    try:
        return [*_verdicts(spark, folder), *_percentiles(spark), *_beside_duckdb(spark, folder)]
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _verdicts(spark: SparkSession, folder: Path) -> list[Bar]:
    from pyspark.sql import functions as f

    from kafkadash.pipeline.flushes import FOLDER
    from kafkadash.pipeline.jobs.figures import encode_request, lag_verdicts

    pairs = VERDICT_ROWS // WINDOW
    step, pair = f.floor(f.col("id") / pairs), f.col("id") % pairs
    end = 1000 + step * (50 + pair % 17)
    # A third each keeps up, lags and stands still.
    committed = f.when(pair % 3 == 0, end).when(pair % 3 == 1, end - 30 - step * 7).otherwise(f.lit(900))
    known = {
        "seq": step,
        "observed_at": f.timestamp_seconds(BEGAN + step * 30),
        "group": f.concat(f.lit("group-"), f.floor(pair / 20)),
        "topic": f.concat(f.lit("topic-"), f.floor(pair / 100)),
        "partition": pair % 20,
        "committed": committed,
        "log_end": end,
        "lag": end - committed,
        "members": f.lit(3),
        "previous_committed": f.when(step > 0, committed),
    }
    place = folder / FOLDER / "verdicts"
    _kept(spark, place, spark.range(0, VERDICT_ROWS, numPartitions=20), known)
    files = sorted(f"verdicts/{file.name}" for file in place.glob("*.parquet"))
    day = BEGAN // 60, BEGAN // 60 + 24 * 60
    looks = spark.createDataFrame([(encode_request(folder.as_uri(), files, {"prod": [day]}),)], "asked string")
    assert lag_verdicts(looks).count() == pairs
    took = _quickest(lambda: _run(lag_verdicts(looks)))
    return [at_most(f"verdicts of {pairs:,} partitions over {VERDICT_ROWS:,} rows", took, VERDICT_S, "s")]


def _percentiles(spark: SparkSession) -> list[Bar]:
    """Of a day, merged from hours that were merged from minutes of very different size."""
    from pyspark.sql import functions as f

    from kafkadash.pipeline.jobs import rollup

    rows = 3_000_000
    # The later in the day, the more samples and the larger: what hurts most where percentiles are averaged.
    at = f.floor(86_400 * f.sqrt((f.col("id") + 0.5) / rows))
    lag = f.floor(f.pow(f.pmod(f.xxhash64("id"), f.lit(10**6)) / 10**6, 6) * (at + 1) * 1000)
    columns = {"cluster": f.lit("prod"), "group": f.lit("g"), "topic": f.lit("t")}
    facts = spark.range(rows).select(
        *(column.alias(name) for name, column in columns.items()),
        f.timestamp_seconds(BEGAN + at).alias("observed_at"),
        lag.alias("lag"),
    )
    minutes = rollup.cluster_rollup(rollup.gather_lags(facts))
    hours = rollup.coarsen_rollup(minutes, ResultKind.CLUSTER_ROLLUP, RollupGrain.HOUR)
    (day,) = rollup.coarsen_rollup(hours, ResultKind.CLUSTER_ROLLUP, RollupGrain.DAY).collect()
    below = [f.count(f.when(f.col("lag") <= day[f"lag_p{share}"], 1)).alias(str(share)) for share in (50, 95, 99)]
    (ranks,) = facts.agg(*below).collect()
    worst = max(abs(ranks[str(share)] / rows * 100 - share) for share in (50, 95, 99))
    return [at_most("rank error of a day's merged percentiles, the worst of three", worst, RANK_ERROR, "%")]


def _beside_duckdb(spark: SparkSession, folder: Path) -> list[Bar]:
    import duckdb
    from pyspark.sql import functions as f

    from kafkadash.pipeline.jobs import rollup

    id_ = f.col("id")
    known = {
        "seq": id_ % 120,
        "observed_at": f.timestamp_seconds(BEGAN + id_ % 120 * 30),
        "group": f.concat(f.lit("group-"), id_ % 5000),
        "topic": f.concat(f.lit("topic-"), id_ % 1000),
        "partition": id_ % 40,
        "lag": f.pmod(f.xxhash64("id"), f.lit(10**6)),
    }
    facts = _kept(spark, folder / "compared", spark.range(0, COMPARED_ROWS, numPartitions=20), known)
    by_spark = _quickest(lambda: _run(rollup.lag_rollup(rollup.gather_lags(facts, RollupGrain.HOUR))))
    quantiles = ", ".join(f"quantile_disc(lag, 0.{share})" for share in (50, 95, 99))
    question = (
        f"SELECT cluster, \"group\", topic, date_trunc('hour', observed_at) AS bucket, count(lag), max(lag), avg(lag),"
        f" {quantiles} FROM read_parquet('{folder / 'compared'}/*.parquet') GROUP BY ALL"
    )
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        by_duckdb = _quickest(lambda: connection.execute(question).fetchall())
    of = f"an hour's rollup of {COMPARED_ROWS:,} rows"
    return [
        Bar(f"{of}, Spark", round(by_spark, 3), "s"),
        Bar(f"{of}, DuckDB (percentiles, without sketches)", round(by_duckdb, 3), "s"),
        at_most(f"{of}, Spark beside DuckDB", by_spark / by_duckdb, TIMES_DUCKDB, "times"),
    ]


def _kept(spark: SparkSession, folder: Path, ids: DataFrame, known: dict[str, Column]) -> DataFrame:
    """Facts of groups in files; columns that are not said are as usual, or null."""
    from pyspark.sql import functions as f

    from kafkadash.pipeline.schemas import schema_of

    usual = {"schema": 1, "cluster": "prod", "epoch": 1, "group_state": "Stable", "allowed_lag": 0, "verdict": "ok"}
    schema = schema_of(COLUMNS[SegmentKind.GROUP_OFFSET])
    columns = [
        known.get(column.name, f.lit(usual.get(column.name))).cast(column.dataType).alias(column.name)
        for column in schema
    ]
    ids.select(*columns).write.parquet(folder.as_uri())
    return spark.read.schema(schema).parquet(folder.as_uri())


def _run(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _quickest(do: Callable[[], object]) -> float:
    took = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        do()
        took.append(time.perf_counter() - began)
    return min(took)
