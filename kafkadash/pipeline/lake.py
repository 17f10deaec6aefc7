"""The lake: lists of the files that hold the observations of an hour, as one query has taken them in.

Segments are immutable Parquet by kind and hour already, so their rows are not copied: copying cost more than all jobs
on them (ADR 16). ``lake/<query id>/<date>/<hour>/<batch>.json`` names the files with rows of that hour of event time,
of each kind with the minutes that they span; a repeated batch writes the same. Rows are read from the named files, so
that Spark lists nothing, and only from files with the wanted minutes. When an hour is over, its lists become one,
``<last batch>-all.json``: a batch every few seconds leaves hundreds. A file that turned out to be damaged or gone stays
on the list, with the reason, and is not read again.
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

from kafkadash.core.messages import CodedMessage
from kafkadash.export.schema import COLUMNS, SegmentKind
from kafkadash.pipeline.flushes import FOLDER, FlushIntake, SegmentSetAside
from kafkadash.pipeline.jobs.figures import encode_request
from kafkadash.pipeline.schemas import schema_of
from kafkadash.pipeline.store import PipelineStore

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
class LakeSpan:
    """Minutes since the epoch, both in it; of one cluster, or of all."""

    first: int
    last: int
    cluster: str | None = None

    def hours(self) -> range:
        return range(self.first // MINUTES_OF_HOUR, self.last // MINUTES_OF_HOUR + 1)


@dataclass(frozen=True, slots=True)
class LakePart:
    """A file below the segments' folder, with the minutes that it spans.

    ``why`` it is not read: a message as JSON, or ''. ``gone``: because it is not there any more.
    """

    kind: SegmentKind
    file: str
    first: int
    last: int
    why: str = ""
    gone: bool = False


def merge_minutes(minutes: Collection[int]) -> Iterator[LakeSpan]:
    """Consecutive ones together."""
    begun: list[int] = []
    for minute in sorted(minutes):
        if begun and minute != begun[-1] + 1:
            yield LakeSpan(begun[0], begun[-1])
            begun = []
        begun.append(minute)
    if begun:
        yield LakeSpan(begun[0], begun[-1])


@dataclass
class FactLake:
    spark: SparkSession
    store: PipelineStore
    query: str
    _read: dict[str, tuple[LakePart, ...]] = field(default_factory=dict, init=False)
    _lists: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)
    """Held by who reads lists or merges them: a batch may come while hours are rolled up."""

    @property
    def folder(self) -> str:
        return f"{LAKE}/{self.query}"

    def write(self, batch: int, intake: FlushIntake) -> None:
        """Raises OSError."""
        hours: dict[int, list[LakePart]] = {}
        for kind, files in intake.files.items():
            for file, minutes in files.items():
                part = LakePart(kind, file, min(minutes), max(minutes))
                for hour in {minute // MINUTES_OF_HOUR for minute in minutes}:
                    hours.setdefault(hour, []).append(part)
        for hour, parts in hours.items():
            self._write(f"{self.folder}/{hour_folder(hour)}/{batch:012d}.json", parts)

    def merge(self, hour: int, until: int) -> None:
        """Merge the lists of finished batches up to ``until`` into one list. Raises OSError.

        The new list is complete before any other is removed: an interruption leaves files that are named twice, and
        these are read once. The new list is no batch's own list, which a batch may write again.
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

    def set_aside(self, files: Iterable[SegmentSetAside]) -> None:
        """Not to be read again, whatever batch brought them. Raises OSError."""
        named = {each.file: each for each in files}
        with self._lists:
            for name in self.store.sizes(self.folder):
                parts = () if name.rpartition("/")[2].startswith("_") else self._parts(name)
                if any(part.file in named and not part.why for part in parts):
                    self._write(name, [_set_aside(part, named.get(part.file)) for part in parts])

    def aside(self, hour: int) -> list[SegmentSetAside]:
        """Return the files of an hour's observations that are set aside, so not read."""
        return [
            SegmentSetAside(part.file, CodedMessage.from_json(json.loads(part.why)), part.gone)
            for part in dict.fromkeys(self._all_parts([hour], EVER))
            if part.why
        ]

    def last_batch(self, hour: int) -> int | None:
        """Return the last batch that has facts of an hour; None if there is none. Raises OSError."""
        return max(map(batch_of, self._names(hour)), default=None)

    def _names(self, hour: int) -> list[str]:
        return [name for name in self.store.names(f"{self.folder}/{hour_folder(hour)}") if name[0] != "_"]

    def _write(self, name: str, parts: Iterable[LakePart]) -> None:
        self._read.pop(name, None)
        content = [
            [each.kind, each.file, each.first, each.last, *([each.why, each.gone] if each.why else [])]
            for each in parts
        ]
        self.store.write(name, json.dumps(content, indent=0).encode())

    def rows(self, kind: SegmentKind, spans: Collection[LakeSpan], until: int) -> DataFrame:
        """Return the rows observed in these spans, from batches up to ``until``."""
        return read_segments(self.spark, self.store, kind, self.files(kind, spans, until)).where(is_within(spans))

    def looks(self, kind: SegmentKind, spans: Collection[LakeSpan], until: int) -> DataFrame:
        """Requests for the files that hold it: a row by ``figures.encode_request`` for each of a few sets of clusters.

        Raises ValueError for a span that is not of one cluster.
        """
        of_clusters: dict[str, list[LakeSpan]] = {}
        for span in spans:
            if span.cluster is None:
                raise ValueError(f"{span} is of all clusters, of which nobody knows here which they are")
            of_clusters.setdefault(span.cluster, []).append(span)
        texts = []
        for turn in [sorted(of_clusters)[start::_SETS] for start in range(min(_SETS, len(of_clusters)))]:
            files = self.files(kind, [span for cluster in turn for span in of_clusters[cluster]], until)
            minutes = {cluster: [(span.first, span.last) for span in of_clusters[cluster]] for cluster in turn}
            texts.append(f.lit(encode_request(self.store.uri, files, minutes)))
        numbers = self.spark.range(len(texts), numPartitions=max(1, len(texts)))
        listed = f.array(*texts).cast("array<string>")
        return numbers.select(f.get(listed, f.col("id").cast("int")).alias("asked"))

    def files(self, kind: SegmentKind, spans: Collection[LakeSpan], until: int) -> list[str]:
        return sorted(
            {
                part.file
                for part in self.parts({hour for span in spans for hour in span.hours()}, until)
                if part.kind is kind and any(part.first <= span.last and span.first <= part.last for span in spans)
            }
        )

    def parts(self, hours: Iterable[int], until: int) -> list[LakePart]:
        """Return readable parts of hours since the epoch, a file of several hours once for each. Raises OSError."""
        return [part for part in self._all_parts(hours, until) if not part.why]

    def _all_parts(self, hours: Iterable[int], until: int) -> list[LakePart]:
        with self._lists:
            return [
                part
                for hour in sorted(set(hours))
                for name in self._names(hour)
                if batch_of(name) <= until
                for part in self._parts(f"{self.folder}/{hour_folder(hour)}/{name}")
            ]

    def _parts(self, name: str) -> tuple[LakePart, ...]:
        if name not in self._read:
            if len(self._read) > _HOURS_KEPT * 400:
                self._read.clear()
            content = json.loads(self.store.read(name) or b"[]")
            self._read[name] = tuple(LakePart(SegmentKind(kind), *rest) for kind, *rest in content)
        return self._read[name]


