"""Addresses behind which there is no Kafka: one sentence, in time, that says what is known."""

import struct
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from kafkadash.kafka.admin import WireAdmin
from kafkadash.kafka.connection import Connection, Security
from kafkadash.kafka.port import DeadlineExceeded, KafkaFailure, NotSupported, Unreachable
from tests.contract.fake_broker import FakeKafka
from tests.contract.sockets import answering_port, black_hole, closed_port, silent_port
from tests.contract.timing import in_time

pytestmark = pytest.mark.contract

DEADLINE = 0.6

Connect = Callable[[Connection], WireAdmin]


def calls(admin: WireAdmin) -> list[Callable[[], object]]:
    return [
        lambda: admin.metadata(deadline=DEADLINE),
        lambda: admin.describe_cluster(deadline=DEADLINE),
        lambda: admin.api_versions(deadline=DEADLINE),
        lambda: admin.list_reassignments(deadline=DEADLINE),
        lambda: admin.log_dirs([1], deadline=DEADLINE),
        lambda: admin.quorum(deadline=DEADLINE),
    ]


def test_a_closed_port_is_told_at_once(connect: Connect) -> None:
    with closed_port() as address:
        admin = connect(Connection("c", 1, (address,)))
        for call in calls(admin):
            with in_time(0), pytest.raises(Unreachable, match=f"{address}.*connection refused"):
                call()


def test_an_address_outside_of_the_networks__is_not_connected(connect: Connect, fake: FakeKafka) -> None:
    """Resolved or advertised: what counts is where the socket would go."""
    for networks in (("10.0.0.0/8",), ("10.0.0.0/8", "fd00::/8")):
        admin = connect(Connection("c", 1, tuple(fake.bootstrap_servers), networks=networks))
        for call in calls(admin):
            with in_time(0), pytest.raises(Unreachable, match=r"127\.0\.0\.1 is in none of the networks"):
                call()
    assert not fake.requests
    within = connect(Connection("d", 1, tuple(fake.bootstrap_servers), networks=("10.0.0.0/8", "127.0.0.1")))
    assert within.metadata(deadline=DEADLINE).brokers


def test_a_port_that_accepts_and_never_answers(connect: Connect) -> None:
    with silent_port() as address:
        admin = connect(Connection("c", 1, (address,)))
        for call in calls(admin):
            with in_time(DEADLINE), pytest.raises(DeadlineExceeded, match=address):
                call()


def test_a_black_hole(connect: Connect) -> None:
    with black_hole() as address:
        admin = connect(Connection("c", 1, (address,)))
        with in_time(DEADLINE), pytest.raises(Unreachable, match="not accepted in time"):
            admin.metadata(deadline=DEADLINE)


def test_half_a_frame(connect: Connect) -> None:
    with answering_port(lambda _: struct.pack(">i", 400) + b"half") as address:
        admin = connect(Connection("c", 1, (address,)))
        for call in calls(admin):
            with in_time(DEADLINE), pytest.raises(DeadlineExceeded):
                call()


def test_something_that_is_not_kafka(connect: Connect) -> None:
    with answering_port(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        admin = connect(Connection("c", 1, (address,)))
        with in_time(DEADLINE), pytest.raises(Unreachable, match="not Kafka's protocol"):
            admin.metadata(deadline=DEADLINE)


@pytest.mark.parametrize("trouble", [closed_port, silent_port, black_hole])
def test_a_second_good_bootstrap_address_is_enough(
    trouble: Callable[[], AbstractContextManager[str]], fake: FakeKafka, connect: Connect
) -> None:
    with trouble() as bad:
        for order in [(bad, fake.bootstrap_servers[0]), (fake.bootstrap_servers[0], bad)]:
            admin = connect(Connection("c", 1, order))
            with in_time(DEADLINE):
                assert admin.metadata(deadline=DEADLINE).cluster_id == fake.model.cluster_id


def test_a_host_name_that_does_not_exist(connect: Connect) -> None:
    admin = connect(Connection("c", 1, ("no-such-host.invalid:9092",)))
    with in_time(10), pytest.raises(Unreachable, match=r"host name no-such-host.invalid cannot be resolved"):
        admin.metadata(deadline=10)


@pytest.mark.parametrize("address", ["", "host", "host:", ":9092", "host:port", "host:0", "host:70000"])
def test_an_address_that_is_none(address: str, connect: Connect) -> None:
    with pytest.raises(Unreachable, match="not of the form host:port"):
        connect(Connection("c", 1, (address,))).metadata(deadline=DEADLINE)


@pytest.mark.parametrize(
    ("security", "sentence"),
    [
        (Security(protocol="KERBEROS"), "security protocol 'KERBEROS'"),
        (Security(protocol="SASL_SSL", sasl_mechanism="GSSAPI"), "SASL mechanism 'GSSAPI'"),
    ],
)
def test_a_way_to_connect_that_is_not_known(security: Security, sentence: str, connect: Connect) -> None:
    with pytest.raises(NotSupported, match=sentence):
        connect(Connection("c", 1, ("127.0.0.1:1",), security)).metadata(deadline=DEADLINE)


def test_no_deadline_left_is_over_at_once(fake: FakeKafka, connect: Connect) -> None:
    admin = connect(Connection("c", 1, fake.bootstrap_servers))
    with in_time(0), pytest.raises(KafkaFailure):
        admin.metadata(deadline=0)
