"""One real cluster of our own for this folder's tests: they stop, kill and renew what others share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkadash.embedded.process import ServerError
from kafkadash.playground.cluster import Playground
from kafkadash.playground.fixture import running_playground
from kafkadash.playground.prepare import prepare_runtime
from tests.embedded_plugin import RUN_FOLDER

RACKS = ("a", "b", "b")


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Below it, what a killed run leaves behind is ended by the next run."""
    run = os.environ.get(RUN_FOLDER)
    return Path(run) if run is not None else tmp_path_factory.mktemp("run")


@pytest.fixture(scope="session")
def runtime() -> None:
    try:
        prepare_runtime(lambda _: None)
    except ServerError as error:
        pytest.skip(f"no real Kafka here: {error}")


@pytest.fixture(scope="session")
def cluster(run_folder: Path, runtime: None) -> Iterator[Playground]:
    folder = run_folder / f"playground-{os.environ.get('PYTEST_XDIST_WORKER', 'single')}"
    with running_playground(folder, racks=RACKS, dirs=2) as playground:
        yield playground


@pytest.fixture
def whole(cluster: Playground) -> Playground:
    """The cluster with every node running: a test before may have failed half way."""
    cluster.up()
    return cluster
