"""Spark's and Arrow's forms of the columns that ``domain`` names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import types as spark

from kafkadash.export.schema import ColumnType, SegmentColumn

if TYPE_CHECKING:
    import pyarrow as pa

_SPARK: Mapping[ColumnType, spark.DataType] = {
    ColumnType.STRING: spark.StringType(),
    ColumnType.INT: spark.IntegerType(),
    ColumnType.LONG: spark.LongType(),
    ColumnType.DOUBLE: spark.DoubleType(),
    ColumnType.BOOL: spark.BooleanType(),
    ColumnType.TIME: spark.TimestampType(),
    ColumnType.BINARY: spark.BinaryType(),
    ColumnType.INTS: spark.ArrayType(spark.IntegerType()),
    ColumnType.LONGS: spark.ArrayType(spark.LongType()),
}


def schema_of(columns: Iterable[SegmentColumn]) -> spark.StructType:
    """Nullable throughout: what Parquet's readers give is, whatever is asked of them."""
    return spark.StructType([spark.StructField(column.name, _SPARK[column.type]) for column in columns])


def find_mismatch(columns: Iterable[SegmentColumn], found: pa.Schema) -> str | None:
    """The first column that a file lacks or has in another type; columns besides are nobody's business."""
    for column in columns:
        index = found.get_field_index(column.name)
        if index < 0 or _simplify_type(found.field(index).type) != _to_arrow(column.type):
            return column.name
    return None


def _to_arrow(type_: ColumnType) -> pa.DataType:
    import pyarrow as pa

    return {
        ColumnType.STRING: pa.string(),
        ColumnType.INT: pa.int32(),
        ColumnType.LONG: pa.int64(),
        ColumnType.DOUBLE: pa.float64(),
        ColumnType.BOOL: pa.bool_(),
        ColumnType.TIME: pa.timestamp("us", "UTC"),
        ColumnType.BINARY: pa.binary(),
        ColumnType.INTS: pa.list_(pa.int32()),
        ColumnType.LONGS: pa.list_(pa.int64()),
    }[type_]


def _simplify_type(found: pa.DataType) -> pa.DataType:
    """Without the ways of keeping a column that say nothing about its values."""
    import pyarrow as pa

    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_large_string(found):
        return pa.string()
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return pa.list_(found.value_type)  # the name of what is in the list differs among writers
    return found
