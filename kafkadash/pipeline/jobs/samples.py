"""Samples of groups, read from the files that hold them: step by step, the newest first.

Read by Arrow where the work is done, because nearly all of a batch was Spark's way of bringing the ten samples of each
partition together: they lie in the same order in ten files (ADR 16).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kafkadash.domain.lag import LagState
from kafkadash.pipeline.flushes import FOLDER, MINUTE_US
from kafkadash.pipeline.jobs.windows import Flags, Ints, Known, Step
from kafkadash.pipeline.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

WORDS = ("", *(str(state) for state in LagState))
"""What a worker may have said; the first for what this release does not know."""

_WHEN = ("observed_at", "epoch", "seq")
_NAMES = ("group", "topic")
_NUMBERS = ("partition", "committed", "lag", "log_end", "members", "allowed_lag")
_PARTITION_BITS = 32

Minutes = Mapping[str, Sequence[tuple[int, int]]]
"""Cluster → minutes since the epoch from … to, both in it."""
_When = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows from … to of a file, all of one step."""

    file: str
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class Rows:
    """What one refresh of a cluster saw of its groups. ``pairs``: group and topic, as ``Files.pairs`` has them."""

    cluster: str
    observed_us: int
    pairs: Ints
    partitions: Ints
    members: Known
    allowed: Ints
    said: Ints
    step: Step

    @property
    def keys(self) -> Ints:
        """The same for the same partition of the same group, in all files."""
        return (self.pairs << _PARTITION_BITS) | self.partitions

    def only(self, chosen: Flags | Ints) -> Rows:
        return Rows(
            self.cluster,
            self.observed_us,
            self.pairs[chosen],
            self.partitions[chosen],
            self.members.only(chosen),
            self.allowed[chosen],
            self.said[chosen],
            self.step.only(chosen),
        )


class Files:
    """``files``: addresses below the segments' folder. Raises OSError and what Arrow raises."""

    def __init__(self, store: Store, files: Sequence[str]) -> None:
        self._store, self._files = store, files
        self._open: dict[str, dict[str, Any]] = {}
        self._numbers: dict[tuple[str, str], int] = {}

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """(group, topic) of all that was read so far."""
        return list(self._numbers)

    def steps(self, minutes: Minutes) -> Iterator[Rows]:
        """What was observed in these minutes, newest first; a file is held from its newest step to its oldest."""
        found: dict[tuple[_When, str], list[_Piece]] = {}
        for file in self._files:
            for key, piece in self._pieces(file, minutes):
                found.setdefault(key, []).append(piece)
        left = Counter(piece.file for pieces in found.values() for piece in pieces)
        for (when, cluster), pieces in sorted(found.items(), reverse=True):
            yield self._rows(cluster, when, pieces)
            left.subtract(piece.file for piece in pieces)
            for file in {piece.file for piece in pieces}:
                if not left[file]:
                    del self._open[file]

    def _pieces(self, file: str, minutes: Minutes) -> Iterator[tuple[tuple[_When, str], _Piece]]:
        table = self._read(file, ("cluster", *_WHEN), ("cluster",))
        if not table.num_rows:
            return
        codes, clusters = _coded(table.column("cluster"))
        columns = [codes, *(_numbers(table.column(name)).values for name in _WHEN)]
        changes = np.zeros(table.num_rows, np.bool_)
        changes[0] = True
        for column in columns:
            changes[1:] |= column[1:] != column[:-1]
        firsts = np.flatnonzero(changes)
        for first, stop in zip(firsts, [*firsts[1:], table.num_rows], strict=True):
            code, *when = (int(column[first]) for column in columns)
            minute = when[0] // MINUTE_US
            if any(begin <= minute <= end for begin, end in minutes.get(clusters[code], ())):
                yield ((when[0], when[1], when[2]), clusters[code]), _Piece(file, int(first), int(stop))

    def _rows(self, cluster: str, when: _When, pieces: Sequence[_Piece]) -> Rows:
        parts = [self._part(cluster, when, piece) for piece in pieces]
        rows = parts[0] if len(parts) == 1 else _together(parts)
        keys = rows.keys
        if not bool((np.diff(keys) > 0).all()):
            # In an order of their own; a refresh says one thing of a partition, however often it stands there.
            _, once = np.unique(keys, return_index=True)
            if once.size < keys.size:
                rows = rows.only(np.sort(once))
        return rows

    def _part(self, cluster: str, when: _When, piece: _Piece) -> Rows:
        if piece.file not in self._open:
            self._open[piece.file] = self._columns(piece.file)
        held = self._open[piece.file]
        part = slice(piece.first, piece.stop)
        numbers = {name: Known(held[name].values[part], held[name].known[part]) for name in _NUMBERS}
        return Rows(
            cluster,
            when[0],
            held["pairs"][part],
            numbers["partition"].values,
            numbers["members"],
            numbers["allowed_lag"].values,
            held["said"][part],
            Step(numbers["committed"], numbers["lag"], numbers["log_end"], held["begins"][part]),
        )

    def _columns(self, file: str) -> dict[str, Any]:
        texts = (*_NAMES, "verdict")
        table = self._read(file, (*texts, *_NUMBERS, "previous_committed"), texts)
        groups, group_names = _coded(table.column("group"))
        topics, topic_names = _coded(table.column("topic"))
        both, at = _coded_runs(groups << _PARTITION_BITS | topics)
        mine = [(group_names[each >> _PARTITION_BITS], topic_names[each & 0xFFFFFFFF]) for each in both.tolist()]
        numbers = np.array([self._numbers.setdefault(pair, len(self._numbers)) for pair in mine], np.int64)
        verdicts, words = _coded(table.column("verdict"))
        said = np.array([WORDS.index(word) if word in WORDS else 0 for word in words], np.int64)
        return {
            **{name: _numbers(table.column(name)) for name in _NUMBERS},
            "pairs": numbers[at],
            "said": said[verdicts],
            "begins": ~_numbers(table.column("previous_committed")).known,
        }

    def _read(self, file: str, columns: Sequence[str], texts: Sequence[str]) -> pa.Table:
        import pyarrow.parquet as pq

        with self._store.open(f"{FOLDER}/{file}") as opened:
            parquet = pq.ParquetFile(opened, read_dictionary=list(texts))
            return parquet.read(columns=list(columns), use_threads=False).unify_dictionaries().combine_chunks()


