"""A call is back within its deadline and half a second, whatever the brokers do.

Addresses behind which there is no Kafka: one sentence, in time, that says what is known.

Wires that hang are given up, and leave nothing behind.

Brokers that die, come back, or come back elsewhere.
"""

from __future__ import annotations

import gc
import struct
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import psutil
import pytest

from kafkadash.core.messages import coded
from kafkadash.kafka.api import (
    ClusterConnection,
    ConnectionSecurity,
    DeadlineExceeded,
    KafkaFailure,
    KafkaUnreachable,
    NotSupported,
    OffsetKind,
    OffsetQuery,
    QuorumUnavailable,
)
from kafkadash.kafka.dispatch import GRACE, BrokerAnswer, BrokerRequest, ClusterWire, WireClosed
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.messages import MetadataAnswer, metadata_request
from kafkadash.kafka.reads import WireAdmin
from tests.contract.backends import Backend
from tests.contract.fake_answers import DESCRIBE_LOG_DIRS, METADATA
from tests.contract.fake_broker import FakeKafka
from tests.contract.sockets import answering_port, black_hole, closed_port, silent_port
from tests.contract.timing import in_time
from tests.raised_codes import raises_code
from tests.waiting import wait_until

pytestmark = pytest.mark.contract

DEADLINE = 2.0


def test_a_frozen_broker_costs_its_own_answer_only(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2, 3]], records=5)
    queries = [OffsetQuery(broker, topic_name, 0, OffsetKind.LATEST) for broker in backend.broker_ids]
    admin.replica_offsets(queries, deadline=DEADLINE)

    with backend.frozen(2):
        with in_time(DEADLINE):
            sizes = admin.log_dirs(backend.broker_ids, deadline=DEADLINE)
        with in_time(DEADLINE):
            offsets = admin.replica_offsets(queries, deadline=DEADLINE)
        with in_time(DEADLINE):
            versions = admin.api_versions(deadline=DEADLINE)

    assert sizes.brokers.keys() == {1, 3}
    assert sizes.errors.keys() == {2}
    assert "Broker 2" in sizes.errors[2].text
    assert sizes.errors[2].code is None
    assert {query.broker for query in offsets.offsets} == {1, 3}
    assert {query.broker for query in offsets.errors} == {2}
    assert {1, 3} <= versions.brokers.keys()
    wait_until(lambda: not admin.log_dirs([2], deadline=DEADLINE).errors, "broker 2 answers again")


def test_what_any_broker_can_answer_does_not_wait_for_a_frozen_one(admin: WireAdmin, backend: Backend) -> None:
    admin.metadata(deadline=DEADLINE)

    with backend.frozen(1):
        for _ in range(4):
            with in_time(DEADLINE):
                admin.metadata(deadline=DEADLINE)
            with in_time(DEADLINE):
                admin.describe_cluster(deadline=DEADLINE)


def test_a_client_that_starts_beside_a_frozen_broker_finds_the_others(admin: WireAdmin, backend: Backend) -> None:
    with backend.frozen(1), in_time(DEADLINE):
        assert admin.metadata(deadline=DEADLINE).cluster_id


@pytest.mark.quorum
def test_lost_controllers_are_told_apart_from_dead_brokers(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2]], records=1)
    admin.quorum(deadline=DEADLINE)

    with backend.without_controllers():
        with in_time(DEADLINE), raises_code(KafkaErrorCode.CONTROLLERS_SILENT, QuorumUnavailable):
            admin.quorum(deadline=DEADLINE)
        with in_time(DEADLINE), pytest.raises(QuorumUnavailable):
            admin.list_reassignments(deadline=DEADLINE)
        with in_time(DEADLINE):
            assert [topic.name for topic in admin.metadata(deadline=DEADLINE, topics=[topic_name]).topics]
        with in_time(DEADLINE):
            assert not admin.log_dirs([1, 2], deadline=DEADLINE).errors

    assert admin.quorum(deadline=10).leader_id == backend.controller()


UNREACHABLE_DEADLINE = 0.6

Connect = Callable[[ClusterConnection], WireAdmin]


