"""What comes of segments when nobody disturbs the pipeline."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkadash.pipeline.batch import PipelineBatches
from kafkadash.pipeline.clockwork import RollupScheduler
from kafkadash.pipeline.flushes import list_manifests
from kafkadash.pipeline.lake import FactLake
from kafkadash.pipeline.store import open_store
from kafkadash.pipeline.work import works
from tests.pipeline.streaming import take_in_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def of_the_same_batches(spark: SparkSession, folder: Path, ledger: list[tuple[Any, ...]]) -> str:
    """``ledger``: rows that begin with query and batch and have a list of flushes (epoch, seq). The last query's name.

    A query is done after those that it came after: by when its newest batch's newest segment was written.
    """
    store = open_store(folder.as_uri())
    by_flush = {_flush(name): name for name in list_manifests(store)}
    queries: dict[str, list[tuple[int, list[str]]]] = {}
    for query_id, batch, *_, flushes, _aside in ledger:
        queries.setdefault(query_id, []).append((batch, [by_flush[tuple(flush)] for flush in flushes]))
    order = sorted(queries, key=lambda query_id: max(name for _, names in queries[query_id] for name in names))
    for query_id in order:
        batches = PipelineBatches(FactLake(spark, store, query_id), works())
        for batch, names in sorted(queries[query_id]):
            batches.do(batch, names)
    return order[-1]


def of_the_rest(spark: SparkSession, folder: Path, at_once: int) -> None:
    """By the query that was begun in the folder, as a driver does it that is started again."""
    store = open_store(folder.as_uri())

    def take(query_id: str, batch: int, names: list[str]) -> None:
        PipelineBatches(FactLake(spark, store, query_id), works()).do(batch, names)

    take_in_all(spark, store, take, at_once=at_once)


def in_one(spark: SparkSession, folder: Path, name: str) -> None:
    store = open_store(folder.as_uri())
    PipelineBatches(FactLake(spark, store, name), works()).do(0, list_manifests(store))


def by_the_clock(spark: SparkSession, folder: Path, name: str, now: datetime) -> None:
    RollupScheduler(FactLake(spark, open_store(folder.as_uri()), name), lambda _: None).turn(now)


def _flush(manifest: str) -> tuple[int, int]:
    epoch, _, seq = manifest.rpartition("/")[2].removesuffix(".parquet").partition("-")
    return int(epoch), int(seq)
