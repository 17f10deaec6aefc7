"""What a try of a connection says: addresses, names, certificates, and what does not answer."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any, NoReturn
from unittest import mock

from kafkadash.kafka.connection import Security
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.port import (
    AuthenticationFailed,
)
from kafkadash.kafka.probe import probe
from kafkadash.kafka.tls import ssl_context
from tests.contract.certificates import new_authority, server_context
from tests.contract.sockets import black_hole, closed_port, silent_port
from tests.refusals.driving import Case, case, each, refused
from tests.refusals.net import DEADLINE, SHORT, Net, net

__all__ = ["net"]


def connected(net: Net, **security: Any) -> str:
    return net.asked("127.0.0.1:1", replace(Security("SSL"), **security))


def another_key(net: Net) -> str:
    one, other = new_authority().client, new_authority().client
    return refused(
        AuthenticationFailed, lambda: ssl_context(Security("SSL", certificate_pem=one.pem, key_pem=other.key_pem))
    )


def reached(net: Net, listener: Any, security: Security | None = None, seconds: float = DEADLINE) -> str:
    address = listener if isinstance(listener, str) else net.ending.enter_context(listener)
    (one,) = probe([address], security or Security(), deadline=seconds)
    return str(one.why)


def no_name_server(net: Net) -> str:
    free = threading.Event()
    net.ending.callback(free.set)

    def look_up(*_: object, **__: object) -> NoReturn:
        free.wait(30)
        raise OSError("no name server")

    with mock.patch("socket.getaddrinfo", side_effect=look_up):
        return reached(net, "kafka-1:9092", seconds=0.1)


def untrusted(net: Net) -> str:
    broker = net.kafka(1, tls=server_context(new_authority()))
    return reached(net, broker.bootstrap_servers[0], Security("SSL", ca_pem=new_authority().pem))


@each(
    case(KafkaErrorCode.ADDRESS_MALFORMED, lambda n: n.asked("kafka-1")),
    case(KafkaErrorCode.PROTOCOL_UNKNOWN, lambda n: connected(n, protocol="KERBEROS")),
    case(KafkaErrorCode.MECHANISM_UNKNOWN, lambda n: connected(n, protocol="SASL_SSL", sasl_mechanism="GSSAPI")),
    case(KafkaErrorCode.CA_UNUSABLE, lambda n: connected(n, ca_pem="nonsense")),
    case(KafkaErrorCode.CA_UNUSABLE, lambda n: connected(n, ca_pem="näher")),
    case(KafkaErrorCode.CERTIFICATE_WITHOUT_KEY, lambda n: connected(n, certificate_pem="only this")),
    case(KafkaErrorCode.KEY_UNUSABLE, lambda n: connected(n, certificate_pem="x", key_pem="nonsense")),
    case(KafkaErrorCode.PAIR_UNUSABLE, another_key),
    case(KafkaErrorCode.NAME_SERVER_SLOW, no_name_server, seconds=0.1),
    case(
        KafkaErrorCode.NAME_UNRESOLVED, lambda n: reached(n, "no-such-host.invalid:9092"), host="no-such-host.invalid"
    ),
    case(KafkaErrorCode.NO_TIME_TO_CONNECT, lambda n: reached(n, "127.0.0.1:1", seconds=0.0)),
    case(KafkaErrorCode.NOTHING_ACCEPTED, lambda n: reached(n, black_hole(), seconds=SHORT), seconds=SHORT),
    case(KafkaErrorCode.CONNECTING_FAILED, lambda n: reached(n, closed_port()), said="connection refused"),
    case(KafkaErrorCode.TLS_SILENT, lambda n: reached(n, silent_port(), Security("SSL"), seconds=SHORT)),
    case(KafkaErrorCode.TLS_FAILED, untrusted),
)
def test_by_a_try_of_a_connection(one: Case, net: Net) -> None:
    one.check(net)
