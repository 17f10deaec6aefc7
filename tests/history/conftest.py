"""A folder of results, and a turn of the ingest that takes them in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.history import ingest
from kafkadash.history import schedule as turns
from tests.history.handed_back import Folder
from tests.monitoring.conftest import clock, cluster, kafka, refresh

__all__ = ["clock", "cluster", "kafka", "refresh"]


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Folder:
    made = Folder(tmp_path / "pipe line")
    settings.PIPELINE_URI = made.uri
    return made


@pytest.fixture
def turn(folder: Folder, cluster: Cluster) -> Callable[[], int | None]:
    turns.ensure_state()
    return lambda: ingest.take_turn(turns.STATE_ID, only_if_due=False)
