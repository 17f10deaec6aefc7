"""Rows of segments as Parquet, in the outbox and in files. PyArrow is loaded here and in ``places``, when it is used.

It comes with the extra ``pipeline``. Without it nothing is kept for the pipeline, and ``missing`` says so.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import IO, Any, Self

from kafkadash.domain.messages import message_text
from kafkadash.domain.segments import IDENTITY, SCHEMA_KEY, SCHEMA_VERSION, Column, SegmentKind, Type, columns_of
from kafkadash.observe.errors import CollectionErrorCode

Columns = Mapping[str, Any]
"""Column → its values, one for each row; or one plain value (text, number, truth, None) that holds for all of them.

Times are aware datetimes or whole microseconds since the epoch. An optional column that is absent is not known.
"""
FLUSH_KEY = "kafkadash.flush"
"""Key of a file's metadata under which the token of its flush stands."""


class BadFacts(ValueError):
    """Columns that are not those of their kind; a fault of the collector that gave them."""


class Unreadable(Exception):
    """What waits in the outbox is no Parquet file, or not one of this kind."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows of one kind, ready for the outbox; ``data`` is empty where there are none."""

    kind: SegmentKind
    rows: int
    data: bytes


def missing() -> str:
    """Why no segments are written here, as a sentence; '' where they are. Loads nothing."""
    return "" if find_spec("pyarrow") else message_text(CollectionErrorCode.FACTS_NOT_KEPT)


def pack(kind: SegmentKind, parts: Iterable[Columns]) -> Packed:
    """Rows in parts that are as long as is convenient, without the columns of ``IDENTITY``.

    Raises BadFacts for columns that are not those of the kind, or values that are not of their types.
    """
    schema = _own_schema(kind)
    out, rows, writer = io.BytesIO(), 0, None
    for part in parts:
        batch = _batch(kind, schema, part)
        if batch.num_rows:
            writer = writer or _writer(out, schema)
            writer.write_batch(batch)
            rows += batch.num_rows
    if writer is not None:
        writer.close()
    return Packed(kind, rows, out.getvalue() if rows else b"")


class SegmentFile:
    """One Parquet file being written, snapshot by snapshot; what it holds at once is one snapshot.

    Left without a failure, the file is whole.
    """

    def __init__(self, out: IO[bytes], kind: SegmentKind, token: str) -> None:
        self._kind, self._own = kind, _own_schema(kind)
        schema = _schema(columns_of(kind)).with_metadata({SCHEMA_KEY: str(SCHEMA_VERSION), FLUSH_KEY: token})
        self._schema, self._writer = schema, _writer(out, schema)

    def add(self, identity: Columns, data: bytes, rows: int) -> None:
        """Rows from ``pack``, which are of the refresh that ``identity`` names. Raises Unreadable."""
        pa, parquet = _arrow()
        try:
            table = parquet.read_table(io.BytesIO(data), schema=self._own)
        except (pa.ArrowException, OSError) as error:
            raise Unreadable(str(error)) from error
        if table.num_rows != rows:
            raise Unreadable(f"{table.num_rows} rows instead of {rows}")
        stamp = _batch(self._kind, _schema(IDENTITY), identity, rows)
        self._writer.write_table(pa.Table.from_arrays([*stamp.columns, *table.columns], schema=self._schema))

    def add_rows(self, columns: Columns) -> None:
        """Rows with all columns."""
        self._writer.write_batch(_batch(self._kind, self._schema, columns))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is None:
            self._writer.close()
        else:
            self._writer.is_open = False  # or it would try to end the file when it is collected as garbage


@dataclass(frozen=True, slots=True)
class Footer:
    """Of a whole file: how many rows it has, the text in its metadata, and its columns by name with their types."""

    rows: int
    metadata: Mapping[str, str]
    columns: Mapping[str, str]


def footer(source: Any) -> Footer:
    """Of a file that PyArrow can read. Raises Unreadable where it has no end, or is none."""
    pa, parquet = _arrow()
    try:
        with parquet.ParquetFile(source) as file:
            raw = file.metadata.metadata or {}
            schema = file.schema_arrow
            rows = file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise Unreadable(str(error).splitlines()[0]) from error
    texts = {key.decode(): value.decode() for key, value in raw.items() if key.startswith(b"kafkadash.")}
    return Footer(rows, texts, {field.name: _named(field.type) for field in schema})


def types_of(columns: Sequence[Column]) -> dict[str, str]:
    """Column → its type as ``footer`` names it."""
    return {field.name: _named(field.type) for field in _schema(tuple(columns))}


def _named(type_: Any) -> str:
    """What lists call their elements differs, and says nothing."""
    pa, _ = _arrow()
    return f"list<{type_.value_type}>" if pa.types.is_list(type_) else str(type_)


@cache
def _arrow() -> tuple[Any, Any]:
    """PyArrow and its Parquet module."""
    import pyarrow as pa
    from pyarrow import parquet

    return pa, parquet


def _type(type_: Type) -> Any:
    pa, _ = _arrow()
    return {
        Type.STRING: pa.string(),
        Type.INT: pa.int32(),
        Type.LONG: pa.int64(),
        Type.DOUBLE: pa.float64(),
        Type.BOOL: pa.bool_(),
        Type.TIME: pa.timestamp("us", tz="UTC"),
        Type.BINARY: pa.binary(),
        Type.INTS: pa.list_(pa.int32()),
    }[type_]


@cache
def _schema(columns: tuple[Column, ...]) -> Any:
    pa, _ = _arrow()
    return pa.schema([pa.field(each.name, _type(each.type), nullable=not each.required) for each in columns])


def _own_schema(kind: SegmentKind) -> Any:
    return _schema(columns_of(kind)[len(IDENTITY) :])


def _writer(out: IO[bytes], schema: Any) -> Any:
    """Numbers that follow each other are stored as differences: a third of the bytes, and quicker than a dictionary."""
    pa, parquet = _arrow()
    numbers = [f.name for f in schema if pa.types.is_integer(f.type) or pa.types.is_timestamp(f.type)]
    words = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_boolean(f.type)]
    return parquet.ParquetWriter(
        out,
        schema,
        compression="zstd",
        use_dictionary=[name for name in words if not pa.types.is_boolean(schema.field(name).type)],
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
    )


def _batch(kind: SegmentKind, schema: Any, given: Columns, rows: int | None = None) -> Any:
    """``rows`` is how many there are where all values are plain ones."""
    pa, _ = _arrow()
    unknown = sorted(given.keys() - set(schema.names))
    if unknown:
        raise BadFacts(f"{kind} has no column {unknown[0]}")
    lengths = {len(values) for values in given.values() if _many(values)}
    if len(lengths) > 1:
        raise BadFacts(f"columns of {kind} differ in length: {sorted(lengths)}")
    count = lengths.pop() if lengths else rows
    if count is None:
        raise BadFacts(f"{kind}: no column says how many rows there are")
    arrays = []
    for field in schema:
        values = given.get(field.name)
        try:
            array = pa.array(values, field.type) if _many(values) else pa.repeat(pa.scalar(values, field.type), count)
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise BadFacts(f"{kind}.{field.name}: {error}") from error
        if array.null_count and not field.nullable:
            raise BadFacts(f"{kind}.{field.name} is not known for {array.null_count} rows, which it has to be")
        arrays.append(array)
    return pa.record_batch(arrays, schema=schema)


def _many(values: Any) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str | bytes)
