"""Samples of groups, read from the files that hold them: refresh by refresh, the newest first.

Read by Arrow where the work is done, because nearly all of a batch was Spark's way of bringing the ten samples of each
partition together: they lie in the same order in ten files (ADR 17).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kafkadash.domain.lag import LagState
from kafkadash.pipeline.flushes import FOLDER, MINUTE_US
from kafkadash.pipeline.jobs.windows import Flags, Ints, Known, Step
from kafkadash.pipeline.store import Store

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile, RowGroupMetaData

WORDS = ("", *(str(state) for state in LagState))
"""What a worker may have said; the first for what this release does not know."""

_WHEN = ("observed_at", "epoch", "seq")
_TEXTS = ("group", "topic", "verdict")
_NUMBERS = ("partition", "committed", "lag", "log_end", "members", "allowed_lag", "previous_committed")
_PARTITION_BITS = 32

Minutes = Mapping[str, Sequence[tuple[int, int]]]
"""Cluster → minutes since the epoch from … to, both in it."""
_When = tuple[int, int, int]


class _Group(NamedTuple):
    """A row group of a file, the least that is read: its writer begins one for each refresh."""

    file: str
    number: int


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows from … to of a row group, all of one refresh."""

    group: _Group
    rows: slice


@dataclass(frozen=True, slots=True)
class Rows:
    """Samples. ``pairs``: group and topic by ``Files.pairs``; ``allowed`` in records; ``said``: by ``WORDS``."""

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

    def only(self, chosen: Flags | Ints | slice) -> Rows:
        return Rows(
            self.pairs[chosen],
            self.partitions[chosen],
            self.members.only(chosen),
            self.allowed[chosen],
            self.said[chosen],
            self.step.only(chosen),
        )


@dataclass(frozen=True, slots=True)
class Refresh:
    """What one refresh saw of a cluster's groups, each partition of each group once."""

    cluster: str
    observed_us: int
    rows: Rows


class Files:
    """``files``: addresses below the segments' folder."""

    def __init__(self, store: Store, files: Sequence[str]) -> None:
        self._store, self._files = store, files
        self._held: dict[_Group, Rows] = {}
        self._numbers: dict[tuple[str, str], int] = {}

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """(group, topic) of all that was read so far."""
        return list(self._numbers)

    def refreshes(self, minutes: Minutes) -> Iterator[Refresh]:
        """What was observed in these minutes, newest first. Raises OSError and what Arrow raises.

        A row group is held from its newest refresh to its oldest, which as a rule is the same one.
        """
        found: dict[tuple[_When, str], list[_Piece]] = {}
        for file in self._files:
            for key, piece in self._pieces(file, minutes):
                found.setdefault(key, []).append(piece)
        left = Counter(piece.group for pieces in found.values() for piece in pieces)
        for (when, cluster), pieces in sorted(found.items(), key=lambda each: each[0], reverse=True):
            yield Refresh(cluster, when[0], self._rows(pieces))
            left.subtract(piece.group for piece in pieces)
            for group in {piece.group for piece in pieces}:
                if not left[group]:
                    del self._held[group]

    def _pieces(self, file: str, minutes: Minutes) -> Iterator[tuple[tuple[_When, str], _Piece]]:
        with self._store.open(f"{FOLDER}/{file}") as opened:
            parquet = _parquet(opened, ("cluster",))
            for number in range(parquet.num_row_groups):
                whole = _whole_group(parquet.metadata.row_group(number))
                for when, cluster, rows in whole or _of_one_refresh(_read(parquet, number, ("cluster", *_WHEN))):
                    minute = when[0] // MINUTE_US
                    if any(first <= minute <= last for first, last in minutes.get(cluster, ())):
                        yield (when, cluster), _Piece(_Group(file, number), rows)

    def _rows(self, pieces: Sequence[_Piece]) -> Rows:
        for piece in pieces:
            if piece.group not in self._held:
                self._held[piece.group] = self._read_group(piece.group)
        parts = [self._held[piece.group].only(piece.rows) for piece in pieces]
        rows = parts[0] if len(parts) == 1 else _together(parts)
        keys = rows.keys
        if not bool((np.diff(keys) > 0).all()):
            # In an order of their own; a refresh says one thing of a partition, however often it stands there.
            _, once = np.unique(keys, return_index=True)
            if once.size < keys.size:
                rows = rows.only(np.sort(once))
        return rows

    def _read_group(self, group: _Group) -> Rows:
        with self._store.open(f"{FOLDER}/{group.file}") as opened:
            table = _read(_parquet(opened, _TEXTS), group.number, (*_TEXTS, *_NUMBERS))
        groups, group_names = _coded(table, "group")
        topics, topic_names = _coded(table, "topic")
        both, at = _different(groups << _PARTITION_BITS | topics)
        pairs = [(group_names[each >> _PARTITION_BITS], topic_names[each & 0xFFFFFFFF]) for each in both.tolist()]
        numbers = np.array([self._numbers.setdefault(pair, len(self._numbers)) for pair in pairs], np.int64)
        verdicts, words = _coded(table, "verdict")
        said = np.array([WORDS.index(word) if word in WORDS else 0 for word in words], np.int64)
        known = {name: _numbers(table, name) for name in _NUMBERS}
        step = Step(known["committed"], known["lag"], known["log_end"], begins=~known["previous_committed"].known)
        partitions, allowed = (_whole(known[name], name) for name in ("partition", "allowed_lag"))
        return Rows(numbers[at], partitions, known["members"], allowed, said[verdicts], step)


