"""Facts as frames, from what a test says about them; and results as plain rows, in an order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kafkadash.export.results import RESULTS, ResultKind
from kafkadash.export.schema import COLUMNS, SCHEMA_VERSION, SegmentKind
from kafkadash.pipeline.jobs.shape import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEGAN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
"""A Monday."""

Row = Mapping[str, Any]

_USUAL: Mapping[SegmentKind, Row] = {
    SegmentKind.GROUP_OFFSET: {
        "group": "billing",
        "topic": "orders",
        "partition": 0,
        "group_state": "Stable",
        "members": 1,
        "allowed_lag": 0,
        "verdict": "unknown",
    },
    SegmentKind.REPLICA: {
        "topic": "orders",
        "partition": 0,
        "broker": 1,
        "directory": "/data",
        "is_future": False,
        "method": "exact",
    },
    SegmentKind.MANIFEST: {"not_answered": [], "rows": 1, "duration_ms": 1, "file": "", "flush_epoch": 1},
    SegmentKind.QUORUM: {"directory_id": "d", "leader": 1, "leader_epoch": 1, "role": "follower"},
    SegmentKind.BROKER: {"broker": 1, "directory": "/data"},
    SegmentKind.TRAFFIC: {"subject": "cluster", "unknown": 0, "without_bytes": 0},
    SegmentKind.REASSIGNMENT: {"topic": "orders", "partition": 0, "replicas": [], "adding": [], "removing": []},
}


def facts(spark: SparkSession, kind: SegmentKind, rows: Iterable[Row]) -> DataFrame:
    """What a row does not say is as usual, or null. ``at``: seconds after ``BEGAN``, also the refresh's number."""
    columns = COLUMNS[kind]
    usual = {"schema": SCHEMA_VERSION, "cluster": "prod", "epoch": 1, **_USUAL[kind]}
    made = []
    for row in rows:
        at = row.get("at", 0)
        whole = {**usual, "seq": int(at), "observed_at": BEGAN + timedelta(seconds=at), **row}
        made.append(tuple(whole.get(column.name) for column in columns))
    return spark.createDataFrame(made, ddl(columns))


def plain(frame: DataFrame, *order: str) -> list[dict[str, Any]]:
    """Rows sorted by these columns; times in UTC."""
    rows = [{name: _plain(value) for name, value in row.asDict().items()} for row in frame.collect()]
    return sorted(rows, key=lambda row: [row[name] for name in order])


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return bytes(value) if isinstance(value, bytearray) else value


def only(frame: DataFrame, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """These columns, sorted by themselves."""
    return sorted(tuple(_plain(row[name]) for name in names) for row in frame.collect())


def duckdb_says(question: str, **frames: DataFrame) -> list[dict[str, Any]]:
    """The same question in SQL, asked of the same rows on another way; times in UTC."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone='UTC'")
        for name, frame in frames.items():
            connection.register(name, frame.toArrow())
        found = connection.execute(question)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, (_plain(value) for value in row), strict=True)) for row in found.fetchall()]


def agree(rows: Sequence[Row], others: Sequence[Row], kind: ResultKind) -> None:
    """Every column that is no sketch, row by row; doubles to nine digits, null only where the other is."""
    names = [c.name for c in RESULTS[kind].columns if not c.name.endswith("_sketch") and c.name != "grain"]
    key = [name for name in RESULTS[kind].key if name != "grain"]
    by_key = {tuple(row[name] for name in key): row for row in others}
    assert len(rows) == len(others) == len(by_key)
    for row in rows:
        other = by_key[tuple(row[name] for name in key)]
        for name in names:
            mine, its = row[name], other[name]
            if isinstance(mine, float) and its is not None:
                assert mine == pytest.approx(float(its), rel=1e-9, abs=1e-9), (name, row, other)
            else:
                assert mine == its, (name, row, other)
