"""Encoding of facts as Parquet, for rows of the outbox and for segment files.

PyArrow comes with the extra ``pipeline`` and is imported only when used. Without PyArrow nothing is kept for the
pipeline, and ``explain_missing`` says so.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import IO, Any, Self

from kafkadash.core.messages import CodedMessage, coded
from kafkadash.export.errors import ExportErrorCode
from kafkadash.export.schema import (
    IDENTITY,
    SCHEMA_KEY,
    SCHEMA_VERSION,
    ColumnType,
    SegmentColumn,
    SegmentKind,
    columns_of,
)

Columns = Mapping[str, Any]
"""Column → its values, one for each row; or one plain value (text, number, truth, None) that holds for all of them.

Times are aware datetimes or whole microseconds since the epoch. An optional column that is absent is not known.
"""
FLUSH_KEY = "kafkadash.flush"
"""Key of a file's metadata under which the token of its flush stands."""


class BadFacts(ValueError):
    """Columns that are not those of their kind; a fault of the collector that gave them."""


class UnreadableFacts(Exception):
    """Data that is not a Parquet file, or not one of this kind."""


@dataclass(frozen=True, slots=True)
class PackedFacts:
    """Rows of one kind, ready for the outbox; ``data`` is empty where there are none."""

    kind: SegmentKind
    rows: int
    data: bytes


def explain_missing() -> CodedMessage | None:
    """Say why no segments are written here; None where they are. Loads nothing."""
    return None if find_spec("pyarrow") else coded(ExportErrorCode.FACTS_NOT_KEPT)


def pack_rows(kind: SegmentKind, parts: Iterable[Columns]) -> PackedFacts:
    """Rows in parts that are as long as is convenient, without the columns of ``IDENTITY``.

    Raises BadFacts for columns that are not those of the kind, or values that are not of their types.
    """
    schema = _own_schema(kind)
    out, rows, writer = io.BytesIO(), 0, None
    for part in parts:
        batch = _build_batch(kind, schema, part)
        if batch.num_rows:
            writer = writer or _open_writer(out, schema)
            writer.write_batch(batch)
            rows += batch.num_rows
    if writer is not None:
        writer.close()
    return PackedFacts(kind, rows, out.getvalue() if rows else b"")


class SegmentFile:
    """Parquet file being written snapshot by snapshot; only one snapshot is in memory at a time.

    When the context manager exits without an error, the file is complete.
    """

    def __init__(self, out: IO[bytes], kind: SegmentKind, token: str) -> None:
        self._kind, self._own = kind, _own_schema(kind)
        schema = _arrow_schema(columns_of(kind)).with_metadata({SCHEMA_KEY: str(SCHEMA_VERSION), FLUSH_KEY: token})
        self._schema, self._writer = schema, _open_writer(out, schema)

    def add(self, identity: Columns, data: bytes, rows: int) -> None:
        """Rows from ``pack_rows``, which are of the refresh that ``identity`` names. Raises Unreadable."""
        pa, parquet = _import_arrow()
        try:
            table = parquet.read_table(io.BytesIO(data), schema=self._own)
        except (pa.ArrowException, OSError) as error:
            raise UnreadableFacts(str(error)) from error
        if table.num_rows != rows:
            raise UnreadableFacts(f"{table.num_rows} rows instead of {rows}")
        stamp = _build_batch(self._kind, _arrow_schema(IDENTITY), identity, rows)
        self._writer.write_table(pa.Table.from_arrays([*stamp.columns, *table.columns], schema=self._schema))

    def add_rows(self, columns: Columns) -> None:
        """Rows with all columns."""
        self._writer.write_batch(_build_batch(self._kind, self._schema, columns))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is None:
            self._writer.close()
        else:
            self._writer.is_open = False  # or it would try to end the file when it is collected as garbage


@dataclass(frozen=True, slots=True)
class ParquetFooter:
    """Footer of a complete Parquet file: number of rows, text metadata, and the types of its columns by name."""

    rows: int
    metadata: Mapping[str, str]
    columns: Mapping[str, str]


