"""Whether segments are as they should be: every manifest is read, and every file that it names.

What is held of all of them is the names of files and, of snapshots, which numbers there were; not their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from kafkadash.domain.messages import message_text
from kafkadash.domain.segments import SCHEMA_KEY, SCHEMA_VERSION, SegmentKind, columns_of
from kafkadash.domain.wording import count
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.segments.encoding import Footer, Unreadable, types_of
from kafkadash.observe.segments.places import Place, walk

UNDER_WAY = timedelta(minutes=10)
"""A file that is younger may be of a flush that is not whole yet."""
_Told = Mapping[str, Any]


@dataclass(slots=True)
class Checked:
    """What was looked at; ``rows`` without those of the manifests."""

    flushes: int = 0
    snapshots: int = 0
    files: int = 0
    rows: int = 0
    missing: int = 0
    """Snapshots whose manifest says that their rows are missing."""


@dataclass(slots=True)
class _Seen:
    files: set[str] = field(default_factory=set)
    snapshots: dict[tuple[str, str, int], _Numbers] = field(default_factory=dict)
    flush: tuple[int, int] | None = None


class _Numbers:
    """Numbers that were seen, as ranges: nearly always one."""

    def __init__(self) -> None:
        self.ranges: list[list[int]] = []

    def add(self, number: int) -> tuple[bool, int]:
        """Whether it is new, and how many are missing between the one before and this one."""
        if any(first <= number <= last for first, last in self.ranges):
            return False, 0
        before = max((last for _, last in self.ranges if last < number), default=None)
        for each in self.ranges:
            if each[1] == number - 1:
                each[1] = number
                return True, 0
        self.ranges.append([number, number])
        return True, 0 if before is None else number - before - 1


def check(place: Place, now: datetime, checked: Checked) -> Iterator[str]:
    """A sentence for everything that is wrong, as it is found; counts into ``checked``.

    Raises OSError where the place cannot be read.
    """
    seen = _Seen()
    for address in list(_manifests(place)):
        yield from _flush(place, address, seen, checked)
    for kind in SegmentKind:
        if kind is SegmentKind.MANIFEST:
            continue
        for _, entries in walk(place, kind):
            for entry in entries:
                hidden = PurePosixPath(entry.address).name.startswith("_")
                if not hidden and entry.address not in seen.files and entry.modified_at < now - UNDER_WAY:
                    yield message_text(CollectionErrorCode.SEGMENT_ORPHAN, file=entry.address)


def _manifests(place: Place) -> Iterator[str]:
    """In the order of their flushes."""
    found = [entry.address for _, entries in walk(place, SegmentKind.MANIFEST) for entry in entries]
    names = [(PurePosixPath(address).name, address) for address in found]
    yield from (address for name, address in sorted(names) if not name.startswith("_"))


def _flush(place: Place, address: str, seen: _Seen, checked: Checked) -> Iterator[str]:
    problem = _looks_wrong(place, address, SegmentKind.MANIFEST)
    if problem:
        yield problem
        return
    told = _rows(place, address)
    checked.flushes += 1
    yield from _numbered(address, told, seen)
    named: dict[str, list[_Told]] = {}
    for row in told:
        checked.snapshots += 1
        checked.missing += bool(row["errors"] and not row["rows"])
        yield from _snapshot(address, row, seen)
        if row["file"]:
            named.setdefault(row["file"], []).append(row)
    for file, snapshots in named.items():
        seen.files.add(file)
        yield from _file(place, address, file, snapshots, checked)


def _numbered(address: str, told: list[_Told], seen: _Seen) -> Iterator[str]:
    """Flushes follow each other; a new database begins at 1 again, under a higher epoch."""
    flushes = {(row["flush_epoch"], row["flush_seq"]) for row in told}
    epoch, seq = (int(part) for part in PurePosixPath(address).stem.split("-"))
    for other in sorted(flushes - {(epoch, seq)}):
        yield message_text(CollectionErrorCode.FLUSH_MISNAMED, manifest=address, flush=f"{other[0]}.{other[1]}")
    if seen.flush is not None and seq not in (seen.flush[1] + 1, 1):
        gap = seq - seen.flush[1] - 1
        missing = f"{count(gap, 'flush is', 'flushes are')} missing" if gap > 0 else "the numbers go back"
        yield message_text(CollectionErrorCode.FLUSHES_MISSING, manifest=address, missing=missing)
    seen.flush = epoch, seq


def _snapshot(address: str, row: _Told, seen: _Seen) -> Iterator[str]:
    numbers = seen.snapshots.setdefault((row["cluster"], row["kind"], row["epoch"]), _Numbers())
    new, gap = numbers.add(row["seq"])
    if not new:
        yield message_text(CollectionErrorCode.SNAPSHOT_TWICE, manifest=address, refresh=_named(row))
    if gap:
        yield message_text(
            CollectionErrorCode.SNAPSHOTS_MISSING,
            missing=count(gap, "refresh", "refreshes"),
            refresh=_named(row),
            manifest=address,
        )


def _file(place: Place, manifest: str, file: str, told: list[_Told], checked: Checked) -> Iterator[str]:
    kind = SegmentKind(told[0]["kind"])
    problem = _looks_wrong(place, file, kind, manifest)
    if problem:
        yield problem
        return
    checked.files += 1
    wanted = {(row["cluster"], row["epoch"], row["seq"], row["observed_at"]): row for row in told}
    try:
        found = _counts(place, file)
    except Unreadable as error:
        yield message_text(CollectionErrorCode.SEGMENT_NOT_WHOLE, file=file, fault=error)
        return
    checked.rows += sum(found.values())
    for identity in sorted(wanted.keys() | found.keys()):
        rows = wanted[identity]["rows"] if identity in wanted else 0
        if found.get(identity, 0) != rows:
            cluster, epoch, seq, _ = identity
            yield message_text(
                CollectionErrorCode.SEGMENT_ROWS_DIFFER,
                file=file,
                found=count(found.get(identity, 0), "row"),
                refresh=f"{epoch}.{seq} of {cluster}",
                told=count(rows, "row"),
            )


def _looks_wrong(place: Place, address: str, kind: SegmentKind, manifest: str = "") -> str:
    """What its end says of it; '' where that is fine."""
    try:
        footer = place.footer(address)
    except Unreadable as error:
        return message_text(CollectionErrorCode.SEGMENT_NOT_WHOLE, file=address, fault=error)
    if footer is None:
        return message_text(CollectionErrorCode.SEGMENT_NOT_THERE, manifest=manifest, file=address)
    version = footer.metadata.get(SCHEMA_KEY, "")
    if not version.isdecimal():
        return message_text(CollectionErrorCode.SEGMENT_WITHOUT_SCHEMA, file=address)
    if int(version) > SCHEMA_VERSION:
        return message_text(
            CollectionErrorCode.SEGMENT_FROM_THE_FUTURE, file=address, version=version, known=SCHEMA_VERSION
        )
    return _columns_differ(address, footer, kind)


def _columns_differ(address: str, footer: Footer, kind: SegmentKind) -> str:
    wanted = types_of(columns_of(kind))
    if dict(footer.columns) == wanted:
        return ""
    names = sorted(n for n in wanted.keys() | footer.columns.keys() if wanted.get(n) != footer.columns.get(n))
    return message_text(CollectionErrorCode.SEGMENT_COLUMNS_DIFFER, file=address, columns=", ".join(names))


def _rows(place: Place, address: str) -> list[_Told]:
    from pyarrow import parquet

    rows: list[_Told] = parquet.read_table(place.open(address)).to_pylist()
    return rows


def _counts(place: Place, address: str) -> dict[tuple[str, int, int, datetime], int]:
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
        raise Unreadable((str(error).splitlines() or ["it cannot be read"])[0].rstrip(".")) from error
    return found


def _named(row: _Told) -> str:
    return f"{row['kind']} {row['epoch']}.{row['seq']} of {row['cluster']}"
