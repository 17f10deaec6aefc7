"""Znodes as every version of Kafka writes them, hostile ones, and servers that are none."""

from __future__ import annotations

import base64
import json
import select
import socket
import ssl
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from kafkadash.kafka import znodes
from kafkadash.kafka.api import (
    AnswerTooLarge,
    ConnectionSecurity,
    DeadlineExceeded,
    KafkaFailure,
    KafkaUnreachable,
    NotAuthorized,
    TopicPartition,
    ZooKeeperConnection,
)
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.znodes import ChangeNotice, OtherZooKeeper, WriteRefused, WriteUnanswered, ZNode, ZNodeUnusable
from kafkadash.kafka.zookeeper import ServerRefused, open_session
from tests.contract.certificates import new_authority, server_context
from tests.memory_zookeeper import MemoryZooKeeper
from tests.raised_codes import raises_code

TOPIC_ID = uuid.UUID("0f2c7e6a-93c0-4a37-8d3e-7d0c6c2b5a11")


def znode(path: str, content: object, **stat: int) -> ZNode:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return ZNode(path, data, **{"czxid": 7, "created_ms": 1000, "modified_ms": 2000, "version": 3, **stat})


class TestWhatKafkaWrites:
    @pytest.mark.parametrize(
        ("content", "endpoints", "rack"),
        [
            (
                {"version": 1, "host": "a", "port": 9092, "jmx_port": -1, "timestamp": "1"},
                ("PLAINTEXT://a:9092",),
                None,
            ),
            ({"version": 2, "host": None, "port": -1, "endpoints": ["SSL://a:1"]}, ("SSL://a:1",), None),
            ({"version": 3, "endpoints": ["SSL://a:1"], "rack": "r"}, ("SSL://a:1",), "r"),
            ({"version": 4, "endpoints": [], "rack": "", "listener_security_protocol_map": {}}, (), ""),
            ({"version": 5, "endpoints": ["X://[::1]:1"], "features": {}, "rack": "r"}, ("X://[::1]:1",), "r"),
        ],
    )
    def test_brokers(self, content: Mapping[str, Any], endpoints: tuple[str, ...], rack: str | None) -> None:
        broker = znodes.parse_broker(znode("/brokers/ids/4", content))
        assert (broker.id, broker.endpoints, broker.rack, broker.version) == (4, endpoints, rack, content["version"])

    def test_topics(self) -> None:
        old = znodes.parse_topic(znode("/brokers/topics/t", {"version": 1, "partitions": {"0": [1, 2]}}))
        assert (old.topic_id, old.replicas, old.adding, old.removing) == ("", {0: (1, 2)}, {}, {})
        text = base64.urlsafe_b64encode(TOPIC_ID.bytes).decode().rstrip("=")
        moving = {"partitions": {"0": [3, 1]}, "adding_replicas": {"0": [3]}, "removing_replicas": {"0": [1]}}
        new = znodes.parse_topic(znode("/brokers/topics/t", {"version": 3, "topic_id": text, **moving}))
        assert (new.topic_id, new.adding, new.removing, new.modified_ms) == (str(TOPIC_ID), {0: (3,)}, {0: (1,)}, 2000)

    @pytest.mark.parametrize(
        ("content", "epoch", "migrating"),
        [
            ({"version": 1, "brokerid": 1, "timestamp": "5"}, None, False),
            ({"version": 2, "brokerid": 1, "timestamp": "5", "kraftControllerEpoch": -1}, None, False),
            ({"version": 2, "brokerid": 3000, "timestamp": "5", "kraftControllerEpoch": 4}, 4, True),
        ],
    )
    def test_controllers(self, content: Mapping[str, Any], epoch: int | None, migrating: bool) -> None:
        found = znodes.parse_controller(znode("/controller", content))
        assert (found.broker_id, found.elected_ms) == (content["brokerid"], 5)
        assert (found.kraft_epoch, found.migrating) == (epoch, migrating)

    def test_batches_and_elections(self) -> None:
        rows = [{"topic": "t", "partition": 1, "replicas": [2, 3]}, {"topic": "a", "partition": 0, "replicas": [1]}]
        batch = znodes.parse_batch(znode("/admin/reassign_partitions", {"version": 1, "partitions": rows}))
        assert (batch.id, batch.created_ms) == ("0x7", 1000)
        assert batch.targets == {TopicPartition("t", 1): (2, 3), TopicPartition("a", 0): (1,)}
        elections = znodes.parse_elections(znode("/admin/preferred_replica_election", {"partitions": rows}))
        assert elections == (TopicPartition("a", 0), TopicPartition("t", 1))


