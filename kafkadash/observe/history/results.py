"""Reading a result: its marker and the rows of each kind, checked before anything of them is used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kafkadash.domain.errors import UserError
from kafkadash.domain.messages import CodedMessage, coded
from kafkadash.domain.pipeline_results import MARKER_FORMAT, RESULTS, ResultKind
from kafkadash.domain.segments import Type
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.history.store import Store, parts

Row = tuple[Any, ...]


class SetAside(UserError):
    """It cannot be used, now or later; the text is a sentence that says why. ``file`` is below the results' folder."""

    def __init__(self, file: str, why: CodedMessage) -> None:
        super().__init__(why)
        self.file = file


@dataclass(frozen=True, slots=True)
class Marker:
    """See ``domain.pipeline_results``; ``rows`` by the name of the kind, also of kinds that are not known here."""

    query: str
    batch: int
    written_at: datetime
    rows: Mapping[str, int]
    flushes: Sequence[tuple[int, int, datetime]] = ()
    set_aside: Sequence[Mapping[str, str]] = field(default_factory=tuple)

    @property
    def version(self) -> int:
        """Microseconds since the epoch."""
        return round(self.written_at.timestamp() * 1_000_000)

    @property
    def newest_at(self) -> datetime | None:
        return max((at for _, _, at in self.flushes), default=None)

    def folder(self, kind: str) -> str:
        return f"{kind}/{self.query}-{self.batch}"


def named(file: str) -> tuple[str, int]:
    """Query and batch by the name of a marker's file; batch -1 where the name is none."""
    stem = file.rpartition("/")[2].removesuffix(".json")
    query, _, batch = stem.rpartition("-")
    return (query, int(batch)) if query and batch.isdecimal() and len(batch) < 19 else (stem[:128], -1)


def marker(file: str, content: bytes) -> Marker:
    """Raises SetAside for one that is no marker, or of a format that is not known here."""
    try:
        told = json.loads(content)
        form = told["format"]
        if isinstance(form, int) and form > MARKER_FORMAT:
            raise SetAside(
                file, coded(CollectionErrorCode.MARKER_FROM_FUTURE, file=file, format=form, known=MARKER_FORMAT)
            )
        found = Marker(
            query=str(told["query"]),
            batch=int(told["batch"]),
            written_at=_time(told["written_at"]),
            rows={str(kind): int(about["rows"]) for kind, about in told["kinds"].items()},
            flushes=[(int(epoch), int(seq), _time(at)) for epoch, seq, at in told.get("flushes", ())],
            set_aside=[{"file": str(each["file"]), "why": str(each["why"])} for each in told.get("set_aside", ())],
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SetAside(
            file, coded(CollectionErrorCode.NO_MARKER, file=file, why=f"{type(error).__name__}: {error}"[:200])
        ) from error
    if (found.query, found.batch) != named(file):
        raise SetAside(
            file, coded(CollectionErrorCode.NO_MARKER, file=file, why=f"it is of {found.query} {found.batch}")
        )
    return found


def _time(told: str) -> datetime:
    at = datetime.fromisoformat(told)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def known_kind(found: Marker, name: str) -> ResultKind:
    """Raises SetAside for one that is not known here."""
    try:
        return ResultKind(name)
    except ValueError:
        raise SetAside(
            found.folder(name), coded(CollectionErrorCode.RESULT_KIND_UNKNOWN, file=found.folder(name), kind=name)
        ) from None


def read(store: Store, found: Marker, kind: ResultKind, columns: Sequence[str], below: str) -> Iterator[Any]:
    """The rows of one kind as PyArrow tables, one for each file; only ``columns``, with the types of the seam.

    All files are read and checked before the first is given out. ``below``: the results' folder. Raises SetAside, and
    StoreFailed where the store does not answer.
    """
    folder = found.folder(kind)
    tables = [_table(store.read(part.path), part.path, kind, columns) for part in parts(store, f"{below}/{folder}")]
    rows = sum(table.num_rows for table in tables)
    if rows != found.rows[kind]:
        raise SetAside(folder, coded(CollectionErrorCode.FILES_MISSING, file=folder, found=rows, told=found.rows[kind]))
    return iter(tables)


def _table(content: bytes | None, path: str, kind: ResultKind, columns: Sequence[str]) -> Any:
    """Whatever Arrow says of bytes that are in memory is about the bytes: reading them is over."""
    import pyarrow as pa
    from pyarrow import parquet

    if content is None:
        raise SetAside(path, coded(CollectionErrorCode.RESULT_DAMAGED, file=path, why="it is gone"))
    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        missing = [column for column in columns if column not in file.schema_arrow.names]
        if missing:
            raise SetAside(
                path, coded(CollectionErrorCode.COLUMNS_WRONG, file=path, kind=kind, why=f"no {', '.join(missing)}")
            )
        table = file.read(columns=list(columns))
    except (OSError, ValueError) as error:
        raise SetAside(path, coded(CollectionErrorCode.RESULT_DAMAGED, file=path, why=_first_line(error))) from error
    return _typed(table, path, kind)


def _typed(table: Any, path: str, kind: ResultKind) -> Any:
    import pyarrow as pa

    types = {
        Type.STRING: pa.string(),
        Type.INT: pa.int32(),
        Type.LONG: pa.int64(),
        Type.DOUBLE: pa.float64(),
        Type.BOOL: pa.bool_(),
        Type.TIME: pa.timestamp("us", "UTC"),
    }
    about = {column.name: column for column in RESULTS[kind].columns}
    for index, name in enumerate(table.column_names):
        try:
            column = table.column(index).cast(types[about[name].type])
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            why = f"{name}: {_first_line(error)}"
            raise SetAside(path, coded(CollectionErrorCode.COLUMNS_WRONG, file=path, kind=kind, why=why)) from error
        if about[name].required and column.null_count:
            raise SetAside(
                path,
                coded(CollectionErrorCode.COLUMNS_WRONG, file=path, kind=kind, why=f"{name} is empty in some rows"),
            )
        table = table.set_column(index, name, column)
    return table


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")[:200] or type(error).__name__


def rows(table: Any) -> list[Row]:
    """In the order of its columns."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
