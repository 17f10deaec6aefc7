"""Reader of the pipeline's results below ``settings.PIPELINE_URI``, on a disk, HDFS or an object store, by PyArrow.

The marker and the rows of each kind are checked before any of them are used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kafkadash.core.errors import UserError
from kafkadash.core.messages import CodedMessage, coded, read_message
from kafkadash.export.results import MARKER_FORMAT, RESULTS, ResultKind
from kafkadash.export.schema import ColumnType
from kafkadash.history.errors import HistoryErrorCode


class NoPyArrow(Exception):
    """PyArrow is not installed on this worker."""


class StoreFailed(Exception):
    """The store did not answer as asked; what it said is the text. Nothing is known about the files."""


@dataclass(frozen=True, slots=True)
class ResultEntry:
    """A file; ``path`` is below the store's root, ``at`` when it was written (None where the store does not tell)."""

    path: str
    size: int
    at: datetime | None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class ResultStore:
    """Raises NoPyArrow without PyArrow and StoreFailed for a URI that no file system is known for."""

    def __init__(self, uri: str) -> None:
        try:
            from pyarrow import ArrowException
            from pyarrow import fs as file_systems
        except ImportError as error:
            raise NoPyArrow from error
        self._fs = file_systems
        # Spark calls the object store s3a, PyArrow s3.
        told = "s3" + uri.removeprefix("s3a") if uri.startswith("s3a:") else uri
        try:
            system, root = file_systems.FileSystem.from_uri(told)
        except (OSError, ValueError, ArrowException) as error:
            raise StoreFailed(f"{uri}: {error}") from error
        self._system: Any = system
        self._root = root.rstrip("/")

    def files(self, folder: str, *, deep: bool = False) -> list[ResultEntry]:
        """Return the files in a folder; [] if it does not exist. Names that begin with ``_`` or ``.`` are skipped."""
        selector = self._fs.FileSelector(f"{self._root}/{folder}", recursive=deep, allow_not_found=True)
        found = []
        for info in _ask_store(self._system.get_file_info, selector):
            below = info.path.removeprefix(f"{self._root}/")
            if info.type == self._fs.FileType.File and not any(p[:1] in "_." for p in below.split("/")):
                found.append(ResultEntry(below, info.size, info.mtime))
        return sorted(found, key=lambda entry: entry.path)

    def folders(self, folder: str) -> list[str]:
        """Names of those in a folder, in order."""
        selector = self._fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True)
        found = _ask_store(self._system.get_file_info, selector)
        return sorted(info.base_name for info in found if info.type == self._fs.FileType.Directory)

    def read(self, path: str) -> bytes | None:
        """The whole file, None where there is none. Raises StoreFailed."""
        try:
            with self._system.open_input_stream(f"{self._root}/{path}") as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreFailed(f"{path}: {error}") from error

    def delete(self, path: str) -> None:
        """A file or a folder with all in it; one that is not there is fine. Raises StoreFailed."""
        at = f"{self._root}/{path}"
        info = _ask_store(self._system.get_file_info, at)
        try:
            if info.type == self._fs.FileType.Directory:
                self._system.delete_dir(at)
            elif info.type == self._fs.FileType.File:
                self._system.delete_file(at)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreFailed(f"{path}: {error}") from error


def _ask_store(ask: Any, what: Any) -> Any:
    try:
        return ask(what)
    except OSError as error:
        raise StoreFailed(str(error)) from error


def list_parts(store: ResultStore, folder: str) -> Iterator[ResultEntry]:
    """The Parquet files of a result."""
    return (entry for entry in store.files(folder) if entry.name.endswith(".parquet"))


Row = tuple[Any, ...]


class SetAside(UserError):
    """A file of results that cannot be used, now or later. ``file`` is below the results' folder."""

    def __init__(self, file: str, why: CodedMessage) -> None:
        super().__init__(why)
        self.file = file


@dataclass(frozen=True, slots=True)
class ResultMarker:
    """See ``export.results``; ``rows`` by the name of the kind, also of kinds that are not known here."""

    query: str
    batch: int
    written_at: datetime
    rows: Mapping[str, int]
    flushes: Sequence[tuple[int, int, datetime]] = ()
    set_aside: Sequence[tuple[str, CodedMessage]] = field(default_factory=tuple)

    @property
    def version(self) -> int:
        """Microseconds since the epoch."""
        return round(self.written_at.timestamp() * 1_000_000)

    @property
    def newest_at(self) -> datetime | None:
        return max((at for _, _, at in self.flushes), default=None)

    def folder(self, kind: str) -> str:
        return f"{kind}/{self.query}-{self.batch}"


def parse_marker_name(file: str) -> tuple[str, int]:
    """Query and batch by the name of a marker's file; batch -1 where the name is none."""
    stem = file.rpartition("/")[2].removesuffix(".json")
    query, _, batch = stem.rpartition("-")
    return (query, int(batch)) if query and batch.isdecimal() and len(batch) < 19 else (stem[:128], -1)


