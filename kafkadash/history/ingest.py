"""Ingest of the pipeline's results into the database, each result once.

A result is written in portions that fit a short transaction, its ledger row together with the last portion; every
transaction proves the lease first. If the ingest is killed, a result without a ledger row is read again, which changes
nothing that is already stored; a result with a ledger row is never read again.

Rows are copied (COPY) into a temporary table and then replace older rows in one statement. Values are absolute, so
writing them again changes nothing, and a row never replaces a newer one: of two rollups of a bucket the one from more
samples stays, of other rows the one with the later time, and in a tie the one that the pipeline wrote later.

``observe_store`` reads the heartbeats of the pipeline and counts the segments that wait for it.
``settings.INGEST_FAIL_POINT`` names the point at which a test has the ingest killed, as by ``kill -9``.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef, Q

from kafkadash.accounts.models import AuditEvent
from kafkadash.clusters.models import Cluster
from kafkadash.core import leases
from kafkadash.core.events import changed
from kafkadash.core.leases import LeaseLost, RowLease
from kafkadash.core.messages import CodedMessage, coded, message_columns
from kafkadash.export.results import MARKERS, SECONDS, ResultKind, RollupGrain
from kafkadash.export.schema import SegmentKind
from kafkadash.history import partitions
from kafkadash.history.errors import HistoryErrorCode
from kafkadash.history.models import PipelineLedger, PipelineState, Series, Workload
from kafkadash.history.results import (
    NoPyArrow,
    ResultEntry,
    ResultMarker,
    ResultStore,
    SetAside,
    StoreFailed,
    known_kind,
    parse_marker,
    parse_marker_name,
    read_tables,
    stream_tables,
    table_rows,
)
from kafkadash.history.schedule import INGEST, PIPELINE
from kafkadash.history.workload_hours import HOUR_COLUMNS, HourSums, MismatchedHours, sum_by_hour
from kafkadash.monitoring.groups.names import stored_name

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RowTarget:
    """A table with ``columns`` of these PostgreSQL types. ``newer``: the columns that tell which row is newer."""

    table: str
    key: tuple[str, ...]
    newer: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]


_ROLLUP = (
    ("bucket", "timestamptz"),
    ("version", "bigint"),
    ("samples", "bigint"),
    ("grain", "integer"),
    ("most", "bigint"),
    ("p50", "bigint"),
    ("p95", "bigint"),
    ("p99", "bigint"),
    ("mean", "double precision"),
    ("other", "bigint"),
    ("changes", "bigint"),
)
_SERIES = (("cluster_id", "bigint"), ("group", "text"), ("topic", "text"), ("node", "integer"))
ROLLUP_COLUMNS = tuple(name for name, _ in (*_SERIES, *_ROLLUP))
_SAME = " AND ".join(f's."{name}" = n."{name}"' for name, _ in _SERIES)


def write_rollups(kind: str, rows: Sequence[Row]) -> None:
    """``rows`` in the order of ``ROLLUP_COLUMNS``. In the transaction of the caller; partitions are there."""
    names = ", ".join(f'"{name}"' for name, _ in _ROLLUP)
    series = ", ".join(f'"{name}"' for name, _ in _SERIES)
    target = RowTarget("history_rollup", ("series_id", "grain", "bucket"), ("samples", "version"), _ROLLUP)
    with connection.cursor() as cursor:
        _copy_to_temp(cursor, "new_rollup", (*_SERIES, *_ROLLUP), rows)
        cursor.execute(
            f'INSERT INTO history_series (cluster_id, kind, "group", topic, node, seen_on)'
            f" SELECT n.cluster_id, %s, n.\"group\", n.topic, n.node, max(n.bucket AT TIME ZONE 'UTC')::date"
            f" FROM new_rollup n WHERE NOT EXISTS ("
            f"  SELECT 1 FROM history_series s WHERE s.kind = %s AND {_SAME})"
            f" GROUP BY {series} ON CONFLICT DO NOTHING",
            [kind, kind],
        )
        cursor.execute(
            f"UPDATE history_series s SET seen_on = n.day FROM ("
            f"  SELECT {series}, max(bucket AT TIME ZONE 'UTC')::date AS day FROM new_rollup GROUP BY {series}) n"
            f" WHERE s.kind = %s AND {_SAME} AND s.seen_on < n.day",
            [kind],
        )
        cursor.execute(
            f"INSERT INTO history_rollup AS old (series_id, {names})"
            f" SELECT DISTINCT ON (s.id, grain, bucket) s.id, {names}"
            f" FROM new_rollup n JOIN history_series s ON s.kind = %s AND {_SAME}"
            f" ORDER BY s.id, grain, bucket, samples DESC, version DESC {_conflict_clause(target)}",
            [kind],
        )
        cursor.execute("DROP TABLE new_rollup")


def write_rows(target: RowTarget, rows: Sequence[Row]) -> None:
    """``rows`` in the order of the target's columns. In the transaction of the caller."""
    names = ", ".join(f'"{name}"' for name, _ in target.columns)
    key = ", ".join(f'"{name}"' for name in target.key)
    newest = ", ".join(f'"{name}" DESC' for name in target.newer)
    with connection.cursor() as cursor:
        _copy_to_temp(cursor, "new_rows", target.columns, rows)
        cursor.execute(
            f"INSERT INTO {target.table} AS old ({names}) SELECT DISTINCT ON ({key}) {names} FROM new_rows"
            f" ORDER BY {key}, {newest} {_conflict_clause(target)}"
        )
        cursor.execute("DROP TABLE new_rows")


