"""What is said where facts cannot leave for the pipeline."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq
import pytest
from django.conf import settings as configured
from django.core.management import call_command
from django.db import transaction
from django.test import override_settings

from kafkadash.domain.segments import SegmentKind
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.models import SegmentOutbox, SegmentWriter
from kafkadash.observe.segments import encoding, flusher
from kafkadash.observe.segments.encoding import pack
from kafkadash.observe.segments.outbox import Told, store
from kafkadash.observe.segments.places import PlaceUnknown, place
from kafkadash.observe.segments.writing import Flush
from tests.observe.segments import test_check
from tests.observe.segments.test_check import file, rewritten
from tests.pipeline.made_segments import EPOCH, Shape, group_offsets, make
from tests.refusals.driving import Case, case, each, refused

pytestmark = pytest.mark.django_db


class Desk:
    """A writer of segments with something to write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.queue()

    @property
    def uri(self) -> str:
        return f"{self.folder.as_uri()}/segments"

    def queue(self) -> None:
        with transaction.atomic():
            store(Told("a", datetime.now(UTC), 5), [pack(SegmentKind.GROUP_OFFSET, [group_offsets(Shape(), 2)])])

    def flush(self, uri: str = "") -> str:
        done = flusher.flush(flusher.ensure_writer(), only_if_due=False, uri=uri)
        assert done is not None
        assert done.error == SegmentWriter.objects.get().last_error
        return done.error

    def in_the_manifest(self) -> str:
        (path,) = Path(self.folder, "segments/manifest").rglob("*.parquet")
        (row,) = pq.read_table(path).to_pylist()
        assert (row["rows"], row["file"]) == (0, "")
        return str(row["errors"])

    def disk_full(self) -> str:
        with mock.patch("os.fsync", side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))):
            return self.flush()

    def no_folder(self) -> str:
        (self.folder / "segments").write_text("a file")
        return self.flush()

    def of_another(self) -> str:
        with mock.patch("secrets.token_hex", return_value="another"):
            self.flush()
        self.queue()
        ids = list(SegmentOutbox.objects.values_list("pk", flat=True))
        (path,) = Path(self.folder, "segments/manifest").rglob("*.parquet")
        epoch, seq = (int(part) for part in path.stem.split("-"))
        flush = Flush(epoch, seq, datetime.fromtimestamp(path.stat().st_mtime, UTC), "mine")
        SegmentWriter.objects.update(
            flush_epoch=epoch, flush_seq=seq, flush_at=flush.at, flush_token="mine", flush_rows=ids
        )
        return self.flush()

    def too_much(self) -> str:
        with override_settings(SEGMENT_OUTBOX_BYTES=10):
            assert self.flush() == ""
        return self.in_the_manifest()

    def damaged(self) -> str:
        SegmentOutbox.objects.update(data=b"PAR1 nothing of it is left")
        assert self.flush() == ""
        return self.in_the_manifest()

    def without_pyarrow(self) -> str:
        with mock.patch.object(encoding, "find_spec", return_value=None):
            assert flusher.claim_due() == []
            return encoding.missing()


def checked(change: Callable[[Path], object]) -> Callable[[Desk], str]:
    """What is said of three flushes of segments that somebody changed."""

    def told(desk: Desk) -> str:
        folder = desk.folder / "made"
        make(folder, Shape(snapshots=3))
        change(folder)
        return test_check.checked(folder.as_uri())[2]

    return told


def cut(folder: Path) -> None:
    path = file(folder, "group_offset", 1)
    path.write_bytes(path.read_bytes()[:-9])


def copied(folder: Path) -> None:
    last = file(folder, "manifest", 2)
    shutil.copy(last, last.with_name(last.name.replace("3.parquet", "4.parquet")))


def unnamed(folder: Path) -> None:
    file(folder, "manifest", 2).unlink()
    os.utime(file(folder, "group_offset", 2), (0, 0))


