"""``manage.py segments check``: whole segments pass, and everything that is wrong is named. No database is needed.

Folders, HDFS and object stores: the same addresses, nothing half, nothing left; and what is past its keep goes.

Flushers that are killed, that come two at once, and that sleep past their lease: each row is in a file once.
"""

from __future__ import annotations

import io
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now
from pyarrow.fs import LocalFileSystem
from pytest_django import Settings

from kafkadash.core.fail_points import FailFile
from kafkadash.export import files as forgetting
from kafkadash.export import flusher
from kafkadash.export import flusher as fail_points
from kafkadash.export.encoding import UnreadableFacts
from kafkadash.export.errors import ExportErrorCode as Code
from kafkadash.export.files import CheckedFiles, check_files, delete_old_files
from kafkadash.export.flusher import FlushSteps, write_flush
from kafkadash.export.models import SegmentWriter
from kafkadash.export.places import LocalFolder, PlaceUnknown, RemoteStore, StoragePlace, open_place
from kafkadash.export.schema import SCHEMA_VERSION, SegmentKind, file_address
from tests.export.flushing import Flushing
from tests.pipeline.made_segments import EPOCH, Shape, flushes, make

SHAPE = Shape(clusters=2, groups=6, partitions=40, snapshots=4)


@pytest.fixture
def segments_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "segments"
    make(folder, SHAPE)
    return folder


