"""What tests of the machinery share."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from kafkadash.core import clock


@pytest.fixture
def right_again() -> Iterator[None]:
    clock.set_right(datetime.now(UTC))
    yield
    clock.set_right(datetime.now(UTC))
