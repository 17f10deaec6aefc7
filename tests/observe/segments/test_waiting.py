"""While segments cannot be written: what waits, what is said, what is dropped, and how it goes on afterwards."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

import pytest
from django.utils import timezone
from kombu.exceptions import OperationalError
from pytest_django import Settings

from kafkadash.observe import tasks
from kafkadash.observe.models import SegmentOutbox, SegmentWriter
from kafkadash.observe.segments import flusher
from kafkadash.observe.segments.status import standing
from kafkadash.ops.tick import tick
from tests.observe.segments.conftest import Rows
from tests.observe.segments.killing import Flushing

pytestmark = pytest.mark.django_db
Flush = Callable[[], flusher.Flushed]


@pytest.fixture
def flushing(folder: Path) -> Flushing:
    return Flushing(folder.parent.parent)


def full() -> mock._patch[mock.MagicMock]:
    return mock.patch("os.fsync", side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


def test_the_disk_is_full__nothing_half_is_left_and_it_goes_on_with_the_same_flush(
    flushing: Flushing, flush: Flush
) -> None:
    flushing.queue()
    with full():
        done = flush()
        assert done.flushes == 0
        assert "the disk is full" in done.error
        flushing.queue()
        flush()
    now = standing()
    assert (now.error, now.failures, now.waiting_snapshots, now.flushed_at) == (done.error, 2, 20, None)
    assert now.waiting_bytes > 1000
    assert now.waiting_since is not None
    assert not list(flushing.segments.rglob("*.parquet"))
    assert flush() == flusher.Flushed(2, 20)
    now = standing()
    assert (now.error, now.failures, now.waiting_snapshots, now.waiting_bytes, now.waiting_since) == ("", 0, 0, 0, None)
    assert now.flushed_at is not None
    assert flushing.problems() == []


def test_too_much_waits__the_oldest_rows_go_and_the_manifest_says_so(
    flushing: Flushing, flush: Flush, rows_of: Rows, settings: Settings
) -> None:
    flushing.queue(3, clusters=["a"])
    queued = list(SegmentOutbox.objects.order_by("pk").values_list("size", "rows", "kind", "seq"))
    settings.SEGMENT_OUTBOX_BYTES = sum(size for size, *_ in queued[7:])
    flush()
    told = {(row["kind"], row["seq"]): row for row in rows_of("manifest")}
    assert len(told) == 15, "no number is missing"
    lost = {key for key, row in told.items() if row["errors"]}
    assert lost == {(kind, seq) for _, _, kind, seq in queued[:7]}
    assert {(told[key]["rows"], told[key]["file"]) for key in lost} == {(0, "")}
    assert all("were dropped: more than" in told[key]["errors"] for key in lost)
    now = standing()
    assert (now.lost_snapshots, now.lost_rows) == (7, sum(rows for _, rows, *_ in queued[:7]))
    assert now.lost_at is not None
    assert not now.error


def test_what_is_bound_to_a_flush__is_not_dropped(flushing: Flushing, flush: Flush, settings: Settings) -> None:
    flushing.queue()
    with full():
        flush()
        settings.SEGMENT_OUTBOX_BYTES = 0
        flush()
    assert standing().lost_snapshots == 0
    settings.SEGMENT_OUTBOX_BYTES = 10**9
    flush()
    assert flushing.problems() == []


def test_snapshots_that_lost_their_rows__go_when_segments_of_their_age_would(
    flushing: Flushing, flush: Flush, settings: Settings
) -> None:
    flushing.queue()
    with full():
        flush()
        flushing.queue(clusters=["c"])
        settings.SEGMENT_OUTBOX_BYTES = 0
        flush()
        assert SegmentOutbox.objects.filter(cluster="c").count() == 5
        week = timedelta(hours=settings.KEEP_SEGMENTS_HOURS, minutes=1)
        SegmentOutbox.objects.update(queued_at=timezone.now() - week)
        flush()
    assert SegmentOutbox.objects.filter(cluster="c").count() == 0
    assert SegmentOutbox.objects.filter(cluster="a").count() == 5, "those are of the flush under way"


def test_a_database_that_was_restored__goes_on_beside_what_is_there(
    flushing: Flushing, flush: Flush, rows_of: Rows
) -> None:
    """Its numbers come again; what is in files is not touched."""
    flushing.queue()
    ensured = flusher.ensure_writer()
    SegmentWriter.objects.filter(pk=ensured).update(epoch=1000)
    flush()
    before = {path: path.read_bytes() for path in flushing.segments.rglob("*.parquet")}
    flushing.queue(clusters=["c"])
    SegmentWriter.objects.update(epoch=1000, seq=0)
    assert "another database" in flush().error
    assert flush().error == ""
    assert {path: path.read_bytes() for path in before} == before
    assert len(rows_of("manifest")) == 15
    assert SegmentWriter.objects.get().epoch > 1_700_000_000


def test_tick_hands_it_out__once_each_interval(
    flushing: Flushing, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, int]] = []
    for task in (tasks.write_segments, tasks.ingest):
        monkeypatch.setattr(task, "apply_async", lambda args, task=task, **_: sent.append((task.name, *args)))
    monkeypatch.setattr(tasks, "close_old_connections", lambda: None)
    flushing.queue()
    tick()
    tick()
    ((_, writer),) = once = _to_writers(sent)
    tasks.write_segments(writer)
    assert flushing.problems() == []
    tick()
    assert _to_writers(sent) == once, "its next turn is to come"
    SegmentWriter.objects.update(next_at=timezone.now() - timedelta(seconds=1))
    tick()
    assert _to_writers(sent) == [*once, *once]


def _to_writers(sent: list[tuple[str, int]]) -> list[tuple[str, int]]:
    return [each for each in sent if each[0] == "write_segments"]


def test_the_queue_is_away__the_writer_is_handed_out_again(flushing: Flushing, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise OperationalError("away")

    monkeypatch.setattr(tasks.write_segments, "apply_async", away)
    tick()
    assert SegmentWriter.objects.get().dispatched_until is None


def test_the_time_of_a_flush__is_in_its_addresses_and_that_of_its_end_in_its_manifest(
    flushing: Flushing, flush: Flush, rows_of: Rows
) -> None:
    flushing.queue()
    with full():
        flush()
    bound = SegmentWriter.objects.get().flush_at
    assert bound is not None
    flush()
    (at,) = {row["committed_at"] for row in rows_of("manifest")}
    assert bound < at <= datetime.now(UTC) + timedelta(seconds=5)
    (manifest,) = (flushing.segments / "manifest").rglob("*.parquet")
    assert manifest.relative_to(flushing.segments / "manifest").as_posix().startswith(f"{bound:%Y-%m-%d/%H}/")