@pytest.mark.parametrize(
    ("parse", "content"),
    [
        (znodes.parse_controller, b""),
        (znodes.parse_controller, b"\xff\xfe{}"),
        (znodes.parse_controller, b"[" * 100_000),
        (znodes.parse_controller, b'{"brokerid": ' + b"9" * 10_000 + b"}"),
        (znodes.parse_controller, [1]),
        (znodes.parse_controller, {"brokerid": True}),
        (znodes.parse_controller, {"brokerid": -1}),
        (znodes.parse_controller, {"brokerid": 2**31}),
        (znodes.parse_controller, {"brokerid": 1, "timestamp": "9" * 30}),
        (znodes.parse_controller, {"brokerid": 1, "kraftControllerEpoch": "x"}),
        (znodes.parse_epoch, b"-3"),
        (znodes.parse_epoch, "²".encode()),
        (znodes.parse_broker, {"version": 5, "endpoints": "x"}),
        (znodes.parse_broker, {"version": 5, "endpoints": [], "rack": 1}),
        (znodes.parse_broker, {"version": 5, "endpoints": [], "rack": "a\x00b"}),
        (znodes.parse_broker, {"version": 5, "endpoints": [], "rack": "x" * 20_000}),
        (znodes.parse_broker, {"version": 5, "endpoints": [], "rack": "\ud800"}),
        (znodes.parse_topic, {"partitions": None}),
        (znodes.parse_topic, {"partitions": {"-1": [1]}}),
        (znodes.parse_topic, {"partitions": {"0": [1.5]}}),
        (znodes.parse_topic, {"partitions": {"0": list(range(2000))}}),
        (znodes.parse_topic, {"partitions": {}, "topic_id": "not an id"}),
        (znodes.parse_batch, {"partitions": [1]}),
        (znodes.parse_batch, {"partitions": [{"topic": "", "partition": 0, "replicas": [1]}]}),
        (znodes.parse_batch, {"partitions": [{"topic": "x" * 300, "partition": 0, "replicas": [1]}]}),
        (znodes.parse_batch, {"partitions": [{"topic": "t", "partition": 0, "replicas": None}]}),
        (znodes.parse_config, {"config": {"a": 1}}),
        (znodes.parse_config, {"config": []}),
    ],
)
def test_what_kafka_does_not_write__is_refused_by_its_path(parse: Callable[[ZNode], object], content: object) -> None:
    with raises_code(KafkaErrorCode.ZNODE_MALFORMED, ZNodeUnusable, path="/znodes/1"):
        parse(znode("/znodes/1", content))


RATE, OTHER_RATE, OTHER = "follower.replication.throttled.rate", "leader.replication.throttled.rate", "log.retention.ms"


