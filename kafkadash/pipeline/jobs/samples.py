"""Samples of groups, read from their files refresh by refresh, the newest first, and folded into figures of lag.

Arrow reads the files in the Python worker, because nearly all of a batch was Spark's way of bringing the ten samples of
each partition together, although they lie in the same order in ten files (ADR 17).

A refresh has at most one sample of each partition. So a step over a million partitions is a few operations on arrays,
and memory is proportional to the answer, however many samples a window has. ``jobs.figures`` judges the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkadash.monitoring.groups.rules import WINDOW, LagState
from kafkadash.pipeline.flushes import FOLDER, MINUTE_US
from kafkadash.pipeline.store import PipelineStore

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile, RowGroupMetaData

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_NEW = {
    "samples": 0,
    "commits": 0,
    "last": 0,
    "lowest": _MOST,
    "highest": _LEAST,
    "lowest_end": _MOST,
    "lags": 0,
    "lowest_lag": _MOST,
    "newer_lag": _MOST,
}


class KnownSamples(NamedTuple):
    """Numbers (offsets, or lags in records), and which of them are known; what stands for the others says nothing."""

    values: Ints
    known: Flags

    def only(self, chosen: Flags | Ints | slice) -> KnownSamples:
        return KnownSamples(self.values[chosen], self.known[chosen])

    @classmethod
    def joined(cls, parts: Sequence[KnownSamples]) -> KnownSamples:
        return cls(np.concatenate([each.values for each in parts]), np.concatenate([each.known for each in parts]))


@dataclass(frozen=True, slots=True)
class SampleStep:
    """Samples of one refresh, one row per partition. ``begins``: no window reaches back beyond this sample.

    ``commit_at``: seconds, for commits whose time is known; None if no times are known. Segments hold no times of
    commits; the rule accepts them for other callers, and has to agree with ``monitoring.groups.rules`` then, too.
    """

    committed: KnownSamples
    lag: KnownSamples
    log_end: KnownSamples
    begins: Flags
    commit_at: tuple[Floats, Flags] | None = None

    def only(self, chosen: Flags | Ints | slice) -> SampleStep:
        at = self.commit_at
        return SampleStep(
            self.committed.only(chosen),
            self.lag.only(chosen),
            self.log_end.only(chosen),
            self.begins[chosen],
            None if at is None else (at[0][chosen], at[1][chosen]),
        )


class SamplePlaces:
    """Numbers 0, 1, 2 … for keys, in the order in which they come."""

    def __init__(self) -> None:
        self.keys: Ints = np.empty(0, np.int64)
        self._sorted, self._order = self.keys, self.keys

    def of(self, keys: Ints) -> Ints:
        """``keys`` without doubles."""
        if np.array_equal(keys, self.keys):
            return np.arange(keys.size)
        at = np.searchsorted(self._sorted, keys)
        at[at == self._sorted.size] = 0
        fresh = self._sorted[at] != keys if self._sorted.size else np.ones(keys.size, np.bool_)
        places = self._order[at] if self._sorted.size else np.zeros(keys.size, np.int64)
        if fresh.any():
            places[fresh] = self.keys.size + np.arange(np.count_nonzero(fresh))
            self.keys = np.concatenate([self.keys, keys[fresh]])
            self._order = np.argsort(self.keys, kind="stable")
            self._sorted = self.keys[self._order]
        return places


@dataclass
class SampleWindows:
    """The figures of each place. ``add`` takes steps from the newest to the oldest.

    ``timed``: whether steps have times of commits.
    """

    size: int = WINDOW
    timed: bool = False
    _of: dict[str, Ints] = field(default_factory=lambda: {name: np.empty(0, np.int64) for name in _NEW}, init=False)
    _open: Flags = field(default_factory=lambda: np.empty(0, np.bool_), init=False)
    fell: Flags = field(default_factory=lambda: np.empty(0, np.bool_), init=False)
    """Flags of windows in which a lag was smaller than one before it."""
    times: Ints = field(default_factory=lambda: np.empty(0, np.int64), init=False)
    """Commits of which the time is known; ``first_at`` and ``last_at``: those of the oldest and the newest."""
    first_at: Floats = field(default_factory=lambda: np.empty(0), init=False)
    last_at: Floats = field(default_factory=lambda: np.empty(0), init=False)

    def add(self, places: Ints, step: SampleStep) -> None:
        """``places``, of which none comes twice, has the place of each row."""
        if places.size:
            self._grow(int(places.max()) + 1 - self._open.size)
        wanted = self._open[places]
        if not wanted.all():
            places, step = places[wanted], step.only(wanted)
        if not places.size:
            return
        at = _slice(places)
        self._commits(at, step.committed)
        self._least("lowest_end", at, step.log_end)
        self._lags(at, step.lag)
        if self.timed and step.commit_at is not None:
            self._times(at, step.committed, *step.commit_at)
        self._of["samples"][at] += 1
        self._open[at] = ~step.begins & (self._of["samples"][at] < self.size)

    def __len__(self) -> int:
        return self._open.size

    @property
    def commits(self) -> Ints:
        return self._of["commits"]

    @property
    def lags(self) -> Ints:
        return self._of["lags"]

    @property
    def last(self) -> KnownSamples:
        """The newest commit; this and the next two are known where there is a commit."""
        return KnownSamples(self._of["last"], self.commits > 0)

    @property
    def lowest(self) -> KnownSamples:
        return KnownSamples(self._of["lowest"], self.commits > 0)

    @property
    def highest(self) -> KnownSamples:
        return KnownSamples(self._of["highest"], self.commits > 0)

    @property
    def lowest_end(self) -> KnownSamples:
        return KnownSamples(self._of["lowest_end"], self._of["lowest_end"] != _MOST)

    @property
    def lowest_lag(self) -> KnownSamples:
        return KnownSamples(self._of["lowest_lag"], self.lags > 0)

    def _grow(self, by: int) -> None:
        if by <= 0:
            return
        for name, value in _NEW.items():
            self._of[name] = np.concatenate([self._of[name], np.full(by, value, np.int64)])
        self._open = np.concatenate([self._open, np.ones(by, np.bool_)])
        self.fell = np.concatenate([self.fell, np.zeros(by, np.bool_)])
        if self.timed:
            self.times = np.concatenate([self.times, np.zeros(by, np.int64)])
            self.first_at = np.concatenate([self.first_at, np.zeros(by)])
            self.last_at = np.concatenate([self.last_at, np.zeros(by)])

    def _commits(self, at: slice | Ints, committed: KnownSamples) -> None:
        commits, last = self._of["commits"], self._of["last"]
        last[at] = np.where(committed.known & (commits[at] == 0), committed.values, last[at])
        commits[at] += committed.known
        self._least("lowest", at, committed)
        highest = self._of["highest"]
        highest[at] = np.where(committed.known, np.maximum(highest[at], committed.values), highest[at])

    def _lags(self, at: slice | Ints, lag: KnownSamples) -> None:
        newer = self._of["newer_lag"]
        self.fell[at] |= lag.known & (lag.values > newer[at])
        newer[at] = np.where(lag.known, lag.values, newer[at])
        self._of["lags"][at] += lag.known
        self._least("lowest_lag", at, lag)

    def _times(self, at: slice | Ints, committed: KnownSamples, seconds: Floats, known: Flags) -> None:
        known = known & committed.known
        self.last_at[at] = np.where(known & (self.times[at] == 0), seconds, self.last_at[at])
        self.first_at[at] = np.where(known, seconds, self.first_at[at])
        self.times[at] += known

    def _least(self, name: str, at: slice | Ints, given: KnownSamples) -> None:
        least = self._of[name]
        least[at] = np.where(given.known, np.minimum(least[at], given.values), least[at])


def _slice(places: Ints) -> slice | Ints:
    """Consecutive ones as a slice, which is read and written in place: what a refresh sees is what the last one saw."""
    first, last = int(places[0]), int(places[-1])
    if last - first + 1 == places.size and bool((np.diff(places) == 1).all()):
        return slice(first, last + 1)
    return places


WORDS = ("", *(str(state) for state in LagState))
"""Verdicts of workers; the first one stands for a verdict that this release does not know."""

_WHEN = ("observed_at", "epoch", "seq")
_TEXTS = ("group", "topic", "verdict")
_NUMBERS = ("partition", "committed", "lag", "log_end", "members", "allowed_lag", "previous_committed")
_PARTITION_BITS = 32

Minutes = Mapping[str, Sequence[tuple[int, int]]]
"""Cluster → minutes since the epoch from … to, both in it."""
_When = tuple[int, int, int]


class _GroupKey(NamedTuple):
    """A row group of a file, the least that is read: its writer begins one for each refresh."""

    file: str
    number: int


@dataclass(frozen=True, slots=True)
class _SamplePiece:
    """Rows from … to of a row group, all of one refresh."""

    group: _GroupKey
    rows: slice


@dataclass(frozen=True, slots=True)
class SampleRows:
    """Samples. ``pairs``: group and topic by ``SampleFiles.pairs``; ``allowed`` in records; ``said``: by ``WORDS``."""

    pairs: Ints
    partitions: Ints
    members: KnownSamples
    allowed: Ints
    said: Ints
    step: SampleStep

    @property
    def keys(self) -> Ints:
        """The same for the same partition of the same group, in all files."""
        return (self.pairs << _PARTITION_BITS) | self.partitions

    def only(self, chosen: Flags | Ints | slice) -> SampleRows:
        return SampleRows(
            self.pairs[chosen],
            self.partitions[chosen],
            self.members.only(chosen),
            self.allowed[chosen],
            self.said[chosen],
            self.step.only(chosen),
        )


@dataclass(frozen=True, slots=True)
class SampleRefresh:
    """Rows of one refresh of a cluster's groups, each partition of each group once."""

    cluster: str
    observed_us: int
    rows: SampleRows


