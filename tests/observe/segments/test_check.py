"""``manage.py segments check``: whole segments pass, and everything that is wrong is named. No database is needed."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from tests.pipeline.made_segments import Shape, make

SHAPE = Shape(clusters=2, groups=6, partitions=40, snapshots=4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
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


def file(folder: Path, kind: str, number: int) -> Path:
    return sorted((folder / kind).rglob("*.parquet"))[number]


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    table = pq.read_table(path)
    changed = change(table)
    metadata = {**(table.schema.metadata or {}), **(changed.schema.metadata or {})}
    pq.write_table(changed.replace_schema_metadata(metadata), path)


def test_whole_segments__pass_with_their_figures(folder: Path, settings: Settings) -> None:
    settings.PIPELINE_URI = folder.parent.as_uri()
    code, said, wrong = checked()
    assert (code, wrong) == (0, "")
    rows = 8 * SHAPE.pairs
    assert said == f"4 flushes, 8 refreshes (0 without their rows), 4 files, {rows:,} rows: all as it should be\n"


def test_the_same_shape__is_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    make(tmp_path / "again", SHAPE)
    for path in folder.rglob("*.parquet"):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(folder)).read_bytes()


def test_a_call_that_goes_on__follows_the_one_before(folder: Path) -> None:
    from datetime import timedelta

    later = SHAPE.begin + timedelta(seconds=SHAPE.interval_s * 4)
    make(folder, Shape(clusters=2, groups=6, partitions=40, snapshots=2, first_seq=5, begin=later))
    assert checked(str(folder))[0] == 0


def test_a_truncated_file__is_named_and_the_rest_is_read(folder: Path) -> None:
    path = file(folder, "group_offset", 1)
    path.write_bytes(path.read_bytes()[:-100])
    code, said, wrong = checked(folder.as_uri())
    assert code == 1
    assert wrong.count("\n") == 1
    assert f"{path.relative_to(folder)} is not whole: " in wrong
    assert "4 flushes" in said
    assert "3 files" in said
    assert "1 thing wrong" in said


def test_a_file_that_is_damaged_in_its_middle__is_named(folder: Path) -> None:
    path = file(folder, "group_offset", 0)
    data = bytearray(path.read_bytes())
    data[40:400] = bytes(360)
    path.write_bytes(data)
    code, _, wrong = checked(folder.as_uri())
    assert code == 1
    assert f"{path.relative_to(folder)} is not whole: " in wrong


def test_a_truncated_manifest__is_named_and_so_is_what_it_held(folder: Path) -> None:
    path = file(folder, "manifest", 1)
    path.write_bytes(path.read_bytes()[:50])
    code, _, wrong = checked(folder.as_uri())
    assert code == 1
    assert f"{path.relative_to(folder)} is not whole" in wrong
    assert "1 flush is missing" not in wrong.splitlines()[0]


def test_a_schema_from_the_future__is_named(folder: Path) -> None:
    path = file(folder, "group_offset", 2)
    rewritten(path, lambda table: table.replace_schema_metadata({"kafkadash.schema": "7"}))
    code, _, wrong = checked(folder.as_uri())
    assert code == 1
    assert f"{path.relative_to(folder)} has the schema 7; this release knows up to 1." in wrong


def test_columns_of_another_type__are_named(folder: Path) -> None:
    rewritten(file(folder, "group_offset", 0), lambda table: table.drop_columns(["lag"]))
    rewritten(
        file(folder, "group_offset", 1),
        lambda table: table.set_column(
            table.column_names.index("partition"), "partition", table["partition"].cast("int64")
        ),
    )
    code, _, wrong = checked(folder.as_uri())
    assert code == 1
    assert "other columns than its schema: lag." in wrong
    assert "other columns than its schema: partition." in wrong


def test_rows_that_are_missing_or_too_many__are_told_with_their_refresh(folder: Path) -> None:
    rewritten(file(folder, "group_offset", 0), lambda table: table.slice(1))
    rewritten(file(folder, "group_offset", 1), lambda table: pa.concat_tables([table, table.slice(0, 1)]))
    code, _, wrong = checked(folder.as_uri())
    assert code == 1
    assert "has 239 rows of refresh 1795000000.1 of cluster-0, the manifest says 240 rows." in wrong
    assert "has 241 rows of refresh 1795000000.2 of cluster-0, the manifest says 240 rows." in wrong


def test_a_file_that_is_gone_and_one_that_nothing_names__are_told(folder: Path) -> None:
    import os

    path = file(folder, "group_offset", 3)
    orphan = path.with_name("000000000009-000000000009.parquet")
    path.rename(orphan)
    os.utime(orphan, (0, 0))
    (path.parent / "_unfinished.parquet").write_bytes(b"half")
    code, _, wrong = checked(folder.as_uri())
    assert code == 1
    assert f"names {path.relative_to(folder)}, which is not there." in wrong
    assert f"{orphan.relative_to(folder)} is named by no manifest." in wrong
    assert "_unfinished" not in wrong


def test_a_file_of_a_flush_that_is_under_way__is_no_orphan(folder: Path) -> None:
    shutil.copy(
        file(folder, "group_offset", 3), folder / "group_offset/2026-11-21/02/000000000009-000000000009.parquet"
    )
    assert checked(folder.as_uri())[0] == 0


def test_a_manifest_that_is_gone__leaves_gaps_that_are_told(folder: Path) -> None:
    file(folder, "manifest", 1).unlink()
    code, _, wrong = checked(folder.as_uri())
    assert code == 1
    assert "000000000003.parquet 1 flush is missing." in wrong
    assert "No manifest tells of 1 refresh before refresh group_offset 1795000000.3 of cluster-1" in wrong


def test_a_copied_manifest__has_refreshes_twice(folder: Path) -> None:
    last = file(folder, "manifest", 3)
    shutil.copy(last, last.with_name(last.name.replace("4.parquet", "5.parquet")))
    code, _, wrong = checked(folder.as_uri())
    assert code == 1
    assert "is the manifest of flush 1795000000.4, as it says itself." in wrong
    assert "has refresh group_offset 1795000000.4 of cluster-0 for the second time." in wrong


@pytest.mark.parametrize("uri", ["nonsense://x/y", "file://elsewhere/x", "s3a://"])
def test_a_uri_that_is_no_place__is_bad_input(uri: str) -> None:
    code, _, wrong = checked(uri)
    assert code == 2
    assert f"{uri} is no place for segments: " in wrong


def test_a_folder_without_segments__is_bad_input(tmp_path: Path) -> None:
    assert checked(str(tmp_path / "nowhere"))[0] == 2
    assert checked(tmp_path.as_uri())[0] == 2
