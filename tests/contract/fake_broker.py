"""A Kafka cluster on loopback for tests: real TCP, real frames (kio's codec), a model instead of logs and controllers.

    with FakeKafka(ClusterModel(brokers=3)) as kafka:
        kafka.model.add_topic("orders", [[1, 2], [2, 3]], records=100)
        kafka.freeze(2)                      # accepts connections, answers nothing, like a stopped process
        admin_for(Connection("k", 1, kafka.bootstrap_servers)).metadata(deadline=5)

As in Kafka, a connection's requests are answered one after the other, and a request that is forwarded to controllers
that do not answer holds up the ones behind it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import io
import secrets
import ssl
import struct
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self

from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from tests.contract.fake_answers import (
    API_VERSIONS,
    ASKED_OF_CONTROLLERS,
    DESCRIBE_CONFIGS,
    DESCRIBE_LOG_DIRS,
    FORWARDED,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Drop,
    answer,
    api_versions_answer,
    offered_versions,
    unsupported_api_version_answer,
)
from tests.contract.fake_entities import Entities
from tests.contract.fake_model import ClusterModel, FakeBroker, QuorumState

LOOPBACK = "127.0.0.1"
_CACHED = (METADATA, DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS)
_BEFORE_SIGN_IN = (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)


@dataclass(frozen=True, slots=True)
class Login:
    """The one user that a fake cluster with SASL knows; with OAUTHBEARER whoever has a token that it ``accepts``."""

    mechanism: str
    username: str = ""
    password: str = ""
    accepts: Callable[[str], bool] = lambda _: False


@dataclass(slots=True)
class _Server:
    """A broker's listener. ``thawed`` is cleared while the broker is frozen."""

    listener: asyncio.Server
    thawed: asyncio.Event
    ended: bool = False
    writers: dict[asyncio.StreamWriter, asyncio.Task[None]] = field(default_factory=dict)

    def end(self, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()
        task = self.writers.pop(writer, None)
        if task is not None:
            task.cancel()


class FakeKafka:
    """Serves a model. Methods may be called from any thread but the loop's; ``requests`` counts by API key."""

    def __init__(self, model: ClusterModel, *, login: Login | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.model = model
        self.requests: dict[int, int] = {}
        self.asked_of: dict[int, dict[int, int]] = {}  # API key → broker → requests
        self.denied: set[int] = set()
        self.versions: dict[int, tuple[int, int] | None] = {}  # other than kio's; None takes a key away
        self.versions_of: dict[int, dict[int, tuple[int, int] | None]] = {}  # the same for one broker
        self.dies_on: dict[int, int] = {}  # broker → API key: killed when it is asked that, without an answer
        self.loses_reply: dict[int, int] = {}  # API key → how often: carried out, then the connection is dropped
        self.replaced: dict[int, bytes] = {}  # API key → header and body that are sent instead of an answer
        self.login = login
        self._tls = tls
        self._servers: dict[int, _Server] = {}
        self.cached: set[int] = set(
            _CACHED
        )  # API keys of answers that are encoded once, and follow from the model alone
        self._answers: dict[tuple[object, ...], bytes] = {}
        self._answers_of = -1
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake-kafka", daemon=True)
        self._faults: list[Exception] = []
        self._quorum_answers = asyncio.Event()
        self._quorum_answers.set()

    def __enter__(self) -> Self:
        self._thread.start()
        for broker in self.model.brokers.values():
            self.start(broker.id)
        return self

    def __exit__(self, *_: object) -> None:
        for broker in list(self._servers):
            self.kill(broker)
        self._run(self._wait_until_quiet())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._faults:
            raise ExceptionGroup("the fake broker failed to answer", self._faults)

    @property
    def bootstrap_servers(self) -> tuple[str, ...]:
        return tuple(f"{LOOPBACK}:{broker.port}" for broker in self.model.brokers.values())

    @property
    def controller_servers(self) -> tuple[str, ...]:
        """Of those that were started."""
        return tuple(f"{LOOPBACK}:{node.port}" for node in self.model.controllers.values() if node.port)

    def start_controllers(self) -> None:
        """Gives each controller a listener of its own (KRaft)."""
        for node in self.model.controllers.values():
            self._run(self._listen(node, 0))

    def start(self, broker: int, *, port: int = 0) -> None:
        """Listens, on a free port unless one is given."""
        self._run(self._listen(self.model.brokers[broker], port))

    def kill(self, broker: int) -> None:
        """The process is gone: its port refuses. The cluster lists it until ``model.fence(broker)``."""
        self._run(self._unlisten(broker))

    def freeze(self, broker: int) -> None:
        """Like SIGSTOP: the kernel still accepts connections, nobody reads them."""
        self._run(self._call(self._servers[broker].thawed.clear))

    def thaw(self, broker: int) -> None:
        self._run(self._call(self._servers[broker].thawed.set))

    def set_quorum(self, state: QuorumState) -> None:
        """SILENT: what brokers forward to the controllers is never answered, as when the majority is lost."""
        self.model.set_quorum(state)
        self._run(self._call(self._quorum_answers.clear if state is QuorumState.SILENT else self._quorum_answers.set))

    def open_connections(self) -> int:
        return sum(len(server.writers) for server in self._servers.values())

    # ---- the loop's thread

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    async def _call(self, work: Callable[[], None]) -> None:
        work()

    async def _listen(self, broker: FakeBroker, port: int) -> None:
        thawed = asyncio.Event()
        thawed.set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await self._serve(broker, thawed, reader, writer)
            except (asyncio.IncompleteReadError, ConnectionError, Drop):
                pass  # the client left, or the broker drops the connection
            except Exception as error:  # noqa: BLE001  (a fault of the fake: told when the test ends)
                self._faults.append(error)
            finally:
                server.end(writer)

        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            server.writers[writer] = self._loop.create_task(serve(reader, writer))
            if server.ended:
                server.end(writer)

        listener = await asyncio.start_server(accepted, LOOPBACK, port, ssl=self._tls, limit=1 << 26)
        server = _Server(listener, thawed)
        self._servers[broker.id] = server
        self.model.set_port(broker.id, listener.sockets[0].getsockname()[1])

    async def _unlisten(self, broker: int) -> None:
        server = self._servers.pop(broker, None)
        if server is None:  # it died of a request in the meantime
            return
        server.ended = True
        # asyncio loses a connection that it accepted just before its server is closed: first no more, then close.
        for listening in server.listener.sockets:
            self._loop.remove_reader(listening.fileno())
        for _ in range(5):
            await asyncio.sleep(0)
        server.listener.close()
        for writer in list(server.writers):
            server.end(writer)
        await asyncio.sleep(0)  # lets the aborted transports close their sockets

    async def _wait_until_quiet(self) -> None:
        """A connection that was accepted a moment ago is still to be handed over, and then ended."""
        while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110  (asyncio tells of its own tasks in no other way)
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.001)

    async def _serve(
        self, broker: FakeBroker, thawed: asyncio.Event, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        session = _SaslSession(self.login)
        while True:
            frame = await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])
            await thawed.wait()
            reply = await self._reply(broker, frame, session)
            await thawed.wait()
            writer.write(struct.pack(">i", len(reply)) + reply)
            if session.refused:
                writer.close()  # at once, as Kafka does: the refusal and the end may arrive together
                await writer.wait_closed()
                return
            await writer.drain()

    async def _reply(self, broker: FakeBroker, frame: bytes, session: _SaslSession) -> bytes:
        api_key, version, correlation_id = struct.unpack_from(">hhi", frame)
        self.requests[api_key] = self.requests.get(api_key, 0) + 1
        if self.dies_on.get(broker.id) == api_key:
            self._loop.call_soon(self._loop.create_task, self._unlisten(broker.id))
            raise Drop
        asked = self.asked_of.setdefault(api_key, {})
        asked[broker.id] = asked.get(broker.id, 0) + 1
        offered = offered_versions(self.model, {**self.versions, **self.versions_of.get(broker.id, {})})
        if broker.id not in self.model.brokers:
            offered = {key: versions for key, versions in offered.items() if key in ASKED_OF_CONTROLLERS}
        if api_key == API_VERSIONS and not _offers(offered, api_key, version):
            return struct.pack(">i", correlation_id) + _encoded(unsupported_api_version_answer(offered))
        if not _offers(offered, api_key, version):
            raise Drop
        if not session.done and api_key not in _BEFORE_SIGN_IN:
            raise Drop
        if api_key in self.replaced:
            return struct.pack(">i", correlation_id) + self.replaced[api_key]
        if api_key in self.cached:
            with self.model.lock:
                return struct.pack(">i", correlation_id) + self._encoded_once(broker, api_key, version, frame)
        request = _decoded(api_key, version, frame)
        if api_key == API_VERSIONS:
            return _with_header(correlation_id, api_versions_answer(self.model, version, offered))
        if api_key in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            return _with_header(correlation_id, session.answer(api_key, version, request))
        if api_key in FORWARDED:
            await self._quorum_answers.wait()
        with self.model.lock:
            entity = answer(self.model, broker, api_key, version, request, frozenset(self.denied))
        if self.loses_reply.get(api_key, 0) > 0:
            self.loses_reply[api_key] -= 1
            raise Drop
        return _with_header(correlation_id, entity)

    def _encoded_once(self, broker: FakeBroker, api_key: int, version: int, frame: bytes) -> bytes:
        """Everything after the correlation id; encoded once for each state of the model.

        The codec takes seconds for large answers. Metadata is the same from every broker.
        """
        if self._answers_of != self.model.revision:
            self._answers.clear()
            self._answers_of = self.model.revision
        denied = frozenset(self.denied)
        key = (0 if api_key == METADATA else broker.id, frame[:4], frame[8:], denied)  # without the correlation id
        if key not in self._answers:
            entity = answer(self.model, broker, api_key, version, _decoded(api_key, version, frame), denied)
            self._answers[key] = _with_header(0, entity)[4:]
        return self._answers[key]