class SampleFiles:
    """``files``: addresses below the segments' folder."""

    def __init__(self, store: PipelineStore, files: Sequence[str]) -> None:
        self._store, self._files = store, files
        self._held: dict[_GroupKey, SampleRows] = {}
        self._numbers: dict[tuple[str, str], int] = {}

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """(group, topic) of all that was read so far."""
        return list(self._numbers)

    def refreshes(self, minutes: Minutes) -> Iterator[SampleRefresh]:
        """Yield the refreshes of these minutes, newest first. Raises OSError and Arrow's errors.

        A row group is held from its newest refresh to its oldest, which as a rule is the same one.
        """
        found: dict[tuple[_When, str], list[_SamplePiece]] = {}
        for file in self._files:
            for key, piece in self._pieces(file, minutes):
                found.setdefault(key, []).append(piece)
        left = Counter(piece.group for pieces in found.values() for piece in pieces)
        for (when, cluster), pieces in sorted(found.items(), key=lambda each: each[0], reverse=True):
            yield SampleRefresh(cluster, when[0], self._rows(pieces))
            left.subtract(piece.group for piece in pieces)
            for group in {piece.group for piece in pieces}:
                if not left[group]:
                    del self._held[group]

    def _pieces(self, file: str, minutes: Minutes) -> Iterator[tuple[tuple[_When, str], _SamplePiece]]:
        with self._store.open(f"{FOLDER}/{file}") as opened:
            parquet = _parquet(opened, ("cluster",))
            for number in range(parquet.num_row_groups):
                whole = _whole_group(parquet.metadata.row_group(number))
                for when, cluster, rows in whole or _of_one_refresh(
                    _read_row_group(parquet, number, ("cluster", *_WHEN))
                ):
                    minute = when[0] // MINUTE_US
                    if any(first <= minute <= last for first, last in minutes.get(cluster, ())):
                        yield (when, cluster), _SamplePiece(_GroupKey(file, number), rows)

    def _rows(self, pieces: Sequence[_SamplePiece]) -> SampleRows:
        for piece in pieces:
            if piece.group not in self._held:
                self._held[piece.group] = self._read_group(piece.group)
        parts = [self._held[piece.group].only(piece.rows) for piece in pieces]
        rows = parts[0] if len(parts) == 1 else _concatenate_rows(parts)
        keys = rows.keys
        if not bool((np.diff(keys) > 0).all()):
            # In an order of their own; a refresh says one thing of a partition, however often it stands there.
            _, once = np.unique(keys, return_index=True)
            if once.size < keys.size:
                rows = rows.only(np.sort(once))
        return rows

    def _read_group(self, group: _GroupKey) -> SampleRows:
        with self._store.open(f"{FOLDER}/{group.file}") as opened:
            table = _read_row_group(_parquet(opened, _TEXTS), group.number, (*_TEXTS, *_NUMBERS))
        groups, group_names = _read_codes(table, "group")
        topics, topic_names = _read_codes(table, "topic")
        both, at = _find_distinct(groups << _PARTITION_BITS | topics)
        pairs = [(group_names[each >> _PARTITION_BITS], topic_names[each & 0xFFFFFFFF]) for each in both.tolist()]
        numbers = np.array([self._numbers.setdefault(pair, len(self._numbers)) for pair in pairs], np.int64)
        verdicts, words = _read_codes(table, "verdict")
        codes = np.array([WORDS.index(word) if word in WORDS else 0 for word in words], np.int64)
        known = {name: _read_numbers(table, name) for name in _NUMBERS}
        step = SampleStep(known["committed"], known["lag"], known["log_end"], begins=~known["previous_committed"].known)
        partitions, allowed = (_require_values(known[name], name) for name in ("partition", "allowed_lag"))
        return SampleRows(numbers[at], partitions, known["members"], allowed, codes[verdicts], step)