def _set_aside(part: LakePart, why: SegmentSetAside | None) -> LakePart:
    return part if why is None else replace(part, why=json.dumps(why.why.as_json()), gone=why.gone)


def batch_of(name: str) -> int:
    """Return the batch of a list's name; for a merged list, the last batch in it."""
    return int(name.removesuffix(".json").removesuffix("-all"))


def hour_folder(hour: int) -> str:
    """Return the folder name of an hour, which is given in hours since the epoch."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=hour)
    return f"{at:%Y-%m-%d}/{at:%H}"


def read_segments(spark: SparkSession, store: PipelineStore, kind: SegmentKind, files: Sequence[str]) -> DataFrame:
    """No rows where there are no files."""
    schema = schema_of(COLUMNS[kind])
    if not files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*(store.address(f"{FOLDER}/{file}") for file in files))


def is_within(spans: Collection[LakeSpan], column: str = "observed_at") -> Column:
    """Return the condition that a row was observed in one of these spans.

    Minutes are passed as lists and maps, which compiled code refers to: literal numbers would become part of the code,
    so that each batch would be compiled anew, which takes longer than to run it.
    """
    everywhere = [span for span in spans if span.cluster is None]
    minutes = {minute for span in everywhere for minute in range(span.first, span.last + 1)}
    if len(minutes) > _LISTED:
        wanted = _in_ranges(everywhere, column)
    else:
        listed = f.array(*(f.lit(minute) for minute in sorted(minutes))).cast("array<int>")
        wanted = f.array_contains(listed, _minute(column))
    for turn in _group_spans(spans):
        ends = f.create_map(*(part for span in turn for part in (f.lit(span.cluster), _ends(span))))
        mine = f.try_element_at(ends, f.col("cluster"))
        inside = _minute(column).between(mine["first"], mine["last"])
        wanted = wanted | f.coalesce(inside, f.lit(col=False))
    return wanted


def _group_spans(spans: Collection[LakeSpan]) -> Iterator[list[LakeSpan]]:
    """Spans that are of a cluster, so that each cluster is in a list at most once."""
    left: dict[str, list[LakeSpan]] = {}
    for span in spans:
        if span.cluster is not None:
            left.setdefault(span.cluster, []).append(span)
    for turn in zip_longest(*left.values()):
        yield [span for span in turn if span is not None]


def _ends(span: LakeSpan) -> Column:
    return f.struct(f.lit(span.first).alias("first"), f.lit(span.last).alias("last"))


def _minute(column: str) -> Column:
    return f.floor(f.unix_seconds(f.col(column)) / 60).cast("int")


def _in_ranges(spans: Collection[LakeSpan], column: str) -> Column:
    at, wanted = f.col(column), f.lit(col=False)
    for span in spans:
        wanted = wanted | ((at >= _time(span.first)) & (at < _time(span.last + 1)))
    return wanted


def _time(minute: int) -> Column:
    return f.timestamp_seconds(f.lit(minute * 60))
