"""Folders, HDFS and object stores: the same addresses, nothing half, nothing left; and what is past its keep goes."""

from __future__ import annotations

import io
import os
import resource
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO

import pytest
from pyarrow.fs import LocalFileSystem
from pytest_django import Settings

from kafkadash.domain.segments import SegmentKind, address
from kafkadash.observe.segments import forgetting
from kafkadash.observe.segments.check import Checked, check
from kafkadash.observe.segments.encoding import Unreadable
from kafkadash.observe.segments.forgetting import forget
from kafkadash.observe.segments.places import Folder, Place, Remote, place
from kafkadash.observe.segments.writing import Steps, write
from tests.pipeline.made_segments import Shape, flushes

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


def nothing() -> None:
    pass


def text(out: IO[bytes]) -> None:
    out.write(b"some bytes")


@pytest.fixture(params=["folder", "object store", "hdfs"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The two others through PyArrow's file systems, which are told to behave as they do."""
    if request.param == "folder":
        return Folder(tmp_path.as_uri(), tmp_path)
    return Remote(tmp_path.as_uri(), LocalFileSystem(), str(tmp_path), renames=request.param == "hdfs")


@pytest.fixture
def made(where: Place) -> Place:
    """Like an object store, a place that makes folders as files need them."""
    if isinstance(where, Remote) and not where._renames:
        put = where._put

        def makes_folders(address: str, buffer: io.BytesIO) -> None:
            where._files.create_dir(where._path(address.rsplit("/", 1)[0]))
            put(address, buffer)

        where._put = makes_folders  # type: ignore[method-assign]
    return where


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_segments__are_whole_everywhere_and_written_once(made: Place, tmp_path: Path) -> None:
    each = list(flushes(Shape(clusters=2, snapshots=3)))
    for flush, snapshots in each:
        write(made, flush, snapshots, Steps())
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in names(tmp_path)}
    for flush, snapshots in each:
        write(made, flush, snapshots, Steps())
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in names(tmp_path)} == before
    assert len(before) == 6
    checked = Checked()
    assert list(check(made, NOW, checked)) == []
    assert (checked.flushes, checked.snapshots, checked.rows) == (3, 6, 6 * 120)


def test_a_file_that_is_not_whole__is_written_again(made: Place, tmp_path: Path) -> None:
    ((flush, snapshots),) = flushes(Shape(snapshots=1))
    write(made, flush, snapshots, Steps())
    path = tmp_path / flush.address(SegmentKind.GROUP_OFFSET)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(Unreadable):
        made.footer(flush.address(SegmentKind.GROUP_OFFSET))
    write(made, flush, snapshots, Steps())
    assert list(check(made, NOW, Checked())) == []


def test_who_may_not_show_it__leaves_nothing(made: Place, tmp_path: Path) -> None:
    def not_any_more() -> None:
        raise PermissionError("another one took over")

    with pytest.raises(PermissionError):
        made.write("quorum/2026-11-21/02/1-1.parquet", 7, text, not_any_more)
    assert names(tmp_path) == []


def test_what_another_left_half_written__is_taken_away_first(tmp_path: Path) -> None:
    for where in (Folder("", tmp_path), Remote("", LocalFileSystem(), str(tmp_path), renames=True)):
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
        write(Folder("", tmp_path), flush, snapshots, Steps())
    assert names(tmp_path) == []


def test_past_their_keep__files_and_folders_go_and_nothing_else(
    made: Place, tmp_path: Path, settings: Settings
) -> None:
    settings.KEEP_SEGMENTS_HOURS = 48
    kept: list[str] = []
    over: list[str] = []
    for hours in (0, 1, 24, 47, 48, 49, 50, 72, 200):
        for kind in (SegmentKind.REPLICA, SegmentKind.MANIFEST):
            name = address(kind, NOW - timedelta(hours=hours), 7, 1000 - hours)
            made.write(name, 1, text, nothing)
            (over if hours > 48 else kept).append(name)
    (tmp_path / "replica" / "somebody's notes").mkdir()
    assert forget(made, NOW) == len(over)
    assert names(tmp_path) == sorted(kept)
    folders = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*")}
    assert folders == {name.rsplit("/", 2)[0] for name in kept} | {"replica/somebody's notes"}
    assert forget(made, NOW) == 0


def test_a_round__deletes_only_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = Folder("", tmp_path)
    for number in range(5):
        where.write(address(SegmentKind.REPLICA, NOW - timedelta(days=30), 7, number), 1, text, nothing)
    monkeypatch.setattr(forgetting, "MOST", 3)
    assert [forget(where, NOW) for _ in range(3)] == [3, 2, 0]
    assert list((tmp_path / "replica").iterdir()) == []


def test_the_cost_of_a_round__does_not_grow_with_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = Folder("", tmp_path)
    for hours in range(4, 160):
        where.write(address(SegmentKind.REPLICA, NOW - timedelta(hours=hours), 7, hours), 1, text, nothing)
    listed: list[str] = []

    def counted(ask: Callable[[str], object], folder: str) -> object:
        listed.append(folder)
        return ask(folder)

    for name in ("folders", "files"):
        monkeypatch.setattr(where, name, partial(counted, getattr(where, name)))
    forget(where, NOW)
    assert len(listed) <= 40


def test_what_a_killed_writer_left__goes_after_an_hour(tmp_path: Path) -> None:
    folder = tmp_path / "manifest/2026-11-21/11"
    folder.mkdir(parents=True)
    for name, age in (("_old.1.parquet", timedelta(minutes=65)), ("_new.1.parquet", timedelta(minutes=40))):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, ((NOW - age).timestamp(),) * 2)
    assert forget(Folder("", tmp_path), NOW) == 1
    assert names(folder) == ["_new.1.parquet"]


def test_a_place_by_its_uri(tmp_path: Path) -> None:
    named = tmp_path / "with a blank and %"
    where = place(named.as_uri())
    where.write("a/b.parquet", 1, text, nothing)
    assert (named / "a/b.parquet").read_bytes() == b"some bytes"
    store = place("s3a://bucket/some/folder?endpoint_override=127.0.0.1:1&scheme=http")
    assert isinstance(store, Remote)
    assert (store._path("a/b"), store._renames) == ("bucket/some/folder/a/b", False)
