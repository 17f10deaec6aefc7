"""Verdicts of lag: the rules of ``kafkadash.domain.lag`` as columns, over figures of each partition's newest samples.

Both must give the same state for the same window (``tests/domain/lag_cases.py``); what the worker said at the time
stands beside ours in the result, so that disagreement can be counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from kafkadash.domain.lag import WINDOW, LagState
from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.pipeline.jobs import figures
from kafkadash.pipeline.jobs.shape import result

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def lag_verdicts(looks: DataFrame) -> DataFrame:
    """The newest verdict of each partition that a group reads, from its last ``WINDOW`` samples in some files.

    Samples before those are not looked at, nor are those before one without ``previous_committed``: there the worker's
    window began, or the partition was not in it, and less than a whole window is "unknown" to both.
    ``looks``: a text by ``figures.asked`` in each row; a cluster is in one of them only.
    """
    seen = looks.mapInArrow(figures.of_files, figures.SCHEMA)
    judged = seen.withColumn("verdict", state(has_members=sql.col("members") > 0, allowed=sql.col("allowed_lag")))
    return result(judged, ResultKind.LAG_VERDICT)


def state(*, has_members: Column, allowed: Column, now: Column | None = None, minimum: Column | int = WINDOW) -> Column:
    """The verdict, a ``LagState``'s value, over the columns of ``figures.SCHEMA``.

    ``now`` in seconds, for windows of samples with commit times; without it they are polled ones. ``has_members`` null:
    nobody could say. The order of the rules is that of ``domain.lag.judge``.
    """
    col = sql.col
    last, lowest_lag = col("_last"), col("_lowest_lag")
    was_at_zero = sql.coalesce(col("_lowest_end") <= last, sql.lit(col=False))
    moved = col("_lowest") != col("_highest")
    timed = sql.lit(col=False) if now is None else col("_times") == col("_commits")
    standing = (
        sql.when(has_members.isNull(), LagState.ERR).when(has_members, LagState.STALL).otherwise(str(LagState.STOP))
    )
    standing = sql.when(was_at_zero, LagState.OK).otherwise(standing)
    verdict = sql.when(
        col("_current").isNull() | (col("_commits") < sql.greatest(sql.lit(minimum), sql.lit(1))), LagState.UNKNOWN
    ).when(col("_current") <= allowed, LagState.OK)
    if now is not None:
        silent, committing = now - col("_last_at"), col("_last_at") - col("_first_at")
        verdict = verdict.when(timed & (silent > committing) & ~was_at_zero, LagState.STOP)
    return (
        verdict.when(last < col("_highest"), LagState.REWIND)
        .when(lowest_lag <= allowed, LagState.OK)
        .when(~moved & timed, LagState.STALL)
        .when(~moved, standing)
        .when(col("_lags") < 2, LagState.UNKNOWN)
        .when(~col("_fell"), LagState.WARN)
        .otherwise(LagState.OK)
    )
