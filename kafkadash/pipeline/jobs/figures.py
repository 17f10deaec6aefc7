"""From files to the figures by which lag is judged: one row for each partition that a group reads.

Runs in Python workers of Spark's, a set of clusters each (``mapInArrow``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kafkadash.pipeline.jobs.samples import WORDS, Files, Minutes, Refresh
from kafkadash.pipeline.jobs.windows import Flags, Ints, Known, Places, Windows
from kafkadash.pipeline.store import store_at

if TYPE_CHECKING:
    import pyarrow as pa

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


def asked(uri: str, files: Sequence[str], minutes: Minutes) -> str:
    """One row of what ``of_files`` is given: the files in which these clusters' minutes are."""
    return json.dumps({"uri": uri, "files": files, "minutes": minutes})


def of_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of ``SCHEMA`` for rows with a text by ``asked``.

    Raises OSError, what Arrow raises, ValueError where a required column has no value, PipelineFault.
    """
    for batch in batches:
        for text in batch.column(0).to_pylist():
            wanted = json.loads(text)
            files = Files(store_at(wanted["uri"]), wanted["files"])
            seen: dict[str, _Cluster] = {}
            for refresh in files.refreshes(wanted["minutes"]):
                seen.setdefault(refresh.cluster, _Cluster()).add(refresh)
            for cluster, figures in seen.items():
                # By position is how Spark takes them.
                table = figures.table(cluster, files.pairs).select(list(_COLUMNS))
                yield from table.to_batches(max_chunksize=_AT_ONCE)


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest samples of partitions that no newer refresh had, copied: what they were read from can go."""

    observed_us: Ints
    pairs: Ints
    partitions: Ints
    members: Known
    allowed: Ints
    said: Ints
    lag: Known

    @classmethod
    def of(cls, refresh: Refresh, fresh: Flags) -> _Newest:
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
class _Cluster:
    places: Places = field(default_factory=Places)
    windows: Windows = field(default_factory=Windows)
    newest: list[_Newest] = field(default_factory=list)
    """Together one row for each place, in their order."""

    def add(self, refresh: Refresh) -> None:
        known = len(self.windows)
        places = self.places.of(refresh.rows.keys)
        self.windows.add(places, refresh.rows.step)
        fresh = places >= known
        if fresh.any():
            self.newest.append(_Newest.of(refresh, fresh))

    def table(self, cluster: str, pairs: Sequence[tuple[str, str]]) -> pa.Table:
        import pyarrow as pa

        groups, topics = (pa.array([pair[part] for pair in pairs], pa.string()) for part in (0, 1))
        of_pairs = pa.array(np.concatenate([each.pairs for each in self.newest]))
        observed = pa.array(np.concatenate([each.observed_us for each in self.newest]))
        partitions = pa.array(np.concatenate([each.partitions for each in self.newest]))
        said = pa.array(np.concatenate([each.said for each in self.newest]))
        return pa.table(
            {
                "cluster": pa.repeat(pa.scalar(cluster), len(self.windows)),
                "group": groups.take(of_pairs),
                "topic": topics.take(of_pairs),
                "partition": partitions.cast(pa.int32()),
                "observed_at": observed.cast(pa.timestamp("us", "UTC")),
                "worker_verdict": pa.array(WORDS).take(said),
                "members": _nullable(Known.joined([each.members for each in self.newest])).cast(pa.int32()),
                "allowed_lag": pa.array(np.concatenate([each.allowed for each in self.newest])),
                "_current": _nullable(Known.joined([each.lag for each in self.newest])),
                **of_windows(self.windows),
            }
        )


def of_windows(windows: Windows) -> Mapping[str, pa.Array]:
    """The figures but ``_current``, which the newest sample says."""
    import pyarrow as pa

    return {
        "_commits": pa.array(windows.commits),
        "_last": _nullable(windows.last),
        "_lowest": _nullable(windows.lowest),
        "_highest": _nullable(windows.highest),
        "_lowest_end": _nullable(windows.lowest_end),
        "_lags": pa.array(windows.lags),
        "_lowest_lag": _nullable(windows.lowest_lag),
        "_fell": pa.array(windows.fell),
    }


def _nullable(known: Known) -> pa.Array:
    import pyarrow as pa

    return pa.array(known.values, mask=~known.known)