def _whole_group(group: RowGroupMetaData) -> list[tuple[_When, str, slice]]:
    """Return the rows as ``_of_one_refresh`` does if the footer shows that the row group has one refresh; else []."""
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


def _read_row_group(parquet: ParquetFile, group: int, columns: Sequence[str]) -> pa.Table:
    return parquet.read_row_group(group, columns=list(columns), use_threads=False).unify_dictionaries().combine_chunks()


def _of_one_refresh(table: pa.Table) -> Iterator[tuple[_When, str, slice]]:
    """Stretches of rows that have the same cluster and the same refresh."""
    if not table.num_rows:
        return
    codes, clusters = _read_codes(table, "cluster")
    columns = [codes, *(_require_values(_read_numbers(table, name), name) for name in _WHEN)]
    changes = np.zeros(table.num_rows, np.bool_)
    changes[0] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    firsts = np.flatnonzero(changes).tolist()
    for first, stop in zip(firsts, [*firsts[1:], table.num_rows], strict=True):
        code, at, epoch, seq = (int(column[first]) for column in columns)
        yield (at, epoch, seq), clusters[code], slice(first, stop)


def _read_codes(table: pa.Table, name: str) -> tuple[Ints, list[str]]:
    """Return the number of each row's text, and the texts by number."""
    column = table.column(name).combine_chunks()
    if column.null_count:
        raise ValueError(f"{name} has no value in {column.null_count} rows")
    return column.indices.to_numpy(zero_copy_only=False).astype(np.int64), column.dictionary.to_pylist()