def checked(uri: str | None = None) -> tuple[int, str, str]:
    """Exit code, what is printed, what is said to be wrong."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("segments", "check", *([uri] if uri else []), stdout=out, stderr=err)
    except CommandError as error:
        return error.returncode, out.getvalue(), str(error)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def faults(folder: Path) -> list[tuple[object, dict[str, Any]]]:
    """Return code and parameters of everything that is wrong; the command ends with 1 and tells each of them."""
    found = list(check_files(open_place(folder.as_uri()), datetime.now(UTC), CheckedFiles()))
    code, _, wrong = checked(folder.as_uri())
    assert (code, wrong.splitlines()) == (1, [str(each) for each in found])
    return [(each.code, dict(each.params)) for each in found]


def file(folder: Path, kind: str, number: int) -> Path:
    return sorted((folder / kind).rglob("*.parquet"))[number]


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    table = pq.read_table(path)
    changed = change(table)
    metadata = {**(table.schema.metadata or {}), **(changed.schema.metadata or {})}
    pq.write_table(changed.replace_schema_metadata(metadata), path)


def test_whole_segments__pass_with_their_figures(segments_folder: Path, settings: Settings) -> None:
    settings.PIPELINE_URI = segments_folder.parent.as_uri()
    code, said, wrong = checked()
    assert (code, wrong) == (0, "")
    rows = 8 * SHAPE.pairs
    for figure in ("4 flushes", "8 refreshes", "4 files", f"{rows:,} rows"):
        assert figure in said
    whole = CheckedFiles()
    assert list(check_files(open_place(segments_folder.as_uri()), datetime.now(UTC), whole)) == []
    assert whole == CheckedFiles(flushes=4, snapshots=8, files=4, rows=rows, missing=0)


def test_the_same_shape__is_the_same_bytes(segments_folder: Path, tmp_path: Path) -> None:
    make(tmp_path / "again", SHAPE)
    for path in segments_folder.rglob("*.parquet"):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(segments_folder)).read_bytes()


def test_a_call_that_goes_on__follows_the_one_before(segments_folder: Path) -> None:
    from datetime import timedelta

    later = SHAPE.begin + timedelta(seconds=SHAPE.interval_s * 4)
    make(segments_folder, Shape(clusters=2, groups=6, partitions=40, snapshots=2, first_seq=5, begin=later))
    assert checked(str(segments_folder))[0] == 0


def test_a_truncated_file__is_named_and_the_rest_is_read(segments_folder: Path) -> None:
    path = file(segments_folder, "group_offset", 1)
    path.write_bytes(path.read_bytes()[:-100])
    code, said, wrong = checked(segments_folder.as_uri())
    assert code == 1
    assert wrong.count("\n") == 1
    assert f"{path.relative_to(segments_folder)} is incomplete: " in wrong
    assert "4 flushes" in said
    assert "3 files" in said
    assert "1 problem" in said


def test_a_file_that_is_damaged_in_its_middle__is_named(segments_folder: Path) -> None:
    path = file(segments_folder, "group_offset", 0)
    data = bytearray(path.read_bytes())
    data[40:400] = bytes(360)
    path.write_bytes(data)
    code, _, wrong = checked(segments_folder.as_uri())
    assert code == 1
    assert f"{path.relative_to(segments_folder)} is incomplete: " in wrong


def test_a_truncated_manifest__is_named_and_so_is_what_it_held(segments_folder: Path) -> None:
    path = file(segments_folder, "manifest", 1)
    path.write_bytes(path.read_bytes()[:50])
    code, _, wrong = checked(segments_folder.as_uri())
    assert code == 1
    assert f"{path.relative_to(segments_folder)} is incomplete" in wrong
    assert "1 flush is missing" not in wrong.splitlines()[0]


def test_a_schema_from_the_future__is_named(segments_folder: Path) -> None:
    path = file(segments_folder, "group_offset", 2)
    rewritten(path, lambda table: table.replace_schema_metadata({"kafkadash.schema": "7"}))
    told = {"file": path.relative_to(segments_folder).as_posix(), "version": "7", "known": SCHEMA_VERSION}
    assert faults(segments_folder) == [(Code.SEGMENT_FROM_THE_FUTURE, told)]


def test_columns_of_another_type__are_named(segments_folder: Path) -> None:
    rewritten(file(segments_folder, "group_offset", 0), lambda table: table.drop_columns(["lag"]))
    rewritten(
        file(segments_folder, "group_offset", 1),
        lambda table: table.set_column(
            table.column_names.index("partition"), "partition", table["partition"].cast("int64")
        ),
    )
    found = faults(segments_folder)
    assert {code for code, _ in found} == {Code.SEGMENT_COLUMNS_DIFFER}
    assert [params["columns"] for _, params in found] == ["lag", "partition"]


def test_a_file_without_a_schema_of_its_own__is_named(segments_folder: Path) -> None:
    path = file(segments_folder, "group_offset", 0)
    pq.write_table(pq.read_table(path).replace_schema_metadata({"other": "1"}), path)
    assert faults(segments_folder) == [(Code.SEGMENT_WITHOUT_SCHEMA, {"file": str(path.relative_to(segments_folder))})]


def test_rows_that_are_missing_or_too_many__are_told_with_their_refresh(segments_folder: Path) -> None:
    rewritten(file(segments_folder, "group_offset", 0), lambda table: table.slice(1))
    rewritten(file(segments_folder, "group_offset", 1), lambda table: pa.concat_tables([table, table.slice(0, 1)]))
    found = faults(segments_folder)
    assert {code for code, _ in found} == {Code.SEGMENT_ROWS_DIFFER}
    assert [(params["refresh"], params["found"], params["told"]) for _, params in found] == [
        (f"{EPOCH}.1 of cluster-0", "239 rows", "240 rows"),
        (f"{EPOCH}.2 of cluster-0", "241 rows", "240 rows"),
    ]


def test_a_file_that_is_gone_and_one_that_nothing_names__are_told(segments_folder: Path) -> None:
    import os

    path = file(segments_folder, "group_offset", 3)
    orphan = path.with_name("000000000009-000000000009.parquet")
    path.rename(orphan)
    os.utime(orphan, (0, 0))
    (path.parent / "_unfinished.parquet").write_bytes(b"half")
    assert [(code, params["file"]) for code, params in faults(segments_folder)] == [
        (Code.SEGMENT_NOT_THERE, path.relative_to(segments_folder).as_posix()),
        (Code.SEGMENT_ORPHAN, orphan.relative_to(segments_folder).as_posix()),
    ]


def test_a_file_of_a_flush_that_is_under_way__is_no_orphan(segments_folder: Path) -> None:
    shutil.copy(
        file(segments_folder, "group_offset", 3),
        segments_folder / "group_offset/2026-11-21/02/000000000009-000000000009.parquet",
    )
    assert checked(segments_folder.as_uri())[0] == 0


def test_a_manifest_that_is_gone__leaves_gaps_that_are_told(segments_folder: Path) -> None:
    file(segments_folder, "manifest", 1).unlink()
    found = faults(segments_folder)
    assert [params["manifest"].endswith("-000000000003.parquet") for _, params in found] == [True] * 3
    assert [(code, params.get("refresh")) for code, params in found] == [
        (Code.FLUSHES_MISSING, None),
        (Code.SNAPSHOTS_MISSING, f"group_offset {EPOCH}.3 of cluster-0"),
        (Code.SNAPSHOTS_MISSING, f"group_offset {EPOCH}.3 of cluster-1"),
    ]


def test_a_copied_manifest__has_refreshes_twice(segments_folder: Path) -> None:
    last = file(segments_folder, "manifest", 3)
    shutil.copy(last, last.with_name(last.name.replace("4.parquet", "5.parquet")))
    found = faults(segments_folder)
    assert [params["flush"] for code, params in found if code == Code.FLUSH_MISNAMED] == [f"{EPOCH}.4"]
    assert [params["refresh"] for code, params in found if code == Code.SNAPSHOT_TWICE] == [
        f"group_offset {EPOCH}.4 of cluster-0",
        f"group_offset {EPOCH}.4 of cluster-1",
    ]


@pytest.mark.parametrize("uri", ["nonsense://x/y", "file://elsewhere/x", "s3a://"])
def test_a_uri_that_is_no_place__is_bad_input(uri: str) -> None:
    code, _, wrong = checked(uri)
    assert code == 2
    assert uri in wrong
    with pytest.raises(PlaceUnknown) as caught:
        open_place(uri)
    assert caught.value.code == Code.PLACE_UNKNOWN


def test_a_folder_without_segments__is_bad_input(tmp_path: Path) -> None:
    assert checked(str(tmp_path / "nowhere"))[0] == 2
    assert checked(tmp_path.as_uri())[0] == 2


NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


def nothing() -> None:
    pass


def text(out: IO[bytes]) -> None:
    out.write(b"some bytes")


@pytest.fixture(params=["folder", "object store", "hdfs"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> StoragePlace:
    """The two others through PyArrow's file systems, which are told to behave as they do."""
    if request.param == "folder":
        return LocalFolder(tmp_path.as_uri(), tmp_path)
    return RemoteStore(tmp_path.as_uri(), LocalFileSystem(), str(tmp_path), renames=request.param == "hdfs")


