"""The lists of the lake: the same files whether each batch has its own or an hour has one.

New manifests are found in their order, each once, by looking only where something can have come.

How far back a batch reads, by what manifests say.

Samples read from files: a footer that tells of which refresh a row group is saves reading it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest

from kafkadash.export.schema import SegmentKind
from kafkadash.monitoring.groups.rules import WINDOW
from kafkadash.pipeline.batch import FlushSnapshots, ManifestSource, list_manifests_after
from kafkadash.pipeline.flushes import FlushIntake, list_manifests, minute_of, take_in
from kafkadash.pipeline.jobs import samples
from kafkadash.pipeline.jobs.samples import SampleFiles
from kafkadash.pipeline.lake import EVER, FactLake, LakeSpan, hour_folder
from kafkadash.pipeline.store import PipelineStore, open_store
from tests.pipeline.making import Maker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL_TIME = 10**15
HOUR = 500_000


@pytest.fixture
def lake(tmp_path: Path) -> FactLake:
    return FactLake(mock.Mock(), open_store(tmp_path.as_uri()), "q")


def again(lake: FactLake) -> FactLake:
    """As who is started next finds it."""
    return FactLake(mock.Mock(), lake.store, lake.query)


def brings(lake: FactLake, batch: int, *files: str, minutes: Iterable[int] = (3, 7)) -> None:
    intake = FlushIntake()
    for file in files:
        intake.add(SegmentKind.REPLICA, file, {HOUR * 60 + minute for minute in minutes})
    lake.write(batch, intake)


def found(lake: FactLake, until: int = ALL_TIME) -> list[tuple[str, int]]:
    return sorted({(part.file, part.last % 60) for part in lake.parts([HOUR], until)})


def lists(lake: FactLake) -> list[str]:
    return lake.store.names(f"{lake.folder}/{hour_folder(HOUR)}")


@pytest.mark.xdist_group("spark")
def test_looks__each_cluster_is_in_one_set_with_the_files_of_its_minutes(spark: SparkSession, lake: FactLake) -> None:
    mine = FactLake(spark, lake.store, lake.query)
    brings(mine, 1, "early.parquet", minutes=(1, 2))
    brings(mine, 2, "late.parquet", minutes=(8, 9))
    first = HOUR * 60
    spans = [LakeSpan(first + 8, first + 9, f"c{number}") for number in range(9)]
    spans.append(LakeSpan(first + 1, first + 1, "c4"))
    looks = [json.loads(row.asked) for row in mine.looks(SegmentKind.REPLICA, spans, ALL_TIME).collect()]
    clusters = [cluster for look in looks for cluster in look["minutes"]]
    assert sorted(clusters) == [f"c{number}" for number in range(9)]
    for look in looks:
        both = "c4" in look["minutes"]
        assert look["files"] == (["early.parquet", "late.parquet"] if both else ["late.parquet"])
    assert mine.looks(SegmentKind.REPLICA, [], ALL_TIME).collect() == []
    with pytest.raises(ValueError, match="all clusters"):
        mine.looks(SegmentKind.REPLICA, [LakeSpan(first, first)], ALL_TIME)


def test_merged__one_list_has_what_all_of_them_had(lake: FactLake) -> None:
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


def test_merged__what_comes_late_is_merged_with_the_next(lake: FactLake) -> None:
    brings(lake, 1, "1.parquet")
    brings(lake, 2, "2.parquet")
    lake.merge(HOUR, 2)
    brings(lake, 30, "late.parquet")
    assert lake.last_batch(HOUR) == 30
    lake.merge(HOUR, 30)
    assert lists(lake) == ["000000000030-all.json"]
    assert [file for file, _ in found(again(lake))] == ["1.parquet", "2.parquet", "late.parquet"]


def test_merged__a_list_that_came_since_and_one_that_is_written_again_stay_apart(lake: FactLake) -> None:
    for batch in (1, 2, 3):
        brings(lake, batch, f"{batch}.parquet")
    lake.merge(HOUR, 2)
    brings(lake, 2, "2.parquet")
    assert lists(lake) == ["000000000002-all.json", "000000000002.json", "000000000003.json"]
    assert [file for file, _ in found(lake, until=2)] == ["1.parquet", "2.parquet"]
    assert [file for file, _ in found(lake)] == ["1.parquet", "2.parquet", "3.parquet"]


@pytest.mark.parametrize("left", [0, 1, 2])
def test_merging_is_broken_off__nothing_is_lost_and_the_next_ends_it(lake: FactLake, left: int) -> None:
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


def test_somebody_reads_while_lists_are_merged__he_never_finds_less(lake: FactLake) -> None:
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


HOURS = ("2026-03-01/23", "2026-03-02/00", "2026-03-02/07", "2026-03-04/11")
ADDRESSES = [f"manifest/{hour}/{number:012d}-000000000001.parquet" for number, hour in enumerate(HOURS)]


@pytest.fixture
def store(tmp_path: Path) -> PipelineStore:
    for address in ADDRESSES:
        _write(tmp_path, address)
    return open_store(tmp_path.as_uri())


def _write(folder: Path, address: str) -> str:
    path = folder / "segments" / address
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return address


def test_what_comes_after_each(store: PipelineStore) -> None:
    assert list(list_manifests_after(store, "")) == ADDRESSES
    for place, address in enumerate(ADDRESSES):
        assert list(list_manifests_after(store, address)) == ADDRESSES[place + 1 :]


def test_there_may_be_nothing_at_all(tmp_path: Path) -> None:
    assert list(list_manifests_after(open_store(tmp_path.as_uri()), "")) == []
    assert list(list_manifests_after(open_store(tmp_path.as_uri()), ADDRESSES[0])) == []


def test_what_is_being_written_or_is_no_manifest_is_not_there(store: PipelineStore, tmp_path: Path) -> None:
    for name in ("_000000000009-000000000001.parquet", ".hidden.parquet", "000000000009-000000000001.parquet.crc"):
        _write(tmp_path, f"manifest/{HOURS[-1]}/{name}")
    assert list(list_manifests_after(store, ADDRESSES[-2])) == ADDRESSES[-1:]


def test_a_look_lists_the_last_hour_and_what_came_later(store: PipelineStore, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    names = PipelineStore.names

    def noted(store: PipelineStore, folder: str) -> list[str]:
        listed.append(folder)
        return names(store, folder)

    monkeypatch.setattr(PipelineStore, "names", noted)
    assert list(list_manifests_after(store, ADDRESSES[2])) == ADDRESSES[3:]
    root = "segments/manifest"
    assert listed == [root, f"{root}/2026-03-02", f"{root}/{HOURS[2]}", f"{root}/2026-03-04", f"{root}/{HOURS[3]}"]


def test_batches_are_no_longer_than_asked_and_the_same_again(store: PipelineStore, tmp_path: Path) -> None:
    source = ManifestSource({"uri": store.uri, "at_once": "3"})
    reader = source.simpleStreamReader(None)  # type: ignore[arg-type]
    begin = reader.initialOffset()
    rows, middle = reader.read(begin)
    assert [name for (name,) in rows] == ADDRESSES[:3]
    rows, end = reader.read(middle)
    assert [name for (name,) in rows] == ADDRESSES[3:]
    assert reader.read(end)[1] == end
    _write(tmp_path, "manifest/2026-03-04/12/000000000009-000000000001.parquet")
    assert [name for (name,) in reader.readBetweenOffsets(begin, middle)] == ADDRESSES[:3]
    assert [name for (name,) in reader.readBetweenOffsets(middle, end)] == ADDRESSES[3:]


def test_what_comes_while_all_that_is_there_is_taken_waits_for_the_next_time(
    store: PipelineStore, tmp_path: Path
) -> None:
    reader = ManifestSource({"uri": store.uri, "at_once": "30"}).simpleStreamReader(None)  # type: ignore[arg-type]
    reader.prepareForTriggerAvailableNow()  # type: ignore[attr-defined]
    late = _write(tmp_path, "manifest/2026-03-04/12/000000000009-000000000001.parquet")
    rows, end = reader.read(reader.initialOffset())
    assert [name for (name,) in rows] == ADDRESSES
    rows, same = reader.read(end)
    assert (list(rows), same) == ([], end)
    assert list(list_manifests_after(store, end["last"])) == [late]


def test_a_window_of_groups__reaches_back_as_far_as_that_of_a_worker_may(tmp_path: Path) -> None:
    """A sample continues one of two intervals before: between ten of them, nine refreshes may lack the group."""
    maker = Maker(tmp_path / "segments", groups=1, partitions=1, every=60)
    maker.flushes(30)
    store = open_store(tmp_path.as_uri())
    lake = FactLake(mock.Mock(), store, "q")
    lake.write(0, take_in(store, list_manifests(store)))
    last = minute_of(maker.at)
    found = FlushSnapshots(lake).before([LakeSpan(last, last)], EVER)
    reach = {(kind, span.cluster): last - span.first for kind in SegmentKind for span in found[kind]}
    assert {cluster: reach[SegmentKind.GROUP_OFFSET, cluster] for cluster in ("east", "west")} == {
        "east": 20,
        "west": 20,
    }
    assert reach[SegmentKind.GROUP_OFFSET, "east"] >= 2 * (WINDOW - 1)
    assert reach[SegmentKind.REPLICA, "east"] == 12


ALL_READS = {cluster: [(0, 10**9)] for cluster in ("east", "west")}


def told(folder: Path) -> list[tuple[str, int, list[int], list[int]]]:
    below = folder / "segments"
    files = sorted(path.relative_to(below).as_posix() for path in (below / SegmentKind.GROUP_OFFSET).rglob("*.parquet"))
    read = SampleFiles(open_store(folder.as_uri()), files)
    return [
        (each.cluster, each.observed_us, each.rows.keys.tolist(), np.asarray(each.rows.allowed).tolist())
        for each in read.refreshes(ALL_READS)
    ]


def rewritten(folder: Path, *, statistics: bool) -> None:
    """With a row group for each refresh, as collectors write them."""
    for path in (folder / "segments" / SegmentKind.GROUP_OFFSET).rglob("*.parquet"):
        table = pq.read_table(path)
        with pq.ParquetWriter(path, table.schema, write_statistics=statistics) as out:
            for cluster in ("east", "west"):
                out.write_table(table.filter([each == cluster for each in table["cluster"].to_pylist()]))


def test_what_footers_tell__is_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Maker(tmp_path / "segments").flushes(3)
    both_in_one = told(tmp_path)
    assert [cluster for cluster, *_ in both_in_one].count("east") == 3
    rewritten(tmp_path, statistics=False)
    assert told(tmp_path) == both_in_one
    rewritten(tmp_path, statistics=True)
    monkeypatch.setattr(samples, "_of_one_refresh", None)
    assert told(tmp_path) == both_in_one