def _whole_group(group: RowGroupMetaData) -> list[tuple[_When, str, slice]]:
    """As ``_of_one_refresh``, of a row group that is of one refresh, as the footer tells; nothing where it does not."""
    parts = {part.path_in_schema: part for part in map(group.column, range(group.num_columns))}
    told = []
    for name in ("cluster", *_WHEN):
        statistics = parts[name].statistics
        if (
            statistics is None
            or not statistics.has_min_max
            or statistics.null_count != 0
            or statistics.min_raw != statistics.max_raw
        ):
            return []
        told.append(statistics.min_raw)
    cluster, at, epoch, seq = told
    return [((int(at), int(epoch), int(seq)), cluster.decode(), slice(0, group.num_rows))]


def _parquet(opened: pa.NativeFile, texts: Sequence[str]) -> ParquetFile:
    import pyarrow.parquet as pq

    return pq.ParquetFile(opened, read_dictionary=list(texts))


def _read(parquet: ParquetFile, group: int, columns: Sequence[str]) -> pa.Table:
    return parquet.read_row_group(group, columns=list(columns), use_threads=False).unify_dictionaries().combine_chunks()


def _of_one_refresh(table: pa.Table) -> Iterator[tuple[_When, str, slice]]:
    """Stretches of rows that have the same cluster and the same refresh."""
    if not table.num_rows:
        return
    codes, clusters = _coded(table, "cluster")
    columns = [codes, *(_whole(_numbers(table, name), name) for name in _WHEN)]
    changes = np.zeros(table.num_rows, np.bool_)
    changes[0] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    firsts = np.flatnonzero(changes).tolist()
    for first, stop in zip(firsts, [*firsts[1:], table.num_rows], strict=True):
        code, at, epoch, seq = (int(column[first]) for column in columns)
        yield (at, epoch, seq), clusters[code], slice(first, stop)


def _coded(table: pa.Table, name: str) -> tuple[Ints, list[str]]:
    """Of texts: the number of each row's, and the texts by number."""
    column = table.column(name).combine_chunks()
    if column.null_count:
        raise ValueError(f"{name} has no value in {column.null_count} rows")
    return column.indices.to_numpy(zero_copy_only=False).astype(np.int64), column.dictionary.to_pylist()


def _numbers(table: pa.Table, name: str) -> Known:
    """Times in microseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name)
    return Known(pc.fill_null(column.cast(pa.int64()), 0).to_numpy(), pc.is_valid(column).to_numpy())


def _whole(numbers: Known, name: str) -> Ints:
    if not numbers.known.all():
        raise ValueError(f"{name} has no value in {np.count_nonzero(~numbers.known)} rows")
    return numbers.values


def _different(values: Ints) -> tuple[Ints, Ints]:
    """The different values, and for each row which of them it has; quick where equal ones stand together."""
    first = np.ones(min(1, values.size), np.bool_)
    heads = np.flatnonzero(np.concatenate([first, values[1:] != values[:-1]]))
    different, at = np.unique(values[heads], return_inverse=True)
    return different, np.repeat(at, np.diff(np.append(heads, values.size)))


def _together(parts: Sequence[Rows]) -> Rows:
    steps = [part.step for part in parts]
    return Rows(
        np.concatenate([part.pairs for part in parts]),
        np.concatenate([part.partitions for part in parts]),
        Known.joined([part.members for part in parts]),
        np.concatenate([part.allowed for part in parts]),
        np.concatenate([part.said for part in parts]),
        Step(
            Known.joined([step.committed for step in steps]),
            Known.joined([step.lag for step in steps]),
            Known.joined([step.log_end for step in steps]),
            np.concatenate([step.begins for step in steps]),
        ),
    )