def read_footer(source: Any) -> ParquetFooter:
    """Return the footer of a file that PyArrow can read. Raises UnreadableFacts if it is incomplete or not Parquet."""
    pa, parquet = _import_arrow()
    try:
        with parquet.ParquetFile(source) as file:
            raw = file.metadata.metadata or {}
            schema = file.schema_arrow
            rows = file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise UnreadableFacts(str(error).splitlines()[0]) from error
    texts = {key.decode(): value.decode() for key, value in raw.items() if key.startswith(b"kafkadash.")}
    return ParquetFooter(rows, texts, {field.name: _type_name(field.type) for field in schema})


def types_of(columns: Sequence[SegmentColumn]) -> dict[str, str]:
    """Column → its type as ``read_footer`` names it."""
    return {field.name: _type_name(field.type) for field in _arrow_schema(tuple(columns))}


def _type_name(type_: Any) -> str:
    """Return the name of a column's type. A list's element name is left out, because it varies without meaning."""
    pa, _ = _import_arrow()
    return f"list<{type_.value_type}>" if pa.types.is_list(type_) else str(type_)


@cache
def _import_arrow() -> tuple[Any, Any]:
    """PyArrow and its Parquet module."""
    import pyarrow as pa
    from pyarrow import parquet

    return pa, parquet


def _arrow_type(type_: ColumnType) -> Any:
    pa, _ = _import_arrow()
    return {
        ColumnType.STRING: pa.string(),
        ColumnType.INT: pa.int32(),
        ColumnType.LONG: pa.int64(),
        ColumnType.DOUBLE: pa.float64(),
        ColumnType.BOOL: pa.bool_(),
        ColumnType.TIME: pa.timestamp("us", tz="UTC"),
        ColumnType.BINARY: pa.binary(),
        ColumnType.INTS: pa.list_(pa.int32()),
    }[type_]


@cache
def _arrow_schema(columns: tuple[SegmentColumn, ...]) -> Any:
    pa, _ = _import_arrow()
    return pa.schema([pa.field(each.name, _arrow_type(each.type), nullable=not each.required) for each in columns])


def _own_schema(kind: SegmentKind) -> Any:
    return _arrow_schema(columns_of(kind)[len(IDENTITY) :])


def _open_writer(out: IO[bytes], schema: Any) -> Any:
    """Numbers that follow each other are stored as differences: a third of the bytes, and quicker than a dictionary."""
    pa, parquet = _import_arrow()
    numbers = [f.name for f in schema if pa.types.is_integer(f.type) or pa.types.is_timestamp(f.type)]
    words = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_boolean(f.type)]
    return parquet.ParquetWriter(
        out,
        schema,
        compression="zstd",
        use_dictionary=[name for name in words if not pa.types.is_boolean(schema.field(name).type)],
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
    )


def _build_batch(kind: SegmentKind, schema: Any, given: Columns, rows: int | None = None) -> Any:
    """``rows`` is how many there are where all values are plain ones."""
    pa, _ = _import_arrow()
    unknown = sorted(given.keys() - set(schema.names))
    if unknown:
        raise BadFacts(f"{kind} has no column {unknown[0]}")
    lengths = {len(values) for values in given.values() if _is_sequence(values)}
    if len(lengths) > 1:
        raise BadFacts(f"columns of {kind} differ in length: {sorted(lengths)}")
    count = lengths.pop() if lengths else rows
    if count is None:
        raise BadFacts(f"{kind}: no column says how many rows there are")
    arrays = []
    for field in schema:
        values = given.get(field.name)
        try:
            array = (
                pa.array(values, field.type)
                if _is_sequence(values)
                else pa.repeat(pa.scalar(values, field.type), count)
            )
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise BadFacts(f"{kind}.{field.name}: {error}") from error
        if array.null_count and not field.nullable:
            raise BadFacts(f"{kind}.{field.name} is not known for {array.null_count} rows, which it has to be")
        arrays.append(array)
    return pa.record_batch(arrays, schema=schema)


def _is_sequence(values: Any) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str | bytes)
