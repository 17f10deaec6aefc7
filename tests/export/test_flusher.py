"""From the outbox into files: whole, once, with a manifest that says what is there and what is missing.

While segments cannot be written: what waits, what is said, what is dropped, and how it goes on afterwards.
"""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
import pytest
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError
from pytest_django import Settings

from kafkadash.accounts.errors import with_code
from kafkadash.core import leases as lease
from kafkadash.core.messages import as_message, coded
from kafkadash.export import flusher, tasks
from kafkadash.export.encoding import BadFacts, PackedFacts, pack_rows
from kafkadash.export.errors import ExportErrorCode
from kafkadash.export.models import SegmentOutbox, SegmentWriter
from kafkadash.export.outbox import OutboxReport, read_standing, store_facts
from kafkadash.export.schema import COLUMNS, IDENTITY, SCHEMA_KEY, SegmentKind
from kafkadash.history.tasks import ingest
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.ops.tick import tick
from tests.export.conftest import Rows
from tests.export.flushing import Flushing
from tests.pipeline.made_segments import Shape, group_offsets

pytestmark = pytest.mark.django_db

Flusher = Callable[[], flusher.FlushResult]
AT = datetime(2026, 11, 21, 2, 3, 4, 567_891, tzinfo=UTC)


BROKER_3 = coded(CollectionErrorCode.BROKER_NOT_READ, broker=3, why="no answer")


def queue(*packs: PackedFacts, cluster: str = "a", at: datetime = AT, **told: Any) -> None:
    with transaction.atomic():
        store_facts(OutboxReport(cluster, at, 42, **told), packs)


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def offsets(groups: int = 2, step: int = 1) -> PackedFacts:
    return pack_rows(SegmentKind.GROUP_OFFSET, [group_offsets(Shape(groups=groups), step)])


def test_a_hundred_thousand_rows__come_back_as_they_were(folder: Path, flush: Flusher, rows_of: Rows) -> None:
    columns = group_offsets(Shape(groups=5000), 3)
    queue(pack_rows(SegmentKind.GROUP_OFFSET, [columns]))
    assert flush() == flusher.FlushResult(1, 1)
    (path,) = (folder / "group_offset").rglob("*.parquet")
    table = pq.read_table(path)
    assert table.num_rows == 100_000
    assert table.column_names == [column.name for column in COLUMNS[SegmentKind.GROUP_OFFSET]]
    for name in ("group", "topic", "partition", "committed", "log_end", "lag", "previous_committed", "previous_lag"):
        assert table[name].to_pylist() == columns[name], name
    assert set(table["observed_at"].to_pylist()) == {AT}
    assert set(table["schema"].to_pylist()) == {1}
    assert pq.read_metadata(path).metadata[SCHEMA_KEY.encode()] == b"1"
    (told,) = rows_of("manifest")
    assert (told["rows"], told["file"]) == (100_000, path.relative_to(folder).as_posix())
    assert not SegmentOutbox.objects.exists()


def test_the_manifest__tells_missing_from_nothing_and_is_the_last(folder: Path, flush: Flusher, rows_of: Rows) -> None:
    queue(offsets(), cluster="a", not_answered=[3], errors=[BROKER_3])
    queue(PackedFacts(SegmentKind.GROUP_OFFSET, 0, b""), cluster="b")
    queue(PackedFacts(SegmentKind.QUORUM, 0, b""), cluster="b", errors=[as_message("It is down."), BROKER_3])
    flush()
    told = {(row["cluster"], row["kind"]): row for row in rows_of("manifest")}
    read = {key: (row["rows"], row["not_answered"], json.loads(row["errors"] or "[]")) for key, row in told.items()}
    assert read == {
        ("a", "group_offset"): (40, [3], [BROKER_3.as_json()]),
        ("b", "group_offset"): (0, [], []),
        ("b", "quorum"): (0, [], [as_message("It is down.").as_json(), BROKER_3.as_json()]),
    }
    assert [bool(row["file"]) for row in told.values()] == [True, False, False]
    kinds = {name.split("/")[0]: (folder / name).stat().st_mtime_ns for name in files(folder)}
    assert kinds.keys() == {"group_offset", "manifest"}
    assert kinds["manifest"] > kinds["group_offset"]


