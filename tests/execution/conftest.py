"""A world in which runs are stepped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkadash.clusters.models import Cluster
from tests.execution.worlds import World, model_of, patched
from tests.planning.stored import stored


@pytest.fixture
def world(db: None) -> Iterator[World]:
    cluster: Cluster = stored()
    made = World(cluster, model_of(cluster))
    with patched(made):
        yield made
