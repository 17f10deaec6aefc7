"""Verdicts of lag: the rules of ``monitoring.groups.rules`` as columns, over figures of the newest samples.

The figures, one row for each partition that a group reads, are made in Python workers of Spark, a set of clusters each
(``mapInArrow``). Both implementations of the rules must give the same state for the same window
(``tests/monitoring/lag_cases.py``); the result has the worker's verdict beside this one, so that differences can be
counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as sql

from kafkadash.export.results import ResultKind
from kafkadash.monitoring.groups.rules import LAG_RULE, WINDOW, LagState, WindowCondition
from kafkadash.pipeline.jobs.samples import (
    WORDS,
    Flags,
    Ints,
    KnownSamples,
    Minutes,
    SampleFiles,
    SamplePlaces,
    SampleRefresh,
    SampleWindows,
)
from kafkadash.pipeline.jobs.shape import select_columns
from kafkadash.pipeline.store import store_at

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_COLUMNS = {
    "cluster": "string",
    "group": "string",
    "topic": "string",
    "partition": "int",
    "observed_at": "timestamp",
    "worker_verdict": "string",
    "members": "int",
    "allowed_lag": "bigint",
    "_current": "bigint",
    "_commits": "bigint",
    "_last": "bigint",
    "_lowest": "bigint",
    "_highest": "bigint",
    "_lowest_end": "bigint",
    "_lags": "bigint",
    "_lowest_lag": "bigint",
    "_fell": "boolean",
}
SCHEMA = ", ".join(f"`{name}` {type_}" for name, type_ in _COLUMNS.items())
_AT_ONCE = 50_000  # rows


def encode_request(uri: str, files: Sequence[str], minutes: Minutes) -> str:
    """Return one input row for ``of_files``: the files that hold these minutes of the clusters."""
    return json.dumps({"uri": uri, "files": files, "minutes": minutes})


def of_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of ``SCHEMA`` for rows with a text by ``encode_request``.

    Raises OSError, what Arrow raises, ValueError where a required column has no value, PipelineFault.
    """
    for batch in batches:
        for text in batch.column(0).to_pylist():
            wanted = json.loads(text)
            files = SampleFiles(store_at(wanted["uri"]), wanted["files"])
            seen: dict[str, _ClusterAges] = {}
            for refresh in files.refreshes(wanted["minutes"]):
                seen.setdefault(refresh.cluster, _ClusterAges()).add(refresh)
            for cluster, figures in seen.items():
                # By position is how Spark takes them.
                table = figures.table(cluster, files.pairs).select(list(_COLUMNS))
                yield from table.to_batches(max_chunksize=_AT_ONCE)


@dataclass(frozen=True, slots=True)
class _NewestSample:
    """The newest samples of partitions that no newer refresh had, copied: what they were read from can go."""

    observed_us: Ints
    pairs: Ints
    partitions: Ints
    members: KnownSamples
    allowed: Ints
    said: Ints
    lag: KnownSamples

    @classmethod
    def of(cls, refresh: SampleRefresh, fresh: Flags) -> _NewestSample:
        rows = refresh.rows
        return cls(
            np.full(np.count_nonzero(fresh), refresh.observed_us, np.int64),
            rows.pairs[fresh],
            rows.partitions[fresh],
            rows.members.only(fresh),
            rows.allowed[fresh],
            rows.said[fresh],
            rows.step.lag.only(fresh),
        )


@dataclass
class _ClusterAges:
    places: SamplePlaces = field(default_factory=SamplePlaces)
    windows: SampleWindows = field(default_factory=SampleWindows)
    newest: list[_NewestSample] = field(default_factory=list)
    """Together one row for each place, in their order."""

    def add(self, refresh: SampleRefresh) -> None:
        known = len(self.windows)
        places = self.places.of(refresh.rows.keys)
        self.windows.add(places, refresh.rows.step)
        fresh = places >= known
        if fresh.any():
            self.newest.append(_NewestSample.of(refresh, fresh))

    def table(self, cluster: str, pairs: Sequence[tuple[str, str]]) -> pa.Table:
        import pyarrow as pa

        groups, topics = (pa.array([pair[part] for pair in pairs], pa.string()) for part in (0, 1))
        of_pairs = pa.array(np.concatenate([each.pairs for each in self.newest]))
        observed = pa.array(np.concatenate([each.observed_us for each in self.newest]))
        partitions = pa.array(np.concatenate([each.partitions for each in self.newest]))
        codes = pa.array(np.concatenate([each.said for each in self.newest]))
        return pa.table(
            {
                "cluster": pa.repeat(pa.scalar(cluster), len(self.windows)),
                "group": groups.take(of_pairs),
                "topic": topics.take(of_pairs),
                "partition": partitions.cast(pa.int32()),
                "observed_at": observed.cast(pa.timestamp("us", "UTC")),
                "worker_verdict": pa.array(WORDS).take(codes),
                "members": _build_array(KnownSamples.joined([each.members for each in self.newest])).cast(pa.int32()),
                "allowed_lag": pa.array(np.concatenate([each.allowed for each in self.newest])),
                "_current": _build_array(KnownSamples.joined([each.lag for each in self.newest])),
                **of_windows(self.windows),
            }
        )