class _SaslSession:
    """The server's side of SASL PLAIN (RFC 4616) and SCRAM (RFC 5802) for one connection."""

    ITERATIONS = 4096

    def __init__(self, login: Login | None) -> None:
        self._login = login
        self.done = login is None
        self.refused = False
        self._first_bare = b""
        self._server_first = b""
        self._salt = secrets.token_bytes(16)

    def answer(self, api_key: int, version: int, request: Any) -> Any:
        if self._login is None:
            raise Drop
        entities = Entities(api_key, version)
        if api_key == SASL_HANDSHAKE:
            known = request.mechanism == self._login.mechanism
            code = ErrorCode.none if known else ErrorCode.unsupported_sasl_mechanism
            return entities.new("SaslHandshakeResponse", error_code=code, mechanisms=(self._login.mechanism,))
        check = {"PLAIN": self._plain, "OAUTHBEARER": self._bearer}.get(self._login.mechanism, self._scram)
        token = check(request.auth_bytes)
        self.refused = token is None
        return entities.new(
            "SaslAuthenticateResponse",
            error_code=ErrorCode.sasl_authentication_failed if self.refused else ErrorCode.none,
            error_message="Authentication failed: Invalid username or password" if self.refused else None,
            auth_bytes=token or b"",
            session_lifetime=timedelta(0),
        )

    def _plain(self, token: bytes) -> bytes | None:
        assert self._login is not None
        _, username, password = token.decode().split("\0")
        self.done = (username, password) == (self._login.username, self._login.password)
        return b"" if self.done else None

    def _bearer(self, token: bytes) -> bytes | None:
        """RFC 7628: an error is told as a challenge, and the client answers one more time."""
        assert self._login is not None
        if token == b"\x01":
            return None
        first, bearer, *_ = token.split(b"\x01")
        self.done = first == b"n,," and self._login.accepts(bearer.removeprefix(b"auth=Bearer ").decode())
        return b"" if self.done else b'{"status":"invalid_token"}'

    def _scram(self, token: bytes) -> bytes | None:
        assert self._login is not None
        algorithm = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[self._login.mechanism]
        if not self._first_bare:
            self._first_bare = token.removeprefix(b"n,,")
            nonce = _scram_fields(self._first_bare)["r"] + secrets.token_hex(12)
            salt = base64.b64encode(self._salt).decode()
            self._server_first = f"r={nonce},s={salt},i={self.ITERATIONS}".encode()
            return self._server_first
        without_proof, _, proof = token.rpartition(b",p=")
        message = b",".join((self._first_bare, self._server_first, without_proof))
        salted = hashlib.pbkdf2_hmac(algorithm, self._login.password.encode(), self._salt, self.ITERATIONS)

        def signed(key: bytes, text: bytes) -> bytes:
            return hmac.new(key, text, algorithm).digest()

        client_key = signed(salted, b"Client Key")
        signature = signed(hashlib.new(algorithm, client_key).digest(), message)
        expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        known_user = _scram_fields(self._first_bare)["n"] == self._login.username
        self.done = known_user and hmac.compare_digest(expected, base64.b64decode(proof))
        if not self.done:
            return None
        return b"v=" + base64.b64encode(signed(signed(salted, b"Server Key"), message))


def _scram_fields(message: bytes) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in message.decode().split(","))


def _offers(offered: Mapping[int, tuple[int, int]], api_key: int, version: int) -> bool:
    lowest, highest = offered.get(api_key, (0, -1))
    return lowest <= version <= highest


def _decoded(api_key: int, version: int, frame: bytes) -> Any:
    schema = load_request_schema(api_key, version)
    _, header_size = entity_reader(schema.__header_schema__)(frame, 0)
    request, _ = entity_reader(schema)(frame, header_size)
    return request


def _with_header(correlation_id: int, entity: Any) -> bytes:
    header = entity.__header_schema__(correlation_id=correlation_id)
    return _encoded(header) + _encoded(entity)


def _encoded(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()