def _coded(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Of texts: the number of each row's, and the texts by number."""
    import pyarrow as pa

    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(whole, pa.ChunkedArray):  # of no rows
        return np.empty(0, np.int64), []
    return whole.indices.to_numpy(zero_copy_only=False).astype(np.int64), whole.dictionary.to_pylist()


def _coded_runs(values: Ints) -> tuple[Ints, Ints]:
    """The different values, and for each row which of them it has; quick where equal ones stand together."""
    first = np.ones(min(1, values.size), np.bool_)
    heads = np.flatnonzero(np.concatenate([first, values[1:] != values[:-1]]))
    different, at = np.unique(values[heads], return_inverse=True)
    return different, np.repeat(at, np.diff(np.append(heads, values.size)))


def _numbers(column: pa.ChunkedArray) -> Known:
    """Times in microseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = pa.chunked_array(column.chunks, column.type)
    if pa.types.is_timestamp(whole.type):
        whole = whole.cast(pa.timestamp("us", "UTC"))
    known = pc.is_valid(whole).to_numpy()
    return Known(pc.fill_null(whole.cast(pa.int64()), 0).to_numpy(), known)


def _together(parts: Sequence[Rows]) -> Rows:
    def joined(known: Sequence[Known]) -> Known:
        return Known(np.concatenate([each.values for each in known]), np.concatenate([each.known for each in known]))

    steps = [part.step for part in parts]
    return Rows(
        parts[0].cluster,
        parts[0].observed_us,
        np.concatenate([part.pairs for part in parts]),
        np.concatenate([part.partitions for part in parts]),
        joined([part.members for part in parts]),
        np.concatenate([part.allowed for part in parts]),
        np.concatenate([part.said for part in parts]),
        Step(
            joined([step.committed for step in steps]),
            joined([step.lag for step in steps]),
            joined([step.log_end for step in steps]),
            np.concatenate([step.begins for step in steps]),
        ),
    )
