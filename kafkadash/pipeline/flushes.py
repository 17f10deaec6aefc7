"""From manifests to files that may be read: each is looked at before Spark is, so that one bad file stops nothing.

A file's footer stands at its end: one that was cut off has none. What is between is read by whoever reads rows; when
that fails, ``unreadable`` finds the file.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kafkadash.domain.messages import message_text
from kafkadash.domain.segments import SCHEMA_KEY, SCHEMA_VERSION, Column, SegmentKind, columns_of
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.schemas import unlike
from kafkadash.pipeline.store import Store

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

FOLDER = "segments"
MINUTE_US = 60_000_000


@dataclass(frozen=True, slots=True)
class SetAside:
    """``file``: its address below the segments' folder; ``why``: a sentence. ``gone``: it is not there any more."""

    file: str
    why: str
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Refresh:
    """What one refresh of a collector gave, as its manifest says; ``observed_at`` in UTC."""

    cluster: str
    kind: SegmentKind
    observed_at: datetime
    rows: int
    file: str


@dataclass(frozen=True, slots=True)
class Flush:
    manifest: str
    epoch: int
    seq: int
    committed_at: datetime
    refreshes: tuple[Refresh, ...]

    def files(self) -> dict[tuple[SegmentKind, str], int]:
        """(kind, file) → the rows that it has to have."""
        found: dict[tuple[SegmentKind, str], int] = {}
        for refresh in self.refreshes:
            if refresh.file:
                key = refresh.kind, refresh.file
                found[key] = found.get(key, 0) + refresh.rows
        return found


@dataclass(slots=True)
class Intake:
    """What of some flushes may be read. ``files``: kind → file → minutes (since the epoch) of the times in it."""

    flushes: list[Flush] = field(default_factory=list)
    files: dict[SegmentKind, dict[str, set[int]]] = field(default_factory=dict)
    set_aside: list[SetAside] = field(default_factory=list)

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


def take_in(store: Store, manifests: Iterable[str]) -> Intake:
    """Manifests by their addresses below the segments' folder, in the order of their writers. Raises OSError where the
    store does not answer."""
    intake = Intake()
    for manifest in sorted(manifests):
        flush = read_manifest(store, manifest)
        if isinstance(flush, SetAside):
            intake.set_aside.append(flush)
            continue
        intake.flushes.append(flush)
        intake.add(SegmentKind.MANIFEST, manifest, {minute_of(each.observed_at) for each in flush.refreshes})
        for (kind, file), rows in flush.files().items():
            _take_file(store, intake, kind, file, rows)
    return intake


def manifests(store: Store) -> list[str]:
    """Addresses of all that are kept."""
    prefix = len(FOLDER) + 1
    found = store.sizes(f"{FOLDER}/{SegmentKind.MANIFEST}")
    return sorted(name[prefix:] for name in found if name.endswith(".parquet") and not _is_hidden(name))


def flushed_at(manifest: str) -> datetime:
    """The hour in which it was made, of its address ``manifest/<date>/<hour>/<name>``."""
    _, date, hour, _ = manifest.split("/")
    return datetime.fromisoformat(f"{date}T{hour}:00:00+00:00")


def unreadable(store: Store, files: Iterable[str]) -> list[SetAside]:
    """Those whose rows cannot be read, though their footers could; slow, for when Spark has failed.

    Raises OSError where the store does not give their bytes: that says nothing of the files.
    """
    return [bad for file in files if (bad := _damage(store, file)) is not None]


