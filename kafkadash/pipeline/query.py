"""The streaming query: which manifests are new. What of it is kept is Spark's checkpoint, offsets and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkadash.domain.segments import SegmentKind
from kafkadash.pipeline import flushes
from kafkadash.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CHECKPOINT = "checkpoints/segments"
# Of Spark's source "binaryFile", which takes no other. Only names are read of it: a manifest that is not whole would
# otherwise stop the query for good.
_SOURCE = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"

Take = Callable[[str, int, list[str]], None]
"""(query id, batch id, manifests by their addresses below the segments' folder)."""


def start(
    spark: SparkSession, store: Store, take: Take, *, every_seconds: float | None, flushes_at_once: int
) -> StreamingQuery:
    """``every_seconds``: None takes what is there and ends. Raises Spark's errors."""
    folder = f"{flushes.FOLDER}/{SegmentKind.MANIFEST}"
    store.make(folder)
    manifests = (
        spark.readStream.format("binaryFile")
        .schema(_SOURCE)
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "*.parquet")
        .option("maxFilesPerTrigger", str(flushes_at_once))
        # By default a file that is a week older than the newest is never taken: after a long standstill some would be.
        .option("maxFileAge", "400d")
        .load(store.address(folder))
        .select("path")
    )

    def each(batch: DataFrame, batch_id: int) -> None:
        prefix = f"{flushes.FOLDER}/"
        names = [store.name(row.path).removeprefix(prefix) for row in batch.collect()]
        take(query_id(store), batch_id, sorted(names))

    writer = manifests.writeStream.foreachBatch(each).option("checkpointLocation", store.address(CHECKPOINT))
    writer = writer.queryName("segments")
    if every_seconds is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{every_seconds:g} seconds").start()


def query_id(store: Store) -> str:
    """As Spark wrote it when the checkpoint began; '' before that."""
    content = store.read(f"{CHECKPOINT}/metadata")
    return str(json.loads(content)["id"]) if content else ""
