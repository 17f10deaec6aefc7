"""A folder of results, and a turn of the ingest that takes them in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.observe.history import ingest, turns
from tests.observe.handed_back import Folder


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> Folder:
    made = Folder(tmp_path / "pipe line")
    settings.PIPELINE_URI = made.uri
    return made


@pytest.fixture
def turn(folder: Folder, cluster: Cluster) -> Callable[[], int | None]:
    turns.ensure_state()
    return lambda: ingest.take_turn(turns.STATE_ID, only_if_due=False)
