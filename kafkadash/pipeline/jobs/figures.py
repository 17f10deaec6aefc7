"""From files to the figures by which lag is judged: one row for each partition that a group reads.

Runs in Python workers of Spark's, a set of clusters each (``mapInArrow``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kafkadash.pipeline.jobs.samples import WORDS, Files, Minutes, Rows
from kafkadash.pipeline.jobs.windows import Ints, Known, Places, Windows
from kafkadash.pipeline.store import open_store

if TYPE_CHECKING:
    import pyarrow as pa

FIGURES = (
    "_current bigint, _commits bigint, _last bigint, _lowest bigint, _highest bigint, _lowest_end bigint,"
    " _lags bigint, _lowest_lag bigint, _fell boolean"
)
SCHEMA = (
    "cluster string, `group` string, topic string, partition int, observed_at timestamp, worker_verdict string,"
    f" members int, allowed_lag bigint, {FIGURES}"
)
_AT_ONCE = 50_000  # rows


def asked(uri: str, files: Sequence[str], minutes: Minutes) -> str:
    """One row of what ``of_files`` is given: the files in which these clusters' minutes are."""
    return json.dumps({"uri": uri, "files": files, "minutes": minutes})


def of_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of ``SCHEMA`` for rows with a text by ``asked``. Raises OSError and what Arrow raises."""
    for batch in batches:
        for text in batch.column(0).to_pylist():
            wanted = json.loads(text)
            files = Files(open_store(wanted["uri"]), wanted["files"])
            seen: dict[str, _Cluster] = {}
            for rows in files.steps(wanted["minutes"]):
                seen.setdefault(rows.cluster, _Cluster()).add(rows)
            for cluster, figures in seen.items():
                yield from figures.rows(cluster, files.pairs)


@dataclass
class _Cluster:
    places: Places = field(default_factory=Places)
    windows: Windows = field(default_factory=Windows)
    newest: list[Rows] = field(default_factory=list)
    """Rows of partitions that no newer step had: together one row for each place, in their order."""

    def add(self, rows: Rows) -> None:
        known = len(self.windows)
        places = self.places.of(rows.keys)
        self.windows.add(places, rows.step)
        fresh = places >= known
        if fresh.any():
            self.newest.append(rows if fresh.all() else rows.only(fresh))

    def rows(self, cluster: str, pairs: Sequence[tuple[str, str]]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        groups, topics = (pa.array([pair[part] for pair in pairs], pa.string()) for part in (0, 1))
        of_pairs = self._of_newest(lambda rows: rows.pairs)
        observed = np.concatenate([np.full(rows.partitions.size, rows.observed_us) for rows in self.newest])
        table = pa.table(
            {
                "cluster": pa.repeat(pa.scalar(cluster), len(self.windows)),
                "group": groups.take(pa.array(of_pairs)),
                "topic": topics.take(pa.array(of_pairs)),
                "partition": pa.array(self._of_newest(lambda rows: rows.partitions)).cast(pa.int32()),
                "observed_at": pa.array(observed).cast(pa.timestamp("us", "UTC")),
                "worker_verdict": pa.array(WORDS).take(pa.array(self._of_newest(lambda rows: rows.said))),
                "members": _nullable(self._known(lambda rows: rows.members)).cast(pa.int32()),
                "allowed_lag": pa.array(self._of_newest(lambda rows: rows.allowed)),
                "_current": _nullable(self._known(lambda rows: rows.step.lag)),
                **of_windows(self.windows),
            }
        )
        yield from table.to_batches(max_chunksize=_AT_ONCE)

    def _of_newest(self, part: Any) -> Ints:
        found: Ints = np.concatenate([part(rows) for rows in self.newest])
        return found

    def _known(self, part: Any) -> Known:
        each = [part(rows) for rows in self.newest]
        return Known(np.concatenate([one.values for one in each]), np.concatenate([one.known for one in each]))


def of_windows(windows: Windows) -> Mapping[str, pa.Array]:
    """``FIGURES`` but the first, which the newest row says."""
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