def _read_numbers(table: pa.Table, name: str) -> KnownSamples:
    """Times in microseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name)
    return KnownSamples(pc.fill_null(column.cast(pa.int64()), 0).to_numpy(), pc.is_valid(column).to_numpy())


def _require_values(numbers: KnownSamples, name: str) -> Ints:
    if not numbers.known.all():
        raise ValueError(f"{name} has no value in {np.count_nonzero(~numbers.known)} rows")
    return numbers.values


def _find_distinct(values: Ints) -> tuple[Ints, Ints]:
    """The different values, and for each row which of them it has; quick where equal ones stand together."""
    first = np.ones(min(1, values.size), np.bool_)
    heads = np.flatnonzero(np.concatenate([first, values[1:] != values[:-1]]))
    different, at = np.unique(values[heads], return_inverse=True)
    return different, np.repeat(at, np.diff(np.append(heads, values.size)))


def _concatenate_rows(parts: Sequence[SampleRows]) -> SampleRows:
    steps = [part.step for part in parts]
    return SampleRows(
        np.concatenate([part.pairs for part in parts]),
        np.concatenate([part.partitions for part in parts]),
        KnownSamples.joined([part.members for part in parts]),
        np.concatenate([part.allowed for part in parts]),
        np.concatenate([part.said for part in parts]),
        SampleStep(
            KnownSamples.joined([step.committed for step in steps]),
            KnownSamples.joined([step.lag for step in steps]),
            KnownSamples.joined([step.log_end for step in steps]),
            np.concatenate([step.begins for step in steps]),
        ),
    )