def of_windows(windows: SampleWindows) -> Mapping[str, pa.Array]:
    """The figures but ``_current``, which the newest sample says."""
    import pyarrow as pa

    return {
        "_commits": pa.array(windows.commits),
        "_last": _build_array(windows.last),
        "_lowest": _build_array(windows.lowest),
        "_highest": _build_array(windows.highest),
        "_lowest_end": _build_array(windows.lowest_end),
        "_lags": pa.array(windows.lags),
        "_lowest_lag": _build_array(windows.lowest_lag),
        "_fell": pa.array(windows.fell),
    }


def _build_array(known: KnownSamples) -> pa.Array:
    import pyarrow as pa

    return pa.array(known.values, mask=~known.known)


def lag_verdicts(looks: DataFrame) -> DataFrame:
    """The newest verdict of each partition that a group reads, from its last ``WINDOW`` samples in some files.

    Samples before those are not looked at, nor are those before one without ``previous_committed``: there the worker's
    window began, or the partition was not in it, and less than a whole window is "unknown" to both.
    ``looks``: a text by ``figures.encode_request`` in each row; a cluster is in one of them only.
    """
    seen = looks.mapInArrow(of_files, SCHEMA)
    judged = seen.withColumn("verdict", judge_state(has_members=sql.col("members") > 0, allowed=sql.col("allowed_lag")))
    return select_columns(judged, ResultKind.LAG_VERDICT)


def judge_state(
    *, has_members: Column, allowed: Column, now: Column | None = None, minimum: Column | int = WINDOW
) -> Column:
    """The verdict, a ``LagState``'s value, over the columns of ``figures.SCHEMA``.

    ``now`` in seconds, for windows of samples with commit times; without it they are polled ones. ``has_members`` null:
    nobody could say. The rule is ``monitoring.groups.rules.LAG_RULE``.
    """
    col = sql.col
    last = col("_last")
    was_at_end = sql.coalesce(col("_lowest_end") <= last, sql.lit(col=False))
    still = col("_lowest") == col("_highest")
    timed = sql.lit(col=False) if now is None else col("_times") == col("_commits")
    few = col("_commits") < sql.greatest(sql.lit(minimum), sql.lit(1))
    held = {
        WindowCondition.FEW_SAMPLES: col("_current").isNull() | few,
        WindowCondition.LAG_ALLOWED: col("_current") <= allowed,
        WindowCondition.SET_BACK: last < col("_highest"),
        WindowCondition.CAUGHT_UP: col("_lowest_lag") <= allowed,
        WindowCondition.STILL_TIMED: still & timed,
        WindowCondition.STILL_AT_END: still & was_at_end,
        WindowCondition.STILL_MEMBERS_UNKNOWN: still & has_members.isNull(),
        WindowCondition.STILL_WITH_MEMBERS: still & has_members,
        WindowCondition.STILL: still,
        WindowCondition.FEW_LAGS: col("_lags") < 2,
        WindowCondition.NEVER_FELL: ~col("_fell"),
    }
    if now is not None:
        silent, committing = now - col("_last_at"), col("_last_at") - col("_first_at")
        held[WindowCondition.SILENT] = timed & (silent > committing) & ~was_at_end
    (first, state), *rest = [(held[condition], str(state)) for condition, state in LAG_RULE if condition in held]
    verdict = sql.when(first, state)
    for holds, state in rest:
        verdict = verdict.when(holds, state)
    return verdict.otherwise(str(LagState.OK))
