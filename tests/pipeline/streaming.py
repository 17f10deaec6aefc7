"""A streaming query that takes in what is there and ends, started again where its source took too long to start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkadash.pipeline import application
from kafkadash.pipeline.application import Take

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkadash.pipeline.store import PipelineStore

_MOST_STARTS = 4


def take_in_all(spark: SparkSession, store: PipelineStore, take: Take, *, at_once: int) -> None:
    """Raises StreamingQueryException where the query fails, or where no start was quick enough.

    The source runs in a Python process of its own, which must connect within 10 seconds
    (``PythonWorkerFactory.createSimpleWorker``). No setting changes this limit, and a busy machine can miss it.
    """
    from pyspark.errors import StreamingQueryException

    for start in range(1, _MOST_STARTS + 1):
        running = application.start_query(spark, store, take, every_seconds=None, flushes_at_once=at_once)
        try:
            running.awaitTermination()
        except StreamingQueryException as error:
            if start == _MOST_STARTS or not _is_start_late(error):
                raise
        else:
            return
        finally:
            running.stop()


def _is_start_late(error: Any) -> bool:
    """Return whether a Python process of Spark did not connect in time, by the class of the innermost Java cause."""
    cause = error._origin  # PySpark has no public way to it
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getClass().getName()) == "java.net.SocketTimeoutException"
