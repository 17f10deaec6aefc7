"""Clusters for the contract suite: a fake one for each test, a real one for the session."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.kafka.api import ClusterConnection
from kafkadash.kafka.mutations import WireClient
from tests.contract.backends import RACKS, Backend
from tests.contract.fake_backend import FakeBackend
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_model import ClusterModel
from tests.contract.kraft_backend import KraftBackend

_names = itertools.count(1)


@pytest.fixture
def fake() -> Iterator[FakeKafka]:
    with FakeKafka(ClusterModel(3, racks=RACKS)) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def kraft(playground: KafkaPlayground, tmp_path_factory: pytest.TempPathFactory) -> KraftBackend:
    """Shared: a test uses topics of its own, and gives back what it stops."""
    return KraftBackend(playground, tmp_path_factory.mktemp("kraft"))


@pytest.fixture(
    params=[
        "fake",
        pytest.param("kraft", marks=[pytest.mark.kafka, pytest.mark.xdist_group("kraft")]),
    ]
)
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "kraft":
        backend: Backend = request.getfixturevalue("kraft")
        return backend
    return FakeBackend(request.getfixturevalue("fake"))


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