def metadata(**texts: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = file(folder, "group_offset", 0)
        pq.write_table(pq.read_table(path).replace_schema_metadata(texts), path)

    return change


def another_writes(_: Desk) -> str:
    err = io.StringIO()
    with mock.patch.object(flusher, "flush", return_value=None), pytest.raises(SystemExit):
        call_command("segments", "flush", stderr=err)
    return err.getvalue()


FIRST, SECOND, THIRD = (f"2026-11-21/02/{EPOCH:012d}-{n:012d}.parquet" for n in (1, 2, 3))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    folder = tmp_path / "pipeline"
    folder.mkdir()
    with override_settings(PIPELINE_URI=folder.as_uri()):
        yield Desk(folder)


@each(
    case(CollectionErrorCode.FACTS_NOT_KEPT, lambda d: d.without_pyarrow()),
    case(CollectionErrorCode.DISK_FULL, lambda d: d.disk_full().replace(d.uri, "there"), place="there"),
    case(
        CollectionErrorCode.SEGMENTS_NOT_WRITTEN,
        lambda d: d.no_folder(),
        fault="Not a directory",
        seconds=configured.SEGMENT_FLUSH_SECONDS,
    ),
    case(CollectionErrorCode.ANOTHER_WRITES_HERE, lambda d: d.of_another()),
    case(CollectionErrorCode.FACTS_LOST, lambda d: d.too_much(), rows="120 rows"),
    case(CollectionErrorCode.FACTS_DAMAGED, lambda d: d.damaged(), rows="120 rows"),
    case(
        CollectionErrorCode.PLACE_UNKNOWN,
        lambda _: refused(PlaceUnknown, lambda: place("nonsense://x/y")),
        uri="nonsense://x/y",
    ),
    case(
        CollectionErrorCode.PLACE_UNKNOWN,
        lambda _: refused(PlaceUnknown, lambda: place("file://other-host/y")),
        fault="file: is this machine, not other-host",
    ),
    case(CollectionErrorCode.SEGMENT_NOT_WHOLE, checked(cut), file=f"group_offset/{SECOND}"),
    case(
        CollectionErrorCode.SEGMENT_FROM_THE_FUTURE,
        checked(metadata(**{"kafkadash.schema": "2"})),
        version=2,
        known=1,
        file=f"group_offset/{FIRST}",
    ),
    case(CollectionErrorCode.SEGMENT_WITHOUT_SCHEMA, checked(metadata(other="1")), file=f"group_offset/{FIRST}"),
    case(
        CollectionErrorCode.SEGMENT_COLUMNS_DIFFER,
        checked(lambda f: rewritten(file(f, "group_offset", 0), lambda table: table.drop_columns(["lag"]))),
        columns="lag",
    ),
    case(
        CollectionErrorCode.SEGMENT_NOT_THERE,
        checked(lambda f: file(f, "group_offset", 2).unlink()),
        manifest=f"manifest/{THIRD}",
        file=f"group_offset/{THIRD}",
    ),
    case(
        CollectionErrorCode.SEGMENT_ROWS_DIFFER,
        checked(lambda f: rewritten(file(f, "group_offset", 0), lambda table: table.slice(2))),
        found="118 rows",
        told="120 rows",
    ),
    case(CollectionErrorCode.SEGMENT_ORPHAN, checked(unnamed), file=f"group_offset/{THIRD}"),
    case(CollectionErrorCode.SNAPSHOT_TWICE, checked(copied)),
    case(CollectionErrorCode.FLUSH_MISNAMED, checked(copied), flush=f"{EPOCH}.3"),
    case(
        CollectionErrorCode.SNAPSHOTS_MISSING,
        checked(lambda f: file(f, "manifest", 1).unlink()),
        missing="1 refresh",
        manifest=f"manifest/{THIRD}",
    ),
    case(
        CollectionErrorCode.FLUSHES_MISSING,
        checked(lambda f: file(f, "manifest", 1).unlink()),
        missing="1 flush is missing",
    ),
    case(CollectionErrorCode.NO_SEGMENTS, lambda d: test_check.checked(d.folder.as_uri())[2]),
    case(CollectionErrorCode.ANOTHER_WRITES_NOW, another_writes),
)
def test_of_segments(one: Case, desk: Desk) -> None:
    one.check(desk)
