"""Makes the small kind of change known; tests of pages use it as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kafkadash.changes import kinds
from kafkadash.changes.kinds import ChangeKind
from tests.changes.parcels import PARCELS

TEMPLATES = Path(__file__).parent.parent / "templates"


@pytest.fixture
def parcels(settings: Any) -> Iterator[ChangeKind]:
    with mock.patch.dict(kinds._kinds, {PARCELS.name: PARCELS}):
        settings.TEMPLATES = [{**engine, "DIRS": [*engine["DIRS"], TEMPLATES]} for engine in settings.TEMPLATES]
        yield PARCELS
