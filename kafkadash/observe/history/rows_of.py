"""Results as rows of the tables they go to: what is written, in portions that a short transaction can hold each."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from kafkadash.domain.messages import coded
from kafkadash.domain.pipeline_results import SECONDS, Grain, ResultKind
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.history import partitions, upserts
from kafkadash.observe.history.names import stored_name
from kafkadash.observe.history.results import Marker, SetAside, read, rows
from kafkadash.observe.history.store import Store
from kafkadash.observe.history.upserts import Row, Target
from kafkadash.observe.models import Series, Workload

AT_ONCE = 4000
"""Rows of one statement: below a tenth of a second."""
TOPICS_AT_ONCE = 200
_MOST_DIFFERENCES = 500
_AHEAD = timedelta(days=1)
_UNJUDGED = ("", "unknown")


@dataclass(slots=True)
class Taken:
    """What a result comes to. ``portions``: number of rows, and what writes them in the caller's transaction."""

    portions: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    places: set[tuple[int, datetime]] = field(default_factory=set)
    rows: dict[str, int] = field(default_factory=dict)
    skipped: int = 0
    compared: dict[tuple[int, datetime], list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """``clusters``: slug → id of those that are registered. ``below``: the results' folder in the store. ``since``: id
    → when it was registered, of those whose name another cluster had before.
    """

    store: Store
    marker: Marker
    clusters: Mapping[str, int]
    now: datetime
    below: str = "results"
    since: Mapping[int, datetime] = field(default_factory=dict)

    def cluster(self, slug: str, begins: datetime) -> int | None:
        """Of whom something tells that began then; None where that is no cluster that is registered."""
        own = self.clusters.get(slug)
        return None if own is None or begins < self.since.get(own, begins) else own

    def tables(self, kind: ResultKind, columns: Sequence[str]) -> Iterator[Any]:
        return read(self.store, self.marker, kind, columns, self.below)


@dataclass(frozen=True, slots=True)
class _Rollups:
    figure: str
    group: str = ""
    topic: str = ""
    node: str = ""
    other: str = ""
    changes: str = ""


_ROLLUPS = {
    ResultKind.LAG_ROLLUP: _Rollups("lag", group="group", topic="topic"),
    ResultKind.TOPIC_ROLLUP: _Rollups("lag", topic="topic", other="bytes_on_disk"),
    ResultKind.BROKER_ROLLUP: _Rollups("replica_bytes", node="broker", other="replicas"),
    ResultKind.CLUSTER_ROLLUP: _Rollups("lag"),
    ResultKind.QUORUM_ROLLUP: _Rollups("lag_ms", node="replica", other="fetch_age_ms_max", changes="leader_changes"),
}
_DAYS = tuple(f"days_to_{share}{end}" for share in (80, 90) for end in ("", "_low", "_high"))
_PLAIN = {
    ResultKind.CATCH_UP: Target(
        "observe_catchup",
        ("cluster_id", "topic", "partition", "broker"),
        ("observed_at", "version"),
        (
            ("cluster_id", "bigint"),
            ("version", "bigint"),
            ("topic", "text"),
            ("partition", "integer"),
            ("broker", "integer"),
            ("observed_at", "timestamptz"),
            ("bytes_per_second", "double precision"),
            ("left_bytes", "bigint"),
            ("eta_seconds", "double precision"),
        ),
    ),
    ResultKind.DISK_FORECAST: Target(
        "observe_diskforecast",
        ("cluster_id", "broker", "directory"),
        ("observed_at", "version"),
        (
            ("cluster_id", "bigint"),
            ("version", "bigint"),
            ("broker", "integer"),
            ("directory", "text"),
            ("observed_at", "timestamptz"),
            ("used_bytes", "bigint"),
            ("total_bytes", "bigint"),
            ("grows_per_day", "double precision"),
            *((name, "double precision") for name in _DAYS),
            ("samples", "bigint"),
            ("from_at", "timestamptz"),
        ),
    ),
}
_WORKLOAD = Target(
    "observe_workload",
    ("cluster_id", "topic"),
    ("to_at", "version"),
    (
        ("cluster_id", "bigint"),
        ("version", "bigint"),
        ("topic", "text"),
        ("format", "smallint"),
        ("partitions", "jsonb"),
        ("from_at", "timestamptz"),
        ("to_at", "timestamptz"),
    ),
)
_DIFFERENCE = Target(
    "observe_verdictdifference",
    ("cluster_id", "group", "topic", "partition"),
    ("observed_at", "version"),
    (
        ("cluster_id", "bigint"),
        ("version", "bigint"),
        ("group", "text"),
        ("topic", "text"),
        ("partition", "integer"),
        ("observed_at", "timestamptz"),
        ("verdict", "text"),
        ("worker_verdict", "text"),
    ),
)


def take(reading: Reading, kind: ResultKind, taken: Taken) -> None:
    """Adds the rows of one kind to what is taken. Raises SetAside with nothing added, and StoreFailed."""
    before = taken.skipped
    if kind in _ROLLUPS:
        _rollups(reading, kind, taken)
    elif kind in _PLAIN:
        _plain(reading, kind, taken)
    elif kind is ResultKind.WORKLOAD:
        _workload(reading, taken)
    else:
        _verdicts(reading, taken)
    taken.rows[kind.value] = reading.marker.rows[kind] - (taken.skipped - before)


def _rollups(reading: Reading, kind: ResultKind, taken: Taken) -> None:
    about = _ROLLUPS[kind]
    names = [name for name in (about.group, about.topic, about.node) if name]
    figures = [f"{about.figure}_{part}" for part in ("count", "max", "p50", "p95", "p99", "mean")]
    extras = [name for name in (about.other, about.changes) if name]
    oldest = {grain: reading.now - keep for grain, keep in partitions.keeps().items()}
    found: list[Row] = []
    places, skipped = set(), 0
    for table in reading.tables(kind, ["cluster", "grain", "bucket", *names, *figures, *extras]):
        for slug, grain_name, bucket, *rest in rows(table):
            grain = _seconds(reading, kind, grain_name)
            cluster = reading.cluster(slug, bucket)
            if cluster is None or not oldest[grain] <= bucket <= reading.now + _AHEAD:
                skipped += 1
                continue
            named = dict(zip([*names, *extras], [*rest[: len(names)], *rest[len(names) + 6 :]], strict=True))
            samples, *figured = rest[len(names) : len(names) + 6]
            own = (
                stored_name(named.get(about.group, "")),
                named.get(about.topic, ""),
                named.get(about.node, Series.NO_NODE),
            )
            other = (named.get(about.other), named.get(about.changes))
            found.append((cluster, *own, bucket, reading.marker.version, samples, grain, *figured, *other))
            places.add((grain, bucket.replace(hour=0, minute=0)))
    taken.skipped += skipped
    taken.places |= places
    for some in _portions(found):
        taken.portions.append((len(some), partial(upserts.write_rollups, kind.value, some)))


def _seconds(reading: Reading, kind: ResultKind, grain: str) -> int:
    try:
        return SECONDS[Grain(grain)]
    except ValueError:
        folder = reading.marker.folder(kind)
        why = f"no grain is called {grain!r}"
        raise SetAside(folder, coded(CollectionErrorCode.COLUMNS_WRONG, file=folder, kind=kind, why=why)) from None


def _plain(reading: Reading, kind: ResultKind, taken: Taken) -> None:
    target = _PLAIN[kind]
    columns = [name for name, _ in target.columns[2:]]
    begins = columns.index("from_at" if "from_at" in columns else "observed_at")
    found: list[Row] = []
    skipped = 0
    for table in reading.tables(kind, ["cluster", *columns]):
        for slug, *rest in rows(table):
            cluster = reading.cluster(slug, rest[begins])
            if cluster is None:
                skipped += 1
            else:
                found.append((cluster, reading.marker.version, *rest))
    taken.skipped += skipped
    for some in _portions(found):
        taken.portions.append((len(some), partial(upserts.write, target, some)))


def _workload(reading: Reading, taken: Taken) -> None:
    """A topic's partitions are one row, column by column; what was taken in hour by hour stays in the result."""
    columns = ["cluster", "topic", "partition", *_PACKED, "from_at", "to_at"]
    topics: dict[tuple[int, str], list[Row]] = defaultdict(list)
    for table in reading.tables(ResultKind.WORKLOAD, columns):
        for slug, topic, *rest in rows(table):
            cluster = reading.cluster(slug, rest[-2])
            if cluster is None:
                taken.skipped += 1
            else:
                topics[cluster, topic].append(tuple(rest))
    found = []
    for (cluster, topic), own in sorted(topics.items()):
        partition, *figures, begins, ends = zip(*sorted(own, key=lambda row: row[0]), strict=True)
        packed = {"partition": partition, **dict(zip(_PACKED.values(), figures, strict=True))}
        version = reading.marker.version
        found.append((cluster, version, topic, Workload.FORMAT, json.dumps(packed), min(begins), max(ends)))
    for some in _portions(found, TOPICS_AT_ONCE):
        taken.portions.append((AT_ONCE, partial(upserts.write, _WORKLOAD, some)))


_PACKED = {
    "in_typical": "in",
    "in_peak": "peak",
    "peak_hour": "hour",
    "growth_per_day": "grows",
    "size_bytes": "size",
    "samples": "samples",
}
"""Column of the result → its name where a topic's partitions are packed."""


def _verdicts(reading: Reading, taken: Taken) -> None:
    """Only what both could judge is compared; of a hundred thousand that agree their number alone is kept."""
    import pyarrow as pa
    from pyarrow import compute as pc

    columns = ["cluster", "group", "topic", "partition", "observed_at", "verdict", "worker_verdict"]
    differences: list[Row] = []
    for table in reading.tables(ResultKind.LAG_VERDICT, columns):
        unjudged = pa.array(_UNJUDGED)
        known = pc.invert(
            pc.or_(
                pc.is_in(table["verdict"], value_set=unjudged), pc.is_in(table["worker_verdict"], value_set=unjudged)
            )
        )
        both = table.filter(known)
        differs = pc.not_equal(both["verdict"], both["worker_verdict"])
        hours = pc.floor_temporal(both["observed_at"], unit="hour")
        counted = pa.table({"cluster": both["cluster"], "hour": hours, "differs": pc.cast(differs, pa.int64())})
        for slug, hour, judged, different in rows(
            counted.group_by(["cluster", "hour"])
            .aggregate([("differs", "count"), ("differs", "sum")])
            .select(["cluster", "hour", "differs_count", "differs_sum"])
        ):
            cluster = reading.cluster(slug, hour)
            if cluster is None:
                continue
            counts = taken.compared.setdefault((cluster, hour), [0, 0])
            counts[0] += judged
            counts[1] += different
        for slug, *rest in rows(both.filter(differs)):
            if (cluster := reading.cluster(slug, rest[3])) is not None:
                differences.append((cluster, reading.marker.version, stored_name(rest[0]), *rest[1:]))
    differences.sort(key=lambda row: row[5], reverse=True)
    if differences:
        some = differences[:_MOST_DIFFERENCES]
        taken.portions.append((len(some), partial(upserts.write, _DIFFERENCE, some)))


def _portions(found: list[Row], at_once: int | None = None) -> Iterable[list[Row]]:
    size = at_once or AT_ONCE
    return (found[start : start + size] for start in range(0, len(found), size))
