"""The lake: which files hold what was observed in an hour, as one query has taken them in.

Segments are immutable Parquet by kind and hour already, so that rows are not copied: copying cost more than all that is
reckoned from them (ADR 16). ``lake/<query id>/<date>/<hour>/<batch>.json`` names the files with rows of that hour of
event time, of each kind with the minutes that they span; a batch that is done again writes the same. Rows are read from
the files that are named, so that Spark lists nothing, and only from those whose minutes are wanted. When an hour is
over its lists become one, ``<last batch>-all.json``: a batch every few seconds leaves hundreds. A file that turned
out to be damaged or gone stays on them, with the reason, and is not read again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from kafkadash.domain.segments import COLUMNS, SegmentKind
from kafkadash.pipeline.flushes import FOLDER, Intake, SetAside
from kafkadash.pipeline.jobs.figures import asked
from kafkadash.pipeline.schemas import schema_of
from kafkadash.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LAKE = "lake"
MINUTES_OF_HOUR = 60
_HOURS_KEPT = 60
_SETS = 4  # of clusters; each is a task of its own
_LISTED = 120  # minutes; a list is looked through for each row
_ALL = "-all.json"
EVER = 10**15
"""A batch after all others."""
_MERGED_FROM = 2


@dataclass(frozen=True, slots=True)
class Span:
    """Minutes since the epoch, both in it; of one cluster, or of all."""

    first: int
    last: int
    cluster: str | None = None

    def hours(self) -> range:
        return range(self.first // MINUTES_OF_HOUR, self.last // MINUTES_OF_HOUR + 1)


@dataclass(frozen=True, slots=True)
class Part:
    """A file below the segments' folder, with the minutes that it spans; ``why`` it is not read: a sentence, or ''.

    ``gone``: because it is not there any more.
    """

    kind: SegmentKind
    file: str
    first: int
    last: int
    why: str = ""
    gone: bool = False


def stretches(minutes: Collection[int]) -> Iterator[Span]:
    """Consecutive ones together."""
    begun: list[int] = []
    for minute in sorted(minutes):
        if begun and minute != begun[-1] + 1:
            yield Span(begun[0], begun[-1])
            begun = []
        begun.append(minute)
    if begun:
        yield Span(begun[0], begun[-1])


@dataclass
class Lake:
    spark: SparkSession
    store: Store
    query: str
    _read: dict[str, tuple[Part, ...]] = field(default_factory=dict, init=False)
    _lists: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)
    """Held by who reads lists or merges them: a batch may come while hours are rolled up."""

    @property
    def folder(self) -> str:
        return f"{LAKE}/{self.query}"

    def write(self, batch: int, intake: Intake) -> None:
        """Raises OSError."""
        hours: dict[int, list[Part]] = {}
        for kind, files in intake.files.items():
            for file, minutes in files.items():
                part = Part(kind, file, min(minutes), max(minutes))
                for hour in {minute // MINUTES_OF_HOUR for minute in minutes}:
                    hours.setdefault(hour, []).append(part)
        for hour, parts in hours.items():
            self._write(f"{self.folder}/{hour_folder(hour)}/{batch:012d}.json", parts)

    def merge(self, hour: int, until: int) -> None:
        """One list instead of those of batches up to ``until``, all of which are done. Raises OSError.

        The new one has all that is in the others before any of them goes: who is broken off in between leaves files
        that are named twice, and they are read once. It is no batch's own list, which a batch may write again.
        """
        folder = f"{self.folder}/{hour_folder(hour)}"
        with self._lists:
            names = [name for name in self._names(hour) if batch_of(name) <= until]
            if len(names) < _MERGED_FROM:
                return
            merged = f"{until:012d}{_ALL}"
            self._write(f"{folder}/{merged}", list(dict.fromkeys(self._all_parts([hour], until))))
            for name in names:
                if name != merged:
                    self.store.remove_file(f"{folder}/{name}")
                    self._read.pop(f"{folder}/{name}", None)

    def set_aside(self, files: Iterable[SetAside]) -> None:
        """Not to be read again, whatever batch brought them. Raises OSError."""
        named = {each.file: each for each in files}
        with self._lists:
            for name in self.store.sizes(self.folder):
                parts = () if name.rpartition("/")[2].startswith("_") else self._parts(name)
                if any(part.file in named and not part.why for part in parts):
                    self._write(name, [_set_aside(part, named.get(part.file)) for part in parts])

    def aside(self, hour: int) -> list[SetAside]:
        """What is not read of what was observed in an hour."""
        return [
            SetAside(part.file, part.why, part.gone)
            for part in dict.fromkeys(self._all_parts([hour], EVER))
            if part.why
        ]

    def last_batch(self, hour: int) -> int | None:
        """That brought something of an hour; None where none did. Raises OSError."""
        return max(map(batch_of, self._names(hour)), default=None)

    def _names(self, hour: int) -> list[str]:
        return [name for name in self.store.names(f"{self.folder}/{hour_folder(hour)}") if name[0] != "_"]

    def _write(self, name: str, parts: Iterable[Part]) -> None:
        self._read.pop(name, None)
        said = [
            [each.kind, each.file, each.first, each.last, *([each.why, each.gone] if each.why else [])]
            for each in parts
        ]
        self.store.write(name, json.dumps(said, indent=0).encode())

    def rows(self, kind: SegmentKind, spans: Collection[Span], until: int) -> DataFrame:
        """What was observed in these spans, as batches up to ``until`` brought it."""
        return read_segments(self.spark, self.store, kind, self.files(kind, spans, until)).where(within(spans))

    def looks(self, kind: SegmentKind, spans: Collection[Span], until: int) -> DataFrame:
        """In which files that is, instead of it: a row by ``figures.asked`` for each of a few sets of clusters.

        Raises ValueError for a span that is not of one cluster.
        """
        of_clusters: dict[str, list[Span]] = {}
        for span in spans:
            if span.cluster is None:
                raise ValueError(f"{span} is of all clusters, of which nobody knows here which they are")
            of_clusters.setdefault(span.cluster, []).append(span)
        texts = []
        for turn in [sorted(of_clusters)[start::_SETS] for start in range(min(_SETS, len(of_clusters)))]:
            files = self.files(kind, [span for cluster in turn for span in of_clusters[cluster]], until)
            minutes = {cluster: [(span.first, span.last) for span in of_clusters[cluster]] for cluster in turn}
            texts.append(f.lit(asked(self.store.uri, files, minutes)))
        numbers = self.spark.range(len(texts), numPartitions=max(1, len(texts)))
        listed = f.array(*texts).cast("array<string>")
        return numbers.select(f.get(listed, f.col("id").cast("int")).alias("asked"))

    def files(self, kind: SegmentKind, spans: Collection[Span], until: int) -> list[str]:
        return sorted(
            {
                part.file
                for part in self.parts({hour for span in spans for hour in span.hours()}, until)
                if part.kind is kind and any(part.first <= span.last and span.first <= part.last for span in spans)
            }
        )

    def parts(self, hours: Iterable[int], until: int) -> list[Part]:
        """Of hours since the epoch; a file that reaches over an hour's end comes for each. Raises OSError."""
        return [part for part in self._all_parts(hours, until) if not part.why]

    def _all_parts(self, hours: Iterable[int], until: int) -> list[Part]:
        with self._lists:
            return [
                part
                for hour in sorted(set(hours))
                for name in self._names(hour)
                if batch_of(name) <= until
                for part in self._parts(f"{self.folder}/{hour_folder(hour)}/{name}")
            ]

    def _parts(self, name: str) -> tuple[Part, ...]:
        if name not in self._read:
            if len(self._read) > _HOURS_KEPT * 400:
                self._read.clear()
            said = json.loads(self.store.read(name) or b"[]")
            self._read[name] = tuple(Part(SegmentKind(kind), *rest) for kind, *rest in said)
        return self._read[name]


