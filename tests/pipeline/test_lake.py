"""The lists of the lake: the same files whether each batch has its own or an hour has one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from kafkadash.domain.segments import SegmentKind
from kafkadash.pipeline.flushes import Intake
from kafkadash.pipeline.lake import Lake, Span, hour_folder
from kafkadash.pipeline.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVER = 10**15
HOUR = 500_000


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(mock.Mock(), open_store(tmp_path.as_uri()), "q")


def again(lake: Lake) -> Lake:
    """As who is started next finds it."""
    return Lake(mock.Mock(), lake.store, lake.query)


def brings(lake: Lake, batch: int, *files: str, minutes: Iterable[int] = (3, 7)) -> None:
    intake = Intake()
    for file in files:
        intake.add(SegmentKind.REPLICA, file, {HOUR * 60 + minute for minute in minutes})
    lake.write(batch, intake)


def found(lake: Lake, until: int = EVER) -> list[tuple[str, int]]:
    return sorted({(part.file, part.last % 60) for part in lake.parts([HOUR], until)})


def lists(lake: Lake) -> list[str]:
    return lake.store.names(f"{lake.folder}/{hour_folder(HOUR)}")


@pytest.mark.xdist_group("spark")
def test_looks__each_cluster_is_in_one_set_with_the_files_of_its_minutes(spark: SparkSession, lake: Lake) -> None:
    mine = Lake(spark, lake.store, lake.query)
    brings(mine, 1, "early.parquet", minutes=(1, 2))
    brings(mine, 2, "late.parquet", minutes=(8, 9))
    first = HOUR * 60
    spans = [Span(first + 8, first + 9, f"c{number}") for number in range(9)]
    spans.append(Span(first + 1, first + 1, "c4"))
    looks = [json.loads(row.asked) for row in mine.looks(SegmentKind.REPLICA, spans, EVER).collect()]
    clusters = [cluster for look in looks for cluster in look["minutes"]]
    assert sorted(clusters) == [f"c{number}" for number in range(9)]
    for look in looks:
        both = "c4" in look["minutes"]
        assert look["files"] == (["early.parquet", "late.parquet"] if both else ["late.parquet"])
    assert mine.looks(SegmentKind.REPLICA, [], EVER).collect() == []
    with pytest.raises(ValueError, match="all clusters"):
        mine.looks(SegmentKind.REPLICA, [Span(first, first)], EVER)


def test_merged__one_list_has_what_all_of_them_had(lake: Lake) -> None:
    for batch in (4, 9, 11):
        brings(lake, batch, f"{batch}.parquet", "both.parquet")
    before = found(lake)
    lake.merge(HOUR, 11)
    assert lists(lake) == ["000000000011-all.json"]
    assert found(lake) == found(again(lake)) == before
    assert len(before) == 4
    assert lake.last_batch(HOUR) == 11
    lake.merge(HOUR, 11)
    assert found(lake) == before


def test_merged__what_comes_late_is_merged_with_the_next(lake: Lake) -> None:
    brings(lake, 1, "1.parquet")
    brings(lake, 2, "2.parquet")
    lake.merge(HOUR, 2)
    brings(lake, 30, "late.parquet")
    assert lake.last_batch(HOUR) == 30
    lake.merge(HOUR, 30)
    assert lists(lake) == ["000000000030-all.json"]
    assert [file for file, _ in found(again(lake))] == ["1.parquet", "2.parquet", "late.parquet"]


def test_merged__a_list_that_came_since_and_one_that_is_written_again_stay_apart(lake: Lake) -> None:
    for batch in (1, 2, 3):
        brings(lake, batch, f"{batch}.parquet")
    lake.merge(HOUR, 2)
    brings(lake, 2, "2.parquet")
    assert lists(lake) == ["000000000002-all.json", "000000000002.json", "000000000003.json"]
    assert [file for file, _ in found(lake, until=2)] == ["1.parquet", "2.parquet"]
    assert [file for file, _ in found(lake)] == ["1.parquet", "2.parquet", "3.parquet"]


@pytest.mark.parametrize("left", [0, 1, 2])
def test_merging_is_broken_off__nothing_is_lost_and_the_next_ends_it(lake: Lake, left: int) -> None:
    for batch in (1, 2, 3):
        brings(lake, batch, f"{batch}.parquet")
    before = found(lake)
    removed = type(lake.store).remove_file
    calls = 0

    def dies(store: object, name: str) -> None:
        nonlocal calls
        if calls == left:
            raise BrokenPipeError
        calls += 1
        removed(lake.store, name)

    with mock.patch.object(type(lake.store), "remove_file", dies), pytest.raises(BrokenPipeError):
        lake.merge(HOUR, 3)
    assert found(again(lake)) == before
    again(lake).merge(HOUR, 3)
    assert lists(lake) == ["000000000003-all.json"]
    assert found(again(lake)) == before


def test_somebody_reads_while_lists_are_merged__he_never_finds_less(lake: Lake) -> None:
    for batch in range(40):
        brings(lake, batch, f"{batch}.parquet")
    seen: set[int] = set()

    def reads() -> None:
        for _ in range(60):
            seen.add(len(found(lake)))

    reader = Thread(target=reads)
    reader.start()
    for until in range(1, 40):
        lake.merge(HOUR, until)
    reader.join()
    assert seen == {40}
