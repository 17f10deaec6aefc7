"""Controllers of their own: started before brokers, and kept where they are."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafkadash.embedded.ports import LOOPBACK
from kafkadash.embedded.process import ServerError, children
from kafkadash.playground.cluster import Playground
from kafkadash.playground.state import choose_ports, new_cluster, write_cluster
from tests.playground.test_cluster import stamps


@pytest.mark.xdist_group("kraft")
def test_controllers__started_with_brokers__serve_before_any_of_them_begins(playground: Playground) -> None:
    """The shared cluster's first start, by the logs of its nodes."""
    nodes = playground.cluster.nodes
    assert [node.roles for node in nodes] == ["broker"] * 3 + ["controller"] * 3
    served = [stamps(playground, node.name, "Kafka Server started")[0] for node in playground.cluster.controllers]
    begun = [stamps(playground, node.name, "INFO")[0] for node in playground.cluster.brokers]
    assert max(served) < min(begun)


def test_a_majority_of_controllers_cannot_move_and_nothing_is_started(tmp_path: Path, runtime: None) -> None:
    cluster = choose_ports(new_cluster(1, None, 3, 1), set())
    write_cluster(tmp_path, cluster)
    with ExitStack() as taken:
        for node in cluster.controllers[:2]:
            assert node.controller_port is not None
            taken.enter_context(socket.create_server((LOOPBACK, node.controller_port)))
        with pytest.raises(ServerError, match=r"of 2 of the 3 controllers are taken .*--reset"):
            Playground(tmp_path).up()
    assert children(tmp_path) == []
