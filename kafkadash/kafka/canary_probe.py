"""End-to-end probe of partitions with librdkafka: a record is produced to each and consumed, as clients do.

A first record opens the connections of both sides, the second is measured. Where the first comes more than a second
after another partition could be read, which connecting does not explain, that time is the measurement: the second may
come after the trouble. Both clients are made for one probe and closed at its end, so that nothing is shared between
processes.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from kafkadash.core import clock
from kafkadash.kafka.api import (
    CanaryAnswer,
    ClusterConnection,
    KafkaUnreachable,
    NotSupported,
    PartitionProbe,
    ProbeFault,
)
from kafkadash.kafka.connections import KERBEROS, SASL_MECHANISMS
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.tokens import fetch_token, read_extensions

OAUTHBEARER = "OAUTHBEARER"
GROUP = "kafkadash-canary"
"""Required by librdkafka; partitions are assigned and nothing is committed, so no such group exists."""
WAIT_S = 0.05
"""Longest single wait for a record or for an answer; a record that comes ends it."""
SHORTEST_WAIT_S = 0.001
LATE_BY = 0.05
"""An answer is taken after the wait in which it came, so waits last no longer than this part of what it has taken."""
CONNECTED_S = 1.0
GOODBYE_S = 2.0
_SILENCES = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001  librdkafka's own codes have such names
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
    }
)
"""Errors of connections that any client would meet; of others, such as a refused login, the cause may be here."""
_FORBIDDEN = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})
"""Rights that are missing say nothing about a broker."""
_ALERT = "SSL alert"
"""In OpenSSL's text where the peer refuses the client: with TLS 1.3 after the handshake, as a broken connection."""
PARTITION_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001
_FIRST, _SECOND = b"w", b"m"


def client_settings(connection: ClusterConnection) -> dict[str, Any]:
    """Return the settings of librdkafka for a connection, without those of one client.

    Raises NotSupported for Kerberos, and where networks are limited: librdkafka connects whatever brokers advertise.
    Raises as ``fetch_token`` does for OAUTHBEARER: one token is fetched here and is that of all clients made of these
    settings.
    """
    security = connection.security
    if connection.networks:
        raise NotSupported(KafkaErrorCode.CANARY_OF_LIMITED_NETWORKS)
    settings: dict[str, Any] = {
        "bootstrap.servers": ",".join(connection.bootstrap_servers),
        "client.id": f"{connection.client_id}-canary",
        "security.protocol": security.protocol,
        "log_level": 0,
        "error_cb": _ignore_error,
        "socket.timeout.ms": 10_000,
        "api.version.request.timeout.ms": 5_000,
        "topic.metadata.refresh.interval.ms": -1,
        "allow.auto.create.topics": False,
    }
    if security.protocol.endswith("SSL"):
        settings["ssl.endpoint.identification.algorithm"] = "https" if security.check_hostname else "none"
        pems = {
            "ssl.ca.pem": security.ca_pem,
            "ssl.certificate.pem": security.certificate_pem,
            "ssl.key.pem": security.key_pem,
        }
        settings |= {name: pem for name, pem in pems.items() if pem}
    if security.protocol.startswith("SASL"):
        known = ", ".join(SASL_MECHANISMS)
        if security.sasl_mechanism == KERBEROS:
            raise NotSupported(KafkaErrorCode.KERBEROS_UNSUPPORTED, known=known)
        settings["sasl.mechanisms"] = security.sasl_mechanism
        if security.sasl_mechanism == OAUTHBEARER:
            settings["oauth_cb"] = _build_token_callback(connection)
        else:
            settings["sasl.username"] = security.sasl_username
            settings["sasl.password"] = security.sasl_password
    return settings


def _ignore_error(_: KafkaError) -> None:
    """Ignore errors of connections: they show in the partitions that the broker leads."""


def _build_token_callback(connection: ClusterConnection) -> Callable[[str], tuple[str, float, str, dict[str, str]]]:
    """Return a callback that answers at once: librdkafka waits for it in whole seconds, and hides what it raises."""
    token = fetch_token(connection)
    ends_at = time.time() + token.lifetime_s
    extensions = read_extensions(connection.security.oauth_extensions)
    return lambda _: (token.text, ends_at, connection.security.sasl_username, extensions)


