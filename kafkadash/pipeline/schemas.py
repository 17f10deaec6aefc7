"""Spark's and Arrow's forms of the columns that ``domain`` names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import types as spark

from kafkadash.domain.segments import Column, Type

if TYPE_CHECKING:
    import pyarrow as pa

_SPARK: Mapping[Type, spark.DataType] = {
    Type.STRING: spark.StringType(),
    Type.INT: spark.IntegerType(),
    Type.LONG: spark.LongType(),
    Type.DOUBLE: spark.DoubleType(),
    Type.BOOL: spark.BooleanType(),
    Type.TIME: spark.TimestampType(),
    Type.BINARY: spark.BinaryType(),
    Type.INTS: spark.ArrayType(spark.IntegerType()),
    Type.LONGS: spark.ArrayType(spark.LongType()),
}


def schema_of(columns: Iterable[Column]) -> spark.StructType:
    """Nullable throughout: what Parquet's readers give is, whatever is asked of them."""
    return spark.StructType([spark.StructField(column.name, _SPARK[column.type]) for column in columns])


def unlike(columns: Iterable[Column], found: pa.Schema) -> str | None:
    """The first column that a file lacks or has in another type; columns besides are nobody's business."""
    for column in columns:
        index = found.get_field_index(column.name)
        if index < 0 or _plain(found.field(index).type) != _arrow(column.type):
            return column.name
    return None


def _arrow(type_: Type) -> pa.DataType:
    import pyarrow as pa

    return {
        Type.STRING: pa.string(),
        Type.INT: pa.int32(),
        Type.LONG: pa.int64(),
        Type.DOUBLE: pa.float64(),
        Type.BOOL: pa.bool_(),
        Type.TIME: pa.timestamp("us", "UTC"),
        Type.BINARY: pa.binary(),
        Type.INTS: pa.list_(pa.int32()),
        Type.LONGS: pa.list_(pa.int64()),
    }[type_]


def _plain(found: pa.DataType) -> pa.DataType:
    """Without the ways of keeping a column that say nothing about its values."""
    import pyarrow as pa

    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_large_string(found):
        return pa.string()
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return pa.list_(found.value_type)  # the name of what is in the list differs among writers
    return found
