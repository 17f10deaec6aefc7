"""The canary's client where it must not connect, or cannot."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from kafkadash.devtools.embedded.ports import LOOPBACK, free_port
from kafkadash.kafka.api import ClusterConnection, ConnectionSecurity, KafkaUnreachable, NotSupported
from kafkadash.kafka.connect import run_canary
from kafkadash.kafka.errors import KafkaErrorCode
from tests.raised_codes import raises_code


def test_nobody_listens__is_an_answer_in_time() -> None:
    connection = ClusterConnection("nobody", 1, (f"{LOOPBACK}:{free_port()}",))
    answer = run_canary(connection, "", "canary", deadline=1)
    assert answer.silence in {"_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN"}
    assert not answer.partitions


def test_handshake_fails__the_cause_may_be_here() -> None:
    """A listener answers that speaks no TLS."""

    def answer(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                with listener.accept()[0] as peer:
                    peer.recv(1)
                    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server((LOOPBACK, 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        address = f"{LOOPBACK}:{listener.getsockname()[1]}"
        connection = ClusterConnection("plain", 1, (address,), ConnectionSecurity("SSL"))
        try:
            with raises_code(KafkaErrorCode.CANARY_UNREACHABLE, KafkaUnreachable):
                run_canary(connection, "", "canary", deadline=1)
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_networks_are_limited__nothing_is_connected() -> None:
    connection = ClusterConnection("limited", 1, (f"{LOOPBACK}:1",), networks=("10.0.0.0/8",))
    with raises_code(KafkaErrorCode.CANARY_OF_LIMITED_NETWORKS, NotSupported):
        run_canary(connection, "", "canary", deadline=1)
