"""One client for each process and connection."""

import os
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kafkadash.kafka.api import ClusterConnection, KafkaAdmin, KafkaUnreachable
from kafkadash.kafka.connect import admin_for, close_all
from kafkadash.kafka.errors import KafkaErrorCode
from tests.contract.fake_broker import FakeKafka
from tests.raised_codes import raises_code

pytestmark = pytest.mark.contract

DEADLINE = 10.0


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def connection(fake: FakeKafka) -> ClusterConnection:
    return ClusterConnection("one", 1, fake.bootstrap_servers)


def test_the_same_connection_gives_the_same_client(connection: ClusterConnection) -> None:
    assert admin_for(connection) is admin_for(replace(connection))


def test_keys_have_clients_of_their_own(connection: ClusterConnection) -> None:
    assert admin_for(connection) is not admin_for(replace(connection, key="two"))


def test_threads_that_ask_at_once_get_one_client(connection: ClusterConnection) -> None:
    found: list[KafkaAdmin] = []
    gate = threading.Barrier(8)

    def ask() -> None:
        gate.wait()
        found.append(admin_for(connection))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({id(admin) for admin in found}) == 1


def test_a_new_version_gives_a_new_client_and_closes_the_old(connection: ClusterConnection) -> None:
    old = admin_for(connection)
    old.metadata(deadline=DEADLINE)

    new = admin_for(replace(connection, version=2))

    assert new is not old
    assert new.metadata(deadline=DEADLINE).cluster_id
    with raises_code(KafkaErrorCode.CONNECTION_RENEWED, KafkaUnreachable):
        old.metadata(deadline=DEADLINE)


def test_close_all_closes_and_forgets(connection: ClusterConnection) -> None:
    old = admin_for(connection)
    old.metadata(deadline=DEADLINE)

    close_all()

    with pytest.raises(KafkaUnreachable):
        old.metadata(deadline=DEADLINE)
    assert admin_for(connection).metadata(deadline=DEADLINE).cluster_id


def test_a_forked_child_gets_a_client_that_works_and_leaves_the_parents_alone(connection: ClusterConnection) -> None:
    """An inherited client has no thread and would wait for ever."""
    parents = admin_for(connection)
    cluster_id = parents.metadata(deadline=DEADLINE).cluster_id

    child = os.fork()
    if child == 0:
        status = 1
        try:
            childs = admin_for(connection)
            fresh = childs is not parents and childs.metadata(deadline=DEADLINE).cluster_id == cluster_id
            inherited = parents.metadata(deadline=DEADLINE).cluster_id == cluster_id
            status = 0 if fresh and inherited else 2
        finally:
            os._exit(status)
    _, result = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(result) == 0
    assert parents.metadata(deadline=DEADLINE).cluster_id == cluster_id