def calls(admin: WireAdmin) -> list[Callable[[], object]]:
    return [
        lambda: admin.metadata(deadline=UNREACHABLE_DEADLINE),
        lambda: admin.describe_cluster(deadline=UNREACHABLE_DEADLINE),
        lambda: admin.api_versions(deadline=UNREACHABLE_DEADLINE),
        lambda: admin.list_reassignments(deadline=UNREACHABLE_DEADLINE),
        lambda: admin.log_dirs([1], deadline=UNREACHABLE_DEADLINE),
        lambda: admin.quorum(deadline=UNREACHABLE_DEADLINE),
    ]


def test_a_closed_port_is_told_at_once(connect: Connect) -> None:
    with closed_port() as address:
        admin = connect(ClusterConnection("c", 1, (address,)))
        for call in calls(admin):
            with in_time(0), raises_code(KafkaErrorCode.NODE_NOT_CONNECTED, KafkaUnreachable, match=address):
                call()


def test_an_address_outside_of_the_networks__is_not_connected(connect: Connect, fake: FakeKafka) -> None:
    """Resolved or advertised: what counts is where the socket would go."""
    for networks in (("10.0.0.0/8",), ("10.0.0.0/8", "fd00::/8")):
        admin = connect(ClusterConnection("c", 1, tuple(fake.bootstrap_servers), networks=networks))
        for call in calls(admin):
            with in_time(0), pytest.raises(KafkaUnreachable, match=r"127\.0\.0\.1 is not in KAFKA_NETWORKS"):
                call()
    assert not fake.requests
    within = connect(ClusterConnection("d", 1, tuple(fake.bootstrap_servers), networks=("10.0.0.0/8", "127.0.0.1")))
    assert within.metadata(deadline=UNREACHABLE_DEADLINE).brokers


def test_a_port_that_accepts_and_never_answers(connect: Connect) -> None:
    with silent_port() as address:
        admin = connect(ClusterConnection("c", 1, (address,)))
        for call in calls(admin):
            with in_time(UNREACHABLE_DEADLINE), pytest.raises(DeadlineExceeded, match=address):
                call()


def test_a_black_hole(connect: Connect) -> None:
    with black_hole() as address:
        admin = connect(ClusterConnection("c", 1, (address,)))
        with (
            in_time(UNREACHABLE_DEADLINE),
            raises_code(KafkaErrorCode.NODE_NOT_CONNECTED, KafkaUnreachable, match=address),
        ):
            admin.metadata(deadline=UNREACHABLE_DEADLINE)


def test_half_a_frame(connect: Connect) -> None:
    with answering_port(lambda _: struct.pack(">i", 400) + b"half") as address:
        admin = connect(ClusterConnection("c", 1, (address,)))
        for call in calls(admin):
            with in_time(UNREACHABLE_DEADLINE), pytest.raises(DeadlineExceeded):
                call()


