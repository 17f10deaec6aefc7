"""``python -m tests.bench.pipeline.workload [PARTITIONS] [HOURS]``: what the workload model costs.

One hour of looks at every replica becomes the piece that is kept of it; as many pieces as asked for become a model,
which the database takes in and the planner reads. Told are rows, bytes, seconds, and seconds of processor time of this
process and its JVM.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from kafkadash.export.results import ResultKind
from kafkadash.pipeline.flushes import RESULTS_FOLDER, FlushName, count_rows, write_marker, write_rows
from kafkadash.pipeline.session import open_session, require
from kafkadash.pipeline.store import PipelineStore, open_store
from tests.bench.server import empty_database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPLICAS, LOOKS = 3, 60
BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)


def main(arguments: Sequence[str]) -> None:
    partitions = int(arguments[0]) if arguments else 20_000
    hours = int(arguments[1]) if len(arguments) > 1 else 24
    require()
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder).as_uri())
        spark = open_session({})
        try:
            _facts(spark, store, partitions)
            _measured("one hour's piece", store, "piece", lambda: _piece(spark, store))
            _pieces(spark, store, hours)
            _measured(f"the model of {hours} hours", store, f"{RESULTS_FOLDER}/workload", lambda: _model(spark, store))
        finally:
            spark.stop()
        _taken_in(store)


def _facts(spark: SparkSession, store: PipelineStore, partitions: int) -> None:
    """A file for each look, as flushes leave them."""
    from pyspark.sql import functions as sql

    for look in range(LOOKS):
        at = int(BEGIN.timestamp()) + 60 * look + 7
        partition = (sql.col("id") / REPLICAS).cast("int")
        rows = spark.range(partitions * REPLICAS, numPartitions=1).select(
            sql.lit("prod").alias("cluster"),
            sql.lit(1).cast("bigint").alias("epoch"),
            sql.lit(look).cast("bigint").alias("seq"),
            sql.timestamp_seconds(sql.lit(at)).alias("observed_at"),
            sql.format_string("topic-%05d", (partition / 20).cast("int")).alias("topic"),
            (partition % 20).alias("partition"),
            (sql.col("id") % REPLICAS).cast("int").alias("broker"),
            (partition * 1000 + look * 977 * (partition % 91)).cast("bigint").alias("bytes_on_disk"),
            (sql.col("id") % REPLICAS == 0).alias("is_leader"),
            (sql.col("id") < 0).alias("is_future"),
        )
        rows.write.mode("append").parquet(store.address("facts"))


def _piece(spark: SparkSession, store: PipelineStore) -> None:
    from kafkadash.pipeline.jobs.workload import compute_hours

    made = compute_hours(spark.read.parquet(store.address("facts")))
    made.coalesce(1).write.parquet(store.address("piece"))


def _pieces(spark: SparkSession, store: PipelineStore, hours: int) -> None:
    from pyspark.sql import functions as sql

    piece = spark.read.parquet(store.address("piece"))
    for hour in range(hours):
        later = sql.make_dt_interval(hours=sql.lit(hour))
        moved = {name: sql.col(name) + later for name in ("hour", "first_at", "last_at")}
        piece.withColumns(moved).coalesce(1).write.mode("append").parquet(store.address("pieces"))


def _model(spark: SparkSession, store: PipelineStore) -> None:
    from kafkadash.pipeline.jobs.workload import compute_workload

    kept = spark.read.parquet(store.address("pieces"))
    write_rows(store, FlushName("bench", 0), ResultKind.WORKLOAD, compute_workload(kept))


def _taken_in(store: PipelineStore) -> None:
    with empty_database():
        from django.test import override_settings

        from kafkadash.clusters.models import Cluster
        from kafkadash.history import ingest
        from kafkadash.history import schedule as turns
        from kafkadash.history.models import Workload
        from kafkadash.planning.stored_topology import load_workloads

        prod = Cluster.objects.create(name="prod", slug="prod", bootstrap_servers="127.0.0.1:1")
        write_marker(store, FlushName("bench", 0), [ResultKind.WORKLOAD], (), ())
        turns.ensure_state()
        began = time.monotonic()
        with override_settings(PIPELINE_URI=store.uri):
            ingest.take_turn(turns.STATE_ID, only_if_due=False)
        took = time.monotonic() - began
        sys.stdout.write(f"taken in: {Workload.objects.count():,} topics in {took:.1f} s\n")
        began = time.monotonic()
        found = load_workloads(prod, None, BEGIN)
        rates = sum(len(topic.partitions) for topic in found.values())
        sys.stdout.write(f"read by the planner: {rates:,} partitions in {time.monotonic() - began:.1f} s\n")


def _measured(what: str, store: PipelineStore, folder: str, deed: Callable[[], None]) -> None:
    cpu, began = _cpu_seconds(), time.monotonic()
    deed()
    took, used = time.monotonic() - began, _cpu_seconds() - cpu
    size = sum(store.sizes(folder).values())
    rows = count_rows(store, folder)
    sys.stdout.write(f"{what}: {rows:,} rows, {size / 1e6:.1f} MB, {took:.1f} s, {used:.1f} s of processor time\n")


def _cpu_seconds() -> float:
    me = psutil.Process()
    times = [each.cpu_times() for each in [me, *me.children(recursive=True)]]
    return sum(one.user + one.system for one in times)


if __name__ == "__main__":
    main(sys.argv[1:])
