"""What is said of results of the pipeline that are not taken in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.test import override_settings

from kafkadash.clusters.models import Cluster
from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.history import ingest, turns
from kafkadash.observe.models import PipelineLedger, PipelineState
from tests.observe.handed_back import Folder, lag_rollup
from tests.refusals.driving import Case, case, each

pytestmark = pytest.mark.django_db
AT = datetime.now(UTC).replace(second=0, microsecond=0)


def taken_in(path: Path, change: Mapping[str, Any], harm: Callable[[Path], object] = lambda _: None) -> str:
    """Of one result with one row."""
    Cluster.objects.create(name="memory", slug="memory", bootstrap_servers="127.0.0.1:1")
    folder = Folder(path)
    folder.result(1, {ResultKind.LAG_ROLLUP: [lag_rollup("memory", "g", "t", AT, 1)]}, instead=change)
    harm(path / "results/lag_rollup/q1-1/part-0.parquet")
    turn(folder.uri)
    return str(PipelineLedger.objects.get().set_aside[0]["why"])


def turn(uri: str) -> str:
    turns.ensure_state()
    with override_settings(PIPELINE_URI=uri):
        ingest.take_turn(turns.STATE_ID, only_if_due=False)
    return PipelineState.objects.get().last_error


def without_pyarrow(path: Path) -> str:
    with mock.patch.dict(sys.modules, {"pyarrow": None}):
        return turn(path.as_uri())


def other_columns(file: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"cluster": ["memory"]}), file)


@each(
    case(CollectionErrorCode.NO_MARKER, lambda path: taken_in(path, {"query": "other"}), file="markers/q1-1.json"),
    case(CollectionErrorCode.MARKER_FROM_FUTURE, lambda path: taken_in(path, {"format": 4}), format=4, known=1),
    case(
        CollectionErrorCode.RESULT_KIND_UNKNOWN,
        lambda path: taken_in(path, {"kinds": {"moon": {"rows": 1}}}),
        kind="moon",
    ),
    case(CollectionErrorCode.FILES_MISSING, lambda path: taken_in(path, {}, Path.unlink), found=0, told=1),
    case(CollectionErrorCode.RESULT_DAMAGED, lambda path: taken_in(path, {}, lambda file: file.write_bytes(b"PAR1"))),
    case(CollectionErrorCode.COLUMNS_WRONG, lambda path: taken_in(path, {}, other_columns), kind="lag_rollup"),
    case(CollectionErrorCode.RESULTS_NEED_PYARROW, without_pyarrow),
    case(CollectionErrorCode.STORE_SILENT, lambda _path: turn("nowhere://at/all")),
)
def test_of_results(one: Case, tmp_path: Path) -> None:
    one.check(tmp_path)
