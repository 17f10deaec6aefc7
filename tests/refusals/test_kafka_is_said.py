"""Codes of a client of Kafka when a broker cannot be asked, and of Kafka's answers, that no contract test reaches."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import cast
from unittest import mock

import pytest

from kafkadash.core.messages import CodedMessage, coded, message_advice, message_cause
from kafkadash.kafka import mutations as wire_client
from kafkadash.kafka import reads as answers
from kafkadash.kafka.api import (
    QUORUM_TOPIC,
    AuthenticationFailed,
    ClusterConnection,
    ConfigResource,
    ConnectionSecurity,
    ItemError,
    KafkaFailure,
    KafkaUnreachable,
    OffsetKind,
    OffsetQuery,
    TopicPartition,
)
from kafkadash.kafka.connections import ssl_context
from kafkadash.kafka.dispatch import BrokerAnswer, explain_error, most_telling
from kafkadash.kafka.error_codes import item_error
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.kafka_python import errors
from kafkadash.kafka.messages import OffsetsAnswer, QuorumAnswer
from kafkadash.kafka.mutations import WireClient
from kafkadash.kafka.probe import probe
from tests.contract.certificates import new_authority
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_model import ClusterModel, Mode
from tests.contract.sockets import silent_port
from tests.refusals.driving import Case, case, each, refusal

DEADLINE = 10.0
SHORT = 0.4
ROW = TopicPartition("t", 0)


class Net:
    """Clusters and clients that end with the test."""

    def __init__(self, ending: ExitStack) -> None:
        self.ending = ending
        self.clients = 0

    def kafka(self, mode: Mode = Mode.KRAFT) -> FakeKafka:
        controllers = [2] if mode is Mode.ZOOKEEPER else [101, 102, 103]
        model = ClusterModel(2, mode=mode, controllers=controllers)
        model.add_topic("t", [[1, 2]], records=3)
        return self.ending.enter_context(FakeKafka(model))

    def client(self, *servers: str, security: ConnectionSecurity | None = None) -> WireClient:
        self.clients += 1
        made = WireClient(ClusterConnection(f"said-{self.clients}", 1, servers, security or ConnectionSecurity()))
        self.ending.callback(made.close)
        return made

    def of(
        self, set_up: Callable[[FakeKafka], object], call: Callable[[WireClient], object], mode: Mode = Mode.KRAFT
    ) -> CodedMessage:
        """What a call fails with as a whole."""
        fake = self.kafka(mode)
        set_up(fake)
        client = self.client(*fake.bootstrap_servers)
        return refusal(KafkaFailure, lambda: call(client))


@pytest.fixture
def net() -> Iterator[Net]:
    with ExitStack() as ending:
        yield Net(ending)


def another_key(_: Net) -> CodedMessage:
    one, other = new_authority().client, new_authority().client
    security = ConnectionSecurity("SSL", certificate_pem=one.pem, key_pem=other.key_pem)
    return refusal(AuthenticationFailed, lambda: ssl_context(security))


def tls_silent(net: Net) -> CodedMessage:
    (one,) = probe([net.ending.enter_context(silent_port())], ConnectionSecurity("SSL"), deadline=SHORT)
    assert one.why is not None
    return one.why


def no_certificate(_: Net) -> CodedMessage:
    """TLS 1.3: the verdict may come as an alert after the handshake, or as an end of the connection."""
    alert = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] certificate required")
    alert.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    return told(errors.KafkaConnectionError(alert))


def told(error: Exception) -> CodedMessage:
    return explain_error(error, "Broker 1 (kafka-1:9092)", time.monotonic() + 5.0).message


def all_fenced(fake: FakeKafka) -> None:
    for broker in (1, 2):
        fake.model.fence(broker)


def sorted_out(*partitions: object) -> CodedMessage:
    """Of an answer about offsets that has these partitions; no broker leaves one out knowingly."""
    wrong: dict[OffsetQuery, ItemError] = {}
    query = OffsetQuery(1, "t", 0, OffsetKind.LATEST)
    response = SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=partitions)])
    answers.sort_offsets([query], BrokerAnswer(1, cast("OffsetsAnswer", response), 0.0, 0.0), {}, wrong)
    return wrong[query].message


def leaderless(net: Net) -> CodedMessage:
    """A controller between two leaders says so without an error."""
    client = net.client(*net.kafka().bootstrap_servers)
    partition = SimpleNamespace(error_code=0, leader_id=-1)
    topic = SimpleNamespace(topic_name=QUORUM_TOPIC, partitions=[partition])
    answer = BrokerAnswer(1, cast("QuorumAnswer", SimpleNamespace(error_code=0, topics=[topic])), 0.0, 0.0)
    with mock.patch.object(client, "_with_wire", return_value=answer):
        return refusal(KafkaFailure, lambda: client.quorum(deadline=DEADLINE))


def renounced(net: Net) -> CodedMessage:
    client = net.client(*net.kafka().bootstrap_servers)
    with mock.patch.object(wire_client, "_not_controller_everywhere", return_value=True):
        return client.alter_reassignments({ROW: (2, 1)}, deadline=DEADLINE, keep_factor=True).lost[ROW].message


def not_told() -> CodedMessage:
    subject = "The reassignment of {} was not taken"
    return wire_client._AnswerSorting([ROW], subject, "Alter on the cluster").each({}).lost[ROW].message


@each(
    case(KafkaErrorCode.PAIR_UNUSABLE, another_key),
    case(KafkaErrorCode.TLS_SILENT, tls_silent),
    case(KafkaErrorCode.CLIENT_CERTIFICATE_REFUSED, no_certificate),
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
    case(KafkaErrorCode.NODE_NOT_ASKED, lambda _: told(errors.Cancelled("it was given up")), detail="it was given up"),
    case(
        KafkaErrorCode.ASKING_CRASHED,
        lambda _: told(AttributeError("'NoneType' object")),
        who="Broker 1 (kafka-1:9092)",
    ),
    case(KafkaErrorCode.NO_LIVE_BROKER, lambda n: n.of(all_fenced, lambda c: c.metadata(deadline=DEADLINE))),
    case(
        KafkaErrorCode.TURN_TOO_LATE,
        lambda n: n.of(lambda _: None, lambda c: c.describe_configs({ConfigResource.topic("t")}, deadline=0.0)),
    ),
    case(
        KafkaErrorCode.NOT_KNOWN_THERE,
        lambda _: sorted_out(SimpleNamespace(partition_index=0, error_code=0, offset=-1)),
    ),
    case(KafkaErrorCode.QUORUM_WITHOUT_LEADER, leaderless),
    case(KafkaErrorCode.CHANGE_NOT_IN_ANSWER, lambda _: not_told(), subject="The reassignment of t-0 was not taken"),
    case(KafkaErrorCode.LOST_LEADERSHIP, renounced, code="NOT_CONTROLLER"),
)
def test_by_a_client_of_kafka(one: Case, net: Net) -> None:
    one.check(net)


def test_of_several_brokers_each_advice_is_said_once() -> None:
    failures = [
        KafkaUnreachable(KafkaErrorCode.NODE_NOT_CONNECTED, who=who, detail="refused")
        for who in ("Broker 1", "Broker 2")
    ]
    assert str(most_telling([*failures, failures[0]])) == (
        "Broker 1 cannot be reached: refused. Broker 2 cannot be reached: refused. "
        + message_advice(KafkaErrorCode.NODE_NOT_CONNECTED)
    )


def test_a_refused_change_leaves_what_to_do_to_the_page_that_shows_it() -> None:
    refused = item_error(42, "It failed", detail="wrong")
    assert refused.cause == message_cause(KafkaErrorCode.ITEM_REFUSED, **refused.message.params)


def test_a_refused_change_that_only_says_what_to_do_is_told_whole() -> None:
    nothing_sent = ItemError(coded(KafkaErrorCode.NOTHING_SENT, why="No broker answers."))
    assert nothing_sent.cause == str(nothing_sent.message)