def _damage(store: Store, file: str) -> SetAside | None:
    """From its bytes alone, because Arrow says OSError of a broken page as of a store that does not answer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.open(f"{FOLDER}/{file}") as opened:
            content = opened.read()
    except FileNotFoundError:
        return SetAside(file, message_text(PipelineErrorCode.FILE_GONE), gone=True)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return SetAside(file, message_text(PipelineErrorCode.FILE_TRUNCATED, fault=_words(error)))
    try:
        for _ in pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True).iter_batches():
            pass
    except (OSError, pa.ArrowException) as error:
        return SetAside(file, message_text(PipelineErrorCode.FILE_TRUNCATED, fault=_words(error)))
    return None


def without(intake: Intake, bad: Sequence[SetAside]) -> Intake:
    names = {each.file for each in bad}
    files = {
        kind: {name: at for name, at in files.items() if name not in names} for kind, files in intake.files.items()
    }
    return Intake(intake.flushes, {kind: files for kind, files in files.items() if files}, [*intake.set_aside, *bad])


def _take_file(store: Store, intake: Intake, kind: SegmentKind, file: str, rows: int) -> None:
    found = _look(store, kind, file)
    if isinstance(found, SetAside):
        intake.set_aside.append(found)
        return
    count, minutes = found
    if count != rows:
        intake.set_aside.append(
            SetAside(file, message_text(PipelineErrorCode.FILE_OF_OTHER_ROWS, found=count, expected=rows))
        )
    elif count:
        intake.add(kind, file, minutes)


def _look(store: Store, kind: SegmentKind, file: str) -> tuple[int, set[int]] | SetAside:
    """Its rows, and the minutes in which they were observed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.open(f"{FOLDER}/{file}") as opened:
            parquet = pq.ParquetFile(opened)
            refused = _refused(kind, file, parquet)
            if refused is not None:
                return refused
            minutes: set[int] = set()
            for batch in parquet.iter_batches(columns=["observed_at"]):
                minutes.update(_minutes(batch.column(0)))
            return parquet.metadata.num_rows, minutes
    except (OSError, pa.ArrowException):
        if (bad := _damage(store, file)) is None:
            raise
        return bad


def _minutes(times: Any) -> Iterator[int]:
    import pyarrow as pa
    import pyarrow.compute as pc

    return (us // MINUTE_US for us in pc.unique(times).cast(pa.int64()).to_pylist())


def minute_of(at: datetime) -> int:
    return int(at.timestamp()) // 60


def _refused(kind: SegmentKind, file: str, parquet: Any) -> SetAside | None:
    version = (parquet.metadata.metadata or {}).get(SCHEMA_KEY.encode(), b"").decode()
    if not version.isdigit():
        return SetAside(file, message_text(PipelineErrorCode.FILE_UNLIKE, column=f"the entry {SCHEMA_KEY}"))
    if int(version) > SCHEMA_VERSION:
        return SetAside(file, message_text(PipelineErrorCode.FILE_FROM_FUTURE, version=version, known=SCHEMA_VERSION))
    columns = columns_of(kind, int(version))
    if column := unlike(columns, parquet.schema_arrow):
        return SetAside(file, message_text(PipelineErrorCode.FILE_UNLIKE, column=column))
    if column := _without_value(columns, parquet.metadata):
        return SetAside(file, message_text(PipelineErrorCode.FILE_WITHOUT_VALUE, column=column))
    return None


def _without_value(columns: Iterable[Column], footer: FileMetaData) -> str | None:
    """The first that must have a value in each row and has none in some, as far as the footer tells."""
    required = {column.name for column in columns if column.required}
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for part in map(group.column, range(group.num_columns)):
            told = part.statistics
            if part.path_in_schema in required and told is not None and told.has_null_count and told.null_count:
                return str(part.path_in_schema)
    return None


def read_manifest(store: Store, manifest: str) -> Flush | SetAside:
    """Raises OSError where the store does not answer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with store.open(f"{FOLDER}/{manifest}") as opened:
            parquet = pq.ParquetFile(opened)
            refused = _refused(SegmentKind.MANIFEST, manifest, parquet)
            if refused is not None:
                return refused
            rows = parquet.read().to_pylist()
    except (OSError, pa.ArrowException):
        if (bad := _damage(store, manifest)) is None:
            raise
        return bad
    if not rows:
        return SetAside(manifest, message_text(PipelineErrorCode.FILE_OF_OTHER_ROWS, found=0, expected="at least one"))
    first = rows[0]
    known = {kind.value for kind in SegmentKind}
    return Flush(
        manifest,
        first["flush_epoch"],
        first["flush_seq"],
        first["committed_at"].astimezone(UTC),
        tuple(
            Refresh(
                row["cluster"], SegmentKind(row["kind"]), row["observed_at"].astimezone(UTC), row["rows"], row["file"]
            )
            for row in rows
            if row["kind"] in known
        ),
    )


def _is_hidden(name: str) -> bool:
    return any(part.startswith(("_", ".")) for part in name.split("/"))


def _words(error: BaseException) -> str:
    return str(error).splitlines()[0].rstrip(".")[:200] if str(error) else type(error).__name__
