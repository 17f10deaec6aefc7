"""Input and output of a batch: from manifests to files that may be read, and results with their marker.

Each file is checked before Spark reads it, so that one bad file stops nothing: the footer of a Parquet file stands at
its end, so a truncated file has none. Damage in the rows shows only when they are read; then ``find_unreadable`` finds
the file. Results are rows of each kind, then the marker, without which none of them exists.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from kafkadash.core.messages import CodedMessage, coded
from kafkadash.export.results import MARKER_FORMAT, MARKERS, RESULTS, ResultKind
from kafkadash.export.schema import SCHEMA_KEY, SCHEMA_VERSION, SegmentColumn, SegmentKind, columns_of
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.schemas import find_mismatch, schema_of
from kafkadash.pipeline.store import PipelineStore

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData
    from pyspark.sql import DataFrame

FOLDER = "segments"
MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class SegmentSetAside:
    """``file``: its address below the segments' folder; ``gone``: it is not there any more."""

    file: str
    why: CodedMessage
    gone: bool = False


@dataclass(frozen=True, slots=True)
class FlushedRefresh:
    """Rows of one refresh of a collector, as its manifest describes them; ``observed_at`` in UTC."""

    cluster: str
    kind: SegmentKind
    observed_at: datetime
    rows: int
    file: str


@dataclass(frozen=True, slots=True)
class ReadFlush:
    manifest: str
    epoch: int
    seq: int
    committed_at: datetime
    refreshes: tuple[FlushedRefresh, ...]

    def files(self) -> dict[tuple[SegmentKind, str], int]:
        """(kind, file) → the rows that it has to have."""
        found: dict[tuple[SegmentKind, str], int] = {}
        for refresh in self.refreshes:
            if refresh.file:
                key = refresh.kind, refresh.file
                found[key] = found.get(key, 0) + refresh.rows
        return found


@dataclass(slots=True)
class FlushIntake:
    """Readable part of some flushes. ``files``: kind → file → minutes (since the epoch) of the times in it."""

    flushes: list[ReadFlush] = field(default_factory=list)
    files: dict[SegmentKind, dict[str, set[int]]] = field(default_factory=dict)
    set_aside: list[SegmentSetAside] = field(default_factory=list)

    def add(self, kind: SegmentKind, file: str, minutes: set[int]) -> None:
        self.files.setdefault(kind, {})[file] = minutes

    @property
    def names(self) -> set[str]:
        return {name for files in self.files.values() for name in files}

    @property
    def minutes(self) -> set[int]:
        return set().union(*(minutes for files in self.files.values() for minutes in files.values()))

    @property
    def newest(self) -> datetime | None:
        """Event time of what was observed last."""
        return max((each.observed_at for flush in self.flushes for each in flush.refreshes), default=None)


def take_in(store: PipelineStore, manifests: Iterable[str]) -> FlushIntake:
    """Manifests by their addresses below the segments' folder, in the order of their writers. Raises OSError where the
    store does not answer.
    """
    intake = FlushIntake()
    for manifest in sorted(manifests):
        flush = read_manifest(store, manifest)
        if isinstance(flush, SegmentSetAside):
            intake.set_aside.append(flush)
            continue
        intake.flushes.append(flush)
        intake.add(SegmentKind.MANIFEST, manifest, {minute_of(each.observed_at) for each in flush.refreshes})
        for (kind, file), rows in flush.files().items():
            _take_file(store, intake, kind, file, rows)
    return intake


def list_manifests(store: PipelineStore) -> list[str]:
    """Addresses of all that are kept."""
    prefix = len(FOLDER) + 1
    found = store.sizes(f"{FOLDER}/{SegmentKind.MANIFEST}")
    return sorted(name[prefix:] for name in found if name.endswith(".parquet") and not _is_hidden(name))


def flushed_at(manifest: str) -> datetime:
    """The hour in which it was made, of its address ``manifest/<date>/<hour>/<name>``."""
    _, date, hour, _ = manifest.split("/")
    return datetime.fromisoformat(f"{date}T{hour}:00:00+00:00")


