"""Writing results: COPY into a temporary table, then one statement that puts each row in the place of an older one.

Values are absolute, so writing them again changes nothing. A row never takes the place of a newer one: of two rollups
of a bucket the one from more samples stays, of everything else the one with the later time; where these are the same,
the one that the pipeline wrote later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Target:
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
    target = Target("observe_rollup", ("series_id", "grain", "bucket"), ("samples", "version"), _ROLLUP)
    with connection.cursor() as cursor:
        _copy(cursor, "new_rollup", (*_SERIES, *_ROLLUP), rows)
        cursor.execute(
            f'INSERT INTO observe_series (cluster_id, kind, "group", topic, node, seen_on)'
            f" SELECT n.cluster_id, %s, n.\"group\", n.topic, n.node, max(n.bucket AT TIME ZONE 'UTC')::date"
            f" FROM new_rollup n WHERE NOT EXISTS ("
            f"  SELECT 1 FROM observe_series s WHERE s.kind = %s AND {_SAME})"
            f" GROUP BY {series} ON CONFLICT DO NOTHING",
            [kind, kind],
        )
        cursor.execute(
            f"UPDATE observe_series s SET seen_on = n.day FROM ("
            f"  SELECT {series}, max(bucket AT TIME ZONE 'UTC')::date AS day FROM new_rollup GROUP BY {series}) n"
            f" WHERE s.kind = %s AND {_SAME} AND s.seen_on < n.day",
            [kind],
        )
        cursor.execute(
            f"INSERT INTO observe_rollup AS old (series_id, {names})"
            f" SELECT DISTINCT ON (s.id, grain, bucket) s.id, {names}"
            f" FROM new_rollup n JOIN observe_series s ON s.kind = %s AND {_SAME}"
            f" ORDER BY s.id, grain, bucket, samples DESC, version DESC {_instead(target)}",
            [kind],
        )
        cursor.execute("DROP TABLE new_rollup")


def write(target: Target, rows: Sequence[Row]) -> None:
    """``rows`` in the order of the target's columns. In the transaction of the caller."""
    names = ", ".join(f'"{name}"' for name, _ in target.columns)
    key = ", ".join(f'"{name}"' for name in target.key)
    newest = ", ".join(f'"{name}" DESC' for name in target.newer)
    with connection.cursor() as cursor:
        _copy(cursor, "new_rows", target.columns, rows)
        cursor.execute(
            f"INSERT INTO {target.table} AS old ({names}) SELECT DISTINCT ON ({key}) {names} FROM new_rows"
            f" ORDER BY {key}, {newest} {_instead(target)}"
        )
        cursor.execute("DROP TABLE new_rows")


def _copy(cursor: Any, table: str, columns: Sequence[tuple[str, str]], rows: Sequence[Row]) -> None:
    declared = ", ".join(f'"{name}" {type_}' for name, type_ in columns)
    names = ", ".join(f'"{name}"' for name, _ in columns)
    cursor.execute(f"CREATE TEMPORARY TABLE {table} ({declared}) ON COMMIT DROP")
    with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    cursor.execute(f"ANALYZE {table}")


def _instead(target: Target) -> str:
    own = ", ".join(f'"{name}" = excluded."{name}"' for name, _ in target.columns if name not in target.key)
    newer = ", ".join(f'excluded."{name}"' for name in target.newer)
    older = ", ".join(f'old."{name}"' for name in target.newer)
    key = ", ".join(f'"{name}"' for name in target.key)
    return f"ON CONFLICT ({key}) DO UPDATE SET {own} WHERE ({newer}) > ({older})"
