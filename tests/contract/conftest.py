"""Clusters for the contract suite: a fake one for each test, a real one for the session."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.kafka.api import ClusterConnection
from kafkadash.kafka.mutations import WireClient
from tests.contract.backends import RACKS, Backend
from tests.contract.fake_backend import FakeBackend
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_model import ClusterModel
from tests.contract.kraft_backend import KraftBackend
from tests.contract.zookeeper_backend import ZooKeeperBackend
from tests.embedded_plugin import RUN_FOLDER
from tests.kafka_releases import RELEASES

_names = itertools.count(1)


@pytest.fixture
def fake() -> Iterator[FakeKafka]:
    with FakeKafka(ClusterModel(3, racks=RACKS)) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def kraft(playground: KafkaPlayground, tmp_path_factory: pytest.TempPathFactory) -> KraftBackend:
    """Shared: a test uses topics of its own, and gives back what it stops."""
    return KraftBackend(playground, tmp_path_factory.mktemp("kraft"))


def asked_backends() -> list[str]:
    """Return what KAFKADASH_CONTRACT names: one release of ``RELEASES``, or some of the others."""
    return os.environ.get("KAFKADASH_CONTRACT", "fake,kraft,zookeeper").split(",")


@pytest.fixture(scope="session")
def zookeeper(kafka_runtime: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperBackend]:
    folder = Path(os.environ[RUN_FOLDER]) / f"zookeeper-{os.environ.get('PYTEST_XDIST_WORKER', 'single')}"
    playground = KafkaPlayground(folder)
    playground.up(brokers=len(RACKS), racks=RACKS, dirs=2, zookeepers=1)
    try:
        yield ZooKeeperBackend(playground, tmp_path_factory.mktemp("zookeeper"), (3, 9))
    finally:
        playground.down()


@pytest.fixture(scope="session")
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftBackend]:
    """The release of KAFKADASH_CONTRACT, in KRaft mode."""
    [name] = asked_backends()
    playground = KafkaPlayground(Path(os.environ[RUN_FOLDER]) / name, lock=RELEASES[name])
    playground.up(brokers=len(RACKS), racks=RACKS, controllers=3, dirs=2)
    try:
        major, minor = name.removeprefix("kraft-").split(".")
        yield KraftBackend(playground, tmp_path_factory.mktemp(name), (int(major), int(minor)))
    finally:
        playground.down()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """On the fake cluster and on Kafka in both modes, or on what KAFKADASH_CONTRACT names."""
    if "backend" in metafunc.fixturenames:
        asked = asked_backends()
        if metafunc.definition.get_closest_marker("quorum"):
            asked = [name for name in asked if name != "zookeeper"]
        real = {name: [pytest.mark.kafka, pytest.mark.xdist_group(name)] for name in asked if name != "fake"}
        params = [pytest.param(name, marks=real.get(name, [])) for name in asked]
        metafunc.parametrize("backend", params, indirect=True)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param in RELEASES:
        release: Backend = request.getfixturevalue("release")
        return release
    if request.param == "fake":
        return FakeBackend(request.getfixturevalue("fake"))
    backend: Backend = request.getfixturevalue(request.param)
    return backend


@pytest.fixture
def connect() -> Iterator[Callable[[ClusterConnection], WireClient]]:
    """Clients that are closed when the test ends."""
    made: list[WireClient] = []

    def make(connection: ClusterConnection) -> WireClient:
        made.append(WireClient(connection))
        return made[-1]

    yield make
    for admin in made:
        admin.close()


@pytest.fixture
def admin(backend: Backend, connect: Callable[[ClusterConnection], WireClient]) -> WireClient:
    return connect(backend.connection)


@pytest.fixture
def topic_name() -> str:
    """A name that no other test of this run uses."""
    return f"contract-{next(_names)}"
