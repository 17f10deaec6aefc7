"""Samples read from files: a footer that tells of which refresh a row group is saves reading it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from kafkadash.domain.segments import SegmentKind
from kafkadash.pipeline.jobs import samples
from kafkadash.pipeline.jobs.samples import Files
from kafkadash.pipeline.store import open_store
from tests.pipeline.making import Maker

EVER = {cluster: [(0, 10**9)] for cluster in ("east", "west")}


def told(folder: Path) -> list[tuple[str, int, list[int], list[int]]]:
    below = folder / "segments"
    files = sorted(path.relative_to(below).as_posix() for path in (below / SegmentKind.GROUP_OFFSET).rglob("*.parquet"))
    read = Files(open_store(folder.as_uri()), files)
    return [
        (each.cluster, each.observed_us, each.rows.keys.tolist(), np.asarray(each.rows.allowed).tolist())
        for each in read.refreshes(EVER)
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
