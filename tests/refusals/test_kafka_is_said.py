"""What a client of Kafka says when a broker cannot be asked, and of Kafka's answers, on a cluster made for it."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from kafkadash.domain.messages import message_advice
from kafkadash.kafka import answers, messages, wire_client
from kafkadash.kafka.asking import Answer
from kafkadash.kafka.changing import Changed, ConfigChange, ConfigOperation
from kafkadash.kafka.client import AnswerOversized
from kafkadash.kafka.codes import call_failure, item_error
from kafkadash.kafka.connection import Security
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.failures import explained, most_telling
from kafkadash.kafka.hidden_topics import hidden_sentence, hidden_topics
from kafkadash.kafka.kafka_python import errors
from kafkadash.kafka.messages import OffsetsAnswer, QuorumAnswer
from kafkadash.kafka.port import (
    ConfigResource,
    ItemError,
    KafkaFailure,
    OffsetKind,
    OffsetQuery,
    TopicPartition,
    Unreachable,
)
from kafkadash.kafka.wire_client import WireClient
from tests.contract.certificates import new_authority, server_context
from tests.contract.fake_answers import (
    DESCRIBE_CLUSTER,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_QUORUM,
    LIST_REASSIGNMENTS,
    METADATA,
)
from tests.contract.fake_broker import FakeKafka, Login
from tests.contract.fake_groups import FakeMember
from tests.contract.fake_model import Mode, QuorumState
from tests.contract.sockets import answering_port, closed_port, silent_port
from tests.refusals.driving import Case, case, each, refused
from tests.refusals.net import DEADLINE, SHORT, Net, net
from tests.waiting import wait_until

__all__ = ["net"]
ROW = TopicPartition("t", 0)
RATE = "leader.replication.throttled.rate"
PLAIN = Security("SASL_PLAINTEXT", "PLAIN", "dash", "wrong")


def another_certificate(net: Net) -> str:
    broker = net.kafka(1, tls=server_context(new_authority()))
    return net.asked(broker.bootstrap_servers, Security("SSL", ca_pem=new_authority().pem))


def no_certificate(net: Net) -> str:
    """TLS 1.3: the verdict may come as an alert after the handshake, or as an end of the connection."""
    alert = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] certificate required")
    alert.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    return str(explained(errors.KafkaConnectionError(alert), "Broker 1 (kafka-1:9093)", time.monotonic() + 1))


def other_mechanism(net: Net) -> str:
    fake = net.kafka(1, login=Login("PLAIN", "dash", "right"))
    return net.asked(fake.bootstrap_servers, replace(PLAIN, sasl_mechanism="SCRAM-SHA-512"))


def told(error: Exception, seconds: float = 5.0) -> str:
    return str(explained(error, "Broker 1 (kafka-1:9092)", time.monotonic() + seconds))


def controllers_silent(net: Net) -> str:
    fake = net.kafka()
    fake.set_quorum(QuorumState.SILENT)
    client = net.client(fake.bootstrap_servers)
    client.metadata(deadline=DEADLINE)
    try:
        return refused(KafkaFailure, lambda: client.quorum(deadline=SHORT))
    finally:
        fake.set_quorum(QuorumState.LED)


def shared_question(net: Net) -> str:
    """The question for the brokers' addresses hangs for longer than one may wait that shares it."""
    silent = net.ending.enter_context(silent_port())
    client = net.client(silent)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(refused, KafkaFailure, lambda: client.metadata(deadline=3.0))
        wire = client._current_wire()
        wait_until(lambda: wire._asker._refreshing is not None, "it asks for the addresses")
        said = refused(KafkaFailure, lambda: client.metadata(deadline=SHORT))
        first.result()
    return said


def all_fenced(fake: FakeKafka) -> None:
    for broker in (1, 2):
        fake.model.fence(broker)


def renewed(net: Net) -> str:
    client = net.client(net.kafka().bootstrap_servers)
    client.metadata(deadline=DEADLINE)
    client.close()
    return refused(KafkaFailure, lambda: client.metadata(deadline=DEADLINE))


def hung(net: Net) -> str:
    client = net.client(net.kafka().bootstrap_servers)
    client.metadata(deadline=DEADLINE)
    free = threading.Event()
    net.ending.callback(free.set)
    client._current_wire()._loop.call_soon_threadsafe(lambda: free.wait(30))
    return refused(KafkaFailure, lambda: client.metadata(deadline=SHORT))


