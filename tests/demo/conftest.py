"""Folders for demos, and demos that end with their test."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkadash.devtools.embedded.postgres import EmbeddedPostgres
from kafkadash.devtools.embedded.process import ServerError, reap_leftovers
from kafkadash.devtools.playground.cluster import prepare_runtime
from tests.embedded_plugin import RUN_FOLDER
from tests.smoke.demo_process import DemoProcess

Start = Callable[..., DemoProcess]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path that the user PostgreSQL runs as can reach; whatever was started from it is ended."""
    folder = Path(tempfile.mkdtemp(prefix="demo-", dir=os.environ[RUN_FOLDER]))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        for state in (folder / "playground", folder):
            reap_leftovers(state)
        EmbeddedPostgres(folder).remove()
        shutil.rmtree(folder)


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts the real demo with one broker and without Spark in the test's folder."""
    try:
        prepare_runtime(lambda _: None)
    except ServerError as error:
        pytest.skip(f"no real Kafka here: {error}")
    started: list[DemoProcess] = []

    def start_demo(*arguments: str) -> DemoProcess:
        demo = DemoProcess(folder, "--racks", "a", "--no-pipeline", *arguments)
        started.append(demo)
        return demo

    yield start_demo
    for demo in started:
        demo.end()