def probe_partitions(connection: ClusterConnection, kafka_id: str, topic: str, *, deadline: float) -> CanaryAnswer:
    """Measure every partition of a topic at the same time, for ``deadline`` seconds at most.

    Before that, at most half as long passes until the leaders are known, and what a token and two clients take (with
    a token librdkafka needs a second for each). Raises as ``client_settings`` does, and KafkaUnreachable where another
    cluster than ``kafka_id`` answers, the topic may not be read or written, no client can be made, or brokers and
    client do not get on.
    """
    met: list[KafkaError] = []
    settings = client_settings(connection)
    with _producer_of({**settings, "error_cb": met.append}, deadline) as producer:
        taken_at = clock.seconds()
        try:
            probes = _read_leaders(producer, kafka_id, topic, deadline / 2)
        except KafkaException as error:
            producer.poll(0)  # the errors of connections are told now
            return CanaryAnswer({}, taken_at, _name_silence(error, met))
        led = [partition for partition, probe in probes.items() if probe.fault is None]
        if led:
            with _consumer_of(settings, topic, led) as consumer:
                probing = _Probing(producer, consumer, topic, probes, time.monotonic() + deadline)
                try:
                    probing.run()
                finally:
                    probing.close()
    return CanaryAnswer(probes, taken_at)


@contextmanager
def _producer_of(settings: Mapping[str, Any], deadline: float) -> Iterator[Producer]:
    """Waits for what it dropped at the end: records that are left would keep a client, with its threads, for good."""
    own = {"acks": "all", "linger.ms": 0, "message.timeout.ms": max(1000, int(deadline * 1000))}
    with _refusing_settings():
        producer = Producer({**settings, **own})
    try:
        producer.poll(0)
        yield producer
    finally:
        producer.purge()
        ends = time.monotonic() + GOODBYE_S
        while len(producer) and time.monotonic() < ends:
            producer.poll(WAIT_S)


@contextmanager
def _refusing_settings() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise KafkaUnreachable(KafkaErrorCode.CANARY_UNREACHABLE, detail=_name_error(error)) from None


def _name_error(error: KafkaException) -> str:
    own = error.args[0] if error.args else None
    return str(own.name()) if isinstance(own, KafkaError) else type(error).__name__


def _name_silence(error: KafkaException, met: Sequence[KafkaError]) -> str:
    """Return the name of the error where no broker answers; raises KafkaUnreachable where the cause may be here."""
    told = [*met, *(each for each in error.args[:1] if isinstance(each, KafkaError))]
    ours = next((each for each in told if each.code() not in _SILENCES or _ALERT in each.str()), None)
    if ours is not None or not told:
        detail = _name_error(error) if ours is None else str(ours.name())
        raise KafkaUnreachable(KafkaErrorCode.CANARY_UNREACHABLE, detail=detail) from None
    return _name_error(error)


def _read_leaders(producer: Producer, kafka_id: str, topic: str, seconds: float) -> dict[int, PartitionProbe]:
    metadata = producer.list_topics(topic, timeout=seconds)
    if kafka_id and metadata.cluster_id != kafka_id:
        raise KafkaUnreachable(KafkaErrorCode.CANARY_OF_OTHER_CLUSTER, expected=kafka_id, found=metadata.cluster_id)
    told = metadata.topics.get(topic)
    if told is None or (told.error is not None and told.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART):
        return {}
    if told.error is not None:
        raise KafkaUnreachable(KafkaErrorCode.CANARY_TOPIC_UNREADABLE, detail=told.error.name())
    probes = {}
    for number, partition in sorted(told.partitions.items()):
        leader = partition.leader if partition.leader >= 0 else None
        fault = ProbeFault.NO_LEADER if leader is None else None
        probes[number] = PartitionProbe(leader, tuple(partition.replicas), fault=fault)
    return probes


@contextmanager
def _consumer_of(settings: Mapping[str, Any], topic: str, partitions: list[int]) -> Iterator[Consumer]:
    own = {
        "group.id": GROUP,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 100,
    }
    with _refusing_settings():
        consumer = Consumer({**settings, **own})
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_END) for partition in partitions])
        yield consumer
    finally:
        consumer.close()


