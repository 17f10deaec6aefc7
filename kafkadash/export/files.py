"""Maintenance of segments: ``check_files`` reads every manifest and its files, ``delete_old_files`` deletes old ones.

``check_files`` keeps only the names of files in memory and, for snapshots, their numbers; not their rows.
``delete_old_files`` removes segments past their retention, empty folders, and half-written files of killed writers. A
round lists the days of each kind, the hours of days that are over, and the last hours for half-written files, so that
its cost does not grow with what is kept. What a round does not reach, the next one does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

import structlog
from django.conf import settings

from kafkadash.core.messages import CodedMessage, choose_plural, coded
from kafkadash.export.encoding import ParquetFooter, UnreadableFacts, types_of
from kafkadash.export.errors import ExportErrorCode
from kafkadash.export.flusher import segments_uri
from kafkadash.export.places import PlaceUnknown, StoragePlace, open_place, walk_folders
from kafkadash.export.schema import SCHEMA_KEY, SCHEMA_VERSION, SegmentKind, columns_of

UNDER_WAY = timedelta(minutes=10)
"""A file that is younger may be of a flush that is not whole yet."""
_Told = Mapping[str, Any]


@dataclass(slots=True)
class CheckedFiles:
    """Counts of the checked files; ``rows`` excludes rows of manifests."""

    flushes: int = 0
    snapshots: int = 0
    files: int = 0
    rows: int = 0
    missing: int = 0
    """Snapshots whose manifest says that their rows are missing."""


@dataclass(slots=True)
class _SeenFlushes:
    files: set[str] = field(default_factory=set)
    snapshots: dict[tuple[str, str, int], _FlushNumbers] = field(default_factory=dict)
    flush: tuple[int, int] | None = None


class _FlushNumbers:
    """Numbers that were seen, as ranges: nearly always one."""

    def __init__(self) -> None:
        self.ranges: list[list[int]] = []

    def add(self, number: int) -> tuple[bool, int]:
        """Return whether the number is new, and how many numbers are missing between the one before and this one."""
        if any(first <= number <= last for first, last in self.ranges):
            return False, 0
        before = max((last for _, last in self.ranges if last < number), default=None)
        for each in self.ranges:
            if each[1] == number - 1:
                each[1] = number
                return True, 0
        self.ranges.append([number, number])
        return True, 0 if before is None else number - before - 1


def check_files(place: StoragePlace, now: datetime, checked: CheckedFiles) -> Iterator[CodedMessage]:
    """Yield a message for everything that is wrong, as it is found; counts into ``checked``.

    Raises OSError where the place cannot be read.
    """
    seen = _SeenFlushes()
    for address in list(_list_manifests(place)):
        yield from _check_flush(place, address, seen, checked)
    for kind in SegmentKind:
        if kind is SegmentKind.MANIFEST:
            continue
        for _, entries in walk_folders(place, kind):
            for entry in entries:
                hidden = PurePosixPath(entry.address).name.startswith("_")
                if not hidden and entry.address not in seen.files and entry.modified_at < now - UNDER_WAY:
                    yield coded(ExportErrorCode.SEGMENT_ORPHAN, file=entry.address)


def _list_manifests(place: StoragePlace) -> Iterator[str]:
    """In the order of their flushes."""
    found = [entry.address for _, entries in walk_folders(place, SegmentKind.MANIFEST) for entry in entries]
    names = [(PurePosixPath(address).name, address) for address in found]
    yield from (address for name, address in sorted(names) if not name.startswith("_"))


def _check_flush(
    place: StoragePlace, address: str, seen: _SeenFlushes, checked: CheckedFiles
) -> Iterator[CodedMessage]:
    problem = _looks_wrong(place, address, SegmentKind.MANIFEST)
    if problem:
        yield problem
        return
    told = _read_manifest(place, address)
    checked.flushes += 1
    yield from _check_numbers(address, told, seen)
    named: dict[str, list[_Told]] = {}
    for row in told:
        checked.snapshots += 1
        checked.missing += bool(row["errors"] and not row["rows"])
        yield from _check_snapshot(address, row, seen)
        if row["file"]:
            named.setdefault(row["file"], []).append(row)
    for file, snapshots in named.items():
        seen.files.add(file)
        yield from _check_file(place, address, file, snapshots, checked)


def _check_numbers(address: str, told: list[_Told], seen: _SeenFlushes) -> Iterator[CodedMessage]:
    """Flushes follow each other; a new database begins at 1 again, under a higher epoch."""
    flushes = {(row["flush_epoch"], row["flush_seq"]) for row in told}
    epoch, seq = (int(part) for part in PurePosixPath(address).stem.split("-"))
    for other in sorted(flushes - {(epoch, seq)}):
        yield coded(ExportErrorCode.FLUSH_MISNAMED, manifest=address, flush=f"{other[0]}.{other[1]}")
    if seen.flush is not None and seq not in (seen.flush[1] + 1, 1):
        gap = seq - seen.flush[1] - 1
        missing = f"{choose_plural('# flush is|# flushes are', gap)} missing" if gap > 0 else "flush numbers decrease"
        yield coded(ExportErrorCode.FLUSHES_MISSING, manifest=address, missing=missing)
    seen.flush = epoch, seq


def _check_snapshot(address: str, row: _Told, seen: _SeenFlushes) -> Iterator[CodedMessage]:
    numbers = seen.snapshots.setdefault((row["cluster"], row["kind"], row["epoch"]), _FlushNumbers())
    new, gap = numbers.add(row["seq"])
    if not new:
        yield coded(ExportErrorCode.SNAPSHOT_TWICE, manifest=address, refresh=_refresh_name(row))
    if gap:
        yield coded(
            ExportErrorCode.SNAPSHOTS_MISSING,
            missing=choose_plural("# refresh|# refreshes", gap),
            refresh=_refresh_name(row),
            manifest=address,
        )


def _check_file(
    place: StoragePlace, manifest: str, file: str, told: list[_Told], checked: CheckedFiles
) -> Iterator[CodedMessage]:
    kind = SegmentKind(told[0]["kind"])
    problem = _looks_wrong(place, file, kind, manifest)
    if problem:
        yield problem
        return
    checked.files += 1
    wanted = {(row["cluster"], row["epoch"], row["seq"], row["observed_at"]): row for row in told}
    try:
        found = _count_rows(place, file)
    except UnreadableFacts as error:
        yield coded(ExportErrorCode.SEGMENT_NOT_WHOLE, file=file, fault=error)
        return
    checked.rows += sum(found.values())
    for identity in sorted(wanted.keys() | found.keys()):
        rows = wanted[identity]["rows"] if identity in wanted else 0
        if found.get(identity, 0) != rows:
            cluster, epoch, seq, _ = identity
            yield coded(
                ExportErrorCode.SEGMENT_ROWS_DIFFER,
                file=file,
                found=choose_plural("# row|# rows", found.get(identity, 0)),
                refresh=f"{epoch}.{seq} of {cluster}",
                told=choose_plural("# row|# rows", rows),
            )


def _looks_wrong(place: StoragePlace, address: str, kind: SegmentKind, manifest: str = "") -> CodedMessage | None:
    """Return what its end says of it; None where that is fine."""
    try:
        footer = place.footer(address)
    except UnreadableFacts as error:
        return coded(ExportErrorCode.SEGMENT_NOT_WHOLE, file=address, fault=error)
    if footer is None:
        return coded(ExportErrorCode.SEGMENT_NOT_THERE, manifest=manifest, file=address)
    version = footer.metadata.get(SCHEMA_KEY, "")
    if not version.isdecimal():
        return coded(ExportErrorCode.SEGMENT_WITHOUT_SCHEMA, file=address)
    if int(version) > SCHEMA_VERSION:
        return coded(ExportErrorCode.SEGMENT_FROM_THE_FUTURE, file=address, version=version, known=SCHEMA_VERSION)
    return _columns_differ(address, footer, kind)


def _columns_differ(address: str, footer: ParquetFooter, kind: SegmentKind) -> CodedMessage | None:
    wanted = types_of(columns_of(kind))
    if dict(footer.columns) == wanted:
        return None
    names = sorted(n for n in wanted.keys() | footer.columns.keys() if wanted.get(n) != footer.columns.get(n))
    return coded(ExportErrorCode.SEGMENT_COLUMNS_DIFFER, file=address, columns=", ".join(names))


def _read_manifest(place: StoragePlace, address: str) -> list[_Told]:
    from pyarrow import parquet

    rows: list[_Told] = parquet.read_table(place.open(address)).to_pylist()
    return rows


def _count_rows(place: StoragePlace, address: str) -> dict[tuple[str, int, int, datetime], int]:
    """Rows of each refresh. Reads all columns, so that a file that is damaged in the middle is found out."""
    from pyarrow import ArrowException, parquet

    names = ["cluster", "epoch", "seq", "observed_at"]
    found: dict[tuple[str, int, int, datetime], int] = {}
    try:
        with parquet.ParquetFile(place.open(address)) as file:
            for batch in file.iter_batches(batch_size=100_000):
                columns = [batch.column(name).to_pylist() for name in names]
                for identity in zip(*columns, strict=True):
                    found[identity] = found.get(identity, 0) + 1
    except (ArrowException, OSError) as error:
        raise UnreadableFacts((str(error).splitlines() or ["unreadable"])[0].rstrip(".")) from error
    return found


def _refresh_name(row: _Told) -> str:
    return f"{row['kind']} {row['epoch']}.{row['seq']} of {row['cluster']}"


log = structlog.get_logger(__name__)

EVERY_S = 600.0
MOST = 20_000
"""Files that one round deletes."""
HALF_WRITTEN = timedelta(hours=1)
"""How long a file may take to be written: a writer's lease is over after a fraction of it."""
_LOOK_BACK = (1, 2, 3)
_KINDS = (SegmentKind.MANIFEST, *(kind for kind in SegmentKind if kind is not SegmentKind.MANIFEST))
_last = 0.0


