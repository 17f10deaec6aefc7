"""Columns of facts and results as Spark has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from kafkadash.export.results import RESULTS, SECONDS, ResultKind, RollupGrain
from kafkadash.export.schema import ColumnType
from kafkadash.export.schema import SegmentColumn as Described

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SPARK: Mapping[ColumnType, str] = {
    ColumnType.STRING: "string",
    ColumnType.INT: "int",
    ColumnType.LONG: "bigint",
    ColumnType.DOUBLE: "double",
    ColumnType.BOOL: "boolean",
    ColumnType.TIME: "timestamp",
    ColumnType.BINARY: "binary",
    ColumnType.INTS: "array<int>",
    ColumnType.LONGS: "array<bigint>",
}


def ddl(columns: Sequence[Described]) -> str:
    """The schema that reads or makes a frame of these columns; every column may be null for Spark."""
    return ", ".join(f"`{column.name}` {SPARK[column.type]}" for column in columns)


def select_columns(frame: DataFrame, kind: ResultKind) -> DataFrame:
    """Exactly the columns of ``kind``, in their order and types."""
    return frame.select(*(sql.col(f"`{c.name}`").cast(SPARK[c.type]).alias(c.name) for c in RESULTS[kind].columns))


def floor_to_bucket(at: Column, grain: RollupGrain) -> Column:
    """Begin of the bucket that holds ``at``, in UTC whatever time zone the session shows times in."""
    seconds = sql.unix_seconds(at)
    return sql.timestamp_seconds(seconds - sql.pmod(seconds, sql.lit(SECONDS[grain])))


def to_epoch_seconds(at: Column) -> Column:
    """Seconds since 1970 as a double, to the microsecond."""
    return sql.unix_micros(at) / sql.lit(1e6)
