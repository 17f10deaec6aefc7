"""One Spark session for all tests of the tier: starting another takes as long as all of them together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.sparing import SPARING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    from kafkadash.pipeline.session import open_session, require

    require()
    session = open_session({"PIPELINE_DRIVER_MEMORY": "900m", **SPARING}, "tests")
    yield session
    session.stop()
