"""Boundary to kafka-python's networking: its connection manager, with our own sockets, TLS contexts and log filter.

Four behaviours of the library are replaced: it resolves names on the thread that serves every connection, its TLS
handshake has no time limit, it leaves a socket that cannot be connected to the garbage collector, and it drops an
answer that arrives together with the end of the stream (a broker refuses a login like that). Everything else (framing,
API versions, SASL, request timers) is the library's.

The library logs raw request bytes and decoded SASL messages at DEBUG, which would put passwords into the log, and an
ERROR for every failed connection, although the caller gets each such failure as an error or as data. So its log is
filtered at every level.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import secrets
import socket
import ssl
import tempfile
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from cryptography.hazmat.primitives import serialization

from kafkadash.kafka.api import (
    AuthenticationFailed,
    ClusterConnection,
    ConnectionSecurity,
    KafkaUnreachable,
    NotSupported,
)
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.kafka_python import (
    Future,
    KafkaConnectionManager,
    KafkaSSLTransport,
    KafkaTCPTransport,
    NetworkSelector,
    errors,
)


def ssl_context(security: ConnectionSecurity) -> ssl.SSLContext:
    """Verifies brokers against ``ca_pem`` (or the system's store) and presents ``certificate_pem`` if there is one.

    Raises AuthenticationFailed with a sentence that names the text that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = security.check_hostname
    if security.ca_pem:
        try:
            context.load_verify_locations(cadata=security.ca_pem)
        except (ssl.SSLError, TypeError, ValueError) as error:  # TypeError: not only ASCII
            raise AuthenticationFailed(KafkaErrorCode.CA_UNUSABLE, detail=error) from None
    else:
        context.load_default_certs()
    if security.certificate_pem or security.key_pem:
        _present_certificate(context, security)
    return context


def _present_certificate(context: ssl.SSLContext, security: ConnectionSecurity) -> None:
    """OpenSSL reads a key from a file only, so it goes there encrypted with a passphrase that is never stored."""
    if not (security.certificate_pem and security.key_pem):
        raise AuthenticationFailed(KafkaErrorCode.CERTIFICATE_WITHOUT_KEY)
    try:
        key = serialization.load_pem_private_key(security.key_pem.encode(), password=None)
    except (TypeError, ValueError):
        raise AuthenticationFailed(KafkaErrorCode.KEY_UNUSABLE) from None
    passphrase = secrets.token_bytes(32).hex()
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase.encode()),
    )
    with tempfile.TemporaryDirectory(prefix="kafkadash-tls-") as folder:
        path = Path(folder) / "client.pem"
        path.write_bytes(encrypted + b"\n" + security.certificate_pem.encode())
        try:
            context.load_cert_chain(path, password=passphrase)
        except (ssl.SSLError, ValueError) as error:
            raise AuthenticationFailed(KafkaErrorCode.PAIR_UNUSABLE, detail=error) from None