@pytest.fixture
def made(where: StoragePlace) -> StoragePlace:
    """Like an object store, a place that makes folders as files need them."""
    if isinstance(where, RemoteStore) and not where._renames:
        put = where._put

        def makes_folders(address: str, buffer: io.BytesIO) -> None:
            where._files.create_dir(where._path(address.rsplit("/", 1)[0]))
            put(address, buffer)

        where._put = makes_folders  # type: ignore[method-assign]
    return where


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_segments__are_whole_everywhere_and_written_once(made: StoragePlace, tmp_path: Path) -> None:
    each = list(flushes(Shape(clusters=2, snapshots=3)))
    for flush, snapshots in each:
        write_flush(made, flush, snapshots, FlushSteps())
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in names(tmp_path)}
    for flush, snapshots in each:
        write_flush(made, flush, snapshots, FlushSteps())
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in names(tmp_path)} == before
    assert len(before) == 6
    checked = CheckedFiles()
    assert list(check_files(made, NOW, checked)) == []
    assert (checked.flushes, checked.snapshots, checked.rows) == (3, 6, 6 * 120)


def test_a_file_that_is_not_whole__is_written_again(made: StoragePlace, tmp_path: Path) -> None:
    ((flush, snapshots),) = flushes(Shape(snapshots=1))
    write_flush(made, flush, snapshots, FlushSteps())
    path = tmp_path / flush.address(SegmentKind.GROUP_OFFSET)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UnreadableFacts):
        made.footer(flush.address(SegmentKind.GROUP_OFFSET))
    write_flush(made, flush, snapshots, FlushSteps())
    assert list(check_files(made, NOW, CheckedFiles())) == []