def find_unreadable(store: PipelineStore, files: Iterable[str]) -> list[SegmentSetAside]:
    """Return the files whose rows cannot be read although their footers can. Slow: for use after Spark has failed.

    Raises OSError where the store does not return their bytes, which does not show that a file is damaged.
    """
    return [bad for file in files if (bad := _find_damage(store, file)) is not None]


def _find_damage(store: PipelineStore, file: str) -> SegmentSetAside | None:
    """From its bytes alone, because Arrow says OSError of a broken page as of a store that does not answer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.open(f"{FOLDER}/{file}") as opened:
            content = opened.read()
    except FileNotFoundError:
        return SegmentSetAside(file, coded(PipelineErrorCode.FILE_GONE), gone=True)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return SegmentSetAside(file, coded(PipelineErrorCode.FILE_TRUNCATED, fault=_describe_error(error)))
    try:
        for _ in pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True).iter_batches():
            pass
    except (OSError, pa.ArrowException) as error:
        return SegmentSetAside(file, coded(PipelineErrorCode.FILE_TRUNCATED, fault=_describe_error(error)))
    return None


def exclude_files(intake: FlushIntake, bad: Sequence[SegmentSetAside]) -> FlushIntake:
    names = {each.file for each in bad}
    files = {
        kind: {name: at for name, at in files.items() if name not in names} for kind, files in intake.files.items()
    }
    return FlushIntake(
        intake.flushes, {kind: files for kind, files in files.items() if files}, [*intake.set_aside, *bad]
    )


def _take_file(store: PipelineStore, intake: FlushIntake, kind: SegmentKind, file: str, rows: int) -> None:
    found = _inspect_file(store, kind, file)
    if isinstance(found, SegmentSetAside):
        intake.set_aside.append(found)
        return
    count, minutes = found
    if count != rows:
        intake.set_aside.append(
            SegmentSetAside(file, coded(PipelineErrorCode.FILE_OF_OTHER_ROWS, found=count, expected=rows))
        )
    elif count:
        intake.add(kind, file, minutes)


def _inspect_file(store: PipelineStore, kind: SegmentKind, file: str) -> tuple[int, set[int]] | SegmentSetAside:
    """Return the rows of the file, and the minutes in which they were observed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.open(f"{FOLDER}/{file}") as opened:
            parquet = pq.ParquetFile(opened)
            refused = _check_schema(kind, file, parquet)
            if refused is not None:
                return refused
            minutes: set[int] = set()
            for batch in parquet.iter_batches(columns=["observed_at"]):
                minutes.update(_minutes(batch.column(0)))
            return parquet.metadata.num_rows, minutes
    except (OSError, pa.ArrowException):
        if (bad := _find_damage(store, file)) is None:
            raise
        return bad


