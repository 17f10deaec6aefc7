"""Makes the small kind of change known; tests of pages use it as well."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from kafkadash.changes import kinds
from kafkadash.changes.kinds import ChangeKind
from tests.changes.parcels import PARCELS


@pytest.fixture
def parcels() -> Iterator[ChangeKind]:
    with mock.patch.dict(kinds._kinds, {PARCELS.name: PARCELS}):
        yield PARCELS