def test_something_that_is_not_kafka(connect: Connect) -> None:
    with answering_port(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        admin = connect(ClusterConnection("c", 1, (address,)))
        with in_time(UNREACHABLE_DEADLINE), raises_code(KafkaErrorCode.NOT_KAFKA, KafkaUnreachable):
            admin.metadata(deadline=UNREACHABLE_DEADLINE)


@pytest.mark.parametrize("trouble", [closed_port, silent_port, black_hole])
def test_a_second_good_bootstrap_address_is_enough(
    trouble: Callable[[], AbstractContextManager[str]], fake: FakeKafka, connect: Connect
) -> None:
    with trouble() as bad:
        for order in [(bad, fake.bootstrap_servers[0]), (fake.bootstrap_servers[0], bad)]:
            admin = connect(ClusterConnection("c", 1, order))
            with in_time(UNREACHABLE_DEADLINE):
                assert admin.metadata(deadline=UNREACHABLE_DEADLINE).cluster_id == fake.model.cluster_id


def test_a_host_name_that_does_not_exist(connect: Connect) -> None:
    admin = connect(ClusterConnection("c", 1, ("no-such-host.invalid:9092",)))
    with in_time(10), raises_code(KafkaErrorCode.NODE_NOT_CONNECTED, KafkaUnreachable, match="no-such-host.invalid"):
        admin.metadata(deadline=10)


@pytest.mark.parametrize("address", ["", "host", "host:", ":9092", "host:port", "host:0", "host:70000"])
def test_an_address_that_is_none(address: str, connect: Connect) -> None:
    with raises_code(KafkaErrorCode.ADDRESS_MALFORMED, KafkaUnreachable):
        connect(ClusterConnection("c", 1, (address,))).metadata(deadline=UNREACHABLE_DEADLINE)


@pytest.mark.parametrize(
    ("security", "sentence"),
    [
        (ConnectionSecurity(protocol="KERBEROS"), "security protocol 'KERBEROS'"),
        (ConnectionSecurity(protocol="SASL_SSL", sasl_mechanism="NTLM"), "SASL mechanism 'NTLM'"),
        (ConnectionSecurity(protocol="SASL_SSL", sasl_mechanism="GSSAPI"), r"Kerberos \(GSSAPI\) is not supported"),
    ],
)
def test_a_way_to_connect_that_is_not_known(security: ConnectionSecurity, sentence: str, connect: Connect) -> None:
    with pytest.raises(NotSupported, match=sentence):
        connect(ClusterConnection("c", 1, ("127.0.0.1:1",), security)).metadata(deadline=UNREACHABLE_DEADLINE)


def test_no_deadline_left_is_over_at_once(fake: FakeKafka, connect: Connect) -> None:
    admin = connect(ClusterConnection("c", 1, fake.bootstrap_servers))
    with in_time(0), pytest.raises(KafkaFailure):
        admin.metadata(deadline=0)


EXPIRIES = 100
SHORT = 0.05
# On a busy machine so little time is over before the connection is seen to be accepted.
NO_ANSWER = (DeadlineExceeded, KafkaUnreachable)
NO_TOPICS: BrokerRequest[MetadataAnswer] = BrokerRequest(lambda offered: metadata_request(offered, ()))


def wire_threads(connection: str) -> list[threading.Thread]:
    """Return the threads of connections whose names begin so; other tests' end when their admin is collected."""
    return [thread for thread in threading.enumerate() if thread.name.startswith(f"kafka-wire-{connection}")]


def descriptors() -> int:
    return psutil.Process().num_fds()


def hang(wire: ClusterWire, until: threading.Event) -> None:
    """Blocks the thread that serves the wire's sockets, as nothing of ours should."""
    wire._loop.call_soon_threadsafe(lambda: until.wait(60))


def test_a_hundred_expired_calls_leave_no_socket_and_no_thread(
    connect: Callable[[ClusterConnection], WireAdmin],
) -> None:
    with silent_port() as address:
        admin = connect(ClusterConnection("expired", 1, (address,)))
        with pytest.raises(NO_ANSWER):
            admin.metadata(deadline=SHORT)
        before = descriptors()
        for _ in range(EXPIRIES):
            with pytest.raises(NO_ANSWER):
                admin.metadata(deadline=SHORT)
        wait_until(lambda: descriptors() <= before + 4, "the sockets of expired calls are closed")
        assert len(wire_threads("expired")) == 1


def test_a_hundred_hung_wires_end_their_threads_and_close_their_sockets(fake: FakeKafka) -> None:
    gc.collect()
    before = descriptors()
    released = threading.Event()

    def hang_ten_times(number: int) -> list[ClusterWire]:
        admin = WireAdmin(ClusterConnection(f"hung-{number}", 1, fake.bootstrap_servers))
        wires = []
        for _ in range(10):
            assert admin.metadata(deadline=30).cluster_id == fake.model.cluster_id
            wires.append(admin._current_wire())
            hang(wires[-1], released)
            with in_time(SHORT), raises_code(KafkaErrorCode.CONNECTION_HUNG, DeadlineExceeded):
                admin.metadata(deadline=SHORT)
        admin.close()
        return wires

    with ThreadPoolExecutor(EXPIRIES // 10) as pool:
        wires = [wire for ten in pool.map(hang_ten_times, range(EXPIRIES // 10)) for wire in ten]

    assert len(set(wires)) == EXPIRIES
    assert len(wire_threads("hung-")) >= EXPIRIES
    released.set()
    assert all(wire.join(30) for wire in wires)
    wait_until(lambda: not wire_threads("hung-"), "the threads ended")
    wait_until(lambda: fake.open_connections() == 0, "the brokers see no connection any more")
    wait_until(lambda: descriptors() <= before + 2, "the sockets are closed")


def test_a_hung_wire_lets_the_calls_under_way_end(fake: FakeKafka) -> None:
    wire = ClusterWire(ClusterConnection("shared", 1, fake.bootstrap_servers))
    wire.ask_any(NO_TOPICS, deadline=10)
    answers: list[BrokerAnswer[MetadataAnswer]] = []
    released = threading.Event()
    hang(wire, released)
    patient = threading.Thread(target=lambda: answers.append(wire.ask_any(NO_TOPICS, deadline=30)))
    patient.start()
    wait_until(lambda: len(wire._calls) == 1, "the patient call is under way")

    with pytest.raises(DeadlineExceeded):
        wire.ask_any(NO_TOPICS, deadline=SHORT)
    with pytest.raises(WireClosed):
        wire.ask_any(NO_TOPICS, deadline=SHORT)
    released.set()
    patient.join(30)

    assert [answer.response.cluster_id for answer in answers] == [fake.model.cluster_id]
    assert wire.join(10)


def test_closing_ends_the_calls_under_way(fake: FakeKafka) -> None:
    wire = ClusterWire(ClusterConnection("closed", 1, fake.bootstrap_servers))
    wire.ask_any(NO_TOPICS, deadline=10)
    for broker in fake.model.brokers:
        fake.freeze(broker)
    raised: list[Exception] = []

    def ask() -> None:
        try:
            wire.ask_any(NO_TOPICS, deadline=30)
        except KafkaUnreachable as error:
            raised.append(error)

    caller = threading.Thread(target=ask)
    caller.start()
    wait_until(lambda: len(wire._calls) == 1, "the call is under way")
    wire.close()
    caller.join(10)

    assert "closed" in str(raised[0])
    assert wire.join(10)
    assert GRACE < 0.5


def test_many_threads_share_one_wire(fake: FakeKafka) -> None:
    fake.model.add_topic("orders", [[1, 2]] * 20, records=3)
    admin = WireAdmin(ClusterConnection("many", 1, fake.bootstrap_servers))
    results: list[int] = []

    def ask() -> None:
        for _ in range(10):
            results.append(len(admin.metadata(deadline=30).topics[0].partitions))
            results.append(len(admin.log_dirs([1, 2, 3], deadline=30).brokers))
            results.append(admin.quorum(deadline=30).leader_id)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    wires = wire_threads("many")
    admin.close()

    assert sorted(results) == sorted([20, 3, 101] * 160)
    assert len(wires) == 1


def test_a_discarded_wire_closes_its_selector_too(fake: FakeKafka) -> None:
    wire = ClusterWire(ClusterConnection("files", 1, fake.bootstrap_servers))
    wire.ask_any(NO_TOPICS, deadline=10)
    before = descriptors()
    wire.retire()

    assert wire.join(10)
    # the selector, both ends of its wake-up pair, and at least one connection
    assert descriptors() <= before - 4


NOT_LIVE = coded(KafkaErrorCode.BROKER_NOT_LIVE, broker=2)

AWAY_DEADLINE = 5.0


@pytest.fixture
def knowing_admin(fake: FakeKafka, connect: Callable[[ClusterConnection], WireAdmin]) -> WireAdmin:
    admin = connect(ClusterConnection("fake", 1, fake.bootstrap_servers))
    assert sorted(admin.log_dirs([1, 2, 3], deadline=AWAY_DEADLINE).brokers) == [1, 2, 3]
    return admin


def test_a_killed_broker_is_told_at_once(fake: FakeKafka, knowing_admin: WireAdmin) -> None:
    fake.kill(2)

    with in_time(0.5):
        answer = knowing_admin.log_dirs([1, 2, 3], deadline=AWAY_DEADLINE)

    assert sorted(answer.brokers) == [1, 3]
    assert "connection refused" in answer.errors[2].text


def test_a_killed_broker_that_the_cluster_dropped_is_told_as_such(fake: FakeKafka, knowing_admin: WireAdmin) -> None:
    fake.kill(2)
    fake.model.fence(2)
    knowing_admin.log_dirs([2], deadline=AWAY_DEADLINE)

    assert knowing_admin.log_dirs([2], deadline=AWAY_DEADLINE).errors[2].message == NOT_LIVE


def test_a_broker_that_died_of_a_question_after_the_cluster_dropped_it(
    fake: FakeKafka, knowing_admin: WireAdmin
) -> None:
    """The connection is lost first and refused then: the refusal is what asks the cluster for the address anew."""
    fake.model.fence(2)
    fake.dies_on[2] = DESCRIBE_LOG_DIRS
    assert knowing_admin.log_dirs([2], deadline=AWAY_DEADLINE).errors.keys() == {2}

    assert knowing_admin.log_dirs([2], deadline=AWAY_DEADLINE).errors[2].message == NOT_LIVE


def test_a_broker_that_loses_each_connection_after_the_cluster_dropped_it(
    fake: FakeKafka, knowing_admin: WireAdmin
) -> None:
    """As one whose listener is still open while its process ends: nothing is refused, and it is gone all the same."""
    fake.model.fence(2)
    fake.cached.discard(DESCRIBE_LOG_DIRS)
    fake.loses_reply[DESCRIBE_LOG_DIRS] = 2
    assert knowing_admin.log_dirs([2], deadline=AWAY_DEADLINE).errors.keys() == {2}

    assert knowing_admin.log_dirs([2], deadline=AWAY_DEADLINE).errors[2].message == NOT_LIVE


def test_a_broker_that_left_the_metadata_and_came_back(fake: FakeKafka, knowing_admin: WireAdmin) -> None:
    port = fake.model.brokers[2].port
    fake.kill(2)
    fake.model.fence(2)
    assert knowing_admin.log_dirs([2], deadline=AWAY_DEADLINE).errors.keys() == {2}

    fake.start(2, port=port)
    fake.model.unfence(2)

    assert knowing_admin.log_dirs([2], deadline=AWAY_DEADLINE).brokers.keys() == {2}


def test_a_broker_that_restarted_on_another_port_is_found_in_the_same_call(
    fake: FakeKafka, knowing_admin: WireAdmin
) -> None:
    before = fake.model.brokers[2].port
    fake.kill(2)
    fake.start(2)
    assert fake.model.brokers[2].port != before

    answer = knowing_admin.log_dirs([1, 2, 3], deadline=AWAY_DEADLINE)

    assert sorted(answer.brokers) == [1, 2, 3]


def test_a_broker_that_joined_later_is_found(fake: FakeKafka, knowing_admin: WireAdmin) -> None:
    fake.kill(3)
    fake.model.fence(3)
    assert knowing_admin.log_dirs([3], deadline=AWAY_DEADLINE).errors.keys() == {3}
    fake.start(3)
    fake.model.unfence(3)

    assert knowing_admin.log_dirs([3], deadline=AWAY_DEADLINE).brokers.keys() == {3}


def test_a_cluster_that_moved_altogether_is_found_by_its_bootstrap_servers(
    fake: FakeKafka, connect: Callable[[ClusterConnection], WireAdmin]
) -> None:
    """Here the bootstrap server stays, as a load balancer does."""
    admin = connect(ClusterConnection("fake", 1, fake.bootstrap_servers[:1]))
    admin.metadata(deadline=AWAY_DEADLINE)
    for broker in (2, 3):
        fake.kill(broker)
        fake.start(broker)

    assert sorted(admin.log_dirs([1, 2, 3], deadline=AWAY_DEADLINE).brokers) == [1, 2, 3]
    assert admin.metadata(deadline=AWAY_DEADLINE).cluster_id == fake.model.cluster_id


def test_dead_brokers_are_asked_last_for_what_any_broker_can_answer(fake: FakeKafka, knowing_admin: WireAdmin) -> None:
    fake.freeze(1)
    knowing_admin.log_dirs([1], deadline=0.3)
    asked = fake.requests[METADATA]

    for _ in range(5):
        with in_time(0):
            knowing_admin.metadata(deadline=30)

    assert fake.requests[METADATA] == asked + 5


def test_everything_down_and_up_again(fake: FakeKafka, knowing_admin: WireAdmin) -> None:
    ports = {broker: node.port for broker, node in fake.model.brokers.items()}
    for broker in ports:
        fake.kill(broker)
    assert knowing_admin.log_dirs([1], deadline=AWAY_DEADLINE).errors.keys() == {1}
    for broker, port in ports.items():
        fake.start(broker, port=port)

    assert sorted(knowing_admin.log_dirs([1, 2, 3], deadline=AWAY_DEADLINE).brokers) == [1, 2, 3]
    assert knowing_admin.quorum(deadline=AWAY_DEADLINE).leader_id == 101