def test_who_may_not_show_it__leaves_nothing(made: StoragePlace, tmp_path: Path) -> None:
    def not_any_more() -> None:
        raise PermissionError("another one took over")

    with pytest.raises(PermissionError):
        made.write("quorum/2026-11-21/02/1-1.parquet", 7, text, not_any_more)
    assert names(tmp_path) == []


def test_what_another_left_half_written__is_taken_away_first(tmp_path: Path) -> None:
    for where in (LocalFolder("", tmp_path), RemoteStore("", LocalFileSystem(), str(tmp_path), renames=True)):
        folder = tmp_path / "quorum/2026-11-21/02"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "_1-1.5.parquet").write_bytes(b"half")
        (folder / "_1-2.5.parquet").write_bytes(b"of another flush")
        where.write("quorum/2026-11-21/02/1-1.parquet", 6, text, nothing)
        assert names(folder) == ["1-1.parquet", "_1-2.5.parquet"]


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may become larger than this: as on a disk that is full, a write fails in the middle."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, before)


def test_a_write_that_fails_in_the_middle__leaves_nothing_half(tmp_path: Path, small_files: None) -> None:
    ((flush, snapshots),) = flushes(Shape(groups=600, partitions=40, snapshots=1))
    with pytest.raises(OSError, match="File too large"):
        write_flush(LocalFolder("", tmp_path), flush, snapshots, FlushSteps())
    assert names(tmp_path) == []


def test_past_their_keep__files_and_folders_go_and_nothing_else(
    made: StoragePlace, tmp_path: Path, settings: Settings
) -> None:
    settings.KEEP_SEGMENTS_HOURS = 48
    kept: list[str] = []
    over: list[str] = []
    for hours in (0, 1, 24, 47, 48, 49, 50, 72, 200):
        for kind in (SegmentKind.REPLICA, SegmentKind.MANIFEST):
            name = file_address(kind, NOW - timedelta(hours=hours), 7, 1000 - hours)
            made.write(name, 1, text, nothing)
            (over if hours > 48 else kept).append(name)
    (tmp_path / "replica" / "somebody's notes").mkdir()
    assert delete_old_files(made, NOW) == len(over)
    assert names(tmp_path) == sorted(kept)
    folders = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*")}
    assert folders == {name.rsplit("/", 2)[0] for name in kept} | {"replica/somebody's notes"}
    assert delete_old_files(made, NOW) == 0


def test_a_round__deletes_only_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = LocalFolder("", tmp_path)
    for number in range(5):
        where.write(file_address(SegmentKind.REPLICA, NOW - timedelta(days=30), 7, number), 1, text, nothing)
    monkeypatch.setattr(forgetting, "MOST", 3)
    assert [delete_old_files(where, NOW) for _ in range(3)] == [3, 2, 0]
    assert list((tmp_path / "replica").iterdir()) == []


def test_the_cost_of_a_round__does_not_grow_with_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = LocalFolder("", tmp_path)
    for hours in range(4, 160):
        where.write(file_address(SegmentKind.REPLICA, NOW - timedelta(hours=hours), 7, hours), 1, text, nothing)
    listed: list[str] = []

    def counted(ask: Callable[[str], object], folder: str) -> object:
        listed.append(folder)
        return ask(folder)

    for name in ("folders", "files"):
        monkeypatch.setattr(where, name, partial(counted, getattr(where, name)))
    delete_old_files(where, NOW)
    assert len(listed) <= 40


def test_what_a_killed_writer_left__goes_after_an_hour(tmp_path: Path) -> None:
    folder = tmp_path / "manifest/2026-11-21/11"
    folder.mkdir(parents=True)
    for name, age in (("_old.1.parquet", timedelta(minutes=65)), ("_new.1.parquet", timedelta(minutes=40))):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, ((NOW - age).timestamp(),) * 2)
    assert delete_old_files(LocalFolder("", tmp_path), NOW) == 1
    assert names(folder) == ["_new.1.parquet"]


def test_a_place_by_its_uri(tmp_path: Path) -> None:
    named = tmp_path / "with a blank and %"
    where = open_place(named.as_uri())
    where.write("a/b.parquet", 1, text, nothing)
    assert (named / "a/b.parquet").read_bytes() == b"some bytes"
    store = open_place("s3a://bucket/some/folder?endpoint_override=127.0.0.1:1&scheme=http")
    assert isinstance(store, RemoteStore)
    assert (store._path("a/b"), store._renames) == ("bucket/some/folder/a/b", False)