def forget_now_and_then(now: datetime) -> None:
    """Every ten minutes; several workers at it only share the work."""
    global _last  # noqa: PLW0603  one number per process, and losing it costs one extra round
    if _last and time.monotonic() - _last < EVERY_S:
        return
    _last = time.monotonic()
    try:
        gone = delete_old_files(open_place(segments_uri()), now)
    except (OSError, PlaceUnknown) as error:  # the writer says the same to people
        log.warning("segments.not_forgotten", error=str(error))
        return
    if gone:
        log.info("segments.forgotten", files=gone)


def delete_old_files(where: StoragePlace, now: datetime) -> int:
    """Returns how many files went. Manifests first: what none names does not exist. Raises OSError."""
    keep = now - timedelta(hours=settings.KEEP_SEGMENTS_HOURS)
    gone = 0
    for folder in _list_old_folders(where, keep):
        for entry in where.files(folder):
            if gone == MOST:
                return gone
            where.delete(entry.address)
            gone += 1
        where.delete_empty(folder)
    for kind in _KINDS:
        for day in where.folders(kind):
            if day < f"{keep:%Y-%m-%d}":
                where.delete_empty(f"{kind}/{day}")
    return gone + _half_written(where, now)


def _list_old_folders(where: StoragePlace, keep: datetime) -> Iterator[str]:
    """Folders of hours that ended before ``keep``."""
    for kind in _KINDS:
        for day in where.folders(kind):
            if not _matches_format(day, "%Y-%m-%d") or day > f"{keep:%Y-%m-%d}":
                continue
            for hour in where.folders(f"{kind}/{day}"):
                if _matches_format(hour, "%H") and f"{day}/{hour}" < f"{keep:%Y-%m-%d/%H}":
                    yield f"{kind}/{day}/{hour}"


def _half_written(where: StoragePlace, now: datetime) -> int:
    gone = 0
    for kind in _KINDS:
        for hours in _LOOK_BACK:
            folder = f"{kind}/{now - timedelta(hours=hours):%Y-%m-%d/%H}"
            for entry in where.files(folder):
                if entry.address.rsplit("/", 1)[1].startswith("_") and entry.modified_at < now - HALF_WRITTEN:
                    where.delete(entry.address)
                    gone += 1
    return gone


def _matches_format(name: str, form: str) -> bool:
    """Return whether the name has the format. Other names are ignored."""
    try:
        return datetime.strptime(name, form).replace(tzinfo=UTC).strftime(form) == name
    except ValueError:
        return False
