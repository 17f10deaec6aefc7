"""State folders whose processes end with the test, also when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkadash.devtools.embedded.process import live_children, stop_all


@pytest.fixture
def state_dir(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "state"
    yield folder
    stop_all(live_children(folder), 5)