SAMPLE = ("group_offset.written", "manifest.written", "committed")
Flush = Callable[[], flusher.FlushResult]


class Died(BaseException):
    pass


def dies() -> None:
    raise Died


@pytest.fixture
def flushing(db: None, folder: Path) -> Flushing:
    return Flushing(folder.parent.parent)


def take_over(flush: Flush) -> flusher.FlushResult:
    """As if the lease were over: another flusher does all there is to do."""
    SegmentWriter.objects.update(lease_until=Now())
    return flush()


@pytest.mark.django_db(transaction=True)
def test_processes_that_are_killed_one_after_the_other__leave_one_whole_flush(flushing: Flushing) -> None:
    flushing.queue(2)
    for number in range(len(SAMPLE)):
        assert flushing.run(*SAMPLE[number:]) == -9, SAMPLE[number]
        if number == 0:
            flushing.queue(1)
    assert flushing.run() == 0
    assert flushing.problems() == []
    assert len(list((flushing.segments / "manifest").rglob("*.parquet"))) == 2, "what came later is in the next flush"


@pytest.mark.django_db(transaction=True)
def test_two_at_once__one_of_them_writes(flushing: Flushing) -> None:
    flushing.queue(3)
    both = [flushing.start() for _ in range(2)]
    ends = [(process.communicate(timeout=120), process.returncode) for process in both]
    assert {code for _, code in ends} <= {0, 3}, ends
    assert [code for _, code in ends].count(0) >= 1
    assert flushing.problems() == []


@pytest.mark.parametrize("point", fail_points.POINTS)
def test_one_that_fails_at_any_point__is_finished_by_the_next(
    point: str, flushing: Flushing, flush: Flush, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushing.queue()
    (tmp_path / "points").write_text(point)
    with monkeypatch.context() as armed:
        armed.setattr(fail_points, "_armed", FailFile("X", tmp_path / "points", fail_points.POINTS, dies))
        with pytest.raises(Died):
            flush()
    bound = SegmentWriter.objects.get()
    flushing.queue()
    assert flush().flushes == 2
    assert flushing.problems() == []
    names = sorted(path.stem for path in (flushing.segments / "manifest").rglob("*.parquet"))
    assert names[0] == f"{bound.flush_epoch:012d}-{bound.flush_seq:012d}", "under the numbers that it had"


@pytest.mark.parametrize("kind", ["replica", "manifest"])
def test_one_that_slept_before_its_file_shows__shows_nothing(
    kind: str, flushing: Flushing, flush: Flush, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease is over: it finds that out, and what the other one wrote stays as it is."""
    flushing.queue()
    reached = fail_points.at_point
    slept: list[object] = []

    def sleeps(point: str) -> None:
        if point == f"{kind}.written" and not slept:
            slept.append(point)
            assert take_over(flush) == flusher.FlushResult(1, 12)
            slept.extend(_bytes(flushing))
        reached(point)

    monkeypatch.setattr(fail_points, "at_point", sleeps)
    assert flush() == flusher.FlushResult(0, 0)
    assert slept[1:] == _bytes(flushing)
    assert flushing.problems() == []


def test_one_that_slept_between_its_last_look_and_the_rename__finds_nothing_to_rename(
    flushing: Flushing, flush: Flush, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushing.queue()
    still_ours = flusher._LeasedWriter.still_ours
    slept: list[str] = []

    def then_sleeps(steps: Any) -> None:
        still_ours(steps)
        if not slept:
            slept.append("")
            assert take_over(flush) == flusher.FlushResult(1, 12)

    monkeypatch.setattr(flusher._LeasedWriter, "still_ours", then_sleeps)
    done = flush()
    assert done == flusher.FlushResult(0, 0), "and it says nothing about that to anybody"
    assert SegmentWriter.objects.get().last_error is None
    assert flushing.problems() == []


def _bytes(flushing: Flushing) -> list[tuple[str, bytes, int]]:
    paths = sorted(flushing.segments.rglob("*.parquet"))
    return [(path.name, path.read_bytes(), path.stat().st_ino) for path in paths]
