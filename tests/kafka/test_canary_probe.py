"""The canary's client where it must not connect, or cannot."""

from __future__ import annotations

from kafkadash.devtools.embedded.ports import LOOPBACK, free_port
from kafkadash.kafka.api import ClusterConnection, KafkaUnreachable, NotSupported
from kafkadash.kafka.connect import run_canary
from kafkadash.kafka.errors import KafkaErrorCode
from tests.raised_codes import raises_code


def test_nobody_listens__is_said_in_time() -> None:
    connection = ClusterConnection("nobody", 1, (f"{LOOPBACK}:{free_port()}",))
    with raises_code(KafkaErrorCode.CANARY_UNREACHABLE, KafkaUnreachable):
        run_canary(connection, "", "canary", deadline=1)


def test_networks_are_limited__nothing_is_connected() -> None:
    connection = ClusterConnection("limited", 1, (f"{LOOPBACK}:1",), networks=("10.0.0.0/8",))
    with raises_code(KafkaErrorCode.CANARY_OF_LIMITED_NETWORKS, NotSupported):
        run_canary(connection, "", "canary", deadline=1)