class TestConfigsOfABrokerThatIsAway:
    @pytest.fixture
    def zookeeper(self) -> MemoryZooKeeper:
        zookeeper = MemoryZooKeeper()
        zookeeper.write(znodes.CONTROLLER, {"version": 2, "brokerid": 1, "kraftControllerEpoch": -1})
        config = {RATE: "1000", OTHER_RATE: "1000", OTHER: "7"}
        zookeeper.write(f"{znodes.BROKER_CONFIGS}/3", {"version": 1, "config": config})
        return zookeeper

    @staticmethod
    def remove(zookeeper: MemoryZooKeeper, controller: int | None = 1) -> Mapping[str, str]:
        """Return what is left."""
        znodes.remove_broker_configs(zookeeper, 3, {RATE, OTHER_RATE}, controller)
        return znodes.read_configs(zookeeper, znodes.BROKER_CONFIGS, ["3"])["3"]

    def test_lose_the_named_ones_alone__and_once(self, zookeeper: MemoryZooKeeper) -> None:
        assert self.remove(zookeeper) == {OTHER: "7"}
        [notice] = zookeeper.children(znodes.CONFIG_CHANGES)
        data = zookeeper.znodes[f"{znodes.CONFIG_CHANGES}/{notice}"].data
        assert json.loads(data) == {"version": 2, "entity_path": "brokers/3"}
        version = zookeeper.znodes[f"{znodes.BROKER_CONFIGS}/3"].version
        assert self.remove(zookeeper) == {OTHER: "7"}
        assert zookeeper.znodes[f"{znodes.BROKER_CONFIGS}/3"].version == version
        del zookeeper.znodes[f"{znodes.BROKER_CONFIGS}/3"]
        znodes.remove_broker_configs(zookeeper, 3, {RATE}, 1)

    @pytest.mark.parametrize(
        ("path", "content", "code"),
        [
            (znodes.CONTROLLER, {"brokerid": 1, "kraftControllerEpoch": 5}, KafkaErrorCode.ZOOKEEPER_NOT_IN_CHARGE),
            (znodes.CONTROLLER, {"brokerid": 2}, KafkaErrorCode.ZOOKEEPER_NOT_IN_CHARGE),
            (f"{znodes.BROKERS}/3", {"version": 5, "endpoints": []}, KafkaErrorCode.BROKER_STARTED),
        ],
        ids=["migrating", "other-controller", "started"],
    )
    def test_stay_where_kafka_would_not_know(
        self, zookeeper: MemoryZooKeeper, path: str, content: object, code: KafkaErrorCode
    ) -> None:
        zookeeper.write(path, content)
        with raises_code(code, WriteRefused):
            self.remove(zookeeper)
        assert znodes.read_configs(zookeeper, znodes.BROKER_CONFIGS, ["3"])["3"][RATE] == "1000"

    def test_stay_where_no_controller_is_named(self, zookeeper: MemoryZooKeeper) -> None:
        with raises_code(KafkaErrorCode.ZOOKEEPER_NOT_IN_CHARGE, WriteRefused):
            self.remove(zookeeper, controller=None)

    @pytest.mark.parametrize(
        ("written", "code", "kind"),
        [
            (f"{znodes.BROKER_CONFIGS}/3", KafkaErrorCode.ZNODE_CHANGED, WriteRefused),
            (f"{znodes.BROKERS}/3", KafkaErrorCode.BROKER_STARTED, WriteUnanswered),
        ],
        ids=["changed", "started"],
    )
    def test_that_somebody_else_writes_meanwhile(
        self,
        zookeeper: MemoryZooKeeper,
        monkeypatch: pytest.MonkeyPatch,
        written: str,
        code: KafkaErrorCode,
        kind: type[KafkaFailure],
    ) -> None:
        replace = zookeeper.replace

        def interrupted(znode: ZNode, data: bytes, notice: ChangeNotice) -> bool:
            zookeeper.write(written, {"version": 1, "config": {}})
            return replace(znode, data, notice)

        monkeypatch.setattr(zookeeper, "replace", interrupted)
        with raises_code(code, kind):
            self.remove(zookeeper)


SESSION = struct.pack("!iiqi", 0, 4000, 77, 16) + b"\0" * 16 + b"\0"
STAT = struct.pack("!qqqqiiiqiiq", 7, 9, 1000, 2000, 3, 0, 0, 0, 2, 0, 9)
END = struct.pack("!iBi", -1, 1, -1)  # of a transaction
DONE = struct.pack("!iBi", 5, 0, 0) + STAT + struct.pack("!iBi", 1, 0, 0) + struct.pack("!i", 2) + b"/n" + END
NOTICE = ChangeNotice("/config/changes/config_change_", b"{}")
NO_NODE, NO_AUTH, MARSHALLING = -101, -102, -5


def reply(xid: int, body: bytes = b"", error: int = 0) -> bytes:
    message = struct.pack("!iqi", xid, 9, error) + body
    return struct.pack("!i", len(message)) + message


def data_reply(xid: int, content: bytes) -> bytes:
    return reply(xid, struct.pack("!i", len(content)) + content + STAT)


def refused(*errors: int) -> bytes:
    """Answer to a transaction that was refused: an error for each part."""
    return b"".join(struct.pack("!iBii", -1, 0, error, error) for error in errors) + END


