"""The streaming query: which manifests are new. What of it is kept is Spark's checkpoint, offsets and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkadash.pipeline import source
from kafkadash.pipeline.source import Manifests
from kafkadash.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CHECKPOINT = "checkpoints/manifests"

Take = Callable[[str, int, list[str]], None]
"""(query id, batch id, manifests by their addresses below the segments' folder)."""


def start(
    spark: SparkSession, store: Store, take: Take, *, every_seconds: float | None, flushes_at_once: int
) -> StreamingQuery:
    """``every_seconds``: None takes what is there and ends. Raises Spark's errors."""
    spark.dataSource.register(Manifests)
    options = {"uri": store.uri, "at_once": str(flushes_at_once)}
    manifests = spark.readStream.format(source.NAME).options(**options).load()

    def each(batch: DataFrame, batch_id: int) -> None:
        names = sorted(row.manifest for row in batch.collect())
        if names:  # a query that begins has a batch also where there is nothing yet
            take(query_id(store), batch_id, names)

    writer = manifests.writeStream.foreachBatch(each).option("checkpointLocation", store.address(CHECKPOINT))
    writer = writer.queryName("segments")
    if every_seconds is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{every_seconds:g} seconds").start()


def query_id(store: Store) -> str:
    """As Spark wrote it when the checkpoint began; '' before that."""
    content = store.read(f"{CHECKPOINT}/metadata")
    return str(json.loads(content)["id"]) if content else ""
