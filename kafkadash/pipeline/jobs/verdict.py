"""Verdicts of lag: the rules of ``kafkadash.domain.lag`` as columns, over the newest samples of each partition.

Both must give the same state for the same window (``tests/domain/lag_cases.py``); what the worker said at the time
stands beside ours in the result, so that disagreement can be counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from kafkadash.domain.lag import WINDOW, LagState
from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.pipeline.jobs.shape import result

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NAMES = ("cluster", "group", "topic")
_HASHES = _FIRST, _SECOND = ("_first", "_second")


def lag_verdicts(group_offset: DataFrame, named: DataFrame | None = None) -> DataFrame:
    """The newest verdict of each partition that a group reads, from its last ``WINDOW`` rows in ``group_offset``.

    Rows before those are not looked at, nor are those before one without ``previous_committed``: there the worker's
    window began, or the partition was not in it, and less than a whole window is "unknown" to both.
    ``named``: rows with cluster, group and topic of whoever is to be judged; without it, all are.
    """
    # Ten rows of a partition repeat its names ten times: 128 bits of hash go through the shuffle in their place, and
    # the names come back at the end. The worker's word goes as a number.
    words = sql.array(*(sql.lit(str(state)) for state in LagState))
    samples = _hashed(group_offset).select(
        *_HASHES,
        *("partition", "observed_at", "epoch", "seq", "committed", "lag", "log_end", "members", "allowed_lag"),
        sql.col("previous_committed").isNull().alias("_begins"),
        sql.array_position(words, sql.col("verdict")).cast("int").alias("_said"),
    )
    facts = windows(
        samples,
        [*_HASHES, "partition"],
        ["observed_at", "epoch", "seq"],
        newest=["observed_at", "_said", "members", "allowed_lag"],
        begins="_begins",
    )
    names = _hashed((group_offset if named is None else named).select(*_NAMES).distinct())
    judged = facts.join(names, list(_HASHES)).withColumns(
        {
            "worker_verdict": sql.coalesce(sql.get(words, sql.col("_said") - 1), sql.lit("")),
            "verdict": state(has_members=sql.col("members") > 0, allowed=sql.col("allowed_lag")),
        }
    )
    return result(judged, ResultKind.LAG_VERDICT)


def _hashed(rows: DataFrame) -> DataFrame:
    return rows.withColumns({_FIRST: sql.xxhash64(*_NAMES), _SECOND: sql.xxhash64(sql.lit(1), *_NAMES)})


def windows(
    samples: DataFrame,
    keys: Sequence[str],
    order: Sequence[str],
    *,
    newest: Sequence[str] = (),
    begins: str | None = None,
    timed: bool = False,
    size: int = WINDOW,
) -> DataFrame:
    """What ``state`` asks of the last ``size`` samples, one row per ``keys``, with columns ``newest`` of the last.

    ``order``: columns that rise from sample to sample. No window reaches back beyond a sample of which the column
    ``begins`` is true. ``samples`` have ``committed``, ``lag``, ``log_end`` and, if ``timed``, ``commit_at`` (seconds,
    null where unknown).
    """
    # Gathered and then sorted, a dozen at a time: window functions would sort all samples of all partitions.
    used = dict.fromkeys((*order, "committed", "lag", "log_end", *newest))
    used |= dict.fromkeys([*([begins] if begins else []), *(["commit_at"] if timed else [])])
    gathered = samples.groupBy(*keys).agg(sql.collect_list(sql.struct(*used)).alias("_all"))
    last = gathered.select(*keys, sql.slice(sql.sort_array("_all", asc=False), 1, size).alias("_window"))
    if begins is not None:
        begun = sql.array_position(sql.col(f"_window.{begins}"), sql.lit(col=True)).cast("int")
        reach = sql.when(begun > 0, begun).otherwise(sql.lit(size))
        last = last.select(*keys, sql.slice("_window", sql.lit(1), reach).alias("_window"))
    newest_sample = sql.get("_window", sql.lit(0))
    known = last.select(
        *keys,
        *(newest_sample[name].alias(name) for name in newest),
        newest_sample["lag"].alias("_current"),
        sql.array_compact(sql.col("_window.committed")).alias("_committed"),
        sql.array_compact(sql.col("_window.lag")).alias("_lag"),
        sql.col("_window.log_end").alias("_ends"),
        *([_times().alias("_at")] if timed else []),
    )
    commits, lags = sql.col("_committed"), sql.col("_lag")
    figures = {
        "_commits": sql.size(commits),
        "_last": sql.get(commits, sql.lit(0)),
        "_lowest": sql.array_min(commits),
        "_highest": sql.array_max(commits),
        "_lowest_end": sql.array_min("_ends"),
        "_lags": sql.size(lags),
        "_lowest_lag": sql.array_min(lags),
        # Newest first, a lag that never fell is in falling order already.
        "_fell": lags != sql.sort_array(lags, asc=False),
    }
    if timed:
        at = sql.col("_at")
        figures |= {
            "_times": sql.size(at),
            "_first_at": sql.get(at, sql.size(at) - 1),
            "_last_at": sql.get(at, sql.lit(0)),
        }
    kept = [*keys, *newest, "_current"]
    return known.select(*kept, *(figure.alias(name) for name, figure in figures.items()))


def _times() -> Column:
    """Of the commits of a window, newest first; those that are known."""
    of_commits = sql.transform("_window", lambda each: sql.when(each["committed"].isNotNull(), each["commit_at"]))
    return sql.array_compact(of_commits)


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