@contextmanager
def serving(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """A server that does this with each connection; its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    client.settimeout(5)
                    try:
                        answer(client)
                    except OSError:
                        continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def receive(client: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        chunk = client.recv(count - len(received))
        if not chunk:
            raise ConnectionError("the client has closed")
        received += chunk
    return received


def frame(client: socket.socket) -> bytes:
    [length] = struct.unpack("!i", receive(client, 4))
    return receive(client, length)


def answering(*answers: Callable[[int], bytes]) -> Callable[[socket.socket], None]:
    """Open a session, answer its sync, then each question with the next of these."""

    def answer(client: socket.socket) -> None:
        frame(client)
        client.sendall(struct.pack("!i", len(SESSION)) + SESSION)
        for each in (lambda xid: reply(xid, struct.pack("!i", 1) + b"/"), *answers):
            [xid] = struct.unpack("!i", frame(client)[:4])
            client.sendall(each(xid))
        frame(client)

    return answer


def identify(xid: int) -> bytes:
    return data_reply(xid, b'{"version":"1","id":"kafka-1"}')


def ask(*addresses: str, deadline: float = 2, **settings: Any) -> znodes.ControllerZNode | None:
    with open_session(ZooKeeperConnection(addresses, **settings), deadline=deadline) as session:
        [found] = session.read(["/controller"])
        return znodes.parse_controller(found) if found else None


def send(content: bytes) -> Callable[[socket.socket], None]:
    def answer(client: socket.socket) -> None:
        frame(client)
        client.sendall(content)

    return answer


def drip(client: socket.socket) -> None:
    """Bytes that never become an answer."""
    frame(client)
    client.sendall(struct.pack("!i", 1000))
    while not select.select([client], [], [], 0.05)[0]:
        client.sendall(b"\0")


class TestServers:
    @pytest.mark.parametrize(
        "answer",
        [
            lambda xid: reply(xid + 1, DONE),
            lambda xid: reply(xid, error=MARSHALLING),
            lambda _: b"",
            reply,
            lambda xid: reply(xid, DONE[:-9]),
            lambda xid: reply(xid, END),
            lambda xid: reply(xid, refused(0, 0)),
            lambda xid: reply(xid, refused(MARSHALLING, -2)),
            lambda xid: reply(xid, DONE[:77] + refused(-103, -2)[13:]),
        ],
        ids=range(9),
    )
    def test_whose_answer_to_a_write_tells_nothing__leave_it_open(self, answer: Callable[[int], bytes]) -> None:
        with (
            serving(answering(identify, answer)) as address,
            raises_code(KafkaErrorCode.ZOOKEEPER_LOST, WriteUnanswered),
            open_session(ZooKeeperConnection((address,)), deadline=0.5) as session,
        ):
            session.replace(znode("/config/brokers/3", {}), b"{}", NOTICE)

    @pytest.mark.parametrize(
        ("parts", "done"),
        [
            (DONE, True),
            (refused(-103, -2), False),
            (refused(0, -101), False),
        ],
        ids=["done", "changed", "no-folder"],
    )
    def test_that_answer_a_write__tell_whether_it_was_done(self, parts: bytes, done: bool) -> None:
        with (
            serving(answering(identify, lambda xid: reply(xid, parts))) as address,
            open_session(ZooKeeperConnection((address,)), deadline=2) as session,
        ):
            assert session.replace(znode("/config/brokers/3", {}), b"{}", NOTICE) is done

    @pytest.mark.parametrize(
        ("parts", "path"),
        [(refused(-102, -2), "/config/brokers/3"), (refused(0, -102), "/config/changes/config_change_")],
    )
    def test_whose_acl_forbids_a_write__name_the_path(self, parts: bytes, path: str) -> None:
        with (
            serving(answering(identify, lambda xid: reply(xid, parts))) as address,
            open_session(ZooKeeperConnection((address,)), deadline=2) as session,
            raises_code(KafkaErrorCode.ZNODE_PROTECTED, NotAuthorized, path=path),
        ):
            session.replace(znode("/config/brokers/3", {}), b"{}", NOTICE)

    @pytest.mark.parametrize(
        ("answer", "code", "kind"),
        [
            (frame, KafkaErrorCode.ZOOKEEPER_WITHOUT_QUORUM, ServerRefused),
            (send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), KafkaErrorCode.NOT_ZOOKEEPER, ServerRefused),
            (send(struct.pack("!i", -1)), KafkaErrorCode.NOT_ZOOKEEPER, ServerRefused),
            (send(struct.pack("!i", 2) + b"xy"), KafkaErrorCode.NOT_ZOOKEEPER, ServerRefused),
            (drip, KafkaErrorCode.ZOOKEEPER_SLOW, DeadlineExceeded),
            (answering(identify), KafkaErrorCode.ZOOKEEPER_LOST, KafkaUnreachable),
            (answering(identify, lambda xid: reply(xid + 1)), KafkaErrorCode.NOT_ZOOKEEPER, ServerRefused),
            (answering(identify, lambda xid: reply(xid, b"\0")), KafkaErrorCode.NOT_ZOOKEEPER, ServerRefused),
            (
                answering(identify, lambda xid: reply(xid, error=MARSHALLING)),
                KafkaErrorCode.ZOOKEEPER_FAILED,
                ServerRefused,
            ),
            (answering(identify, lambda xid: reply(xid, error=NO_AUTH)), KafkaErrorCode.ZNODE_PROTECTED, NotAuthorized),
            (
                answering(identify, lambda _: struct.pack("!i", 2_000_000_000)),
                KafkaErrorCode.ZOOKEEPER_ANSWER_TOO_LARGE,
                AnswerTooLarge,
            ),
            (
                answering(lambda xid: reply(xid, error=NO_NODE)),
                KafkaErrorCode.ZOOKEEPER_WITHOUT_KAFKA,
                OtherZooKeeper,
            ),
            (
                answering(lambda xid: data_reply(xid, b'{"id":"kafka-2"}')),
                KafkaErrorCode.ZOOKEEPER_OF_OTHER_CLUSTER,
                OtherZooKeeper,
            ),
        ],
        ids=range(13),
    )
    def test_that_are_no_zookeeper_of_this_cluster__are_refused_in_time(
        self, answer: Callable[[socket.socket], object], code: KafkaErrorCode, kind: type[KafkaFailure]
    ) -> None:
        threads, began = threading.active_count(), time.monotonic()
        with serving(answer) as address, raises_code(code, kind):
            ask(address, deadline=0.5, kafka_id="kafka-1")
        assert time.monotonic() - began < 2
        assert threading.active_count() == threads

    def test_without_quorum_or_away__leave_the_session_to_another(self) -> None:
        controller = answering(identify, lambda xid: data_reply(xid, b'{"brokerid":3}'))
        with serving(frame) as minority, serving(controller) as good:
            with socket.create_server(("127.0.0.1", 0)) as closed:
                away = f"127.0.0.1:{closed.getsockname()[1]}"
            for _ in range(6):  # servers are tried in any order
                found = ask(minority, away, good)
                assert found is not None
                assert found.broker_id == 3

    def test_outside_of_the_allowed_networks__are_not_connected(self) -> None:
        with raises_code(KafkaErrorCode.OUTSIDE_NETWORKS, KafkaUnreachable):
            ask("127.0.0.1:2181", networks=("10.0.0.0/8",))

    def test_without_tls__are_refused(self) -> None:
        tls = ConnectionSecurity(protocol="SSL")
        with (
            serving(lambda client: client.sendall(b"nothing of TLS")) as address,
            raises_code(KafkaErrorCode.TLS_FAILED, ServerRefused),
        ):
            ask(address, tls=tls)

    @pytest.mark.parametrize(
        "error", [ValueError("of TLS"), DeadlineExceeded(KafkaErrorCode.ZOOKEEPER_SLOW, address="z:2181")], ids=range(2)
    )
    def test_that_are_left_before_the_session_begins__leave_no_socket_open(
        self, monkeypatch: pytest.MonkeyPatch, error: Exception
    ) -> None:
        opened: list[socket.socket] = []

        def fail(_: ssl.SSLContext, sock: socket.socket, **__: object) -> ssl.SSLSocket:
            opened.append(sock)
            raise error

        monkeypatch.setattr(ssl.SSLContext, "wrap_socket", fail)
        with serving(frame) as address, pytest.raises(type(error)) as raised:
            ask(address, tls=ConnectionSecurity(protocol="SSL"))
        assert raised.value is error
        assert [sock.fileno() for sock in opened] == [-1]

    @pytest.mark.parametrize(("trusts", "host"), [("own", "127.0.0.1"), ("other", "127.0.0.1"), ("own", "localhost")])
    def test_with_tls__have_to_prove_who_they_are(self, trusts: str, host: str) -> None:
        authority = new_authority()
        context = server_context(authority)
        answer = answering(identify, lambda xid: data_reply(xid, b'{"brokerid":3}'))

        def answer_over_tls(client: socket.socket) -> None:
            with context.wrap_socket(client, server_side=True) as secured:
                answer(secured)

        tls = ConnectionSecurity(protocol="SSL", ca_pem=(authority if trusts == "own" else new_authority()).pem)
        with serving(answer_over_tls) as address:
            named = address.replace("127.0.0.1", host)
            if (trusts, host) == ("own", "127.0.0.1"):
                found = ask(named, tls=tls)
                assert found is not None
                assert found.broker_id == 3
            else:
                with raises_code(KafkaErrorCode.TLS_FAILED, ServerRefused, address=named):
                    ask(named, tls=tls)

    def test_are_told_the_login_and_the_path(self) -> None:
        seen: list[bytes] = []

        def answer(client: socket.socket) -> None:
            frame(client)
            client.sendall(struct.pack("!i", len(SESSION)) + SESSION)
            for each in (reply, reply, identify):
                seen.append(frame(client))
                [xid] = struct.unpack("!i", seen[-1][:4])
                client.sendall(each(xid) if each is identify else reply(xid, struct.pack("!i", -1)))

        with serving(answer) as address, pytest.raises(KafkaUnreachable):
            ask(address, username="kafkadash", password="pl4nted", chroot="/kafka/a")
        assert b"kafkadash:pl4nted" in seen[0]
        assert b"/kafka/a/cluster/id" in seen[2]
        assert "pl4nted" not in repr(ZooKeeperConnection((address,), password="pl4nted"))