@dataclass(frozen=True, slots=True)
class _SentRecord:
    """The newest record to a partition; ``at`` is on the monotonic clock."""

    kind: bytes
    at: float


def choose_wait(passed_s: float) -> float:
    """Return how long to wait for a record, in seconds; ``passed_s``: since the newest one was sent.

    librdkafka measures the time to an answer (``Message.latency``) when the answer is taken, not when it came.
    """
    return min(WAIT_S, max(SHORTEST_WAIT_S, LATE_BY * passed_s))


class _Probing:
    """Probe of all partitions: the end is found, then a record opens connections, then one is measured."""

    def __init__(
        self, producer: Producer, consumer: Consumer, topic: str, probes: Mapping[int, PartitionProbe], until: float
    ) -> None:
        self._producer, self._consumer, self._topic = producer, consumer, topic
        self._probes, self._until = probes, until
        self._mark = secrets.token_bytes(8)
        self._open = {partition for partition, probe in probes.items() if probe.fault is None}
        self._at_end: set[int] = set()
        self._sent: dict[int, _SentRecord] = {}
        self._first_ready = self._sent_at = 0.0
        self._forbidden: KafkaError | None = None
        self._closed = False

    def run(self) -> None:
        """Until each partition has its record back and its answer; both may come first.

        Raises KafkaUnreachable where the topic may not be read or written.
        """
        while self._open and time.monotonic() < self._until:
            message = self._consumer.poll(choose_wait(time.monotonic() - self._sent_at))
            self._producer.poll(0)
            if message is not None:
                self._take(message)
            if self._forbidden is not None:
                raise KafkaUnreachable(KafkaErrorCode.CANARY_TOPIC_UNREADABLE, detail=self._forbidden.name())
        for partition in self._open:
            probe = self._probes[partition]
            if probe.fault is None and probe.consumed_s is None:
                probe.fault = self._tell_missing(partition, probe)

    def close(self) -> None:
        """Ignore answers from here on: records that are dropped say nothing about a broker."""
        self._closed = True

    def _tell_missing(self, partition: int, probe: PartitionProbe) -> ProbeFault:
        if partition not in self._at_end:
            return ProbeFault.NOT_READABLE
        return ProbeFault.NOT_WRITTEN if probe.written_s is None else ProbeFault.NOT_CONSUMED

    def _take(self, message: Message) -> None:
        now, partition, error = time.monotonic(), message.partition(), message.error()
        if partition is None or partition not in self._open:
            return
        if error is not None:
            if error.code() in _FORBIDDEN:
                self._forbidden = error
            elif error.code() == PARTITION_EOF and partition not in self._at_end:
                self._at_end.add(partition)
                self._first_ready = self._first_ready or now
                self._send(partition, _FIRST)
            return
        value, probe, sent = message.value(), self._probes[partition], self._sent.get(partition)
        if sent is None or value != sent.kind + self._mark:
            return
        if sent.kind == _FIRST and now - self._first_ready < CONNECTED_S:
            probe.written_s = None
            self._send(partition, _SECOND)
        else:
            probe.consumed_s = now - (self._first_ready if sent.kind == _FIRST else sent.at)
            probe.epoch = message.leader_epoch()
            if probe.written_s is not None:
                self._open.discard(partition)

    def _send(self, partition: int, kind: bytes) -> None:
        self._sent_at = time.monotonic()
        self._sent[partition] = _SentRecord(kind, self._sent_at)

        def told(error: KafkaError | None, message: Message) -> None:
            probe = self._probes[partition]
            if self._closed or kind != self._sent[partition].kind:
                return
            if error is not None:
                self._forbidden = error if error.code() in _FORBIDDEN else self._forbidden
                self._fail(partition, error.name())
                return
            probe.written_s = message.latency()
            if probe.consumed_s is not None:
                self._open.discard(partition)

        try:
            self._producer.produce(self._topic, kind + self._mark, partition=partition, on_delivery=told)
        except (KafkaException, BufferError) as error:  # the topic was deleted meanwhile, or made anew
            self._fail(partition, _name_error(error) if isinstance(error, KafkaException) else type(error).__name__)

    def _fail(self, partition: int, name: str) -> None:
        probe = self._probes[partition]
        probe.fault, probe.refused = ProbeFault.NOT_WRITTEN, name
        self._open.discard(partition)