def closed_while_waiting(net: Net) -> str:
    fake = net.kafka()
    client = net.client(fake.bootstrap_servers)
    client.metadata(deadline=DEADLINE)
    for broker in (1, 2):
        fake.freeze(broker)
    wire = client._current_wire()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(refused, KafkaFailure, lambda: client.metadata(deadline=DEADLINE))
        wait_until(lambda: bool(wire._calls), "it asks")
        wire.close()
        return waiting.result()


def configs(net: Net, deadline: float, **set_up: Any) -> str:
    client = net.client(net.kafka(**set_up).bootstrap_servers)
    return refused(KafkaFailure, lambda: client.describe_configs({ConfigResource.topic("t")}, deadline=deadline))


def directories(net: Net, *, old: bool) -> str:
    fake = net.kafka()
    fake.denied.add(DESCRIBE_LOG_DIRS)
    if old:
        fake.versions[DESCRIBE_LOG_DIRS] = (1, 2)
    return net.client(fake.bootstrap_servers).log_dirs([1], deadline=DEADLINE).errors[1].text


def offset(net: Net, broker: int, partition: int = 0) -> str:
    fake = net.kafka()
    client = net.client(fake.bootstrap_servers)
    query = OffsetQuery(broker, "t", partition, OffsetKind.LATEST)
    return client.replica_offsets([query], deadline=DEADLINE).errors[query].text


def lost_directory(net: Net) -> str:
    fake = net.kafka()
    fake.model.lose_directory(1, 0)
    failed, *_ = net.client(fake.bootstrap_servers).log_dirs([1], deadline=DEADLINE).brokers[1]
    assert failed.error is not None
    return failed.error.text


def sorted_out(*partitions: object) -> str:
    """Of an answer about offsets that has these partitions; no broker leaves one out knowingly."""
    wrong: dict[OffsetQuery, ItemError] = {}
    query = OffsetQuery(1, "t", 0, OffsetKind.LATEST)
    response = SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=partitions)])
    answers.sort_offsets([query], Answer(1, cast("OffsetsAnswer", response), 0.0, 0.0), {}, wrong)
    return wrong[query].text


def odd_member(net: Net) -> str:
    fake = net.kafka()
    fake.model.add_group("odd", members=[FakeMember("m-1", "c", {}, raw=b"?")])
    error = net.client(fake.bootstrap_servers).groups(deadline=DEADLINE).groups["odd"].error
    assert error is not None
    return error.text


def leaderless(net: Net) -> str:
    """A controller between two leaders says so without an error."""
    fake = net.kafka()
    client = net.client(fake.bootstrap_servers)
    partition = SimpleNamespace(error_code=0, leader_id=-1)
    response = SimpleNamespace(
        error_code=0, topics=[SimpleNamespace(topic_name=messages.QUORUM_TOPIC, partitions=[partition])]
    )
    answer = Answer(1, cast("QuorumAnswer", response), 0.0, 0.0)
    with mock.patch.object(client, "_with_wire", return_value=answer):
        return refused(KafkaFailure, lambda: client.quorum(deadline=DEADLINE))


def hidden(net: Net) -> str:
    fake = net.kafka()
    fake.denied.add(METADATA)
    return hidden_sentence(hidden_topics(net.client(fake.bootstrap_servers), ["t"], deadline=DEADLINE))


def with_controllers(net: Net, set_up: Callable[[FakeKafka], object], *, listening: bool = True) -> str:
    """The rate of a broker that is down is changed through the controllers."""
    fake = net.kafka(3)
    fake.start_controllers()
    servers = fake.controller_servers if listening else (net.ending.enter_context(closed_port()),)
    fake.kill(3)
    fake.model.fence(3)
    set_up(fake)
    client = net.client(fake.bootstrap_servers, controller_servers=servers)
    change = ConfigChange(ConfigResource.broker(3), RATE, ConfigOperation.SET, "1000000")
    return refused(KafkaFailure, lambda: client.alter_configs([change], deadline=DEADLINE))


