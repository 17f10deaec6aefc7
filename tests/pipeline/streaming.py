"""A query that takes in what is there and ends, started again where Spark could not start its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkadash.pipeline import application
from kafkadash.pipeline.application import Take

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkadash.pipeline.store import PipelineStore

STARTS = 4


def take_in_all(spark: SparkSession, store: PipelineStore, take: Take, *, at_once: int) -> None:
    """Raises StreamingQueryException where ``take`` raised, or where no start of four reached a batch or the end.

    The source runs in a Python process of its own, which must answer within 10 seconds
    (``PythonWorkerFactory.createSimpleWorker``). No setting changes this limit, and a busy machine can miss it.
    """
    from pyspark.errors import StreamingQueryException

    taken: list[int] = []

    def note_and_take(query_id: str, batch: int, names: list[str]) -> None:
        taken.append(batch)
        take(query_id, batch, names)

    for start in range(1, STARTS + 1):
        running = application.start_query(spark, store, note_and_take, every_seconds=None, flushes_at_once=at_once)
        try:
            running.awaitTermination()
        except StreamingQueryException:
            if taken or start == STARTS:
                raise
        else:
            return
        finally:
            running.stop()
