"""A folder for segments, and what is in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pytest_django import Settings

from kafkadash.export import flusher
from tests.monitoring.conftest import clock, cluster, kafka, refresh

__all__ = ["clock", "cluster", "kafka", "refresh"]

Rows = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def folder(settings: Settings, tmp_path: Path) -> Path:
    settings.PIPELINE_URI = (tmp_path / "the pipeline").as_uri()
    return tmp_path / "the pipeline" / "segments"


@pytest.fixture
def rows_of(folder: Path) -> Rows:
    """Of all files of a kind, the oldest file first."""

    def rows(kind: str) -> list[dict[str, Any]]:
        return [row for path in sorted((folder / kind).rglob("*.parquet")) for row in pq.read_table(path).to_pylist()]

    return rows


@pytest.fixture
def flush(db: None, folder: Path) -> Callable[[], flusher.FlushResult]:
    def now() -> flusher.FlushResult:
        done = flusher.flush(flusher.ensure_writer(), only_if_due=False)
        assert done is not None
        return done

    return now