def _copy_to_temp(cursor: Any, table: str, columns: Sequence[tuple[str, str]], rows: Sequence[Row]) -> None:
    declared = ", ".join(f'"{name}" {type_}' for name, type_ in columns)
    names = ", ".join(f'"{name}"' for name, _ in columns)
    cursor.execute(f"CREATE TEMPORARY TABLE {table} ({declared}) ON COMMIT DROP")
    with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    cursor.execute(f"ANALYZE {table}")


def _conflict_clause(target: RowTarget) -> str:
    own = ", ".join(f'"{name}" = excluded."{name}"' for name, _ in target.columns if name not in target.key)
    newer = ", ".join(f'excluded."{name}"' for name in target.newer)
    older = ", ".join(f'old."{name}"' for name in target.newer)
    key = ", ".join(f'"{name}"' for name in target.key)
    return f"ON CONFLICT ({key}) DO UPDATE SET {own} WHERE ({newer}) > ({older})"


AT_ONCE = 4000
"""Rows of one statement: below a tenth of a second."""
TOPICS_AT_ONCE = 200
_MOST_DIFFERENCES = 500
_AHEAD = timedelta(days=1)
_UNJUDGED = ("", "unknown")


@dataclass(slots=True)
class TakenBatch:
    """Content of a result. ``portions``: number of rows, and the function to write them in the caller's transaction."""

    portions: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    places: set[tuple[int, datetime]] = field(default_factory=set)
    rows: dict[str, int] = field(default_factory=dict)
    skipped: int = 0
    compared: dict[tuple[int, datetime], list[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResultReading:
    """``clusters``: slug → id of those that are registered. ``below``: the results' folder in the store. ``since``: id
    → when it was registered, of those whose name another cluster had before.
    """

    store: ResultStore
    marker: ResultMarker
    clusters: Mapping[str, int]
    now: datetime
    below: str = "results"
    since: Mapping[int, datetime] = field(default_factory=dict)

    def cluster(self, slug: str, begins: datetime) -> int | None:
        """Return the cluster's id for facts from ``begins`` on; None if not registered, or registered later."""
        own = self.clusters.get(slug)
        return None if own is None or begins < self.since.get(own, begins) else own

    def tables(self, kind: ResultKind, columns: Sequence[str]) -> Iterator[Any]:
        return read_tables(self.store, self.marker, kind, columns, self.below)

    def stream(self, kind: ResultKind, columns: Sequence[str]) -> Iterator[Any]:
        return stream_tables(self.store, self.marker, kind, columns, self.below)


@dataclass(frozen=True, slots=True)
class _RollupWriter:
    """``shortest``: seconds of the shortest buckets that are stored; shorter ones stay in the results."""

    figure: str
    group: str = ""
    topic: str = ""
    node: str = ""
    other: str = ""
    changes: str = ""
    shortest: int = partitions.MINUTE


_ROLLUPS = {
    ResultKind.LAG_ROLLUP: _RollupWriter("lag", group="group", topic="topic"),
    ResultKind.TOPIC_ROLLUP: _RollupWriter("lag", topic="topic", other="bytes_on_disk"),
    ResultKind.BROKER_ROLLUP: _RollupWriter("replica_bytes", node="broker", other="replicas"),
    ResultKind.CLUSTER_ROLLUP: _RollupWriter("lag"),
    ResultKind.QUORUM_ROLLUP: _RollupWriter(
        "lag_ms", node="replica", other="fetch_age_ms_max", changes="leader_changes"
    ),
    # The collector keeps points of a day itself, and minutes of each topic would be most of the database.
    ResultKind.BYTES_IN: _RollupWriter(
        "bytes_in", topic="topic", node="broker", other="left_out", shortest=partitions.HOUR
    ),
    ResultKind.RECORDS_IN: _RollupWriter(
        "milli_records_in", topic="topic", node="broker", other="left_out", shortest=partitions.HOUR
    ),
}
_DAYS = tuple(f"days_to_{share}{end}" for share in (80, 90) for end in ("", "_low", "_high"))
_PLAIN = {
    ResultKind.CATCH_UP: RowTarget(
        "history_catchup",
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
    ResultKind.DISK_FORECAST: RowTarget(
        "history_diskforecast",
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
_WORKLOAD = RowTarget(
    "history_workload",
    ("cluster_id", "topic"),
    ("to_at", "version"),
    (
        ("cluster_id", "bigint"),
        ("version", "bigint"),
        ("topic", "text"),
        ("format", "smallint"),
        ("partitions", "jsonb"),
        ("by_hour", "jsonb"),
        ("from_at", "timestamptz"),
        ("to_at", "timestamptz"),
    ),
)
_CLUSTER_WORKLOAD = RowTarget(
    "history_clusterworkload",
    ("cluster_id",),
    ("to_at", "version"),
    (
        ("cluster_id", "bigint"),
        ("version", "bigint"),
        ("by_hour", "jsonb"),
        ("from_at", "timestamptz"),
        ("to_at", "timestamptz"),
    ),
)
_DIFFERENCE = RowTarget(
    "history_verdictdifference",
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


def take_rows(reading: ResultReading, kind: ResultKind, taken: TakenBatch) -> None:
    """Adds the rows of one kind to what is taken. Raises SetAside with nothing added, and StoreFailed."""
    before, shorter = taken.skipped, 0
    if kind in _ROLLUPS:
        shorter = _take_rollups(reading, kind, taken)
    elif kind in _PLAIN:
        _take_plain(reading, kind, taken)
    elif kind is ResultKind.WORKLOAD:
        _take_workload(reading, taken)
    else:
        _take_verdicts(reading, taken)
    taken.rows[kind.value] = reading.marker.rows[kind] - shorter - (taken.skipped - before)


def _take_rollups(reading: ResultReading, kind: ResultKind, taken: TakenBatch) -> int:
    """Return the number of rows of shorter buckets than are stored of this kind."""
    about, shorter = _ROLLUPS[kind], 0
    names = [name for name in (about.group, about.topic, about.node) if name]
    figures = [f"{about.figure}_{part}" for part in ("count", "max", "p50", "p95", "p99", "mean")]
    extras = [name for name in (about.other, about.changes) if name]
    oldest = {grain: reading.now - keep for grain, keep in partitions.retention_by_grain().items()}
    found: list[Row] = []
    places, skipped = set(), 0
    for table in reading.tables(kind, ["cluster", "grain", "bucket", *names, *figures, *extras]):
        for slug, grain_name, bucket, *rest in table_rows(table):
            grain = _grain_seconds(reading, kind, grain_name)
            if grain < about.shortest:
                shorter += 1
                continue
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
    for some in _split_portions(found):
        taken.portions.append((len(some), partial(write_rollups, kind.value, some)))
    return shorter


def _grain_seconds(reading: ResultReading, kind: ResultKind, grain: str) -> int:
    try:
        return SECONDS[RollupGrain(grain)]
    except ValueError:
        folder = reading.marker.folder(kind)
        why = f"unknown grain {grain!r}"
        raise SetAside(folder, coded(HistoryErrorCode.COLUMNS_WRONG, file=folder, kind=kind, why=why)) from None


def _take_plain(reading: ResultReading, kind: ResultKind, taken: TakenBatch) -> None:
    target = _PLAIN[kind]
    columns = [name for name, _ in target.columns[2:]]
    begins = columns.index("from_at" if "from_at" in columns else "observed_at")
    found: list[Row] = []
    skipped = 0
    for table in reading.tables(kind, ["cluster", *columns]):
        for slug, *rest in table_rows(table):
            cluster = reading.cluster(slug, rest[begins])
            if cluster is None:
                skipped += 1
            else:
                found.append((cluster, reading.marker.version, *rest))
    taken.skipped += skipped
    for some in _split_portions(found):
        taken.portions.append((len(some), partial(write_rows, target, some)))


def _take_workload(reading: ResultReading, taken: TakenBatch) -> None:
    """A topic's partitions are one row, column by column. Of their hours the sums are stored, per topic and cluster."""
    columns = ["cluster", "topic", "partition", *_PACKED, "from_at", "to_at"]
    topics: dict[tuple[str, str], list[Row]] = defaultdict(list)
    cut: set[tuple[str, str]] = set()
    skipped = 0
    for table in reading.tables(ResultKind.WORKLOAD, columns):
        for slug, topic, *rest in table_rows(table):
            if reading.cluster(slug, rest[-2]) is None:
                skipped += 1
                cut.add((slug, topic))
            else:
                topics[slug, topic].append(tuple(rest))
    hours = _sum_hours(reading)
    version, found, clusters = reading.marker.version, list[Row](), dict[str, list[Row]]()
    for (slug, topic), own in sorted(topics.items()):
        partition, *figures, begins, ends = zip(*sorted(own, key=lambda row: row[0]), strict=True)
        packed = {"partition": partition, **dict(zip(_PACKED.values(), figures, strict=True))}
        sums = hours.get((slug, topic), HourSums())
        sums.note_observed(begins, max(ends))
        # A partition that was left out is in the sums.
        by_hour = None if (slug, topic) in cut else json.dumps(sums.pack())
        times = (min(begins), max(ends))
        form = (Workload.FORMAT, json.dumps(packed), by_hour)
        found.append((reading.clusters[slug], version, topic, *form, *times))
        clusters.setdefault(slug, []).append((sums, *times))
    taken.skipped += skipped
    for some in _split_portions(found, TOPICS_AT_ONCE):
        taken.portions.append((AT_ONCE, partial(write_rows, _WORKLOAD, some)))
    partly = {slug for slug, _ in cut}
    whole = [
        (reading.clusters[slug], version, *_add_topics(own)) for slug, own in clusters.items() if slug not in partly
    ]
    if whole:
        taken.portions.append((len(whole), partial(write_rows, _CLUSTER_WORKLOAD, whole)))


def _sum_hours(reading: ResultReading) -> Mapping[tuple[str, str], HourSums]:
    try:
        return sum_by_hour(reading.stream(ResultKind.WORKLOAD, HOUR_COLUMNS))
    except MismatchedHours as error:
        folder, kind = reading.marker.folder(ResultKind.WORKLOAD), ResultKind.WORKLOAD
        why = "hours_of_week and in_p50 do not match"
        raise SetAside(folder, coded(HistoryErrorCode.COLUMNS_WRONG, file=folder, kind=kind, why=why)) from error


def _add_topics(topics: Sequence[Row]) -> Row:
    """Return hours, begin and end of all topics of a cluster."""
    whole = HourSums()
    for sums, _, _ in topics:
        whole.add(sums)
    return json.dumps(whole.pack()), min(begin for _, begin, _ in topics), max(end for _, _, end in topics)


_PACKED = {
    "in_typical": "in",
    "in_peak": "peak",
    "peak_hour": "hour",
    "growth_per_day": "grows",
    "size_bytes": "size",
    "samples": "samples",
}
"""Column of the result → its name where a topic's partitions are packed."""


def _take_verdicts(reading: ResultReading, taken: TakenBatch) -> None:
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
        for slug, hour, judged, different in table_rows(
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
        for slug, *rest in table_rows(both.filter(differs)):
            if (cluster := reading.cluster(slug, rest[3])) is not None:
                differences.append((cluster, reading.marker.version, stored_name(rest[0]), *rest[1:]))
    differences.sort(key=lambda row: row[5], reverse=True)
    if differences:
        some = differences[:_MOST_DIFFERENCES]
        taken.portions.append((len(some), partial(write_rows, _DIFFERENCE, some)))


def _split_portions(found: list[Row], at_once: int | None = None) -> Iterable[list[Row]]:
    size = at_once or AT_ONCE
    return (found[start : start + size] for start in range(0, len(found), size))


_BELOW = "segments/"
_SEGMENTS = f"{_BELOW}{SegmentKind.MANIFEST}"
_LOOK_BACK = timedelta(hours=24)
_MOST_HEARTBEATS = 20


@dataclass(frozen=True, slots=True)
class SeenResults:
    """``segments``: flushes that are in no result that was taken in; ``oldest_at``: when the oldest was written."""

    heartbeats: list[dict[str, Any]]
    results: int
    segments: int
    oldest_at: datetime | None


def observe_store(store: ResultStore, now: datetime, results: int) -> SeenResults:
    """Raises StoreFailed."""
    waiting = list(_waiting_segments(store, now))
    oldest = min((entry.at for entry in waiting if entry.at is not None), default=None)
    return SeenResults(list(_read_heartbeats(store)), results, len(waiting), oldest)


def _read_heartbeats(store: ResultStore) -> Iterator[dict[str, Any]]:
    files = [entry for entry in store.files("heartbeat") if entry.name.endswith(".json")]
    for entry in files[-_MOST_HEARTBEATS:]:
        try:
            told = json.loads(store.read(entry.path) or b"")
        except ValueError:
            continue  # half of it was written; the next look sees it whole
        if isinstance(told, dict):
            yield {"file": entry.name, "seen_at": entry.at.isoformat() if entry.at else None, **told}


def _waiting_segments(store: ResultStore, now: datetime) -> Iterator[ResultEntry]:
    """Manifests since the hour of the newest segment that was taken in, one day back at most."""
    newest = PipelineLedger.objects.exclude(newest_at=None).order_by("-newest_at").values_list("newest_at", flat=True)
    since = max(newest.first() or now - _LOOK_BACK, now - _LOOK_BACK).replace(minute=0, second=0, microsecond=0)
    known: set[tuple[int, int]] = set()
    aside: set[str] = set()
    lately = since - timedelta(hours=1)
    # A result of manifests that were all set aside names no segment, and so no time of one.
    recent = Q(newest_at__gte=lately) | Q(newest_at=None, written_at__gte=lately)
    for flushes, files in PipelineLedger.objects.filter(recent).values_list("flushes", "set_aside"):
        known |= {(epoch, seq) for epoch, seq in flushes}
        aside |= {each["file"] for each in files}
    hour = since.astimezone(UTC)
    while hour <= now + timedelta(hours=1):
        for entry in store.files(f"{_SEGMENTS}/{hour:%Y-%m-%d}/{hour:%H}"):
            epoch, _, seq = entry.name.removesuffix(".parquet").partition("-")
            if not (epoch.isdecimal() and seq.isdecimal()) or (int(epoch), int(seq)) in known:
                continue
            if entry.path.removeprefix(_BELOW) not in aside:
                yield entry
        hour += timedelta(hours=1)


POINTS = ("listed", "read", "copied", "portion-stored", "before-commit", "after-commit", "deleting", "before-state")


def reached(point: str) -> None:
    if point == settings.INGEST_FAIL_POINT:
        os.kill(os.getpid(), signal.SIGKILL)


log = structlog.get_logger(__name__)

RESULTS = "results"
_MOST_RESULTS = 50
"""Results of one turn; what is left waits for the next."""
_MOST_DELETED = 200
_LOOK_SECONDS = 3.0
_AFTER_TICK = 0.5
"""A turn begins up to so many seconds after its tick. Counted from its own beginning, with an interval of whole
seconds, the next would be due just after a tick, and have to wait for the one that follows."""
_SHOWN = ("last_error_code", "last_error_params", "heartbeats", "results_waiting", "segments_waiting")
"""Fields shown on the page of the pipeline, which is told to reload when one of them changes."""


def take_turn(state_id: int, *, only_if_due: bool = True) -> int | None:
    """Takes in what waits; returns how many results, None when somebody else is at it or it is not due."""
    lease = leases.take(state_id, only_if_due=only_if_due, of=INGEST)
    if lease is None:
        return None
    taken, error, seen = 0, None, None
    try:
        try:
            store = ResultStore(settings.PIPELINE_URI)
            taken, error, waiting = _take_all(store, lease)
            _delete_old(store, lease)
            if taken or not only_if_due or _look_due(state_id, lease.now()):
                seen = observe_store(store, lease.now(), waiting)
        except NoPyArrow:
            error = coded(HistoryErrorCode.RESULTS_NEED_PYARROW)
        except StoreFailed as failure:
            error = coded(HistoryErrorCode.STORE_SILENT, why=str(failure).rstrip("."))
        reached("before-state")
        _store_state(lease, state_id, taken, error, seen)
    except LeaseLost:
        log.warning("ingest.lease_lost", epoch=lease.epoch)
        return None
    except Exception:
        lease.postpone(settings.INGEST_INTERVAL)
        raise
    finally:
        lease.give_back()
    return taken


def _look_due(state_id: int, now: datetime) -> bool:
    """Results are looked for more often than what else there is to see, which takes longer and is told to pages."""
    looked_at = PipelineState.objects.values_list("looked_at", flat=True).get(pk=state_id)
    return looked_at is None or (now - looked_at).total_seconds() >= _LOOK_SECONDS


def _store_state(
    lease: RowLease, state_id: int, taken: int, error: CodedMessage | None, seen: SeenResults | None
) -> None:
    """The next turn is counted from the tick that brought this one."""
    rest = max(0.0, settings.INGEST_INTERVAL - _AFTER_TICK - (lease.now() - lease.taken_at).total_seconds())
    told: dict[str, Any] = {
        "attempted_at": lease.taken_at,
        **message_columns(error, "last_error"),
        "next_at": leases.from_now(rest),
    }
    if seen is not None:
        told |= {
            "looked_at": lease.taken_at,
            "heartbeats": seen.heartbeats,
            "results_waiting": seen.results,
            "segments_waiting": seen.segments,
            "oldest_waiting_at": seen.oldest_at,
        }
    with lease.write():
        rows = PipelineState.objects.filter(pk=state_id)
        before = rows.values(*_SHOWN).get()
        rows.update(**told)
    if taken or any(before[name] != told.get(name, before[name]) for name in _SHOWN):
        changed.send(sender=PipelineState, keys=frozenset({PIPELINE}))


def _take_all(store: ResultStore, lease: RowLease) -> tuple[int, CodedMessage | None, int]:
    """How many results were taken in, what was wrong with the store on the way, and how many are left."""
    files = _waiting_markers(store)
    reached("listed")
    clusters = dict(Cluster.objects.values_list("slug", "pk"))
    since = _named_like_another() if files else {}
    taken, error = 0, None
    for file in files[:_MOST_RESULTS]:
        try:
            _ingest_marker(store, file, clusters, since, lease)
            taken += 1
        except StoreFailed as failure:  # of this one; it waits, and the rest goes on
            error = coded(HistoryErrorCode.STORE_SILENT, why=str(failure).rstrip("."))
            log.warning("ingest.store_failed", file=file.path, error=str(failure))
    return taken, error, len(files) - taken


def _waiting_markers(store: ResultStore) -> list[ResultEntry]:
    """Markers that are not in the ledger, in the order in which they were written."""
    files = {
        parse_marker_name(entry.path): entry
        for entry in store.files(f"{RESULTS}/{MARKERS}")
        if entry.name.endswith(".json")
    }
    known = set()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT l.query, l.batch, l.id, l.deleted_at FROM history_pipelineledger l"
            " JOIN unnest(%s::text[], %s::bigint[]) AS f(query, batch) ON l.query = f.query AND l.batch = f.batch",
            [[query for query, _ in files], [batch for _, batch in files]],
        )
        again = []
        for query, batch, pk, deleted_at in cursor.fetchall():
            known.add((query, batch))
            if deleted_at is not None:
                again.append(pk)
    if again:  # the pipeline wrote a batch again that it did not know to be done: its files go a second time
        PipelineLedger.objects.filter(pk__in=again).update(deleted_at=None)
    left = [(entry.at is not None and entry.at.timestamp(), key, entry) for key, entry in files.items()]
    return [entry for _, key, entry in sorted(left, key=lambda row: row[:2]) if key not in known]


def _named_like_another() -> dict[int, datetime]:
    """Cluster → when it was registered, of those whose name was another's before: segments tell of both by the name."""
    removed = AuditEvent.objects.filter(
        action="cluster.removed", cluster=OuterRef("slug"), at__lte=OuterRef("created_at")
    )
    return dict(Cluster.objects.filter(Exists(removed)).values_list("pk", "created_at"))


def _ingest_marker(
    store: ResultStore, file: ResultEntry, clusters: Mapping[str, int], since: Mapping[int, datetime], lease: RowLease
) -> None:
    began = time.monotonic()
    content = store.read(file.path)
    if content is None:
        return
    taken, aside = TakenBatch(), list[tuple[str, CodedMessage]]()
    found: ResultMarker | None = None
    try:
        found = parse_marker(file.path.removeprefix(f"{RESULTS}/"), content)
        aside += found.set_aside
    except SetAside as why:
        aside.append((why.file, why.message))
    if found is not None:
        reading = ResultReading(store, found, clusters, lease.now(), RESULTS, since)
        for name, rows in sorted(found.rows.items()):
            try:
                if rows:
                    take_rows(reading, known_kind(found, name), taken)
            except SetAside as why:
                aside.append((why.file, why.message))
    reached("read")
    if aside:
        log.warning("ingest.set_aside", marker=file.path, set_aside=[(name, why.shown_code) for name, why in aside])
    partitions.ensure_partitions(taken.places)
    bundles = _bundle_portions(taken)
    for bundle in bundles[:-1]:
        with lease.write_portion():
            for portion in bundle:
                portion()
        reached("portion-stored")
    with lease.write_portion():
        for portion in bundles[-1]:
            portion()
        reached("copied")
        _enter_ledger(file, found, taken, aside, round((time.monotonic() - began) * 1000))
        reached("before-commit")
    reached("after-commit")


def _bundle_portions(taken: TakenBatch) -> list[list[Callable[[], None]]]:
    """Portions that go together into one transaction; the last bundle, which may be empty, has the ledger row."""
    bundles: list[list[Callable[[], None]]] = [[]]
    rows = 0
    for number, portion in taken.portions:
        if bundles[-1] and rows + number > AT_ONCE:
            bundles.append([])
            rows = 0
        bundles[-1].append(portion)
        rows += number
    return bundles


def _enter_ledger(
    file: ResultEntry,
    found: ResultMarker | None,
    taken: TakenBatch,
    aside: list[tuple[str, CodedMessage]],
    took_ms: int,
) -> None:
    """The ledger row. What a query counts up is counted with it, so that no batch of it is counted twice."""
    query, batch = parse_marker_name(file.path)
    _, created = PipelineLedger.objects.get_or_create(
        query=query,
        batch=batch,
        defaults={
            "written_at": found.written_at if found else None,
            "newest_at": found.newest_at if found else None,
            "rows": taken.rows,
            "skipped": taken.skipped,
            "flushes": [[epoch, seq] for epoch, seq, _ in found.flushes] if found else [],
            "set_aside": [{"file": name, "why": why.as_json()} for name, why in aside],
            "took_ms": took_ms,
        },
    )
    if not created:
        return
    with connection.cursor() as cursor:
        for (cluster, hour), (judged, differed) in sorted(taken.compared.items()):
            cursor.execute(
                "INSERT INTO history_verdictcount AS old (query, cluster_id, hour, judged, differed)"
                " VALUES (%s, %s, %s, %s, %s)"
                " ON CONFLICT (query, cluster_id, hour) DO UPDATE SET judged = old.judged + excluded.judged,"
                " differed = old.differed + excluded.differed",
                [query, cluster, hour, judged, differed],
            )


def _delete_old(store: ResultStore, lease: RowLease) -> None:
    """Files of results that were taken in long enough ago; their ledger rows stay, so they stay known."""
    now = lease.now()
    there = PipelineLedger.objects.filter(deleted_at=None).order_by("ingested_at")
    good = there.filter(set_aside=[], ingested_at__lt=_hours_before(now, settings.KEEP_RESULTS_HOURS))
    bad = there.exclude(set_aside=[]).filter(ingested_at__lt=_hours_before(now, settings.KEEP_SET_ASIDE_HOURS))
    due = [*good[:_MOST_DELETED], *bad[:_MOST_DELETED]]
    for row in due:
        lease.keep(5)
        content = store.read(f"{RESULTS}/{MARKERS}/{row.query}-{row.batch}.json")
        kinds = set(row.rows)
        if content is not None:
            try:
                kinds |= set(parse_marker(f"{MARKERS}/{row.query}-{row.batch}.json", content).rows)
            except SetAside:
                pass  # what it named is not known; the marker itself goes
        for kind in sorted(kinds):
            store.delete(f"{RESULTS}/{kind}/{row.query}-{row.batch}")
        reached("deleting")
        store.delete(f"{RESULTS}/{MARKERS}/{row.query}-{row.batch}.json")
    PipelineLedger.objects.filter(pk__in=[row.pk for row in due]).update(deleted_at=now)


def _hours_before(now: datetime, hours: float) -> datetime:
    return now - timedelta(hours=hours)
