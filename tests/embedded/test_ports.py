"""Loopback ports: kept while they are free, renewed when they are taken."""

from __future__ import annotations

import socket

from kafkadash.embedded.ports import LOOPBACK, free_port, port_is_free


def test_a_stored_port_that_is_still_free_is_kept() -> None:
    port = free_port()
    assert port_is_free(port)
    assert free_port(port) == port


def test_a_stored_port_that_somebody_listens_on_is_renewed() -> None:
    with socket.create_server((LOOPBACK, free_port())) as server:
        port = server.getsockname()[1]
        assert not port_is_free(port)
        renewed = free_port(port)
    assert renewed != port


def test_a_port_already_given_to_another_server_is_not_given_again() -> None:
    port = free_port()
    assert free_port(port, taken={port}) != port


def test_a_port_is_free_again_while_its_old_connections_fade_out() -> None:
    with socket.create_server((LOOPBACK, free_port())) as server:
        port = server.getsockname()[1]
        client = socket.create_connection((LOOPBACK, port))
        accepted, _ = server.accept()
        accepted.close()  # the side that closes first is the one that lingers
        client.close()
    assert port_is_free(port)
