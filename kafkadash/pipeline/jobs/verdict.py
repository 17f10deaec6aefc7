"""Verdicts of lag: the rules of ``kafkadash.domain.lag`` as columns, over the newest samples of each partition.

Both must give the same state for the same window (``tests/domain/lag_cases.py``); what the worker said at the time
stands beside ours in the result, so that disagreement can be counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sql

from kafkadash.domain.lag import WINDOW, LagState
from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.pipeline.jobs.shape import result

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NAMES = ("cluster", "group", "topic")
_HASHES = _FIRST, _SECOND = ("_first", "_second")


def lag_verdicts(group_offset: DataFrame) -> DataFrame:
    """The newest verdict of each partition that a group reads, from its last ``WINDOW`` rows in ``group_offset``.

    Rows before those are not looked at, nor are those before one without ``previous_committed``: there the worker's
    window began, or the partition was not in it, and less than a whole window is "unknown" to both.
    """
    # Ten rows of a partition repeat its names ten times. 128 bits of hash go through shuffle and sort in their place,
    # and the names come back at the end; the worker's word goes as a number, for text cannot be aggregated by hash.
    words = sql.array(*(sql.lit(str(state)) for state in LagState))
    hashed = group_offset.withColumns({_FIRST: sql.xxhash64(*_NAMES), _SECOND: sql.xxhash64(sql.lit(1), *_NAMES)})
    samples = hashed.select(
        *_HASHES,
        *("partition", "observed_at", "epoch", "seq", "committed", "lag", "log_end", "members", "allowed_lag"),
        sql.col("previous_committed").isNull().alias("_begins"),
        sql.array_position(words, sql.col("verdict")).cast("int").alias("_said"),
    )
    facts = windows(
        samples,
        [*_HASHES, "partition"],
        [sql.desc("observed_at"), sql.desc("epoch"), sql.desc("seq")],
        newest=["observed_at", "_said", "members", "allowed_lag"],
        begins=sql.col("_begins"),
    )
    judged = facts.join(hashed.select(*_HASHES, *_NAMES).distinct(), list(_HASHES)).withColumns(
        {
            "worker_verdict": sql.coalesce(sql.get(words, sql.col("_said") - 1), sql.lit("")),
            "verdict": state(has_members=sql.col("members") > 0, allowed=sql.col("allowed_lag")),
        }
    )
    return result(judged, ResultKind.LAG_VERDICT)


def windows(
    samples: DataFrame,
    keys: Sequence[str],
    newest_first: Sequence[Column],
    *,
    newest: Sequence[str] = (),
    begins: Column | None = None,
    timed: bool = False,
    size: int = WINDOW,
) -> DataFrame:
    """What ``state`` asks of the last ``size`` samples, one row per ``keys``, with columns ``newest`` of the last.

    No window reaches back beyond a sample of which ``begins`` is true.
    ``samples`` have ``committed``, ``lag``, ``log_end`` and, if ``timed``, ``commit_at`` (seconds, null where unknown).
    """
    # A hash leads the sort: its eight bytes settle most comparisons, which names that begin alike do not.
    grouped = ["_hash", *keys]
    order = Window.partitionBy(*grouped).orderBy(*newest_first)
    # Compared is with the newer sample, of which every one in the window is in it.
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    figured = {"_n": sql.row_number().over(order), "_newer": sql.last("lag", ignorenulls=True).over(before)}
    if begins is not None:
        figured["_begun"] = sql.count(sql.when(begins, 1)).over(before)
    numbered = samples.withColumn("_hash", sql.xxhash64(*keys)).withColumns(figured)
    # Not a filter: that would be planned as a limit per key ahead of the shuffle, which sorts everything twice.
    inside = sql.col("_n") <= size
    if begins is not None:
        inside = inside & (sql.col("_begun") == 0)
    lag = sql.when(inside, sql.col("lag"))
    committed = sql.when(inside, sql.col("committed"))
    known = inside & sql.col("committed").isNotNull()
    figures = {
        "_commits": sql.count(committed),
        "_last": sql.min_by("committed", sql.when(known, sql.col("_n"))),
        "_lowest": sql.min(committed),
        "_highest": sql.max(committed),
        "_lowest_end": sql.min(sql.when(inside, sql.col("log_end"))),
        "_lags": sql.count(lag),
        "_lowest_lag": sql.min(lag),
        "_fell": sql.coalesce(sql.bool_or(lag > sql.col("_newer")), sql.lit(col=False)),
        "_current": sql.max(sql.when(sql.col("_n") == 1, sql.col("lag"))),
    }
    if timed:
        at = sql.when(known & sql.col("commit_at").isNotNull(), sql.col("_n"))
        figures |= {
            "_times": sql.count(at),
            "_first_at": sql.max_by("commit_at", at),
            "_last_at": sql.min_by("commit_at", at),
        }
    kept = [sql.min_by(name, "_n").alias(name) for name in newest]
    return numbered.groupBy(*grouped).agg(*(figure.alias(name) for name, figure in figures.items()), *kept)


def state(*, has_members: Column, allowed: Column, now: Column | None = None, minimum: Column | int = WINDOW) -> Column:
    """The verdict, a ``LagState``'s value, over the columns that ``windows`` made.

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