def _minutes(times: Any) -> Iterator[int]:
    import pyarrow as pa
    import pyarrow.compute as pc

    return (us // MINUTE_US for us in pc.unique(times).cast(pa.int64()).to_pylist())


def minute_of(at: datetime) -> int:
    return int(at.timestamp()) // 60


def _check_schema(kind: SegmentKind, file: str, parquet: Any) -> SegmentSetAside | None:
    version = (parquet.metadata.metadata or {}).get(SCHEMA_KEY.encode(), b"").decode()
    if not version.isdigit():
        return SegmentSetAside(file, coded(PipelineErrorCode.FILE_UNLIKE, column=f"the entry {SCHEMA_KEY}"))
    if int(version) > SCHEMA_VERSION:
        return SegmentSetAside(file, coded(PipelineErrorCode.FILE_FROM_FUTURE, version=version, known=SCHEMA_VERSION))
    columns = columns_of(kind, int(version))
    if column := find_mismatch(columns, parquet.schema_arrow):
        return SegmentSetAside(file, coded(PipelineErrorCode.FILE_UNLIKE, column=column))
    if column := _without_value(columns, parquet.metadata):
        return SegmentSetAside(file, coded(PipelineErrorCode.FILE_WITHOUT_VALUE, column=column))
    return None


def _without_value(columns: Iterable[SegmentColumn], footer: FileMetaData) -> str | None:
    """The first that must have a value in each row and has none in some, as far as the footer tells."""
    required = {column.name for column in columns if column.required}
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for part in map(group.column, range(group.num_columns)):
            told = part.statistics
            if part.path_in_schema in required and told is not None and told.has_null_count and told.null_count:
                return str(part.path_in_schema)
    return None


def read_manifest(store: PipelineStore, manifest: str) -> ReadFlush | SegmentSetAside:
    """Raises OSError where the store does not answer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.open(f"{FOLDER}/{manifest}") as opened:
            parquet = pq.ParquetFile(opened)
            refused = _check_schema(SegmentKind.MANIFEST, manifest, parquet)
            if refused is not None:
                return refused
            rows = parquet.read().to_pylist()
    except (OSError, pa.ArrowException):
        if (bad := _find_damage(store, manifest)) is None:
            raise
        return bad
    if not rows:
        return SegmentSetAside(manifest, coded(PipelineErrorCode.FILE_OF_OTHER_ROWS, found=0, expected="at least one"))
    first = rows[0]
    known = {kind.value for kind in SegmentKind}
    return ReadFlush(
        manifest,
        first["flush_epoch"],
        first["flush_seq"],
        first["committed_at"].astimezone(UTC),
        tuple(
            FlushedRefresh(
                row["cluster"], SegmentKind(row["kind"]), row["observed_at"].astimezone(UTC), row["rows"], row["file"]
            )
            for row in rows
            if row["kind"] in known
        ),
    )


def _is_hidden(name: str) -> bool:
    return any(part.startswith(("_", ".")) for part in name.split("/"))


def _describe_error(error: BaseException) -> str:
    return str(error).splitlines()[0].rstrip(".")[:200] if str(error) else type(error).__name__


RESULTS_FOLDER = "results"


@dataclass(frozen=True, slots=True)
class FlushName:
    """Name of one result. A process that makes the result again uses the same name."""

    query: str
    batch: int

    def __str__(self) -> str:
        return f"{self.query}-{self.batch}"


def is_done(store: PipelineStore, name: FlushName) -> bool:
    """A result that has its marker is whole, and may be being read: it is never written again."""
    return store.has(_marker(name))


def write_rows(store: PipelineStore, name: FlushName, kind: ResultKind, rows: DataFrame) -> None:
    """Columns in their order and types, whatever the job made of them; raises Spark's errors where one does not fit."""
    schema = schema_of(RESULTS[kind].columns)
    rows.select(*(f.col(column.name).cast(column.dataType) for column in schema)).write.mode("overwrite").parquet(
        store.address(f"{RESULTS_FOLDER}/{kind}/{name}")
    )


def write_marker(
    store: PipelineStore,
    name: FlushName,
    kinds: Iterable[ResultKind],
    flushes: Iterable[ReadFlush],
    set_aside: Iterable[SegmentSetAside],
) -> Mapping[str, int]:
    """The rows of each kind, counted in what was written."""
    rows = {kind.value: count_rows(store, f"{RESULTS_FOLDER}/{kind}/{name}") for kind in kinds}
    marker: dict[str, Any] = {
        "format": MARKER_FORMAT,
        "query": name.query,
        "batch": name.batch,
        "written_at": datetime.now(UTC).isoformat(),
        "kinds": {kind: {"rows": count} for kind, count in rows.items()},
        "flushes": [[flush.epoch, flush.seq, flush.committed_at.isoformat()] for flush in flushes],
        "set_aside": [{"file": each.file, "why": each.why.as_json()} for each in set_aside],
    }
    store.write(_marker(name), json.dumps(marker, indent=1, ensure_ascii=False).encode())
    return rows


def count_rows(store: PipelineStore, folder: str) -> int:
    """By the footers of its files."""
    import pyarrow.parquet as pq

    rows = 0
    for name in store.sizes(folder):
        if name.endswith(".parquet"):
            with store.open(name) as opened:
                rows += pq.ParquetFile(opened).metadata.num_rows
    return rows


def _marker(name: FlushName) -> str:
    return f"{RESULTS_FOLDER}/{MARKERS}/{name}.json"