def partly_unsent(net: Net) -> str:
    fake = net.kafka(3)
    fake.kill(3)
    fake.model.fence(3)
    client = net.client(fake.bootstrap_servers)
    dead, alive = ConfigResource.broker(3), ConfigResource.broker(1)
    changes = [ConfigChange(each, RATE, ConfigOperation.SET, "1000000") for each in (dead, alive)]
    return client.alter_configs(changes, deadline=DEADLINE).refused[dead].text


def moved(client: WireClient) -> Changed[TopicPartition]:
    return client.alter_reassignments({ROW: (2, 1)}, deadline=DEADLINE, keep_factor=True)


def renounced(net: Net) -> str:
    client = net.client(net.kafka().bootstrap_servers)
    with mock.patch.object(wire_client, "_not_controller_everywhere", return_value=True):
        return moved(client).lost[ROW].text


def not_told() -> str:
    subject = "The reassignment of {} was not taken"
    return wire_client._Sorting([ROW], subject, "Alter on the cluster").each({}).lost[ROW].text


@each(
    case(KafkaErrorCode.NODE_NOT_CONNECTED, lambda n: n.at(closed_port()), detail="connection refused"),
    case(KafkaErrorCode.CLIENT_CERTIFICATE_REFUSED, no_certificate),
    case(KafkaErrorCode.HANDSHAKE_FAILED, another_certificate),
    case(
        KafkaErrorCode.CREDENTIALS_REFUSED,
        lambda n: n.asked(n.kafka(1, login=Login("PLAIN", "dash", "right")).bootstrap_servers, PLAIN),
        detail="Authentication failed: Invalid username or password",
    ),
    case(KafkaErrorCode.SASL_MECHANISM_REFUSED, other_mechanism),
    case(
        KafkaErrorCode.NODE_TOO_OLD,
        lambda _: told(errors.UnsupportedVersionError("no Metadata v1")),
        detail="no Metadata v1",
    ),
    case(
        KafkaErrorCode.EARLIER_UNANSWERED,
        lambda _: told(errors.KafkaTimeoutError("too late")),
        who="Broker 1 (kafka-1:9092)",
    ),
    case(KafkaErrorCode.NODE_TOO_SLOW, lambda n: n.at(silent_port(), seconds=SHORT)),
    case(KafkaErrorCode.NOT_KAFKA, lambda n: n.at(answering_port(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n"))),
    case(KafkaErrorCode.ANSWER_TOO_LARGE, lambda _: told(AnswerOversized("Invalid frame length: 500000000")), most=100),
    case(
        KafkaErrorCode.CLOSED_INSTEAD,
        lambda n: n.asked(n.kafka(1, login=Login("PLAIN", "dash", "right")).bootstrap_servers),
    ),
    case(KafkaErrorCode.NODE_NOT_ASKED, lambda _: told(errors.Cancelled("it was given up")), detail="it was given up"),
    case(
        KafkaErrorCode.ASKING_CRASHED,
        lambda _: told(AttributeError("'NoneType' object")),
        who="Broker 1 (kafka-1:9092)",
    ),
    case(KafkaErrorCode.CONTROLLERS_SILENT, controllers_silent, seconds=SHORT),
    case(KafkaErrorCode.BOOTSTRAP_SILENT, shared_question),
    case(KafkaErrorCode.NO_LIVE_BROKER, lambda n: n.of(all_fenced, lambda c: c.metadata(deadline=DEADLINE))),
    case(
        KafkaErrorCode.BROKER_NOT_LIVE,
        lambda n: n.client(n.kafka().bootstrap_servers).log_dirs([77], deadline=DEADLINE).errors[77].message,
        broker=77,
    ),
    case(KafkaErrorCode.CONNECTION_RENEWED, renewed),
    case(KafkaErrorCode.CONNECTION_HUNG, hung, seconds=SHORT),
    case(KafkaErrorCode.CLOSED_WHILE_WAITING, closed_while_waiting),
    case(KafkaErrorCode.TURN_TOO_LATE, lambda n: configs(n, 0.0)),
    case(
        KafkaErrorCode.CALL_FORBIDDEN,
        lambda n: n.of(lambda f: f.denied.add(LIST_REASSIGNMENTS), lambda c: c.list_reassignments(deadline=DEADLINE)),
        permission="Describe on the cluster",
        code="CLUSTER_AUTHORIZATION_FAILED",
    ),
    case(
        KafkaErrorCode.CALL_UNSUPPORTED,
        lambda _: str(call_failure(35, "DescribeQuorum", permission="")),
        request="DescribeQuorum",
        code="UNSUPPORTED_VERSION",
        said="",
    ),
    case(
        KafkaErrorCode.CALL_WITHOUT_CONTROLLER,
        lambda n: n.of(lambda f: f.set_quorum(QuorumState.LEADERLESS), lambda c: c.quorum(deadline=DEADLINE)),
        request="DescribeQuorum",
        said="",
    ),
    case(
        KafkaErrorCode.CALL_FAILED,
        lambda _: str(call_failure(42, "Metadata", permission="", detail="It was wrong")),
        name="INVALID_REQUEST",
        code=42,
        said=": It was wrong",
    ),
    case(KafkaErrorCode.ITEM_FORBIDDEN, lambda n: directories(n, old=False), permission="Describe on the cluster"),
    case(KafkaErrorCode.ITEM_NOT_NOW, lambda n: offset(n, 1, partition=9)),
    case(KafkaErrorCode.ITEM_REFUSED, lost_directory, code="KAFKA_STORAGE_ERROR"),
    case(KafkaErrorCode.NOT_IN_ANSWER, lambda _: sorted_out()),
    case(
        KafkaErrorCode.NOT_KNOWN_THERE,
        lambda _: sorted_out(SimpleNamespace(partition_index=0, error_code=0, offset=-1)),
    ),
    case(KafkaErrorCode.ASSIGNMENT_UNREADABLE, odd_member, member="m-1", group="odd"),
    case(KafkaErrorCode.DIRECTORIES_HIDDEN, lambda n: directories(n, old=True), broker=1),
    case(KafkaErrorCode.TOPICS_HIDDEN, hidden, which="“t”"),
    case(
        KafkaErrorCode.NOT_OFFERED,
        lambda n: n.of(
            lambda f: f.versions.update({DESCRIBE_CLUSTER: None}), lambda c: c.permissions(deadline=DEADLINE)
        ),
        what="DescribeCluster (Kafka 2.8)",
    ),
    case(
        KafkaErrorCode.NO_QUORUM_TO_DESCRIBE,
        lambda n: n.of(lambda f: f.versions.update({DESCRIBE_QUORUM: None}), lambda c: c.quorum(deadline=DEADLINE)),
    ),
    case(
        KafkaErrorCode.ANOTHER_QUORUM,
        lambda n: with_controllers(n, lambda f: setattr(f.model, "cluster_of_controllers", "another-cluster")),
        answered="another-cluster",
    ),
    case(KafkaErrorCode.NO_LEADER_THERE, lambda n: with_controllers(n, lambda _: None, listening=False)),
    case(KafkaErrorCode.NOTHING_SENT, partly_unsent),
    case(KafkaErrorCode.QUORUM_WITHOUT_LEADER, leaderless),
    case(
        KafkaErrorCode.NO_CONTROLLER,
        lambda n: n.of(
            lambda f: setattr(f.model, "controller", -1),
            lambda c: c.list_reassignments(deadline=DEADLINE),
            mode=Mode.ZOOKEEPER,
        ),
    ),
    case(KafkaErrorCode.CHANGE_NOT_IN_ANSWER, lambda _: not_told(), subject="The reassignment of t-0 was not taken"),
    case(KafkaErrorCode.LOST_LEADERSHIP, renounced, code="NOT_CONTROLLER"),
)
def test_by_a_client_of_kafka(one: Case, net: Net) -> None:
    one.check(net)


def test_of_several_brokers_each_advice_is_said_once() -> None:
    failures = [
        Unreachable(KafkaErrorCode.NODE_NOT_CONNECTED, who=who, detail="refused") for who in ("Broker 1", "Broker 2")
    ]
    assert str(most_telling([*failures, failures[0]])) == (
        "Broker 1 could not be connected: refused. Broker 2 could not be connected: refused. "
        + message_advice(KafkaErrorCode.NODE_NOT_CONNECTED)
    )


def test_a_refused_change_leaves_what_to_do_to_the_page_that_shows_it() -> None:
    assert item_error(42, "It failed", detail="wrong", advised=False).message == "It failed: wrong (INVALID_REQUEST)."
