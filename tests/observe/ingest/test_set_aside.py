"""What cannot be read of a result is set aside with a sentence, once, and the rest is taken in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.observe.models import (
    PipelineLedger,
    Rollup,
)
from tests.observe.handed_back import Folder, lag_rollup
from tests.observe.ingest.taking import NOW, Turn

pytestmark = pytest.mark.django_db

LAG = ResultKind.LAG_ROLLUP


def spoil(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])


def _cut(folder: Folder) -> None:
    spoil(folder.root / "results/lag_rollup/q1-1/part-0.parquet", 200)


def _cut_inside(folder: Folder) -> None:
    file = folder.root / "results/lag_rollup/q1-1/part-0.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:4] + bytes(100) + whole[104:])


def _gone(folder: Folder) -> None:
    (folder.root / "results/lag_rollup/q1-1/part-0.parquet").unlink()


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (_cut, "is no whole Parquet file"),
        (_cut_inside, "is no whole Parquet file"),
        (_gone, "has 0 rows where its marker says 1: files of it are missing"),
    ],
)
def test_ingest__a_file_of_a_result_is_harmed__it_is_set_aside_with_a_sentence_and_the_rest_goes_on(
    folder: Folder, turn: Turn, harm: Callable[[Folder], None], why: str
) -> None:
    other = {"cluster": "memory", "grain": "minute", "bucket": NOW, "lag_count": 1, "lag_max": 3}
    folder.result(1, {LAG: [lag_rollup("memory", "g", "t", NOW, 1)], ResultKind.CLUSTER_ROLLUP: [other]})
    folder.result(2, {LAG: [lag_rollup("memory", "next", "t", NOW, 1)]})
    harm(folder)
    assert turn() == 2
    first, second = PipelineLedger.objects.order_by("batch")
    assert why in first.set_aside[0]["why"]
    assert "lag_rollup/q1-1" in first.set_aside[0]["file"]
    assert (first.rows, second.rows, second.set_aside) == ({"cluster_rollup": 1}, {"lag_rollup": 1}, [])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": 2}, "has format 2; this version of kafkadash reads up to 1"),
        ({"kinds": {"moon_phase": {"rows": 3}}}, "a kind called 'moon_phase'"),
        ({"batch": 9}, "is no marker of a result: it is of q1 9"),
        ({"written_at": "yesterday"}, "is no marker of a result"),
        ({"kinds": []}, "is no marker of a result"),
    ],
)
def test_ingest__a_marker_that_cannot_be_used__is_set_aside_and_never_tried_again(
    folder: Folder, turn: Turn, change: dict[str, Any], why: str
) -> None:
    folder.result(1, {}, instead=change)
    assert turn() == 1
    entry = PipelineLedger.objects.get()
    assert why in entry.set_aside[0]["why"]
    assert turn() == 0


def test_ingest__a_marker_that_is_not_even_text__is_set_aside(folder: Folder, turn: Turn) -> None:
    folder.result(1, {}).write_bytes(b"\xff\xfe{")
    odd = folder.root / "results/markers/what is this.json"
    odd.write_text("[]")
    assert turn() == 2
    assert set(PipelineLedger.objects.values_list("query", "batch")) == {("q1", 1), ("what is this", -1)}


def test_ingest__a_column_is_missing_or_of_another_type__says_which(folder: Folder, turn: Turn) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    folder.result(1, {LAG: [lag_rollup("memory", "g", "t", NOW, 1)]})
    file = folder.root / "results/lag_rollup/q1-1/part-0.parquet"
    parquet.write_table(parquet.read_table(file).drop_columns(["lag_p99"]), file)
    folder.result(2, {LAG: [lag_rollup("memory", "g", "t", NOW, 1)]})
    file = folder.root / "results/lag_rollup/q1-2/part-0.parquet"
    table = parquet.read_table(file)
    parquet.write_table(table.set_column(table.column_names.index("lag_max"), "lag_max", pa.array(["much"])), file)
    turn()
    first, second = PipelineLedger.objects.order_by("batch")
    assert "no lag_p99" in first.set_aside[0]["why"]
    assert "lag_max" in second.set_aside[0]["why"]
    assert not Rollup.objects.exists()


def test_ingest__what_the_pipeline_itself_set_aside__is_in_the_ledger(folder: Folder, turn: Turn) -> None:
    aside = {"file": "group_offset/x.parquet", "why": "It is cut off."}
    folder.result(1, {}, instead={"set_aside": [aside]})
    turn()
    assert PipelineLedger.objects.get().set_aside == [aside]