def parse_marker(file: str, content: bytes) -> ResultMarker:
    """Raises SetAside for one that is no marker, or of a format that is not known here."""
    try:
        told = json.loads(content)
        form = told["format"]
        if isinstance(form, int) and form > MARKER_FORMAT:
            raise SetAside(
                file, coded(HistoryErrorCode.MARKER_FROM_FUTURE, file=file, format=form, known=MARKER_FORMAT)
            )
        found = ResultMarker(
            query=str(told["query"]),
            batch=int(told["batch"]),
            written_at=_parse_time(told["written_at"]),
            rows={str(kind): int(about["rows"]) for kind, about in told["kinds"].items()},
            flushes=[(int(epoch), int(seq), _parse_time(at)) for epoch, seq, at in told.get("flushes", ())],
            set_aside=[(str(each["file"]), read_message(each["why"])) for each in told.get("set_aside", ())],
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SetAside(
            file, coded(HistoryErrorCode.NO_MARKER, file=file, why=f"{type(error).__name__}: {error}"[:200])
        ) from error
    if (found.query, found.batch) != parse_marker_name(file):
        raise SetAside(
            file, coded(HistoryErrorCode.NO_MARKER, file=file, why=f"it belongs to {found.query} {found.batch}")
        )
    return found


def _parse_time(told: str) -> datetime:
    at = datetime.fromisoformat(told)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def known_kind(found: ResultMarker, name: str) -> ResultKind:
    """Raises SetAside for one that is not known here."""
    try:
        return ResultKind(name)
    except ValueError:
        raise SetAside(
            found.folder(name), coded(HistoryErrorCode.RESULT_KIND_UNKNOWN, file=found.folder(name), kind=name)
        ) from None


def read_tables(
    store: ResultStore, found: ResultMarker, kind: ResultKind, columns: Sequence[str], below: str
) -> Iterator[Any]:
    """The rows of one kind as PyArrow tables, one for each file; only ``columns``, with the types of the seam.

    All files are read and checked before the first is given out. ``below``: the results' folder. Raises SetAside, and
    StoreFailed where the store does not answer.
    """
    folder = found.folder(kind)
    tables = [
        _read_table(store.read(part.path), part.path, kind, columns) for part in list_parts(store, f"{below}/{folder}")
    ]
    rows = sum(table.num_rows for table in tables)
    if rows != found.rows[kind]:
        raise SetAside(folder, coded(HistoryErrorCode.FILES_MISSING, file=folder, found=rows, told=found.rows[kind]))
    return iter(tables)


def stream_tables(
    store: ResultStore, found: ResultMarker, kind: ResultKind, columns: Sequence[str], below: str
) -> Iterator[Any]:
    """As ``read_tables``, for a result that it has read before: one file at a time, and no count of rows."""
    for part in list_parts(store, f"{below}/{found.folder(kind)}"):
        yield _read_table(store.read(part.path), part.path, kind, columns)


def _read_table(content: bytes | None, path: str, kind: ResultKind, columns: Sequence[str]) -> Any:
    """Turn any error of Arrow on bytes in memory into one about the bytes: reading them is over."""
    import pyarrow as pa
    from pyarrow import parquet

    if content is None:
        raise SetAside(path, coded(HistoryErrorCode.RESULT_DAMAGED, file=path, why="the file is missing"))
    try:
        file = parquet.ParquetFile(pa.BufferReader(content))
        missing = [column for column in columns if column not in file.schema_arrow.names]
        if missing:
            raise SetAside(
                path, coded(HistoryErrorCode.COLUMNS_WRONG, file=path, kind=kind, why=f"missing {', '.join(missing)}")
            )
        table = file.read(columns=list(columns))
    except (OSError, ValueError) as error:
        raise SetAside(path, coded(HistoryErrorCode.RESULT_DAMAGED, file=path, why=_first_line(error))) from error
    return _cast_table(table, path, kind)


def _cast_table(table: Any, path: str, kind: ResultKind) -> Any:
    import pyarrow as pa

    types = {
        ColumnType.STRING: pa.string(),
        ColumnType.INT: pa.int32(),
        ColumnType.LONG: pa.int64(),
        ColumnType.DOUBLE: pa.float64(),
        ColumnType.BOOL: pa.bool_(),
        ColumnType.TIME: pa.timestamp("us", "UTC"),
        ColumnType.INTS: pa.list_(pa.int32()),
        ColumnType.LONGS: pa.list_(pa.int64()),
    }
    about = {column.name: column for column in RESULTS[kind].columns}
    for index, name in enumerate(table.column_names):
        try:
            column = table.column(index).cast(types[about[name].type])
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            why = f"{name}: {_first_line(error)}"
            raise SetAside(path, coded(HistoryErrorCode.COLUMNS_WRONG, file=path, kind=kind, why=why)) from error
        if about[name].required and column.null_count:
            raise SetAside(
                path,
                coded(HistoryErrorCode.COLUMNS_WRONG, file=path, kind=kind, why=f"{name} is empty in some rows"),
            )
        table = table.set_column(index, name, column)
    return table


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")[:200] or type(error).__name__


def table_rows(table: Any) -> list[Row]:
    """In the order of its columns."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