def tls_reason(error: OSError) -> str:
    """Return the reason that OpenSSL or the other side's alert gives, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate was rejected ({error.verify_message})"
    if isinstance(error, ssl.SSLEOFError | ConnectionResetError):
        return "the other side closed the TLS handshake; the listener may not use TLS"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error)


NodeId = int | str
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_IN_PROGRESS = (errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK)
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
KERBEROS = "GSSAPI"
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


MOST_ANSWER_BYTES = 100_000_000


class AnswerOversized(Exception):
    """A broker began an answer of more than ``MOST_ANSWER_BYTES``; the connection is closed."""


class ConnectFailed(errors.KafkaConnectionError):  # type: ignore[misc]
    """TCP could not connect, or the host name has no address."""


class TlsFailed(errors.KafkaConnectionError):  # type: ignore[misc]
    """The TLS handshake did not succeed."""


class _HearsLastWords:
    """Hands over what was read before the end of the stream; the end is met again by the next read."""

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        data: bytes
        data, error = super()._sock_recv()  # type: ignore[misc]
        return (data, None) if data else (data, error)


class TcpTransport(_HearsLastWords, KafkaTCPTransport):  # type: ignore[misc]
    pass


class TlsTransport(_HearsLastWords, KafkaSSLTransport):  # type: ignore[misc]
    pass


class WirePromise(Awaitable[Any], Protocol):
    """kafka.future.Future as we use it."""

    def add_callback(self, callback: Callable[[Any], object]) -> object: ...

    def add_both(self, callback: Callable[[Any], object]) -> object: ...

    def success(self, value: object) -> object: ...

    def failure(self, error: BaseException) -> object: ...

    is_done: bool
    exception: BaseException | None


class WireLoop(Protocol):
    """kafka.net.selector.NetworkSelector as we use it: one thread polls, any thread schedules."""

    def poll(self) -> None: ...

    def wakeup(self) -> None: ...

    def close(self) -> None: ...

    def call_soon_threadsafe(self, task: Callable[[], object]) -> object: ...

    def call_soon_with_future(self, task: Callable[..., Coroutine[Any, Any, Any]], *args: object) -> WirePromise: ...

    def call_later(self, delay: float, task: Callable[[], object]) -> object: ...

    def sleep(self, delay: float) -> Awaitable[None]: ...


class NodeConnection(Protocol):
    """kafka.net.connection.KafkaConnection as we use it."""

    @property
    def init_future(self) -> WirePromise: ...

    @property
    def close_future(self) -> WirePromise: ...

    @property
    def closed(self) -> bool: ...

    @property
    def connected(self) -> bool: ...

    transport: Any  # None until TCP and TLS are through
    broker_version_data: Any

    def send_request(self, request: object, request_timeout_ms: float) -> WirePromise: ...

    def close(self, error: BaseException) -> None: ...


def new_loop(client_id: str) -> WireLoop:
    # Decoding the metadata of 200,000 partitions takes longer than the library's idea of a slow task.
    loop: WireLoop = NetworkSelector(client_id=client_id, slow_task_threshold_secs=0)
    return loop


def new_promise() -> WirePromise:
    promise: WirePromise = Future()
    return promise


def client_options(connection: ClusterConnection) -> Mapping[str, object]:
    """kafka-python's options for a connection.

    Raises Unreachable for an address that cannot be parsed, NotSupported for an unknown protocol or mechanism, and
    AuthenticationFailed for unusable certificates.
    """
    return {
        "bootstrap_servers": [_checked_address(address) for address in connection.bootstrap_servers],
        "client_id": connection.client_id,
        "client_software_name": "kafkadash",
        "max_in_flight_requests_per_connection": 1000,
        "receive_message_max_bytes": MOST_ANSWER_BYTES,
        "metadata_max_age_ms": 30_000,
        "reconnect_backoff_max_ms": 1000,
        **_security_options(connection.security),
    }


def _checked_address(address: str) -> str:
    host, _, port = address.strip().rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise KafkaUnreachable(KafkaErrorCode.ADDRESS_MALFORMED, address=address)
    return address.strip()


def _security_options(security: ConnectionSecurity) -> dict[str, object]:
    if security.protocol not in _PROTOCOLS:
        raise NotSupported(KafkaErrorCode.PROTOCOL_UNKNOWN, protocol=security.protocol, known=", ".join(_PROTOCOLS))
    options: dict[str, object] = {"security_protocol": security.protocol}
    if security.protocol.endswith("SSL"):
        options["ssl_context"] = ssl_context(security)
    if security.protocol.startswith("SASL"):
        known = ", ".join(SASL_MECHANISMS)
        if security.sasl_mechanism == KERBEROS:
            raise NotSupported(KafkaErrorCode.KERBEROS_UNSUPPORTED, known=known)
        if security.sasl_mechanism not in SASL_MECHANISMS:
            raise NotSupported(KafkaErrorCode.MECHANISM_UNKNOWN, mechanism=security.sasl_mechanism, known=known)
        options["sasl_mechanism"] = security.sasl_mechanism
        options["sasl_plain_username"] = security.sasl_username
        options["sasl_plain_password"] = security.sasl_password
    return options


class WireManager(KafkaConnectionManager):  # type: ignore[misc]
    """kafka-python's connections to the nodes of one cluster. Everything here runs on the loop's thread.

    ``networks``: those that may be connected; empty for all.
    """

    networks: Sequence[Network] = ()

    def nodes(self) -> list[int]:
        """Broker ids of the newest metadata response."""
        return [broker.node_id for broker in self.cluster.brokers()]

    def bootstrap_nodes(self) -> list[str]:
        return [node.node_id for node in self.cluster.bootstrap_brokers()]

    def address(self, node: NodeId) -> str | None:
        """``host:port`` of a broker or bootstrap server, None when the cluster does not list it."""
        known = self.cluster.broker_metadata(node)
        return f"{known.host}:{known.port}" if known else None

    def is_connected(self, node: NodeId) -> bool:
        """Return whether ``connection`` would give one that is open already."""
        present = self._conns.get(node)
        return present is not None and bool(present.connected)

    def connection(self, node: NodeId, timeout: float) -> NodeConnection:
        """The open connection of a node, or a new one that must be up within ``timeout`` seconds.

        Callers ask at their own cadence, so the library's pause between attempts would only make an answer stale.
        Raises UnknownBrokerIdError.
        """
        self.reset_backoff(node)
        # Each connection learns the versions of its own broker: during an upgrade they differ.
        self.broker_version_data = None
        conn: NodeConnection = self.get_connection(
            node, timeout_ms=max(1.0, timeout * 1000), refresh_metadata_on_err=False
        )
        return conn

    async def within(self, promise: WirePromise, seconds: float) -> Any:
        """Awaits ``promise``; raises KafkaTimeoutError after ``seconds``."""
        return await self.wait_for(promise, max(0.0, seconds) * 1000)

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> TcpTransport | TlsTransport:
        until = time.monotonic() + 10 if timeout_at is None else timeout_at
        sock = await self._connect_socket(node.host, node.port, until)
        if not self.ssl_enabled:
            return TcpTransport(self._net, sock, host=node.host)
        return await self._start_tls(sock, node.host, until)

    async def _connect_socket(self, host: str, port: int, until: float) -> socket.socket:
        addresses = await self._resolve(host, port, until)
        failure: Exception = ConnectFailed(f"the host name {host} has no address")
        for index, (family, kind, proto, _, address) in enumerate(addresses):
            now = time.monotonic()
            share = (until - now) / (len(addresses) - index)
            try:
                return await self._dial(socket.socket(family, kind, proto), address, now + share)
            except (ConnectFailed, errors.KafkaTimeoutError) as error:
                failure = error
        raise failure

    async def _dial(self, sock: socket.socket, address: Any, until: float) -> socket.socket:
        try:
            if self.networks and not any(ipaddress.ip_address(address[0]) in network for network in self.networks):
                raise ConnectFailed(f"{address[0]} is not in KAFKA_NETWORKS")
            sock.setblocking(False)  # noqa: FBT003  (takes no keyword)
            for option in self.config["socket_options"]:
                sock.setsockopt(*option)
            code = sock.connect_ex(address)
            if code in _IN_PROGRESS:
                await self._net.wait_write(sock, timeout_at=until)
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise ConnectFailed(os.strerror(code).lower())
        except BaseException:
            sock.close()
            raise
        return sock

    async def _resolve(self, host: str, port: int, until: float) -> Sequence[Any]:
        with suppress(ValueError):
            ipaddress.ip_address(host)
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        found = Future()

        def look_up() -> None:
            addresses: Sequence[Any] = ()
            error: ConnectFailed | None = None
            try:
                addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except OSError as refusal:
                error = ConnectFailed(f"the host name {host} cannot be resolved ({refusal.strerror})")
            with suppress(RuntimeError):  # the loop was closed while we looked: nobody waits any more
                self._net.call_soon_threadsafe(lambda: found.failure(error) if error else found.success(addresses))

        threading.Thread(target=look_up, name=f"resolve-{host}", daemon=True).start()
        addresses: Sequence[Any] = await self.within(found, until - time.monotonic())
        return addresses

    async def _start_tls(self, sock: socket.socket, host: str, until: float) -> TlsTransport:
        try:
            transport = TlsTransport(self._net, sock, host=host, ssl_context=self.config["ssl_context"])
        except BaseException:
            sock.close()
            raise
        expired = False

        def expire() -> None:
            # The handshake waits for the socket: ending the stream wakes it with an error.
            nonlocal expired
            expired = True
            with suppress(OSError):
                transport._sock.shutdown(socket.SHUT_RDWR)  # noqa: SLF001

        timer = self._net.call_at(until, expire)
        try:
            await transport.handshake()
        except BaseException as error:
            transport.abort(error)
            if expired:
                raise errors.KafkaTimeoutError("the TLS handshake timed out") from None
            if isinstance(error, ssl.SSLError | OSError):
                raise TlsFailed(tls_reason(error)) from None
            raise
        finally:
            self._net.cancel(timer)
        return transport


_ROOT = "kafka"
# What these report is returned by the wire to its caller; in the log it would only repeat itself at every refresh.
_REPEATERS = ("kafka.net.connection", "kafka.net.manager", "kafka.net.transport", "kafka.cluster")
_HIDDEN = "[hidden]"


class RedactingFilter(logging.Filter):
    """Rewrites a record so that neither SASL messages, nor wire bytes, nor a known secret remain in its text."""

    def __init__(self) -> None:
        super().__init__()
        self._spellings: tuple[str, ...] = ()

    def learn(self, secrets: tuple[str, ...]) -> None:
        """Remembers secrets for as long as the process lives: a discarded client may still log."""
        spellings = set(self._spellings)
        for secret in filter(None, secrets):
            spellings.update((secret, repr(secret)[1:-1], repr(secret.encode())[2:-1]))
        self._spellings = tuple(sorted(spellings, key=len, reverse=True))

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_redact_value(value) for value in record.args)
        record.msg, record.args = self._without_secrets(record.getMessage()), None
        if record.exc_info and record.exc_info[0]:
            text = "".join(traceback.format_exception(*record.exc_info)).rstrip()
            record.exc_text, record.exc_info = self._without_secrets(text), None
        return True

    def _without_secrets(self, text: str) -> str:
        for spelling in self._spellings:
            text = text.replace(spelling, _HIDDEN)
        return text


_FILTER = RedactingFilter()


def quiet_client_logs(*secrets: str) -> None:
    """Puts the library's loggers at WARNING or above and behind the redacting filter. Safe to call repeatedly.

    A filter of a parent logger does not see the records of its children, so every logger of the library gets it.
    Who needs the library's DEBUG output may lower the levels afterwards; the filter stays.
    """
    _FILTER.learn(secrets)
    for name in [_ROOT, *logging.root.manager.loggerDict]:
        if name == _ROOT or name.startswith(_ROOT + "."):
            logger = logging.getLogger(name)
            if _FILTER not in logger.filters:
                logger.addFilter(_FILTER)
                if name == _ROOT:
                    logger.setLevel(logging.WARNING)
                elif name in _REPEATERS:
                    logger.setLevel(logging.CRITICAL)


def _redact_value(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if "Sasl" in type(value).__name__:
        return f"<{type(value).__name__}>"
    return value
