"""What is said where facts cannot leave for the pipeline."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq
import pytest
from django.conf import settings as configured
from django.db import transaction
from django.test import override_settings

from kafkadash.domain.refusals import segments
from kafkadash.domain.segments import SegmentKind
from kafkadash.observe.models import SegmentOutbox, SegmentWriter
from kafkadash.observe.segments import encoding, flusher
from kafkadash.observe.segments.encoding import pack
from kafkadash.observe.segments.outbox import Told, store
from kafkadash.observe.segments.places import PlaceUnknown, place
from kafkadash.observe.segments.writing import Flush
from tests.pipeline.made_segments import Shape, group_offsets
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


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    folder = tmp_path / "pipeline"
    folder.mkdir()
    with override_settings(PIPELINE_URI=folder.as_uri()):
        yield Desk(folder)


@each(
    case(segments.NO_PYARROW, lambda d: d.without_pyarrow()),
    case(segments.DISK_FULL, lambda d: d.disk_full().replace(d.uri, "there"), place="there"),
    case(
        segments.SEGMENTS_NOT_WRITTEN,
        lambda d: d.no_folder(),
        fault="Not a directory",
        seconds=configured.SEGMENT_FLUSH_SECONDS,
    ),
    case(segments.ANOTHER_WRITES_HERE, lambda d: d.of_another()),
    case(segments.FACTS_LOST, lambda d: d.too_much(), rows="120 rows"),
    case(segments.FACTS_DAMAGED, lambda d: d.damaged(), rows="120 rows"),
    case(
        segments.PLACE_UNKNOWN,
        lambda _: refused(PlaceUnknown, lambda: place("nonsense://x/y")),
        uri="nonsense://x/y",
    ),
    case(
        segments.PLACE_UNKNOWN,
        lambda _: refused(PlaceUnknown, lambda: place("file://other-host/y")),
        fault="file: is this machine, not other-host",
    ),
)
def test_of_segments(one: Case, desk: Desk) -> None:
    one.check(desk)