def test_numbers__are_consecutive_per_cluster_and_kind_and_per_flush(
    folder: Path, flush: Flusher, rows_of: Rows
) -> None:
    for _ in range(3):
        queue(offsets(), cluster="a")
        queue(offsets(), cluster="b")
        flush()
    told = rows_of("manifest")
    assert [(row["cluster"], row["seq"], row["flush_seq"]) for row in told] == [
        (cluster, number, number) for number in (1, 2, 3) for cluster in "ab"
    ]
    rows = rows_of("group_offset")
    assert len({(row["cluster"], row["epoch"], row["seq"], row["group"], row["partition"]) for row in rows}) == 240
    writer = SegmentWriter.objects.get()
    assert writer.flushed_at is not None
    assert (writer.seq, writer.flush_epoch, writer.flush_rows) == (3, None, [])


def test_the_clock_goes_back__addresses_go_on(folder: Path, flush: Flusher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers keep the last address and look no further back."""
    now = lease.RowLease.now
    made: list[str] = []
    for hours in (0, -2, -2, -1):
        monkeypatch.setattr(lease.RowLease, "now", lambda self, hours=hours: now(self) + timedelta(hours=hours))
        queue(offsets())
        flush()
        made += [name for name in files(folder) if name.startswith("manifest/") and name not in made]
    assert len(made) == 4
    assert made == sorted(made)


def test_nothing_waits__nothing_is_written(folder: Path, flush: Flusher, rows_of: Rows) -> None:
    assert flush() == flusher.FlushResult(0, 0)
    assert not folder.exists()


def test_a_transaction_that_is_taken_back__leaves_no_facts_and_no_gap(
    folder: Path, flush: Flusher, rows_of: Rows
) -> None:
    with transaction.atomic():
        store_facts(OutboxReport("a", AT, 1), [offsets()])
        transaction.set_rollback(True)
    queue(offsets())
    flush()
    assert [row["seq"] for row in rows_of("manifest")] == [1]


def test_more_than_one_flush_may_hold__is_written_in_several(
    flush: Flusher, rows_of: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = offsets()
    monkeypatch.setattr(flusher, "MOST_BYTES", 2 * len(one.data))
    for number in range(5):
        queue(one, at=AT + timedelta(seconds=number))
    assert flush() == flusher.FlushResult(3, 5)
    assert [(row["flush_seq"], row["seq"]) for row in rows_of("manifest")] == [
        (1, 1), (1, 2), (2, 3), (2, 4), (3, 5),
    ]  # fmt: skip


def broken() -> Iterator[tuple[str, dict[str, Any]]]:
    good = dict(group_offsets(Shape(groups=1), 1))
    yield "no column nonsense", {**good, "nonsense": 1}
    yield "no column seq", {**good, "seq": 1}
    yield "differ in length", {**good, "partition": [1, 2]}
    yield "group_offset.group is not known", {name: values for name, values in good.items() if name != "group"}
    yield "group_offset.partition", {**good, "partition": ["one"] * 20}
    yield "group_offset.partition", {**good, "partition": [2**40] * 20}
    yield "no column says how many", {"verdict": "ok"}


@pytest.mark.parametrize(("why", "columns"), broken())
def test_columns_that_are_not_those_of_the_kind__are_refused(why: str, columns: dict[str, Any]) -> None:
    with pytest.raises(BadFacts, match=why):
        pack_rows(SegmentKind.GROUP_OFFSET, [columns])


def test_every_kind_but_the_manifest_begins_with_the_identity() -> None:
    assert all(columns[: len(IDENTITY)] == IDENTITY for columns in COLUMNS.values())


Flush = Callable[[], flusher.FlushResult]


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
        assert done.error is not None
        assert done.error.code is ExportErrorCode.DISK_FULL
        flushing.queue()
        flush()
    now = read_standing()
    assert (now.error, now.failures, now.waiting_snapshots, now.flushed_at) == (done.error, 2, 24, None)
    assert now.waiting_bytes > 1000
    assert now.waiting_since is not None
    assert not list(flushing.segments.rglob("*.parquet"))
    assert flush() == flusher.FlushResult(2, 24)
    now = read_standing()
    assert (now.error, now.failures, now.waiting_snapshots, now.waiting_bytes, now.waiting_since) == (
        None,
        0,
        0,
        0,
        None,
    )
    assert now.flushed_at is not None
    assert flushing.problems() == []


def test_the_folder_is_a_file__nothing_is_written_and_it_is_said(
    flushing: Flushing, flush: Flush, settings: Settings
) -> None:
    flushing.queue()
    flushing.segments.parent.mkdir()
    flushing.segments.write_text("a file")
    place, seconds = f"{settings.PIPELINE_URI}/segments", settings.SEGMENT_FLUSH_SECONDS
    assert flush().error == coded(
        ExportErrorCode.SEGMENTS_NOT_WRITTEN, place=place, fault="Not a directory", seconds=seconds
    )


def test_rows_that_wait_and_cannot_be_read__are_told_in_the_manifest(
    flushing: Flushing, flush: Flush, rows_of: Rows
) -> None:
    flushing.queue(clusters=["a"])
    SegmentOutbox.objects.update(data=b"PAR1 nothing of it is left")
    assert flush().error is None
    told = [(row["rows"], row["file"], json.loads(row["errors"] or "[]")) for row in rows_of("manifest")]
    assert (0, "", [coded(ExportErrorCode.FACTS_DAMAGED, rows="9 rows").as_json()]) in told


def test_another_process_writes__the_command_says_so() -> None:
    err = io.StringIO()
    with mock.patch.object(flusher, "flush", return_value=None), pytest.raises(SystemExit):
        call_command("segments", "flush", stderr=err)
    assert err.getvalue().strip() == with_code(coded(ExportErrorCode.ANOTHER_WRITES_NOW))


def test_too_much_waits__the_oldest_rows_go_and_the_manifest_says_so(
    flushing: Flushing, flush: Flush, rows_of: Rows, settings: Settings
) -> None:
    flushing.queue(3, clusters=["a"])
    queued = list(SegmentOutbox.objects.order_by("pk").values_list("size", "rows", "kind", "seq"))
    settings.SEGMENT_OUTBOX_BYTES = sum(size for size, *_ in queued[7:])
    flush()
    told = {(row["kind"], row["seq"]): row for row in rows_of("manifest")}
    assert len(told) == 18, "no number is missing"
    lost = {key for key, row in told.items() if row["errors"]}
    assert lost == {(kind, seq) for _, _, kind, seq in queued[:7]}
    assert {(told[key]["rows"], told[key]["file"]) for key in lost} == {(0, "")}
    errors = [json.loads(told[key]["errors"]) for key in lost]
    assert {each["code"] for several in errors for each in several} == {ExportErrorCode.FACTS_LOST}
    now = read_standing()
    assert (now.lost_snapshots, now.lost_rows) == (7, sum(rows for _, rows, *_ in queued[:7]))
    assert now.lost_at is not None
    assert not now.error


def test_what_is_bound_to_a_flush__is_not_dropped(flushing: Flushing, flush: Flush, settings: Settings) -> None:
    flushing.queue()
    with full():
        flush()
        settings.SEGMENT_OUTBOX_BYTES = 0
        flush()
    assert read_standing().lost_snapshots == 0
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
        assert SegmentOutbox.objects.filter(cluster="c").count() == 6
        week = timedelta(hours=settings.KEEP_SEGMENTS_HOURS, minutes=1)
        SegmentOutbox.objects.update(queued_at=timezone.now() - week)
        flush()
    assert SegmentOutbox.objects.filter(cluster="c").count() == 0
    assert SegmentOutbox.objects.filter(cluster="a").count() == 6, "those are of the flush under way"


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
    first = flush().error
    assert first is not None
    assert first.code is ExportErrorCode.ANOTHER_WRITES_HERE
    assert flush().error is None
    assert {path: path.read_bytes() for path in before} == before
    assert len(rows_of("manifest")) == 18
    assert SegmentWriter.objects.get().epoch > 1_700_000_000


def test_tick_hands_it_out__once_each_interval(
    flushing: Flushing, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, int]] = []
    for task in (tasks.write_segments, ingest):
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
