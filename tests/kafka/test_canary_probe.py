"""The canary's client where it must not connect, or cannot, and how long it waits."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress

import pytest

from kafkadash.devtools.embedded.ports import LOOPBACK, free_port
from kafkadash.kafka.api import ClusterConnection, ConnectionSecurity, KafkaUnreachable, NotSupported, TokenUnavailable
from kafkadash.kafka.canary_probe import LATE_BY, SHORTEST_WAIT_S, WAIT_S, choose_wait
from kafkadash.kafka.connect import run_canary
from kafkadash.kafka.errors import KafkaErrorCode
from tests.contract.certificates import new_authority, server_context
from tests.raised_codes import raises_code


def test_nobody_listens__is_an_answer_in_time() -> None:
    connection = ClusterConnection("nobody", 1, (f"{LOOPBACK}:{free_port()}",))
    answer = run_canary(connection, "", "canary", deadline=1)
    assert answer.silence in {"_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN"}
    assert not answer.partitions


@pytest.mark.parametrize("asks_certificate", [False, True], ids=["speaks no TLS", "asks for the client's certificate"])
def test_handshake_fails__the_cause_may_be_here(asks_certificate: bool) -> None:
    authority = new_authority()
    context = server_context(authority, ask_client=True) if asks_certificate else None
    with socket.create_server((LOOPBACK, 0)) as listener:
        thread = threading.Thread(target=refuse_peers, args=(listener, context))
        thread.start()
        address = f"{LOOPBACK}:{listener.getsockname()[1]}"
        connection = ClusterConnection("refused", 1, (address,), ConnectionSecurity("SSL", ca_pem=authority.pem))
        try:
            with raises_code(KafkaErrorCode.CANARY_UNREACHABLE, KafkaUnreachable):
                run_canary(connection, "", "canary", deadline=1)
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def refuse_peers(listener: socket.socket, context: ssl.SSLContext | None) -> None:
    """Answer each peer with text where no ``context`` is given, until the listener is closed."""
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        with peer, suppress(OSError):
            if context is None:
                peer.recv(1)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            else:
                with context.wrap_socket(peer, server_side=True) as secured:
                    secured.recv(1)


def test_networks_are_limited__nothing_is_connected() -> None:
    connection = ClusterConnection("limited", 1, (f"{LOOPBACK}:1",), networks=("10.0.0.0/8",))
    with raises_code(KafkaErrorCode.CANARY_OF_LIMITED_NETWORKS, NotSupported):
        run_canary(connection, "", "canary", deadline=1)


def test_token_endpoint_is_down__is_said_before_any_client_is_made() -> None:
    endpoint = f"http://{LOOPBACK}:{free_port()}/token"
    security = ConnectionSecurity("SASL_PLAINTEXT", "OAUTHBEARER", "canary", "secret", oauth_endpoint=endpoint)
    connection = ClusterConnection("token", 1, (f"{LOOPBACK}:1",), security)
    with raises_code(KafkaErrorCode.TOKEN_ENDPOINT_UNREACHABLE, TokenUnavailable):
        run_canary(connection, "", "canary", deadline=1)


def test_certificate_is_unusable__is_said() -> None:
    connection = ClusterConnection("broken", 1, (f"{LOOPBACK}:1",), ConnectionSecurity("SSL", ca_pem="no certificate"))
    with raises_code(KafkaErrorCode.CANARY_UNREACHABLE, KafkaUnreachable):
        run_canary(connection, "", "canary", deadline=1)


@pytest.mark.parametrize("passed_s", [0.0, 0.004, 0.02, 0.1, 0.9, 5.0])
def test_answer__that_comes_during_a_wait__is_taken_little_later(passed_s: float) -> None:
    assert SHORTEST_WAIT_S <= choose_wait(passed_s) <= max(SHORTEST_WAIT_S, LATE_BY * passed_s)


def test_wait__before_anything_is_sent__is_the_longest() -> None:
    assert choose_wait(10_000.0) == WAIT_S
