"""Wires that hang are given up, and leave nothing behind."""

import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from kafkadash.kafka.admin import WireAdmin
from kafkadash.kafka.asking import Answer, Ask
from kafkadash.kafka.connection import Connection
from kafkadash.kafka.messages import MetadataAnswer, metadata_request
from kafkadash.kafka.port import DeadlineExceeded, Unreachable
from kafkadash.kafka.wire import GRACE, Wire, WireClosed
from tests.contract.fake_broker import FakeKafka
from tests.contract.sockets import silent_port
from tests.contract.timing import in_time
from tests.waiting import wait_until

pytestmark = pytest.mark.contract

EXPIRIES = 100
SHORT = 0.05
# On a busy machine so little time is over before the connection is seen to be accepted.
NO_ANSWER = (DeadlineExceeded, Unreachable)
NO_TOPICS: Ask[MetadataAnswer] = Ask(lambda offered: metadata_request(offered, ()))


def wire_threads(connection: str) -> list[threading.Thread]:
    """Return the threads of connections whose names begin so; other tests' end when their admin is collected."""
    return [thread for thread in threading.enumerate() if thread.name.startswith(f"kafka-wire-{connection}")]


def descriptors() -> int:
    return psutil.Process().num_fds()


def hang(wire: Wire, until: threading.Event) -> None:
    """Blocks the thread that serves the wire's sockets, as nothing of ours should."""
    wire._loop.call_soon_threadsafe(lambda: until.wait(60))


def test_a_hundred_expired_calls_leave_no_socket_and_no_thread(connect: Callable[[Connection], WireAdmin]) -> None:
    with silent_port() as address:
        admin = connect(Connection("expired", 1, (address,)))
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

    def hang_ten_times(number: int) -> list[Wire]:
        admin = WireAdmin(Connection(f"hung-{number}", 1, fake.bootstrap_servers))
        wires = []
        for _ in range(10):
            assert admin.metadata(deadline=30).cluster_id == fake.model.cluster_id
            wires.append(admin._current_wire())
            hang(wires[-1], released)
            with in_time(SHORT), pytest.raises(DeadlineExceeded, match="is being renewed"):
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
    wire = Wire(Connection("shared", 1, fake.bootstrap_servers))
    wire.ask_any(NO_TOPICS, deadline=10)
    answers: list[Answer[MetadataAnswer]] = []
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
    wire = Wire(Connection("closed", 1, fake.bootstrap_servers))
    wire.ask_any(NO_TOPICS, deadline=10)
    for broker in fake.model.brokers:
        fake.freeze(broker)
    raised: list[Exception] = []

    def ask() -> None:
        try:
            wire.ask_any(NO_TOPICS, deadline=30)
        except Unreachable as error:
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
    admin = WireAdmin(Connection("many", 1, fake.bootstrap_servers))
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
    wire = Wire(Connection("files", 1, fake.bootstrap_servers))
    wire.ask_any(NO_TOPICS, deadline=10)
    before = descriptors()
    wire.retire()

    assert wire.join(10)
    # the selector, both ends of its wake-up pair, and at least one connection
    assert descriptors() <= before - 4