def _set_aside(part: Part, why: SetAside | None) -> Part:
    return part if why is None else replace(part, why=why.why, gone=why.gone)


def batch_of(name: str) -> int:
    """Of a list's name: the batch that it is of, or the last one of those that it was merged from."""
    return int(name.removesuffix(".json").removesuffix("-all"))


def hour_folder(hour: int) -> str:
    """Of an hour since the epoch."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=hour)
    return f"{at:%Y-%m-%d}/{at:%H}"


def read_segments(spark: SparkSession, store: Store, kind: SegmentKind, files: Sequence[str]) -> DataFrame:
    """No rows where there are no files."""
    schema = schema_of(COLUMNS[kind])
    if not files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*(store.address(f"{FOLDER}/{file}") for file in files))


def within(spans: Collection[Span], column: str = "observed_at") -> Column:
    """Whether a row was observed in one of these.

    Minutes are told as lists and maps, which compiled code refers to: numbers would stand in it, so that each batch had
    to be compiled anew, which takes longer than to run it.
    """
    everywhere = [span for span in spans if span.cluster is None]
    minutes = {minute for span in everywhere for minute in range(span.first, span.last + 1)}
    if len(minutes) > _LISTED:
        wanted = _in_ranges(everywhere, column)
    else:
        listed = f.array(*(f.lit(minute) for minute in sorted(minutes))).cast("array<int>")
        wanted = f.array_contains(listed, _minute(column))
    for turn in _turns(spans):
        ends = f.create_map(*(part for span in turn for part in (f.lit(span.cluster), _ends(span))))
        mine = f.try_element_at(ends, f.col("cluster"))
        inside = _minute(column).between(mine["first"], mine["last"])
        wanted = wanted | f.coalesce(inside, f.lit(col=False))
    return wanted


def _turns(spans: Collection[Span]) -> Iterator[list[Span]]:
    """Spans that are of a cluster, so that each cluster is in a list at most once."""
    left: dict[str, list[Span]] = {}
    for span in spans:
        if span.cluster is not None:
            left.setdefault(span.cluster, []).append(span)
    for turn in zip_longest(*left.values()):
        yield [span for span in turn if span is not None]


def _ends(span: Span) -> Column:
    return f.struct(f.lit(span.first).alias("first"), f.lit(span.last).alias("last"))


def _minute(column: str) -> Column:
    return f.floor(f.unix_seconds(f.col(column)) / 60).cast("int")


def _in_ranges(spans: Collection[Span], column: str) -> Column:
    at, wanted = f.col(column), f.lit(col=False)
    for span in spans:
        wanted = wanted | ((at >= _time(span.first)) & (at < _time(span.last + 1)))
    return wanted


def _time(minute: int) -> Column:
    return f.timestamp_seconds(f.lit(minute * 60))
